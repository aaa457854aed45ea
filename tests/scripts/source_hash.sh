#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints one SHA-256 of the sources that decide what a gate shows: ref/, kernels/, capi/, the
# suites with their data, and how they are built. Evidence records it; where it differs the
# evidence is stale.
set -eu
LC_ALL=C
export LC_ALL
for file in build.ninja */*.ninja capi/tool/*.ninja ref/*.[ch] kernels/*.* capi/*.[ch] capi/*.map \
    capi/tool/*.[ch] tests/*.[ch] tests/*.cpp tests/simt/* tests/data/*; do
    sha256sum "$file"
done | sha256sum | cut -d ' ' -f 1
