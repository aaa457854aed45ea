// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: the paths of the tree that an item goes along, behind the key tiles that hold prefix
 * rows only. What a node sees is, in order, what comes first on its path: so nodes on one path
 * share its key tiles, each as far as its own positions reach. In a chain all nodes are on one
 * path; of a tree there are at most as many as it has leaves among the item's nodes.
 */
#ifndef KERNELS_FLASH_EXACT_PATHS_CUH
#define KERNELS_FLASH_EXACT_PATHS_CUH

#include "flash_exact.cuh"
#include "flash_weights.cuh"

/** Word `index` of a row of the mask, without bits past the last node. */
static __device__ __forceinline__ uint32_t flash_mask_word(const uint32_t *words, int32_t index,
                                                           int32_t nodes) {
    int32_t bits = nodes - index * 32;
    return bits >= 32 ? words[index] : words[index] & ((1u << bits) - 1);
}

/** Nodes that a node sees, by a lane. */
static __device__ __forceinline__ int32_t flash_count_nodes(const uint32_t *words, int32_t nodes) {
    int32_t count = 0;
    for (int32_t i = 0; i * 32 < nodes; i++) {
        count += __popc(flash_mask_word(words, i, nodes));
    }
    return count;
}

/** Whether the nodes that one node sees are the first ones that another sees, by a lane. */
static __device__ __forceinline__ bool flash_begins(const uint32_t *own, const uint32_t *other,
                                                    int32_t nodes) {
    bool longer = false; /* the other has a node more already */
    for (int32_t i = 0; i * 32 < nodes; i++) {
        uint32_t mine = flash_mask_word(own, i, nodes);
        uint32_t theirs = flash_mask_word(other, i, nodes);
        if (longer ? mine != 0 : mine != theirs) {
            /* Up to its own last node they must agree. */
            uint32_t known = mine == 0 ? 0 : 0xffffffffu >> __clz((int32_t)mine);
            if (longer || (theirs & known) != mine) {
                return false;
            }
            longer = true;
        }
    }
    return true;
}

/** The node, of those of the item, that the path of a node goes by: the last one that there is. By
 * a lane. */
static __device__ __forceinline__ int32_t flash_find_path(const struct ref_attention &a,
                                                          const struct flash_work &work,
                                                          const struct flash_exact_nodes &nodes,
                                                          int32_t node) {
    const uint32_t *words = a.mask_words + (int64_t)work.first_row * a.mask_stride_words;
    int32_t own = nodes.first + node;
    const uint32_t *row = words + own * a.mask_stride_words;
    bool sees_itself = row[own / 32] >> own % 32 & 1;
    int32_t path = nodes.count - 1;
    for (; path > node; path--) {
        const uint32_t *other = words + (int64_t)(nodes.first + path) * a.mask_stride_words;
        /* Most are no descendants, which one word tells. */
        bool may = !sees_itself || (other[own / 32] >> own % 32 & 1) != 0;
        if (may && flash_begins(row, other, work.nodes)) {
            break;
        }
    }
    return path;
}

/** Lists the nodes of the item, by a warp. */
static __device__ __forceinline__ void flash_list_nodes(const struct ref_attention &a,
                                                        struct flash_exact_shared *shared) {
    const struct flash_work &work = shared->common.work;
    struct flash_exact_nodes &nodes = shared->nodes;
    int32_t first = work.first_pair / a.num_heads;
    int32_t last = (work.first_pair + work.m16 * FLASH_M16 - 1) / a.num_heads;
    last = last < work.nodes ? last : work.nodes - 1;
    if (ptx_lane() == 0) {
        nodes.first = first;
        nodes.count = last - first + 1;
    }
    __syncwarp();
    if (a.mask_mode == REF_MASK_PARENTS) {
        ptx_grid_wait(); /* flash_exact_own_rows makes the mask */
    }
    for (int32_t node = ptx_lane(); node < nodes.count; node += 32) {
        bool masked = a.mask_mode != REF_MASK_NONE && a.mask_mode != REF_MASK_CHAIN;
        int32_t count = a.mask_mode == REF_MASK_NONE ? 0 : first + node + 1;
        int32_t path = nodes.count - 1;
        if (masked) {
            count = flash_count_nodes(a.mask_words + (int64_t)(work.first_row + first + node) *
                                                         a.mask_stride_words,
                                      work.nodes);
            path = flash_find_path(a, work, nodes, node);
        }
        nodes.sees[node] = work.prefix + count;
        nodes.path[node] = path;
    }
    flash_arrive(&shared->listed);
}

/** Number of the n-th of the nodes that a node sees, ascending, of which there are more. */
static __device__ __forceinline__ int32_t flash_nth_node(const struct ref_attention &a, int64_t row,
                                                         int32_t n) {
    if (a.mask_mode == REF_MASK_CHAIN) {
        return n;
    }
    const uint32_t *words = a.mask_words + row * a.mask_stride_words;
    const uint32_t *word = words;
    for (; n >= __popc(*word); word++) {
        n -= __popc(*word);
    }
    uint32_t bits = *word;
    for (; n > 0; n--) {
        bits &= bits - 1;
    }
    return (int32_t)(word - words) * 32 + __ffs((int32_t)bits) - 1;
}

/**
 * Sets what a row does not see to -inf, in a key tile of a path.
 *
 * @param shared of the block
 * @param heads  H
 * @param m      the m16 tile
 * @param tile   what is said of the key tile
 * @param raw    dot products
 */
static __device__ __forceinline__ void flash_hide_path(const struct flash_exact_shared *shared,
                                                       int32_t heads, int32_t m,
                                                       const struct flash_exact_tile &tile,
                                                       float raw[8]) {
    const struct flash_exact_nodes &nodes = shared->nodes;
    int32_t row = shared->common.work.first_pair + m * FLASH_M16 + ptx_lane() % 16;
    int32_t node = row / heads - nodes.first;
    node = node < nodes.count ? node : nodes.count - 1; /* of rows past the last pair */
    int32_t seen = nodes.path[node] == tile.path ? nodes.sees[node] - tile.key : 0;
    uint32_t visible = seen >= FLASH_KEYS ? 0xffffu : seen <= 0 ? 0 : (1u << seen) - 1;
    flash_hide(visible, raw);
}

#endif
