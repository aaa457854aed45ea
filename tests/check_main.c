// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Runner of the test programs.
 */
#include "check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Seconds a test may take; the slowest takes about 20 without sanitizers. */
#define TIMEOUT_SECONDS 900

uint64_t test_seed(void) {
    const char *text = getenv("KDTR_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 0;
    return seed != 0 ? seed : 1;
}

int test_scale_is_small(void) {
    const char *text = getenv("KDTR_TEST_SCALE");
    if (text == NULL || strcmp(text, "full") == 0) {
        return 0;
    }
    if (strcmp(text, "small") != 0) {
        fprintf(stderr, "KDTR_TEST_SCALE is '%s', not 'small' or 'full'\n", text);
        exit(EXIT_FAILURE);
    }
    return 1;
}

TCase *test_tcase(Suite *suite, const char *id, const char *name) {
    char tags[64];
    snprintf(tags, sizeof tags, "phase%c %s " TEST_PLACE, id[1], id);
    TCase *tcase = tcase_create(name);
    tcase_set_tags(tcase, tags);
    tcase_set_timeout(tcase, TIMEOUT_SECONDS);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int check_main(test_suite_make *const *makers, int count) {
    /* Check forks: a line still in the buffer would be printed by parent and child. */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    printf("seed %llu (KDTR_TEST_SEED), scale %s (KDTR_TEST_SCALE), " TEST_PLACE "\n",
           (unsigned long long)test_seed(), test_scale_is_small() ? "small" : "full");
    SRunner *runner = srunner_create(makers[0]());
    for (int i = 1; i < count; i++) {
        srunner_add_suite(runner, makers[i]());
    }
    srunner_run_all(runner, CK_ENV);
    int run = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (run == 0) {
        fprintf(stderr, "no test ran: the selection matches nothing\n");
    }
    return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
