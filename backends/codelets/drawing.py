"""Words from the generators of the workers, for the roundings of a vertex set.

The workers of a tile share its elements vector by vector, in the order in which the elements are
stored: worker w writes the vectors w, w + workers, w + 2 * workers, ... A vector is four elements,
one store of 64 bits. For each rounding of a vector, the worker draws one number of 64 bits, 16 bits
for each element. So bits depend on the plan, on the number of workers and on all that was written
before.

    elements of a tile     0 1 2 3 | 4 5 6 7 | 8 9 10 11 | 12 13        with 3 workers
    drawn by worker           0    |    1    |     2     |   0

That a vector takes one number, and that workers take turns, is assumed. Published are the generator
(ir/support/xoroshiro.py), that each worker has one, and that a tile draws 64 bits in a cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...dialects.scalar_functions import BY_WORD, DRAWN
from ...dialects.structured import FURTHER, Body, Stage
from ...ir.geometry.tiles import Tiles
from ...ir.support.strided import as_strided
from ...ir.support.xoroshiro import States, next_numbers
from .calls import Array, Call
from .cells import Cells

VECTOR = 4
"""The elements of a vector, which share a number."""

_BITS = 64 // VECTOR
_T = TypeVar("_T")


def words_places(body: Body, own: int) -> tuple[int, ...]:
    """The places of words among the operands of a body whose roundings take words.

    A rounding of the terms of a sum takes none: nothing stores them.

    Args:
        own: the operands before those of the chain.
    """
    places: list[int] = []
    if body.function == DRAWN:
        if body.combiner is not None or body.along is not None:
            return ()
        own += 1
        places.append(own - 1)
    at = own
    for stage in body.then:
        if stage.function == DRAWN:
            places.append(at)
            at += 1
        at += stage.extras
    return tuple(places)


def with_words(body: Body) -> Body:
    """A body whose roundings take words."""
    return replace(
        body,
        function=BY_WORD if body.function == DRAWN else body.function,
        then=tuple(map(_by_word, body.then)),
    )


def _by_word(stage: Stage) -> Stage:
    if stage.function != DRAWN:
        return stage
    reads = (*stage.reads, FURTHER) if stage.reads else ()
    return replace(stage, function=BY_WORD, reads=reads)


def inserted(items: Sequence[_T], places: Sequence[int], more: Sequence[_T]) -> tuple[_T, ...]:
    """Items with more of them at these places of the result, which rise."""
    found = list(items)
    for at, each in zip(places, more, strict=True):
        found.insert(at, each)
    return tuple(found)


class Generators(NamedTuple):
    """The generators from which a vertex set draws.

    Attributes:
        states: of the workers of each tile, a view of where they live.
        tiles: those of the cells.
    """

    states: States
    tiles: Tiles


def drawing_cells(
    cells: Cells, numbers: NDArray[np.int64], generators: Generators
) -> tuple[Cells, list[Call]]:
    """Cells whose roundings take words, and the calls that draw them.

    Args:
        numbers: of the cells of the class.
    """
    places = words_places(cells.body, cells.own_operands)
    if not places:
        return cells, []
    once = cells.result_once
    grid, sizes = once.shape[: numbers.ndim], once.shape[numbers.ndim :]
    words = np.zeros((len(places), *grid, *sizes), np.uint32)
    # Along the reduction dimensions all points have one result, and so one word.
    views = [
        as_strided(
            words[i],
            cells.result.shape,
            [0 if d in cells.merged else step for d, step in enumerate(words.strides[1:])],
        )
        for i in range(len(places))
    ]
    tiles = generators.tiles.of(numbers.reshape(-1))
    drawing = _Drawing(generators.states, tiles, _ranks(once, numbers.ndim), words)
    stamps = inserted(cells.stamps, places, [None] * len(places)) if cells.stamps else ()
    made = replace(
        cells,
        body=with_words(cells.body),
        operands=inserted(cells.operands, places, views),
        stamps=stamps,
    )
    return made, [(draw_words, (drawing,))]


@dataclass(frozen=True)
class _Drawing:
    """What the tiles of a class of cells draw.

    Attributes:
        tiles: of the cells, in order.
        ranks: for each element of a cell, its number in the order of storage.
        words: one array for each rounding, of the cells' shape.
    """

    generators: States
    tiles: NDArray[np.int64]
    ranks: NDArray[np.int64]
    words: NDArray[np.uint32]


def draw_words(drawing: _Drawing) -> None:
    """Fill the words, and move the generators on."""
    words, ranks = drawing.words, drawing.ranks
    states = drawing.generators[drawing.tiles]
    roundings, workers = len(words), states.shape[1]
    vectors = -(-len(ranks) // VECTOR)
    turns = -(-vectors // workers)
    drawn = np.zeros((len(states), turns, workers, roundings), np.uint64)
    for turn in range(turns):
        active = slice(0, min(workers, vectors - turn * workers))
        for which in range(roundings):
            drawn[:, turn, active, which] = next_numbers(states[:, active])
    drawing.generators[drawing.tiles] = states
    pieces = drawn.astype("<u8").view(f"<u{_BITS // 8}")
    pieces = pieces.reshape(*drawn.shape, VECTOR).transpose(3, 0, 1, 2, 4)
    stored = pieces.reshape(roundings, len(states), -1)[:, :, ranks]
    words[...] = stored.astype(np.uint32).reshape(words.shape) << np.uint32(32 - _BITS)


def _ranks(result: Array, axes: int) -> NDArray[np.int64]:
    """For each element of a cell, row-major, its number in the order of storage.

    Args:
        result: of all cells.
        axes: the leading axes, which number the cells.
    """
    offsets = np.zeros(1, np.int64)
    for size, step in zip(result.shape[axes:], result.strides[axes:], strict=True):
        offsets = (offsets[:, None] + np.arange(size, dtype=np.int64) * step).reshape(-1)
    ranks = np.empty(len(offsets), np.int64)
    ranks[np.argsort(offsets, kind="stable")] = np.arange(len(offsets))
    return ranks
