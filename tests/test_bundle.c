// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Bundles: gates P0-1 (round trip) and P0-2 (malformed files), on ref/bundle.h and ref/problem.h.
 */
#include "bundle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check_main.h"
#include "problem.h"

static const char *const committed[] = {
    "tests/data/tree-tiny.kdtr",         "tests/data/tree-small.kdtr",
    "tests/data/masked-first.kdtr",      "tests/data/table-1.kdtr",
    "tests/data/module-deepseek-a.kdtr", "tests/data/module-deepseek-b.kdtr"};

/** Reads a file whole; the caller frees it. */
static unsigned char *read_file(const char *path, size_t *bytes) {
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(stream, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(stream);
    rewind(stream);
    unsigned char *data = malloc(*bytes);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(fread(data, 1, *bytes, stream), *bytes);
    fclose(stream);
    return data;
}

/** Generates a case; the caller frees it. */
static unsigned char *generate(const char *name, size_t *bytes) {
    void *file;
    struct ref_error error = {0};
    ck_assert_msg(ref_case_generate(name, &file, bytes, &error) == REF_OK, "%s: %s", name,
                  error.text);
    return file;
}

/** Parse, build, compare. */
static void round_trip(const char *what, const unsigned char *file, size_t bytes) {
    static struct ref_bundle bundle;
    struct ref_error error = {0};
    ck_assert_msg(ref_bundle_parse(file, bytes, &bundle, &error) == REF_OK, "%s: %s: %s", what,
                  error.field, error.text);
    size_t again = 0;
    ck_assert_int_eq(ref_bundle_file_bytes(&bundle, &again, &error), REF_OK);
    ck_assert_uint_eq(again, bytes);
    unsigned char *copy = malloc(bytes);
    ck_assert_ptr_nonnull(copy);
    memset(copy, 0xa5, bytes);
    ref_bundle_build(&bundle, copy, bytes);
    ck_assert_msg(memcmp(copy, file, bytes) == 0, "%s: written bytes differ", what);
    free(copy);
}

START_TEST(round_trip_of_committed_bundles) {
    for (size_t i = 0; i < sizeof committed / sizeof committed[0]; i++) {
        size_t bytes;
        unsigned char *file = read_file(committed[i], &bytes);
        round_trip(committed[i], file, bytes);
        free(file);
    }
}
END_TEST

START_TEST(round_trip_of_every_case) {
    for (int32_t i = 0; i < ref_case_count(); i++) {
        const char *name = ref_case_name(i);
        if (test_scale_is_small() && strcmp(name, "tree-long") == 0) {
            continue; /* 245 MB: the plain build does it */
        }
        size_t bytes;
        unsigned char *file = generate(name, &bytes);
        round_trip(name, file, bytes);
        free(file);
    }
}
END_TEST

START_TEST(committed_cases_are_as_generated) {
    static const char *const names[] = {"tree-tiny", "tree-small", "masked-first", "table-1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/data/%s.kdtr", names[i]);
        size_t bytes;
        size_t expected;
        unsigned char *file = generate(names[i], &bytes);
        unsigned char *kept = read_file(path, &expected);
        ck_assert_uint_eq(bytes, expected);
        ck_assert_msg(memcmp(file, kept, bytes) == 0, "%s differs from %s", names[i], path);
        free(file);
        free(kept);
    }
}
END_TEST

START_TEST(checksum_has_its_check_value) {
    ck_assert_uint_eq(ref_crc64(0, "123456789", 9), 0x995dc9bbdf1939fau);
    ck_assert_uint_eq(ref_crc64(ref_crc64(0, "1234", 4), "56789", 5), 0x995dc9bbdf1939fau);
}
END_TEST

/** Parses; on failure checks that the error record is filled. */
static int32_t parse(const unsigned char *file, size_t bytes, struct ref_error *error) {
    static struct ref_bundle bundle;
    memset(error, 0, sizeof *error);
    /* An exact-size copy, so that a read past the end is caught by the sanitizer. */
    unsigned char *copy = malloc(bytes > 0 ? bytes : 1);
    ck_assert_ptr_nonnull(copy);
    if (bytes > 0) {
        memcpy(copy, file, bytes);
    }
    int32_t status = ref_bundle_parse(copy, bytes, &bundle, error);
    free(copy);
    if (status != REF_OK) {
        ck_assert_int_eq(error->code, status);
        ck_assert(error->text[0] != '\0' && error->field[0] != '\0');
        ck_assert_ptr_null(strchr(error->text, '\n'));
    }
    return status;
}

START_TEST(every_truncation_is_truncated) {
    size_t bytes;
    unsigned char *file = generate("tree-tiny", &bytes);
    struct ref_error error;
    for (size_t length = 0; length < bytes; length++) {
        ck_assert_int_eq(parse(file, length, &error), REF_BUNDLE_TRUNCATED);
    }
    free(file);
}
END_TEST

START_TEST(trailing_bytes_are_refused) {
    size_t bytes;
    unsigned char *file = generate("tree-tiny", &bytes);
    unsigned char *longer = calloc(bytes + 1, 1);
    ck_assert_ptr_nonnull(longer);
    memcpy(longer, file, bytes);
    struct ref_error error;
    ck_assert_int_eq(parse(longer, bytes + 1, &error), REF_BUNDLE_TRAILING);
    free(longer);
    free(file);
}
END_TEST

/** What one changed byte at this offset must give. */
static int expected_code(size_t offset, int32_t code) {
    if (offset < 8) {
        return code == REF_BUNDLE_MAGIC;
    }
    if (offset < 12) {
        return code == REF_BUNDLE_VERSION;
    }
    if (offset < 16) {
        return code == REF_BUNDLE_HEADER || code == REF_BUNDLE_TRUNCATED ||
               code == REF_BUNDLE_CHECKSUM;
    }
    if (offset < 24) {
        return code == REF_BUNDLE_TRUNCATED || code == REF_BUNDLE_TRAILING;
    }
    return code == REF_BUNDLE_CHECKSUM;
}

START_TEST(every_corrupted_byte_is_an_error) {
    size_t bytes;
    unsigned char *file = generate("tree-tiny", &bytes);
    struct ref_error error;
    static const unsigned char flips[] = {0x01, 0x80, 0xff};
    for (size_t offset = 0; offset < bytes; offset++) {
        for (size_t i = 0; i < sizeof flips; i++) {
            file[offset] ^= flips[i];
            int32_t code = parse(file, bytes, &error);
            file[offset] ^= flips[i];
            ck_assert_msg(expected_code(offset, code), "byte %zu ^ %02x gives code %d", offset,
                          flips[i], code);
        }
    }
    free(file);
}
END_TEST

/** Makes the checksum fit again. */
static void seal(unsigned char *file, size_t bytes) {
    memset(file + 24, 0, 8);
    uint64_t crc = ref_crc64(0, file, bytes);
    for (int i = 0; i < 8; i++) {
        file[24 + i] = (unsigned char)(crc >> (8 * i));
    }
}

/** One field of a file overwritten, with a checksum that fits. */
struct forgery {
    const char *what;  /**< For the message. */
    size_t offset;     /**< Where; from the start of table entry 1 if in_entry. */
    int in_entry;      /**< 1: offset is within table entry 1. */
    const char *bytes; /**< New bytes. */
    size_t length;     /**< How many. */
    int32_t code;      /**< Expected code. */
};

static const struct forgery forgeries[] = {
    {"no tensors", 12, 0, "\0\0\0\0", 4, REF_BUNDLE_HEADER},
    {"65 tensors", 12, 0, "\101\0\0\0", 4, REF_BUNDLE_HEADER},
    {"more tensors than fit", 12, 0, "\100\0\0\0", 4, REF_BUNDLE_TRUNCATED},
    {"empty case name", 32, 0, "\0", 1, REF_BUNDLE_HEADER},
    {"case name with a slash", 32, 0, "/", 1, REF_BUNDLE_HEADER},
    {"case name with a dot first", 32, 0, ".", 1, REF_BUNDLE_HEADER},
    {"byte after the case name's NUL", 63, 0, "x", 1, REF_BUNDLE_HEADER},
    {"upper-case tensor name", 0, 1, "Q", 1, REF_BUNDLE_NAME},
    {"tensor name that starts with a digit", 0, 1, "1", 1, REF_BUNDLE_NAME},
    {"empty tensor name", 0, 1, "\0", 1, REF_BUNDLE_NAME},
    {"byte after the name's NUL", 39, 1, "x", 1, REF_BUNDLE_NAME},
    {"duplicate name", 0, 1, "scale\0\0\0", 8, REF_BUNDLE_DUPLICATE},
    {"dtype 0", 40, 1, "\0\0\0\0", 4, REF_BUNDLE_DTYPE},
    {"dtype 8", 40, 1, "\10\0\0\0", 4, REF_BUNDLE_DTYPE},
    {"dtype -1", 40, 1, "\377\377\377\377", 4, REF_BUNDLE_DTYPE},
    {"rank 5", 44, 1, "\5\0\0\0", 4, REF_BUNDLE_SHAPE},
    {"rank -1", 44, 1, "\377\377\377\377", 4, REF_BUNDLE_SHAPE},
    {"rank below the shape", 44, 1, "\2\0\0\0", 4, REF_BUNDLE_SHAPE},
    {"dimension of 2^63", 48, 1, "\0\0\0\0\0\0\0\200", 8, REF_BUNDLE_SHAPE},
    {"product that overflows", 48, 1, "\0\0\0\0\0\0\0\20", 8, REF_BUNDLE_SHAPE},
    {"product that overflows beside a 0", 48, 1,
     "\0\0\0\0\0\0\0\20\0\0\0\0\0\0\0\20\0\0\0\0\0\0\0\0", 24, REF_BUNDLE_SHAPE},
    {"shape that does not fit bytes", 48, 1, "\7\0\0\0\0\0\0\0", 8, REF_BUNDLE_SHAPE},
    {"byte count", 88, 1, "\0\0\0\0\0\0\0\0", 8, REF_BUNDLE_SHAPE},
    {"reserved byte", 127, 1, "\1", 1, REF_BUNDLE_HEADER},
    {"offset of 0", 80, 1, "\0\0\0\0\0\0\0\0", 8, REF_BUNDLE_OFFSET},
    {"offset of 2^64 - 1", 80, 1, "\377\377\377\377\377\377\377\377", 8, REF_BUNDLE_OFFSET},
};

START_TEST(forgeries_are_named) {
    size_t bytes;
    unsigned char *file = generate("tree-tiny", &bytes);
    unsigned char *forged = malloc(bytes);
    ck_assert_ptr_nonnull(forged);
    struct ref_error error;
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        const struct forgery *f = &forgeries[i];
        memcpy(forged, file, bytes);
        memcpy(forged + f->offset + (f->in_entry ? 64 + 128 : 0), f->bytes, f->length);
        seal(forged, bytes);
        int32_t code = parse(forged, bytes, &error);
        ck_assert_msg(code == f->code, "%s gives code %d, not %d", f->what, code, f->code);
    }
    /* Padding: between the scalar scale and the next tensor there are 60 bytes. */
    static struct ref_bundle bundle;
    ck_assert_int_eq(ref_bundle_parse(file, bytes, &bundle, &error), REF_OK);
    size_t padding = (size_t)((const unsigned char *)bundle.tensors[0].data - file) + 5;
    memcpy(forged, file, bytes);
    forged[padding] = 1;
    seal(forged, bytes);
    ck_assert_int_eq(parse(forged, bytes, &error), REF_BUNDLE_HEADER);
    ck_assert_str_eq(error.field, "padding");
    /* A stated size that is honest, with bytes after the last tensor. */
    unsigned char *longer = calloc(bytes + 64, 1);
    ck_assert_ptr_nonnull(longer);
    memcpy(longer, file, bytes);
    for (int i = 0; i < 8; i++) {
        longer[16 + i] = (unsigned char)((bytes + 64) >> (8 * i));
    }
    seal(longer, bytes + 64);
    ck_assert_int_eq(parse(longer, bytes + 64, &error), REF_BUNDLE_TRAILING);
    free(longer);
    free(forged);
    free(file);
}
END_TEST

static Suite *bundle_suite(void) {
    Suite *suite = suite_create("bundle");
    TCase *trip = test_tcase(suite, "P0-1", "P0-1 round trip");
    tcase_add_test(trip, round_trip_of_committed_bundles);
    tcase_add_test(trip, round_trip_of_every_case);
    tcase_add_test(trip, committed_cases_are_as_generated);
    TCase *bad = test_tcase(suite, "P0-2", "P0-2 malformed bundles");
    tcase_add_test(bad, checksum_has_its_check_value);
    tcase_add_test(bad, every_truncation_is_truncated);
    tcase_add_test(bad, trailing_bytes_are_refused);
    tcase_add_test(bad, every_corrupted_byte_is_an_error);
    tcase_add_test(bad, forgeries_are_named);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {bundle_suite};
    return check_main(makers, 1);
}
