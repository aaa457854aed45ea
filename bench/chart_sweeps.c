// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Charts of sweeps and of served tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "chart.h"

/** What is on the axes. */
enum quantity { OVER_N, OVER_Q, OVER_H, OVER_BUDGET };

static double x_of(const struct result_row *row, enum quantity over) {
    return over == OVER_N   ? (double)row->point.prefix
           : over == OVER_Q ? row->point.nodes
           : over == OVER_H ? row->point.heads
                            : row->budget;
}

/** Which value of a row is drawn. */
enum value { MEDIAN, FLOOR, SHARE, TOKENS };

static double y_of(const struct result_row *row, enum value what) {
    return what == MEDIAN   ? row->time.median
           : what == FLOOR  ? row->floor_us
           : what == TOKENS ? row->tokens_per_s
                            : 100.0 * row->floor_us / row->time.median;
}

/** Puts a point where x ascends; a second point of the same x is left out. */
static void insert(struct chart_series *s, double x, double y) {
    int32_t at = s->count;
    for (int32_t i = 0; i < s->count; i++) {
        if (s->x[i] == x) {
            return;
        }
    }
    if (s->count == CHART_MOST_POINTS || !(x > 0.0) || !(y > 0.0)) {
        return;
    }
    for (; at > 0 && s->x[at - 1] > x; at--) {
        s->x[at] = s->x[at - 1];
        s->y[at] = s->y[at - 1];
    }
    s->x[at] = x;
    s->y[at] = y;
    s->count++;
}

/** Adds a series of the rows like this, if there are two of them at least. */
static void add_series(struct chart_lines *lines, const struct result_file *file,
                       const struct result_row *like, enum quantity over, enum value what,
                       const struct chart_series *style) {
    struct chart_series *s = &lines->series[lines->count];
    const struct result_row *row = NULL;
    *s = *style;
    s->count = 0;
    while ((row = result_find(file, like, row)) != NULL) {
        int32_t nodes = like->point.nodes;
        if (nodes == 0 || row->point.nodes == nodes) {
            insert(s, x_of(row, over), y_of(row, what));
        }
    }
    lines->count += s->count >= 2;
}

/** What a sweep's chart is made of. */
struct sweep {
    const char *set;
    enum quantity over;
    const char *title;
    const char *x_title;
};

static const struct sweep sweeps[] = {
    [CHART_SWEEP_N] = {"sweep_n", OVER_N, "Time over the context", "N, rows of the context"},
    [CHART_SHARE_N] = {"sweep_n", OVER_N, "Share of the floor over the context",
                       "N, rows of the context"},
    [CHART_SWEEP_Q] = {"sweep_q", OVER_Q, "Time over the nodes of the tree",
                       "Q, nodes of the tree, with the root"},
    [CHART_SWEEP_H] = {"sweep_h", OVER_H, "Time over the heads", "H, heads"},
    [CHART_SWEEP_BUDGET] = {"sweep_budget", OVER_BUDGET, "Time over the budget of a draft tree",
                            "budget, nodes of the tree without the root"}};

/** The title: what the sweep is over, and what it holds fixed, from its first row. */
static void title_of(const struct result_file *file, const struct result_row *row,
                     const struct sweep *sweep, char *title) {
    char heads[32] = "";
    char nodes[32] = "";
    char prefix[32] = "";
    const struct bench_point *p = &row->point;
    if (sweep->over != OVER_H) {
        snprintf(heads, sizeof heads, ", H = %d", p->heads);
    }
    if (sweep->over == OVER_N || sweep->over == OVER_H) {
        snprintf(nodes, sizeof nodes, ", Q = %d", p->nodes);
    }
    if (sweep->over != OVER_N) {
        snprintf(prefix, sizeof prefix, ", N = %lld", (long long)p->prefix);
    }
    snprintf(title, CHART_TITLE, "%s, B = %d%s%s%s, %s, %s", sweep->title, p->batch, heads, nodes,
             prefix, file->gpu, file->date);
}

int chart_sweep(FILE *out, const struct result_file *bench, enum chart_sweep which) {
    static const struct chart_series styles[] = {
        {.label = "default mode", .colour = CHART_KDTR},
        {.label = "exact mode", .colour = CHART_EXACT},
        {.label = "floor", .colour = CHART_FLOOR, .dashed = 1}};
    static const char *const names[] = {"kdtr_flash", "kdtr_flash_exact", "kdtr_flash"};
    const struct sweep *sweep = &sweeps[which];
    int share = which == CHART_SHARE_N;
    char title[CHART_TITLE];
    struct result_row like = {.op = "verify", .layout = "random", .mask = "tree"};
    struct chart_lines *lines = calloc(1, sizeof *lines);
    snprintf(like.set, sizeof like.set, "%s", sweep->set);
    const struct result_row *first = result_find(bench, &like, NULL);
    if (lines == NULL || first == NULL) {
        free(lines);
        return 1;
    }
    title_of(bench, first, sweep, title);
    *lines = (struct chart_lines){.title = title,
                                  .x_title = sweep->x_title,
                                  .y_title =
                                      share ? "percent of the floor" : "microseconds, logarithmic",
                                  .log_y = !share,
                                  .y_top = 100.0};
    for (int i = 0; i < (share ? 2 : 3); i++) {
        snprintf(like.implementation, sizeof like.implementation, "%s", names[i]);
        enum value what = share ? SHARE : i == 2 ? FLOOR : MEDIAN;
        add_series(lines, bench, &like, sweep->over, what, &styles[i]);
    }
    int drawn = lines->count > 0;
    if (drawn) {
        chart_draw_lines(out, lines);
    }
    free(lines);
    return !drawn;
}

int chart_served(FILE *out, const struct result_file *peers) {
    static const int32_t nodes[] = {8, 16, 64};
    static const char *const shades[2][3] = {{"#8fc1ef", "#4d97dd", "#2a6fbf"},
                                             {"#9ad0a6", "#5cae6c", "#37854a"}};
    static const char *const names[] = {"kdtr_flash", "sglang_triton_extend"};
    char title[CHART_TITLE];
    struct result_row like = {.op = "served"};
    struct chart_lines *lines = calloc(1, sizeof *lines);
    const struct result_row *first = result_find(peers, &like, NULL);
    if (lines == NULL || first == NULL) {
        free(lines);
        return 1;
    }
    snprintf(title, sizeof title,
             "Attention-limited tokens/s, %d layers, H = %d, %g accepted, %s, %s", first->layers,
             first->point.heads, first->accepted_length, peers->gpu, peers->date);
    *lines = (struct chart_lines){.title = title,
                                  .x_title = "N, rows of the context",
                                  .y_title = "tokens per second, logarithmic",
                                  .log_y = 1};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 3; i++) {
            struct chart_series style = {.colour = shades[k][i], .dashed = k};
            snprintf(style.label, sizeof style.label, "%s, Q = %d", k == 0 ? "kdtr" : "SGLang",
                     nodes[i]);
            snprintf(like.implementation, sizeof like.implementation, "%s", names[k]);
            like.point.nodes = nodes[i];
            add_series(lines, peers, &like, OVER_N, TOKENS, &style);
        }
    }
    int drawn = lines->count > 0;
    if (drawn) {
        chart_draw_lines(out, lines);
    }
    free(lines);
    return !drawn;
}
