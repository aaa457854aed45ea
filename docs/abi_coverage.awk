# SPDX-License-Identifier: Apache-2.0
# Reads Doxygen's XML of headers and structs. Prints "documented/total" for each kind of public
# name, one line for each name without a description, and exits 1 if there is one.

function field(line, name,    text) {
    text = line
    if (!sub(".* " name "=\"", "", text)) {
        return ""
    }
    sub(/".*/, "", text)
    return text
}

function open_item(kind) {
    depth++
    kinds[depth] = kind
    names[depth] = ""
    described[depth] = 0
}

function close_item(    kind, owner) {
    kind = kinds[depth]
    owner = kind == "field" ? compound "." : ""
    total[kind]++
    if (described[depth]) {
        documented[kind]++
    } else {
        print "docs: no description: " kind " " owner names[depth]
        missing++
    }
    depth--
}

FNR == 1 { depth = 0; inside = 0 }

/<compounddef / {
    compound_kind = field($0, "kind")
    open_item(compound_kind == "struct" ? "struct" : "file")
}
/<compoundname>/ {
    compound = $0
    gsub(/.*<compoundname>|<\/compoundname>.*/, "", compound)
    names[depth] = compound
}
/<memberdef / {
    kind = field($0, "kind")
    if (kind == "variable" && compound_kind == "struct") {
        kind = "field"
    } else if (kind == "define") {
        kind = "macro"
    }
    open_item(kind)
}
/<enumvalue / { open_item("enum value") }
/<name>/ && names[depth] == "" {
    text = $0
    gsub(/.*<name>|<\/name>.*/, "", text)
    names[depth] = text
}

# A description is not empty if there is a paragraph in it.
/<(brief|detailed)description>/ { inside = 1 }
inside && /<para>/ { described[depth] = 1 }
/<\/(brief|detailed)description>/ { inside = 0 }

/<\/enumvalue>/ { close_item() }
/<\/memberdef>/ { close_item() }
/<\/compounddef>/ { close_item() }

END {
    count = split("file,function,struct,field,enum,enum value,typedef,macro", order, ",")
    for (i = 1; i <= count; i++) {
        kind = order[i]
        if (total[kind] > 0) {
            line = line (line == "" ? "" : ", ") kind " " (documented[kind] + 0) "/" total[kind]
            all += total[kind]
            good += documented[kind]
        }
        delete total[kind]
    }
    for (kind in total) {
        print "docs: unknown kind of member: " kind
        missing++
    }
    print "docs: public C ABI documented " good "/" all ": " line
    exit missing > 0 || all == 0
}
