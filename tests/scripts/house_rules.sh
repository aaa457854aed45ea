#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GATE: P0-11
# Traceability and house rules. Run from the repository root; reads text only and builds nothing.
#
#   sh tests/scripts/house_rules.sh
#
# One line a violation, `rule: file:line: what`, and exit 1; else one line with the number of
# files. Gates that are planned are listed as NOT BUILT. The rules, and where they are written:
#
#   gate             house_links.awk   a built gate has a test, a planned one has none, and a test
#                                      names a stated gate
#   list             house_links.awk   every .c, .cpp and .cu is named in a .ninja file
#   equation         house_links.awk   a cited equation label stands in spec/
#   include, cuda, ptx, tolerance
#                    house_code.awk    layering; where CUDA keywords, inline assembly and
#                                      tolerance literals may stand
#   spdx, file-length, function-length, line-length, tab, trailing-blank, final-newline,
#   unicode, word    house_text.awk    the form of the text
set -u
export LC_ALL=C

scripts=$(dirname "$0")

# Every file of the tree but build output, hidden folders and what .gitignore names.
list_files() {
    find . \( -path ./out -o -path './.?*' -o -name __pycache__ \) -prune -type d -o \
        -type f ! -name '.ninja_*' ! -name compile_commands.json \
        ! -path ./example ! -path ./example.c -print |
        sed 's|^\./||' | sort
}

[ -d phases ] && [ -d spec ] || {
    echo "house_rules: run it from the repository root" >&2
    exit 2
}

files=$(list_files)
report=$(
    for program in house_links house_code house_text; do
        printf '%s\n' "$files" | awk -f "$scripts/$program.awk" ||
            echo "internal: $program.awk: failed"
    done
)
planned=$(printf '%s\n' "$report" | grep '^NOT BUILT ')
violations=$(printf '%s\n' "$report" | grep -v -e '^NOT BUILT ' -e '^$')

[ -z "$planned" ] || printf '%s\n' "$planned"
if [ -n "$violations" ]; then
    printf '%s\n' "$violations"
    echo "house rules: $(printf '%s\n' "$violations" | awk 'END { print NR }') violations"
    echo "not ok P0-11 house rules"
    exit 1
fi
echo "house rules: $(printf '%s\n' "$files" | awk 'END { print NR }') files, 0 violations"
echo "ok P0-11 house rules"
