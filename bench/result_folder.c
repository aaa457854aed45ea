// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Result files: the newest of a folder, and rows of one.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "result_file.h"

/** Length of YYYY-MM-DD. */
#define DATE 10

void result_gpu_name(const char *gpu, char *name) {
    size_t length = 0;
    for (; *gpu != '\0' && length + 1 < RESULT_TEXT; gpu++) {
        unsigned char c = (unsigned char)*gpu;
        if (isalnum(c) || c == ' ' || c == '-') {
            name[length++] = (char)(c == ' ' ? '-' : tolower(c));
        }
    }
    name[length] = '\0';
}

/** Whether a name is DATE characters of a date and then an end. */
static int is_named(const char *name, const char *end) {
    static const char form[] = "0000-00-00";
    size_t length = strlen(name);
    if (length != DATE + strlen(end) || strcmp(name + DATE, end) != 0) {
        return 0;
    }
    for (int i = 0; i < DATE; i++) {
        if (form[i] == '-' ? name[i] != '-' : !isdigit((unsigned char)name[i])) {
            return 0;
        }
    }
    return 1;
}

/** Date and card of the name and of the file must agree: the name decides which file is newest. */
static int agrees(const struct result_file *file, const char *date, const char *gpu, char *error) {
    char name[RESULT_TEXT];
    result_gpu_name(file->gpu, name);
    if (strncmp(file->date, date, DATE) != 0) {
        snprintf(error, RESULT_ERROR, "%.300s: its date is %s, not that of its name", file->path,
                 file->date);
        return 0;
    }
    if (strcmp(name, gpu) != 0) {
        snprintf(error, RESULT_ERROR, "%.300s: its gpu is %s, not that of its name", file->path,
                 file->gpu);
        return 0;
    }
    return 1;
}

int result_open_newest(const char *folder, const char *gpu, const char *what,
                       struct result_file *file, char *error) {
    char end[RESULT_TEXT];
    char newest[sizeof((struct dirent *)NULL)->d_name] = "";
    char path[RESULT_PATH];
    memset(file, 0, sizeof *file);
    snprintf(end, sizeof end, "-%s-%s.json", gpu, what);
    errno = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        snprintf(error, RESULT_ERROR, "%.300s: %s", folder, strerror(errno));
        return RESULT_BAD;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (is_named(entry->d_name, end) && strcmp(entry->d_name, newest) > 0) {
            snprintf(newest, sizeof newest, "%s", entry->d_name);
        }
    }
    closedir(entries);
    if (newest[0] == '\0') {
        snprintf(error, RESULT_ERROR, "%.300s: no file <date>%.100s", folder, end);
        return RESULT_NONE;
    }
    if (snprintf(path, sizeof path, "%s/%s", folder, newest) >= (int)sizeof path) {
        snprintf(error, RESULT_ERROR, "%.300s: its path is too long", folder);
        return RESULT_BAD;
    }
    return result_read(path, file, error) != 0 || !agrees(file, newest, gpu, error) ? RESULT_BAD
                                                                                    : RESULT_FOUND;
}

int result_same_point(const struct bench_point *a, const struct bench_point *b) {
    return a->batch == b->batch && a->heads == b->heads && a->nodes == b->nodes &&
           a->prefix == b->prefix;
}

/** Whether a text is what is asked for, or nothing is. */
static int fits(const char *text, const char *like) {
    return like[0] == '\0' || strcmp(text, like) == 0;
}

const struct result_row *result_find(const struct result_file *file, const struct result_row *like,
                                     const struct result_row *after) {
    const struct result_row *row = after == NULL ? file->rows : after + 1;
    for (; row < file->rows + file->count; row++) {
        if (fits(row->op, like->op) && fits(row->implementation, like->implementation) &&
            fits(row->set, like->set) && fits(row->mask, like->mask) &&
            fits(row->layout, like->layout) &&
            (like->point.batch == 0 || result_same_point(&row->point, &like->point)) &&
            (like->row_stride_bytes == 0 || row->row_stride_bytes == like->row_stride_bytes) &&
            (like->seed == 0 || row->seed == like->seed)) {
            return row;
        }
    }
    return NULL;
}
