/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Bundles (spec/bundle_format.md), named cases, and the model side of MLA on the host. Same rules
 * as kdtr.h: status codes, no aborts, no global state.
 */
#ifndef KDTR_BUNDLE_H
#define KDTR_BUNDLE_H

#include "kdtr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kdtr_bundle kdtr_bundle; /**< An open bundle. Immutable. */

/** A tensor of a bundle. The memory is the bundle's and lives as long as it. */
typedef struct kdtr_tensor {
    uint32_t struct_size; /**< sizeof(kdtr_tensor), set by the caller. */
    int32_t dtype;        /**< kdtr_dtype. */
    int32_t rank;         /**< 0 to 4. */
    int32_t reserved;     /**< 0 */
    int64_t shape[4];     /**< Entries from rank on are 1. */
    size_t bytes;         /**< Bytes of data. */
    const void *data;     /**< Row-major elements, 64-byte aligned. */
    char name[40];        /**< NUL-terminated. */
} kdtr_tensor;

/** A problem bound from a bundle: a plan's configuration and a run's host arguments. */
typedef struct kdtr_problem {
    uint32_t struct_size;    /**< sizeof(kdtr_problem), set by the caller. */
    int32_t is_module;       /**< 1: captured from a module; q_latent is NULL, absorb first. */
    kdtr_plan_config config; /**< Filled but for implementation and num_threads. */
    kdtr_run_args args;      /**< Host pointers into the bundle; outputs are NULL. */
    kdtr_tensor o;         /**< Verify problem: expected [R,H,L]; data NULL in a module problem. */
    kdtr_tensor lse;       /**< Verify problem: expected [R,H]. */
    kdtr_tensor parents;   /**< [R]; data NULL if the bundle has none. */
    kdtr_tensor q_nope;    /**< Module problem: [R,H,D] expanded queries. */
    kdtr_tensor kv_b_proj; /**< Module problem: [H*(D+V),L] up-projections. */
    kdtr_tensor module_output; /**< Module problem: [R,H,V]. */
} kdtr_problem;

/** @name Bundles
 * @{ */

/**
 * Reads and checks a bundle file; nothing of the file stays open.
 * @param path   file name
 * @param bundle set to the new bundle, which the caller closes; NULL on failure
 * @param error  filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, IO, OUT_OF_MEMORY or a KDTR_BUNDLE_ code
 */
KDTR_API int32_t kdtr_bundle_open(const char *path, kdtr_bundle **bundle, kdtr_error *error);
/**
 * Checks a bundle in memory and copies it.
 * @param data   bytes of a bundle file
 * @param bytes  how many
 * @param bundle set to the new bundle, which the caller closes; NULL on failure
 * @param error  filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, OUT_OF_MEMORY or a KDTR_BUNDLE_ code
 */
KDTR_API int32_t kdtr_bundle_open_memory(const void *data, size_t bytes, kdtr_bundle **bundle,
                                         kdtr_error *error);
/** Closes a bundle and frees its tensors. @param bundle a bundle, or NULL */
KDTR_API void kdtr_bundle_close(kdtr_bundle *bundle);
/**
 * Writes a bundle: to a temporary file beside `path`, then renamed over it, so that `path` is
 * either the whole bundle or as it was. What is there and not a regular file is refused.
 * @param bundle a bundle
 * @param path   file name
 * @param error  filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, OUT_OF_MEMORY or IO
 */
KDTR_API int32_t kdtr_bundle_write(const kdtr_bundle *bundle, const char *path, kdtr_error *error);
/** Name of the case. @param bundle a bundle @return its name; "" for NULL */
KDTR_API const char *kdtr_bundle_name(const kdtr_bundle *bundle);
/** The file's bytes. @param bundle a bundle @param bytes set to their number @return the bytes */
KDTR_API const void *kdtr_bundle_data(const kdtr_bundle *bundle, size_t *bytes);
/** Number of tensors. @param bundle a bundle @return the number; 0 for NULL */
KDTR_API int32_t kdtr_bundle_tensor_count(const kdtr_bundle *bundle);
/**
 * A tensor by number.
 * @param bundle a bundle
 * @param index  0 to kdtr_bundle_tensor_count - 1
 * @param tensor filled; its struct_size is set by the caller
 * @param error  filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT or STRUCT_SIZE
 */
KDTR_API int32_t kdtr_bundle_tensor(const kdtr_bundle *bundle, int32_t index, kdtr_tensor *tensor,
                                    kdtr_error *error);
/**
 * A tensor by name.
 * @param bundle a bundle
 * @param name   tensor name
 * @param tensor filled; its struct_size is set by the caller
 * @param error  filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, STRUCT_SIZE or NOT_FOUND
 */
KDTR_API int32_t kdtr_bundle_find(const kdtr_bundle *bundle, const char *name, kdtr_tensor *tensor,
                                  kdtr_error *error);
/**
 * Binds the problem of a bundle and checks all of it: shapes, scale, row bounds, lengths, slots,
 * parents.
 * @param bundle  a bundle, which must outlive the problem
 * @param problem filled; its struct_size is set by the caller
 * @param error   filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, STRUCT_SIZE, BUNDLE_MISSING, BUNDLE_DTYPE, BUNDLE_SHAPE, BAD_SCALE,
 *         BAD_INDPTR, BAD_LENGTH, BAD_SLOT or BAD_TREE
 */
KDTR_API int32_t kdtr_bundle_problem(const kdtr_bundle *bundle, kdtr_problem *problem,
                                     kdtr_error *error);

/** @} */
/** @name Named cases
 * @{ */

/** Number of named cases. @return the number */
KDTR_API int32_t kdtr_case_count(void);
/** Name of a case. @param index 0 to kdtr_case_count - 1 @return static string, NULL outside */
KDTR_API const char *kdtr_case_name(int32_t index);
/** What a case is for. @param index 0 to kdtr_case_count - 1 @return static string, NULL outside */
KDTR_API const char *kdtr_case_summary(int32_t index);
/**
 * Generates a named case: the same bytes on every machine.
 * @param name   name of a case
 * @param bundle set to the new bundle, which the caller closes; NULL on failure
 * @param error  filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, NOT_FOUND, FP_ENVIRONMENT or OUT_OF_MEMORY
 */
KDTR_API int32_t kdtr_case_generate(const char *name, kdtr_bundle **bundle, kdtr_error *error);

/** @} */
/** @name Model side of MLA, on the host
 * @{ */

/**
 * Absorbs queries: q_latent[r,h,:] = q_nope[r,h,:] . W_uk[h] (spec/mla_attention.md).
 * @param rows       R
 * @param heads      H
 * @param nope_dim   D
 * @param value_dim  V
 * @param latent_dim L
 * @param q_nope     [R,H,D] contiguous
 * @param kv_b_proj  [H*(D+V),L] contiguous
 * @param q_latent   [R,H,L] contiguous output
 * @return OK or INVALID_ARGUMENT
 */
KDTR_API int32_t kdtr_absorb_query(int64_t rows, int32_t heads, int32_t nope_dim, int32_t value_dim,
                                   int32_t latent_dim, const float *q_nope, const float *kv_b_proj,
                                   float *q_latent);
/**
 * Expands outputs: out[r,h,:] = W_uv[h] . o[r,h,:] (spec/mla_attention.md).
 * @param rows       R
 * @param heads      H
 * @param nope_dim   D
 * @param value_dim  V
 * @param latent_dim L
 * @param o          [R,H,L] contiguous
 * @param kv_b_proj  [H*(D+V),L] contiguous
 * @param out        [R,H,V] contiguous output
 * @return OK or INVALID_ARGUMENT
 */
KDTR_API int32_t kdtr_expand_value(int64_t rows, int32_t heads, int32_t nope_dim, int32_t value_dim,
                                   int32_t latent_dim, const float *o, const float *kv_b_proj,
                                   float *out);

/**
 * Componentwise bound of |reference - exact| (spec/numerics.md, "Bound of the reference"). Where
 * scores are so large that float32 says nothing, a bound is infinite.
 * @param plan    a plan of a CPU context
 * @param args    arguments of a run that passed kdtr_check; outputs are not read
 * @param q_error [R,H,L] contiguous absolute errors of q_latent, or NULL for none
 * @param o_bound [R,H,L] contiguous output
 * @param lse_bound [R,H] contiguous output, natural logarithm, or NULL
 * @param error   filled on failure, or NULL
 * @return OK, UNSUPPORTED (CUDA), OUT_OF_MEMORY or what kdtr_run returns for bad arguments
 */
KDTR_API int32_t kdtr_reference_bound(const kdtr_plan *plan, const kdtr_run_args *args,
                                      const double *q_error, double *o_bound, double *lse_bound,
                                      kdtr_error *error);
/**
 * Bound of kdtr_absorb_query's rounding: what kdtr_reference_bound takes as q_error.
 * @param rows       R
 * @param heads      H
 * @param nope_dim   D
 * @param value_dim  V
 * @param latent_dim L
 * @param q_nope     [R,H,D]
 * @param kv_b_proj  [H*(D+V),L]
 * @param q_error    [R,H,L] output
 * @return OK or INVALID_ARGUMENT
 */
KDTR_API int32_t kdtr_absorb_query_bound(int64_t rows, int32_t heads, int32_t nope_dim,
                                         int32_t value_dim, int32_t latent_dim, const float *q_nope,
                                         const float *kv_b_proj, double *q_error);
/**
 * Bound of kdtr_expand_value's output, given a bound of its input.
 * @param rows       R
 * @param heads      H
 * @param nope_dim   D
 * @param value_dim  V
 * @param latent_dim L
 * @param o          [R,H,L]
 * @param o_bound    [R,H,L] bound of o
 * @param kv_b_proj  [H*(D+V),L]
 * @param out_bound  [R,H,V] output
 * @return OK or INVALID_ARGUMENT
 */
KDTR_API int32_t kdtr_expand_value_bound(int64_t rows, int32_t heads, int32_t nope_dim,
                                         int32_t value_dim, int32_t latent_dim, const float *o,
                                         const double *o_bound, const float *kv_b_proj,
                                         double *out_bound);

/** @} */
#ifdef __cplusplus
}
#endif

#endif
