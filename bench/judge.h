// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Judges result files: what gates P1-6 and P1-8 ask of them (phases/phase1.md). Each finding is a
 * line of text, so that a log tells all of them and not the first only.
 */
#ifndef BENCH_JUDGE_H
#define BENCH_JUDGE_H

#include "result_file.h"

/** Exact mode by default mode, at the five points that phases/phase1.md names. */
#define JUDGE_EXACT_RATIO 1.25
/** The same at points of JUDGE_SHORT_PREFIX rows. */
#define JUDGE_EXACT_SHORT_RATIO 1.60
#define JUDGE_SHORT_PREFIX 4096 /**< See JUDGE_EXACT_SHORT_RATIO. */
/** Spread (p75 - p25) by the median that any point may have. */
#define JUDGE_SPREAD_RATIO 0.03
/** Spread in microseconds that any point may have. */
#define JUDGE_SPREAD_US 0.6
/** Fewest samples of a median that counts: those of what takes long (spec/measurement.md). */
#define JUDGE_SAMPLES 9
/** Bytes of workspace in default mode. */
#define JUDGE_WORKSPACE (96.0 * 1048576.0)
/** Bytes of workspace in exact mode. */
#define JUDGE_EXACT_WORKSPACE (256.0 * 1048576.0)
/** Relative L2 error against float64 above which a peer's row is no result: what it computed is
 * something else. kdtr's own limit is BENCH_RELATIVE_LIMIT. */
#define JUDGE_PEER_ERROR 1e-2
/** Error of kdtr by that of SGLang's Triton kernel. */
#define JUDGE_ERROR_RATIO 1.02
/** Inputs of each point on which errors are compared: seeds 1 to this. */
#define JUDGE_SEEDS 5

/** What was found. */
struct judge_sheet {
    FILE *out;        /**< Where lines go. */
    const char *gate; /**< Its ID, which begins each line. */
    int32_t checked;  /**< Rows that are there and were compared. */
    int32_t failed;   /**< Findings. */
    int32_t accepted; /**< Medians above "at most" that their limit accepts: lines "note ID ...". */
};

/**
 * Judges what `kdtr bench` measured: each point in default and in exact mode.
 *
 * @param file   result file
 * @param limits of the points
 * @param count  of limits
 * @param sheet  out and gate set; findings are added
 */
void judge_bench(const struct result_file *file, const struct bench_limit *limits, int32_t count,
                 struct judge_sheet *sheet);

/**
 * Judges the peers' rows, which must be there, and kdtr's beside them.
 *
 * @param file   result file
 * @param limits of the points
 * @param count  of limits
 * @param sheet  out and gate set; findings are added
 */
void judge_peers(const struct result_file *file, const struct bench_limit *limits, int32_t count,
                 struct judge_sheet *sheet);

/**
 * Compares errors with those of SGLang's Triton kernel, at each point with a tree and each seed.
 *
 * @param file   result file
 * @param limits of the points
 * @param count  of limits
 * @param sheet  out and gate set; findings are added
 */
void judge_accuracy(const struct result_file *file, const struct bench_limit *limits, int32_t count,
                    struct judge_sheet *sheet);

#endif
