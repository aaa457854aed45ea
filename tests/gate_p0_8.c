// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-8: poison in every invisible place, sizes at the edges, ragged batches with inactive,
 * over-limit and malformed requests (tests/edge_cases.c), for every implementation that equals the
 * reference.
 */
#include "check_main.h"
#include "edge_cases.h"

/** @return the suite */
static Suite *gate_p0_8_suite(void) {
    Suite *suite = suite_create("P0-8 poison, edges, batches");
    edge_cases_poison(test_tcase(suite, "P0-8", "P0-8 poison and sizes"));
    edge_cases_batches(test_tcase(suite, "P0-8", "P0-8 batches and limits"));
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_8_suite};
    return check_main(makers, 1);
}
