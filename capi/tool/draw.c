// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Trees as text.
 */
#include <stdio.h>
#include <string.h>

#include "tool.h"

#define MAX_REQUESTS 4 /**< Requests that are drawn. */
#define MAX_LINES 24   /**< Nodes of a request that are drawn. */
#define MAX_DEPTH 16   /**< Deepest node that is drawn. */

/** A tree while it is drawn. */
struct drawing {
    const int32_t *parents; /* [num_nodes] */
    int32_t num_nodes;
    const float *lse; /* of head 0 of node 0 */
    int64_t stride;   /* from node to node */
    int32_t lines;    /* drawn so far */
};

static void draw_line(struct drawing *d, const char *branch, int32_t node) {
    char label[112];
    snprintf(label, sizeof label, "%s%d", branch, node);
    printf("    %-48s %10.4f\n", label, (double)d->lse[node * d->stride]);
    d->lines++;
}

/** Draws a node and what hangs below it; `indent` is what its children's lines start with. */
static void draw_node(struct drawing *d, int32_t node, int depth, const char *indent,
                      const char *branch) {
    if (d->lines >= MAX_LINES || depth > MAX_DEPTH) {
        return;
    }
    draw_line(d, branch, node);
    int32_t last = -1;
    for (int32_t i = node + 1; i < d->num_nodes; i++) {
        last = d->parents[i] == node ? i : last;
    }
    for (int32_t i = node + 1; i <= last; i++) {
        if (d->parents[i] == node) {
            char child_branch[96];
            char child_indent[96];
            snprintf(child_branch, sizeof child_branch, "%s%s", indent,
                     i == last ? "`-- " : "|-- ");
            snprintf(child_indent, sizeof child_indent, "%s%s", indent,
                     i == last ? "    " : "|   ");
            draw_node(d, i, depth + 1, child_indent, child_branch);
        }
    }
}

/** Nodes of a mask that has no parents: they are only listed. */
static void list_nodes(struct drawing *d) {
    for (int32_t i = 0; i < d->num_nodes && d->lines < MAX_LINES; i++) {
        draw_line(d, "", i);
    }
}

void tool_draw_trees(const struct tool_session *session) {
    const kdtr_problem *p = &session->problem;
    int32_t heads = p->config.num_heads;
    int32_t drawn = 0;
    int32_t active = 0;
    for (int32_t b = 0; b < p->config.batch; b++) {
        int32_t first = p->args.node_indptr[b];
        struct drawing d = {NULL, p->args.node_indptr[b + 1] - first,
                            session->lse + (int64_t)first * heads, heads, 0};
        active += d.num_nodes > 0;
        if (d.num_nodes == 0 || drawn == MAX_REQUESTS) {
            continue;
        }
        drawn++;
        char title[64];
        snprintf(title, sizeof title, "request %d, %d node%s", b, d.num_nodes,
                 d.num_nodes == 1 ? "" : "s");
        printf("  %-50s %10s\n", title, "lse");
        if (p->parents.data != NULL) {
            d.parents = (const int32_t *)p->parents.data + first;
            draw_node(&d, 0, 0, "", "");
        } else {
            list_nodes(&d);
        }
        if (d.lines < d.num_nodes) {
            printf("    ... %d more\n", d.num_nodes - d.lines);
        }
    }
    if (active > drawn) {
        printf("  ... %d more requests\n", active - drawn);
    }
}
