// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Rows of the sets.
 */
#include "gpu_sets.h"

/** Variants of a point beside flash in both modes with random slots and packed masks. */
enum {
    CONTIGUOUS = 1, /* one slot after the other */
    PARENTS = 2,    /* parents instead of words, random slots */
    PADDED = 4,     /* rows of 1,168 bytes, consecutive slots */
    NAIVE = 8       /* the naive kernel, where the point is small */
};

/** A point of a set. */
struct set_point {
    struct bench_point point;
    int variants;
};

static const struct set_point table[] = {
    {{1, 8, 1, 200000}, CONTIGUOUS | NAIVE},
    {{1, 8, 8, 200000}, CONTIGUOUS | NAIVE | PARENTS | PADDED},
    {{1, 8, 16, 200000}, CONTIGUOUS},
    {{1, 8, 64, 200000}, CONTIGUOUS},
    {{1, 64, 8, 200000}, CONTIGUOUS | PADDED},
    {{1, 64, 64, 200000}, CONTIGUOUS},
    {{4, 16, 16, 32768}, CONTIGUOUS | PARENTS},
    {{16, 128, 1, 32768}, CONTIGUOUS},
    {{16, 128, 1, 4096}, CONTIGUOUS},
    {{1, 8, 8, 32768}, CONTIGUOUS | NAIVE},
    {{4, 8, 8, 32768}, CONTIGUOUS | NAIVE},
    {{16, 8, 8, 4096}, CONTIGUOUS | NAIVE},
    {{1, 8, 8, 4096}, CONTIGUOUS | NAIVE},
};

static const int32_t sweep_n[] = {1024,  2048,   4096,   8192,   16384,  32768,
                                  65536, 131072, 262144, 524288, 1048576};
static const int32_t sweep_q[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
static const int32_t sweep_h[] = {1, 2, 4, 8, 16, 32, 64, 128};
static const int32_t sweep_budget[] = {16, 32, 64, 128, 256, 512, 1024};

/** Context, heads and nodes where a sweep is not over them. */
#define SWEEP_PREFIX 32768
#define SWEEP_HEADS 8
#define SWEEP_NODES 8
/** The long point's context. */
#define LONG_PREFIX 1000000
/** Elements from row to row where rows are padded to 1,168 bytes. */
#define PADDED_STRIDE 584
/** Most heads times nodes times context of a naive row of a sweep: 15 ms on an H200. */
#define NAIVE_WORK (1 << 21)

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof(array)[0]))

/** A list under construction. */
struct list {
    const struct bench_selection *selection;
    struct bench_row *rows;
    int32_t count;
};

/** The point as it is measured: on the emulator a small one of the same kind. */
static struct bench_point sized(struct bench_point point) {
#ifdef BENCH_SMALL
    const struct bench_point most = {2, 2, 3, 20};
    point.batch = point.batch > most.batch ? most.batch : point.batch;
    point.heads = point.heads > most.heads ? most.heads : point.heads;
    point.nodes = point.nodes > most.nodes ? most.nodes : point.nodes;
    point.prefix = point.prefix / 1024 > most.prefix ? most.prefix : point.prefix / 1024;
#endif
    return point;
}

/** The budget as it is measured; the root comes on top of it. */
static int32_t sized_budget(int32_t budget) {
#ifdef BENCH_SMALL
    return budget / 128 + 2;
#else
    return budget;
#endif
}

/** Adds a row if the selection wants it and there is room. */
static void add(struct list *list, struct bench_row row) {
    int32_t layout = list->selection->layout;
    if ((layout < 0 || layout == row.layout) && list->count < BENCH_MAX_ROWS) {
        list->rows[list->count++] = row;
    }
}

/** Adds the rows of one point, which is there in `row` with set and budget. */
static void add_point(struct list *list, struct bench_row row, int variants) {
    const struct bench_selection *s = list->selection;
    int chosen = s->implementation >= 0;
    row.implementation = chosen ? s->implementation : KDTR_IMPLEMENTATION_FLASH;
    row.layout = BENCH_RANDOM;
    row.mask_mode = s->mask_mode >= 0 ? s->mask_mode : KDTR_MASK_PACKED;
    row.stride = s->stride > 0 ? s->stride : BENCH_ROW_ELEMENTS;
    row.exact = s->exact;
    if (row.implementation == KDTR_IMPLEMENTATION_NAIVE && (variants & NAIVE) == 0) {
        return;
    }
    const struct bench_row plain = row;
    add(list, row);
    if ((variants & PARENTS) != 0 && s->mask_mode < 0) {
        row.mask_mode = KDTR_MASK_PARENTS;
        add(list, row);
        row = plain;
    }
    row.layout = BENCH_CONTIGUOUS;
    if ((variants & CONTIGUOUS) != 0) {
        add(list, row);
    }
    if ((variants & PADDED) != 0 && s->stride == 0) {
        row.stride = PADDED_STRIDE;
        add(list, row);
    }
    if (chosen) {
        return;
    }
    row = plain;
    if ((variants & NAIVE) != 0 && s->point.batch == 0) {
        row.implementation = KDTR_IMPLEMENTATION_NAIVE;
        add(list, row);
        row = plain;
    }
    row.exact = 1;
    add(list, row);
}

/** NAIVE where a point of a sweep is small enough. */
static int small(const struct bench_point *p) {
    return (int64_t)p->heads * p->nodes * p->prefix <= NAIVE_WORK ? NAIVE : 0;
}

/** Adds the points of one set. */
static void add_set(struct list *list, int32_t set) {
    const int32_t *const sweeps[] = {[BENCH_SWEEP_N] = sweep_n,
                                     [BENCH_SWEEP_Q] = sweep_q,
                                     [BENCH_SWEEP_H] = sweep_h,
                                     [BENCH_SWEEP_BUDGET] = sweep_budget};
    const int32_t counts[] = {
        [BENCH_TABLE] = COUNT(table),     [BENCH_LONG] = 1,
        [BENCH_SWEEP_N] = COUNT(sweep_n), [BENCH_SWEEP_Q] = COUNT(sweep_q),
        [BENCH_SWEEP_H] = COUNT(sweep_h), [BENCH_SWEEP_BUDGET] = COUNT(sweep_budget)};
    for (int32_t i = 0; i < counts[set]; i++) {
        struct bench_point point = {1, SWEEP_HEADS, SWEEP_NODES, SWEEP_PREFIX};
        struct bench_row row = {.set = set, .budget = 0};
        int variants = CONTIGUOUS;
        if (set == BENCH_TABLE) {
            point = table[i].point;
            variants = table[i].variants;
        } else if (set == BENCH_LONG) {
            point.prefix = LONG_PREFIX;
        } else {
            int32_t value = sweeps[set][i];
            point.prefix = set == BENCH_SWEEP_N ? value : point.prefix;
            point.nodes = set == BENCH_SWEEP_Q ? value : point.nodes;
            point.heads = set == BENCH_SWEEP_H ? value : point.heads;
            row.budget = set == BENCH_SWEEP_BUDGET ? sized_budget(value) : 0;
            variants |= small(&point);
        }
        row.point = sized(point);
        if (row.budget > 0) {
            row.point.nodes = row.budget + 1;
            variants = CONTIGUOUS;
        }
        add_point(list, row, variants);
    }
}

int32_t bench_list_rows(const struct bench_selection *selection, struct bench_row *rows) {
    struct list list = {selection, rows, 0};
    if (selection->point.batch > 0) {
        const struct bench_row row = {.point = selection->point, .set = BENCH_POINT};
        add_point(&list, row, CONTIGUOUS | NAIVE);
        return list.count;
    }
    for (int32_t set = 0; set < BENCH_SETS; set++) {
        if (selection->sets == 0 || (selection->sets >> set & 1u) != 0) {
            add_set(&list, set);
        }
    }
    return list.count;
}

const char *bench_set_title(int32_t set) {
    static const char *const titles[] = {
        [BENCH_TABLE] = "the points of phase 1",
        [BENCH_LONG] = "a million rows",
        [BENCH_SWEEP_N] = "over the length of the context",
        [BENCH_SWEEP_Q] = "over the nodes of a tree",
        [BENCH_SWEEP_H] = "over the heads",
        [BENCH_SWEEP_BUDGET] = "over the budget of a draft tree (the root comes on top)",
        [BENCH_POINT] = "the point that was asked for",
    };
    return titles[set];
}
