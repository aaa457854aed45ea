#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-format over all C, C++ and CUDA sources, by .clang-format.
#
#   sh tests/scripts/format.sh check     exit 1 and a list if a file would change
#   sh tests/scripts/format.sh fix       changes them
#
# Git names the files; a tree without git (a release) is searched. CLANG_FORMAT names another
# program. Tables that are laid out by hand stand between clang-format off and on.
set -u
export LC_ALL=C

mode=${1:-}
case $mode in
    check | fix) ;;
    *)
        echo "usage: sh tests/scripts/format.sh check|fix" >&2
        exit 2
        ;;
esac

formatter=${CLANG_FORMAT:-clang-format}
command -v "$formatter" >/dev/null 2>&1 || {
    echo "format: missing Debian package: clang-format" >&2
    exit 1
}

list_sources() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . \( -path ./out -o -path './.?*' \) -prune -type d -o -type f -print | sed 's|^\./||'
    fi | grep -E '\.(c|h|cpp|cu|cuh)$' | sort -u
}

list=$(mktemp) || exit 2
trap 'rm -f "$list" "$list.all"' EXIT
list_sources >"$list.all"
# A file that git still names may have been deleted.
while IFS= read -r file; do
    [ -f "$file" ] && printf '%s\n' "$file"
done <"$list.all" >"$list"
count=$(awk 'END { print NR }' "$list")
[ "$count" -gt 0 ] || {
    echo "format: no sources found; run it from the repository root" >&2
    exit 2
}

if [ "$mode" = fix ]; then
    xargs "$formatter" --style=file -i <"$list" || exit 1
    echo "format: $count files"
    exit 0
fi
if ! xargs "$formatter" --style=file --dry-run -Werror --ferror-limit=1 <"$list" >"$list.all" 2>&1
then
    sed -n 's/^\([^:]*\):\([0-9]*\):.*$/format: \1:\2: differs from .clang-format/p' "$list.all"
    grep -q 'Wclang-format-violations' "$list.all" || cat "$list.all"
    echo "format: run ninja format"
    exit 1
fi
echo "format: $count files, 0 differences"
