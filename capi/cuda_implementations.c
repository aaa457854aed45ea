// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The table of implementations of a CUDA context.
 */
#include "cuda_implementations.h"

#include "naive.h"

static int32_t flash_supports(const struct ref_attention *call, kdtr_error *error) {
    const char *field = attention_flash_cuda_unsupported(call);
    return field == NULL ? KDTR_OK
                         : capi_fail(error, KDTR_UNSUPPORTED, field,
                                     "the flash kernel does not take this value");
}

/**
 * Queries are loaded by two elements, rows of the cache copied by 16 bytes. A stride that is never
 * taken does not count.
 */
static int32_t flash_accepts(const struct ref_attention *call, kdtr_error *error) {
    const struct {
        const char *field;
        const void *pointer;
        unsigned alignment;
    } pointers[] = {{"q_latent", call->q_latent, 4},
                    {"q_rope", call->q_rope, 4},
                    {"kv_latent", call->kv_latent, 16},
                    {"kv_rope", call->kv_rope, 16}};
    const int rows = call->row_capacity > 1;
    const int heads = call->num_heads > 1;
    const struct {
        const char *field;
        int64_t stride;
        int32_t multiple;
    } strides[] = {{"q_latent_stride", rows ? call->q_latent_stride[0] : 0, 2},
                   {"q_latent_stride", heads ? call->q_latent_stride[1] : 0, 2},
                   {"q_rope_stride", rows ? call->q_rope_stride[0] : 0, 2},
                   {"q_rope_stride", heads ? call->q_rope_stride[1] : 0, 2},
                   {"kv_latent_stride", call->kv_latent_stride, 8},
                   {"kv_rope_stride", call->kv_rope_stride, 8}};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        if ((uintptr_t)pointers[i].pointer % pointers[i].alignment != 0) {
            return capi_fail(error, KDTR_MISALIGNED, pointers[i].field,
                             "the flash kernel needs an alignment of %u bytes",
                             pointers[i].alignment);
        }
    }
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
        if (strides[i].stride % strides[i].multiple != 0) {
            return capi_fail(error, KDTR_MISALIGNED, strides[i].field,
                             "%lld: the flash kernel needs a multiple of %d",
                             (long long)strides[i].stride, strides[i].multiple);
        }
    }
    return KDTR_OK;
}

static int32_t naive_supports(const struct ref_attention *call, kdtr_error *error) {
    if (call->row_capacity > INT32_MAX / call->num_heads) {
        return capi_fail(error, KDTR_UNSUPPORTED, "row_capacity",
                         "row_capacity * num_heads is beyond one grid");
    }
    return KDTR_OK;
}

static int32_t naive_workspace(const struct ref_attention *call,
                               const struct flash_options *options, size_t *bytes) {
    (void)options;
    return attention_naive_cuda_workspace(call, bytes);
}

/** It reads element by element: what kdtr_run has checked is enough. */
static int32_t naive_accepts(const struct ref_attention *call, kdtr_error *error) {
    (void)call;
    (void)error;
    return KDTR_OK;
}

static cudaError_t naive_run(const struct ref_attention *call, const struct flash_options *options,
                             void *workspace, cudaStream_t stream) {
    (void)options;
    return attention_naive_cuda(call, workspace, stream);
}

/** From the most to the least preferred. */
static const struct cuda_implementation implementations[] = {
    {KDTR_IMPLEMENTATION_FLASH, "flash", flash_supports, attention_flash_cuda_workspace,
     attention_flash_cuda_load, flash_accepts, attention_flash_cuda},
    {KDTR_IMPLEMENTATION_NAIVE, "naive", naive_supports, naive_workspace, attention_naive_cuda_load,
     naive_accepts, naive_run},
};

int32_t cuda_implementation_count(void) {
    return (int32_t)(sizeof implementations / sizeof implementations[0]);
}

const struct cuda_implementation *cuda_implementation_at(int32_t index) {
    return &implementations[index];
}

const struct cuda_implementation *cuda_implementation_find(int32_t id) {
    for (int32_t i = 0; i < cuda_implementation_count(); i++) {
        if (implementations[i].id == id) {
            return &implementations[i];
        }
    }
    return NULL;
}

int32_t cuda_implementation_choose(int32_t id, uint32_t loaded, const struct ref_attention *call,
                                   const struct cuda_implementation **chosen, kdtr_error *error) {
    int32_t status = KDTR_UNSUPPORTED;
    if (id != KDTR_IMPLEMENTATION_AUTO) {
        *chosen = cuda_implementation_find(id);
        if (*chosen == NULL) {
            return capi_fail(error, KDTR_UNSUPPORTED, "implementation",
                             "a CUDA context has no implementation %d", id);
        }
        return (loaded >> (*chosen - implementations) & 1) != 0
                   ? (*chosen)->supports(call, error)
                   : capi_fail(error, KDTR_UNSUPPORTED, "implementation",
                               "there is no code of %s for this device", (*chosen)->name);
    }
    for (int32_t i = 0; status != KDTR_OK && i < cuda_implementation_count(); i++) {
        if ((loaded >> i & 1) == 0) {
            continue;
        }
        *chosen = &implementations[i];
        /* What the last one says is what is reported: it takes the most. */
        int last = i + 1 == cuda_implementation_count();
        status = implementations[i].supports(call, last ? error : NULL);
    }
    return status;
}
