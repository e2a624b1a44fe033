"""The machine: the bytes of all tiles, and supersteps that move and compute on them.

It gets an exchange module and its blobs, and nothing else. All tiles' memories are one array; a
codelet sees its own tile's row through strided views, and data cross tiles in moves only.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from weakref import proxy

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ..dialects import exchange
from ..ir.errors import InputError
from ..ir.geometry.blocks import Memory
from ..ir.provenance import place
from ..ir.upstream import ModuleOp
from .codelets.calls import Call, Scratch
from .codelets.numerics import Placed
from .evaluate.bind import bound_vertices, copy_calls_of
from .evaluate.blocks import (
    Blocks,
    bind_copy,
    dense_blocks,
    filling,
    read_blocks,
    tensor_of,
    write_blocks,
)
from .evaluate.control import ITERATION_LIMIT, Walker
from .evaluate.faults import AFTER_LOAD, DropMessage, FlipByte, Lost, lost_bytes
from .evaluate.host import host_tensor
from .evaluate.shadow import MachineFault, Shadow
from .host.arena import near
from .host.fast import History, Stamp, Table, wanted
from .host.fusion import Fusion
from .target import Target

__all__ = ["DropMessage", "FlipByte", "Machine", "MachineFault", "Observer", "Price"]

Array = NDArray[Any]
Price = Callable[[exchange.SuperstepOp], int]
"""Cycles that a superstep takes."""

PAGE_BYTES = 4096
ROW_PADDING_BYTES = 64

EARLY_BYTES = 1 << 20
"""Weights of so many bytes are written while calls are bound."""

POISON = 0xFF
"""What memory holds in strict mode before anything is written: a NaN of every float type."""


class Observer:
    """Is called as a machine goes along; every method does nothing unless it is overridden."""

    def before_compute(self, op: exchange.ComputeOp, machine: Machine) -> None:
        """A vertex set is about to run: its operands can be read."""

    def on_compute(self, op: exchange.ComputeOp, machine: Machine) -> None:
        """A vertex set has run: its result can be read."""

    def on_move(self, op: exchange.MoveOp, machine: Machine) -> None:
        """A move has been made."""

    def on_superstep(self, op: exchange.SuperstepOp, machine: Machine) -> None:
        """A superstep has ended."""


@dataclass
class _Superstep:
    """What a superstep does each time: its operations, with the calls made once and what they
    write, if anything."""

    op: exchange.SuperstepOp
    moves: list[tuple[Operation, list[Call], Stamp | None]]
    computes: list[tuple[exchange.ComputeOp, list[Call], Stamp]]
    lost: list[Lost]
    flips: list[FlipByte]
    cycles: int


class Machine:
    """A target with a program loaded.

    module: of the exchange level. strict: check every access (see MachineFault). faults: what goes
    wrong on purpose. observers: called after each operation. price: cycles of each superstep,
    counted in `cycles`. fast: compiled kernels or none; if not said, those that `codelets.fast`
    finds; a strict machine uses none. fused: whether variables that one operation leaves to another
    may be kept elsewhere than on their tiles, and in part, and weights in part (see
    evaluate.fusion); if not said, where there are kernels and no observers. State stays in memory
    from one run to the next.

    memory: uint8[tiles, row]; rows may be longer than a tile's memory. blocks: where each variable
    lies, there or in an arena.
    Raises MachineFault if a variable lies outside of the target's tiles or memory, VerifyException
    for an operation that does not suit its variables, ValueError for a fault that cannot happen.
    """

    def __init__(
        self,
        module: ModuleOp,
        target: Target,
        strict: bool = False,
        faults: Sequence[FlipByte | DropMessage] = (),
        observers: Sequence[Observer] = (),
        price: Price | None = None,
        iteration_limit: int = ITERATION_LIMIT,
        fast: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        self.target = target
        self.observers = list(observers)
        self.cycles = 0
        self.variables = {op.symbol: op for op in module.ops if isinstance(op, exchange.VariableOp)}
        self._strict = strict
        self._faults = tuple(faults)
        self._price = price
        self._check_places()
        self._scratch = Scratch(wanted(fast) and not strict and not faults)
        is_fused = self._scratch.fast and (not self.observers if fused is None else fused)
        self._memory = _memory(target.tiles, target.bytes_per_tile, is_sparse=is_fused)
        states = [v.initial is not None for v in self.variables.values()]
        self._history = History(_overlapping(self.variables), states)
        self._stamps = dict(zip(self.variables, self._history.stamps, strict=True))
        self.blocks: Mapping[str, Blocks] = {
            name: Blocks(Placed(self._memory, v.start, v.dtype, self._stamps[name]), v.placed)
            for name, v in self.variables.items()
        }
        self._shadow: Shadow | None = None
        self._fusion: Fusion | None = None
        self._unseen: frozenset[str] = frozenset()
        if is_fused:
            unseen = near(module, self.variables, self.blocks)
            self._history.lie_elsewhere({i for i, n in enumerate(self.variables) if n in unseen})
            self._unseen = frozenset(unseen)
            self._fusion = Fusion(module, self.variables, self.blocks, unseen, self._scratch)
            self.blocks = self._fusion.blocks
        self._flipped: set[FlipByte] = set()
        self._inputs: Mapping[str, Array] = {}
        self._outputs: dict[str, Array] = {}
        # What calls this machine does not keep it: tiles are given back as soon as it is dropped.
        self._weak = cast(Machine, proxy(self))
        steps = [op for op in module.walk() if isinstance(op, exchange.SuperstepOp)]
        early = self._large_weights()
        with _copying([pair for pairs in early.values() for pair in pairs]):
            self._supersteps = {op: self._superstep(op) for op in steps}
        self._check_faults()
        execute = partial(Machine._execute, self._weak)
        self._walker: Walker[bool] = Walker(module, execute, bool, iteration_limit)
        self._load(early)

    @property
    def memory(self) -> Memory:
        """The bytes of all tiles, to be read only: uint8[tiles, row].

        A machine that does not keep all of them (see fused) has others in some places.
        """
        seen = self._memory.view()
        seen.flags.writeable = False
        return seen

    def poke(self, tile: int, address: int, values: Memory) -> None:
        """Change bytes of a tile behind the program's back.

        Raises ValueError on a machine that does not keep all of them (see fused).
        """
        if self._fusion:
            raise ValueError(f"bytes of tile {tile}: not all are kept; need fused=False")
        self._memory[tile, address : address + len(values)] = values
        self._history.write_all()

    # Programs

    def load(self) -> None:
        """Write every initial value into its blocks; all else is forgotten.

        Of weights that are kept in part (see fused), into the first replica of each block.
        """
        self._load(())

    def _load(self, early: Collection[str]) -> None:
        """Load. early: the variables whose first replicas have been written."""
        if self._strict:
            # What lies above every variable cannot be touched, and is left unpaged.
            used = max((v.start + v.bytes_per_tile for v in self.variables.values()), default=0)
            self._memory[:, :used].fill(POISON)
            self._shadow = Shadow((len(self._memory), used), self.variables)
        for name, variable in self.variables.items():
            if variable.initial is not None:
                is_spared = self._fusion is not None and name in self._fusion.spared
                if not (is_spared and name in early):
                    _copy(filling(variable.initial.array, self.blocks[name], not is_spared))
                self._stamps[name].write(True)
                if self._shadow is not None:
                    self._shadow.define(name)
        for fault in self._faults:
            if isinstance(fault, FlipByte) and fault.when == AFTER_LOAD:
                self._flip(fault)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of @main on inputs by name. Raises InputError for a bad input."""
        self._inputs, self._outputs = inputs, {}
        self._flipped.clear()
        try:
            with np.errstate(all="ignore"):
                self._walker.call("main")
            return self._outputs
        finally:
            self._inputs, self._outputs = {}, {}

    def read(self, variable: str) -> Array:
        """The tensor that a variable holds now, in its own shape; elements nobody holds are 0.

        Raises ValueError for a variable that this machine does not keep (see fused).
        """
        if variable in self._unseen:
            raise ValueError(f"@{variable}: not kept where nobody watches; need fused=False")
        values = read_blocks(self.blocks[variable])
        return tensor_of(values, self.variables[variable].tensor.get_shape())

    def write(self, variable: str, values: Array) -> None:
        """Give a variable a value, replicas and padding included."""
        op = self.variables[variable]
        write_blocks(
            host_tensor({variable: values}, variable, op.tensor, "state"), self.blocks[variable]
        )
        self._stamps[variable].write(True)
        if self._shadow is not None:
            self._shadow.define(variable)

    # Operations

    def _execute(self, op: Operation, operands: list[bool]) -> Sequence[bool]:
        if isinstance(op, exchange.SuperstepOp):
            self._run_superstep(self._supersteps[op])
            return ()
        if isinstance(op, exchange.ReadOp):
            name = op.variable.string_value()
            if self._shadow is not None:
                self._shadow.check_predicate(op, name)
            return (bool(self.read(name).reshape(())),)
        raise InputError(f"{op.name} at {place(op)}: not an operation of the exchange level")

    def _run_superstep(self, step: _Superstep) -> None:
        shadow, observers = self._shadow, self.observers
        if shadow is not None:
            shadow.check_phase(step.op, [op for op, _, _ in step.moves])
        kept = [lost.row.copy() for lost in step.lost]
        for op, calls, stamp in step.moves:
            for function, arguments in calls:
                function(*arguments)
            if stamp is not None:
                stamp.write(True)
            if observers and isinstance(op, exchange.MoveOp):
                for observer in observers:
                    observer.on_move(op, self)
        for lost, old in zip(step.lost, kept, strict=True):
            np.copyto(lost.row, old, where=lost.mask)
        if shadow is not None:
            shadow.end_phase([op for op, _, _ in step.moves])
            shadow.check_phase(step.op, [op for op, _, _ in step.computes])
        for op, calls, stamp in step.computes:
            for observer in observers:
                observer.before_compute(op, self)
            for function, arguments in calls:
                function(*arguments)
            stamp.write(False)
            for observer in observers:
                observer.on_compute(op, self)
        if shadow is not None:
            shadow.end_phase([op for op, _, _ in step.computes])
        for fault in step.flips:
            if fault not in self._flipped:
                self._flipped.add(fault)
                self._flip(fault)
        self.cycles += step.cycles
        for observer in observers:
            observer.on_superstep(step.op, self)

    def _input(self, op: exchange.InputOp) -> list[Call]:
        """The calls that bring what the host gives."""
        blocks = self.blocks[op.writes.string_value()]
        if not self._scratch.fast:
            return [(Machine._write_input, (self._weak, op, blocks))]
        held = np.empty(blocks.layout.shape, blocks.placed.dtype)
        calls = bind_copy([dense_blocks(held)], None, blocks, self._scratch)
        return [(Machine._take_input, (self._weak, op, held)), *calls]

    def _write_input(self, op: exchange.InputOp, blocks: Blocks) -> None:
        write_blocks(host_tensor(self._inputs, op.host_name.data, op.tensor), blocks)

    def _take_input(self, op: exchange.InputOp, held: Array) -> None:
        values = host_tensor(self._inputs, op.host_name.data, op.tensor)
        np.copyto(held, values.reshape(held.shape))

    def _output(self, op: exchange.OutputOp) -> list[Call]:
        """The calls that give the host what a variable holds."""
        blocks = self.blocks[op.reads.string_value()]
        if not self._scratch.fast or not blocks.layout.is_partition:
            return [(Machine._read_output, (self._weak, op, blocks))]
        held = np.empty(blocks.layout.shape, blocks.placed.dtype)
        calls = bind_copy([blocks], None, dense_blocks(held), self._scratch)
        return [*calls, (Machine._give_output, (self._weak, op, held))]

    def _read_output(self, op: exchange.OutputOp, blocks: Blocks) -> None:
        self._give_output(op, read_blocks(blocks))

    def _give_output(self, op: exchange.OutputOp, values: Array) -> None:
        self._outputs[op.host_name.data] = tensor_of(values, op.tensor.get_shape())

    def _flip(self, fault: FlipByte) -> None:
        variable = self.variables[fault.variable]
        self._memory[fault.tile, variable.start + fault.offset] ^= fault.mask
        self._history.write_all()

    # Loading

    def _large_weights(self) -> dict[str, list[tuple[Array, Array]]]:
        """What is to be copied where, to write the first replicas of large weights, by variable.

        Of those that may be kept in part, and that nothing else lies upon: they can be written
        in any order, beside everything that a machine does before it runs.
        """
        kept = self._fusion.kept if self._fusion else ()
        return {
            name: filling(variable.initial.array, self.blocks[name], with_replicas=False)
            for name, variable in self.variables.items()
            if variable.initial is not None
            and name in kept
            and variable.initial.array.nbytes >= EARLY_BYTES
        }

    def _superstep(self, op: exchange.SuperstepOp) -> _Superstep:
        moves: list[tuple[Operation, list[Call], Stamp | None]] = []
        computes: list[tuple[exchange.ComputeOp, list[Call], Stamp]] = []
        known = (self.variables, self.blocks, self._scratch)
        bound = self._fusion.calls(op) if self._fusion else {}
        for inner in op.body.block.ops:
            match inner:
                case exchange.MoveOp():
                    calls = bound[inner] if inner in bound else copy_calls_of(inner, *known)
                    moves.append((inner, calls, self._stamps[inner.destination]))
                case exchange.ComputeOp():
                    calls = bound[inner] if inner in bound else bound_vertices(inner, *known).calls
                    computes.append((inner, calls, self._stamps[inner.destination]))
                case exchange.InputOp():
                    stamp = self._stamps[inner.writes.string_value()]
                    moves.append((inner, self._input(inner), stamp))
                case exchange.OutputOp():
                    moves.append((inner, self._output(inner), None))
                case _:
                    pass
        name = op.sym_name.data
        drops = [f for f in self._faults if isinstance(f, DropMessage) and f.superstep == name]
        lost = [part for drop in drops for part in lost_bytes(drop, op, self.blocks)]
        if drops and not lost:
            raise ValueError(f"{drops[0]}: there is no such message")
        flips = [f for f in self._faults if isinstance(f, FlipByte) and f.when == name]
        cycles = self._price(op) if self._price else 0
        return _Superstep(op, moves, computes, lost, flips, cycles)

    def _check_places(self) -> None:
        for name, v in self.variables.items():
            last = v.placed.first_tile + v.placed.cells - 1
            if v.placed.first_tile < 0 or last >= self.target.tiles:
                raise MachineFault(
                    f"@{name} at {place(v)}: tiles {v.placed.first_tile}..{last}; "
                    f"the target has {self.target.tiles}",
                    variable=name,
                    tile=last,
                )
            end = v.start + v.placed.block_elements * v.dtype.itemsize
            if v.start < 0 or end > self.target.bytes_per_tile:
                raise MachineFault(
                    f"@{name} at {place(v)}: bytes {v.start}..{end - 1} of tile "
                    f"{v.placed.first_tile}; a tile has {self.target.bytes_per_tile}",
                    variable=name,
                    tile=v.placed.first_tile,
                    addresses=(v.start, end),
                )
            if v.start % v.dtype.itemsize:
                raise MachineFault(
                    f"@{name} at {place(v)}: address {v.start} of elements of "
                    f"{v.dtype.itemsize} bytes; need a multiple",
                    variable=name,
                    tile=v.placed.first_tile,
                    addresses=(v.start, end),
                )

    def _check_faults(self) -> None:
        steps = {op.sym_name.data for op in self._supersteps}
        for fault in self._faults:
            when = fault.superstep if isinstance(fault, DropMessage) else fault.when
            if when not in (steps if isinstance(fault, DropMessage) else steps | {AFTER_LOAD}):
                raise ValueError(f"{fault}: no superstep @{when}")
            if isinstance(fault, DropMessage):
                continue
            variable = self.variables.get(fault.variable)
            if variable is None:
                raise ValueError(f"{fault}: no variable @{fault.variable}")
            layout = variable.placed
            size = layout.block_elements * variable.dtype.itemsize
            tiles = range(layout.first_tile, layout.first_tile + layout.cells)
            if fault.tile not in tiles or not 0 <= fault.offset < size:
                raise ValueError(
                    f"{fault}: @{fault.variable} has {size} bytes on tiles "
                    f"{tiles.start}..{tiles.stop - 1}"
                )


def _copy(pairs: Iterable[tuple[Array, Array]]) -> None:
    """Copy to the first of each pair from the second."""
    for target, source in pairs:
        np.copyto(target, source)


@contextmanager
def _copying(pairs: Sequence[tuple[Array, Array]]) -> Generator[None]:
    """Copy while something else is done, or before where there is no thread to be had."""
    if not pairs:
        yield
        return
    with ThreadPoolExecutor(1) as aside:
        writing = None
        try:
            writing = aside.submit(_copy, pairs)
        except RuntimeError:
            # A host out of threads, or an interpreter that is ending.
            _copy(pairs)
        yield
    if writing is not None:
        writing.result()


def _overlapping(variables: Mapping[str, exchange.VariableOp]) -> list[Table]:
    """For each variable, those that have bytes of it on some tile, itself among them."""
    boxes = np.array(
        [
            (
                v.start,
                v.start + v.bytes_per_tile,
                v.placed.first_tile,
                v.placed.first_tile + v.placed.cells,
            )
            for v in variables.values()
        ],
        np.int64,
    ).reshape(-1, 4)
    low, high, first, last = boxes.T
    found: list[Table] = []
    for i, box in enumerate(boxes):
        meets = (low < box[1]) & (high > box[0]) & (first < box[3]) & (last > box[2])
        meets[i] = True
        found.append(np.flatnonzero(meets))
    return found


def _memory(tiles: int, bytes_per_tile: int, is_sparse: bool) -> Memory:
    """Zeroed rows whose stride is no multiple of a page: equal offsets would share a cache set.

    A word may be read at the last byte of a tile. is_sparse: little of it will be touched.
    """
    row = -(-(bytes_per_tile + 3) // ROW_PADDING_BYTES) * ROW_PADDING_BYTES
    if row % PAGE_BYTES == 0:
        row += ROW_PADDING_BYTES
    if not is_sparse or sys.platform != "linux":
        return np.zeros((tiles, row), np.uint8)
    # NumPy asks for huge pages, each of which takes three tiles' memory for the first byte touched.
    try:
        pages = mmap.mmap(-1, tiles * row, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{tiles:,} tiles of {row:,} bytes: {error.strerror}") from None
    # Not every kernel has them, or lets them be chosen.
    with suppress(OSError, AttributeError):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.uint8).reshape(tiles, row)
