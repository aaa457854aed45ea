// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Merging partial states (eq-merge).
 */
#include "merge.h"

#include <math.h>

#include "canonical.h"
#include "exp_log.h"

float merge_states_reference_f32(int32_t parts, int32_t width, const float *const *o,
                                 const float *lse, float *out) {
    float maximum = -INFINITY;
    int not_a_number = 0;
    for (int32_t k = 0; k < parts; k++) {
        not_a_number |= !(lse[k] < INFINITY);
        maximum = lse[k] > maximum ? lse[k] : maximum;
    }
    if (not_a_number || maximum == -INFINITY) {
        for (int32_t d = 0; d < width; d++) {
            out[d] = not_a_number ? ref_canonical_f32(NAN) : 0.0f;
        }
        return not_a_number ? ref_canonical_f32(NAN) : -INFINITY;
    }
    float weight_sum = 0.0f;
    for (int32_t k = 0; k < parts; k++) {
        weight_sum += ref_exp_f32(lse[k] - maximum);
    }
    for (int32_t d = 0; d < width; d++) {
        float total = 0.0f;
        for (int32_t k = 0; k < parts; k++) {
            float weight = ref_exp_f32(lse[k] - maximum);
            if (weight != 0.0f) { /* an absent part may hold anything */
                total += weight * o[k][d];
            }
        }
        out[d] = ref_canonical_f32(total / weight_sum);
    }
    return ref_canonical_f32(maximum + ref_log_f32(weight_sum));
}
