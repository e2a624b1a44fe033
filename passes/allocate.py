"""At which address every variable lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ..backends.target import Target
from ..dialects import control, tile
from ..dialects.program import Variable
from ..ir.errors import DoesNotFit, InputError
from ..ir.provenance import origin_names, place
from .convert_nn_to_partition import target_of
from .schedule_supersteps import SUPERSTEP

ADDRESS = "address"
"""The attribute of a tile.variable that holds its address in bytes."""

FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Allocate(ModulePass):
    """Give variables addresses by liveness. tile -> tile.

    Two variables share bytes only if they have no tile in common or are never live in the same
    phase. A superstep has two phases, exchange and compute, so what is sent may be
    overwritten by what is then computed. What always lives is placed first, then the large
    before the small, each at the lowest address that is free.
    Raises DoesNotFit naming the fullest tile and what lies on it.
    """

    name = "allocate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        variables = [v for v in op.body.block.ops if isinstance(v, tile.VariableOp)]
        lives = lifetimes(op, variables)
        addresses = pack(variables, lives)
        target = target_of(op)
        check_fits(variables, lives, addresses, target)
        for variable, address in zip(variables, addresses, strict=True):
            variable.attributes[ADDRESS] = IntegerAttr(int(address), i64)


# Lifetimes


@dataclass
class _Clock:
    """Walks a program in order and notes when each variable is touched."""

    functions: dict[str, func.FuncOp]
    now: int = 0
    touched: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    loops: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    calling: list[str] = field(default_factory=list[str])

    def touch(self, names: Sequence[str], phase: int) -> None:
        for name in names:
            self.touched.setdefault(name, []).append(self.now + phase)

    def walk(self, block: Block) -> None:
        step: int | None = None
        for op in block.ops:
            number = op.attributes.get(SUPERSTEP)
            if not isinstance(number, IntegerAttr):
                self.now += 2
                step = None
                self.control(op)
                continue
            if number.value.data != step:
                self.now += 2
                step = number.value.data
            if isinstance(op, tile.CopyOp):
                self.touch([*op.sources, op.destination], 0)
            elif isinstance(op, tile.ComputeSetOp):
                for vertices in op.body.block.ops:
                    if isinstance(vertices, tile.VerticesOp):
                        self.touch([*vertices.sources, vertices.destination], 1)
            elif isinstance(op, tile.InputOp):
                self.touch([op.writes.string_value()], 0)
            elif isinstance(op, tile.OutputOp):
                self.touch([op.reads.string_value()], 0)

    def control(self, op: Operation) -> None:
        if isinstance(op, func.CallOp):
            callee = op.callee.string_value()
            if callee not in self.functions:
                raise InputError(f"{op.name} at {place(op)}: no function @{callee}")
            if callee in self.calling:
                raise InputError(f"{op.name} at {place(op)}: @{callee} calls itself")
            self.calling.append(callee)
            self.walk(self.functions[callee].body.block)
            self.calling.pop()
        elif isinstance(op, tile.ReadOp):
            self.touch([op.variable.string_value()], 0)
        elif isinstance(op, tile.CopyOp | tile.ComputeSetOp | tile.InputOp | tile.OutputOp):
            raise InputError(f"{op.name} at {place(op)}: no superstep; run schedule-supersteps")
        start = self.now
        for region in op.regions:
            for block in region.blocks:
                self.walk(block)
        if isinstance(op, control.RepeatOp | control.WhileOp):
            self.loops.append((start, self.now + 1))


def lifetimes(module: ModuleOp, variables: Sequence[Variable]) -> NDArray[np.int64]:
    """First and last phase in which each variable is live: (variables, 2).

    State and constants live always; what a loop takes over from outside, or hands on, lives
    through the loop. A called function's variables live from its first call to its last.
    """
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    if "main" not in functions:
        raise InputError("the module has no function @main")
    clock = _Clock(functions)
    clock.walk(functions["main"].body.block)
    lives = np.zeros((len(variables), 2), np.int64)
    for i, variable in enumerate(variables):
        times = clock.touched.get(variable.symbol, [])
        if variable.is_resident:
            lives[i] = (0, FOREVER)
        elif times:
            lives[i] = (min(times), max(times))
    for start, end in clock.loops:
        crosses = ((lives[:, 0] < start) & (lives[:, 1] >= start)) | (
            (lives[:, 0] <= end) & (lives[:, 1] > end)
        )
        lives[crosses, 0] = np.minimum(lives[crosses, 0], start)
        lives[crosses, 1] = np.maximum(lives[crosses, 1], end)
    return lives


# Addresses


def pack(variables: Sequence[Variable], lives: NDArray[np.int64]) -> NDArray[np.int64]:
    """An address in bytes for each variable, (variables,): first fit, the largest first."""
    size = np.array([v.bytes_per_tile for v in variables], np.int64)
    first = np.array([v.placed.first_tile for v in variables], np.int64)
    last = first + np.array([v.placed.cells for v in variables], np.int64)
    resident = np.array([v.is_resident for v in variables], bool)
    address = np.zeros(len(variables), np.int64)
    order = np.lexsort((np.arange(len(variables)), -size, ~resident))
    for count, i in enumerate(order):
        placed = order[:count]
        clash = placed[
            (first[placed] < last[i])
            & (first[i] < last[placed])
            & (lives[placed, 0] <= lives[i, 1])
            & (lives[i, 0] <= lives[placed, 1])
            & (size[placed] > 0)
        ]
        if not len(clash) or size[i] == 0:
            continue
        clash = clash[np.argsort(address[clash], kind="stable")]
        ends = np.maximum.accumulate(address[clash] + size[clash])
        starts = np.r_[0, ends]
        room = np.r_[address[clash], FOREVER] - starts
        address[i] = starts[np.argmax(room >= size[i])]
    return address


def check_fits(
    variables: Sequence[Variable],
    lives: NDArray[np.int64],
    address: NDArray[np.int64],
    target: Target,
) -> None:
    """Raise DoesNotFit if a tile needs more than the target has, or there are too few tiles."""
    for v in variables:
        if v.placed.first_tile + v.placed.cells > target.tiles:
            raise DoesNotFit(
                f"@{v.symbol}",
                v.placed.first_tile + v.placed.cells,
                target.tiles,
                units="tiles",
                remedy="plan again for this target",
            )
    if not variables:
        return
    ends = address + np.array([v.bytes_per_tile for v in variables], np.int64)
    worst = int(np.argmax(ends))
    available = target.usable_bytes_per_tile
    if ends[worst] <= available:
        return
    tile_index = variables[worst].placed.first_tile
    here = np.array(
        [
            v.placed.first_tile <= tile_index < v.placed.first_tile + v.placed.cells
            for v in variables
        ]
    )
    when = lives[worst, 0] if lives[worst, 1] != FOREVER else _busiest(variables, lives, here)
    live = here & (lives[:, 0] <= when) & (when <= lives[:, 1])
    layers: dict[str, int] = {}
    for i in np.flatnonzero(live).tolist():
        v = variables[i]
        layer = "+".join(n.split("/")[0] for n in origin_names(v)) or v.symbol
        layers[layer] = layers.get(layer, 0) + v.bytes_per_tile
    largest = sorted(layers.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{layer} {size} B" for layer, size in largest[:6])
    rest = sum(size for _, size in largest[6:])
    names = sorted(np.flatnonzero(live).tolist(), key=lambda i: -variables[i].bytes_per_tile)[:3]
    examples = ", ".join(f"@{variables[i].symbol} ({variables[i].bytes_per_tile} B)" for i in names)
    over = int(ends[worst]) - available
    raise DoesNotFit(
        f"the program ({shown}{f', others {rest} B' if rest else ''}; largest variables "
        f"{examples}), {over} bytes over,",
        int(ends[worst]),
        available,
        tile=tile_index,
        remedy="use a narrower dtype (fp16), a smaller batch, a target with more memory a tile "
        "(--target mk2), or more tiles",
    )


def _busiest(
    variables: Sequence[Variable], lives: NDArray[np.int64], here: NDArray[np.bool_]
) -> int:
    """The phase in which the variables of a tile take most bytes."""
    size = np.array([v.bytes_per_tile for v in variables], np.int64) * here
    times = np.unique(lives[here, 0])
    load = [int(size[(lives[:, 0] <= t) & (t <= lives[:, 1])].sum()) for t in times]
    return int(times[int(np.argmax(load))])
