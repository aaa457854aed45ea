// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-7: slots beyond 2^31 / 576, in a pool of more than 2^31 bytes, give the bits of the same
 * rows in low slots. The pool needs no such memory: its base lies so far before the rows that high
 * slots reach them, and nothing else of it may be touched.
 */
#include <stdio.h>

#include "check_main.h"
#include "edge_checks.h"

/** Adds to the entries of an index array that are slots or pages of the pool. */
static void shift_entries(const void *array, int32_t dtype, int64_t count, int64_t limit,
                          int64_t shift) {
    for (int64_t i = 0; array != NULL && i < count; i++) {
        int64_t value = ref_load_index(array, dtype, i);
        if (value < limit) {
            test_put_index(array, dtype, i, value + shift);
        }
    }
}

/** Runs a case with its rows in low slots and in slots that start at `shift`. */
static void check_shift(const struct test_case *record, int64_t shift) {
    struct test_problem problem;
    struct test_outputs low;
    struct test_outputs high;
    struct harness_report report;
    edge_make(record, &problem);
    const struct ref_attention *a = &problem.call;
    ck_assert_int_eq(edge_run(0, &problem, &low), 1);
    int64_t pages = problem.num_slots / a->page_size;
    shift_entries(a->slots, a->slot_dtype, record->prefix[0] + record->nodes[0], pages, shift);
    shift_entries(a->row_table, a->slot_dtype, a->row_table_stride, pages, shift / a->page_size);
    shift_entries(a->tree_slots, a->slot_dtype, record->nodes[0], problem.num_slots, shift);
    problem.slot_shift = shift;
    ck_assert_int_eq(edge_run(0, &problem, &high), 1);
    ck_assert_msg(harness_same_bits(&high, &low, TEST_TRIVIAL_IS_ERROR, &report) == 0,
                  "%s, slots from %lld: %s", record->name, (long long)shift, report.text);
    printf("%s %s: slots from %lld\n", "P1-7", record->name, (long long)shift);
    test_outputs_free(&low);
    test_outputs_free(&high);
    test_problem_free(&problem);
}

START_TEST(high_slots_have_the_bits_of_low_ones) {
    /* Byte 2^31 and element 2^31 of the pool, element 2^32, and the last slots of 31 bits. */
    static const int64_t shifts[] = {1864128, 3728256, 7456512, 2147480000 - 1024};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        struct test_case record = {.name = "slots",
                                   .prefix = {90},
                                   .nodes = {7},
                                   .heads = 8,
                                   .mask_mode = REF_MASK_PARENTS,
                                   .one_pool = 1};
        check_shift(&record, shifts[i]);
        record.name = "wide slots, two pools, list of the tree";
        record.one_pool = 0;
        record.wide_slots = 1;
        record.own_tree_list = 1;
        check_shift(&record, shifts[i]);
        record.name = "pages";
        record.own_tree_list = 0;
        record.one_pool = 1;
        record.page_size = 64;
        check_shift(&record, shifts[i] / 64 * 64);
        record.name = "consecutive slots, padded rows";
        record.padding = 1;
        record.wide_slots = 0;
        check_shift(&record, shifts[i] / 64 * 64);
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p1_7_suite(void) {
    Suite *suite = suite_create("P1-7 large pools");
    TCase *tcase = test_tcase(suite, "P1-7", "P1-7 high slots");
    tcase_add_test(tcase, high_slots_have_the_bits_of_low_ones);
    return suite;
}

int main(void) {
    return edge_main(gate_p1_7_suite);
}
