#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The device's PTX rounds products before it adds them: ptx.sh PTX
# In the kernels whose sums are canonical (scores, output) there must be no fused multiply-add, and
# there must be a multiplication, or nothing was looked at.
set -u
ptx=$1
if [ "$(head -c 4 "$ptx")" = SKIP ]; then
    echo "skip P0-5 ptx: $(sed 's/^SKIP //' "$ptx")"
    exit 0
fi
failed=0
for kernel in naive_scores naive_output; do
    verdict=$(awk -v kernel="$kernel" '
        /\.entry/ { inside = index($0, kernel) > 0 }
        inside && /fma\.rn\.f32|mad\.f32/ { fused++ }
        inside && /mul\.rn\.f32|mul\.f32/ { products++ }
        END { print fused + 0, products + 0 }' "$ptx")
    if [ "${verdict% *}" = 0 ] && [ "${verdict#* }" -gt 0 ]; then
        echo "ok P0-5 ptx: $kernel has ${verdict#* } products and no fused multiply-add"
    else
        echo "not ok P0-5 ptx: $kernel has ${verdict% *} fused of ${verdict#* } products"
        failed=1
    fi
done
exit $failed
