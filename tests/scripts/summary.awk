# SPDX-License-Identifier: Apache-2.0
# The table of summary.sh. Reads the hash of the sources, the phase documents, evidence, results.
FILENAME ~ /sources.sha256$/ { current = $1; next }
FILENAME ~ /phases\/phase[0-9]\.md$/ {
    if ($0 ~ /^### P[0-9]+-[0-9]+ /) {
        split($0, word, " ")
        id = word[2]
        order[++gate_count] = id
        title[id] = substr($0, length("### " id " ") + 1)
    } else if ($0 ~ /^Status: /) {
        state[id] = substr($0, 9)
    } else if ($0 ~ /\*Runs\*:/ || runs_go_on) {
        # The sentence may go on in the next line.
        # What reads the measurements of a GPU runs on none itself.
        sub(/on what a GPU measured/, "")
        if ($0 ~ /GPU/) wants_gpu[id] = 1
        runs_go_on = $0 !~ /\.$/
    }
    next
}
FILENAME ~ /evidence\// {
    split($0, word, " ")
    if (FNR == 1) { place = ""; device = ""; stale = 1 }
    if (word[1] == "place") place = word[2]
    if (word[1] == "device") device = substr($0, 8)
    if (word[1] == "date") day = word[2]
    if (word[1] == "sources_sha256") stale = word[2] != current
    if (word[1] == "gate" && (place == "gpu" || place == "arm")) {
        recorded[word[2] SUBSEP place] = 1
        shown = word[4] + 0 > 0 && word[6] + 0 == 0 ? word[4] " passed" : word[6] " FAILED"
        evidence[word[2]] = evidence[word[2]] "; " place " (" device ", " day "): " \
            (stale ? "STALE" : shown)
    }
    next
}
{
    if (gates != "all" && $2 !~ gates) next
    total[$1 == "stale" ? "skip" : $1]++
    if ($2 == "unit") {
        units[$1]++
        if ($1 == "skip") unit_reason = unit_reason "\n          NOT RUN  " $5
        next
    }
    seen[$2 SUBSEP $3 SUBSEP $1]++
    if ($1 == "pass" || $1 == "fail") ran[$2] = 1
    if ($1 == "stale") reason[$2] = reason[$2] "\n          STALE    " $5
    if ($1 == "note") noted[$2] = noted[$2] "\n          ACCEPTED " $5
    if ($1 == "skip") reason[$2] = reason[$2] "\n          NOT RUN  " $5
    if ($1 == "fail") reason[$2] = reason[$2] "\n          FAILED   " $5
}
# A place that a gate names and that neither this run nor any evidence shows.
function missing(id, line) {
    line = ""
    if (wants_gpu[id] && !recorded[id SUBSEP "gpu"] && !seen[id SUBSEP "gpu" SUBSEP "pass"]) {
        line = "\n          NOT RUN  on a GPU: no evidence of one (ninja test-gpu, ninja evidence)"
    }
    if (id == "P0-3" && !recorded[id SUBSEP "arm"]) {
        line = line "\n          NOT RUN  on aarch64: no evidence (ninja test-arm, ninja evidence)"
    }
    return line
}
function places(id, line, k, place, passed, failed) {
    line = ""
    for (k = 1; k <= 3; k++) {
        place = k == 1 ? "cpu" : k == 2 ? "emulated" : "gpu"
        passed = seen[id SUBSEP place SUBSEP "pass"]
        failed = seen[id SUBSEP place SUBSEP "fail"]
        if (passed + failed == 0) continue
        line = line (line == "" ? "" : "; ") place ": " passed + 0 " passed" \
            (failed ? ", " failed " FAILED" : "")
    }
    return line
}
END {
    print "gate   where it ran"
    for (k = 1; k <= gate_count; k++) {
        id = order[k]
        if (gates != "all" && id !~ gates) continue
        if (state[id] == "planned") {
            later = later "\n" sprintf("%-6s NOT BUILT  %s", id, title[id])
            continue
        }
        if (!ran[id]) {
            # What this machine has no tool for is no failure, and no pass either.
            if (reason[id] == "") {
                reason[id] = "\n          FAILED   no test of this gate ran"
                total["fail"]++
            }
            printf "%-6s %s%s%s%s\n", id, title[id], reason[id], noted[id], missing(id)
            continue
        }
        printf "%-6s %s\n          %s%s%s%s%s\n", id, title[id], places(id), evidence[id], \
            reason[id], noted[id], missing(id)
    }
    if (gates == "all") {
        printf "other  unit tests and scripts\n          %d passed, %d failed, %d skipped%s\n", \
            units["pass"], units["fail"], units["skip"], unit_reason
    }
    if (later != "") print substr(later, 2)
    printf "%d passed, %d failed, %d skipped\n", total["pass"], total["fail"], total["skip"]
    exit total["fail"] > 0
}
