// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-2 on a GPU: what the runtime says of the flash kernels. The compiler's report for sm_120
 * is checked by tests/scripts/resources.sh, without a GPU.
 */
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "flash_resources.h"

/** Shared memory that a block of sm_120 may have. */
#define BLOCK_BYTES 101376
/** Shared memory of a multiprocessor of sm_120, of which each block costs so much more. */
#define PROCESSOR_BYTES 102400
#define RESERVED_BYTES 1024
/** Registers that flash_main, and that of exact mode, is launched with; its warps wait for ever if
 * there are fewer. */
#define MAIN_REGISTERS 128

START_TEST(within_the_resources_of_sm_120) {
    int32_t beyond = 0;
    for (int32_t i = 0; i < FLASH_KERNELS; i++) {
        struct flash_resources r;
        cudaError_t error = flash_kernel_resources(i, &r);
        ck_assert_msg(error == cudaSuccess, "%s", cudaGetErrorString(error));
        int32_t block = r.static_shared + r.dynamic_shared;
        int32_t processor = r.blocks * (block + RESERVED_BYTES);
        /* A kernel without shared memory has no use for any that is resident. */
        int main =
            strcmp(r.name, "flash_main") == 0 || strncmp(r.name, "flash_exact_main", 16) == 0;
        int wrong = (main && r.registers != MAIN_REGISTERS) || r.local_bytes != 0 ||
                    block > BLOCK_BYTES || r.blocks < 1 ||
                    (block > 0 && processor > PROCESSOR_BYTES);
        printf("%s %s: %d registers, %d bytes local, %d + %d bytes shared, %d blocks: %d bytes%s\n",
               "P1-2", r.name, r.registers, r.local_bytes, r.static_shared, r.dynamic_shared,
               r.blocks, processor, wrong ? ": BEYOND" : "");
        beyond += wrong;
    }
    ck_assert_int_eq(beyond, 0);
}
END_TEST

/** @return the suite */
static Suite *gate_p1_2_suite(void) {
    Suite *suite = suite_create("P1-2 resources of sm_120");
    TCase *tcase = test_tcase(suite, "P1-2", "P1-2 the runtime's figures");
    tcase_add_test(tcase, within_the_resources_of_sm_120);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p1_2_suite};
    return check_main(makers, 1);
}
