// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Writes the charts and tables of the site from the newest result files of a folder:
 *
 *     charts FOLDER OUT_FOLDER
 *
 * Every chart has its file, for a page to take in. Where the result file or its rows are not there,
 * that file says so and has no chart. Exit code 2 for a file that breaks a rule, 0 otherwise.
 */
#include "chart.h"

#include <string.h>

/** The card whose files are shown. */
#define CARD "nvidia-h200"

static int write_sweep_n(FILE *out, const struct result_file *bench) {
    return chart_sweep(out, bench, CHART_SWEEP_N);
}

static int write_share_n(FILE *out, const struct result_file *bench) {
    return chart_sweep(out, bench, CHART_SHARE_N);
}

static int write_sweep_q(FILE *out, const struct result_file *bench) {
    return chart_sweep(out, bench, CHART_SWEEP_Q);
}

static int write_sweep_h(FILE *out, const struct result_file *bench) {
    return chart_sweep(out, bench, CHART_SWEEP_H);
}

static int write_sweep_budget(FILE *out, const struct result_file *bench) {
    return chart_sweep(out, bench, CHART_SWEEP_BUDGET);
}

/** One file of the output. */
struct fragment {
    const char *name;                                     /* of the file */
    const char *what;                                     /* kind of result file */
    int (*write)(FILE *out, const struct result_file *f); /* 1: the rows are not there */
};

static const struct fragment fragments[] = {
    {"points.html", "peers", chart_points},   {"points_table.html", "peers", chart_points_table},
    {"sweep_n.html", "bench", write_sweep_n}, {"share_n.html", "bench", write_share_n},
    {"sweep_q.html", "bench", write_sweep_q}, {"sweep_h.html", "bench", write_sweep_h},
    {"served.html", "peers", chart_served},   {"sweep_budget.html", "bench", write_sweep_budget},
};

/** Writes one file. @return 0, or 1 if it cannot be written */
static int write_fragment(const struct fragment *fragment, const struct result_file *file,
                          const char *folder) {
    char path[RESULT_PATH];
    if (snprintf(path, sizeof path, "%s/%s", folder, fragment->name) >= (int)sizeof path) {
        fprintf(stderr, "charts: %s: the path is too long\n", folder);
        return 1;
    }
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        fprintf(stderr, "charts: cannot write %s\n", path);
        return 1;
    }
    if (file == NULL || fragment->write(out, file) != 0) {
        fprintf(out, "<p><i>Not shown: %s%s.</i></p>\n",
                file == NULL ? "there is no result file of " : "the result file lacks these rows: ",
                file == NULL ? (strcmp(fragment->what, "bench") == 0 ? "kdtr bench" : "the peers")
                             : strrchr(file->path, '/') + 1);
        printf("charts: no %s: %s\n", fragment->name,
               file == NULL ? "no result file" : "its rows are not there");
    }
    int failed = ferror(out);
    failed |= fclose(out) != 0;
    if (failed) {
        fprintf(stderr, "charts: cannot write %s\n", path);
        remove(path);
    }
    return failed;
}

int main(int argc, char **argv) {
    static const char *const kinds[] = {"bench", "peers"};
    struct result_file files[2];
    int found[2];
    char error[RESULT_ERROR];
    int code = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: %s FOLDER OUT_FOLDER\n", argv[0]);
        return 2;
    }
    for (int k = 0; k < 2; k++) {
        found[k] = result_open_newest(argv[1], CARD, kinds[k], &files[k], error);
        if (found[k] == RESULT_BAD) {
            fprintf(stderr, "charts: %s\n", error);
            code = 2;
        }
    }
    for (size_t i = 0; i < sizeof fragments / sizeof fragments[0] && code == 0; i++) {
        int k = strcmp(fragments[i].what, "peers") == 0;
        code = write_fragment(&fragments[i], found[k] == RESULT_FOUND ? &files[k] : NULL, argv[2]);
    }
    result_free(&files[0]);
    result_free(&files[1]);
    return code;
}
