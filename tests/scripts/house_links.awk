# SPDX-License-Identifier: Apache-2.0
# What must point at something that is there: gates and their tests, sources and build lists,
# equation labels and their citations. Reads paths on stdin.

function report(rule, where, what) {
    print rule ": " where ": " what
}

# "### P0-1 Title" and, as the next line that is not empty, "Status: built" or "Status: planned".
function read_gates(path,    text, number, id, title, heading, open) {
    number = 0
    open = ""
    while ((getline text <path) > 0) {
        number++
        if (open != "" && text !~ /^[ \t]*$/) {
            if (text ~ /^Status: (built|planned)$/) {
                sub(/^Status: /, "", text)
                status[open] = text
            } else {
                report("gate", path ":" number, open ": a line `Status: built` or " \
                       "`Status: planned` must follow the heading")
            }
            open = ""
        }
        if (text ~ /^#+ *P[0-9]+-[0-9]+/) {
            id = text
            sub(/^#+ */, "", id)
            title = id
            sub(/[^P0-9-].*/, "", id)
            sub(/^P[0-9]+-[0-9]+[:.]? */, "", title)
            sub(/ *[{]#.*/, "", title)
            heading = path ":" number
            if (text !~ /^### P[0-3]-[0-9]+ [^ ]/) {
                report("gate", heading, "a gate heading has the form `### P0-1 Title`")
            } else if (id in stated) {
                report("gate", heading, id " is stated twice")
            } else if (path !~ ("phase" substr(id, 2, 1) "[^0-9/]*$")) {
                report("gate", heading, id " stands in the document of another phase")
            } else {
                stated[id] = heading
                titles[id] = title
                order[++gates] = id
                open = id
            }
        }
    }
    close(path)
    if (open != "") {
        report("gate", path ":" number, open ": no Status line")
    }
}

# Test cases of Check, `test_tcase(suite, "P0-1", ...)` or `tcase_create("P0-1 ...")`, and
# `# GATE:` lines of scripts name a gate. A call may be broken before its first string.
function read_gate_use(path, text, number,    id) {
    if (path ~ /^tests\/scripts\/.*\.sh$/) {
        if (text !~ /^# GATE: P[0-9]+-[0-9]+/) {
            return
        }
    } else {
        text = held text
        held = text ~ /(tcase_create|TCASE|test_tcase)[ \t]*\([^")]*$/ ? text : ""
        if (path !~ /\.(c|cpp|cu)$/ || text ~ /^[ \t]*(\/\/|\/\*|\*)/ ||
            text !~ /(tcase_create|TCASE|test_tcase)[ \t]*\([^"]*"P[0-9]+-[0-9]+/) {
            return
        }
    }
    id = text
    sub(/.*((tcase_create|TCASE|test_tcase)[ \t]*\([^"]*"|^# GATE: )P/, "P", id)
    match(id, /^P[0-9]+-[0-9]+/)
    id = substr(id, 1, RLENGTH)
    if (!(id in used)) {
        used[id] = path ":" number
        use_order[++uses] = id
    }
}

function read_citations(path, text, number,    before, label) {
    while (match(text, /eq-[a-z0-9][a-z0-9-]*/)) {
        before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
        label = substr(text, RSTART, RLENGTH)
        sub(/-+$/, "", label)
        if (before !~ /[A-Za-z0-9_-]/ && !(label in labels)) {
            report("equation", path ":" number, label " has no **(" label ")** in spec/")
        }
        text = substr(text, RSTART + RLENGTH)
    }
}

function read_labels(path,    text, number, label) {
    number = 0
    while ((getline text <path) > 0) {
        number++
        while (match(text, /\*\*\(eq-[a-z0-9-]+\)\*\*/)) {
            label = substr(text, RSTART + 3, RLENGTH - 6)
            if (label in labels) {
                report("equation", path ":" number, label " is already at " labels[label])
            }
            labels[label] = path ":" number
            text = substr(text, RSTART + RLENGTH)
        }
    }
    close(path)
}

function read_list(path,    text, words, count, i) {
    while ((getline text <path) > 0) {
        if (text ~ /^[ \t]*#/) {
            continue
        }
        count = split(text, words, /[ \t:|=$"']+/)
        for (i = 1; i <= count; i++) {
            listed[words[i]] = 1
        }
    }
    close(path)
}

{ files[++count] = $0 }

/^phases\/phase[^\/]*\.md$/ { read_gates($0) }
/^spec\/.*\.md$/ { read_labels($0) }
/\.ninja$/ { read_list($0) }

END {
    for (i = 1; i <= count; i++) {
        path = files[i]
        if (path ~ /^(ref|kernels|capi|tests|bench)\/.*\.(c|cpp|cu)$/ && !(path in listed)) {
            report("list", path ":1", "not named in any .ninja file")
        }
        if (path ~ /^(ref|kernels|capi|tests)\/.*\.(c|h|cpp|cu|cuh|py|sh|awk)$/) {
            number = 0
            held = ""
            while ((getline text <path) > 0) {
                number++
                if (path ~ /^tests\//) {
                    read_gate_use(path, text, number)
                }
                if (text ~ /eq-/) {
                    read_citations(path, text, number)
                }
            }
            close(path)
        }
    }
    for (i = 1; i <= gates; i++) {
        id = order[i]
        if (status[id] == "built" && !(id in used)) {
            report("gate", stated[id], id " is built, but no test names it")
        } else if (status[id] == "planned") {
            print "NOT BUILT " id " " titles[id]
        }
    }
    for (i = 1; i <= uses; i++) {
        id = use_order[i]
        if (!(id in stated)) {
            report("gate", used[id], id " is not stated in phases/")
        } else if (status[id] == "planned") {
            report("gate", used[id], id " is planned, but has a test")
        }
    }
}
