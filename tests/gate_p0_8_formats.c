// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-8, formats: mask modes, addressing, index types, layouts and threads that describe the
 * same call must not change a bit. For every implementation of the table.
 */
#include "check_main.h"
#include "edge_checks.h"

START_TEST(mask_modes_agree) {
    struct test_case chain = {.name = "chain",
                              .batch = 2,
                              .prefix = {250, 0},
                              .nodes = {9, 40},
                              .mask_mode = REF_MASK_CHAIN,
                              .window = 1};
    struct test_case parents = chain;
    struct test_case packed = chain;
    parents.mask_mode = REF_MASK_PARENTS;
    packed.mask_mode = REF_MASK_PACKED;
    edge_check_same_bits(&chain, &parents);
    edge_check_same_bits(&chain, &packed);
    parents.window = packed.window = 7;
    packed.padding = 1; /* a word more in every mask row */
    edge_check_same_bits(&parents, &packed);
}
END_TEST

START_TEST(formats_do_not_change_a_bit) {
    const struct test_case plain = {.name = "plain",
                                    .batch = 3,
                                    .prefix = {70, 3, 130},
                                    .nodes = {6, 33, 2},
                                    .mask_mode = REF_MASK_PARENTS,
                                    .bf16_q = 1,
                                    .bf16_kv = 1};
    struct test_case other = plain;
#define SAME_WITH(field, value)               \
    do {                                      \
        other = plain;                        \
        other.name = #field " = " #value;     \
        other.field = (value);                \
        edge_check_same_bits(&plain, &other); \
    } while (0)
    SAME_WITH(page_size, 1);
    SAME_WITH(page_size, 16);
    SAME_WITH(page_size, 32);
    SAME_WITH(page_size, 64);
    SAME_WITH(page_size, 128);
    SAME_WITH(own_tree_list, 1);
    SAME_WITH(wide_lengths, 1);
    SAME_WITH(wide_slots, 1);
    SAME_WITH(padding, 5);
    SAME_WITH(one_pool, 1);
    SAME_WITH(one_query, 1);
    SAME_WITH(heads_outer, 1);
    SAME_WITH(no_optional, 1);
    SAME_WITH(limit_prefix, 4000);
    SAME_WITH(limit_nodes, 60);
#undef SAME_WITH
    other = plain;
    other.name = "all at once";
    other.page_size = 16;
    other.table_rows = other.own_tree_list = other.wide_lengths = other.wide_slots = 1;
    other.padding = 2;
    other.one_pool = other.one_query = other.heads_outer = 1;
    edge_check_same_bits(&plain, &other);
}
END_TEST

START_TEST(threads_do_not_change_a_bit) {
    struct test_implementation threaded = *test_implementation_at(0);
    const struct test_case record = {.name = "threads",
                                     .batch = 2,
                                     .prefix = {300, 20},
                                     .nodes = {9, 12},
                                     .mask_mode = REF_MASK_PARENTS};
    struct test_problem problem;
    struct test_outputs one;
    test_problem_make(&record, &problem);
    ck_assert_int_eq(edge_run(0, &problem, &one), 1);
    for (threaded.num_threads = 2; threaded.num_threads <= 32; threaded.num_threads *= 2) {
        struct test_session session;
        struct test_outputs many;
        struct harness_report report;
        ck_assert_msg(test_session_open(&threaded, &session) == 0, "%s", session.text);
        ck_assert_msg(test_run(&session, &problem, &many) == 0, "%s", session.text);
        test_session_close(&session);
        int differs = harness_same_bits(&many, &one, TEST_TRIVIAL_IS_ERROR, &report);
        ck_assert_msg(!differs, "%d threads: %s", threaded.num_threads, report.text);
        test_outputs_free(&many);
    }
    test_outputs_free(&one);
    test_problem_free(&problem);
}
END_TEST

/** @return the suite */
static Suite *gate_p0_8_formats_suite(void) {
    Suite *suite = suite_create("P0-8 formats");
    TCase *tcase = test_tcase(suite, "P0-8", "P0-8 formats agree");
    tcase_add_test(tcase, mask_modes_agree);
    tcase_add_test(tcase, formats_do_not_change_a_bit);
    tcase_add_test(tcase, threads_do_not_change_a_bit);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_8_formats_suite};
    return check_main(makers, 1);
}
