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
if ! grep -q "^sources_sha256 $hash\$" "$evidence"; then
    echo "stale P1-5 compute-sanitizer: $evidence is of other sources"
    exit 0
fi
gates=$(sed -n 's,^build out/gpu-kit/\(gate_[a-z0-9_]*\): .*,\1,p' "$list")
[ -n "$gates" ] || echo "not ok P1-5 compute-sanitizer: $list names no gate"
for tool in memcheck racecheck initcheck synccheck; do
    for gate in $gates; do
        awk -v tool="$tool" -v gate="$gate" '
            $1 == "sanitizer" && $2 == tool && ($3 == gate || $3 == gate ":") {
                parts++
                if (!/: 100%: Checks: [1-9][0-9]*, Failures: 0, Errors: 0; / || !/; exit code 0$/ ||
                    !/; (ERROR|RACECHECK) SUMMARY: 0 (errors|hazards)/) bad++
            }
            END {
                name = "P1-5 " tool " on " gate
                if (parts == 0) print "not ok " name ": it was not run"
                else if (bad > 0) print "not ok " name ": " bad " of " parts " parts"
                else print "ok " name ": " parts " parts, no finding"
            }' "$evidence"
    done
done
