"""An arena: temporary variables close together in the host's memory.

On the tiles, the blocks of a variable are a tile's memory apart, on pages and cache lines that the
next variable does not reuse. But no observer can see a value that one operation leaves to another
in the same run. So such variables are kept in an arena, whose bytes are reused while they are still
in the host's caches.

    tiles:  0: ..aa..bb..   1: ..aa..bb..   2: ..aa..bb..        arena:  aaaaaabbbbbb
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import cast

import numpy as np
from xdsl.ir import Block

from ...dialects.steps import Copy, Superstep, Vertices
from ...dialects.variable import Variable
from ...ir.symbols import referenced_symbols
from ...ir.upstream import ModuleOp
from ..codelets.calls import address
from ..evaluate.blocks import Blocks

LINE_BYTES = 64
"""Variables begin at multiples of this, in bytes."""

SAME_SET_BYTES = 512
"""Blocks whose size is a multiple of this get one more cache line between them. Copies read one
word from each of many tiles at a time, and words at such distances share few cache sets.
"""


@dataclass(frozen=True)
class Life:
    """A variable's life: from the operation that writes it to the last one that reads it."""

    variable: Variable
    first: int
    last: int

    @property
    def pitch(self) -> int:
        """Bytes from tile to tile."""
        own = self.variable.bytes_per_tile
        return own + LINE_BYTES if own % SAME_SET_BYTES == 0 else own

    @property
    def size(self) -> int:
        """Bytes from its first tile to its last."""
        first, end = self.variable.placed.tiles.span
        return self.pitch * (end - first)

    @property
    def before(self) -> int:
        """Bytes that the tiles before the variable's first tile would take."""
        return self.pitch * self.variable.placed.first_tile


def lives_of(module: ModuleOp, variables: Mapping[str, Variable]) -> dict[str, Life]:
    """The lives of the temporary variables, which may be moved to an arena.

    Such a variable is not kept from run to run. One move or vertex set writes it and others read
    it, all in the same superstep, or in later ones with only supersteps in between.
    """
    named = times_named(module)
    temporary = {
        name: v for name, v in variables.items() if not v.is_resident and v.bytes_per_tile > 0
    }
    return {
        life.variable.symbol: life
        for body in _bodies(module)
        for life, times in _lives(body, temporary)
        if times == named[life.variable.symbol]
    }


def prolonged(
    lives: Mapping[str, Life], read_later: Mapping[str, Sequence[str]]
) -> dict[str, Life]:
    """The lives, each extended to that of every unwritten variable whose readers read it instead.

    Args:
        read_later: for each unwritten variable, the variables that are read instead, in program
            order.
    """
    found = dict(lives)
    for name, others in reversed([*read_later.items()]):
        for other in others:
            last = max(found[other].last, found[name].last)
            found[other] = replace(found[other], last=last)
    return found


def arena_blocks(lives: Sequence[Life], blocks: Mapping[str, Blocks]) -> dict[str, Blocks]:
    """The blocks of variables with these lives, in a new arena."""
    places = _packed(lives)
    # A variable's memory is viewed from tile 0 on, whatever its first tile is.
    margin = _aligned(max((life.before for life in lives), default=0))
    end = max((at + life.size for life, at in zip(lives, places, strict=True)), default=0)
    # Kernels may read a whole word at the last byte.
    arena = np.zeros(margin + end + 2 * LINE_BYTES, np.uint8)
    arena = arena[-address(arena) % LINE_BYTES :]
    found: dict[str, Blocks] = {}
    for life, at in zip(lives, places, strict=True):
        old = blocks[life.variable.symbol]
        memory = arena[margin + at - life.before : margin + at + life.size]
        memory = memory.reshape(-1, life.pitch)
        placed = replace(old.placed, memory=memory, address=0)
        found[life.variable.symbol] = replace(old, placed=placed)
    return found


def _aligned(size: int) -> int:
    return -(-size // LINE_BYTES) * LINE_BYTES


def _bodies(module: ModuleOp) -> Iterator[Block]:
    """The blocks that may contain supersteps."""
    for op in module.walk():
        if not isinstance(op, Superstep):
            for region in op.regions:
                yield from region.blocks


def times_named(module: ModuleOp) -> Counter[str]:
    """The number of times that operations name each variable, to write or to read it."""
    return Counter(name for op in module.walk() for name in referenced_symbols(op))


def _lives(body: Block, variables: Mapping[str, Variable]) -> Iterator[tuple[Life, int]]:
    """The lives of variables that one operation of a block writes and others read.

    Yields each life with the number of times that these operations name the variable.
    """
    now = 0
    for steps in _runs(body):
        lives: dict[str, list[int]] = {}
        for step in steps:
            for op in _in_order(step):
                now += 1
                for name in op.sources:
                    if name in lives:
                        lives[name].append(now)
                for name in op.destinations:
                    if name in variables:
                        # A variable that is written twice is named more often than this life
                        # explains, so it is dropped.
                        lives[name] = [now]
        for name, times in lives.items():
            if len(times) > 1:
                yield Life(variables[name], times[0], times[-1]), len(times)


def _runs(body: Block) -> Iterator[list[Superstep]]:
    """The consecutive supersteps of a block."""
    for is_step, ops in groupby(body.ops, lambda op: isinstance(op, Superstep)):
        if is_step:
            yield cast("list[Superstep]", list(ops))


def _in_order(step: Superstep) -> Iterator[Copy | Vertices]:
    """The operations of a superstep, moves before vertices."""
    ops = list(step.body.block.ops)
    for kind in (Copy, Vertices):
        yield from (op for op in ops if isinstance(op, kind))


def _packed(lives: Sequence[Life]) -> list[int]:
    """The offset of each variable: the lowest that is free throughout its life."""
    order = sorted(range(len(lives)), key=lambda i: lives[i].first)
    places = [0] * len(lives)
    live: list[int] = []
    for i in order:
        live = [j for j in live if lives[j].last >= lives[i].first]
        at = 0
        for begin, end in sorted((places[j], places[j] + lives[j].size) for j in live):
            if at + lives[i].size <= begin:
                break
            at = max(at, _aligned(end))
        places[i] = at
        live.append(i)
    return places
