#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes phases/evidence/ from the logs of the last runs; `ninja test` only reads it.
#   host.txt  this machine's `ninja test`
#   gpu.txt   out/gpu-kit/gpu.log, with sanitize-*.log and profile.log beside it
#   arm.txt   out/arm/arm.log                    fuzz.txt  out/fuzz/fuzz.log
#   bare.txt  out/bare-root.log
# Each file records the hash of the sources that the logs were made from.
set -eu
mkdir -p phases/evidence
now_hash=$(sh tests/scripts/source_hash.sh)

# gates LOG...: a line a gate, from results.awk.
gates() {
    awk -f tests/scripts/results.awk "$@" | awk -F '\t' '
        $1 == "note" { next }
        { seen[$2] = 1; count[$2 SUBSEP ($1 == "stale" ? "skip" : $1)]++ }
        END {
            for (gate in seen) printf "gate %s passed %d failed %d skipped %d\n", gate,
                count[gate SUBSEP "pass"], count[gate SUBSEP "fail"], count[gate SUBSEP "skip"]
        }' | sort -t - -k 2n
}

# measured LOG...: the lines in which suites print what they measured.
measured() {
    sed -n -e '/^P0-[0-9]* .*\(worst\|error\|differing\|rejected\|caught\)/p' \
        -e '/worst error/p' -e '/^note P/p' -e '/^P1-1 \(mma\|ex2\)/p' -e '/^P1-2 /p' "$@" | sort -u
}

host() {
    logs=$(sed -n 's/^build \(out\/test\/[^:]*\.log\): suite.*/\1/p' tests/targets.ninja \
        tests/simt_targets.ninja tests/flash_targets.ninja bench/bench.ninja \
        bench/results_targets.ninja)
    for log in $logs; do
        [ -f "$log" ] || { echo "evidence: $log is missing: run ninja test first" >&2; return 1; }
    done
    logs="$logs out/test/gate_p1_5.log"
    echo "Evidence of ninja test on one machine; written by ninja evidence, not by hand"
    echo "place host"
    echo "device $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
    echo "system $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(uname -m)"
    echo "compilers $(gcc --version | head -n 1); $(clang --version 2> /dev/null | head -n 1)"
    echo "commit $(git rev-parse HEAD 2> /dev/null || echo unknown)"
    echo "date $(date -u +%Y-%m-%d)"
    echo "sources_sha256 $(cat out/test/sources.sha256)"
    # shellcheck disable=SC2086 # names without blanks
    gates $logs
    echo
    # shellcheck disable=SC2086
    measured $logs
}

# recorded LOG PLACE TITLE: a log that carries its own header.
recorded() {
    echo "Evidence of $3; written by ninja evidence, not by hand"
    echo "place $2"
    sed -n -e '/^device /p' -e '/^driver /p' -e '/^clocks /p' -e '/^power /p' \
        -e '/^system /p' -e '/^commit /p' -e '/^sources_sha256 /p' -e '/^built /p' \
        -e '/^date /p' "$1"
    gates "$1"
    echo
    measured "$1"
    sed -n '/^========= \|^sanitizer /p' "$1"
}

# beside LOG: what the kit's other logs say, where they are of the same sources.
beside() {
    # The first such line is the kit's; what it runs may say the same again.
    sources=$(sed -n '/^sources_sha256 /{p;q;}' "$1")
    for log in "$(dirname "$1")"/sanitize-*.log "$(dirname "$1")"/profile.log; do
        if [ -f "$log" ] && [ "$(sed -n '/^sources_sha256 /{p;q;}' "$log")" = "$sources" ]; then
            echo
            sed -n -e '/^compute-sanitizer: /p' -e '/^sizes /p' -e '/^sanitizer /p' \
                -e '/^findings /p' -e '/^ok DRAM /p' -e '/^not ok /p' "$log"
        fi
    done
}

# fuzzed LOG: the log of ninja fuzz, which is short.
fuzzed() {
    echo "Evidence of ninja fuzz; written by ninja evidence, not by hand"
    echo "place fuzz"
    cat "$1"
}

# bare LOG: what the log of ninja bare-root says of the system, and how demo and test ended.
bare() {
    echo "Evidence of ninja bare-root; written by ninja evidence, not by hand"
    echo "place bare"
    sed -n -e '/^suite /p' -e '/^commit /p' -e '/^sources_sha256 /p' -e '/^date /p' \
        -e '/^packages /p' -e '/^sh \//p' -e '/^compilers /p' \
        -e '/^ok bare root: /p' -e '/^not ok /p' -e '/^==== /p' \
        -e '/^          NOT RUN /p' -e '/: \(ok\|MISMATCH\)$/p' -e '/^  request .*accepted /p' \
        -e '/^[0-9]* passed, [0-9]* failed, [0-9]* skipped$/p' -e '/^EXIT /p' "$1"
}

host > out/test/host.txt
mv out/test/host.txt phases/evidence/host.txt
echo "wrote phases/evidence/host.txt"
if [ -f out/gpu-kit/gpu.log ]; then
    {
        recorded out/gpu-kit/gpu.log gpu "the gates on a GPU"
        beside out/gpu-kit/gpu.log
    } > phases/evidence/gpu.txt
    echo "wrote phases/evidence/gpu.txt"
fi
if [ -f out/arm/arm.log ]; then
    recorded out/arm/arm.log arm "ninja test-arm" > phases/evidence/arm.txt
    echo "wrote phases/evidence/arm.txt"
fi
if [ -f out/fuzz/fuzz.log ]; then
    fuzzed out/fuzz/fuzz.log > phases/evidence/fuzz.txt
    echo "wrote phases/evidence/fuzz.txt"
fi
if [ -f out/bare-root.log ]; then
    bare out/bare-root.log > phases/evidence/bare.txt
    echo "wrote phases/evidence/bare.txt"
fi
status=0
for file in phases/evidence/*.txt; do
    if grep -q -e '^gate .* failed [1-9]' -e '^not ok ' -e '^findings [1-9]' "$file"; then
        echo "evidence: $file records failures" >&2
        status=1
    fi
    grep -q "^sources_sha256 $now_hash\$" "$file" ||
        echo "evidence: $file is STALE: its sources are not those of this tree" >&2
done
exit $status
