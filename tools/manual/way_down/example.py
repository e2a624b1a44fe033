"""The facts that the picture shows: the texts of a program, and what its tiles hold.

The program is compiled and run. Each input holds the numbers of its elements, so the memory of a
tile, just before it computes, tells which element lies at which address. No fact is written down
here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....backends.machine import Machine, Observer
from ....backends.prices.price import SuperstepPrice, price
from ....dialects.exchange import VariableOp
from ....dialects.steps import Copy, Input, Vertices
from ....ir.geometry.layout import Layout
from ....ir.text import print_module
from ...driver.compile import compile_model

PADDING = -1
"""The tile of an element of padding, which no tile sent."""

ELEMENT_BYTES = 4
"""The bytes of an element: the example is in float32."""

Senders = NDArray[np.int64]
"""For each element of the blocks of a variable, the tile from which it came: (tiles, axes...)."""


@dataclass(frozen=True)
class HeldVariable:
    """A variable of the program in the memory of its tiles.

    Attributes:
        shape: the shape of the tensor.
        address: the first byte of its block, on every tile.
        bytes: the bytes of its block on a tile.
        first: the first index of the block of each tile along each axis, (tiles, axes); -1 is the
            first element of a border of one.
        senders: the tile from which each element of each block came.
    """

    shape: tuple[int, ...]
    address: int
    bytes: int
    first: NDArray[np.int64]
    senders: Senders


@dataclass(frozen=True)
class Example:
    """A compiled program of one convolution.

    Attributes:
        texts: the text of the program at each level, without locations.
        variables: the variables of the lowest level, by name.
        step: the price of the superstep that computes.
    """

    texts: Mapping[str, str]
    variables: Mapping[str, HeldVariable]
    step: SuperstepPrice

    def lines(self, level: str, pattern: str, more: int = 0) -> list[str]:
        """The first line of a level's text that a pattern matches, and some of those after it."""
        lines = self.texts[level].split("\n")
        (at, *_) = [i for i, line in enumerate(lines) if re.search(pattern, line)]
        return lines[at : at + 1 + more]

    def received(self, name: str) -> NDArray[np.int64]:
        """The bytes of a variable that each tile gets from each other tile: (to, from)."""
        senders = self.variables[name].senders
        tiles = len(senders)
        flat = senders.reshape(tiles, -1)
        counts = (flat[:, :, None] == np.arange(tiles)).sum(1)
        np.fill_diagonal(counts, 0)
        return counts * ELEMENT_BYTES


def example(path: Path, target: str) -> Example:
    """The example in a file. It must be one vertex set, cut into blocks of equal sizes."""
    exe = compile_model(str(path), target=target, cache=False)
    module = exe.module_at("exchange")
    texts = {level: _without_locations(print_module(exe.module_at(level))) for level in exe.levels}
    given = {
        op.host_name.data: np.arange(1, prod(op.tensor.get_shape()) + 1, dtype=np.float32).reshape(
            op.tensor.get_shape()
        )
        for op in module.walk()
        if isinstance(op, Input)
    }
    sources = {
        copy.destinations[0]: copy.reads.data[0].string_value()
        for copy in module.walk()
        if isinstance(copy, Copy)
    }
    look = _Look(sources)
    Machine(module, exe.target, observers=[look]).run(given)
    (step,) = [each for each in price(module, exe.target) if each.compute_cycles]
    return Example(texts, look.held, step)


class _Look(Observer):
    """Reads the memory of the tiles just before they compute."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self.held: Mapping[str, HeldVariable] = {}

    def before_compute(self, op: Vertices, machine: Machine) -> None:
        """Find the tile that each element of each variable came from."""
        blocks: dict[str, NDArray[np.int64]] = {}
        for name, placed in machine.blocks.items():
            (view,) = placed.views()
            block = view.reshape(-1, *placed.layout.box)
            blocks[name] = np.nan_to_num(block).astype(np.int64)
        self.held = {
            name: _held(v, machine.blocks[name].layout, blocks[name], self._owners(name, blocks))
            for name, v in machine.variables.items()
        }

    def _owners(self, name: str, blocks: Mapping[str, NDArray[np.int64]]) -> Senders | None:
        """For each element of a copied variable, by its number, the tile whose block has it."""
        if name not in self._sources:
            return None
        numbers = blocks[self._sources[name]]
        owners = np.full(numbers.size + 1, PADDING)
        owners[numbers.reshape(len(numbers), -1)] = np.arange(len(numbers))[:, None]
        return owners


def _held(
    v: VariableOp, layout: Layout, block: NDArray[np.int64], owners: Senders | None
) -> HeldVariable:
    """A variable, and the tile that each of its elements came from: its own, if not copied."""
    own = np.arange(len(block)).reshape(-1, *[1] * len(layout.box))
    first = [
        np.broadcast_to(layout.starts(axis), layout.parts).reshape(-1)
        for axis in range(len(layout.box))
    ]
    return HeldVariable(
        tuple(v.tensor.get_shape()),
        v.start,
        layout.block_elements * ELEMENT_BYTES,
        np.stack(first, 1),
        np.broadcast_to(own, block.shape) if owners is None else owners[block],
    )


def _without_locations(text: str) -> str:
    return re.sub(r"\s+loc\((?:[^()]|\([^()]*\))*\)", "", text)
