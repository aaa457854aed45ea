# SPDX-License-Identifier: Apache-2.0
# Filter of everything that Doxygen reads. A formula's label, written in bold and in parentheses
# in a page of spec/, becomes an anchor; a label that is named elsewhere, in a page or in the
# comment of a source, becomes a link to it. Doxygen then fails on a label that no page has.
# The include guards of .cuh files go: Doxygen knows those of .h files only.
/^#define [A-Z_]*_CUH$/s/.*//
/\*\*(eq-/{
s/\*\*(\(eq-[a-z0-9-]*\))\*\*/@anchor \1 <b>(\1)<\/b>/g
b
}
/@ref  *eq-/b
s/\([ (,]\)\(eq-[a-z0-9-]*[a-z0-9]\)/\1@ref \2 "\2"/g
s/^eq-[a-z0-9-]*[a-z0-9]/@ref & "&"/
