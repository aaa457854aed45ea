// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Writes the bundle of a named case to standard output: what golden.sh hashes for every compiler,
 * level and architecture (gate P0-3). Without an argument it lists the cases.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"

int main(int argc, char **argv) {
    if (argc != 2) {
        for (int32_t i = 0; i < ref_case_count(); i++) {
            puts(ref_case_name(i));
        }
        return argc == 1 ? 0 : 2;
    }
    void *file;
    size_t bytes;
    struct ref_error error = {0};
    if (ref_case_generate(argv[1], &file, &bytes, &error) != REF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    size_t written = fwrite(file, 1, bytes, stdout);
    free(file);
    return written == bytes && fflush(stdout) == 0 ? 0 : 2;
}
