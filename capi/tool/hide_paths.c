// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Taking paths out of a text that people will post: a path's names may be a user's.
 */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/** What stands for a path. */
static const char shown[] = "(path)";

/** 1 for what goes on in a path without blanks. */
static int in_path(char c) {
    return c != '\0' && strchr(" \t'\"()<>,;", c) == NULL;
}

/** Length of the folder that the text begins with; 0 if it begins with none of them. */
static size_t folder_length(const char *text, const char *const *folders, int count) {
    size_t longest = 0;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(folders[i]);
        if (length > 1 && length > longest && strncmp(text, folders[i], length) == 0) {
            longest = length;
        }
    }
    return longest;
}

char *tool_hide_paths(const char *line, const char *const *folders, int count) {
    /* At worst "/a" after "/a": each becomes 6 bytes. */
    char *copy = malloc(3 * strlen(line) + sizeof shown);
    char *to = copy;
    const char *from = line;
    while (copy != NULL && *from != '\0') {
        size_t known = folder_length(from, folders, count);
        int begins = from == line || strchr(" \t'\"()<>,;=:~.", from[-1]) != NULL;
        if (known == 0 && !(*from == '/' && begins && in_path(from[1]))) {
            *to++ = *from++;
            continue;
        }
        from += known;
        /* A colon ends it only where a blank or the end follows: "file: what is wrong". */
        while (in_path(*from) && !(*from == ':' && !in_path(from[1]))) {
            from++;
        }
        memcpy(to, shown, sizeof shown - 1);
        to += sizeof shown - 1;
    }
    if (copy != NULL) {
        *to = '\0';
    }
    return copy;
}
