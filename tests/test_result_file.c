// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Reader of result files, and of limits that accept more: what is read, and the error of every
 * rule.
 */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "planted_results.h"

#define NAME "2026-11-30-nvidia-h200-bench.json" /**< Of the planted file. */

/** A file with a row of each op. */
static const char good[] =
    "{\"schema\": 1,\n"
    "\"environment\": {\"gpu\": \"NVIDIA H200\", \"sms\": 132, \"driver\": \"580.1\", "
    "\"runtime_cuda\": 13000, \"sm_clock_max\": \"1980 MHz\", \"power_limit\": \"700 W\", "
    "\"commit\": \"c0ffee\", \"sources_sha256\": \"" PLANTED_SOURCES "\", "
    "\"date\": \"2026-11-30\", \"method\": \"planted\", \"peers\": \"a 1, b 2\"},\n"
    "\"ceilings\": {\"event_us\": 0.00, \"empty_kernel_us\": 2.66, \"copy_gbps\": 4102.1, "
    "\"read_gbps\": 4572.6, \"mma_tflops\": 640.7, \"gather\": ["
    "{\"rows\": 4096, \"random_gbps\": 883, \"contiguous_gbps\": 989.6}, "
    "{\"rows\": 32768, \"random_gbps\": 2912.7, \"contiguous_gbps\": 3162.6}, "
    "{\"rows\": 200000, \"random_gbps\": 4130.8, \"contiguous_gbps\": 4329.5}, "
    "{\"rows\": 1000000, \"random_gbps\": 4388.1, \"contiguous_gbps\": 4568.5}]},\n"
    "\"rows\": [\n"
    "{\"op\": \"verify\", \"implementation\": \"kdtr_flash\", \"mask\": \"tree\", \"B\": 1, "
    "\"H\": 8, \"Q\": 16, \"N\": 200000, \"layout\": \"random\", \"row_stride_bytes\": 1152, "
    "\"median_us\": 73.12, \"p25_us\": 72.86, \"p75_us\": 73.63, \"samples\": 25, "
    "\"max_abs_error\": 4.9e-04, \"relative_error\": 1.7e-03, \"lse_error\": 5.5e-07, "
    "\"floor_us\": 55.78, \"workspace_bytes\": 34870272, \"set\": \"table\", \"future\": []},\n"
    "{\"op\": \"served\", \"implementation\": \"kdtr_flash\", \"layers\": 61, \"B\": 1, \"H\": 8, "
    "\"Q\": 16, \"N\": 4096, \"mask\": \"tree\", \"layout\": \"random\", \"median_us\": 2000, "
    "\"p25_us\": 1999, \"p75_us\": 2001, \"samples\": 9, \"accepted_length\": 4.0, "
    "\"tokens_per_s\": 2000.0, \"relative_error\": 1.8e-3},\n"
    "{\"op\": \"accuracy\", \"implementation\": \"sglang_triton_extend\", \"B\": 1, \"H\": 8, "
    "\"Q\": 16, \"N\": 200000, \"mask\": \"tree\", \"seed\": 5, \"relative_error\": 1.9e-3}]}\n";

/** Writes the good file with one text in it exchanged, and reads it. */
static int read_with(const char *from, const char *to, struct result_file *file, char *error) {
    static char text[2 * sizeof good];
    const char *at = strstr(good, from);
    ck_assert_msg(at != NULL, "'%s' is not in the file", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    planted_text(text, NAME);
    error[0] = '\0';
    return result_read(planted_path(NAME), file, error);
}

START_TEST(everything_is_read) {
    char error[RESULT_ERROR];
    struct result_file f;
    ck_assert_msg(read_with("\"schema\"", "\"schema\"", &f, error) == 0, "%s", error);
    ck_assert_str_eq(f.path, planted_path(NAME));
    ck_assert_str_eq(f.gpu, "NVIDIA H200");
    ck_assert_str_eq(f.driver, "580.1");
    ck_assert_str_eq(f.commit, "c0ffee");
    ck_assert_str_eq(f.sources_sha256, PLANTED_SOURCES);
    ck_assert_str_eq(f.date, "2026-11-30");
    ck_assert_str_eq(f.method, "planted");
    ck_assert_str_eq(f.peers, "a 1, b 2");
    ck_assert(f.sms == 132 && f.sm_clock_mhz == 1980.0 && f.has_ceilings == 1 && f.count == 3);
    ck_assert(f.ceilings.event_us == 0.0 && f.ceilings.empty_us == 2.66);
    ck_assert(f.ceilings.copy_gbps == 4102.1 && f.ceilings.read_gbps == 4572.6);
    ck_assert(f.ceilings.mma_tflops == 640.7 && f.ceilings.gather_rows[1] == 32768.0);
    ck_assert(f.ceilings.gather_random_gbps[0] == 883.0);
    ck_assert(f.ceilings.gather_contiguous_gbps[3] == 4568.5);
    const struct result_row *row = &f.rows[0];
    ck_assert_str_eq(row->op, "verify");
    ck_assert_str_eq(row->implementation, "kdtr_flash");
    ck_assert_str_eq(row->mask, "tree");
    ck_assert_str_eq(row->layout, "random");
    ck_assert_str_eq(row->set, "table");
    ck_assert(row->point.batch == 1 && row->point.heads == 8 && row->point.nodes == 16 &&
              row->point.prefix == 200000);
    ck_assert(row->time.median == 73.12 && row->time.p25 == 72.86 && row->time.p75 == 73.63);
    ck_assert(row->time.count == 25 && row->floor_us == 55.78 && row->row_stride_bytes == 1152);
    ck_assert(row->workspace_bytes == 34870272.0 && row->seed == 0 && row->layers == 0);
    ck_assert(row->max_abs_error > 0.0 && row->relative_error > 0.0 && row->lse_error > 0.0);
    row = &f.rows[1];
    ck_assert(row->layers == 61 && row->accepted_length == 4.0 && row->tokens_per_s == 2000.0);
    ck_assert(row->workspace_bytes < 0.0 && row->set[0] == '\0');
    row = &f.rows[2];
    ck_assert(row->seed == 5 && row->layout[0] == '\0' && row->time.count == 0);
    result_free(&f);
    ck_assert(f.rows == NULL && f.count == 0);
}
END_TEST

/** What is changed, and what the error must say. */
struct change {
    const char *from;
    const char *to;
    const char *says;
};

static const struct change changes[] = {
    {"\"schema\": 1", "\"schema\": 2", "schema is not 1"},
    {"\"schema\": 1", "\"schema\": \"1\"", "schema is not 1"},
    {"\"schema\": 1,", "\"schema\": 1, \"schema\": 1,", ":1: duplicate object key"},
    {"\"environment\"", "\"surroundings\"", "environment: is missing or no object"},
    {"\"gpu\": \"NVIDIA H200\"", "\"gpu\": 200", "environment: gpu is not a string"},
    {"\"gpu\": \"NVIDIA H200\"", "\"gpu\": \"\"", "environment: gpu is empty"},
    {"\"NVIDIA H200\"", "\"a\\nb\"", "environment: gpu has a control character"},
    {"\"sms\": 132", "\"sms\": 0", "environment: sms is out of range"},
    {"\"sms\": 132", "\"sms\": 132.0", "environment: sms is not an integer"},
    {"\"driver\"", "\"river\"", "environment: driver is missing"},
    {"\"runtime_cuda\"", "\"time_cuda\"", "environment: runtime_cuda is missing"},
    {"\"runtime_cuda\"", "\"cuda\"", "environment: cuda is not a string"},
    {"\"sm_clock_max\"", "\"clock\"", "environment: sm_clock_max is missing"},
    {"\"1980 MHz\"", "\"1.98 GHz\"", "environment: sm_clock_max is not of the form 1980 MHz"},
    {"\"1980 MHz\"", "\"inf MHz\"", "environment: sm_clock_max is not of the form 1980 MHz"},
    {"\"power_limit\"", "\"power\"", "environment: power_limit is missing"},
    {"\"commit\"", "\"omit\"", "environment: commit is missing"},
    {"\"c0ffee\"", "\"a\\\"b\"",
     "environment: commit is not of letters, digits, dashes and blanks"},
    {"\"method\"", "\"way\"", "environment: method is missing"},
    {"456789abcdef\", ", "456789abcdeg\", ", "sources_sha256 is not of 64 hexadecimal digits"},
    {"456789abcdef\", ", "456789abcde\", ", "sources_sha256 is not of 64 hexadecimal digits"},
    {"2026-11-30", "30.11.2026", "environment: date is not of the form YYYY-MM-DD"},
    {"2026-11-30", "2026-11-3", "environment: date is not of the form YYYY-MM-DD"},
    {"\"ceilings\": {", "\"ceilings\": [], \"x\": {", "ceilings: are no object"},
    {"\"gather\": [", "\"gather\": [1, ", "ceilings: gather is not an array of 4 sizes"},
    {"\"random_gbps\": 883", "\"random_gbps\": 0", "ceilings: random_gbps is not above 0"},
    {"\"rows\": 32768", "\"rows\": 4096", "gather is not in ascending order of rows"},
    {"\"mma_tflops\"", "\"mma\"", "ceilings: mma_tflops is missing"},
    {"\"rows\": [\n", "\"rows\": [], \"x\": [\n", "rows: are missing, empty or no array"},
    {"\"rows\": [\n", "\"lines\": [\n", "rows: are missing, empty or no array"},
    {"\"rows\": [\n", "\"rows\": [1, \n", "row 1: is no object"},
    {"\"op\": \"verify\"", "\"op\": \"prefill\"", "op is none of verify, served, accuracy"},
    {"\"op\": \"verify\", ", "", "row 1: op is missing"},
    {"\"kdtr_flash\"", "\"kdtr flash\"", "implementation is no name"},
    {"\"kdtr_flash\", ", "\"a123456789a123456789a123456789a1\", ", "implementation is too long"},
    {"\"mask\": \"tree\"", "\"mask\": \"bush\"", "row 1: mask is none of"},
    {"\"layout\": \"random\"", "\"layout\": \"sorted\"", "row 1: layout is neither"},
    {"\"B\": 1", "\"B\": 0", "row 1: B is out of range"},
    {"\"H\": 8", "\"H\": 1025", "row 1: H is out of range"},
    {"\"Q\": 16", "\"Q\": \"16\"", "row 1: Q is not an integer"},
    {"\"N\": 200000", "\"N\": -1", "row 1: N is out of range"},
    {"\"N\": 200000", "\"N\": 3000000000", "row 1: N is out of range"},
    {"\"row_stride_bytes\"", "\"stride\"", "row 1: row_stride_bytes is missing"},
    {"\"median_us\": 73.12", "\"median_us\": 0", "row 1: median_us is not above 0"},
    {"\"median_us\": 73.12", "\"median_us\": -73.12", "row 1: median_us is not above 0"},
    {"\"median_us\": 73.12", "\"median_us\": null", "row 1: median_us is not a number"},
    {"\"median_us\": 73.12", "\"median_us\": nan", "invalid token"},
    {"\"median_us\": 73.12", "\"median_us\": 1e999", "real number overflow"},
    {"\"p25_us\": 72.86", "\"p25_us\": 73.13", "are not in ascending order"},
    {"\"p75_us\": 73.63", "\"p75_us\": 73.11", "are not in ascending order"},
    {"\"p75_us\": 73.63, ", "", "row 1: p75_us is missing"},
    {"\"samples\": 25", "\"samples\": 0", "row 1: samples is out of range"},
    {"\"max_abs_error\"", "\"error\"", "row 1: max_abs_error is missing"},
    {"\"relative_error\": 1.7e-03", "\"relative_error\": -1", "row 1: relative_error is below 0"},
    {"\"lse_error\"", "\"lse\"", "row 1: lse_error is missing"},
    {"\"floor_us\": 55.78", "\"floor_us\": \"x\"", "row 1: floor_us is not a number"},
    {"\"workspace_bytes\": 34870272", "\"workspace_bytes\": -1", "workspace_bytes is below 0"},
    {"\"future\": []", "\"budget\": 0", "row 1: budget is out of range"},
    {"\"future\": []", "\"page_size\": 1.5", "row 1: page_size is not an integer"},
    {"\"set\": \"table\"", "\"set\": \"The table\"", "row 1: set is no name"},
    {"\"layers\": 61", "\"layers\": 0", "row 2: layers is out of range"},
    {"\"accepted_length\": 4.0", "\"accepted_length\": 0", "accepted_length is not above 0"},
    {"\"tokens_per_s\": 2000.0", "\"tokens_per_s\": 2.0",
     "row 2: tokens_per_s is not accepted_length by median_us"},
    {"\"seed\": 5", "\"seed\": 0", "row 3: seed is out of range"},
    {"\"seed\": 5, ", "", "row 3: seed is missing"},
    {"\"relative_error\": 1.9e-3}",
     "\"relative_error\": 1.9e-3}, "
     "{\"op\": \"accuracy\", \"implementation\": \"sglang_triton_extend\", \"B\": 1, \"H\": 8, "
     "\"Q\": 16, \"N\": 200000, \"mask\": \"tree\", \"seed\": 5, \"relative_error\": 2}",
     "row 4: says again what row 3 says"},
};

START_TEST(every_rule_has_its_error) {
    char error[RESULT_ERROR];
    struct result_file f;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct change *c = &changes[i];
        ck_assert_msg(read_with(c->from, c->to, &f, error) != 0, "accepted: %s", c->to);
        ck_assert_msg(strstr(error, c->says) != NULL && strstr(error, NAME) != NULL,
                      "%s: says '%s', not '%s'", c->to, error, c->says);
        result_free(&f);
    }
    /* Another seed is another row; a peer has no lse. */
    ck_assert_msg(read_with("\"relative_error\": 1.9e-3}",
                            "\"relative_error\": 1.9e-3}, {\"op\": \"accuracy\", "
                            "\"implementation\": \"sglang_triton_extend\", \"B\": 1, \"H\": 8, "
                            "\"Q\": 16, \"N\": 200000, \"mask\": \"tree\", \"seed\": 4, "
                            "\"relative_error\": 2}",
                            &f, error) == 0,
                  "%s", error);
    ck_assert_int_eq(f.count, 4);
    result_free(&f);
}
END_TEST

START_TEST(every_truncation_is_an_error) {
    static char text[sizeof good];
    char error[RESULT_ERROR];
    struct result_file f;
    /* Without its last newline the file is whole. */
    for (size_t length = 0; length + 2 < sizeof good; length++) {
        memcpy(text, good, length);
        text[length] = '\0';
        planted_text(text, NAME);
        ck_assert_msg(result_read(planted_path(NAME), &f, error) != 0, "%zu bytes", length);
        result_free(&f);
    }
}
END_TEST

/** Whatever a byte becomes, the file is read or there is an error that names it. */
START_TEST(every_corrupted_byte_is_survived) {
    static const char bytes[] = "0-\"{}\\x\n";
    static char text[sizeof good];
    char error[RESULT_ERROR];
    struct result_file f;
    int32_t refused = 0;
    int32_t step = test_scale_is_small() ? 7 : 1;
    for (size_t i = 0; i + 1 < sizeof good; i += (size_t)step) {
        memcpy(text, good, sizeof good);
        text[i] = bytes[i % (sizeof bytes - 1)];
        planted_text(text, NAME);
        error[0] = '\0';
        if (result_read(planted_path(NAME), &f, error) != 0) {
            ck_assert_msg(strstr(error, NAME) != NULL, "byte %zu: '%s'", i, error);
            refused++;
        } else {
            ck_assert(f.count == 3 && f.rows[0].time.median > 0.0 && f.sms > 0);
        }
        result_free(&f);
    }
    ck_assert_int_gt(refused, (int32_t)(sizeof good / 3) / step);
}
END_TEST

START_TEST(names_must_agree) {
    char error[RESULT_ERROR];
    struct result_file f;
    planted_text(good, NAME);
    ck_assert_int_eq(result_open_newest(planted_folder(), GATE_GPU, "bench", &f, error),
                     RESULT_FOUND);
    result_free(&f);
    planted_text(good, "2026-12-01-nvidia-h200-bench.json");
    ck_assert_int_eq(result_open_newest(planted_folder(), GATE_GPU, "bench", &f, error),
                     RESULT_BAD);
    ck_assert_ptr_nonnull(strstr(error, "its date is 2026-11-30, not that of its name"));
    result_free(&f);
    planted_text(good, "2026-11-30-nvidia-h100-bench.json");
    ck_assert_int_eq(result_open_newest(planted_folder(), "nvidia-h100", "bench", &f, error),
                     RESULT_BAD);
    ck_assert_ptr_nonnull(strstr(error, "its gpu is NVIDIA H200, not that of its name"));
    result_free(&f);
    ck_assert_int_eq(result_open_newest(planted_folder(), GATE_GPU, "peers", &f, error),
                     RESULT_NONE);
    ck_assert_int_eq(result_open_newest(planted_path("nowhere"), GATE_GPU, "bench", &f, error),
                     RESULT_BAD);
    ck_assert_int_ne(result_read(planted_folder(), &f, error), 0);
    ck_assert_int_ne(result_read(planted_path("nowhere"), &f, error), 0);
    char name[RESULT_TEXT];
    result_gpu_name("NVIDIA RTX PRO 6000 (Max-Q)", name);
    ck_assert_str_eq(name, "nvidia-rtx-pro-6000-max-q");
}
END_TEST

START_TEST(rows_are_found) {
    char error[RESULT_ERROR];
    struct result_file f;
    struct result_row like;
    planted_text(good, NAME);
    ck_assert_int_eq(result_read(planted_path(NAME), &f, error), 0);
    memset(&like, 0, sizeof like);
    const struct result_row *row = NULL;
    for (int i = 0; i < 3; i++) {
        row = result_find(&f, &like, row);
        ck_assert_ptr_eq(row, &f.rows[i]);
    }
    ck_assert_ptr_null(result_find(&f, &like, row));
    strcpy(like.implementation, "kdtr_flash");
    like.point = (struct bench_point){1, 8, 16, 4096};
    ck_assert_ptr_eq(result_find(&f, &like, NULL), &f.rows[1]);
    strcpy(like.set, "table");
    ck_assert_ptr_null(result_find(&f, &like, NULL));
    like.point.prefix = 200000;
    ck_assert_ptr_eq(result_find(&f, &like, NULL), &f.rows[0]);
    like.row_stride_bytes = 1168;
    ck_assert_ptr_null(result_find(&f, &like, NULL));
    memset(&like, 0, sizeof like);
    like.seed = 5;
    ck_assert_ptr_eq(result_find(&f, &like, NULL), &f.rows[2]);
    strcpy(like.mask, "none");
    ck_assert_ptr_null(result_find(&f, &like, NULL));
    result_free(&f);
}
END_TEST

/** Reads limits from text. */
static int32_t limits_of(const char *text, struct bench_limit *limits) {
    planted_text(text, "limits.txt");
    return gate_limits(planted_path("limits.txt"), limits);
}

START_TEST(limits_may_accept_more) {
    struct bench_limit limits[BENCH_MAX_LIMITS];
    ck_assert_int_eq(limits_of("1 8 8 9 60 50 66\n1 8 8 8 60 50\n", limits), 2);
    ck_assert(limits[0].accepted_us == 66.0 && limits[1].accepted_us == 0.0);
    ck_assert_int_eq(limits_of("1 8 8 9 60 50 60 # equal\n", limits), 1);
    static const char *const bad[] = {"1 8 8 9 60 50 59.9\n", "1 8 8 9 60 50 nan\n",
                                      "1 8 8 9 60 50 inf\n",  "1 8 8 9 60 50 66 1\n",
                                      "1 8 8 9 60 50 66x\n",  "1 8 8 9 60 50 -66\n",
                                      "1 8 8 9 inf 50\n",     "1 8 8 9 60 50 x\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(limits_of(bad[i], limits) == -1, "%s", bad[i]);
    }
    ck_assert_int_eq(gate_limits(planted_path("nowhere"), limits), -1);
    /* What is committed accepts more at some points, and nowhere more than 10 %. */
    ck_assert_int_eq(gate_limits("bench/limits.txt", limits), 13);
    for (int i = 0; i < 13; i++) {
        ck_assert(limits[i].accepted_us <= 1.1 * limits[i].at_most_us);
    }
}
END_TEST

/** @return the suite */
static Suite *result_file_suite(void) {
    Suite *suite = suite_create("result files");
    TCase *tcase = tcase_create("result_file");
    tcase_add_unchecked_fixture(tcase, planted_make_folder, planted_remove_folder);
    tcase_add_checked_fixture(tcase, planted_empty_folder, NULL);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, everything_is_read);
    tcase_add_test(tcase, every_rule_has_its_error);
    tcase_add_test(tcase, every_truncation_is_an_error);
    tcase_add_test(tcase, every_corrupted_byte_is_survived);
    tcase_add_test(tcase, names_must_agree);
    tcase_add_test(tcase, rows_are_found);
    tcase_add_test(tcase, limits_may_accept_more);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {result_file_suite};
    return check_main(makers, 1);
}
