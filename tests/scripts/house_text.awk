# SPDX-License-Identifier: Apache-2.0
# The form of every text file: licence line, lengths, blanks, characters, forbidden words.
# Reads paths on stdin, prints violations.

function report(rule, line, what) {
    print rule ": " path ":" line ": " what
}

# c, sh, awk, py, ninja: sources. md, text: prose and settings. data: written by programs; only
# words are checked. Empty: not text.
function kind_of(path,    name) {
    name = path
    sub(/.*\//, "", name)
    if (name ~ /\.(kdtr|bin|png|gz|pt|safetensors|npy)$/) {
        return ""
    }
    if (path ~ /^(phases\/evidence|bench\/results|tests\/data)\// ||
        name ~ /\.(json|csv|svg|log)$/) {
        return "data"
    }
    if (name ~ /\.(c|h|cpp|cu|cuh)$/) {
        return "c"
    }
    if (name ~ /\.(sh|awk|py|ninja|md)$/) {
        sub(/.*\./, "", name)
        return name
    }
    if (name == "bootstrap") {
        return "sh"
    }
    return name == "Doxyfile" ? "ninja" : "text"
}

# Whether the line opens a function whose first line has been seen. Other blocks in column 0
# (tables, structs) are passed over up to their closing brace.
function opens_function(text) {
    if (kind == "sh") {
        return text ~ /^[A-Za-z_][A-Za-z0-9_]*\(\) *[{]$/
    }
    if (kind == "awk") {
        return text ~ /^function .*[{]$/
    }
    if (text !~ /[{][ \t]*$/ || signature_line == 0 ||
        signature ~ /^(extern|namespace)/ && signature !~ /\(/) {
        return 0
    }
    if (signature ~ /\(/ && signature !~ /=[ \t]*[{][ \t]*$/) {
        return 1
    }
    in_block = 1
    return 0
}

# A function runs from the first line of its signature to the brace in column 0.
function function_lines(text, number,    lines) {
    if (in_function || in_block) {
        if (text ~ /^}/) {
            lines = number - signature_line + 1
            if (in_function && lines > 70) {
                report("function-length", signature_line,
                       lines " lines, more than 70: " substr(signature, 1, 60))
            }
            in_function = in_block = signature_line = 0
        }
        return
    }
    if (text ~ /^[A-Za-z_]/) {
        signature = text
        signature_line = number
    } else if (text ~ /^[ {]/ && signature_line > 0) {
        signature = signature " " text
    } else {
        signature_line = 0
        return
    }
    in_function = opens_function(text)
}

function check_line(text, number) {
    if (text ~ /\t/) {
        report("tab", number, "tab")
    }
    if (text ~ /[ \t\r]$/) {
        report("trailing-blank", number, "blank at the end of the line")
    }
    if (is_source && text ~ /[^ -~\t\r]/) {
        report("unicode", number, "a character that is not printable ASCII")
    } else if (!is_source && text ~ invisible) {
        report("unicode", number, "an invisible character")
    }
    if (is_source && kind != "ninja" && length(text) > 100) {
        report("line-length", number, length(text) " columns, more than 100")
    }
    if (kind == "c" || kind == "sh" || kind == "awk") {
        function_lines(text, number)
    }
}

function check_end(number, whole) {
    if (is_source && number > 400) {
        report("file-length", number, "more than 400 lines")
    }
    if (number == 0) {
        return
    }
    RS = "\001"
    whole = ""
    getline whole <path
    close(path)
    RS = "\n"
    if (whole !~ /\n$/) {
        report("final-newline", number, "no newline at the end of the file")
    }
}

BEGIN {
    # UTF-8 of soft hyphen, no-break space, zero-width and direction marks, byte order mark.
    invisible = "\302\255|\302\240|\342\200[\213-\217\250-\257]|\342\201[\240-\257]|\357\273\277"
}

{
    path = $0
    kind = kind_of(path)
    if (kind == "") {
        next
    }
    is_source = kind != "md" && kind != "text" && kind != "data"
    in_function = in_block = signature_line = 0
    number = 0
    licensed = 0
    while ((getline text <path) > 0) {
        number++
        if (text ~ /\.\.\/share[d]|\/wor[k]\//) {
            report("word", number, "a path outside the repository")
        }
        if (kind == "data") {
            continue
        }
        if (number == 1 || (number == 2 && first ~ /^#!/)) {
            licensed = licensed || text ~ /SPDX-License-Identifier: Apache-2\.0/
        }
        if (number == 1) {
            first = text
        }
        check_line(text, number)
    }
    close(path)
    if (is_source && !licensed) {
        report("spdx", 1, "no SPDX-License-Identifier: Apache-2.0 in the first line")
    }
    if (kind != "data") {
        check_end(number)
    }
}
