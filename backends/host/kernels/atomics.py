# pyright: basic
"""Intrinsics for memory that several threads use at once. Needs numba.

Every access is sequentially consistent: all threads see all accesses in the same order.
"""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .vectors import I32, I64, intrinsic

ORDER = "seq_cst"

PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "amd64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}
"""By processor, the instruction for loops that wait for memory, and its arguments."""


def _pointer(builder, address):
    return builder.inttoptr(address, ir.PointerType(I64))


@intrinsic
def atomic_read(context, address):
    """The int64 at an address."""
    del context

    def generate(context, builder, sig, arguments):
        del context, sig
        return builder.load_atomic(_pointer(builder, arguments[0]), ORDER, 8)

    return types.int64(types.int64), generate


@intrinsic
def atomic_write(context, address, value):
    """Store an int64 at an address."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        address, value = arguments
        builder.store_atomic(value, _pointer(builder, address), ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _change(operation):
    """An intrinsic that changes the int64 at an address by a value, and returns the previous one.

    Args:
        operation: LLVM's name of the operation on the two.
    """

    @intrinsic
    def change(context, address, value):
        del context

        def generate(context, builder, sig, arguments):
            del context, sig
            address, value = arguments
            return builder.atomic_rmw(operation, _pointer(builder, address), value, ORDER)

        return types.int64(types.int64, types.int64), generate

    return change


atomic_add, atomic_swap = (_change(operation) for operation in ("add", "xchg"))
"""Intrinsics that add to an int64, and that replace it."""


@intrinsic
def pause(context):
    """Tell the processor that this loop waits for another thread."""
    del context

    def generate(context, builder, sig, arguments):
        del sig, arguments
        name, given = PAUSES.get(platform.machine().lower(), ("", ()))
        if name:
            kind = ir.FunctionType(ir.VoidType(), [I32] * len(given))
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [ir.Constant(I32, n) for n in given])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def call_system(context, function):
    """Call the C function without arguments at an address."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        kind = ir.FunctionType(I32, []).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kind), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate
