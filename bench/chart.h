// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Charts and tables of the site, as HTML that a page takes in. Text and lines take the page's
 * colours, so that a chart reads in the light and in the dark theme.
 */
#ifndef BENCH_CHART_H
#define BENCH_CHART_H

#include "result_file.h"

/** Most points of a series. */
#define CHART_MOST_POINTS 64
/** Bytes of a title with its end. */
#define CHART_TITLE (4 * RESULT_TEXT)
/** Most series of a chart. */
#define CHART_MOST_SERIES 8

/** A line of a chart. */
struct chart_series {
    char label[64];              /**< In the legend. */
    const char *colour;          /**< CHART_... */
    int dashed;                  /**< 1: a broken line. */
    double x[CHART_MOST_POINTS]; /**< Ascending. */
    double y[CHART_MOST_POINTS]; /**< Values. */
    int32_t count;               /**< Points. */
};

/** A chart of lines; x is logarithmic, in powers of two. */
struct chart_lines {
    const char *title;                             /**< Above it. */
    const char *x_title;                           /**< Below the axis, with its unit. */
    const char *y_title;                           /**< Beside the axis, with its unit. */
    int log_y;                                     /**< 1: logarithmic, else from 0. */
    double y_top;                                  /**< Where a linear axis ends; 0: by the data. */
    struct chart_series series[CHART_MOST_SERIES]; /**< [count] */
    int32_t count;                                 /**< Series. */
};

/** A bar of a group. */
struct chart_bar {
    const char *colour; /**< CHART_... */
    double value;       /**< At least 1; 0 for a bar that is not there. */
    char label[96];     /**< At its end. */
};

#define CHART_KDTR "#2f80d0"   /**< kdtr, default mode. */
#define CHART_EXACT "#8e62c9"  /**< kdtr, exact mode. */
#define CHART_FA2 "#d98324"    /**< FlashInfer fa2. */
#define CHART_FA3 "#c9504a"    /**< FlashInfer fa3. */
#define CHART_SGLANG "#4c9a5b" /**< SGLang. */
#define CHART_FLOOR "#888888"  /**< The floor. */

/** Writes a text in HTML, where some signs mean else. @param out HTML @param text what to write */
void chart_put_text(FILE *out, const char *text);

/**
 * Writes a chart of lines.
 *
 * @param out   HTML
 * @param lines what to draw; at least one series of at least two points
 */
void chart_draw_lines(FILE *out, const struct chart_lines *lines);

/**
 * Begins a chart of groups of bars on a logarithmic axis that begins at 1.
 *
 * @param out    HTML
 * @param title  above it
 * @param x_title below the axis
 * @param groups how many there will be
 * @param bars   of a group
 * @param most   the largest value
 */
void chart_begin_bars(FILE *out, const char *title, const char *x_title, int32_t groups,
                      int32_t bars, double most);

/**
 * Writes a group of bars.
 *
 * @param out   HTML
 * @param group its number, from 0
 * @param name  beside it
 * @param bars  of the group
 * @param count of them
 * @param most  as at the beginning
 */
void chart_draw_group(FILE *out, int32_t group, const char *name, const struct chart_bar *bars,
                      int32_t count, double most);

/**
 * Ends a chart of bars with its legend.
 *
 * @param out     HTML
 * @param labels  of the colours
 * @param colours they
 * @param count   how many
 */
void chart_end_bars(FILE *out, const char *const *labels, const char *const *colours,
                    int32_t count);

/**
 * Writes the chart of the points of phase 1: times of kdtr and its peers, as multiples of the
 * floor.
 *
 * @param out   HTML
 * @param peers result file of the peers
 * @return 0, or 1 if the file does not have the rows; then nothing is written
 */
int chart_points(FILE *out, const struct result_file *peers);

/**
 * Writes the table of the same points: times and shares of the floor.
 *
 * @param out   HTML
 * @param peers result file of the peers
 * @return 0, or 1 if the file does not have the rows; then nothing is written
 */
int chart_points_table(FILE *out, const struct result_file *peers);

/** What is drawn of a sweep. */
enum chart_sweep {
    CHART_SWEEP_N = 0, /**< Time over N. */
    CHART_SHARE_N,     /**< Percent of the floor over N. */
    CHART_SWEEP_Q,     /**< Time over Q. */
    CHART_SWEEP_H,     /**< Time over H. */
    CHART_SWEEP_BUDGET /**< Time over the budget of a draft tree. */
};

/**
 * Writes a chart of a sweep of `kdtr bench`.
 *
 * @param out   HTML
 * @param bench result file of kdtr bench
 * @param which what to draw
 * @return 0, or 1 if the file does not have the rows; then nothing is written
 */
int chart_sweep(FILE *out, const struct result_file *bench, enum chart_sweep which);

/**
 * Writes the chart of served tokens per second.
 *
 * @param out   HTML
 * @param peers result file of the peers
 * @return 0, or 1 if the file does not have the rows; then nothing is written
 */
int chart_served(FILE *out, const struct result_file *peers);

#endif
