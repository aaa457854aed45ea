// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Fuzz target of the bundle reader (gate P0-2): what any bytes may do, and what follows when they
 * are a bundle. Every property is a trap, so that libFuzzer, AddressSanitizer and a plain build
 * stop at the same place.
 */
#include "fuzz_bundle.h"

#include <string.h>

#include "absorb.h"
#include "bound.h"
#include "kdtr_bundle.h"
#include "problem.h"
#include "rows.h"

/** A property that must hold. */
#define MUST(condition)       \
    do {                      \
        if (!(condition)) {   \
            __builtin_trap(); \
        }                     \
    } while (0)

#define MAX_WORK 32768       /**< Multiply-adds of a problem that is run. */
#define MAX_VALUES 16384     /**< Elements of an output. */
#define MAX_WORKSPACE 262144 /**< Bytes of the reference's workspace. */

static struct fuzz_reach reach;
static struct ref_bundle bundle;
static struct ref_problem problem;
static uint8_t rebuilt[FUZZ_MAX_BYTES];
static float outputs[2][MAX_VALUES];
static float lses[2][MAX_VALUES];
static float queries[MAX_VALUES];
static double bounds[MAX_VALUES];
static double query_errors[MAX_VALUES];
static double lse_bounds[MAX_VALUES];
static _Alignas(64) unsigned char workspace[MAX_WORKSPACE];

const struct fuzz_reach *fuzz_reached(void) {
    return &reach;
}

void fuzz_seal(uint8_t *file, size_t bytes) {
    /* A table that is kept: the library's checksum makes its own at each call. */
    static uint64_t table[256];
    if (bytes < 32) {
        return;
    }
    for (uint64_t i = 0; table[255] == 0 && i < 256; i++) {
        uint64_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = value >> 1 ^ ((value & 1) != 0 ? 0xc96c5795d7870f42u : 0);
        }
        table[i] = value;
    }
    memset(file + 24, 0, 8);
    uint64_t crc = UINT64_MAX;
    for (size_t i = 0; i < bytes; i++) {
        crc = crc >> 8 ^ table[(crc ^ file[i]) & 0xff];
    }
    for (int i = 0; i < 8; i++) {
        file[24 + i] = (uint8_t)(~crc >> (8 * i));
    }
}

/** A failure fills its record: code, one line of text, a field. */
static void check_error(int32_t status, const struct ref_error *error) {
    MUST(error->code == status);
    MUST(memchr(error->field, '\0', sizeof error->field) != NULL && error->field[0] != '\0');
    MUST(memchr(error->text, '\0', sizeof error->text) != NULL && error->text[0] != '\0');
    MUST(strchr(error->text, '\n') == NULL);
}

/** Well-formed bytes are canonical: building the bundle again gives the same. */
static void check_round_trip(const uint8_t *data, size_t size, int with_names) {
    struct ref_error error;
    size_t bytes = 0;
    for (int32_t i = 0; i < bundle.tensor_count; i++) {
        const struct ref_tensor *t = &bundle.tensors[i];
        const uint8_t *begin = t->data;
        MUST(begin >= data && begin <= data + size && t->bytes <= size);
        MUST((size_t)(begin - data) % 64 == 0 && (size_t)(begin - data) + t->bytes <= size);
        MUST(!with_names || ref_bundle_find(&bundle, t->name) == t);
    }
    MUST(ref_bundle_file_bytes(&bundle, &bytes, &error) == REF_OK && bytes == size);
    memset(rebuilt, 0xa5, size);
    ref_bundle_build(&bundle, rebuilt, size);
    MUST(memcmp(rebuilt, data, size) == 0);
}

/** a * b, or a value beyond every limit. */
static int64_t product(int64_t a, int64_t b) {
    const int64_t beyond = INT64_MAX / 2;
    return b != 0 && a > beyond / b ? beyond : a * b;
}

/** Whether a bound problem is small enough for the buffers above and for speed. */
static int is_small(const struct ref_attention *a) {
    size_t bytes;
    int64_t heads = product(a->row_capacity, a->num_heads);
    int64_t tokens = a->max_prefix_len + a->max_nodes;
    int64_t width = (int64_t)a->latent_dim + a->rope_dim;
    int64_t work = product(heads, product(tokens, width));
    int64_t inner = problem.is_module ? problem.q_nope->shape[2] : 0;
    return work <= MAX_WORK && heads <= MAX_VALUES && product(a->row_capacity, a->batch) <= 4096 &&
           product(heads, a->latent_dim) <= MAX_VALUES &&
           product(product(heads, a->latent_dim), inner) <= MAX_WORK &&
           attention_reference_f32_workspace(a, &bytes) == REF_OK && bytes <= sizeof workspace;
}

/** What binding promises: every row finds its nodes, and every token a slot of the pool. */
static void check_slots(void) {
    static int32_t nodes[MAX_VALUES];
    const struct ref_attention *a = &problem.call;
    MUST(a->max_nodes <= MAX_VALUES);
    for (int64_t index = 0; index < a->row_capacity; index++) {
        struct ref_row row = ref_find_row(a, index);
        if (row.request < 0) { /* nobody's: bound problems have no malformed request */
            MUST(index >= a->node_indptr[a->batch]);
            continue;
        }
        int32_t visible = ref_visible_nodes(a, &row, nodes);
        MUST(visible >= 0 && visible <= row.num_nodes && row.prefix_len <= a->max_prefix_len);
        for (int64_t v = 0; v < row.prefix_len + visible; v++) {
            int64_t slot = ref_visible_slot(a, &row, nodes, v);
            MUST(slot >= 0 && slot < problem.num_slots);
        }
    }
}

/** Every element of o and lse is written, and the rows one by one in reverse give the same bits. */
static void check_run(int also_reversed) {
    struct ref_attention call = problem.call;
    size_t heads = (size_t)(call.row_capacity * call.num_heads);
    size_t count = heads * (size_t)call.latent_dim;
    uint32_t unwritten = 0xa5a5a5a5u; /* a result can be this, but not under both fills */
    for (int pass = 0; pass < (also_reversed ? 2 : 1); pass++) {
        memset(outputs[pass], pass == 0 ? 0xff : 0xa5, count * sizeof(float));
        memset(lses[pass], pass == 0 ? 0xff : 0xa5, heads * sizeof(float));
        memset(workspace, 0xff, 256);
        call.o = outputs[pass];
        call.lse = lses[pass];
        if (pass == 0) {
            attention_reference_f32(&call, 0, call.row_capacity, workspace);
            unwritten = 0xffffffffu; /* a NaN that no store gives */
        } else {
            for (int64_t row = call.row_capacity; row-- > 0;) {
                attention_reference_f32(&call, row, row + 1, workspace);
            }
        }
        for (size_t i = 0; pass == 0 && i < count; i++) {
            MUST(ref_bits_from_f32(outputs[0][i]) != unwritten);
        }
        for (size_t i = 0; pass == 0 && i < heads; i++) {
            MUST(ref_bits_from_f32(lses[0][i]) != unwritten);
        }
    }
    if (also_reversed) {
        MUST(memcmp(outputs[0], outputs[1], count * sizeof(float)) == 0);
        MUST(memcmp(lses[0], lses[1], heads * sizeof(float)) == 0);
    }
}

/** Every bound is written and none is negative. */
static void check_bound(void) {
    size_t heads = (size_t)(problem.call.row_capacity * problem.call.num_heads);
    size_t count = heads * (size_t)problem.call.latent_dim;
    for (size_t i = 0; i < count; i++) {
        bounds[i] = -1.0;
    }
    for (size_t i = 0; i < heads; i++) {
        lse_bounds[i] = -1.0;
    }
    const double *q_error = problem.is_module ? query_errors : NULL;
    MUST(attention_bound_f64(&problem.call, q_error, bounds, lse_bounds) == REF_OK);
    for (size_t i = 0; i < count; i++) {
        MUST(!(bounds[i] < 0.0));
    }
    for (size_t i = 0; i < heads; i++) {
        MUST(!(lse_bounds[i] < 0.0));
    }
}

/** The queries of a module problem. */
static void absorb(void) {
    const struct ref_module_shape shape = {
        problem.call.row_capacity, problem.call.num_heads, (int32_t)problem.q_nope->shape[2],
        (int32_t)problem.module_output->shape[2], problem.call.latent_dim};
    absorb_query_reference_f32(&shape, problem.q_nope->data, problem.kv_b_proj->data, queries);
    absorb_query_bound_f64(&shape, problem.q_nope->data, problem.kv_b_proj->data, query_errors);
    problem.call.q_latent = queries;
}

/** The ABI takes and refuses the same bytes, with the same codes. */
static void check_abi(const uint8_t *data, size_t size, int32_t parsed, int32_t bound) {
    kdtr_error error = {0};
    kdtr_bundle *opened = NULL;
    kdtr_context *context = NULL;
    kdtr_plan *plan = NULL;
    MUST(kdtr_bundle_open_memory(data, size, &opened, &error) == parsed);
    MUST((opened != NULL) == (parsed == REF_OK) && error.code == parsed);
    kdtr_problem p = {.struct_size = sizeof p};
    if (parsed == REF_OK) {
        MUST(kdtr_bundle_problem(opened, &p, &error) == bound && error.code == bound);
    }
    if (parsed == REF_OK && bound == REF_OK) {
        MUST(kdtr_context_create_cpu(&context, &error) == KDTR_OK);
        int32_t status = kdtr_plan_create(context, &p.config, &plan, &error);
        MUST((plan != NULL) == (status == KDTR_OK) && error.code == status);
        p.args.q_latent = p.is_module ? p.q_nope.data : p.args.q_latent;
        if (plan != NULL) {
            MUST(kdtr_check(plan, &p.args, &error) == KDTR_OK);
        } else { /* a plan has limits that a bundle has not */
            MUST(status == KDTR_INVALID_ARGUMENT || status == KDTR_SIZE_OVERFLOW);
        }
    }
    kdtr_plan_destroy(plan);
    kdtr_context_destroy(context);
    kdtr_bundle_close(opened);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > FUZZ_MAX_BYTES) {
        return 0;
    }
    reach.inputs++;
    /* What only some inputs are put through is chosen by their own bytes. */
    unsigned int choice = size >= 32 ? data[24] : 0;
    struct ref_error error = {0};
    int32_t bound = REF_OK;
    int32_t parsed = ref_bundle_parse(data, size, &bundle, &error);
    if (parsed != REF_OK) {
        MUST(parsed >= REF_BUNDLE_MAGIC && parsed <= REF_BUNDLE_OFFSET);
        check_error(parsed, &error);
    } else {
        reach.parsed++;
        check_round_trip(data, size, choice % 16 == 1);
        bound = ref_problem_bind(&bundle, &problem, &error);
        if (bound != REF_OK) {
            MUST(bound == REF_INVALID_ARGUMENT || bound == REF_BUNDLE_MISSING ||
                 bound == REF_BUNDLE_DTYPE || bound == REF_BUNDLE_SHAPE ||
                 (bound >= REF_BAD_SCALE && bound <= REF_BAD_LENGTH));
            check_error(bound, &error);
        }
    }
    if (choice % 16 == 0) {
        check_abi(data, size, parsed, bound);
    }
    if (parsed == REF_OK && bound == REF_OK) {
        reach.bound++;
        reach.steps += (unsigned long long)fuzz_step(&bundle);
        if (is_small(&problem.call)) {
            reach.run++;
            check_slots();
            if (problem.is_module) {
                absorb();
            }
            check_run(choice % 4 == 1);
            if (choice % 4 == 2) {
                check_bound();
            }
        }
    }
    return 0;
}
