#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints one SHA-256 of the sources that decide what a gate shows: ref/, kernels/, capi/ and the
# suites. Evidence records it; where it differs the evidence is stale.
set -eu
LC_ALL=C
export LC_ALL
for file in ref/*.[ch] kernels/*.cu kernels/*.cuh kernels/*.h capi/*.[ch] tests/*.[ch]; do
    sha256sum "$file"
done | sha256sum | cut -d ' ' -f 1
