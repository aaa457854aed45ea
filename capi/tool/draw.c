// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Trees as text.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tool.h"

#define MAX_REQUESTS 4 /**< Requests that are drawn. */
#define MAX_LINES 64   /**< Most nodes of a request that are drawn; so no path is deeper. */
#define FEW_LINES 24   /**< The same where only the lse is shown. */

/** A tree while it is drawn. */
struct drawing {
    const int32_t *parents; /* [num_nodes], or NULL if it is no tree */
    int32_t num_nodes;
    const float *lse;                   /* of head 0 of node 0 */
    int64_t stride;                     /* from node to node */
    int32_t lines;                      /* drawn so far */
    int32_t limit;                      /* most lines */
    int width;                          /* columns before the numbers */
    const struct tool_columns *columns; /* of a step, or NULL */
};

static void draw_line(struct drawing *d, const char *branch, int32_t node) {
    const struct tool_columns *c = d->columns;
    int used = printf("    %s%d%s", branch, node, c != NULL && c->accepted[node] ? " *" : "");
    printf("%*s", used < d->width ? d->width - used : 0, "");
    if (c != NULL) {
        printf(" %8lld %10.4f", (long long)c->tokens[node], (double)c->score[node]);
    }
    printf(" %10.4f\n", (double)d->lse[node * d->stride]);
    d->lines++;
}

/** Draws a node and what hangs below it; `indent` is what its children's lines start with. */
static void draw_node(struct drawing *d, int32_t node, const char *indent, const char *branch) {
    draw_line(d, branch, node);
    int32_t last = -1;
    for (int32_t i = node + 1; i < d->num_nodes; i++) {
        last = d->parents[i] == node ? i : last;
    }
    for (int32_t i = node + 1; i <= last && d->lines < d->limit; i++) {
        if (d->parents[i] == node) {
            char child_branch[4 * MAX_LINES + 8];
            char child_indent[4 * MAX_LINES + 8];
            snprintf(child_branch, sizeof child_branch, "%s%s", indent,
                     i == last ? "`-- " : "|-- ");
            snprintf(child_indent, sizeof child_indent, "%s%s", indent,
                     i == last ? "    " : "|   ");
            draw_node(d, i, child_indent, child_branch);
        }
    }
}

/** Whether node `node` of a packed mask sees node `other`. */
static int sees(const kdtr_run_args *args, int64_t first, int32_t node, int32_t other) {
    const uint32_t *row = args->mask_words + (first + node) * args->mask_stride_words;
    return (int)(row[other / 32] >> (other % 32) & 1u);
}

/**
 * The parents that give a packed mask, if any do: a node must see itself and what the last node
 * that it sees before itself, its parent, sees.
 */
static int derive_parents(const kdtr_run_args *args, int64_t first, int32_t num_nodes,
                          int32_t *parents) {
    for (int32_t i = 0; i < num_nodes; i++) {
        parents[i] = -1;
        for (int32_t j = 0; j < i; j++) {
            parents[i] = sees(args, first, i, j) ? j : parents[i];
        }
        if (i > 0 && parents[i] < 0) {
            return 0;
        }
        for (int32_t j = 0; j < num_nodes; j++) {
            int expected = j == i || (i > 0 && sees(args, first, parents[i], j));
            if (sees(args, first, i, j) != expected) {
                return 0;
            }
        }
    }
    return 1;
}

/** Finds the parents of a request; NULL if there is no tree. `scratch` holds max_nodes. */
static const int32_t *find_parents(const kdtr_problem *p, int32_t first, int32_t num_nodes,
                                   int32_t *scratch) {
    if (p->parents.data != NULL) {
        return (const int32_t *)p->parents.data + first;
    }
    /* The search looks at every pair of nodes: too slow for thousands, of which 24 are shown. */
    if (scratch == NULL || p->config.mask_mode == KDTR_MASK_NONE || num_nodes > 4096) {
        return NULL;
    }
    if (p->config.mask_mode == KDTR_MASK_PACKED) {
        return derive_parents(&p->args, first, num_nodes, scratch) ? scratch : NULL;
    }
    for (int32_t i = 0; i < num_nodes; i++) {
        scratch[i] = i - 1; /* a chain */
    }
    return scratch;
}

/** Columns that the deepest label needs, so that the numbers stand below each other. */
static int label_width(const struct drawing *d) {
    int deepest = 0;
    for (int32_t i = 0; d->parents != NULL && i < d->num_nodes; i++) {
        int depth = 0;
        for (int32_t p = d->parents[i]; p >= 0 && depth < MAX_LINES - 1; p = d->parents[p]) {
            depth++;
        }
        deepest = depth > deepest ? depth : deepest;
    }
    int width = 4 + 4 * deepest + 8;
    int least = d->columns != NULL ? 36 : 52;
    return width > least ? width : least;
}

/** One request: its tree, or its nodes where there is none. */
static void draw_request(struct drawing *d, int32_t request, const char *note) {
    char title[96];
    snprintf(title, sizeof title, "  request %d, %d node%s%s", request, d->num_nodes,
             d->num_nodes == 1 ? "" : "s", d->parents == NULL ? note : "");
    d->width = label_width(d);
    printf("%-*s", d->width, title);
    if (d->columns != NULL) {
        printf(" %8s %10s", "token", "score");
    }
    printf(" %10s\n", "lse");
    if (d->parents != NULL) {
        draw_node(d, 0, "", "");
    } else {
        for (int32_t i = 0; i < d->num_nodes && d->lines < d->limit; i++) {
            draw_line(d, "", i);
        }
    }
    if (d->lines < d->num_nodes) {
        printf("    ... %d more node%s\n", d->num_nodes - d->lines,
               d->num_nodes - d->lines == 1 ? "" : "s");
    }
}

void tool_draw_trees(const struct tool_session *session, const struct tool_columns *columns) {
    const kdtr_problem *p = &session->problem;
    const char *note = p->config.mask_mode == KDTR_MASK_NONE ? ", which see the prefix only"
                                                             : ", the mask is no tree";
    int32_t heads = p->config.num_heads;
    int32_t drawn = 0;
    int32_t active = 0;
    int32_t *scratch = malloc((size_t)p->config.max_nodes * sizeof *scratch);
    for (int32_t b = 0; b < p->config.batch; b++) {
        int32_t first = p->args.node_indptr[b];
        struct drawing d = {.num_nodes = p->args.node_indptr[b + 1] - first,
                            .lse = session->lse + (int64_t)first * heads,
                            .stride = heads,
                            .limit = columns != NULL ? MAX_LINES : FEW_LINES,
                            .columns = columns != NULL ? columns + b : NULL};
        active += d.num_nodes > 0;
        if (d.num_nodes > 0 && drawn < MAX_REQUESTS) {
            drawn++;
            d.parents = find_parents(p, first, d.num_nodes, scratch);
            draw_request(&d, b, note);
        }
    }
    if (active > drawn) {
        printf("  ... %d more request%s\n", active - drawn, active - drawn == 1 ? "" : "s");
    }
    free(scratch);
}
