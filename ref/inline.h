// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The qualifier of functions that host and device share.
 *
 * ref/ is plain C and names no CUDA keyword. A kernel source defines REF_INLINE before it
 * includes a header of ref/, and the same text then compiles for the device.
 */
#ifndef REF_INLINE_H
#define REF_INLINE_H

#ifndef REF_INLINE
/** Qualifier of a function defined in a header of ref/. */
#define REF_INLINE static inline
#endif

#endif
