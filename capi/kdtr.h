/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The public C ABI of kdtr: tree-verify MLA attention. Bundles, named cases and the model side of
 * MLA are in kdtr_bundle.h, CUDA contexts in kdtr_cuda.h.
 *
 * Contract: spec/c_abi.md. Shapes use B = batch, H = num_heads, R = row_capacity, L = latent_dim,
 * P = rope_dim. Strides are in elements. Every struct but kdtr_error starts with `struct_size`, set
 * by the caller to sizeof of that struct; reserved fields must be zero. Every fallible function
 * returns a kdtr_status and, where `error` is not NULL, fills it on failure. No function aborts,
 * exits, prints or keeps global state. Functions may be called from several threads unless noted.
 */
#ifndef KDTR_H
#define KDTR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks a function that the shared library exports. */
#define KDTR_API __attribute__((visibility("default")))

#define KDTR_VERSION_MAJOR 0    /**< Changes when the ABI breaks; the soname follows it. */
#define KDTR_VERSION_MINOR 1    /**< Changes when something is added. */
#define KDTR_VERSION_PATCH 0    /**< Changes otherwise. */
#define KDTR_NUMERICS_VERSION 1 /**< Changes whenever the bits of a result change. */

/** Result of a call; stored as int32. */
typedef enum kdtr_status {
    KDTR_OK = 0,                /**< Success. */
    KDTR_INVALID_ARGUMENT = 1,  /**< A pointer or value that the contract forbids. */
    KDTR_STRUCT_SIZE = 2,       /**< struct_size is not one this library knows. */
    KDTR_RESERVED_NOT_ZERO = 3, /**< A reserved field or flag is set. */
    KDTR_UNSUPPORTED = 4,       /**< Meaningful, but not for this backend or version. */
    KDTR_SIZE_OVERFLOW = 5,     /**< A size does not fit its type. */
    KDTR_MISALIGNED = 6,        /**< A pointer or stride breaks its alignment. */
    KDTR_WORKSPACE = 7,         /**< The workspace is too small. */
    KDTR_OUT_OF_MEMORY = 8,     /**< An allocation failed. */
    KDTR_NO_DEVICE = 9,         /**< There is no CUDA device or no usable driver. */
    KDTR_DEVICE_ERROR = 10,     /**< The device or its runtime reported an error. */
    KDTR_FP_ENVIRONMENT = 11,   /**< Rounding mode, FTZ or DAZ would change result bits. */
    KDTR_IO = 12,               /**< A file could not be opened, read or written. */
    KDTR_VERSION_MISMATCH = 13, /**< libkdtr and libkdtr_cuda are of different versions. */
    KDTR_NOT_FOUND = 14,        /**< No tensor or case of that name. */
    KDTR_BUNDLE_MAGIC = 32,     /**< Not a bundle. */
    KDTR_BUNDLE_VERSION = 33,   /**< A bundle of another version. */
    KDTR_BUNDLE_TRUNCATED = 34, /**< The file ends too early. */
    KDTR_BUNDLE_TRAILING = 35,  /**< Bytes follow the end. */
    KDTR_BUNDLE_HEADER = 36,    /**< Preamble, reserved bytes or padding. */
    KDTR_BUNDLE_CHECKSUM = 37,  /**< The checksum does not fit the bytes. */
    KDTR_BUNDLE_NAME = 38,      /**< A tensor name that is not allowed. */
    KDTR_BUNDLE_DUPLICATE = 39, /**< Two tensors of one name. */
    KDTR_BUNDLE_DTYPE = 40,     /**< Unknown or unfitting dtype. */
    KDTR_BUNDLE_SHAPE = 41,     /**< Rank, shape or byte count. */
    KDTR_BUNDLE_OFFSET = 42,    /**< Data that do not stand where they must. */
    KDTR_BUNDLE_MISSING = 43,   /**< A tensor that the problem needs is not there. */
    KDTR_BAD_SCALE = 64,        /**< scale is not a finite number above 0. */
    KDTR_BAD_INDPTR = 65,       /**< node_indptr or indptr: order, start or end. */
    KDTR_BAD_TREE = 66,         /**< parents: a cycle, a forward reference or no root. */
    KDTR_BAD_SLOT = 67,         /**< A slot outside the pool. */
    KDTR_BAD_LENGTH = 68        /**< A prefix or node count outside what the plan allows. */
} kdtr_status;

/** Element types. */
typedef enum kdtr_dtype {
    KDTR_U8 = 1,     /**< uint8 */
    KDTR_I32 = 2,    /**< int32 */
    KDTR_U32 = 3,    /**< uint32 */
    KDTR_I64 = 4,    /**< int64 */
    KDTR_BF16 = 5,   /**< bfloat16 */
    KDTR_F32 = 6,    /**< float */
    KDTR_F64 = 7,    /**< double */
    KDTR_F8_E4M3 = 8 /**< float8 cache; UNSUPPORTED in this version */
} kdtr_dtype;

/** Which nodes a node sees besides the prefix. */
typedef enum kdtr_mask_mode {
    KDTR_MASK_NONE = 0,    /**< No node: the prefix only. */
    KDTR_MASK_CHAIN = 1,   /**< Nodes 0 to i: causal. */
    KDTR_MASK_PARENTS = 2, /**< Ancestors and itself. */
    KDTR_MASK_PACKED = 3   /**< Any pattern of bits. */
} kdtr_mask_mode;

/** How tokens are turned into slots of the pool. */
typedef enum kdtr_addressing {
    KDTR_ADDRESSING_CSR = 0,  /**< indptr + slots, page size 1. */
    KDTR_ADDRESSING_TABLE = 1 /**< Row table with a page size. */
} kdtr_addressing;

/** Which implementation a plan uses. */
typedef enum kdtr_implementation {
    KDTR_IMPLEMENTATION_AUTO = 0,      /**< The context's best that takes the plan. */
    KDTR_IMPLEMENTATION_REFERENCE = 1, /**< float32 C reference; CPU contexts. */
    KDTR_IMPLEMENTATION_NAIVE = 2,     /**< Naive CUDA kernel; CUDA contexts. */
    KDTR_IMPLEMENTATION_FLASH = 3      /**< Flash CUDA kernel; CUDA contexts, 512 + 64, bfloat16. */
} kdtr_implementation;

/** Bits of kdtr_plan_config.flags. */
typedef enum kdtr_plan_flag {
    /** Exact mode: the row of a node has the bits of a plain decode of the same tokens, whatever
        the number of nodes and the split into prefix and tree (spec/numerics.md), if the decode's
        plan has this flag and the same H too. CUDA: the context must have been asked for it, and
        its check have passed. */
    KDTR_PLAN_EXACT = 1
} kdtr_plan_flag;

/** Bits that a run ORs into device_status[b]; the request is then treated as inactive. */
typedef enum kdtr_request_status {
    KDTR_REQUEST_ROWS = 1,   /**< node_indptr out of order or beyond row_capacity. */
    KDTR_REQUEST_NODES = 2,  /**< More nodes than max_nodes. */
    KDTR_REQUEST_PREFIX = 4, /**< Negative prefix length, or beyond max_prefix_len. */
    KDTR_REQUEST_TREE = 8    /**< parents not pointing backwards; only those rows are empty. */
} kdtr_request_status;

/** Direction of kdtr_memory_copy. */
typedef enum kdtr_copy {
    KDTR_COPY_TO_DEVICE = 0, /**< From host memory to the context's memory. */
    KDTR_COPY_TO_HOST = 1    /**< From the context's memory to host memory. */
} kdtr_copy;

/** Where and why a call failed. Owned by the caller; nothing to release. */
typedef struct kdtr_error {
    int32_t code;   /**< kdtr_status. */
    char field[40]; /**< The argument, tensor or header field at fault; "" if none. */
    char text[212]; /**< One line for people. */
} kdtr_error;

/** A CUDA stream; CPU contexts take NULL only. */
typedef struct CUstream_st *kdtr_stream;

typedef struct kdtr_context kdtr_context; /**< A device with its kernels. Immutable. */
typedef struct kdtr_plan kdtr_plan;       /**< Shapes and limits of calls. Immutable. */

/** What is fixed for all runs of a plan. Zero is a valid default where 0 is named. */
typedef struct kdtr_plan_config {
    uint32_t struct_size;   /**< sizeof(kdtr_plan_config). */
    int32_t implementation; /**< kdtr_implementation. */
    int32_t batch;          /**< B, 1 to 65,535. */
    int32_t num_heads;      /**< H, 1 to 1,024. */
    int32_t latent_dim;     /**< L, 1 to 65,536. 512 for these models. */
    int32_t rope_dim;       /**< P, 0 to 65,536. 64 for these models. */
    int32_t max_nodes;      /**< Largest number of nodes of a request, 1 to 65,536. */
    int32_t mask_mode;      /**< kdtr_mask_mode. */
    int32_t addressing;     /**< kdtr_addressing. */
    int32_t page_size;      /**< Row table: 1, 16, 32, 64 or 128. CSR: 0 or 1. */
    int32_t q_dtype;        /**< KDTR_F32 or KDTR_BF16. */
    int32_t kv_dtype;       /**< KDTR_F32 or KDTR_BF16; KDTR_F8_E4M3 is UNSUPPORTED. */
    int32_t o_dtype;        /**< KDTR_F32 or KDTR_BF16. */
    int32_t length_dtype;   /**< indptr and prefix_len: KDTR_I32 or KDTR_I64. */
    int32_t slot_dtype;     /**< slots, tree_slots, row_table: KDTR_I32 or KDTR_I64. */
    int32_t lse_base2;      /**< 0: natural logarithm. 1: base 2. */
    int64_t row_capacity;   /**< R, rows of q, o and lse, 1 to 2^31-1. */
    int64_t max_prefix_len; /**< Largest prefix of a request, 0 to 2^31-1. */
    float scale;            /**< Factor of the scores, finite and above 0. */
    uint32_t flags;         /**< kdtr_plan_flag bits. Later: partial results. */
    int32_t num_threads;    /**< CPU: threads of a run, 0 = 1, at most 256. CUDA: 0. */
    int32_t expected_batch; /**< Requests expected to be active together, 0 = 1, at most 65,535.
                                 Shapes time, workspace and last bits of FLASH: far below what
                                 runs, its waves are small; see spec/c_abi.md, "Expected batch". */
    uint32_t reserved[6];   /**< 0 */
} kdtr_plan_config;

/** What one run reads and writes. All pointers are memory of the context (device or host). */
typedef struct kdtr_run_args {
    uint32_t struct_size;        /**< sizeof(kdtr_run_args). */
    uint32_t reserved0;          /**< 0 */
    const void *q_latent;        /**< [R,H,L] absorbed queries. */
    const void *q_rope;          /**< [R,H,P] rope queries; NULL where P = 0. */
    int64_t q_latent_stride[2];  /**< Row and head stride. */
    int64_t q_rope_stride[2];    /**< Row and head stride. */
    const void *kv_latent;       /**< [num_slots,L] latent rows, also the values. */
    const void *kv_rope;         /**< [num_slots,P] rope keys; NULL where P = 0. */
    int64_t kv_latent_stride;    /**< Row stride, at least L. */
    int64_t kv_rope_stride;      /**< Row stride, at least P. */
    int64_t num_slots;           /**< Slots of the pool, which kdtr_check asks for; FLASH refuses
                                      2^32 or more. 0 = unknown to a run. */
    const float *kv_scale;       /**< NULL; scales of a float8 cache later. */
    const int32_t *node_indptr;  /**< [B+1] first row of each request in q, o, lse. */
    const void *indptr;          /**< CSR: [B+1] start of each request in slots. */
    const void *slots;           /**< CSR: slots; with tree_slots NULL the tree's come last. */
    const void *tree_slots;      /**< [R] slot of each node row, or NULL. */
    const void *row_table;       /**< Table: [rows,row_table_stride]. */
    int64_t row_table_stride;    /**< Table: elements from row to row. */
    const int32_t *table_rows;   /**< Table: [B] row of each request, or NULL for row b. */
    const void *prefix_len;      /**< Table: [B] prefix lengths. */
    const int64_t *prefix_first; /**< NULL; position of a shard's first row later. */
    const int32_t *parents;      /**< PARENTS: [R] parent of each node, -1 for the root. */
    const uint32_t *mask_words;  /**< PACKED: [R,mask_stride_words]. */
    int64_t mask_stride_words;   /**< PACKED: words a row, at least ceil(max_nodes/32). */
    void *o;                     /**< [R,H,L] output. Every row is written. */
    int64_t o_stride[2];         /**< Row and head stride. */
    float *lse;                  /**< [R,H] contiguous, or NULL. */
    uint32_t *device_status;     /**< [B] kdtr_request_status bits, ORed in, or NULL. */
    int64_t slot_count;          /**< CSR: entries of slots; 0 = unknown. */
    int64_t table_row_count;     /**< Table: rows of row_table; 0 = unknown. */
    uint64_t reserved[2];        /**< 0 */
} kdtr_run_args;

/** @name Versions and names
 * @{ */

/** @return version as major * 1,000,000 + minor * 1,000 + patch. Never fails. */
KDTR_API uint32_t kdtr_version(void);
/** @return KDTR_NUMERICS_VERSION of the library. Never fails. */
KDTR_API uint32_t kdtr_numerics_version(void);
/**
 * The name of a status.
 * @param status any value
 * @return a static string such as "BAD_SLOT"; "UNKNOWN" for others
 */
KDTR_API const char *kdtr_status_name(int32_t status);

/** @} */
/** @name Context
 * @{ */

/**
 * Creates the CPU context, whose implementation is the float32 reference.
 * @param context set to the new context, which the caller destroys; NULL on failure
 * @param error   filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, FP_ENVIRONMENT or OUT_OF_MEMORY
 */
KDTR_API int32_t kdtr_context_create_cpu(kdtr_context **context, kdtr_error *error);
/**
 * Destroys a context. Plans made from it must not be run afterwards.
 * @param context a context, or NULL
 */
KDTR_API void kdtr_context_destroy(kdtr_context *context);
/**
 * The device's name.
 * @param context a context
 * @return a string that lives as long as the context, or "" for NULL
 */
KDTR_API const char *kdtr_context_device_name(const kdtr_context *context);
/**
 * Allocates memory of the context's device (host memory for the CPU), 256-byte aligned.
 * @param context a context
 * @param bytes   size; 0 gives a valid pointer too
 * @param pointer set to the memory, which kdtr_memory_free releases; NULL on failure
 * @param error   filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, OUT_OF_MEMORY or DEVICE_ERROR
 */
KDTR_API int32_t kdtr_memory_alloc(kdtr_context *context, size_t bytes, void **pointer,
                                   kdtr_error *error);
/**
 * Releases memory of kdtr_memory_alloc. On CUDA it waits for the device.
 * @param context the same context
 * @param pointer memory, or NULL
 */
KDTR_API void kdtr_memory_free(kdtr_context *context, void *pointer);
/**
 * Copies between host and the context's memory and waits for the copy.
 * @param context   a context
 * @param target    where to
 * @param source    where from
 * @param bytes     how much
 * @param direction kdtr_copy
 * @param stream    stream that the copy follows
 * @param error     filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT or DEVICE_ERROR
 */
KDTR_API int32_t kdtr_memory_copy(kdtr_context *context, void *target, const void *source,
                                  size_t bytes, int32_t direction, kdtr_stream stream,
                                  kdtr_error *error);
/**
 * Waits until a stream is idle.
 * @param context a context
 * @param stream  a stream
 * @param error   filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT or DEVICE_ERROR
 */
KDTR_API int32_t kdtr_synchronize(kdtr_context *context, kdtr_stream stream, kdtr_error *error);

/** @} */
/** @name Plan and run
 * @{ */

/**
 * Makes a plan: host work only, no device memory. A plan may serve any number of runs, threads
 * and layers at once.
 * @param context a context, which must outlive the plan
 * @param config  shapes and limits; copied
 * @param plan    set to the new plan, which the caller destroys; NULL on failure
 * @param error   filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, STRUCT_SIZE, RESERVED_NOT_ZERO, UNSUPPORTED, SIZE_OVERFLOW,
 *         BAD_SCALE or OUT_OF_MEMORY
 */
KDTR_API int32_t kdtr_plan_create(kdtr_context *context, const kdtr_plan_config *config,
                                  kdtr_plan **plan, kdtr_error *error);
/** Destroys a plan. @param plan a plan, or NULL */
KDTR_API void kdtr_plan_destroy(kdtr_plan *plan);
/** Workspace of one run in flight. @param plan a plan @return bytes; 0 for NULL */
KDTR_API size_t kdtr_plan_workspace_bytes(const kdtr_plan *plan);
/**
 * Verify attention (spec/mla_attention.md). CUDA: enqueues on `stream`, no allocation, no
 * synchronisation, no host read of device data. CPU: returns when done.
 * Every one of the R rows of o and lse is written: a row owned by no node gets o = 0, lse = -inf.
 * Slots are trusted; kdtr_check verifies them.
 * @param plan            a plan
 * @param args            what to read and write; copied
 * @param workspace       memory of the context, 256-byte aligned, content arbitrary, used by this
 *                        run alone until it is done
 * @param workspace_bytes at least kdtr_plan_workspace_bytes
 * @param stream          stream; NULL on the CPU
 * @param error           filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, STRUCT_SIZE, RESERVED_NOT_ZERO, UNSUPPORTED, MISALIGNED,
 *         WORKSPACE, FP_ENVIRONMENT or DEVICE_ERROR; on failure before the launch nothing has
 *         been written
 */
KDTR_API int32_t kdtr_run(const kdtr_plan *plan, const kdtr_run_args *args, void *workspace,
                          size_t workspace_bytes, kdtr_stream stream, kdtr_error *error);
/**
 * Verifies what a run trusts: row bounds, lengths, slots within num_slots, parents, and that no
 * request reaches beyond slot_count entries of slots or table_row_count rows of row_table. Where
 * one of these two is 0 the caller answers for the length of that list.
 * CPU contexts only in this version. Reads the arguments, writes nothing.
 * @param plan  a plan
 * @param args  arguments of a run; outputs may be NULL
 * @param error filled on failure, or NULL
 * @return OK, what kdtr_run returns for bad arguments, UNSUPPORTED (CUDA), BAD_INDPTR,
 *         BAD_LENGTH, BAD_SLOT or BAD_TREE
 */
KDTR_API int32_t kdtr_check(const kdtr_plan *plan, const kdtr_run_args *args, kdtr_error *error);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
