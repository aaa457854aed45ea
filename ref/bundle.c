// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Reader and writer of bundles, in the order of spec/bundle_format.md.
 */
#include "bundle.h"

#include <string.h>

#define PREAMBLE_BYTES 64  /**< Bytes before the tensor table. */
#define ENTRY_BYTES 128    /**< Bytes of an entry of the table. */
#define CHECKSUM_OFFSET 24 /**< Where the checksum stands. */
#define VERSION 1          /**< The version that is read and written. */

static const unsigned char magic[8] = {0x4b, 0x44, 0x54, 0x52, 0x0d, 0x0a, 0x1a, 0x0a};

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {{"?", 0},   {"u8", 1},   {"i32", 4}, {"u32", 4},
              {"i64", 8}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};

static int known_dtype(int32_t dtype) {
    return dtype >= REF_U8 && dtype <= REF_F64;
}

size_t ref_dtype_bytes(int32_t dtype) {
    return dtypes[known_dtype(dtype) ? dtype : 0].bytes;
}

const char *ref_dtype_name(int32_t dtype) {
    return dtypes[known_dtype(dtype) ? dtype : 0].name;
}

/* Little-endian fields, whatever the machine. */

static uint64_t get(const unsigned char *p, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        value = value << 8 | p[i];
    }
    return value;
}

static void put(unsigned char *p, int bytes, uint64_t value) {
    for (int i = 0; i < bytes; i++) {
        p[i] = (unsigned char)(value >> (8 * i));
    }
}

/** Eight tables let the loop take eight bytes a step; 16 KB built in a microsecond beat state that
 * threads would share. */
struct crc_tables {
    uint64_t table[8][256];
};

static void make_crc_tables(struct crc_tables *t) {
    uint64_t value = 1;
    t->table[0][0] = 0;
    for (int i = 128; i > 0; i >>= 1) { /* the rest follows from the powers of 2 */
        value = value >> 1 ^ ((value & 1) != 0 ? 0xc96c5795d7870f42u : 0);
        for (int j = 0; j < 256; j += 2 * i) {
            t->table[0][i + j] = value ^ t->table[0][j];
        }
    }
    for (int k = 1; k < 8; k++) {
        for (int i = 0; i < 256; i++) {
            uint64_t before = t->table[k - 1][i];
            t->table[k][i] = before >> 8 ^ t->table[0][before & 0xff];
        }
    }
}

static uint64_t add_to_crc(const struct crc_tables *t, uint64_t crc, const void *data,
                           size_t bytes) {
    const unsigned char *p = data;
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t x = crc ^ get(p, 8);
        crc = 0;
        for (int k = 0; k < 8; k++) {
            crc ^= t->table[7 - k][x >> (8 * k) & 0xff];
        }
    }
    for (; bytes > 0; bytes--, p++) {
        crc = crc >> 8 ^ t->table[0][(crc ^ *p) & 0xff];
    }
    return ~crc;
}

uint64_t ref_crc64(uint64_t crc, const void *data, size_t bytes) {
    struct crc_tables tables;
    make_crc_tables(&tables);
    return add_to_crc(&tables, crc, data, bytes);
}

/** Checksum of a file: its eight checksum bytes count as zero. */
static uint64_t file_checksum(const unsigned char *file, size_t bytes) {
    static const unsigned char zero[8] = {0};
    struct crc_tables tables;
    make_crc_tables(&tables);
    uint64_t crc = add_to_crc(&tables, 0, file, CHECKSUM_OFFSET);
    crc = add_to_crc(&tables, crc, zero, 8);
    return add_to_crc(&tables, crc, file + CHECKSUM_OFFSET + 8, bytes - CHECKSUM_OFFSET - 8);
}

/** Checks a NUL-padded name: length 1 to size - 1, allowed characters, NULs to the end. */
static int valid_name(const char *name, size_t size, int is_case) {
    size_t length = 0;
    while (length < size && name[length] != '\0') {
        char c = name[length++];
        int letter = c >= 'a' && c <= 'z';
        int digit = c >= '0' && c <= '9';
        int other = c == '_' || (is_case && (c == '-' || c == '.'));
        int first = length == 1;
        if (!letter && !(digit && (is_case || !first)) && !(other && !first)) {
            return 0;
        }
    }
    for (size_t i = length; i < size; i++) {
        if (name[i] != '\0') {
            return 0;
        }
    }
    return length > 0 && length < size;
}

/** What shape_bytes gives for a size beyond 2^62. */
#define SHAPE_OVERFLOW UINT64_MAX

/** Byte count of a shape of known dtype, or SHAPE_OVERFLOW. */
static uint64_t shape_bytes(const struct ref_tensor *tensor) {
    uint64_t total = ref_dtype_bytes(tensor->dtype);
    int empty = 0;
    for (int32_t i = 0; i < tensor->rank; i++) {
        uint64_t dimension = (uint64_t)tensor->shape[i];
        if (dimension == 0) {
            empty = 1;
        } else if (dimension > ((uint64_t)1 << 62) / total) {
            return SHAPE_OVERFLOW;
        } else {
            total *= dimension;
        }
    }
    return empty ? 0 : total;
}

/** Name, dtype and shape of one tensor, for reader and writer. */
static int32_t check_tensor(const struct ref_bundle *bundle, int32_t index,
                            struct ref_error *error) {
    const struct ref_tensor *tensor = &bundle->tensors[index];
    if (!valid_name(tensor->name, sizeof tensor->name, 0)) {
        return ref_fail(error, REF_BUNDLE_NAME, "name", "tensor %d has a name that is not allowed",
                        index);
    }
    for (int32_t i = 0; i < index; i++) {
        if (strcmp(bundle->tensors[i].name, tensor->name) == 0) {
            return ref_fail(error, REF_BUNDLE_DUPLICATE, tensor->name,
                            "tensors %d and %d have the same name", i, index);
        }
    }
    if (!known_dtype(tensor->dtype)) {
        return ref_fail(error, REF_BUNDLE_DTYPE, tensor->name, "unknown dtype %lld",
                        (long long)tensor->dtype);
    }
    if (tensor->rank < 0 || tensor->rank > 4) {
        return ref_fail(error, REF_BUNDLE_SHAPE, tensor->name, "rank %d is not 0 to 4",
                        tensor->rank);
    }
    for (int32_t i = tensor->rank; i < 4; i++) {
        if (tensor->shape[i] != 1) {
            return ref_fail(error, REF_BUNDLE_SHAPE, tensor->name,
                            "dimension %d is beyond the rank and not 1", i);
        }
    }
    if (shape_bytes(tensor) == SHAPE_OVERFLOW) {
        return ref_fail(error, REF_BUNDLE_SHAPE, tensor->name, "its size overflows");
    }
    return REF_OK;
}

/** Steps 1 to 8: preamble and checksum. */
static int32_t parse_preamble(const unsigned char *file, size_t bytes, struct ref_bundle *bundle,
                              struct ref_error *error) {
    if (bytes < PREAMBLE_BYTES) {
        return ref_fail(error, REF_BUNDLE_TRUNCATED, "preamble",
                        "%zu bytes are no bundle: the preamble alone has 64", bytes);
    }
    if (memcmp(file, magic, sizeof magic) != 0) {
        return ref_fail(error, REF_BUNDLE_MAGIC, "magic", "this is not a kdtr bundle");
    }
    if (get(file + 8, 4) != VERSION) {
        return ref_fail(error, REF_BUNDLE_VERSION, "version", "version %llu is not known, only 1",
                        (unsigned long long)get(file + 8, 4));
    }
    uint64_t count = get(file + 12, 4);
    if (count < 1 || count > REF_BUNDLE_MAX_TENSORS) {
        return ref_fail(error, REF_BUNDLE_HEADER, "tensor_count", "%llu tensors, not 1 to 64",
                        (unsigned long long)count);
    }
    uint64_t stated = get(file + 16, 8);
    if (stated != bytes) {
        return ref_fail(error, stated > bytes ? REF_BUNDLE_TRUNCATED : REF_BUNDLE_TRAILING,
                        "file_bytes", "the header says %llu bytes, the file has %zu",
                        (unsigned long long)stated, bytes);
    }
    if (bytes < PREAMBLE_BYTES + count * ENTRY_BYTES) {
        return ref_fail(error, REF_BUNDLE_TRUNCATED, "tensor_table",
                        "%llu tensors do not fit %zu bytes", (unsigned long long)count, bytes);
    }
    if (get(file + CHECKSUM_OFFSET, 8) != file_checksum(file, bytes)) {
        return ref_fail(error, REF_BUNDLE_CHECKSUM, "checksum",
                        "the bytes do not fit the checksum");
    }
    memcpy(bundle->case_name, file + 32, REF_BUNDLE_CASE_BYTES);
    if (!valid_name(bundle->case_name, REF_BUNDLE_CASE_BYTES, 1)) {
        return ref_fail(error, REF_BUNDLE_HEADER, "case_name", "the case name is not allowed");
    }
    bundle->tensor_count = (int32_t)count;
    return REF_OK;
}

/** Step 9: one table entry; *end is where the data before it end, and is moved on. */
static int32_t parse_entry(const unsigned char *file, size_t bytes, struct ref_bundle *bundle,
                           int32_t index, uint64_t *end, struct ref_error *error) {
    const unsigned char *entry = file + PREAMBLE_BYTES + (size_t)index * ENTRY_BYTES;
    struct ref_tensor *tensor = &bundle->tensors[index];
    memcpy(tensor->name, entry, sizeof tensor->name);
    tensor->dtype = (int32_t)get(entry + 40, 4);
    tensor->rank = (int32_t)get(entry + 44, 4);
    for (int i = 0; i < 4; i++) {
        tensor->shape[i] = (int64_t)get(entry + 48 + 8 * i, 8);
    }
    int32_t status = check_tensor(bundle, index, error);
    if (status != REF_OK) {
        return status;
    }
    uint64_t size = shape_bytes(tensor);
    if (get(entry + 88, 8) != size) {
        return ref_fail(error, REF_BUNDLE_SHAPE, tensor->name,
                        "its shape needs %llu bytes, the entry says %llu", (unsigned long long)size,
                        (unsigned long long)get(entry + 88, 8));
    }
    for (int i = 96; i < ENTRY_BYTES; i++) {
        if (entry[i] != 0) {
            return ref_fail(error, REF_BUNDLE_HEADER, "reserved", "tensor %d: byte %d is not zero",
                            index, i);
        }
    }
    uint64_t offset = (*end + 63) / 64 * 64;
    if (get(entry + 80, 8) != offset || offset > bytes || size > bytes - offset) {
        return ref_fail(error, REF_BUNDLE_OFFSET, tensor->name,
                        "offset %llu, %llu bytes: it must start at %llu and end within %zu",
                        (unsigned long long)get(entry + 80, 8), (unsigned long long)size,
                        (unsigned long long)offset, bytes);
    }
    for (uint64_t i = *end; i < offset; i++) {
        if (file[i] != 0) {
            return ref_fail(error, REF_BUNDLE_HEADER, "padding", "byte %llu is not zero",
                            (unsigned long long)i);
        }
    }
    tensor->bytes = (size_t)size;
    tensor->data = file + offset;
    *end = offset + size;
    return REF_OK;
}

int32_t ref_bundle_parse(const void *data, size_t bytes, struct ref_bundle *bundle,
                         struct ref_error *error) {
    const unsigned char *file = data;
    memset(bundle, 0, sizeof *bundle);
    int32_t status = parse_preamble(file, bytes, bundle, error);
    uint64_t end = PREAMBLE_BYTES + (uint64_t)bundle->tensor_count * ENTRY_BYTES;
    for (int32_t i = 0; status == REF_OK && i < bundle->tensor_count; i++) {
        status = parse_entry(file, bytes, bundle, i, &end, error);
    }
    if (status == REF_OK && end != bytes) {
        status =
            ref_fail(error, REF_BUNDLE_TRAILING, "file_bytes",
                     "%zu bytes, but the last tensor ends at %llu", bytes, (unsigned long long)end);
    }
    return status;
}

int32_t ref_bundle_file_bytes(const struct ref_bundle *bundle, size_t *bytes,
                              struct ref_error *error) {
    if (bundle->tensor_count < 1 || bundle->tensor_count > REF_BUNDLE_MAX_TENSORS) {
        return ref_fail(error, REF_BUNDLE_HEADER, "tensor_count", "%d tensors, not 1 to 64",
                        bundle->tensor_count);
    }
    if (!valid_name(bundle->case_name, REF_BUNDLE_CASE_BYTES, 1)) {
        return ref_fail(error, REF_BUNDLE_HEADER, "case_name", "the case name is not allowed");
    }
    uint64_t end = PREAMBLE_BYTES + (uint64_t)bundle->tensor_count * ENTRY_BYTES;
    for (int32_t i = 0; i < bundle->tensor_count; i++) {
        int32_t status = check_tensor(bundle, i, error);
        if (status != REF_OK) {
            return status;
        }
        uint64_t size = shape_bytes(&bundle->tensors[i]);
        end = (end + 63) / 64 * 64;
        if (size > SIZE_MAX / 2 - end) {
            return ref_fail(error, REF_BUNDLE_SHAPE, bundle->tensors[i].name, "the file overflows");
        }
        end += size;
    }
    *bytes = (size_t)end;
    return REF_OK;
}

void ref_bundle_build(const struct ref_bundle *bundle, void *file, size_t bytes) {
    unsigned char *p = file;
    memset(p, 0, bytes);
    memcpy(p, magic, sizeof magic);
    put(p + 8, 4, VERSION);
    put(p + 12, 4, (uint64_t)bundle->tensor_count);
    put(p + 16, 8, bytes);
    memcpy(p + 32, bundle->case_name, REF_BUNDLE_CASE_BYTES);
    uint64_t end = PREAMBLE_BYTES + (uint64_t)bundle->tensor_count * ENTRY_BYTES;
    for (int32_t i = 0; i < bundle->tensor_count; i++) {
        const struct ref_tensor *tensor = &bundle->tensors[i];
        unsigned char *entry = p + PREAMBLE_BYTES + (size_t)i * ENTRY_BYTES;
        uint64_t size = shape_bytes(tensor);
        uint64_t offset = (end + 63) / 64 * 64;
        memcpy(entry, tensor->name, sizeof tensor->name);
        put(entry + 40, 4, (uint64_t)tensor->dtype);
        put(entry + 44, 4, (uint64_t)tensor->rank);
        for (int k = 0; k < 4; k++) {
            put(entry + 48 + 8 * k, 8, (uint64_t)tensor->shape[k]);
        }
        put(entry + 80, 8, offset);
        put(entry + 88, 8, size);
        if (size > 0) {
            memcpy(p + offset, tensor->data, size);
        }
        end = offset + size;
    }
    put(p + CHECKSUM_OFFSET, 8, file_checksum(p, bytes));
}

const struct ref_tensor *ref_bundle_find(const struct ref_bundle *bundle, const char *name) {
    for (int32_t i = 0; i < bundle->tensor_count; i++) {
        if (strcmp(bundle->tensors[i].name, name) == 0) {
            return &bundle->tensors[i];
        }
    }
    return NULL;
}
