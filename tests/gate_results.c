// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gates that read committed result files.
 */
#include "gate_results.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

int gate_parse(int count, char **values, struct gate_arguments *arguments) {
    if (count != 4 || strlen(values[3]) != 64) {
        fprintf(stderr, "usage: %s FOLDER LIMITS SHA256\n", values[0]);
        return 1;
    }
    *arguments = (struct gate_arguments){values[1], values[2], values[3]};
    return 0;
}

int gate_open(const char *gate, const char *what, const struct gate_arguments *arguments, FILE *out,
              struct gate_file *opened) {
    opened->error[0] = '\0';
    opened->found =
        result_open_newest(arguments->folder, GATE_GPU, what, &opened->file, opened->error);
    if (opened->found == RESULT_NONE) {
        fprintf(out, "skip %s %s\n", gate, opened->error);
        return 0;
    }
    if (opened->found == RESULT_FOUND &&
        strcmp(opened->file.sources_sha256, arguments->sources) != 0) {
        fprintf(out, "stale %s %s: measured on other sources than these, on %s\n", gate,
                opened->file.path, opened->file.date);
        return 0;
    }
    return 1;
}

int32_t gate_limits(const char *path, struct bench_limit *limits) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return -1;
    }
    int32_t count = bench_read_limits(file, limits);
    fclose(file);
    return count;
}

void gate_assert(const char *gate, gate_judge *judge, const struct gate_file *opened,
                 const struct gate_arguments *arguments) {
    struct bench_limit limits[BENCH_MAX_LIMITS];
    struct judge_sheet sheet = {stdout, gate, 0, 0, 0};
    ck_assert_msg(opened->found == RESULT_FOUND, "%s", opened->error);
    int32_t count = gate_limits(arguments->limits, limits);
    ck_assert_msg(count > 0, "%s: no limits, or malformed ones", arguments->limits);
    judge(&opened->file, limits, count, &sheet);
    printf("%s %s: %d rows checked, %d findings, %d accepted\n", gate, opened->file.path,
           sheet.checked, sheet.failed, sheet.accepted);
    ck_assert_int_eq(sheet.failed, 0);
    ck_assert_int_gt(sheet.checked, 0);
}
