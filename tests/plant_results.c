// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Plants a pair of passing result files with sweeps and served rows, for scripts that test what is
 * made of result files:
 *
 *     plant_results LIMITS BENCH_FILE PEERS_FILE SHA256
 *
 * No number of them was measured.
 */
#include <stdio.h>
#include <string.h>

#include "planted_results.h"

int main(int argc, char **argv) {
    static struct planted_file file;
    struct bench_limit limits[BENCH_MAX_LIMITS];
    if (argc != 5) {
        fprintf(stderr, "usage: %s LIMITS BENCH_FILE PEERS_FILE SHA256\n", argv[0]);
        return 2;
    }
    int32_t count = gate_limits(argv[1], limits);
    if (count < 1) {
        fprintf(stderr, "%s: %s: no limits\n", argv[0], argv[1]);
        return 2;
    }
    planted_bench(&file, limits, count);
    planted_sweeps(&file);
    file.sources = argv[4];
    planted_write_to(&file, argv[2]);
    planted_peers(&file, limits, count);
    planted_served(&file);
    file.sources = argv[4];
    planted_write_to(&file, argv[3]);
    return 0;
}
