// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gates P1-6 and P1-8 on planted result files: a pair that passes, and each thing that must fail.
 */
#include <string.h>

#include "check_main.h"
#include "gpu_truth.h"
#include "planted_results.h"

#define BENCH_NAME "2026-11-30-nvidia-h200-bench.json" /**< Of planted files. */
#define PEERS_NAME "2026-11-30-nvidia-h200-peers.json" /**< Of planted files. */

static const struct bench_point long_point = {1, 8, 8, 200000};
static const struct bench_point short_point = {16, 8, 8, 4096};
static const struct bench_point accepted_point = {4, 8, 8, 32768};
static const struct bench_point free_point = {1, 8, 8, 32768};
static const struct bench_point decode_point = {16, 128, 1, 32768};

static struct bench_limit limits[BENCH_MAX_LIMITS];
static int32_t limit_count;
static struct planted_file file;
static char said[1 << 16];

static void setup(void) {
    planted_empty_folder();
    limit_count = gate_limits("bench/limits.txt", limits);
    ck_assert_int_eq(limit_count, 13);
}

/** Writes the file, reads it as a gate does, judges it; what it says is in `said`. */
static struct judge_sheet judge(gate_judge *judgement, const char *what, const char *name) {
    char error[RESULT_ERROR] = "";
    struct result_file read;
    struct judge_sheet sheet = {tmpfile(), "P1-6", 0, 0, 0};
    ck_assert_ptr_nonnull(sheet.out);
    planted_write(&file, name);
    int found = result_open_newest(planted_folder(), GATE_GPU, what, &read, error);
    ck_assert_msg(found == RESULT_FOUND, "%s", error);
    judgement(&read, limits, limit_count, &sheet);
    rewind(sheet.out);
    said[fread(said, 1, sizeof said - 1, sheet.out)] = '\0';
    fclose(sheet.out);
    result_free(&read);
    return sheet;
}

static struct judge_sheet judge_bench_file(void) {
    return judge(judge_bench, "bench", BENCH_NAME);
}

static struct judge_sheet judge_peers_file(void) {
    return judge(judge_peers, "peers", PEERS_NAME);
}

static struct judge_sheet judge_accuracy_file(void) {
    return judge(judge_accuracy, "peers", PEERS_NAME);
}

/** One finding, which says this, and the row of a point. */
static void expect_one(struct judge_sheet sheet, const char *text) {
    ck_assert_msg(sheet.failed == 1, "%d findings, not 1:\n%s", sheet.failed, said);
    ck_assert_msg(strstr(said, text) != NULL && strstr(said, "P1-6 FAILED (") != NULL,
                  "'%s' is not said:\n%s", text, said);
}

/** Points of the committed limits of which more is accepted; a planted file has them above. */
static int32_t accepted_count(void) {
    int32_t count = 0;
    for (int32_t i = 0; i < limit_count; i++) {
        count += limits[i].accepted_us > 0.0;
    }
    ck_assert_int_gt(count, 0);
    return count;
}

START_TEST(passing_files_pass) {
    planted_bench(&file, limits, limit_count);
    struct judge_sheet sheet = judge_bench_file();
    ck_assert_msg(sheet.failed == 0, "%s", said);
    ck_assert(sheet.checked == 26 && sheet.accepted == accepted_count());
    planted_peers(&file, limits, limit_count);
    sheet = judge_peers_file();
    ck_assert_msg(sheet.failed == 0, "%s", said);
    ck_assert(sheet.checked == 4 * 13 && sheet.accepted == accepted_count());
    sheet = judge_accuracy_file();
    ck_assert_msg(sheet.failed == 0, "%s", said);
    ck_assert(sheet.checked == 10 * 5 * 2 && sheet.accepted == 0);
}
END_TEST

START_TEST(accepted_is_said_aloud) {
    planted_bench(&file, limits, limit_count);
    planted_row(&file, "kdtr_flash", accepted_point, 0)->median = 66.0;
    struct judge_sheet sheet = judge_bench_file();
    ck_assert(sheet.failed == 0 && sheet.accepted == accepted_count());
    ck_assert_ptr_nonnull(strstr(said, "note P1-6 (4,8,8,32768) kdtr_flash: 66.00 us in "));
    ck_assert_ptr_nonnull(
        strstr(said, ": above its limit of 60, accepted up to 66: docs/guides/flash_kernel.md\n"));
    planted_row(&file, "kdtr_flash", accepted_point, 0)->median = 60.0;
    sheet = judge_bench_file();
    ck_assert(sheet.failed == 0 && sheet.accepted == accepted_count() - 1);
    ck_assert_ptr_null(strstr(said, "note P1-6 (4,8,8,32768)"));
    struct planted_row *row = planted_row(&file, "kdtr_flash", accepted_point, 0);
    row->median = 66.01;
    expect_one(judge_bench_file(), "kdtr_flash: 66.01 us");
}
END_TEST

START_TEST(missing_rows_fail) {
    static const char *const bench_names[] = {"kdtr_flash", "kdtr_flash_exact"};
    static const char *const peer_names[] = {"kdtr_flash", "flashinfer_fa2", "flashinfer_fa3",
                                             "sglang_triton_extend"};
    for (int32_t i = 0; i < limit_count; i++) {
        for (int k = 0; k < 2; k++) {
            planted_bench(&file, limits, limit_count);
            planted_row(&file, bench_names[k], limits[i].point, 0)->left_out = 1;
            expect_one(judge_bench_file(), "no row of the table");
        }
        for (int k = 0; k < 4; k++) {
            int decode = k == 3 && limits[i].point.nodes == 1;
            planted_peers(&file, limits, limit_count);
            planted_row(&file, decode ? "sglang_triton_decode" : peer_names[k], limits[i].point, 0)
                ->left_out = 1;
            expect_one(judge_peers_file(), "no row of the table");
        }
    }
    /* A decode kernel is none that takes a tree, nor is one with a causal mask. */
    planted_peers(&file, limits, limit_count);
    planted_row(&file, "sglang_triton_extend", long_point, 0)->implementation =
        "sglang_triton_decode";
    expect_one(judge_peers_file(), "sglang_triton_extend: no row");
    planted_peers(&file, limits, limit_count);
    planted_row(&file, "sglang_triton_extend", long_point, 0)->mask = "causal";
    expect_one(judge_peers_file(), "sglang_triton_extend: no row");
    planted_peers(&file, limits, limit_count);
    planted_row(&file, "kdtr_flash", long_point, 0)->mask = "causal";
    expect_one(judge_peers_file(), "kdtr_flash: no row");
}
END_TEST

START_TEST(slow_points_fail) {
    for (int32_t i = 0; i < limit_count; i++) {
        double most = limits[i].accepted_us > 0.0 ? limits[i].accepted_us : limits[i].at_most_us;
        planted_bench(&file, limits, limit_count);
        planted_row(&file, "kdtr_flash", limits[i].point, 0)->median = most + 0.01;
        expect_one(judge_bench_file(), "above its limit of");
        planted_row(&file, "kdtr_flash", limits[i].point, 0)->median = most;
        ck_assert_int_eq(judge_bench_file().failed, 0);
        planted_peers(&file, limits, limit_count);
        planted_row(&file, "kdtr_flash", limits[i].point, 0)->median = most + 0.01;
        expect_one(judge_peers_file(), "above its limit of");
    }
}
END_TEST

/** Sets exact mode's median to so many times default mode's. */
static void set_exact(struct bench_point point, double ratio) {
    planted_bench(&file, limits, limit_count);
    planted_row(&file, "kdtr_flash_exact", point, 0)->median =
        ratio * planted_row(&file, "kdtr_flash", point, 0)->median;
}

START_TEST(slow_exact_mode_fails) {
    static const struct bench_point named[] = {{1, 8, 1, 200000},
                                               {1, 8, 8, 200000},
                                               {1, 64, 8, 200000},
                                               {4, 16, 16, 32768},
                                               {16, 128, 1, 32768}};
    static const struct bench_point shorts[] = {
        {16, 128, 1, 4096}, {16, 8, 8, 4096}, {1, 8, 8, 4096}};
    for (int i = 0; i < 5; i++) {
        set_exact(named[i], 1.24);
        ck_assert_int_eq(judge_bench_file().failed, 0);
        set_exact(named[i], 1.26);
        expect_one(judge_bench_file(), "at most 25 % allowed");
    }
    for (int i = 0; i < 3; i++) {
        set_exact(shorts[i], 1.59);
        ck_assert_int_eq(judge_bench_file().failed, 0);
        set_exact(shorts[i], 1.61);
        expect_one(judge_bench_file(), "at most 60 % allowed");
    }
    set_exact(free_point, 9.0);
    ck_assert_int_eq(judge_bench_file().failed, 0);
}
END_TEST

START_TEST(spreads_fail) {
    static const char *const names[] = {"kdtr_flash", "kdtr_flash_exact"};
    for (int k = 0; k < 2; k++) {
        planted_bench(&file, limits, limit_count);
        struct planted_row *row = planted_row(&file, names[k], long_point, 0);
        row->spread = 0.031 * row->median;
        expect_one(judge_bench_file(), "a spread of");
        row->spread = 0.029 * row->median;
        ck_assert_int_eq(judge_bench_file().failed, 0);
    }
    /* Of 16.8 us 3 % are 0.5: there 0.6 counts. */
    planted_bench(&file, limits, limit_count);
    struct planted_row *row =
        planted_row(&file, "kdtr_flash", (struct bench_point){1, 8, 8, 4096}, 0);
    row->spread = 0.59;
    ck_assert_int_eq(judge_bench_file().failed, 0);
    row->spread = 0.62;
    expect_one(judge_bench_file(), "a spread of");
    planted_peers(&file, limits, limit_count);
    row = planted_row(&file, "kdtr_flash", decode_point, 0);
    row->spread = 0.031 * row->median;
    expect_one(judge_peers_file(), "a spread of");
}
END_TEST

START_TEST(few_samples_fail) {
    planted_bench(&file, limits, limit_count);
    planted_row(&file, "kdtr_flash_exact", long_point, 0)->samples = 8;
    expect_one(judge_bench_file(), "8 samples, fewer than 9");
    planted_row(&file, "kdtr_flash_exact", long_point, 0)->samples = 9;
    ck_assert_int_eq(judge_bench_file().failed, 0);
}
END_TEST

START_TEST(errors_and_workspace_fail) {
    planted_bench(&file, limits, limit_count);
    planted_row(&file, "kdtr_flash", long_point, 0)->error = 1.01 * BENCH_RELATIVE_LIMIT;
    expect_one(judge_bench_file(), "a relative error of");
    planted_peers(&file, limits, limit_count);
    planted_row(&file, "flashinfer_fa3", long_point, 0)->error = 1.01 * JUDGE_PEER_ERROR;
    expect_one(judge_peers_file(), "flashinfer_fa3: a relative error of");
    planted_bench(&file, limits, limit_count);
    planted_row(&file, "kdtr_flash", short_point, 0)->workspace = 97.0 * 1048576;
    expect_one(judge_bench_file(), "97.0 MiB of workspace, more than 96");
    planted_bench(&file, limits, limit_count);
    planted_row(&file, "kdtr_flash_exact", short_point, 0)->workspace = 257.0 * 1048576;
    expect_one(judge_bench_file(), "257.0 MiB of workspace, more than 256");
    planted_row(&file, "kdtr_flash_exact", short_point, 0)->workspace = 0.0;
    expect_one(judge_bench_file(), "kdtr_flash_exact: no workspace is said");
}
END_TEST

START_TEST(accuracy_fails) {
    static const char *const names[] = {"kdtr_flash", "sglang_triton_extend"};
    for (int32_t i = 0; i < limit_count; i++) {
        for (int32_t seed = 1; limits[i].point.nodes > 1 && seed <= JUDGE_SEEDS; seed++) {
            for (int k = 0; k < 2; k++) {
                planted_peers(&file, limits, limit_count);
                planted_row(&file, names[k], limits[i].point, seed)->left_out = 1;
                expect_one(judge_accuracy_file(), "no accuracy row of seed");
            }
            planted_peers(&file, limits, limit_count);
            struct planted_row *ours = planted_row(&file, names[0], limits[i].point, seed);
            struct planted_row *theirs = planted_row(&file, names[1], limits[i].point, seed);
            ours->error = 1.03 * theirs->error;
            expect_one(judge_accuracy_file(), "1.030 times Triton's");
            ours->error = 1.019 * theirs->error;
            ck_assert_int_eq(judge_accuracy_file().failed, 0);
            ours->error = 0.0;
            expect_one(judge_accuracy_file(), "an error of 0");
            ours->error = theirs->error = 0.5; /* equally wrong */
            ck_assert_int_eq(judge_accuracy_file().failed, 2);
        }
    }
}
END_TEST

/** What a gate would do with the folder, and the line that it prints. */
static int open_gate(const char *what, struct gate_file *opened) {
    const struct gate_arguments arguments = {planted_folder(), "bench/limits.txt", PLANTED_SOURCES};
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    int ready = gate_open("P1-6", what, &arguments, out, opened);
    rewind(out);
    said[fread(said, 1, sizeof said - 1, out)] = '\0';
    fclose(out);
    return ready;
}

START_TEST(old_and_absent_files_are_no_result) {
    struct gate_file opened;
    ck_assert_int_eq(open_gate("bench", &opened), 0);
    ck_assert_ptr_nonnull(strstr(said, "skip P1-6 "));
    ck_assert_ptr_nonnull(strstr(said, "no file <date>-nvidia-h200-bench.json"));
    planted_bench(&file, limits, limit_count);
    file.sources = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    planted_write(&file, BENCH_NAME);
    ck_assert_int_eq(open_gate("bench", &opened), 0);
    ck_assert_ptr_nonnull(strstr(said, "stale P1-6 "));
    result_free(&opened.file);
    /* Another kind and another card are other files. */
    file.sources = PLANTED_SOURCES;
    planted_write(&file, PEERS_NAME);
    file.gpu = "NVIDIA H100";
    planted_write(&file, "2026-12-30-nvidia-h100-bench.json");
    ck_assert_int_eq(open_gate("bench", &opened), 0);
    ck_assert_ptr_nonnull(strstr(said, "stale P1-6 "));
    result_free(&opened.file);
    ck_assert_int_eq(open_gate("peers", &opened), 1);
    ck_assert_int_eq(opened.found, RESULT_FOUND);
    result_free(&opened.file);
    /* A broken file is not an old one: the gate runs, and fails. */
    planted_text("{\"schema\": 1,", BENCH_NAME);
    ck_assert_int_eq(open_gate("bench", &opened), 1);
    ck_assert(opened.found == RESULT_BAD && opened.error[0] != '\0' && said[0] == '\0');
    result_free(&opened.file);
}
END_TEST

START_TEST(the_newest_of_two_counts) {
    struct gate_file opened;
    planted_bench(&file, limits, limit_count);
    planted_write(&file, BENCH_NAME);
    file.date = "2026-12-01";
    planted_row(&file, "kdtr_flash", long_point, 0)->median = 77.0;
    planted_write(&file, "2026-12-01-nvidia-h200-bench.json");
    file.date = "2025-12-31";
    planted_write(&file, "2025-12-31-nvidia-h200-bench.json");
    planted_text("x", "2026-12-02-nvidia-h200-bench.json.part");
    planted_text("x", "newest-nvidia-h200-bench.json");
    ck_assert_int_eq(open_gate("bench", &opened), 1);
    ck_assert_str_eq(opened.file.date, "2026-12-01");
    ck_assert_int_eq(opened.found, RESULT_FOUND);
    result_free(&opened.file);
}
END_TEST

/** @return the suite */
static Suite *judge_suite(void) {
    Suite *suite = suite_create("judge");
    TCase *tcase = tcase_create("judge");
    tcase_add_unchecked_fixture(tcase, planted_make_folder, planted_remove_folder);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_set_timeout(tcase, 300);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, passing_files_pass);
    tcase_add_test(tcase, accepted_is_said_aloud);
    tcase_add_test(tcase, missing_rows_fail);
    tcase_add_test(tcase, slow_points_fail);
    tcase_add_test(tcase, slow_exact_mode_fails);
    tcase_add_test(tcase, spreads_fail);
    tcase_add_test(tcase, few_samples_fail);
    tcase_add_test(tcase, errors_and_workspace_fail);
    tcase_add_test(tcase, accuracy_fails);
    tcase_add_test(tcase, old_and_absent_files_are_no_result);
    tcase_add_test(tcase, the_newest_of_two_counts);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {judge_suite};
    return check_main(makers, 1);
}
