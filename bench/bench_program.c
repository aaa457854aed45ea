// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr bench` as a program of its own, for tests that want all of it in one.
 */
#include "kdtr_bench.h"

int main(int argc, char **argv) {
    return kdtr_bench_main(argc - 1, argv + 1);
}
