// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The roofline model and its fit.
 */
#include "roofline_model.h"

#include <math.h>
#include <string.h>

#include "flash_schedule.h"
#include "gpu_schedule.h"
#include "gpu_statistics.h"

/** Bytes a clock and multiprocessor at which the combine factor is 1. */
#define L2_BYTES 64.0
/** Most rounds of choosing sides of the maximum anew. */
#define MOST_ROUNDS 64
/** A pivot below this, of columns scaled to length 1, is none. */
#define SMALLEST_PIVOT 1e-9

/** What a call has of each constant, and the time below which its key tiles cannot be. */
struct load {
    double of[ROOFLINE_CONSTANTS]; /* call, item, tile, product, combine; us for one of each */
    double floor_us;
};

/** @return 0, or 1 where a plan would be refused */
static int load_of(const struct roofline_card *card, const struct bench_point *point,
                   struct load *load) {
    const struct bench_row row = {.point = *point,
                                  .implementation = KDTR_IMPLEMENTATION_FLASH,
                                  .layout = BENCH_RANDOM,
                                  .mask_mode = KDTR_MASK_PACKED,
                                  .stride = BENCH_ROW_ELEMENTS};
    struct bench_schedule cut;
    bench_schedule_row(&row, card->sms, &cut);
    if (cut.items == 0) {
        return 1;
    }
    double key_tiles = ceil((double)(point->prefix + point->nodes) / FLASH_KEYS);
    double items = ceil((double)cut.items / card->sms);
    double tiles = items * ceil(key_tiles / cut.chunks);
    double m16 = flash_m16(point->nodes * point->heads, cut.parts, 0);
    /* Of one m16 tile and key tile: 16 rows, 16 keys, scores over 576 and values over 512. */
    double operations = 2.0 * FLASH_M16 * FLASH_KEYS * (BENCH_ROW_ELEMENTS + BENCH_LATENT);
    double m16_us = operations * card->sms / card->mma_tflops * 1e-6;
    double partial = (double)cut.items * m16 * FLASH_M16 * FLASH_LATENT * 4.0;
    load->of[0] = 1.0;
    load->of[1] = items;
    load->of[2] = tiles / card->clock_mhz;
    load->of[3] = tiles * m16 * m16_us;
    load->of[4] = 2.0 * partial / (L2_BYTES * card->sms * card->clock_mhz);
    load->floor_us = fmax(bench_cache_bytes(point) / card->gather_gbps * 1e-3, load->of[3]);
    return 0;
}

/** Time of the key tiles by the constants. */
static double tiles_us(const struct load *load, const double *x) {
    return load->of[2] * x[2] + load->of[3] * x[3];
}

static double time_of(const struct load *load, const double *x) {
    return load->of[0] * x[0] + load->of[1] * x[1] + load->of[4] * x[4] +
           fmax(load->floor_us, tiles_us(load, x));
}

static void to_array(const struct roofline_constants *c, double *x) {
    const double values[ROOFLINE_CONSTANTS] = {c->call_us, c->item_us, c->tile_clocks, c->product,
                                               c->combine};
    memcpy(x, values, sizeof values);
}

double roofline_predict(const struct roofline_card *card,
                        const struct roofline_constants *constants,
                        const struct bench_point *point) {
    struct load load;
    double x[ROOFLINE_CONSTANTS];
    to_array(constants, x);
    return load_of(card, point, &load) != 0 ? 0.0 : time_of(&load, x);
}

double roofline_floor(const struct roofline_card *card, const struct bench_point *point) {
    const struct bench_row row = {.point = *point, .layout = BENCH_RANDOM};
    struct bench_ceilings ceilings;
    memset(&ceilings, 0, sizeof ceilings);
    for (int i = 0; i < BENCH_GATHER_SIZES; i++) {
        ceilings.gather_rows[i] = i + 1.0;
        ceilings.gather_random_gbps[i] = card->gather_gbps;
    }
    ceilings.mma_tflops = card->mma_tflops;
    return bench_floor_us(&row, &ceilings);
}

/**
 * Solves a x = b of n by n, symmetric and positive, by elimination with pivots.
 * @return 0, or 1 if it is singular
 */
static int solve(double a[ROOFLINE_CONSTANTS][ROOFLINE_CONSTANTS + 1], int n, double *x) {
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++) {
            best = fabs(a[i][k]) > fabs(a[best][k]) ? i : best;
        }
        if (!(fabs(a[best][k]) > SMALLEST_PIVOT)) {
            return 1;
        }
        for (int j = 0; j <= n; j++) {
            double swap = a[k][j];
            a[k][j] = a[best][j];
            a[best][j] = swap;
        }
        for (int i = k + 1; i < n; i++) {
            double factor = a[i][k] / a[k][k];
            for (int j = k; j <= n; j++) {
                a[i][j] -= factor * a[k][j];
            }
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        x[k] = a[k][n];
        for (int j = k + 1; j < n; j++) {
            x[k] -= a[k][j] * x[j];
        }
        x[k] /= a[k][k];
    }
    return 0;
}

/** What is fitted: loads, times, which side of the maximum each row is on. */
struct problem {
    struct load loads[ROOFLINE_MOST];
    double us[ROOFLINE_MOST];
    int floors[ROOFLINE_MOST]; /* 1: the floor is longer */
    int32_t count;
};

/** Part of a column in a row, relative to the row's time. */
static double part(const struct problem *p, int32_t row, int column) {
    int absent = p->floors[row] && (column == 2 || column == 3);
    return absent ? 0.0 : p->loads[row].of[column] / p->us[row];
}

/** Least squares over the chosen columns; the others are 0. @return 1 if they are dependent */
static int least_squares(const struct problem *p, const int *chosen, double *x) {
    double a[ROOFLINE_CONSTANTS][ROOFLINE_CONSTANTS + 1];
    double length[ROOFLINE_CONSTANTS];
    double scaled[ROOFLINE_CONSTANTS];
    int columns[ROOFLINE_CONSTANTS];
    int n = 0;
    memset(x, 0, ROOFLINE_CONSTANTS * sizeof x[0]);
    for (int c = 0; c < ROOFLINE_CONSTANTS; c++) {
        double square = 0.0;
        for (int32_t r = 0; r < p->count; r++) {
            square += part(p, r, c) * part(p, r, c);
        }
        if (chosen[c] && !(square > 0.0)) {
            return 1;
        }
        if (chosen[c]) {
            length[n] = sqrt(square);
            columns[n++] = c;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= n; j++) {
            a[i][j] = 0.0;
            for (int32_t r = 0; r < p->count; r++) {
                double known = p->floors[r] ? p->loads[r].floor_us / p->us[r] : 0.0;
                double other = j < n ? part(p, r, columns[j]) / length[j] : 1.0 - known;
                a[i][j] += part(p, r, columns[i]) / length[i] * other;
            }
        }
    }
    if (solve(a, n, scaled) != 0) {
        return 1;
    }
    for (int i = 0; i < n; i++) {
        x[columns[i]] = scaled[i] / length[i];
    }
    return 0;
}

/** Least squares without constants below 0: the lowest one is left out, until none is. */
static int fit_sides(const struct problem *p, double *x) {
    int chosen[ROOFLINE_CONSTANTS] = {1, 1, 1, 1, 1};
    for (;;) {
        int lowest = 0;
        if (least_squares(p, chosen, x) != 0) {
            return 1;
        }
        for (int c = 1; c < ROOFLINE_CONSTANTS; c++) {
            lowest = x[c] < x[lowest] ? c : lowest;
        }
        if (x[lowest] >= 0.0) {
            return 0;
        }
        chosen[lowest] = 0;
    }
}

static double square_of(const struct problem *p, const double *x) {
    double square = 0.0;
    for (int32_t r = 0; r < p->count; r++) {
        double difference = time_of(&p->loads[r], x) / p->us[r] - 1.0;
        square += difference * difference;
    }
    return square;
}

/** Chooses sides, fits, chooses again; keeps the best of what it saw. @return 1 if nothing fits */
static int fit_from(struct problem *p, double *best, double *least) {
    int failed = 1;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        double x[ROOFLINE_CONSTANTS];
        int changed = 0;
        if (fit_sides(p, x) != 0) {
            return failed;
        }
        failed = 0;
        double square = square_of(p, x);
        if (square < *least) {
            *least = square;
            memcpy(best, x, sizeof x);
        }
        for (int32_t r = 0; r < p->count; r++) {
            int floors = p->loads[r].floor_us > tiles_us(&p->loads[r], x);
            changed |= floors != p->floors[r];
            p->floors[r] = floors;
        }
        if (!changed) {
            return 0;
        }
    }
    return failed;
}

int roofline_fit(const struct roofline_card *card, const struct roofline_sample *samples,
                 int32_t count, struct roofline_constants *constants) {
    struct problem p;
    double x[ROOFLINE_CONSTANTS] = {0.0};
    double least = INFINITY;
    int failed = 1;
    if (count < ROOFLINE_FEWEST || count > ROOFLINE_MOST) {
        return 1;
    }
    p.count = count;
    for (int32_t r = 0; r < count; r++) {
        p.us[r] = samples[r].us;
        if (!(p.us[r] > 0.0) || load_of(card, &samples[r].point, &p.loads[r]) != 0) {
            return 1;
        }
    }
    /* The sides decide; begin with several guesses of how much longer tiles take than products. */
    for (double longer = 0.5; longer < 9.0; longer *= 2.0) {
        for (int32_t r = 0; r < count; r++) {
            p.floors[r] = p.loads[r].floor_us > longer * p.loads[r].of[3];
        }
        failed &= fit_from(&p, x, &least);
    }
    if (!failed) {
        *constants = (struct roofline_constants){x[0], x[1], x[2], x[3], x[4]};
    }
    return failed;
}

struct roofline_residual roofline_compare(const struct roofline_card *card,
                                          const struct roofline_constants *constants,
                                          const struct roofline_sample *samples, int32_t count) {
    struct roofline_residual residual = {0.0, 0.0};
    for (int32_t r = 0; r < count; r++) {
        double us = roofline_predict(card, constants, &samples[r].point);
        double difference = fabs(us / samples[r].us - 1.0);
        residual.worst = fmax(residual.worst, difference);
        residual.rms += difference * difference;
    }
    residual.rms = sqrt(residual.rms / count);
    return residual;
}
