# SPDX-License-Identifier: Apache-2.0
# Reads test logs; prints a line a result, tab-separated: verdict, gate, place, log, text.
# Verdicts: pass, fail, skip, stale, note. Results are Check's verbose lines
# (file:line:P:case:test:...), and lines "ok", "not ok" and "skip" of scripts. A line "stale" is a
# result of other sources, a line "note" a limit that was missed and is accepted: neither is a pass
# or a failure. A log with a failed exit and no failure in it, or with no result at all, is a
# failure of its own.
function gate_of(text) {
    return match(text, /^P[0-9]+-[0-9]+/) ? substr(text, RSTART, RLENGTH) : "unit"
}
function result(verdict, text) {
    printf "%s\t%s\t%s\t%s\t%s\n", verdict, gate_of(text), place, log_name, text
    count[verdict]++
}
function finish() {
    if (log_name == "") return
    if (exit_code == "") {
        result("fail", "it did not end: " log_name)
    } else if (exit_code != 0 && count["fail"] == 0) {
        result("fail", "exit code " exit_code ": " log_name)
    } else if (count["pass"] + count["fail"] + count["skip"] + count["stale"] == 0) {
        result("fail", "no test ran: " log_name)
    }
}
FNR == 1 { finish(); log_name = FILENAME; place = "cpu"; exit_code = ""; split("", count) }
/^PLACE / { place = $2 }
/^EXIT / { exit_code = $2 }
/^[^ :]+:[0-9]+:[PFE]:/ {
    split($0, part, ":")
    result(part[3] == "P" ? "pass" : "fail", part[4] ": " part[5])
}
/^ok / { result("pass", substr($0, 4)) }
/^not ok / { result("fail", substr($0, 8)) }
/^skip / { result("skip", substr($0, 6)) }
/^stale / { result("stale", substr($0, 7)) }
/^note / { result("note", substr($0, 6)) }
END { finish() }
