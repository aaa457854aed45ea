// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-8: accuracy beside the incumbent, on what a GPU measured: at each point with a tree, on
 * the same inputs, kdtr's error against that of SGLang's Triton extend kernel. A file of other
 * sources is shown as STALE.
 *
 *     gate_p1_8 FOLDER LIMITS SHA256_OF_THE_SOURCES
 */
#include "check_main.h"
#include "gate_results.h"

static struct gate_arguments arguments;
static struct gate_file peers;

START_TEST(no_less_accurate_than_the_incumbent) {
    gate_assert("P1-8", judge_accuracy, &peers, &arguments);
}
END_TEST

/** @return the suite */
static Suite *accuracy_suite(void) {
    Suite *suite = suite_create("P1-8 accuracy of the incumbent");
    TCase *tcase = test_tcase(suite, "P1-8", "P1-8 errors on the same inputs");
    tcase_add_test(tcase, no_less_accurate_than_the_incumbent);
    return suite;
}

int main(int argc, char **argv) {
    test_suite_make *const makers[] = {accuracy_suite};
    if (gate_parse(argc, argv, &arguments) != 0) {
        return 2;
    }
    int code = 0;
    if (gate_open("P1-8", "peers", &arguments, stdout, &peers)) {
        code = check_main(makers, 1);
    }
    result_free(&peers.file);
    return code;
}
