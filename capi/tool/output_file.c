// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Files that are written whole, and JSON strings.
 */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/** Longest path of a file here. */
#define PATH_SIZE 4096

const char *output_date(char *text, size_t size) {
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || strftime(text, size, "%Y-%m-%d", &utc) == 0) {
        snprintf(text, size, "undated");
    }
    return text;
}

const char *output_name(const char *device, const char *what, char *text, size_t size) {
    char date[16];
    char name[128];
    size_t used = 0;
    for (; *device != '\0' && used + 1 < sizeof name; device++) {
        char c = *device; /* in ASCII, whatever the locale */
        if (c >= 'A' && c <= 'Z') {
            name[used++] = (char)(c - 'A' + 'a');
        } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            name[used++] = c;
        } else if (c == ' ' || c == '-') {
            name[used++] = '-';
        }
    }
    name[used] = '\0';
    snprintf(text, size, "%s-%s-%s.json", output_date(date, sizeof date),
             used > 0 ? name : "device", what);
    return text;
}

/** 1: at `path` is something that a rename would destroy. */
static int written_through(const char *path) {
    struct stat target;
    return lstat(path, &target) == 0 && !S_ISREG(target.st_mode);
}

/** Makes a file beside `path`, open for writing. Returns its descriptor, or -1 with errno. */
static int make_beside(const char *path, char *name, size_t size) {
    int length = snprintf(name, size, "%s.part-XXXXXX", path);
    if (length < 0 || (size_t)length >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkstemp(name);
}

int output_check(const char *path) {
    char name[PATH_SIZE];
    struct stat target;
    if (stat(path, &target) == 0 && S_ISDIR(target.st_mode)) {
        return EISDIR;
    }
    if (written_through(path)) {
        return access(path, W_OK) == 0 ? 0 : errno;
    }
    int descriptor = make_beside(path, name, sizeof name);
    if (descriptor < 0) {
        return errno;
    }
    close(descriptor);
    return unlink(name) == 0 ? 0 : errno;
}

/** Writes all bytes and closes. Returns 0, or an errno. */
static int fill(int descriptor, const char *data, size_t size) {
    int failed = 0;
    while (size > 0 && failed == 0) {
        ssize_t written = write(descriptor, data, size);
        if (written >= 0) {
            data += written;
            size -= (size_t)written;
        } else if (errno != EINTR) {
            failed = errno;
        }
    }
    return close(descriptor) != 0 && failed == 0 ? errno : failed;
}

int output_write(const char *path, const void *data, size_t size) {
    char name[PATH_SIZE];
    if (written_through(path)) {
        int descriptor = open(path, O_WRONLY | O_TRUNC);
        return descriptor < 0 ? errno : fill(descriptor, data, size);
    }
    int descriptor = make_beside(path, name, sizeof name);
    if (descriptor < 0) {
        return errno;
    }
    mode_t mask = umask(0);
    umask(mask);
    int failed = fchmod(descriptor, 0666 & ~mask) != 0 ? errno : 0;
    int written = fill(descriptor, data, size);
    failed = failed != 0 ? failed : written;
    if (failed == 0 && rename(name, path) != 0) {
        failed = errno;
    }
    if (failed != 0) {
        unlink(name);
    }
    return failed;
}

/** Bytes of the UTF-8 character that starts here; 0 if none does. */
static int character_length(const unsigned char *c) {
    int length = c[0] < 0x80                    ? 1
                 : c[0] >= 0xc2 && c[0] <= 0xdf ? 2
                 : c[0] >= 0xe0 && c[0] <= 0xef ? 3
                 : c[0] >= 0xf0 && c[0] <= 0xf4 ? 4
                                                : 0;
    for (int i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Forms longer than needed, surrogates, beyond the last character. */
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f)) {
        return 0;
    }
    return length;
}

void output_json_string(FILE *file, const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    fputc('"', file);
    while (*c != '\0') {
        int length = character_length(c);
        if (length == 0) {
            fputc('?', file);
        } else if (*c < ' ') {
            fprintf(file, "\\u%04x", *c);
        } else {
            if (*c == '"' || *c == '\\') {
                fputc('\\', file);
            }
            fwrite(c, 1, (size_t)length, file);
        }
        c += length > 0 ? length : 1;
    }
    fputc('"', file);
}

FILE *output_open_beside(const char *name) {
    static const char *const folders[] = {"", "../lib/kdtr/"};
    char program[PATH_SIZE];
    char path[PATH_SIZE + 64];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) {
        return NULL;
    }
    program[length] = '\0';
    char *folder_end = strrchr(program, '/');
    if (folder_end == NULL) {
        return NULL;
    }
    folder_end[1] = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        int used = snprintf(path, sizeof path, "%s%s%s", program, folders[i], name);
        FILE *file = used > 0 && (size_t)used < sizeof path ? fopen(path, "r") : NULL;
        if (file != NULL) {
            return file;
        }
    }
    return NULL;
}
