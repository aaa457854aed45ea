#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fits the roofline model to the newest measurements of an H200 and writes what it says of sm_120
# cards: roofline.sh PROGRAM FOLDER OUT_FOLDER
# The projection is OUT_FOLDER/<date>-sm120-projection.json, beside <date>-sm120-projection.txt.
set -eu
newest=
for file in "$2"/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-nvidia-h200-bench.json; do
    [ ! -f "$file" ] || newest=$file
done
[ -n "$newest" ] || { echo "roofline: no file <date>-nvidia-h200-bench.json in $2" >&2; exit 1; }
name=${newest##*/}
to=$3/$(echo "$name" | cut -c 1-10)-sm120-projection
mkdir -p "$3"
"$1" "$newest" "$to.json" > "$to.txt.part"
mv "$to.txt.part" "$to.txt"
cat "$to.txt"
echo "wrote $to.json"
