// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Schedules of `kdtr bench`'s rows.
 */
#include "gpu_schedule.h"

#include <string.h>

#include "flash_exact_schedule.h"

/** The same of a row in exact mode, once its row tiles are known. */
static void schedule_exact(const struct bench_row *row, const struct ref_attention *a,
                           int32_t sm_count, struct bench_schedule *schedule) {
    const struct bench_point *p = &row->point;
    struct flash_layout layout;
    if (flash_exact_workspace_layout(a, &layout) != REF_OK) {
        return;
    }
    int32_t small = flash_exact_small(p->heads);
    int32_t key_tiles = (int32_t)((p->prefix + p->nodes + FLASH_KEYS - 1) / FLASH_KEYS);
    int32_t pairs = p->nodes * p->heads;
    int64_t tiles = (int64_t)p->batch * ((pairs + FLASH_ROWS - 1) / FLASH_ROWS);
    int32_t wave_tiles = (int32_t)(tiles < layout.wave_tiles ? tiles : layout.wave_tiles);
    struct flash_exact_wave wave = {wave_tiles * key_tiles, 0};
    schedule->row_tiles = (int32_t)tiles;
    schedule->chunks = flash_exact_chunks(small, key_tiles);
    wave.chunks = wave_tiles * schedule->chunks;
    schedule->parts = flash_exact_parts(&wave, sm_count, pairs);
    schedule->items = tiles * schedule->parts *
                      flash_exact_runs(&wave, sm_count, schedule->parts, small, key_tiles);
    schedule->waves = (layout.row_tiles + layout.wave_tiles - 1) / layout.wave_tiles;
    schedule->workspace_bytes = layout.bytes;
}

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
    if (row->exact && sm_count >= 1) {
        schedule_exact(row, &a, sm_count, schedule);
        return;
    }
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
