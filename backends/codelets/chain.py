"""The stages of a body's chain, applied to every element of its result.

A chain works in the dtype that the machine computes in, and rounds once, into the result. If the
result has that dtype, the stages work in place on it. If the result is narrower, or shares its
address with an operand of a stage, the values stay in scratch until they are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...dialects.dtypes import dtype_named
from ...dialects.scalar_functions import STOCHASTIC
from ...dialects.structured import FURTHER, HELD, Stage, extras_of
from ...ir.support.number_kinds import is_floating
from ...ir.support.strided import as_strided
from .calls import SCRATCH_BYTES, Array, Call, Scratch, address, chunks, coalesced
from .cells import Cells, SumWords
from .conversion import FLOAT32, compute_dtype, convert_into
from .scalar import apply_into, scalar_function

Codelet = Callable[[Cells, Scratch], list[Call]]
"""The calls that compute the cells of one shape class."""

Stages = Callable[[Cells, Array, Scratch], list[Call]]
"""The calls that apply the chain of cells to values and put them into the result."""


def chaining_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a chain computes in: float64 if any of these dtypes is, else float32.

    Args:
        dtypes: of its operands and its result.
    """
    return compute_dtype(FLOAT32, *filter(is_floating, dtypes))


def stage_calls(cells: Cells, value: Array, scratch: Scratch) -> list[Call]:
    """The calls that apply the stages of cells to values, and write the last stage's value to the
    result.

    Args:
        value: may be overwritten.
    """
    stages, own = cells.body.then, cells.own_operands
    extras = [cells.once(a) for a in cells.operands[own:]]
    *others, value, result = coalesced(*extras, value, cells.result_once)
    is_elsewhere = address(value) != address(result)
    places = places_of(stages)
    calls: list[Call] = []
    for index in chunks(result.shape, SCRATCH_BYTES // 4 // value.itemsize):
        piece, rest = value[index], [a[index] for a in others]
        room = [piece]
        values = [piece]
        for stage, place in zip(stages, places, strict=True):
            if place == len(room):
                room.append(scratch.take(f"value {place}", piece.shape, piece.dtype))
            further, rest = rest[: stage.extras], rest[stage.extras :]
            function = scalar_function(stage.function)
            inputs = stage.arguments(values, further)
            values.append(room[place])
            calls.append((apply_into, (function, stage.parameters, inputs, room[place])))
            if stage.element in HELD:
                dtype = dtype_named(stage.element)
                if dtype != piece.dtype:
                    cast = scratch.take("cast", piece.shape, dtype)
                    calls += [
                        (convert_into, (room[place], cast)),
                        (convert_into, (cast, room[place])),
                    ]
        if is_elsewhere or places[-1]:
            calls.append((convert_into, (values[-1], result[index])))
    return calls


def places_of(stages: Sequence[Stage]) -> list[int]:
    """The number of the buffer that holds the value of each stage. Buffers are reused after a last
    read.

    Buffer 0 holds the value that the stages begin with.
    """
    last = [0] * (1 + len(stages))
    for i, stage in enumerate(stages, 1):
        for k in stage.reads or (i - 1,):
            if k != FURTHER:
                last[k] = i
    places, free = [0], list[int]()
    for i in range(1, 1 + len(stages)):
        free += [places[k] for k in range(i) if last[k] == i]
        places.append(min(free, default=1 + max(places)))
        free = [each for each in free if each != places[-1]]
    return places[1:]


def chained(
    codelet: Codelet, cells: Cells, scratch: Scratch, stages: Stages = stage_calls
) -> list[Call]:
    """The calls of a codelet on cells, then those of their body's chain, if it has one.

    Args:
        stages: makes the calls of the chain.
    """
    if not cells.body.then:
        return codelet(cells, scratch)
    own = cells.own_operands
    dtype = chaining_dtype(*(a.dtype for a in cells.operands), cells.result.dtype)
    plain = replace(cells.body, then=())
    if _rounds_only(cells):
        words = sum_words(cells, 0)
        return codelet(
            replace(cells, body=plain, operands=cells.operands[:own], words=words), scratch
        )
    calls: list[Call] = []
    for piece in _pieces(cells, dtype):
        result = piece.result_once
        value, target = result, piece.result
        read = {address(a) for a in piece.operands[own:]}
        if result.dtype != dtype or address(result) in read:
            value = scratch.take("chained", result.shape, dtype)
            target = as_strided(
                value,
                piece.result.shape,
                [0 if d in piece.merged else s for d, s in enumerate(value.strides)],
            )
        words = sum_words(piece, piece.body.rounding_of_sums)
        own_operands = piece.operands[:own]
        own_cells = replace(piece, body=plain, operands=own_operands, result=target, words=words)
        calls += codelet(own_cells, scratch)
        calls += stages(piece, value, scratch)
    return calls


def sum_words(cells: Cells, at: int | None) -> SumWords | None:
    """The words by which a stage of the chain rounds; None if there is no such stage."""
    if at is None:
        return None
    stages = cells.body.then
    first = cells.own_operands + extras_of(stages[:at])
    numbers = cells.operands[first : first + stages[at].extras]
    return SumWords(stages[at].parameters, numbers)


def _rounds_only(cells: Cells) -> bool:
    """Whether a chain only rounds updated elements to the type of the result.

    Other elements of the table have that type already, so only those that indices name change.
    """
    stages = cells.body.then
    return (
        cells.body.updates
        and [each.function for each in stages] == [STOCHASTIC, "identity"]
        and stages[1].element in HELD
        and dtype_named(stages[1].element) == cells.result.dtype
    )


def _pieces(cells: Cells, dtype: np.dtype[Any]) -> Iterator[Cells]:
    """Cells in pieces whose values stay in the cache from the function to the chain.

    Cells with a combiner are one piece: the order of a sum must not depend on its chain. So are
    cells with a scan or sort.
    """
    if cells.body.combiner is not None or cells.body.along is not None:
        yield cells
        return
    for index in chunks(cells.result.shape, SCRATCH_BYTES // 4 // dtype.itemsize):
        operands = tuple(a[index] for a in cells.operands)
        yield Cells(cells.body, operands, cells.result[index], ())
