// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Rows of attention in float64, the tokens split among threads.
 */
#include "gpu_truth.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "measure_value.h"

/** Softmax of some tokens: sums relative to the largest score. */
struct partial {
    double maximum;
    double weights;
    double o[BENCH_LATENT];
};

/** A thread's part. */
struct worker {
    const struct bench_problem *problem;
    const struct bench_pair *pairs;
    int32_t count;
    int32_t index; /* of `workers` */
    int32_t workers;
    struct partial partial[BENCH_MAX_PAIRS];
    double query[BENCH_MAX_PAIRS][BENCH_ROW_ELEMENTS];
    double cache[BENCH_ROW_ELEMENTS];
};

static void generate(uint64_t seed, uint64_t row, double *values) {
    for (int32_t k = 0; k < BENCH_ROW_ELEMENTS; k++) {
        values[k] = ref_f32_from_bf16(measure_value(seed, row * BENCH_ROW_ELEMENTS + (uint64_t)k));
    }
}

/** Eight sums side by side, which a compiler keeps in vectors. */
static double dot(const double *a, const double *b) {
    double sum[8] = {0};
    for (int32_t k = 0; k < BENCH_ROW_ELEMENTS; k += 8) {
        for (int32_t i = 0; i < 8; i++) {
            sum[i] += a[k + i] * b[k + i];
        }
    }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static void add_token(struct partial *p, double score, const double *values) {
    if (score > p->maximum) {
        double factor = exp(p->maximum - score);
        p->weights *= factor;
        for (int32_t d = 0; d < BENCH_LATENT; d++) {
            p->o[d] *= factor;
        }
        p->maximum = score;
    }
    double weight = exp(score - p->maximum);
    p->weights += weight;
    for (int32_t d = 0; d < BENCH_LATENT; d++) {
        p->o[d] += weight * values[d];
    }
}

/** Whether a row sees a token of its request. */
static int sees(const struct bench_problem *p, int64_t row, int64_t token) {
    int64_t node = token - p->point.prefix;
    int64_t words = (p->point.nodes + 31) / 32;
    return node < 0 || (p->mask_words[row * words + node / 32] >> (node % 32) & 1u) != 0;
}

/** This thread's tokens of one request, for all its pairs. */
static void walk_request(struct worker *w, int32_t request) {
    const struct bench_problem *p = w->problem;
    int64_t tokens = p->point.prefix + p->point.nodes;
    int64_t first = tokens * w->index / w->workers;
    int64_t end = tokens * (w->index + 1) / w->workers;
    for (int64_t v = first; v < end; v++) {
        int32_t slot = v < p->point.prefix
                           ? p->slots[request * p->point.prefix + v]
                           : p->tree_slots[(int64_t)request * p->point.nodes + v - p->point.prefix];
        generate(p->cache_seed, (uint64_t)slot, w->cache);
        for (int32_t i = 0; i < w->count; i++) {
            int64_t row = w->pairs[i].row;
            if (row / p->point.nodes == request && sees(p, row, v)) {
                add_token(&w->partial[i], p->scale * dot(w->query[i], w->cache), w->cache);
            }
        }
    }
}

static void *work(void *argument) {
    struct worker *w = argument;
    for (int32_t i = 0; i < w->count; i++) {
        const struct bench_pair *pair = &w->pairs[i];
        generate(w->problem->query_seed,
                 (uint64_t)(pair->row * w->problem->point.heads + pair->head), w->query[i]);
        w->partial[i].maximum = -INFINITY;
    }
    for (int32_t b = 0; b < w->problem->point.batch; b++) {
        int wanted = 0;
        for (int32_t i = 0; i < w->count; i++) {
            wanted |= w->pairs[i].row / w->problem->point.nodes == b;
        }
        if (wanted) {
            walk_request(w, b);
        }
    }
    return NULL;
}

/** Adds up the threads' parts of one pair. */
static void merge(const struct worker *workers, int32_t threads, int32_t index,
                  struct bench_pair *pair) {
    double maximum = -INFINITY;
    double weights = 0.0;
    for (int32_t t = 0; t < threads; t++) {
        maximum = fmax(maximum, workers[t].partial[index].maximum);
    }
    for (int32_t d = 0; d < BENCH_LATENT; d++) {
        pair->o[d] = 0.0;
    }
    for (int32_t t = 0; t < threads; t++) {
        const struct partial *p = &workers[t].partial[index];
        double factor = p->weights > 0.0 ? exp(p->maximum - maximum) : 0.0;
        weights += factor * p->weights;
        for (int32_t d = 0; d < BENCH_LATENT; d++) {
            pair->o[d] += factor * p->o[d];
        }
    }
    for (int32_t d = 0; weights > 0.0 && d < BENCH_LATENT; d++) {
        pair->o[d] /= weights;
    }
    pair->lse = maximum + log(weights);
}

int bench_truth(const struct bench_problem *problem, struct bench_pair *pairs, int32_t count,
                int32_t threads) {
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    pthread_t *handles = calloc((size_t)threads, sizeof *handles);
    int failed = workers == NULL || handles == NULL;
    int32_t started = 0;
    for (; !failed && started < threads; started++) {
        struct worker *w = &workers[started];
        w->problem = problem;
        w->pairs = pairs;
        w->count = count;
        w->index = started;
        w->workers = threads;
        if (pthread_create(&handles[started], NULL, work, w) != 0) {
            failed = 1;
            break;
        }
    }
    for (int32_t t = 0; t < started; t++) {
        pthread_join(handles[t], NULL);
    }
    for (int32_t i = 0; !failed && i < count; i++) {
        merge(workers, threads, i, &pairs[i]);
    }
    free(handles);
    free(workers);
    return failed;
}

struct bench_error bench_compare(const struct bench_pair *pairs, int32_t count, int32_t heads,
                                 const uint16_t *o) {
    struct bench_error result = {0.0, 0.0};
    double differences = 0.0;
    double truth = 0.0;
    for (int32_t i = 0; i < count; i++) {
        const uint16_t *row = o + (pairs[i].row * heads + pairs[i].head) * BENCH_LATENT;
        for (int32_t d = 0; d < BENCH_LATENT; d++) {
            double difference = ref_f32_from_bf16(row[d]) - pairs[i].o[d];
            /* Not fmax, which drops a NaN. */
            if (!(fabs(difference) <= result.max_abs_error)) {
                result.max_abs_error = fabs(difference);
            }
            differences += difference * difference;
            truth += pairs[i].o[d] * pairs[i].o[d];
        }
    }
    result.relative_error = sqrt(differences / truth);
    result.max_abs_error = isnan(differences) ? (double)NAN : result.max_abs_error;
    return result;
}

double bench_compare_lse(const struct bench_pair *pairs, int32_t count, int32_t heads,
                         const float *lse) {
    double largest = 0.0;
    for (int32_t i = 0; i < count; i++) {
        double difference = fabs(lse[pairs[i].row * heads + pairs[i].head] - pairs[i].lse);
        /* Not fmax, which drops a NaN. */
        if (!isnan(largest) && !(difference <= largest)) {
            largest = difference;
        }
    }
    return largest;
}
