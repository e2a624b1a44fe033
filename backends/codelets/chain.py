"""What follows the value of a body: the stages of its chain, on every result element.

A chain works in the dtype that the machine computes in, and its end is rounded once into the
result. A result of that dtype is where the stages work, in place; for a narrower one, and for one
that lies on what a stage reads, the values stay in scratch until they are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..host.chains import stages_call
from ..host.fast import address
from .calls import SCRATCH_BYTES, Array, Call, Scratch, chunks, coalesced
from .cells import Cells, alike_calls
from .scalar import compute_dtype, convert_into, is_floating, scalar_function

Codelet = Callable[[Cells, Scratch], list[Call]]
"""The calls that compute the cells of one shape class."""


def chaining_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a chain works in, for operands, extras and a result of these: float64 if any
    is, else float32."""
    return compute_dtype(*filter(is_floating, dtypes))


def chained(codelet: Codelet, cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls of a codelet on cells, then those of the chain of their body, if there is one."""
    if not cells.body.then:
        return codelet(cells, scratch)
    own = cells.body.own_arity
    dtype = chaining_dtype(*(a.dtype for a in cells.operands), cells.result.dtype)
    plain = replace(cells.body, then=())
    calls: list[Call] = []
    for piece in _pieces(cells, dtype):
        result = piece.result_once
        value, target = result, piece.result
        under = {address(a) for a in piece.operands[own:]}
        if result.dtype != dtype or address(result) in under:
            value = scratch.take("chained", result.shape, dtype)
            target = as_strided(
                value,
                piece.result.shape,
                [0 if d in piece.merged else s for d, s in enumerate(value.strides)],
            )
        own_cells = replace(piece, body=plain, operands=piece.operands[:own], result=target)
        calls += codelet(own_cells, scratch)
        calls += _stage_calls(piece, value, scratch)
    return calls


def _pieces(cells: Cells, dtype: np.dtype[Any]) -> Iterator[Cells]:
    """Cells in parts whose values stay in the cache between function and chain.

    Those that are merged are one part: the order of a sum must not depend on its chain.
    """
    if cells.body.combiner is not None:
        yield cells
        return
    for index in chunks(cells.result.shape, SCRATCH_BYTES // 4 // dtype.itemsize):
        operands = tuple(a[index] for a in cells.operands)
        yield Cells(cells.body, operands, cells.result[index], ())


def _stage_calls(cells: Cells, value: Array, scratch: Scratch) -> list[Call]:
    """The calls that apply the chain of cells to values in place, and put them into the result."""
    stages, result, own = cells.body.then, cells.result_once, cells.body.own_arity
    if scratch.fast:

        def call(operands: Sequence[Array]) -> Call | None:
            extras = [cells.once(a) for a in operands[own:]]
            return stages_call(stages, extras, value, result)

        compiled = alike_calls(cells, range(own, len(cells.operands)), call)
        if compiled:
            return compiled
    extras = [cells.once(a) for a in cells.operands[own:]]
    *others, value, result = coalesced(*extras, value, result)
    is_apart = address(value) != address(result)
    calls: list[Call] = []
    for index in chunks(result.shape, SCRATCH_BYTES // 4 // value.itemsize):
        piece, rest = value[index], [a[index] for a in others]
        for stage in stages:
            inputs, rest = rest[: stage.extras], rest[stage.extras :]
            inputs.insert(stage.at, piece)
            apply = scalar_function(stage.function).apply
            calls.append((_apply, (apply, stage.parameters, inputs, piece)))
        if is_apart:
            calls.append((convert_into, (piece, result[index])))
    return calls


def _apply(
    apply: Callable[..., Array], parameters: tuple[float, ...], inputs: list[Array], out: Array
) -> None:
    apply(parameters, *inputs, out=out)
