// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Quartiles, interpolation and floors.
 */
#include "gpu_statistics.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Quantile of sorted samples. */
static double quantile(const double *sorted, int32_t count, double fraction) {
    double at = fraction * (count - 1);
    int32_t low = (int32_t)at;
    int32_t high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

struct bench_summary bench_summarize(double *samples, int32_t count) {
    qsort(samples, (size_t)count, sizeof samples[0], by_value);
    return (struct bench_summary){quantile(samples, count, 0.5), quantile(samples, count, 0.25),
                                  quantile(samples, count, 0.75), count};
}

double bench_interpolate(const double *x, const double *y, int32_t count, double at) {
    if (at <= x[0]) {
        return y[0];
    }
    for (int32_t i = 1; i < count; i++) {
        if (at <= x[i]) {
            double part = (log(at) - log(x[i - 1])) / (log(x[i]) - log(x[i - 1]));
            return y[i - 1] + part * (y[i] - y[i - 1]);
        }
    }
    return y[count - 1];
}

double bench_cache_bytes(const struct bench_point *point) {
    return (double)point->batch * (double)(point->prefix + point->nodes) * BENCH_ROW_ELEMENTS * 2;
}

double bench_floor_us(const struct bench_row *row, const struct bench_ceilings *ceilings) {
    const struct bench_point *p = &row->point;
    const double *gather = row->layout == BENCH_RANDOM ? ceilings->gather_random_gbps
                                                       : ceilings->gather_contiguous_gbps;
    double bytes = bench_cache_bytes(p);
    double floor_us = 0.0;
    if (gather[0] > 0.0) {
        double gbps = bench_interpolate(ceilings->gather_rows, gather, BENCH_GATHER_SIZES,
                                        bytes / BENCH_ROW_ELEMENTS / 2);
        floor_us = bytes / gbps * 1e-3;
    }
    if (ceilings->mma_tflops > 0.0) {
        double query_rows = ceil((double)p->heads * p->nodes / 16.0) * 16.0;
        double operations = 2.0 * p->batch * query_rows * (double)(p->prefix + p->nodes) *
                            (BENCH_ROW_ELEMENTS + BENCH_LATENT);
        floor_us = fmax(floor_us, operations / ceilings->mma_tflops * 1e-6);
    }
    return floor_us;
}
