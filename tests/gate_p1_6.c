// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-6: speed, on what a GPU measured: the newest result files of `kdtr bench` and of the
 * peers against the limits of bench/limits.txt and phases/phase1.md. A file of other sources is
 * shown as STALE.
 *
 *     gate_p1_6 FOLDER LIMITS SHA256_OF_THE_SOURCES
 */
#include "check_main.h"
#include "gate_results.h"

static struct gate_arguments arguments;
static struct gate_file bench;
static struct gate_file peers;

START_TEST(kdtr_is_within_its_limits) {
    gate_assert("P1-6", judge_bench, &bench, &arguments);
}
END_TEST

START_TEST(peers_stand_beside) {
    gate_assert("P1-6", judge_peers, &peers, &arguments);
}
END_TEST

/** @return the suite */
static Suite *bench_suite(void) {
    Suite *suite = suite_create("P1-6 speed");
    TCase *tcase = test_tcase(suite, "P1-6", "P1-6 what kdtr bench measured");
    tcase_add_test(tcase, kdtr_is_within_its_limits);
    return suite;
}

/** @return the suite */
static Suite *peers_suite(void) {
    Suite *suite = suite_create("P1-6 peers");
    TCase *tcase = test_tcase(suite, "P1-6", "P1-6 the peers of the same run");
    tcase_add_test(tcase, peers_stand_beside);
    return suite;
}

int main(int argc, char **argv) {
    test_suite_make *makers[2];
    int count = 0;
    if (gate_parse(argc, argv, &arguments) != 0) {
        return 2;
    }
    if (gate_open("P1-6", "bench", &arguments, stdout, &bench)) {
        makers[count++] = bench_suite;
    }
    if (gate_open("P1-6", "peers", &arguments, stdout, &peers)) {
        makers[count++] = peers_suite;
    }
    int code = count > 0 ? check_main(makers, count) : 0;
    result_free(&bench.file);
    result_free(&peers.file);
    return code;
}
