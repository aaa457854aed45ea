// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The files that `kdtr bench` and `kdtr report` write: names, whole files, JSON strings, hidden
 * paths.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output_file.h"
#include "test_bench.h"
#include "tool.h"

START_TEST(output_names) {
    char date[16];
    char name[OUTPUT_NAME_SIZE];
    char expected[OUTPUT_NAME_SIZE];
    static const char *const devices[][2] = {
        {"NVIDIA H200", "nvidia-h200"},
        {"NVIDIA RTX PRO 6000 Blackwell", "nvidia-rtx-pro-6000-blackwell"},
        {"A/../B (x)-1", "ab-x-1"},
        {"\xc3\xa9", "device"},
        {"", "device"}};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        snprintf(expected, sizeof expected, "%s-%s-bench.json", output_date(date, sizeof date),
                 devices[i][1]);
        ck_assert_str_eq(output_name(devices[i][0], "bench", name, sizeof name), expected);
    }
    char longest[400];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    output_name(longest, "bench", name, sizeof name);
    ck_assert_str_eq(name + strlen(name) - 11, "-bench.json");
}
END_TEST

/** Contents of a file in `text`, which holds 64 bytes. */
static const char *contents(const char *path, char *text) {
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t got = fread(text, 1, 63, file);
    fclose(file);
    text[got] = '\0';
    return text;
}

START_TEST(output_files) {
    char folder[] = "/tmp/kdtr-test-XXXXXX";
    char path[64];
    char link[64];
    char text[64];
    struct stat before;
    struct stat after;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(output_check(path), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(output_write(path, "first", 5), 0);
    ck_assert_str_eq(contents(path, text), "first");
    ck_assert_int_eq(output_check(path), 0);
    ck_assert_str_eq(contents(path, text), "first");
    /* Another file under the name, not other contents in the file. */
    ck_assert_int_eq(stat(path, &before), 0);
    FILE *old = fopen(path, "r");
    ck_assert_int_eq(output_write(path, "other", 5), 0);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert(before.st_ino != after.st_ino);
    ck_assert_str_eq(contents(path, text), "other");
    ck_assert_int_eq(fgetc(old), 'f');
    fclose(old);
    /* A link stays one. */
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(output_check(link), 0);
    ck_assert_int_eq(output_write(link, "by", 2), 0);
    ck_assert_str_eq(contents(path, text), "by");
    ck_assert(lstat(link, &after) == 0 && S_ISLNK(after.st_mode));
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_int_eq(output_check(folder), EISDIR);
    ck_assert_int_eq(output_check("/nowhere/file"), ENOENT);
    ck_assert_int_eq(output_write("/nowhere/file", "x", 1), ENOENT);
    ck_assert_int_eq(output_write("/dev/null", "x", 1), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing is left over */
}
END_TEST

START_TEST(output_strings) {
    static const char *const pairs[][2] = {
        {"plain", "\"plain\""},
        {"a\"b\\c\td", "\"a\\\"b\\\\c\\u0009d\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\xc3 \xff \xc0\x80 \xed\xa0\x80 \xe2\x82", "\"? ? ?? ??? ??\""},
        {"", "\"\""}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);
        output_json_string(file, pairs[i][0]);
        ck_assert_int_eq(fclose(file), 0);
        ck_assert_str_eq(text, pairs[i][1]);
        free(text);
    }
}
END_TEST

/** Lines and what a report has of them. */
START_TEST(output_without_paths) {
    static const char *const folders[] = {"/opt/the owner", "/opt/the owner/build", ""};
    static const char *const pairs[][2] = {
        {"flash: 4 cases, worst error/bound 0.148, 3 GB/s", NULL},
        {"a / b, 1/2, m16n8k16 /", NULL},
        {"/home/joe/x.so: cannot open", "(path): cannot open"},
        {"cannot open /home/joe/x.so", "cannot open (path)"},
        {"--json=/home/joe/x \"/home/joe\" '/a' (/b) ~/c", "--json=(path) \"(path)\" '(path)' "
                                                           "((path)) ~(path)"},
        {"../joe/x and ./y", "..(path) and .(path)"},
        {"/a /b /c", "(path) (path) (path)"},
        {"in /opt/the owner/build/lib x.so", "in (path) x.so"},
        {"in'/opt/the owner'", "in'(path)'"},
        {"file:/opt/the owner/x: wrong", "file:(path): wrong"},
        {"", NULL}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char *hidden = tool_hide_paths(pairs[i][0], folders, 3);
        ck_assert_ptr_nonnull(hidden);
        ck_assert_str_eq(hidden, pairs[i][1] != NULL ? pairs[i][1] : pairs[i][0]);
        free(hidden);
    }
}
END_TEST

Suite *output_file_suite(void) {
    Suite *suite = suite_create("output file");
    TCase *tcase = tcase_create("output_file");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, output_names);
    tcase_add_test(tcase, output_files);
    tcase_add_test(tcase, output_strings);
    tcase_add_test(tcase, output_without_paths);
    return suite;
}
