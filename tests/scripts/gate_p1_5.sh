#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GATE: P1-5
# Judges what compute-sanitizer found on a GPU: gate_p1_5.sh EVIDENCE SHA256 LIST
# EVIDENCE is phases/evidence/gpu.txt, which ninja evidence writes from the kit's logs, SHA256 that
# of the sources, LIST the list file of the kit. Each of the four tools must have been over every
# gate of the kit, have come to its end, and have found nothing. Evidence of other sources is stale.
set -u
evidence=$1
hash=$2
list=$3
if [ ! -f "$evidence" ]; then
    echo "skip P1-5 compute-sanitizer: no evidence of a GPU (ninja sanitize-gpu, ninja evidence)"
    exit 0
fi
if [ "$(sed -n '/^sources_sha256 /{p;q;}' "$evidence")" != "sources_sha256 $hash" ]; then
    echo "stale P1-5 compute-sanitizer: $evidence is of other sources"
    exit 0
fi
gates=$(grep -o 'out/gpu-kit/gate_[A-Za-z0-9_]*' "$list" | sed 's,.*/,,' | sort -u)
[ -n "$gates" ] || echo "not ok P1-5 compute-sanitizer: $list names no gate"
# Each tool must have been over the Check cases that any of them was over.
for tool in memcheck racecheck initcheck synccheck; do
    for gate in $gates; do
        awk -v tool="$tool" -v gate="$gate" '
            BEGIN {
                clean = "; ERROR SUMMARY: 0 errors; exit code 0$"
                if (tool == "racecheck")
                    clean = "; RACECHECK SUMMARY: 0 hazards .*.0 errors, 0 warnings.; exit code 0$"
            }
            $1 == "findings" && $2 != 0 { bad++ }
            $1 == "not" && $2 == "ok" && $3 == tool && $4 == gate { bad++ }
            $1 == "sanitizer" && ($3 == gate || $3 == gate ":") {
                part = $0
                sub(/^[^ ]* [^ ]* /, "", part)
                sub(/: [0-9]*%: .*|: no result.*/, "", part)
                if ($2 != tool) { others[part] = 1; next }
                parts++
                mine[part] = 1
                if (!/: 100%: Checks: [1-9][0-9]*, Failures: 0, Errors: 0; / || $0 !~ clean) bad++
            }
            END {
                name = "P1-5 " tool " on " gate
                for (part in others) if (!(part in mine)) missed = part
                if (parts == 0) print "not ok " name ": it was not run"
                else if (bad > 0) print "not ok " name ": " bad " of " parts " parts"
                else if (missed != "") print "not ok " name ": not over " missed
                else print "ok " name ": " parts " parts, no finding"
            }' "$evidence"
    done
done
