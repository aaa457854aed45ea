// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Chart and table of the points of phase 1.
 */
#include <math.h>
#include <string.h>

#include "chart.h"

/** Columns of both. A point has SGLang's extend or its decode. */
enum { KDTR, SGLANG, FA2, FA3, COLUMNS };
static const char *const labels[COLUMNS] = {"kdtr", "SGLang Triton", "FlashInfer fa2",
                                            "FlashInfer fa3"};
static const char *const colours[COLUMNS] = {CHART_KDTR, CHART_SGLANG, CHART_FA2, CHART_FA3};

/** A point and its rows; NULL where there is none. */
struct line {
    const struct result_row *rows[COLUMNS];
};

static const struct result_row *find(const struct result_file *file, const char *implementation,
                                     const struct bench_point *point) {
    struct result_row like = {.op = "verify", .set = "table", .layout = "random"};
    snprintf(like.implementation, sizeof like.implementation, "%s", implementation);
    like.point = *point;
    return result_find(file, &like, NULL);
}

/** The next point: the next row of kdtr in the table. */
static const struct result_row *next_point(const struct result_file *file,
                                           const struct result_row *after) {
    const struct result_row like = {
        .op = "verify", .set = "table", .layout = "random", .implementation = "kdtr_flash"};
    const struct result_row *row = after;
    while ((row = result_find(file, &like, row)) != NULL) {
        /* Of a point's rows, with words and with parents, the first counts. */
        if (find(file, "kdtr_flash", &row->point) == row && row->floor_us > 0.0) {
            return row;
        }
    }
    return NULL;
}

static struct line line_of(const struct result_file *file, const struct result_row *kdtr) {
    const struct bench_point *p = &kdtr->point;
    const char *sglang = p->nodes > 1 ? "sglang_triton_extend" : "sglang_triton_decode";
    return (struct line){{kdtr, find(file, sglang, p), find(file, "flashinfer_fa2", p),
                          find(file, "flashinfer_fa3", p)}};
}

static void name_of(const struct bench_point *p, char *text, size_t bytes) {
    snprintf(text, bytes, "(%d,%d,%d,%lld)", p->batch, p->heads, p->nodes, (long long)p->prefix);
}

/** A time with four digits and no exponent. */
static void time_of(double us, char *text, size_t bytes) {
    snprintf(text, bytes, us < 1000.0 ? "%.4g us" : "%.0f us", us);
}

/** Largest multiple of the floor, and how many points there are. */
static double most_of(const struct result_file *file, int32_t *points) {
    double most = 1.0;
    *points = 0;
    for (const struct result_row *row = next_point(file, NULL); row != NULL;
         row = next_point(file, row)) {
        struct line line = line_of(file, row);
        for (int k = 0; k < COLUMNS; k++) {
            if (line.rows[k] != NULL) {
                most = fmax(most, line.rows[k]->time.median / row->floor_us);
            }
        }
        ++*points;
    }
    return most;
}

int chart_points(FILE *out, const struct result_file *peers) {
    int32_t points;
    int32_t group = 0;
    double most = most_of(peers, &points);
    char title[CHART_TITLE];
    if (points == 0) {
        return 1;
    }
    snprintf(title, sizeof title, "Times divided by the floor, %s, %s", peers->gpu, peers->date);
    chart_begin_bars(out, title,
                     "time divided by the floor, logarithmic; shorter is faster, 1 is the floor",
                     points, COLUMNS, most);
    for (const struct result_row *row = next_point(peers, NULL); row != NULL;
         row = next_point(peers, row)) {
        struct chart_bar bars[COLUMNS];
        char name[64];
        struct line line = line_of(peers, row);
        memset(bars, 0, sizeof bars);
        for (int k = 0; k < COLUMNS; k++) {
            bars[k].colour = colours[k];
            if (line.rows[k] != NULL) {
                bars[k].value = line.rows[k]->time.median / row->floor_us;
                time_of(line.rows[k]->time.median, bars[k].label, sizeof bars[k].label);
            }
        }
        name_of(&row->point, name, sizeof name);
        chart_draw_group(out, group++, name, bars, COLUMNS, most);
    }
    chart_end_bars(out, labels, colours, COLUMNS);
    return 0;
}

/** A cell: median, and percent of the floor. */
static void cell(FILE *out, const struct result_row *row, double floor_us) {
    if (row == NULL) {
        fputs("<td>not measured</td>", out);
    } else {
        char text[32];
        time_of(row->time.median, text, sizeof text);
        double share = 100.0 * floor_us / row->time.median;
        fprintf(out, "<td>%s, %.*f %%</td>", text, share < 1.0 ? 1 : 0, share);
    }
}

int chart_points_table(FILE *out, const struct result_file *peers) {
    int32_t points;
    most_of(peers, &points);
    if (points == 0) {
        return 1;
    }
    fputs("<table class=\"markdownTable\">\n<tr class=\"markdownTableHead\"><th>(B, H, Q, N)</th>"
          "<th>floor</th>",
          out);
    for (int k = 0; k < COLUMNS; k++) {
        fprintf(out, "<th>%s</th>", labels[k]);
    }
    fputs("</tr>\n", out);
    for (const struct result_row *row = next_point(peers, NULL); row != NULL;
         row = next_point(peers, row)) {
        char name[64];
        char floor[32];
        struct line line = line_of(peers, row);
        name_of(&row->point, name, sizeof name);
        time_of(row->floor_us, floor, sizeof floor);
        fprintf(out, "<tr class=\"markdownTableRowEven\"><td>%s</td><td>%s</td>", name, floor);
        for (int k = 0; k < COLUMNS; k++) {
            cell(out, line.rows[k], row->floor_us);
        }
        fputs("</tr>\n", out);
    }
    char carried[6 * RESULT_TEXT + RESULT_LONG_TEXT];
    snprintf(carried, sizeof carried, "%s, driver %s, %s, commit %.12s; %s", peers->gpu,
             peers->driver, peers->date, peers->commit, peers->peers);
    fputs("</table>\n<p>Medians, and the floor by them in percent. SGLang: its extend kernel, at Q "
          "= 1 "
          "its decode kernel. fa2 and fa3 have no tree mask and run causal. ",
          out);
    chart_put_text(out, carried);
    fputs(".</p>\n", out);
    return 0;
}
