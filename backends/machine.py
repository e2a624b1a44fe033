"""The machine: the bytes of all tiles, and supersteps that move and compute on them.

It gets an exchange module and its blobs, and nothing else. The memories of all tiles are one array.
A codelet sees its own tile's row through strided views, and data cross tiles in moves only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast
from weakref import proxy

import numpy as np
from xdsl.ir import Operation

from ..dialects import exchange
from ..dialects.control import RepeatOp
from ..dialects.steps import (
    Arrival,
    Copy,
    Departure,
    Input,
    Load,
    Output,
    Read,
    Remote,
    Store,
    Superstep,
    Vertices,
)
from ..ir.geometry.blocks import Memory
from ..ir.provenance import place
from ..ir.support.arrays import Array
from ..ir.support.errors import InputError
from ..ir.support.limits import ITERATIONS, STRICT_ITERATIONS
from ..ir.upstream import ModuleOp
from ..ir.well_known import ENTRY
from .addresses.places import check_places
from .codelets.calls import Call
from .codelets.numerics import Placed
from .codelets.stamps import History, Stamp, Table
from .evaluate.binder import Binder
from .evaluate.blocks import Blocks, filling, only_element, read_blocks, tensor_of, write_blocks
from .evaluate.control import Walker
from .evaluate.faults import AFTER_LOAD, DropMessage, FlipByte, Lost, lost_bytes
from .evaluate.host import host_tensor
from .evaluate.replicas import replicas_differ
from .evaluate.shadow import Shadow
from .faults import IndexFault
from .faults import MachineFault as MachineFault
from .target import Target
from .timetable.faults import TimetableFault
from .timetable.strict import check_timetables

__all__ = ["DropMessage", "FlipByte", "Machine", "MachineFault", "Observer", "Price"]

Price = Callable[[Superstep], int]
"""Cycles that a superstep takes."""

POISON = 0xFF
"""The bytes of unwritten memory in strict mode: a NaN of every float type."""


class Observer:
    """Called as a machine runs; every method does nothing unless it is overridden."""

    def before_compute(self, op: Vertices, machine: Machine) -> None:
        """A vertex set is about to run: its operands can be read."""

    def on_compute(self, op: Vertices, machine: Machine) -> None:
        """A vertex set has run: its result can be read."""

    def on_move(self, op: Copy, machine: Machine) -> None:
        """A move has been made."""

    def on_remote(self, op: Load | Store, machine: Machine) -> None:
        """A tensor has come from remote memory, or gone there."""

    def on_iteration(self, op: RepeatOp, machine: Machine) -> None:
        """An iteration of a loop is about to begin, and its number can be read."""

    def on_superstep(self, op: Superstep, machine: Machine) -> None:
        """A superstep has ended."""


@dataclass
class _Superstep:
    """A superstep: its operations, each with its calls and the stamps of what they write."""

    op: Superstep
    moves: list[tuple[Operation, list[Call], Stamp | None]]
    computes: list[tuple[Vertices, list[Call], tuple[Stamp, ...]]]
    lost: list[Lost]
    flips: list[FlipByte]
    cycles: int


class Machine:
    """A target with a program loaded. State stays in memory from one run to the next.

    Raises MachineFault if a variable is outside the target's tiles or memory, VerifyException for
    an operation that does not suit its variables, ValueError for a fault that cannot happen. A
    strict machine raises MachineFault for an exchange whose timetable cannot run.

    Attributes:
        module: a module of the exchange level.
        strict: whether every access is checked (see MachineFault), and when messages leave.
        faults: the errors that the machine makes on purpose, to test checks.
        observers: what is called before and after each operation.
        price: gives the cycles of a superstep, which `cycles` adds up.
        binder: makes the calls of operations. A strict machine and one with faults always take the
            plain binder, whose calls define the bytes.
        memory: the bytes of all tiles, uint8[tiles, row]. Rows may be longer than a tile's memory.
        unchecked: the supersteps whose timetables a strict machine has not checked, because they
            have too many messages.
        blocks: where each variable lies: in `memory`, or where the binder keeps it.
        remote_states: the states in remote memory, by name.
    """

    def __init__(
        self,
        module: ModuleOp,
        target: Target,
        strict: bool = False,
        faults: Sequence[FlipByte | DropMessage | TimetableFault] = (),
        observers: Sequence[Observer] = (),
        price: Price | None = None,
        iteration_limit: int | None = None,
        binder: type[Binder] = Binder,
    ) -> None:
        self.target = target
        self.observers = list(observers)
        self.cycles = 0
        self.variables = {op.symbol: op for op in module.ops if isinstance(op, exchange.VariableOp)}
        self.remote_states = {op.symbol: op for op in module.ops if isinstance(op, Remote)}
        self._remote: dict[str, Array] = {}
        self._strict = strict
        self._faults = tuple(each for each in faults if isinstance(each, FlipByte | DropMessage))
        late = [each for each in faults if not isinstance(each, FlipByte | DropMessage)]
        self._price = price
        check_places(self.variables, target)
        chosen = Binder if strict or faults else binder
        self._memory = chosen.memory(target.tiles, target.bytes_per_tile)
        states = [v.initial is not None for v in self.variables.values()]
        self._history = History(_overlapping(self.variables), states)
        self._stamps = dict(zip(self.variables, self._history.stamps, strict=True))
        blocks = {
            name: Blocks(Placed(self._memory, v.start, v.dtype, self._stamps[name]), v.placed)
            for name, v in self.variables.items()
        }
        self._binder = chosen(module, self.variables, blocks, self._history)
        self.blocks = self._binder.blocks
        self._shadow: Shadow | None = None
        self._predicates: dict[str, Array | None] = {}
        self._numbered: dict[str, list[Array]] = {}
        self._flipped: set[FlipByte] = set()
        self._inputs: Mapping[str, Array] = {}
        self._outputs: dict[str, Array] = {}
        # Calls hold no reference to this machine, so that its memory is freed when it is dropped.
        weak = cast(Machine, proxy(self))
        steps = [op for op in module.walk() if isinstance(op, Superstep)]
        give, take = partial(Machine._give, weak), partial(Machine._take, weak)
        calls = self._binder.bind(steps, give, take)
        self._supersteps = {op: self._superstep(op, calls) for op in steps}
        self._check_faults()
        self.unchecked: tuple[str, ...] = ()
        if strict or late:
            self.unchecked = check_timetables(steps, self.variables, target, late)
        execute, number = partial(Machine._execute, weak), partial(Machine._number, weak)
        limits = (ITERATIONS, STRICT_ITERATIONS) if strict else (ITERATIONS,)
        limit = min(limits, key=lambda each: each.most)
        self._walker: Walker[bool] = Walker(module, execute, bool, iteration_limit, number, limit)
        self.load()

    @property
    def memory(self) -> Memory:
        """The bytes of all tiles, read-only: uint8[tiles, row].

        If the binder does not keep all of them, some are not what the program says.
        """
        seen = self._memory.view()
        seen.flags.writeable = False
        return seen

    @property
    def binder(self) -> Binder:
        """The binder that made the calls of operations."""
        return self._binder

    @property
    def stamps(self) -> list[Stamp]:
        """The stamps of all variables, in their order."""
        return list(self._stamps.values())

    def bound(self) -> Iterator[tuple[Operation, list[Call], list[tuple[Stamp, bool]]]]:
        """The calls of each operation of the supersteps, in the order of a run.

        Each comes with the stamps of what it writes, and with whether it writes all blocks with
        equal replicas.
        """
        for step in self._supersteps.values():
            for op, calls, stamp in step.moves:
                yield op, calls, [] if stamp is None else [(stamp, True)]
            for op, calls, stamps in step.computes:
                yield op, calls, [(stamp, False) for stamp in stamps]

    def poke(self, tile: int, address: int, values: Memory) -> None:
        """Change bytes of a tile behind the program's back.

        Raises ValueError if the binder does not keep all bytes.
        """
        if not self._binder.keeps_all_bytes:
            raise ValueError(
                f"bytes of tile {tile}: {type(self._binder).__name__} does not keep all bytes; "
                "need a machine whose binder does"
            )
        self._memory[tile, address : address + len(values)] = values
        self._history.write_all()

    # Programs

    def load(self) -> None:
        """Write every initial value into its blocks, and forget everything else."""
        if self._strict:
            # Bytes above every variable cannot be touched, and stay unpaged.
            used = max((v.start + v.bytes_per_tile for v in self.variables.values()), default=0)
            self._memory[:, :used].fill(POISON)
            self._shadow = Shadow((len(self._memory), used), self.variables)
        self._remote = {name: op.first_value for name, op in self.remote_states.items()}
        for name, variable in self.variables.items():
            if variable.initial is not None:
                self._binder.load(name, variable.initial.array)
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
                self._walker.call(ENTRY)
            if self._shadow is not None:
                self._shadow.check_held()
            return self._outputs
        finally:
            self._inputs, self._outputs = {}, {}

    def read(self, variable: str) -> Array:
        """The tensor that a variable or remote state holds now, in its own shape.

        Elements without an owner are 0. Raises ValueError for a variable that the binder does not
        keep whole.
        """
        if variable in self._remote:
            return self._remote[variable].copy()
        if variable in self._binder.hidden:
            raise ValueError(
                f"@{variable}: {type(self._binder).__name__} does not keep variables that only "
                "operations read; need a machine whose binder does"
            )
        values = read_blocks(self.blocks[variable])
        return tensor_of(values, self.variables[variable].tensor.get_shape())

    def unequal_replicas(self) -> list[str]:
        """The states of which two tiles hold different bits of the same elements."""
        return [
            name
            for name, op in self.variables.items()
            if op.state is not None
            and op.placed.replicas > 1
            and replicas_differ(self.blocks[name])
        ]

    def _predicate(self, variable: str) -> bool:
        """The only element of a variable."""
        if variable not in self._predicates:
            self._predicates[variable] = only_element(self.blocks[variable])
        element = self._predicates[variable]
        return bool(self.read(variable).reshape(()) if element is None else element.flat[0])

    def write(self, variable: str, values: Array) -> None:
        """Give a variable or remote state a value, replicas and padding included."""
        if variable in self._remote:
            tensor = self.remote_states[variable].tensor
            self._remote[variable] = host_tensor({variable: values}, variable, tensor, "state")
            return
        op = self.variables[variable]
        write_blocks(
            host_tensor({variable: values}, variable, op.tensor, "state"), self.blocks[variable]
        )
        self._stamps[variable].write(True)
        if self._shadow is not None:
            self._shadow.define(variable)

    # Operations

    def _execute(self, op: Operation, operands: list[bool]) -> Sequence[bool]:
        if isinstance(op, Superstep):
            self._run_superstep(self._supersteps[op])
            return ()
        if isinstance(op, Read):
            name = op.variable.string_value()
            if self._shadow is not None:
                self._shadow.check_predicate(op, name)
            return (self._predicate(name),)
        raise InputError(f"{op.name} at {place(op)}: not an operation of the exchange level")

    def _number(self, op: RepeatOp, iteration: int) -> Sequence[bool]:
        """Write the number of an iteration to the variable of its loop."""
        name = op.iteration_variable
        assert name is not None
        if name not in self._numbered:
            pairs = filling(np.zeros((), np.int32), self.blocks[name])
            self._numbered[name] = [block for block, _ in pairs]
        for block in self._numbered[name]:
            block[...] = iteration
        self._stamps[name].write(True)
        if self._shadow is not None:
            self._shadow.define(name)
        for observer in self.observers:
            observer.on_iteration(op, self)
        return ()

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
            for observer in observers:
                if isinstance(op, Copy):
                    observer.on_move(op, self)
                elif isinstance(op, Load | Store):
                    observer.on_remote(op, self)
        for lost, old in zip(step.lost, kept, strict=True):
            np.copyto(lost.row, old, where=lost.mask)
        if shadow is not None:
            shadow.end_phase([op for op, _, _ in step.moves])
            shadow.check_phase(step.op, [op for op, _, _ in step.computes])
        for op, calls, stamps in step.computes:
            for observer in observers:
                observer.before_compute(op, self)
            try:
                for function, arguments in calls:
                    function(*arguments)
            except IndexFault as fault:
                raise fault.of(op) from None
            for stamp in stamps:
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

    def _give(self, op: Arrival) -> Array:
        """The tensor of an input, or what a remote state holds."""
        if isinstance(op, Load):
            return self._remote[op.remote.string_value()]
        assert isinstance(op, Input)
        return host_tensor(self._inputs, op.host_name.data, op.tensor)

    def _take(self, op: Departure, values: Array) -> None:
        """Keep the values of an output, or of a remote state."""
        kept = tensor_of(values, op.tensor.get_shape())
        if isinstance(op, Store):
            self._remote[op.remote.string_value()] = kept
            return
        assert isinstance(op, Output)
        self._outputs[op.host_name.data] = kept

    def _flip(self, fault: FlipByte) -> None:
        variable = self.variables[fault.variable]
        self._memory[fault.tile, variable.start + fault.offset] ^= fault.mask
        self._history.write_all()

    # Loading

    def _superstep(self, op: Superstep, calls: Mapping[Operation, list[Call]]) -> _Superstep:
        moves: list[tuple[Operation, list[Call], Stamp | None]] = []
        computes: list[tuple[Vertices, list[Call], tuple[Stamp, ...]]] = []
        for inner in op.body.block.ops:
            match inner:
                case Copy():
                    moves.append((inner, calls[inner], self._stamps[inner.destination]))
                case Vertices():
                    stamps = tuple(self._stamps[name] for name in inner.destinations)
                    computes.append((inner, calls[inner], stamps))
                case Arrival():
                    moves.append((inner, calls[inner], self._stamps[inner.destination]))
                case Departure():
                    moves.append((inner, calls[inner], None))
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
            if fault.tile not in layout.tiles or not 0 <= fault.offset < size:
                raise ValueError(
                    f"{fault}: @{fault.variable} has {size} bytes on tiles {layout.tiles}"
                )


def _overlapping(variables: Mapping[str, exchange.VariableOp]) -> list[Table]:
    """For each variable, the variables that share bytes with it on some tile, itself included."""
    boxes = np.array(
        [
            (
                v.start,
                v.start + v.bytes_per_tile,
                *v.placed.tiles.span,
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
