"""The context that programs are read in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from xdsl.dialects.builtin import Builtin, DenseIntOrFPElementsAttr
from xdsl.dialects.func import Func
from xdsl.ir import Dialect

from ...dialects.levels import (
    DIALECTS,
    LEVELS,
    SOURCE_DIALECTS,
    SOURCE_LEVELS,
    all_users_dialects,
    load_dialect,
)
from ...dialects.mlir import register_mlir
from ...dialects.onnx_level import register_onnx
from ...ir.context import AbeleContext
from ...ir.xdsl.dense_splats import compare_splats_by_bits


def new_context(more: Iterable[Dialect] = ()) -> AbeleContext:
    """A context with the dialects of every level, those that stand above nn, and more."""
    compare_splats_by_bits(DenseIntOrFPElementsAttr)
    context = AbeleContext(
        levels=tuple(LEVELS), sources=tuple(dict.fromkeys(SOURCE_LEVELS.values()))
    )
    for dialect in (Builtin, Func, *map(load_dialect, DIALECTS), *more):
        context.load_dialect(dialect)
    register_mlir(context)
    register_onnx(context)
    for name in SOURCE_DIALECTS:
        context.register_dialect(name, partial(load_dialect, name))
    return context


def with_users_dialects(context: AbeleContext) -> AbeleContext:
    """A context that also has all dialects of extensions; the same one if nothing is missing."""
    # A dialect of MLIR may be registered: it is loaded when a program names it.
    known = set(context.registered_dialect_names)
    missing = [each for each in all_users_dialects() if each.name not in known]
    if not missing:
        return context
    more = context.clone()
    for dialect in missing:
        more.load_dialect(dialect)
    return more
