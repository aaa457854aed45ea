// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The progress bar of `kdtr bench`, on standard error.
 */
#ifndef BENCH_GPU_PROGRESS_H
#define BENCH_GPU_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/** Bytes that hold any text of bench_progress_text. */
#define BENCH_PROGRESS_SIZE 128

/** A run whose progress is shown. */
struct bench_progress {
    int32_t shown; /**< 0: nothing is shown. */
    int32_t total; /**< Rows of the run. */
    double begin;  /**< bench_now() at its start. */
};

/** A clock that never goes back. @return seconds */
double bench_now(void);

/**
 * The line of a bar: rows done, time elapsed, time left if the others take as long.
 *
 * @param done    rows done, at most `total`
 * @param total   rows of the run
 * @param seconds since its start
 * @param text    where to; BENCH_PROGRESS_SIZE bytes hold it
 * @param size    bytes of text
 */
void bench_progress_text(int32_t done, int32_t total, double seconds, char *text, size_t size);

/** Draws the bar. @param progress the run @param done rows done */
void bench_progress_draw(const struct bench_progress *progress, int32_t done);

/** Takes the bar away, before something else is printed. @param progress the run */
void bench_progress_clear(const struct bench_progress *progress);

#endif
