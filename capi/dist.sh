#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes out/kdtr-VERSION.tar.gz of the committed tree. Fails on uncommitted changes and on evidence
# that is missing or stale.
set -eu
if [ -n "$(git status --porcelain)" ]; then
    echo "dist: the tree has uncommitted changes" >&2
    exit 1
fi
hash=$(sh tests/scripts/source_hash.sh)
for file in host gpu arm; do
    if ! grep -q "^sources_sha256 $hash\$" "phases/evidence/$file.txt" 2> /dev/null ||
        grep -q '^gate .* failed [1-9]' "phases/evidence/$file.txt"; then
        echo "dist: phases/evidence/$file.txt is missing, STALE or records failures" >&2
        exit 1
    fi
done
# What gates read that a GPU measured: of these sources, and passed in the run of the evidence.
stale=$(sh tests/scripts/fresh_results.sh bench/results "$hash") || {
    echo "dist: $stale" >&2
    exit 1
}
for gate in P1-5 P1-6 P1-8; do
    grep -q "^gate $gate passed [1-9][0-9]* failed 0 skipped 0\$" phases/evidence/host.txt || {
        echo "dist: gate $gate did not pass in phases/evidence/host.txt" >&2
        exit 1
    }
done
version=$(awk '/define KDTR_VERSION_(MAJOR|MINOR|PATCH)/ { v = v s $3; s = "." } END { print v }' \
    capi/kdtr.h)
git archive --format=tar.gz --prefix="kdtr-$version/" -o "out/kdtr-$version.tar.gz" HEAD
echo "wrote out/kdtr-$version.tar.gz"
