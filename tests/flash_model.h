// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The arithmetic of the flash kernel on the host, right or wrong in one chosen way: chains of mma,
 * a lazy maximum a tile, bfloat16 weights, chunks and their combination. It shows that the bound of
 * spec/numerics.md holds for that arithmetic, and that it rejects what is wrong. Unlike the kernel
 * it adds a row's weights and chunks one after the other, and begins a new tile with the tree: the
 * bound covers either.
 */
#ifndef TESTS_FLASH_MODEL_H
#define TESTS_FLASH_MODEL_H

#include "attention.h"

/** What is wrong. */
enum flash_bug {
    FLASH_RIGHT = 0,     /**< Nothing. */
    FLASH_TRUNCATES_P,   /**< Weights are cut off to bfloat16, not rounded. */
    FLASH_SCALE,         /**< The scale is off by one part in 1,000. */
    FLASH_DROPS_KEY,     /**< The last visible key is left out. */
    FLASH_NO_RESCALE,    /**< Accumulators are not rescaled when the reference changes. */
    FLASH_COARSE_SUM,    /**< The sum is taken over weights cut off to bfloat16. */
    FLASH_EQUAL_CHUNKS,  /**< Chunks are combined without their references. */
    FLASH_LSE_BASE,      /**< lse = r + log2 l, not converted. */
    FLASH_FORGETS_CHAIN, /**< The second chain of a score is not added. */
    FLASH_BUG_COUNT      /**< Number of bugs, the right one included. */
};

/** What the model may do in another way that is right too: bits. */
enum flash_way {
    FLASH_OLD_MMA = 1,    /**< An mma is four additions without extra bits, not one with two. */
    FLASH_FOUR_CHAINS = 2 /**< A score is four chains, as of a single m16 tile, not two. */
};

/** Tiles of a chunk, ways and a bug, packed as the option of flash_model_run. */
#define FLASH_OPTION(tiles, ways, bug) ((tiles)*128 + (ways)*32 + (bug))

/**
 * A bug's name.
 *
 * @param bug enum flash_bug
 * @return what is wrong, in words
 */
const char *flash_bug_name(int32_t bug);

/**
 * Attention of a whole call.
 *
 * @param call   host pointers
 * @param option FLASH_OPTION: tiles of a chunk; bits of enum flash_way; enum flash_bug
 */
void flash_model_run(const struct ref_attention *call, int32_t option);

#endif
