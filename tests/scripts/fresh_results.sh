#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether the newest result files of `kdtr bench` and of the peers, from an H200, are of the sources
# with a hash: fresh_results.sh FOLDER SHA256
# Exit code 1, and a line for each file that is not.
set -u
failed=0
for what in bench peers; do
    newest=
    for file in "$1"/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-nvidia-h200-"$what".json; do
        newest=$file
    done
    if [ ! -f "$newest" ]; then
        echo "$1/<date>-nvidia-h200-$what.json is missing"
        failed=1
    elif ! grep -q "\"sources_sha256\": \"$2\"" "$newest"; then
        echo "$newest is STALE"
        failed=1
    elif grep -q -e '"commit": "[^"]*with changes' -e '"commit": "unknown"' "$newest"; then
        echo "$newest was measured on sources that are not committed"
        failed=1
    fi
done
exit $failed
