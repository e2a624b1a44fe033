"""Strict mode: tracks the variable that each byte was last written as, to check each phase.

Reading a byte that was last written as another variable is an error: the byte is undefined or
overwritten. A variable is always written as a whole. So its bytes are its own as long as no
variable that may share bytes with it has been written since. Only otherwise are single bytes
compared: all variables that may share them are painted into a shadow of the memory, in the order in
which they were written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...dialects.exchange import VariableOp
from ...dialects.steps import Copy, Departure, Superstep, Vertices, written_by
from ...ir.geometry.blocks import block_view, owner_classes
from ...ir.geometry.grid import Run, shape_classes
from ...ir.provenance import origin, place
from ..addresses.in_place import is_in_place
from ..faults import MachineFault

Marks = NDArray[np.uint16]
Numbers = frozenset[int]
MOST_MARKS = 0xFFFF


class Shadow:
    """The state of every byte of a machine's memory.

    Attributes:
        shape: (tiles, bytes) of the memory that variables occupy.
        variables: by name, at most 65,534.
    """

    def __init__(self, shape: tuple[int, int], variables: Mapping[str, VariableOp]) -> None:
        self._variables = variables
        self._names = list(variables)
        self._number = {name: i + 1 for i, name in enumerate(self._names)}
        if len(self._names) >= MOST_MARKS:
            raise ValueError(f"{len(self._names)} variables; at most {MOST_MARKS - 1}")
        # For each byte, 1 plus the number of the variable as which it was last written; 0: never.
        # Only painted bytes are up to date, and only they take memory.
        self._owner: Marks = np.zeros(shape, np.uint16)
        # For each byte, the operation that last wrote it, numbered across phases; only of
        # operations that may share bytes with others of their phase.
        self._writer: Marks = np.zeros(shape, np.uint16)
        self._clock = 0
        # The time at which each variable was last written, by number; 0: never.
        self._written = np.zeros(len(self._names) + 1, np.int64)
        self._boxes = np.array(
            [
                (v.start, v.start + v.bytes_per_tile, *layout.tiles.span)
                for v in variables.values()
                for layout in [v.placed]
            ],
            np.int64,
        ).reshape(-1, 4)
        self._known: dict[str, Numbers] = {}
        # The states and constants that have a value.
        self._held: set[str] = set()

    def define(self, name: str) -> None:
        """Record that a variable has been written, padding included."""
        self._written[self._number[name]] = self._written.max() + 1
        if self._variables[name].is_resident:
            self._held.add(name)

    def check_held(self) -> None:
        """Raise MachineFault if a run has destroyed a state or a constant."""
        for name in self._held:
            self._check_defined(
                None, self._variables[name], name, True, "must hold, after every run,"
            )

    def check_predicate(self, op: Operation, name: str) -> None:
        """Raise MachineFault if the control program reads an undefined predicate."""
        self._check_defined(None, op, name, every=False)

    def check_phase(self, step: Superstep, ops: Sequence[Operation]) -> None:
        """Check the accesses of a phase.

        Raises MachineFault if operations read bytes that are undefined or written in the same
        phase, or write a byte twice.
        """
        base = self._tick(len(ops))
        writes = [(number, op, name) for number, op in enumerate(ops) for name in written_by(op)]
        reads = [
            (
                number,
                op,
                name,
                isinstance(op, Vertices) and is_in_place(op, index, self._variables),
            )
            for number, op in enumerate(ops)
            for index, name in enumerate(_read(op))
        ]
        written = [self._number[name] for _, _, name in writes]
        shared: set[int] = set()
        for i, (number, op, name) in enumerate(writes):
            read = {
                self._number[other]
                for reader, _, other, in_place in reads
                if not (in_place and reader == number)
            }
            if self._meeting(name).isdisjoint({*written[:i], *written[i + 1 :], *read}):
                continue
            shared.add(written[i])
            for cls, marks in self._marks(self._writer, name, every=True):
                taken = marks >= base
                if taken.any():
                    other = _who(ops[int(marks[taken][0]) - base])
                    self._fault(
                        step, op, name, cls, taken, f"which {other} writes in the same phase"
                    )
                marks[...] = base + number
        for number, op, name, in_place in reads:
            every = isinstance(op, Vertices)
            self._check_defined(step, op, name, every)
            if self._meeting(name).isdisjoint(shared):
                continue
            harmless = base + number if in_place else 0
            for cls, marks in self._marks(self._writer, name, every):
                taken = (marks >= base) & (marks != harmless)
                if taken.any():
                    other = ops[int(marks[taken][0]) - base]
                    who = "it overwrites" if other is op else f"{_who(other)} writes"
                    self._fault(
                        step, op, name, cls, taken, f"which {who} in the same phase", "reads"
                    )

    def end_phase(self, ops: Sequence[Operation]) -> None:
        """Record the writes of the operations of a phase."""
        for op in ops:
            for name in written_by(op):
                self.define(name)

    def _meeting(self, name: str) -> Numbers:
        """The numbers of the variables that may share bytes with this one, including its own."""
        if name not in self._known:
            own = self._number[name]
            low, high, first, last = self._boxes.T
            box = self._boxes[own - 1]
            meets = (low < box[1]) & (high > box[0]) & (first < box[3]) & (last > box[2])
            self._known[name] = frozenset({own, *(np.flatnonzero(meets) + 1).tolist()})
        return self._known[name]

    def _paint(self, name: str) -> None:
        """Paint a variable into the shadow: its bytes were last written as this variable."""
        numbers = np.array([*self._meeting(name)], np.int64)
        when = self._written[numbers]
        for _, marks in self._marks(self._owner, name, every=True):
            marks[...] = 0
        order: list[int] = numbers[np.argsort(when)][np.count_nonzero(when == 0) :].tolist()
        for number in order:
            for _, marks in self._marks(self._owner, self._names[number - 1], every=True):
                marks[...] = number

    def _tick(self, count: int) -> int:
        """Reserve numbers for the operations of a phase; returns the first. They exceed all earlier
        ones.
        """
        if self._clock + count + 1 > MOST_MARKS:
            self._writer.fill(0)
            self._clock = 0
        base = self._clock + 1
        self._clock += count
        return base

    def _marks(self, shadow: Marks, name: str, every: bool) -> list[tuple[tuple[Run, ...], Marks]]:
        """A variable's bytes in a shadow, by shape class: (parts..., axes..., bytes of an element).

        Args:
            every: whether to include all replicas; if not, only the first.
        """
        variable = self._variables[name]
        layout = variable.placed
        element = np.dtype([("bytes", np.uint16, (variable.dtype.itemsize,))])
        classes = shape_classes(layout.grid) if every else owner_classes(layout)
        return [
            (
                cls,
                block_view(shadow.view(np.uint8), 2 * variable.start, layout, element, cls)[
                    "bytes"
                ],
            )
            for cls in classes
        ]

    def _check_defined(
        self,
        step: Superstep | None,
        op: Operation,
        name: str,
        every: bool,
        verb: str = "reads",
    ) -> None:
        own, others = self._number[name], [*self._meeting(name)]
        if self._written[own] and self._written[own] == self._written[others].max():
            return
        self._paint(name)
        for cls, marks in self._marks(self._owner, name, every):
            bad = marks != self._number[name]
            if bad.any():
                mark = int(marks[bad][0])
                problem = (
                    f"last written as @{self._names[mark - 1]}" if mark else "never written before"
                )
                self._fault(step, op, name, cls, bad, problem, verb)

    def _fault(
        self,
        step: Superstep | None,
        op: Operation,
        name: str,
        cls: tuple[Run, ...],
        bad: NDArray[np.bool_],
        problem: str,
        verb: str = "writes",
    ) -> None:
        variable = self._variables[name]
        layout = variable.placed
        rank = len(cls)
        part: tuple[Any, ...] = tuple(np.argwhere(bad)[0][:rank])
        cell = sum(
            (run.first + int(p)) * w for run, p, w in zip(cls, part, layout.weights, strict=True)
        )
        *axes, byte = np.nonzero(bad[part])
        offset = byte.astype(np.int64)
        for index, stride in zip(axes, layout.strides, strict=True):
            offset += index * stride * variable.dtype.itemsize
        tile = layout.tiles.of(cell)
        addresses = (
            variable.start + int(offset.min()),
            variable.start + int(offset.max()) + 1,
        )
        where = "" if step is None else f"superstep @{step.sym_name.data}: "
        raise MachineFault(
            f"{where}{op.name} at {place(op)} {verb} bytes {addresses[0]}..{addresses[1] - 1} of "
            f"tile {tile} (@{name}), {problem}",
            superstep=None if step is None else step.sym_name.data,
            op=op.name,
            variable=name,
            tile=tile,
            addresses=addresses,
            node=origin(op),
        )


def _who(op: Operation) -> str:
    return f"{op.name} at {place(op)}"


def _read(op: Operation) -> list[str]:
    if isinstance(op, Copy | Vertices):
        return op.sources
    return [op.source] if isinstance(op, Departure) else []
