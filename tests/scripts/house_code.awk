# SPDX-License-Identifier: Apache-2.0
# What C, C++ and CUDA sources may include and say, by folder. Reads paths on stdin.

function report(rule, what) {
    print rule ": " path ":" number ": " what
}

# The line without comments; string contents stay. in_comment carries over lines.
function without_comments(text,    result, at) {
    result = ""
    for (;;) {
        if (in_comment) {
            at = index(text, "*/")
            if (at == 0) {
                return result
            }
            text = substr(text, at + 2)
            in_comment = 0
        }
        # Whichever comes first: a string, a character, a comment.
        if (!match(text, /"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|\/\/|\/\*/)) {
            return result text
        }
        at = RSTART + RLENGTH
        if (substr(text, RSTART, 2) == "//") {
            return result substr(text, 1, RSTART - 1)
        }
        if (substr(text, RSTART, 2) == "/*") {
            result = result substr(text, 1, RSTART - 1) " "
            in_comment = 1
        } else {
            result = result substr(text, 1, at - 1)
        }
        text = substr(text, at)
    }
}

# "a/b/../c" to "a/c".
function normal(path) {
    gsub(/\/\.\//, "/", path)
    while (sub(/[^\/.][^\/]*\/\.\.\//, "", path)) {
    }
    sub(/^\.\//, "", path)
    return path
}

# Path from the root of what an include names, or "" for a header of the system.
function resolve(name,    folder, local) {
    folder = path
    sub(/[^\/]*$/, "", folder)
    local = normal(folder name)
    if (local in exists) {
        return local
    }
    if (name in exists) {
        return name
    }
    if (name == "cuda_runtime.h") {
        return ""
    }
    sub(/.*\//, "", name)
    return name in place ? place[name] : ""
}

function check_include(text,    name, target, from, into, quoted) {
    quoted = text ~ /include[ \t]*"/
    name = text
    sub(/^[^"<]*["<]/, "", name)
    sub(/[">].*/, "", name)
    target = resolve(name)
    from = top
    into = target
    sub(/\/.*/, "", into)
    if (target == "" && quoted && name ~ /^(\.\.\/)*(ref|kernels|capi|tests|bench)\//) {
        report("include", "\"" name "\" is not in the tree")
    }
    if (from == "ref" && (target != "" && into != "ref" || name ~ /cuda|cooperative_groups/)) {
        report("include", "ref may not include " name)
    } else if (from == "kernels" && target != "" && into !~ /^(ref|kernels)$/ &&
               target !~ /^tests\/simt\/simt(_ptx)?\.h$/) {
        report("include", "kernels may not include " name)
    } else if (from == "kernels" && target == "" &&
               name !~ /^(cuda_runtime|simt(_ptx)?)\.h$/ &&
               name !~ /^(assert|float|limits|math|std[a-z]*|string)\.h$/) {
        report("include", "kernels may not include " name)
    } else if (from == "capi" && target != "" && into !~ /^(ref|kernels|capi)$/) {
        report("include", "capi may not include " name)
    } else if (from == "bench" && into == "tests") {
        report("include", "only tests may include " name)
    }
}

function check_code(code,    bare) {
    if (code ~ /^[ \t]*#[ \t]*include[ \t]*["<]/) {
        check_include(code)
        return
    }
    bare = code
    gsub(/"([^"\\]|\\.)*"/, "\"\"", bare)
    if (bare ~ /<<</ || bare ~ /(^|[^A-Za-z0-9_])__(global|device|shared|constant)__/) {
        if (path !~ /^(kernels\/|tests\/simt\/|tests\/test_simt)/) {
            report("cuda", "a CUDA keyword outside kernels and the emulator")
        }
    }
    if (bare ~ /(^|[^A-Za-z0-9_])(asm|__asm|__asm__)[ \t]*(volatile|__volatile__|goto)?[ \t]*\(/) {
        if (path != "kernels/ptx.cuh" && path !~ /^tests\/simt\//) {
            report("ptx", "inline assembly outside kernels/ptx.cuh")
        }
    }
    if ((top == "tests" || top == "capi") && path != "tests/bounds.h" &&
        raw !~ /not a tolerance:/ &&
        (bare ~ /(^|[^A-Za-z0-9_.])([0-9]+\.?[0-9]*|\.[0-9]+)[eE]-[0-9]/ ||
         bare ~ /(^|[^A-Za-z0-9_.])0?\.00[0-9]*[1-9]/)) {
        report("tolerance", "a tolerance literal; tolerances stand in tests/bounds.h")
    }
}

/\.(c|h|cpp|cu|cuh)$/ {
    files[++count] = $0
    exists[$0] = 1
    base = $0
    sub(/.*\//, "", base)
    # A header that an include path finds; of two equal names the one in a lower layer counts.
    if (!(base in place) || $0 !~ /^tests\//) {
        place[base] = $0
    }
}

END {
    for (i = 1; i <= count; i++) {
        path = files[i]
        top = path
        sub(/\/.*/, "", top)
        number = 0
        in_comment = 0
        while ((getline raw <path) > 0) {
            number++
            check_code(without_comments(raw))
        }
        close(path)
    }
}
