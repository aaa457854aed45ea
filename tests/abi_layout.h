// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The layout that is the ABI on an LP64 machine: S(type, size), F(type, field, offset, size).
 * Includes nothing, so that who includes it shows that the public headers stand alone.
 */
#ifndef TESTS_ABI_LAYOUT_H
#define TESTS_ABI_LAYOUT_H

// clang-format off
/** Those of kdtr_step.h. */
#define ABI_LAYOUT_STEP(S, F) \
    S(kdtr_draft_args, 80)                   \
    F(kdtr_draft_args, struct_size, 0, 4)    \
    F(kdtr_draft_args, num_positions, 4, 4)  \
    F(kdtr_draft_args, num_ranks, 8, 4)      \
    F(kdtr_draft_args, budget, 12, 4)        \
    F(kdtr_draft_args, depth_limit, 16, 4)   \
    F(kdtr_draft_args, reserved0, 20, 4)     \
    F(kdtr_draft_args, logp, 24, 8)          \
    F(kdtr_draft_args, draft_tokens, 32, 8)  \
    F(kdtr_draft_args, stride, 40, 8)        \
    F(kdtr_draft_args, root_token, 48, 8)    \
    F(kdtr_draft_args, prefix_len, 56, 8)    \
    F(kdtr_draft_args, reserved, 64, 16)     \
    S(kdtr_draft_tree, 112)                  \
    F(kdtr_draft_tree, struct_size, 0, 4)    \
    F(kdtr_draft_tree, num_nodes, 4, 4)      \
    F(kdtr_draft_tree, status, 8, 4)         \
    F(kdtr_draft_tree, reserved0, 12, 4)     \
    F(kdtr_draft_tree, tokens, 16, 8)        \
    F(kdtr_draft_tree, parents, 24, 8)       \
    F(kdtr_draft_tree, depth, 32, 8)         \
    F(kdtr_draft_tree, rank, 40, 8)          \
    F(kdtr_draft_tree, score, 48, 8)         \
    F(kdtr_draft_tree, first_child, 56, 8)   \
    F(kdtr_draft_tree, next_sibling, 64, 8)  \
    F(kdtr_draft_tree, positions, 72, 8)     \
    F(kdtr_draft_tree, mask_words, 80, 8)    \
    F(kdtr_draft_tree, mask_stride_words, 88, 8) \
    F(kdtr_draft_tree, reserved, 96, 16)     \
    S(kdtr_accept_args, 72)                  \
    F(kdtr_accept_args, struct_size, 0, 4)   \
    F(kdtr_accept_args, num_nodes, 4, 4)     \
    F(kdtr_accept_args, path_size, 8, 4)     \
    F(kdtr_accept_args, first_row, 12, 4)    \
    F(kdtr_accept_args, tokens, 16, 8)       \
    F(kdtr_accept_args, first_child, 24, 8)  \
    F(kdtr_accept_args, next_sibling, 32, 8) \
    F(kdtr_accept_args, target_ids, 40, 8)   \
    F(kdtr_accept_args, vocab_size, 48, 8)   \
    F(kdtr_accept_args, reserved, 56, 16)    \
    S(kdtr_accept_result, 56)                \
    F(kdtr_accept_result, struct_size, 0, 4) \
    F(kdtr_accept_result, accept_num, 4, 4)  \
    F(kdtr_accept_result, last_node, 8, 4)   \
    F(kdtr_accept_result, status, 12, 4)     \
    F(kdtr_accept_result, bonus, 16, 8)      \
    F(kdtr_accept_result, accept_index, 24, 8) \
    F(kdtr_accept_result, emitted, 32, 8)    \
    F(kdtr_accept_result, reserved, 40, 16)
/** Every public struct and each of its fields. */
#define ABI_LAYOUT(S, F) \
    S(kdtr_error, 256)                          \
    F(kdtr_error, code, 0, 4)                   \
    F(kdtr_error, field, 4, 40)                 \
    F(kdtr_error, text, 44, 212)                \
    S(kdtr_plan_config, 120)                    \
    F(kdtr_plan_config, struct_size, 0, 4)      \
    F(kdtr_plan_config, implementation, 4, 4)   \
    F(kdtr_plan_config, batch, 8, 4)            \
    F(kdtr_plan_config, num_heads, 12, 4)       \
    F(kdtr_plan_config, latent_dim, 16, 4)      \
    F(kdtr_plan_config, rope_dim, 20, 4)        \
    F(kdtr_plan_config, max_nodes, 24, 4)       \
    F(kdtr_plan_config, mask_mode, 28, 4)       \
    F(kdtr_plan_config, addressing, 32, 4)      \
    F(kdtr_plan_config, page_size, 36, 4)       \
    F(kdtr_plan_config, q_dtype, 40, 4)         \
    F(kdtr_plan_config, kv_dtype, 44, 4)        \
    F(kdtr_plan_config, o_dtype, 48, 4)         \
    F(kdtr_plan_config, length_dtype, 52, 4)    \
    F(kdtr_plan_config, slot_dtype, 56, 4)      \
    F(kdtr_plan_config, lse_base2, 60, 4)       \
    F(kdtr_plan_config, row_capacity, 64, 8)    \
    F(kdtr_plan_config, max_prefix_len, 72, 8)  \
    F(kdtr_plan_config, scale, 80, 4)           \
    F(kdtr_plan_config, flags, 84, 4)           \
    F(kdtr_plan_config, num_threads, 88, 4)     \
    F(kdtr_plan_config, expected_batch, 92, 4)  \
    F(kdtr_plan_config, reserved, 96, 24)       \
    S(kdtr_run_args, 272)                       \
    F(kdtr_run_args, struct_size, 0, 4)         \
    F(kdtr_run_args, reserved0, 4, 4)           \
    F(kdtr_run_args, q_latent, 8, 8)            \
    F(kdtr_run_args, q_rope, 16, 8)             \
    F(kdtr_run_args, q_latent_stride, 24, 16)   \
    F(kdtr_run_args, q_rope_stride, 40, 16)     \
    F(kdtr_run_args, kv_latent, 56, 8)          \
    F(kdtr_run_args, kv_rope, 64, 8)            \
    F(kdtr_run_args, kv_latent_stride, 72, 8)   \
    F(kdtr_run_args, kv_rope_stride, 80, 8)     \
    F(kdtr_run_args, num_slots, 88, 8)          \
    F(kdtr_run_args, kv_scale, 96, 8)           \
    F(kdtr_run_args, node_indptr, 104, 8)       \
    F(kdtr_run_args, indptr, 112, 8)            \
    F(kdtr_run_args, slots, 120, 8)             \
    F(kdtr_run_args, tree_slots, 128, 8)        \
    F(kdtr_run_args, row_table, 136, 8)         \
    F(kdtr_run_args, row_table_stride, 144, 8)  \
    F(kdtr_run_args, table_rows, 152, 8)        \
    F(kdtr_run_args, prefix_len, 160, 8)        \
    F(kdtr_run_args, prefix_first, 168, 8)      \
    F(kdtr_run_args, parents, 176, 8)           \
    F(kdtr_run_args, mask_words, 184, 8)        \
    F(kdtr_run_args, mask_stride_words, 192, 8) \
    F(kdtr_run_args, o, 200, 8)                 \
    F(kdtr_run_args, o_stride, 208, 16)         \
    F(kdtr_run_args, lse, 224, 8)               \
    F(kdtr_run_args, device_status, 232, 8)     \
    F(kdtr_run_args, slot_count, 240, 8)        \
    F(kdtr_run_args, table_row_count, 248, 8)   \
    F(kdtr_run_args, reserved, 256, 16)         \
    S(kdtr_tensor, 104)                         \
    F(kdtr_tensor, struct_size, 0, 4)           \
    F(kdtr_tensor, dtype, 4, 4)                 \
    F(kdtr_tensor, rank, 8, 4)                  \
    F(kdtr_tensor, reserved, 12, 4)             \
    F(kdtr_tensor, shape, 16, 32)               \
    F(kdtr_tensor, bytes, 48, 8)                \
    F(kdtr_tensor, data, 56, 8)                 \
    F(kdtr_tensor, name, 64, 40)                \
    S(kdtr_problem, 1024)                       \
    F(kdtr_problem, struct_size, 0, 4)          \
    F(kdtr_problem, is_module, 4, 4)            \
    F(kdtr_problem, config, 8, 120)             \
    F(kdtr_problem, args, 128, 272)             \
    F(kdtr_problem, o, 400, 104)                \
    F(kdtr_problem, lse, 504, 104)              \
    F(kdtr_problem, parents, 608, 104)          \
    F(kdtr_problem, q_nope, 712, 104)           \
    F(kdtr_problem, kv_b_proj, 816, 104)        \
    F(kdtr_problem, module_output, 920, 104) \
    ABI_LAYOUT_STEP(S, F)
// clang-format on

#endif
