// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * How an item's queries come: the value warps, which have no weights yet, load them to two slots of
 * the ring that have no keys yet, two m16 tiles a round, and the score warps take them from there
 * as A fragments (flash_take_queries). All lanes of a load lie on four lines of 128 bytes, and the
 * code is short: at the beginning of a kernel it has to come from memory as well.
 */
#ifndef KERNELS_FLASH_QUERIES_CUH
#define KERNELS_FLASH_QUERIES_CUH

#include "flash_block.cuh"

/** Loads of 16 bytes a lane and row: eight of the latent, one of the rope query. */
#define FLASH_QUERY_LOADS ((FLASH_LATENT + FLASH_ROPE) / 64)

/** Where a lane's part of a query lies. */
struct flash_query {
    const uint16_t *latent; /**< Eight elements of each 64. */
    const uint16_t *rope;   /**< Eight of the 64. */
};

/** This lane's part of the query of a row of the item. */
static __device__ __forceinline__ struct flash_query
flash_find_query(const struct ref_attention &a, const struct flash_work &work, int32_t index) {
    int32_t pair = work.first_pair + index;
    int32_t pairs = work.nodes * a.num_heads;
    /* Past the last pair it is repeated: what comes of it is not stored. */
    pair = pair < pairs ? pair : pairs - 1;
    int32_t node = flash_quotient(pair, (int32_t)ptx_anew((uint32_t)a.num_heads));
    uint32_t row = (uint32_t)(work.first_row + node);
    uint32_t head = (uint32_t)(pair - node * a.num_heads);
    int32_t element = ptx_lane() % 8 * 8;
    struct flash_query query;
    query.latent = (const uint16_t *)a.q_latent + row * a.q_latent_stride[0] +
                   head * a.q_latent_stride[1] + element;
    query.rope =
        (const uint16_t *)a.q_rope + row * a.q_rope_stride[0] + head * a.q_rope_stride[1] + element;
    return query;
}

/** Whether all queries are 16-byte aligned. */
static __device__ __forceinline__ bool flash_queries_aligned(const struct ref_attention &a) {
    uint32_t bits = (uint32_t)(uint64_t)a.q_latent | (uint32_t)(uint64_t)a.q_rope |
                    2 * (uint32_t)(a.q_latent_stride[0] | a.q_latent_stride[1] |
                                   a.q_rope_stride[0] | a.q_rope_stride[1]);
    return ptx_anew(bits) % 16 == 0;
}

/** Loads this lane's part of a query. */
static __device__ __forceinline__ void flash_load_query(const struct flash_query &query,
                                                        uint4 part[FLASH_QUERY_LOADS]) {
#pragma unroll
    for (int32_t i = 0; i < FLASH_QUERY_LOADS; i++) {
        part[i] = *(const uint4 *)(i + 1 < FLASH_QUERY_LOADS ? query.latent + i * 64 : query.rope);
    }
}

/** Stores this lane's part of a query. */
static __device__ __forceinline__ void flash_put_query(const uint4 part[FLASH_QUERY_LOADS],
                                                       unsigned char *target) {
#pragma unroll
    for (int32_t i = 0; i < FLASH_QUERY_LOADS; i++) {
        *(uint4 *)(target + i * 128) = part[i];
    }
}

/** Copies this lane's part of a query that is 4-byte aligned only. */
static __device__ __forceinline__ void flash_copy_query(const struct flash_query &query,
                                                        unsigned char *target) {
#pragma unroll 1
    for (int32_t i = 0; i < FLASH_QUERY_LOADS; i++) {
        const uint32_t *words =
            (const uint32_t *)(i + 1 < FLASH_QUERY_LOADS ? query.latent + i * 64 : query.rope);
        *(uint4 *)(target + i * 128) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

/**
 * Brings the queries of the item to the score warps, by the value warps: warp v loads rows 4 v to
 * 4 v + 3 of a round's 32. Both rounds are asked for at once.
 *
 * @param launch the launch
 * @param shared of the block
 * @param warp   number of the value warp
 */
static __device__ __forceinline__ void
flash_load_queries(const struct flash_launch &launch, struct flash_shared *shared, int32_t warp) {
    const struct flash_work &work = shared->work;
    if (work.m16 == 0) { /* nothing to do, and quickly */
        flash_arrive(&shared->loaded[0]);
        flash_arrive(&shared->loaded[1]);
        return;
    }
    /* The m16 tiles from this warp's first one: it has rows of the first and the third. */
    int32_t m16 = flash_uniform(work.m16) - warp / 4;
    uint32_t turn = (uint32_t)flash_uniform((int32_t)work.turn);
    int32_t row = warp * 4 + ptx_lane() / 8;
    unsigned char *target =
        flash_query_slot(shared, warp / 4) + row % FLASH_M16 * FLASH_PITCH + ptx_lane() % 8 * 16;
    bool aligned = flash_queries_aligned(launch.call);
    uint4 later[FLASH_QUERY_LOADS];
#pragma unroll
    for (int32_t i = 0; i < FLASH_QUERY_LOADS; i++) {
        later[i] = make_uint4(0, 0, 0, 0);
    }
    if (m16 > 0) {
        struct flash_query first = flash_find_query(launch.call, work, row);
        if (aligned) {
            uint4 part[FLASH_QUERY_LOADS];
            flash_load_query(first, part);
            if (m16 > 2) {
                flash_load_query(flash_find_query(launch.call, work, row + 2 * FLASH_M16), later);
            }
            flash_put_query(part, target);
        } else {
            flash_copy_query(first, target);
        }
    }
    ptx_fence_async(); /* keys will be copied there */
    flash_arrive(&shared->loaded[0]);
    if (m16 > 2) {
        ptx_mbarrier_wait(&shared->taken[0], turn % 2);
        if (aligned) {
            flash_put_query(later, target);
        } else {
            flash_copy_query(flash_find_query(launch.call, work, row + 2 * FLASH_M16), target);
        }
        ptx_fence_async();
    }
    flash_arrive(&shared->loaded[1]);
}

#endif
