#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site and checks it.
#
#   sh docs/build.sh OUT_DIR STAMP      from the repository root
#
# Makes OUT_DIR/html/index.html, writes STAMP and its dependency file STAMP.d. Fails on any
# Doxygen warning, a source without an @file block, formulas that MathJax would not draw, a page
# of spec/, phases/ or docs/guides/ that no list leads to, or an undocumented part of the C ABI.
set -u
export LC_ALL=C

share=${KDTR_DOCS_SHARE:-/usr/share}

fail() {
    echo "docs: $*" >&2
    exit 1
}

# Finds Doxygen, the theme and MathJax, or says which packages bring them.
find_tools() {
    missing=
    doxygen=${DOXYGEN:-doxygen}
    command -v "$doxygen" >/dev/null 2>&1 || missing="$missing doxygen"
    theme=$share/doxygen-awesome-css
    [ -f "$theme/doxygen-awesome-sidebar-only-darkmode-toggle.css" ] ||
        missing="$missing doxygen-awesome-css"
    mathjax=$share/javascript/mathjax
    [ -f "$mathjax/MathJax.js" ] || missing="$missing libjs-mathjax"
    [ -z "$missing" ] ||
        fail "missing Debian packages:$missing (apt-get install --no-install-recommends$missing)"
    doxygen_version=$("$doxygen" --version | sed 's/[^0-9.].*//')
}

# Sources of the library, as paths from the root.
list_sources() {
    find ref kernels capi -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \
        -o -name '*.cu' -o -name '*.cuh' \) | sort
}

# Without an @file block Doxygen ignores a file's functions and reports nothing.
check_file_blocks() {
    list_sources | xargs awk '
        FNR == 1 { if (name != "" && !found) { print name; bad = 1 } name = FILENAME; found = 0 }
        /^ \* @file$/ { found = 1 }
        END { if (name != "" && !found) { print name; bad = 1 } exit bad }' >"$out/nofile.txt" ||
        fail "no @file block in: $(tr '\n' ' ' <"$out/nofile.txt")"
}

# Copies the part of MathJax that reads TeX and writes SVG: no fonts, no network.
copy_mathjax() {
    to=$out/html/mathjax
    mkdir -p "$to/extensions/TeX" "$to/jax/output/SVG/fonts" "$to/jax/input"
    cp "$mathjax/MathJax.js" "$to/"
    for name in tex2jax MathEvents MathMenu MathZoom; do
        cp "$mathjax/extensions/$name.js" "$to/extensions/"
    done
    cp "$mathjax/extensions/TeX/AMSmath.js" "$mathjax/extensions/TeX/AMSsymbols.js" \
        "$to/extensions/TeX/"
    cp -r "$mathjax/jax/input/TeX" "$to/jax/input/"
    cp -r "$mathjax/jax/element" "$to/jax/"
    cp -r "$mathjax/jax/output/SVG/jax.js" "$mathjax/jax/output/SVG/config.js" \
        "$mathjax/jax/output/SVG/autoload" "$to/jax/output/SVG/"
    cp -r "$mathjax/jax/output/SVG/fonts/TeX" "$to/jax/output/SVG/fonts/"
}

# One page for each file of phases/evidence, and the page that lists them. A .md file is a page
# already; a .txt file is quoted whole.
make_evidence_pages() {
    mkdir -p "$out/pages"
    list=$out/pages/evidence.md
    {
        echo '# Evidence {#evidence}'
        echo
        echo 'Written by programs and committed as they wrote it; the tests only read it. Each'
        echo 'file records a hash of the sources it was made from; where that hash no longer'
        echo 'matches, `ninja test` reports the evidence as STALE.'
        echo
    } >"$list"
    count=0
    for file in phases/evidence/*.md phases/evidence/*.txt; do
        [ -f "$file" ] || continue
        count=$((count + 1))
        name=${file##*/}
        id=evidence_$(echo "${name%.*}" | sed 's/[^A-Za-z0-9]/_/g')
        page=$out/pages/$id.md
        case $name in
            *.md)
                given=$(sed -n '1s/^#.*{#\([A-Za-z0-9_-]*\)}.*$/\1/p' "$file")
                if [ -n "$given" ]; then
                    id=$given
                    cat "$file" >"$page"
                else
                    awk -v id="$id" -v name="${name%.md}" '
                        NR == 1 && /^# / { print $0 " {#" id "}"; next }
                        NR == 1 { print "# " name " {#" id "}\n" }
                        { print }' "$file" >"$page"
                fi ;;
            *)
                printf '# %s {#%s}\n\n@verbinclude %s\n' "${name%.txt}" "$id" "$name" >"$page" ;;
        esac
        echo "- @subpage $id" >>"$list"
    done
    [ "$count" -gt 0 ] || echo 'There is none yet.' >>"$list"
}

# Charts and tables of the newest result files, and the page of the projection, which is kept apart
# from them. What there is no file for is said, not drawn.
make_results() {
    rm -rf "$out/charts"
    mkdir -p "$out/charts"
    out/plain/charts bench/results "$out/charts" || fail "the charts could not be made"
    sh bench/roofline.sh out/plain/roofline bench/results "$out/projection" \
        >"$out/projection.log" 2>&1
    status=$?
    page=$out/pages/projection.md
    if [ "$status" -eq 0 ]; then
        # The last one by date is that of the newest file.
        for json in "$out"/projection/*-sm120-projection.json; do :; done
        awk -f docs/projection.awk "$json" >"$page" || fail "no page of $json"
    elif grep -q 'roofline: no file' "$out/projection.log"; then
        printf '# Projection for sm_120 {#projection}\n\nThere is no result file.\n' >"$page"
        echo "docs: no projection: no result file"
    else
        cat "$out/projection.log" >&2
        fail "the projection could not be made"
    fi
}

# Doxygen's own header for its version, with docs/header.html in its head; and the final
# configuration.
make_configuration() {
    "$doxygen" -w html "$out/base_header.html" "$out/base_footer.html" "$out/base.css" \
        >/dev/null 2>&1 || fail "doxygen -w html failed"
    awk 'NR == FNR { if (FNR > 1) add = add $0 "\n"; next }
         /<\/head>/ { printf "%s", add }
         { print }' docs/header.html "$out/base_header.html" >"$out/header.html"
    {
        echo '@INCLUDE = docs/Doxyfile'
        echo "HTML_HEADER = $out/header.html"
        for folder in capi/examples phases/evidence "$out/charts"; do
            [ -d "$folder" ] && echo "EXAMPLE_PATH += $folder"
        done
        # From 1.9.5 on the theme needs the light base style; older versions do not know the tag.
        echo "$doxygen_version" | awk -F. '{ exit !($1 * 10000 + $2 * 100 + $3 >= 10905) }' &&
            echo 'HTML_COLORSTYLE = LIGHT'
    } >"$out/Doxyfile"
}

run_doxygen() {
    KDTR_DOCS_OUT=$out
    KDTR_DOCS_THEME=$theme
    KDTR_DOCS_VERSION=$(awk '
        /^#define KDTR_VERSION_(MAJOR|MINOR|PATCH) / { v = v dot $3; dot = "." }
        END { print v }' capi/kdtr.h)
    export KDTR_DOCS_OUT KDTR_DOCS_THEME KDTR_DOCS_VERSION
    rm -rf "$out/html" "$out/xml"
    "$doxygen" "$out/Doxyfile" >"$out/doxygen.log" 2>&1
    status=$?
    sed "s|$PWD/||" "$out/doxygen.log" >&2
    [ "$status" -eq 0 ] || fail "doxygen failed with status $status"
    [ ! -s "$out/doxygen.log" ] || fail "doxygen printed warnings"
    [ -f "$out/html/index.html" ] || fail "doxygen made no index.html"
}

# Without MathJax.js the pages show raw TeX and Doxygen does not notice.
check_formulas() {
    [ -f "$out/html/mathjax/MathJax.js" ] || fail "html/mathjax/MathJax.js is missing"
    find "$out/html" -name '*.html' -exec grep -l '\\[([].*\\[])]' {} + >"$out/formulas.txt"
    [ -s "$out/formulas.txt" ] || fail "no page has a formula: formulas are not being read"
    without=$(xargs grep -L '<script[^>]*src="[^"]*mathjax/MathJax\.js"' <"$out/formulas.txt")
    [ -z "$without" ] || fail "formulas, but no MathJax, in: $without"
    grep -l '<script[^>]*src="https*:' "$out"/html/*.html >"$out/network.txt" &&
        fail "a page loads a script from the network: $(head -n 1 "$out/network.txt")"
    formula_pages=$(awk 'END { print NR }' "$out/formulas.txt")
}

# Each page must hang below the start page, so that a reader can find it.
check_pages_are_listed() {
    grep -ho '<innerpage refid="[^"]*"' "$out"/xml/*.xml |
        sed 's/.*refid="//; s/"//' | sort -u >"$out/listed.txt"
    awk -F'"' '/<compound refid="[^"]*" kind="page"/ { print $2 }' "$out/xml/index.xml" |
        grep -v '^indexpage$' | sort -u >"$out/all_pages.txt"
    lost=$(comm -13 "$out/listed.txt" "$out/all_pages.txt" | tr '\n' ' ')
    [ -z "$lost" ] || fail "pages that no @subpage leads to: $lost"
    pages=$(awk 'END { print NR }' "$out/all_pages.txt")
}

# Emphasis that Doxygen does not take for emphasis, such as **(this)**, stays as asterisks.
check_markdown() {
    sed 's/$/.html/' "$out/all_pages.txt" | (cd "$out/html" && xargs grep '\*\*' index.html) |
        awk '!/class="(line|ttdef|ttc)"/ {
            at = index($0, "**") - 20
            print "docs: " substr($0, 1, index($0, ":")) " " substr($0, at < 1 ? 1 : at, 60)
        }' >"$out/asterisks.txt"
    [ ! -s "$out/asterisks.txt" ] || {
        cat "$out/asterisks.txt" >&2
        fail "Markdown that Doxygen does not understand"
    }
}

# Functions, structs, fields, enumerations, their values, typedefs and macros of the public
# headers, counted in the XML: Doxygen 1.9.4 does not report undocumented enumeration values.
check_public_abi() {
    set --
    for file in "$out"/xml/kdtr*_8h.xml "$out"/xml/structkdtr*.xml; do
        [ -f "$file" ] && set -- "$@" "$file"
    done
    [ $# -gt 0 ] || fail "no XML of capi/kdtr.h"
    awk -f docs/abi_coverage.awk "$@" || fail "the public headers are not documented in full"
}

write_stamp() {
    {
        echo "$stamp: \\"
        # Folders too, so that a new file counts; not `docs`, which is the name of a target.
        find docs spec phases ref kernels capi bench/results ! -path docs \( -type d \
            -o -name '*.md' -o -name '*.txt' -o -name '*.py' -o -name '*.json' \
            -o -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' \
            -o -name '*.svg' -o -name '*.css' -o -name '*.awk' -o -name '*.tex' \
            -o -name '*.html' -o -name '*.xml' -o -name '*.sh' -o -name '*.sed' \
            -o -name Doxyfile \) |
            sort | sed 's/^/  /; s/$/ \\/'
        echo
    } >"$stamp.d"
    echo "$formula_pages" >"$stamp"
}

[ $# -eq 2 ] || fail "usage: sh docs/build.sh OUT_DIR STAMP"
[ -f docs/Doxyfile ] && [ -f capi/kdtr.h ] || fail "run it from the repository root"
out=$1
stamp=$2
find_tools
mkdir -p "$out" "$(dirname "$stamp")"
rm -f "$stamp"
rm -rf "$out/pages"
check_file_blocks
make_evidence_pages
make_results
make_configuration
run_doxygen
copy_mathjax
check_formulas
check_pages_are_listed
check_markdown
check_public_abi
write_stamp
echo "docs: $out/html/index.html, $pages pages, formulas on $formula_pages, 0 warnings"
