"""The comparison of compiled kernels with NumPy: the same program, byte for byte.

The calls of NumPy define the bytes of a machine, and kernels write the same bytes faster. Every
other check of the kit runs NumPy alone, so it says nothing about the kernels that a user's program
runs with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import TypeAlias, cast

import numpy as np
from xdsl.ir import Operation

from ....backends.codelets.numerics import kind_of
from ....backends.evaluate.binder import Binder
from ....backends.evaluate.host import Run
from ....backends.host.binders import best_binder
from ....backends.host.calls import KernelCall, WhileEqual
from ....backends.host.load import kernels, loaded
from ....backends.machine import Machine, Observer
from ....dialects import exchange, tile
from ....ir.errors import one_line
from ....ir.number_kinds import is_floating
from ....ir.provenance import place
from ...driver.arrays import Array
from ..generators.program import Program

TASKS = ("sharing", "copies", "chains", "functions", "routes", "products", "lookups")
"""The tasks whose kernels run programs."""

TURNS = 2
"""Runs of one program. From the second run on, kernels use what they kept in the first one."""


LENGTHS = (8, 32, 128, 256, 600)
"""Lengths behind which kernels do something else: vectors, chains of sums, panels."""

LANES = 16
"""Elements of the longest vector. A kernel treats what is left after whole vectors by itself."""

Situation: TypeAlias = "tuple[object, ...]"
"""What decides, roughly, which parts of a kernel an operation runs."""


def has_kernels() -> bool:
    """Whether this host runs programs with compiled kernels."""
    return best_binder() is not Binder


@cache
def prepare_kernels() -> None:
    """Load the kernels of all tasks, and compile those that are not cached, which takes a minute.

    Otherwise the first program that needs them would seem to hang.
    """
    if has_kernels():
        for task in TASKS:
            kernels(task)


def situations(program: Program) -> set[Situation]:
    """The situations of the operations of a program of exchange."""
    variables = {op.symbol: op for op in program.module.ops if isinstance(op, exchange.VariableOp)}
    found: set[Situation] = set()
    for op in program.module.walk():
        if isinstance(op, tile.CopyOp):
            target = variables[op.destination]
            cuts = [_cuts(variables[name]) for name in op.sources]
            found |= {("copy", target.dtype.itemsize, each, _cuts(target)) for each in cuts}
        elif isinstance(op, tile.VerticesOp):
            found.add(_of_vertices(op, [variables[name] for name in (*op.sources, op.destination)]))
    return found


def _cuts(variable: exchange.VariableOp) -> tuple[int, int]:
    """Along how many dimensions a variable is cut, and how many axes it has."""
    return sum(n > 1 for n in variable.placed.parts), len(variable.placed.shape)


def _of_vertices(op: tile.VerticesOp, variables: Sequence[exchange.VariableOp]) -> Situation:
    structure, split = op.structure(), op.plan.data.split
    space, body = structure.space, structure.body
    kind = kind_of(body, len(space.relations))
    sizes = [-(-dim.size // parts) for dim, parts in zip(space.dims, split, strict=True)]
    merged = prod(sizes[d] for d in space.of_kind("reduction"))
    kept = [sizes[d] for d in space.of_kind("parallel", "whole")]
    inner = kept[-1] if kept else 1
    edges = tuple(sorted(kept)[-2:]) if kind == "contraction" else (min(inner % LANES, 2),)
    dtypes = tuple(v.dtype.name for v in variables)
    return (kind, dtypes, bisect_left(LENGTHS, inner), edges, bisect_left(LENGTHS, merged))


@dataclass(frozen=True)
class WrongKernel:
    """A difference between a program's run by kernels and its run by NumPy.

    tasks: the tasks of the kernels of the first operation whose result differs; () if no operation
    differs by itself. text: what differs, in words.
    """

    tasks: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        """The kernels to blame, in words."""
        return f"the compiled kernels of {' and '.join(self.tasks) or 'fused operations'}"


def wrong_kernel(program: Program, found: Run) -> WrongKernel | None:
    """How a program of exchange differs if compiled kernels run it; None if all bytes are equal.

    found: the results of one run by NumPy. Where both results are NaN, their bits may differ.
    """
    try:
        differs = _first_difference(_runs(program, best_binder()), _of_numpy(program, found))
    except Exception as error:
        differs = f"they raise {one_line(error)}"
    if differs is None:
        return None
    op, tasks = _wrong_operation(program)
    at = "" if op is None else f"the first operation that differs is {op.name} at {place(op)}; "
    return WrongKernel(tasks, f"{at}{differs}")


def _of_numpy(program: Program, found: Run) -> Iterator[Mapping[str, Array]]:
    """The results of each run by NumPy, of which the first is known."""
    first = _named(found.outputs, found.state)
    yield first
    if found.state:
        runs = _runs(program, Binder)
        next(runs)
        yield from runs
    else:
        yield first


def _runs(program: Program, binder: type[Binder]) -> Iterator[Mapping[str, Array]]:
    """The outputs and states of one run after another."""
    machine = Machine(program.module, program.target, binder=binder)
    states = [name for name, op in machine.variables.items() if op.state is not None]
    for _ in range(TURNS):
        outputs = {name: array.copy() for name, array in machine.run(program.inputs).items()}
        yield _named(outputs, {name: machine.read(name) for name in states})


def _named(outputs: Mapping[str, Array], state: Mapping[str, Array]) -> Mapping[str, Array]:
    return {**outputs, **{f"@{name}": array for name, array in state.items()}}


def _first_difference(
    compiled: Iterator[Mapping[str, Array]], numpy: Iterator[Mapping[str, Array]]
) -> str | None:
    for turn, (found, right) in enumerate(zip(compiled, numpy, strict=True)):
        for name, array in right.items():
            wrong = _different(found[name], array)
            if wrong is not None:
                return f"{name}: {wrong}" + " in the second run" * bool(turn)
    return None


def _different(found: Array, right: Array) -> str | None:
    """The first element that differs, in words; None if all bytes are equal."""
    if found.tobytes() == right.tobytes():
        return None
    bits = np.dtype(f"u{right.dtype.itemsize}")
    differs = np.ascontiguousarray(found).view(bits) != np.ascontiguousarray(right).view(bits)
    if is_floating(right.dtype):
        differs &= ~(np.isnan(found) & np.isnan(right))
    where = np.argwhere(differs)
    if not len(where):
        return None
    at = tuple(int(i) for i in where[0])
    return (
        f"element {list(at)} is {_shown(found[at])}; need {_shown(right[at])}, as NumPy computes "
        f"it ({len(where)} of {right.size} elements differ)"
    )


def _shown(value: np.generic) -> str:
    return f"{float(value):.9g}" if is_floating(value.dtype) else str(value)


# Blame


@dataclass
class _Written(Observer):
    """Keeps what each operation has written, in the order of a run."""

    seen: list[tuple[Operation, list[Array]]] = field(
        default_factory=list["tuple[Operation, list[Array]]"]
    )

    def on_move(self, op: tile.CopyOp, machine: Machine) -> None:
        """Keep the destination of a move."""
        self._keep(op, op.destinations, machine)

    def on_compute(self, op: tile.VerticesOp, machine: Machine) -> None:
        """Keep the results of a vertex set."""
        self._keep(op, op.destinations, machine)

    def _keep(self, op: Operation, names: Sequence[str], machine: Machine) -> None:
        views = [view for name in names for view in machine.blocks[name].views()]
        self.seen.append((op, [view.copy() for view in views]))


def _wrong_operation(program: Program) -> tuple[Operation | None, tuple[str, ...]]:
    """The first operation that writes other bytes, and the tasks of its kernels.

    Kernels that are fused over several operations show no bytes in between: the operation is None
    if none differs by itself, and the tasks are those of the whole program.
    """
    watches = [_Written(), _Written()]
    machines: list[Machine] = []
    for watch, binder in zip(watches, (Binder, best_binder(is_watched=True)), strict=True):
        machine = Machine(program.module, program.target, binder=binder, observers=[watch])
        machines.append(machine)
        # An error of the kernels ends the run, and what they wrote before tells enough.
        with suppress(Exception):
            for _ in range(TURNS):
                machine.run(program.inputs)
    for (op, right), (_, found) in zip(*(watch.seen for watch in watches), strict=False):
        if any(_different(a, b) is not None for a, b in zip(found, right, strict=True)):
            return op, _tasks_of(machines[1], op)
    return None, _tasks_of(Machine(program.module, program.target, binder=best_binder()), None)


def _tasks_of(machine: Machine, of: Operation | None) -> tuple[str, ...]:
    """The tasks of the kernels that an operation calls; those of all operations if it is None."""
    codes = {
        code
        for op, calls, _ in machine.bound()
        if of is None or op is of
        for function, _ in calls
        for code in _codes(function)
    }
    return tuple(task for task in TASKS if codes & _codes_of(task))


def _codes(function: object) -> Iterator[int]:
    if isinstance(function, WhileEqual):
        yield from (code for each in (function.once, function.each) for code in _codes(each[0]))
    elif isinstance(function, KernelCall):
        yield function.arguments[0]


def _codes_of(task: str) -> set[int]:
    """The addresses of the kernels of a task that has been loaded."""
    known = cast("dict[str, object]", vars(loaded[task]) if task in loaded else {})
    return {each for each in known.values() if isinstance(each, int)}
