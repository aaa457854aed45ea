# SPDX-License-Identifier: Apache-2.0
"""kdtr through its C ABI (capi/kdtr.h, capi/kdtr_cuda.h) by ctypes."""

import ctypes as c
import os

import torch

from points import LATENT, ROPE, ROW, InputError
from problem import SCALE

_PACKED, _CSR, _I32, _BF16 = 3, 0, 2, 5
_IMPLEMENTATIONS = {"naive": 2, "flash": 3}
_EXACT = 1


class _Error(c.Structure):
    _fields_ = [("code", c.c_int32), ("field", c.c_char * 40), ("text", c.c_char * 212)]


class _Config(c.Structure):
    _fields_ = ([("struct_size", c.c_uint32)]
                + [(name, c.c_int32) for name in (
                    "implementation", "batch", "num_heads", "latent_dim", "rope_dim", "max_nodes",
                    "mask_mode", "addressing", "page_size", "q_dtype", "kv_dtype", "o_dtype",
                    "length_dtype", "slot_dtype", "lse_base2")]
                + [("row_capacity", c.c_int64), ("max_prefix_len", c.c_int64),
                   ("scale", c.c_float), ("flags", c.c_uint32), ("num_threads", c.c_int32),
                   ("expected_batch", c.c_int32), ("reserved", c.c_uint32 * 6)])


class _Args(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32), ("reserved0", c.c_uint32),
        ("q_latent", c.c_void_p), ("q_rope", c.c_void_p),
        ("q_latent_stride", c.c_int64 * 2), ("q_rope_stride", c.c_int64 * 2),
        ("kv_latent", c.c_void_p), ("kv_rope", c.c_void_p),
        ("kv_latent_stride", c.c_int64), ("kv_rope_stride", c.c_int64), ("num_slots", c.c_int64),
        ("kv_scale", c.c_void_p), ("node_indptr", c.c_void_p), ("indptr", c.c_void_p),
        ("slots", c.c_void_p), ("tree_slots", c.c_void_p), ("row_table", c.c_void_p),
        ("row_table_stride", c.c_int64), ("table_rows", c.c_void_p), ("prefix_len", c.c_void_p),
        ("prefix_first", c.c_void_p), ("parents", c.c_void_p), ("mask_words", c.c_void_p),
        ("mask_stride_words", c.c_int64), ("o", c.c_void_p), ("o_stride", c.c_int64 * 2),
        ("lse", c.c_void_p), ("device_status", c.c_void_p), ("slot_count", c.c_int64),
        ("table_row_count", c.c_int64), ("reserved", c.c_uint64 * 2)]


class Failure(Exception):
    """A kdtr call that returned an error."""


class Library:
    """The two shared libraries and a context for device 0 that has checked exact mode. Lives as
    long as the process."""

    def __init__(self, folder):
        torch.cuda.init()
        try:
            self.core = c.CDLL(os.path.join(folder, "libkdtr.so.0"), mode=c.RTLD_GLOBAL)
            self.cuda = c.CDLL(os.path.join(folder, "libkdtr_cuda.so.0"))
        except OSError as cause:
            raise InputError(f"cannot load kdtr from {folder}: {cause}") from cause
        self.core.kdtr_plan_workspace_bytes.restype = c.c_size_t
        self.core.kdtr_plan_workspace_bytes.argtypes = [c.c_void_p]
        self.core.kdtr_run.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p,
                                       c.c_void_p]
        self.core.kdtr_plan_destroy.argtypes = [c.c_void_p]
        self.core.kdtr_status_name.restype = c.c_char_p
        self.context = c.c_void_p()
        error = _Error()
        status = self.cuda.kdtr_cuda_context_create_flags(0, c.c_uint32(1), c.byref(self.context),
                                                          c.byref(error))
        self.check(status, error)

    def check(self, status, error):
        """Raises Failure where a status is not OK."""
        if status != 0:
            name = self.core.kdtr_status_name(status).decode()
            raise Failure(f"{name}: {error.field.decode()}: {error.text.decode()}")

    def version(self):
        """Version of the library as text."""
        number = self.core.kdtr_version()
        return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}"


class Verify:
    """A plan and the arguments of one problem: packed tree mask, CSR slots, lse written.

    `workspace` may be shared by calls of one stream. Tensors that the arguments point to are kept
    alive by this object."""

    def __init__(self, library, problem, implementation, exact=False, workspace=None):
        point = problem.point
        self.library = library
        self.error = _Error()
        config = _Config(struct_size=c.sizeof(_Config),
                         implementation=_IMPLEMENTATIONS[implementation], batch=point.batch,
                         num_heads=point.heads, latent_dim=LATENT, rope_dim=ROPE,
                         max_nodes=point.nodes, mask_mode=_PACKED, addressing=_CSR, q_dtype=_BF16,
                         kv_dtype=_BF16, o_dtype=_BF16, length_dtype=_I32, slot_dtype=_I32,
                         row_capacity=point.batch * point.nodes, max_prefix_len=point.prefix,
                         scale=SCALE, flags=_EXACT if exact else 0, expected_batch=point.batch)
        self.plan = c.c_void_p()
        status = library.core.kdtr_plan_create(library.context, c.byref(config),
                                               c.byref(self.plan), c.byref(self.error))
        library.check(status, self.error)
        size = library.core.kdtr_plan_workspace_bytes(self.plan)
        if workspace is None or workspace.numel() < size:
            workspace = torch.empty(max(size, 256), dtype=torch.uint8, device="cuda")
        self.workspace = workspace
        self.o = problem.output()
        self.lse = torch.full(self.o.shape[:2], float("nan"), device="cuda")
        self._fill(problem)

    def _fill(self, problem):
        """The arguments."""
        point = problem.point
        self.kept = (problem, problem.indptr(point.nodes), problem.indptr(point.prefix))
        args = _Args(struct_size=c.sizeof(_Args))
        args.q_latent = problem.q.data_ptr()
        args.q_rope = problem.q.data_ptr() + 2 * LATENT
        args.q_latent_stride[:] = args.q_rope_stride[:] = (problem.q.stride(0), problem.q.stride(1))
        args.kv_latent = problem.pool.data_ptr()
        args.kv_rope = problem.pool.data_ptr() + 2 * LATENT
        args.kv_latent_stride = args.kv_rope_stride = ROW
        args.num_slots = problem.pool.shape[0]
        args.node_indptr = self.kept[1].data_ptr()
        args.indptr = self.kept[2].data_ptr()
        args.slots = problem.slots.data_ptr()
        args.tree_slots = problem.tree_slots.data_ptr()
        args.mask_words = problem.words.data_ptr()
        args.mask_stride_words = problem.words.shape[1]
        args.o = self.o.data_ptr()
        args.o_stride[:] = (self.o.stride(0), self.o.stride(1))
        args.lse = self.lse.data_ptr()
        self.args = args

    def __call__(self):
        """Enqueues on torch's current stream."""
        status = self.library.core.kdtr_run(self.plan, c.byref(self.args),
                                            self.workspace.data_ptr(), self.workspace.numel(),
                                            torch.cuda.current_stream().cuda_stream,
                                            c.byref(self.error))
        self.library.check(status, self.error)

    def __del__(self):
        if getattr(self, "plan", None):
            self.library.core.kdtr_plan_destroy(self.plan)
