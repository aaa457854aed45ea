// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * A bar that is drawn over itself.
 */
#include "gpu_progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/** Characters of the bar. */
#define WIDTH 24

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_progress_text(int32_t done, int32_t total, double seconds, char *text, size_t size) {
    char bar[WIDTH + 1];
    int32_t filled = total > 0 ? (int32_t)((int64_t)done * WIDTH / total) : WIDTH;
    int elapsed = (int)seconds;
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[WIDTH] = '\0';
    int used = snprintf(text, size, "[%s] %d of %d rows, %d:%02d elapsed", bar, done, total,
                        elapsed / 60, elapsed % 60);
    if (done > 0 && done < total && used > 0 && (size_t)used < size) {
        int left = (int)(seconds / done * (total - done) + 0.5);
        snprintf(text + used, size - (size_t)used, ", about %d:%02d left", left / 60, left % 60);
    }
}

void bench_progress_draw(const struct bench_progress *progress, int32_t done) {
    char text[BENCH_PROGRESS_SIZE];
    if (progress->shown) {
        bench_progress_text(done, progress->total, bench_now() - progress->begin, text,
                            sizeof text);
        fprintf(stderr, "\r%s\033[K", text);
        fflush(stderr);
    }
}

void bench_progress_clear(const struct bench_progress *progress) {
    if (progress->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
