// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Fits the roofline model to a measured file and prints what it says of other cards: a projection,
 * kept apart from measurements by its heading, its format and its file's name.
 *
 *     roofline RESULT_FILE PROJECTION_FILE
 */
#include <string.h>

#include "result_file.h"
#include "roofline_model.h"

/** Rate at which the memory of an H200 is specified, GB/s. */
#define H200_MEMORY_GBPS 4800.0

/** A card that was not measured, by its data sheet. */
struct sheet {
    const char *name;
    int32_t sms;
    double memory_gbps;
    double mma_tflops; /* mma.sync of bf16 */
};

/* 1,024 operations a clock and multiprocessor make 504 TFLOP/s of 188 at 2.62 GHz; the RTX 5090 has
 * half of them, and is taken at the same clock. */
static const struct sheet sheets[] = {{"RTX PRO 6000", 188, 1792.0, 504.0},
                                      {"RTX 5090", 170, 1792.0, 504.0 / 188.0 * 170.0 / 2.0}};
#define SHEETS (sizeof sheets / sizeof sheets[0])
#define SHEET_CLOCK_MHZ 2618.0 /**< At which those rates are reached. */

static const char *const assumptions[] = {
    "sm_120 gathers at the same share of its memory's specified rate as the H200 (4,800 GB/s), and "
    "no cache row comes from a larger L2",
    "partial outputs stay in the L2 and move as many bytes a clock and multiprocessor as on the "
    "H200",
    "a key tile's chain of instructions takes as many clocks as on the H200, at 2.62 GHz",
    "where products at the mma.sync peak take longer than that chain, which they do not on the "
    "H200, they take no longer than at that peak",
    "a call and an item begin and end in the same time as on the H200",
    "each card is cut by its own schedule, for its own number of multiprocessors"};
#define ASSUMPTIONS (sizeof assumptions / sizeof assumptions[0])

/** What the fit is made of. */
struct fit {
    struct roofline_card card;
    struct roofline_constants constants;
    struct roofline_sample samples[ROOFLINE_MOST];
    int32_t count;
    struct roofline_residual residual;
};

/** The rows that the model is about, a point once. */
static void take_samples(const struct result_file *file, struct fit *fit) {
    struct result_row like = {.op = "verify",
                              .implementation = "kdtr_flash",
                              .mask = "tree",
                              .layout = "random",
                              .row_stride_bytes = 2 * BENCH_ROW_ELEMENTS};
    const struct result_row *row = NULL;
    while ((row = result_find(file, &like, row)) != NULL && fit->count < ROOFLINE_MOST) {
        int again = 0;
        for (int32_t i = 0; i < fit->count; i++) {
            again |= result_same_point(&fit->samples[i].point, &row->point);
        }
        if (!again) {
            fit->samples[fit->count++] = (struct roofline_sample){row->point, row->time.median};
        }
    }
}

/** The card that was measured, as the model takes it. */
static struct roofline_card measured_card(const struct result_file *file) {
    const struct bench_ceilings *c = &file->ceilings;
    return (struct roofline_card){file->gpu, file->sms, file->sm_clock_mhz,
                                  c->gather_random_gbps[BENCH_GATHER_SIZES - 1], c->mma_tflops};
}

static struct roofline_card projected_card(const struct sheet *sheet, const struct fit *fit) {
    double share = sheet->memory_gbps / H200_MEMORY_GBPS;
    return (struct roofline_card){sheet->name, sheet->sms, SHEET_CLOCK_MHZ,
                                  fit->card.gather_gbps * share, sheet->mma_tflops};
}

static void print_point(const struct bench_point *p) {
    char text[64];
    snprintf(text, sizeof text, "(%d,%d,%d,%lld)", p->batch, p->heads, p->nodes,
             (long long)p->prefix);
    printf("%-20s", text);
}

static void print_fit(const struct result_file *file, const struct fit *fit) {
    const struct roofline_constants *c = &fit->constants;
    printf("Fitted on %s, %d rows of %s\n", file->gpu, fit->count, file->path);
    printf("call %.2f us, item %.2f us, key tile %.0f clocks, for each 16 rows %.2f of their "
           "products' time more, partial outputs %.2f times their time at 64 bytes a clock\n\n",
           c->call_us, c->item_us, c->tile_clocks, c->product, c->combine);
    printf("%-20s %10s %10s %10s\n", "(B,H,Q,N)", "measured", "model", "difference");
    for (int32_t i = 0; i < fit->count; i++) {
        const struct roofline_sample *s = &fit->samples[i];
        double us = roofline_predict(&fit->card, c, &s->point);
        print_point(&s->point);
        printf(" %10.2f %10.2f %9.1f %%\n", s->us, us, 100.0 * (us / s->us - 1.0));
    }
    printf("worst %.1f %%, root of the mean square %.1f %%\n\n", 100.0 * fit->residual.worst,
           100.0 * fit->residual.rms);
}

static void print_projection(const struct fit *fit) {
    printf("PROJECTION, us. Nothing below was measured on these cards. Where gathers or products "
           "limit, it takes their full rates: nearer to the best than to a forecast. It assumes "
           "that\n");
    for (size_t i = 0; i < ASSUMPTIONS; i++) {
        printf("  * %s;\n", assumptions[i]);
    }
    printf("\n%-20s", "(B,H,Q,N)");
    for (size_t k = 0; k < SHEETS; k++) {
        printf(" %14s (floor)", sheets[k].name);
    }
    printf("\n");
    for (int32_t i = 0; i < fit->count; i++) {
        print_point(&fit->samples[i].point);
        for (size_t k = 0; k < SHEETS; k++) {
            struct roofline_card card = projected_card(&sheets[k], fit);
            const struct bench_point *p = &fit->samples[i].point;
            printf(" %13.1f (%6.1f)", roofline_predict(&card, &fit->constants, p),
                   roofline_floor(&card, p));
        }
        printf("\n");
    }
}

static void write_rows(FILE *out, const struct fit *fit) {
    fprintf(out, "  \"projected_us\": [");
    for (size_t k = 0; k < SHEETS; k++) {
        struct roofline_card card = projected_card(&sheets[k], fit);
        for (int32_t i = 0; i < fit->count; i++) {
            const struct bench_point *p = &fit->samples[i].point;
            fprintf(out,
                    "%s    {\"card\": \"%s\", \"B\": %d, \"H\": %d, \"Q\": %d, \"N\": %lld, "
                    "\"us\": %.1f, \"floor_us\": %.1f}",
                    k == 0 && i == 0 ? "\n" : ",\n", card.name, p->batch, p->heads, p->nodes,
                    (long long)p->prefix, roofline_predict(&card, &fit->constants, p),
                    roofline_floor(&card, p));
        }
    }
    fprintf(out, "\n  ]}\n");
}

/** Writes the projection: no result file, and none that a reader of them would take. @return 0, or
 * 1 if it cannot be written, in which case no file is left */
static int write_projection(const char *path, const struct result_file *file,
                            const struct fit *fit) {
    const struct roofline_constants *c = &fit->constants;
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return 1;
    }
    fprintf(out,
            "{\"projection\": 1,\n  \"warning\": \"not measured: a model, fitted on another "
            "card\",\n  \"fitted_on\": {\"gpu\": \"%s\", \"rows\": %d, \"date\": \"%s\", "
            "\"commit\": \"%s\", \"sources_sha256\": \"%s\"},\n",
            file->gpu, fit->count, file->date, file->commit, file->sources_sha256);
    fprintf(out,
            "  \"constants\": {\"call_us\": %.4f, \"item_us\": %.4f, \"tile_clocks\": %.2f, "
            "\"product\": %.4f, \"combine\": %.4f},\n  \"residual\": {\"worst\": %.4f, \"rms\": "
            "%.4f},\n  \"assumptions\": [",
            c->call_us, c->item_us, c->tile_clocks, c->product, c->combine, fit->residual.worst,
            fit->residual.rms);
    for (size_t i = 0; i < ASSUMPTIONS; i++) {
        fprintf(out, "%s    \"%s\"", i == 0 ? "\n" : ",\n", assumptions[i]);
    }
    fprintf(out, "],\n");
    write_rows(out, fit);
    int failed = ferror(out);
    failed |= fclose(out) != 0;
    if (failed) {
        remove(path);
    }
    return failed;
}

int main(int argc, char **argv) {
    static struct fit fit;
    struct result_file file;
    char error[RESULT_ERROR];
    if (argc != 3) {
        fprintf(stderr, "usage: %s RESULT_FILE PROJECTION_FILE\n", argv[0]);
        return 2;
    }
    if (result_read(argv[1], &file, error) != 0) {
        fprintf(stderr, "roofline: %s\n", error);
        result_free(&file);
        return 2;
    }
    int code = 2;
    fit.card = measured_card(&file);
    take_samples(&file, &fit);
    if (strcmp(file.gpu, "NVIDIA H200") != 0 || !file.has_ceilings) {
        fprintf(stderr, "roofline: %s: not of an H200, or without ceilings\n", argv[1]);
    } else if (roofline_fit(&fit.card, fit.samples, fit.count, &fit.constants) != 0) {
        fprintf(stderr, "roofline: %s: its %d rows do not determine the model\n", argv[1],
                fit.count);
    } else {
        fit.residual = roofline_compare(&fit.card, &fit.constants, fit.samples, fit.count);
        print_fit(&file, &fit);
        print_projection(&fit);
        code = write_projection(argv[2], &file, &fit);
        if (code != 0) {
            fprintf(stderr, "roofline: cannot write %s\n", argv[2]);
        }
    }
    result_free(&file);
    return code;
}
