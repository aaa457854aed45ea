#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs test_alloc_failure and checks that every allocation that stands in ref/ and capi/ failed in
# it at least once: alloc_sites.sh PROGRAM
# The program prints `SITE address` for each failure; addr2line (binutils) gives the line. A new
# allocation that no test makes fail is a failure here. The tool and the examples, which are not the
# library, and the CUDA back end are left out.
set -u
program=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
"$program" > "$work/log" 2>&1
code=$?
grep -v '^SITE ' "$work/log"

for file in ref/*.[ch] capi/*.[ch]; do
    [ "$file" = capi/cuda_backend.c ] || awk '
        { line = $0 }
        /^ *(\/\/|\/\*|\*( |$|\/))/ { next }
        line ~ /(^|[^A-Za-z0-9_])(malloc|calloc|aligned_alloc|realloc|strdup|posix_memalign)\(/ {
            print FILENAME ":" FNR
        }' "$file"
done | sort -u > "$work/written"

sed -n 's/^SITE //p' "$work/log" | sort -u | xargs addr2line -e "$program" |
    awk 'match($0, /(ref|capi)\/[^\/:]+:[0-9]+/) { print substr($0, RSTART, RLENGTH) }' |
    sort -u > "$work/failed"

for site in $(comm -23 "$work/written" "$work/failed"); do
    echo "not ok P0-2 allocation site $site: it never failed"
    code=1
done
for site in $(comm -13 "$work/written" "$work/failed"); do
    echo "not ok P0-2 allocation site $site: it is not found in the sources"
    code=1
done
written=$(wc -l < "$work/written")
if [ "$written" -eq 0 ]; then
    echo "not ok P0-2 allocation sites: none found"
    code=1
elif [ "$code" -eq 0 ]; then
    echo "ok P0-2 allocation sites: all $written failed"
fi
exit $code
