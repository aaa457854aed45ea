// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Schedules of bench_gpu's rows.
 */
#include "gpu_schedule.h"

#include <string.h>

#include "flash_schedule.h"

void bench_schedule_row(const struct bench_row *row, int32_t sm_count,
                        struct bench_schedule *schedule) {
    const struct bench_point *p = &row->point;
    const struct flash_split split = {sm_count, p->batch};
    struct flash_layout layout;
    struct ref_attention a;
    memset(&a, 0, sizeof a);
    memset(schedule, 0, sizeof *schedule);
    a.batch = p->batch;
    a.num_heads = p->heads;
    a.max_nodes = p->nodes;
    a.max_prefix_len = p->prefix;
    a.row_capacity = (int64_t)p->batch * p->nodes;
    a.mask_mode = row->mask_mode;
    if (sm_count < 1 || flash_workspace_layout(&a, &split, &layout) != REF_OK) {
        return;
    }
    int32_t key_tiles = (int32_t)((p->prefix + p->nodes + FLASH_KEYS - 1) / FLASH_KEYS);
    struct flash_cut cut = flash_cut_lengths(&split, p->nodes * p->heads, key_tiles);
    schedule->row_tiles = p->batch * cut.row_tiles;
    schedule->parts = cut.parts;
    schedule->chunks = cut.chunks;
    schedule->items = (int64_t)schedule->row_tiles * cut.parts * cut.chunks;
    schedule->waves = (layout.row_tiles + layout.wave_tiles - 1) / layout.wave_tiles;
    schedule->workspace_bytes = layout.bytes;
}
