// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-3, grade (c): in exact mode the row of a node equals, bit for bit, the row of a plain
 * decode of the same tokens: one node, all that it sees in its prefix, in another batch, with other
 * maxima, and on the emulator with another number of multiprocessors.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "edge_checks.h"
#include "flash_exact_schedule.h"
#include "path_decode.h"

#ifdef KDTR_TEST_EMULATED
#include "simt/simt_runtime.h"
#endif

/** "flash exact" in the table of implementations. */
#define EXACT 1

/** Rows that were compared with a decode. */
static int64_t compared;

/** Numbers of multiprocessors, on the emulator: which block computes what must not matter. */
static const int processors[] = {188, 5, 132};

/** Contexts of a test, one for each of these; they end with its process. */
static struct test_session sessions[3];

/** A run in exact mode. */
static void run(const struct test_problem *problem, int32_t which, struct test_outputs *outputs) {
    struct test_session *session = &sessions[which];
    if (session->context == NULL) {
#ifdef KDTR_TEST_EMULATED
        simt_set_sm_count(processors[which]);
#else
        (void)processors;
#endif
        ck_assert_msg(test_session_open(test_implementation_at(EXACT), session) == 0, "%s",
                      session->text);
    }
    ck_assert_msg(test_run(session, problem, outputs) == 0, "%s: %s", problem->spec.name,
                  session->text);
}

/** The rows of a problem, run before, against plain decodes. */
static void compare_decodes(const struct test_problem *problem, struct test_outputs *verify,
                            int32_t mask_mode) {
    struct test_problem decodes;
    struct test_outputs outputs;
    struct harness_report report;
    if (test_path_decodes(problem, mask_mode, &decodes)) {
        return;
    }
    run(&decodes, mask_mode == REF_MASK_NONE ? 1 : 2, &outputs);
    /* The decodes are other requests: their status is not that of the verify call. */
    free(outputs.status);
    outputs.status = NULL;
    int trivial =
        problem->spec.kind == TEST_ALL_MINUS_INF ? TEST_TRIVIAL_IS_FINE : TEST_TRIVIAL_IS_ERROR;
    int differs = harness_same_bits(verify, &outputs, trivial, &report);
    ck_assert_msg(!differs, "%s, N = %lld: decodes by mode %d: %s", problem->spec.name,
                  (long long)problem->spec.prefix[0], mask_mode, report.text);
    compared += outputs.rows;
    test_outputs_free(&outputs);
    test_problem_free(&decodes);
}

/** A verify call against the decodes of its nodes' paths, in one way to write a decode or both. */
static void check_problem(const struct test_problem *problem, int both) {
    struct test_outputs verify;
    run(problem, 0, &verify);
    compare_decodes(problem, &verify, REF_MASK_NONE);
    if (both) {
        compare_decodes(problem, &verify, REF_MASK_CHAIN);
    }
    test_outputs_free(&verify);
}

static void check_record(const struct test_case *record) {
    struct test_problem problem;
    edge_make(record, &problem);
    check_problem(&problem, record->nodes[0] < 100 && record->prefix[0] < 1000);
    test_problem_free(&problem);
}

static void say(const char *what) {
    printf("P1-3 %s: %lld rows have the bits of a decode\n", what, (long long)compared);
    ck_assert_int_gt(compared, 0);
}

/** Prefixes around a boundary: congruent to 0, 1, 15 and -1 modulo it, and paths that cross it. */
static void check_around(int64_t boundary, int32_t nodes, int32_t heads) {
    static const int64_t offsets[] = {-1, 0, 1, 15};
    for (size_t i = 0; i < (test_scale_is_small() ? 2 : sizeof offsets / sizeof offsets[0]); i++) {
        check_record(&(struct test_case){.name = "around a boundary",
                                         .prefix = {boundary + offsets[i]},
                                         .nodes = {nodes},
                                         .heads = heads,
                                         .window = 3,
                                         .mask_mode = i % 2 ? REF_MASK_PARENTS : REF_MASK_CHAIN});
    }
}

START_TEST(around_a_key_tile_and_a_small_chunk) {
    const int64_t chunk = (int64_t)FLASH_EXACT_SHORT * FLASH_KEYS;
    const int64_t longer = (int64_t)FLASH_EXACT_LONG * FLASH_KEYS;
    check_around(FLASH_KEYS, 20, 1);
    check_around((int64_t)3 * FLASH_KEYS, 20, 9);
    check_around(chunk, 24, 1);
    check_around(2 * chunk, 12, 8);
    check_around(5 * chunk, 12, 1);
    check_around(longer, 10, 16);
    check_around(3 * longer, 4, 64);
    say("around a key tile and a chunk of the first kind");
}
END_TEST

START_TEST(around_the_other_chunks) {
    const int32_t medium = flash_exact_medium_begin(FLASH_EXACT_SHORT);
    const int32_t large = flash_exact_large_begin(FLASH_EXACT_SHORT);
    const int64_t boundaries[] = {
        (int64_t)medium * FLASH_KEYS, (int64_t)(medium + FLASH_EXACT_MEDIUM) * FLASH_KEYS,
        (int64_t)large * FLASH_KEYS, (int64_t)(large + FLASH_EXACT_LARGE) * FLASH_KEYS};
    for (int32_t i = 0; i < (test_scale_is_small() ? 1 : 4); i++) {
        check_around(boundaries[i], i < 2 ? 9 : 3, 1);
    }
    check_around((int64_t)flash_exact_medium_begin(FLASH_EXACT_LONG) * FLASH_KEYS, 3, 16);
    if (!test_scale_is_small()) {
        check_around((int64_t)flash_exact_large_begin(FLASH_EXACT_LONG) * FLASH_KEYS, 2, 16);
    }
    say("around chunks of the other kinds");
}
END_TEST

/** Makes the prefix of request 0 so long, of the slots that it has, drawn at random. */
static void lengthen(struct test_problem *problem, int64_t prefix) {
    struct ref_attention *a = &problem->call;
    int64_t old = problem->spec.prefix[0];
    int32_t nodes = problem->spec.nodes[0];
    int32_t *indptr = test_problem_alloc(problem, 2, sizeof *indptr);
    int32_t *slots = test_problem_alloc(problem, prefix + nodes, sizeof *slots);
    for (int64_t p = 0; p < prefix + nodes; p++) {
        int64_t from = p < prefix
                           ? (int64_t)(test_hash(test_seed(), 9, (uint64_t)p, 0) % (uint64_t)old)
                           : old + p - prefix;
        slots[p] = (int32_t)ref_load_index(a->slots, a->slot_dtype, from);
    }
    indptr[0] = 0;
    indptr[1] = (int32_t)(prefix + nodes);
    a->indptr = indptr;
    a->slots = slots;
    a->length_dtype = a->slot_dtype = REF_I32;
    a->max_prefix_len = prefix;
    problem->spec.prefix[0] = prefix;
}

START_TEST(around_the_second_page_of_a_chunk) {
    /* From 100 key tiles behind the boundary on, blocks that get no chunk would find key tiles
     * behind the last one. */
    static const int32_t offsets[] = {1601, -1, 17};
    const int64_t boundary =
        (int64_t)(flash_exact_large_begin(FLASH_EXACT_SHORT) + FLASH_EXACT_ROUND) * FLASH_KEYS;
    for (int32_t i = 0; i < (test_scale_is_small() ? 1 : 3); i++) {
        struct test_problem problem;
        edge_make(&(struct test_case){.name = "the second page of a chunk",
                                      .prefix = {500},
                                      .nodes = {2},
                                      .heads = 1,
                                      .mask_mode = REF_MASK_CHAIN},
                  &problem);
        lengthen(&problem, boundary + offsets[i]);
        check_problem(&problem, 0);
        test_problem_free(&problem);
    }
    printf("P1-3 around the second page of a chunk: %lld rows\n", (long long)compared);
}
END_TEST

START_TEST(random_trees) {
    static const int32_t nodes[] = {1, 2, 5, 17, 31, 33, 64, 65, 128, 257};
    static const int32_t heads[] = {8, 1, 9, 64, 16, 3, 8, 1, 2, 1};
    for (size_t i = 0; i < (test_scale_is_small() ? 3 : sizeof nodes / sizeof nodes[0]); i++) {
        struct test_case record = {.name = "random tree",
                                   .prefix = {(int64_t)(test_seed() * 37 + i * 23) % 300},
                                   .nodes = {nodes[i]},
                                   .heads = heads[i],
                                   .window = i % 2 ? 1000 : 6,
                                   .mask_mode = i % 3 ? REF_MASK_PARENTS : REF_MASK_PACKED};
        check_record(&record);
        record.name = "random mask";
        record.mask_mode = REF_MASK_PACKED;
        record.pattern = TEST_PATTERN_RANDOM;
        check_record(&record);
    }
    say("random trees and masks");
}
END_TEST

START_TEST(siblings_at_one_position) {
    for (int64_t prefix = 30; prefix <= 32; prefix++) {
        struct test_problem problem;
        edge_make(&(struct test_case){.name = "siblings",
                                      .prefix = {prefix},
                                      .nodes = {19},
                                      .heads = 9,
                                      .kind = prefix == 31 ? TEST_POISONED_NODES : TEST_BENIGN,
                                      .mask_mode = REF_MASK_PARENTS},
                  &problem);
        for (int32_t i = 1; i < 19; i++) {
            problem.parents[i] = 0;
        }
        check_problem(&problem, 1);
        test_problem_free(&problem);
    }
    say("siblings at one position");
}
END_TEST

START_TEST(a_mask_that_is_no_tree) {
    /* What nodes 2 and 4 see is among what node 3 sees, but not the first of it; the same of node 6
     * and node 7. Nodes 4, 6 and 7 do not see themselves. */
    static const uint32_t rows[] = {1, 3, 5, 15, 9, 27, 20, 21};
    for (int64_t prefix = 30; prefix <= 32; prefix++) {
        struct test_problem problem;
        edge_make(&(struct test_case){.name = "no tree",
                                      .prefix = {prefix},
                                      .nodes = {8},
                                      .heads = 8,
                                      .mask_mode = REF_MASK_PACKED},
                  &problem);
        uint32_t *words = test_problem_alloc(&problem, 8, sizeof *words);
        memcpy(words, rows, sizeof rows);
        problem.call.mask_words = words;
        problem.call.mask_stride_words = 1;
        check_problem(&problem, 1);
        test_problem_free(&problem);
    }
    say("a mask that is no tree");
}
END_TEST

START_TEST(a_chain_of_1025_nodes) {
    check_record(&(struct test_case){.name = "chain",
                                     .prefix = {7},
                                     .nodes = {test_scale_is_small() ? 40 : 1025},
                                     .heads = 1,
                                     .mask_mode = REF_MASK_CHAIN});
    say("a chain");
}
END_TEST

START_TEST(all_kinds_of_values) {
    for (int32_t kind = 0; kind < TEST_KIND_COUNT; kind++) {
        for (int32_t heads = 1; heads <= (test_scale_is_small() ? 1 : 64); heads *= 8) {
            check_record(&(struct test_case){.name = "kind of values",
                                             .prefix = {250 + kind},
                                             .nodes = {heads == 64 ? 5 : 21},
                                             .heads = heads,
                                             .kind = kind,
                                             .bf16_o = kind % 2,
                                             .mask_mode = REF_MASK_PARENTS});
        }
    }
    say("all kinds of values");
}
END_TEST

START_TEST(any_batch_and_any_layout) {
    static const struct test_case records[] = {{.name = "batch",
                                                .batch = 5,
                                                .prefix = {0, 90, 3, 257, 31},
                                                .nodes = {5, 0, 40, 2, 7},
                                                .heads = 9,
                                                .lead_rows = 2,
                                                .spare_rows = 2,
                                                .mask_mode = REF_MASK_PACKED,
                                                .pattern = TEST_PATTERN_RANDOM},
                                               {.name = "pages",
                                                .batch = 3,
                                                .prefix = {300, 77, 500},
                                                .nodes = {8, 8, 3},
                                                .heads = 8,
                                                .page_size = 64,
                                                .one_pool = 1,
                                                .padding = 1,
                                                .bf16_o = 1,
                                                .lse_base2 = 1,
                                                .mask_mode = REF_MASK_CHAIN},
                                               {.name = "tree slots",
                                                .batch = 2,
                                                .prefix = {40, 270},
                                                .nodes = {20, 9},
                                                .heads = 16,
                                                .own_tree_list = 1,
                                                .wide_slots = 1,
                                                .heads_outer = 1,
                                                .expected_batch = 7,
                                                .mask_mode = REF_MASK_PARENTS},
                                               {.name = "128 heads",
                                                .batch = 2,
                                                .prefix = {270, 12},
                                                .nodes = {2, 3},
                                                .heads = 128,
                                                .limit_prefix = 40000,
                                                .mask_mode = REF_MASK_PARENTS},
                                               /* Two waves of seven row tiles. */
                                               {.name = "a tree in two waves",
                                                .prefix = {40},
                                                .nodes = {110},
                                                .heads = 8,
                                                .limit_prefix = 200000,
                                                .mask_mode = REF_MASK_PACKED},
                                               {.name = "prefix only",
                                                .batch = 3,
                                                .prefix = {270, 0, 31},
                                                .nodes = {2, 1, 3},
                                                .heads = 3,
                                                .mask_mode = REF_MASK_NONE}};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        check_record(&records[i]);
    }
    say("any batch and layout");
}
END_TEST

START_TEST(zeros_are_stored_as_plus_zero) {
    /* Weights of denormal numbers round to zeros of both signs, as bfloat16. */
    struct test_problem problem;
    struct test_outputs outputs;
    int64_t zeros = 0;
    edge_make(&(struct test_case){.name = "denormal",
                                  .prefix = {40},
                                  .nodes = {9},
                                  .heads = 8,
                                  .kind = TEST_DENORMAL,
                                  .bf16_o = 1,
                                  .mask_mode = REF_MASK_PARENTS},
              &problem);
    run(&problem, 0, &outputs);
    for (int64_t i = 0; i < outputs.rows * outputs.heads * outputs.columns; i++) {
        ck_assert(outputs.o[i] != 0.0f || !signbit(outputs.o[i]));
        zeros += outputs.o[i] == 0.0f;
    }
    ck_assert_int_gt(zeros, 0);
    compare_decodes(&problem, &outputs, REF_MASK_NONE);
    test_outputs_free(&outputs);
    test_problem_free(&problem);
    say("zeros");
}
END_TEST

/** @return the suite */
static Suite *gate_p1_3_exact_suite(void) {
    Suite *suite = suite_create("P1-3 exact mode");
    TCase *tcase = test_tcase(suite, "P1-3", "P1-3 a node has the bits of a decode");
    tcase_add_test(tcase, around_a_key_tile_and_a_small_chunk);
    tcase_add_test(tcase, siblings_at_one_position);
    tcase_add_test(tcase, a_mask_that_is_no_tree);
    tcase_add_test(tcase, any_batch_and_any_layout);
    tcase_add_test(tcase, zeros_are_stored_as_plus_zero);
    tcase = test_tcase(suite, "P1-3", "P1-3 random trees and values");
    tcase_add_test(tcase, random_trees);
    tcase_add_test(tcase, all_kinds_of_values);
    tcase = test_tcase(suite, "P1-3", "P1-3 long prefixes and chains");
    tcase_add_test(tcase, around_the_other_chunks);
    tcase_add_test(tcase, around_the_second_page_of_a_chunk);
    tcase_add_test(tcase, a_chain_of_1025_nodes);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p1_3_exact_suite};
    test_select_class(TEST_CLASS_BOUND);
    return check_main(makers, 1);
}
