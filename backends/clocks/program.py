"""The clocks of a program: its sections, and what lies on its longest way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ...dialects import control
from ...dialects.steps import Read, Superstep
from ...ir.support.arrays import Integers
from ...ir.well_known import ENTRY
from ..functions import callee_of
from .advance import Advance, Meeting
from .section import Element, Inner, Line, Meet, Power, Section, Steps

Taken = Mapping[Superstep, Integers]


class ProgramClocks:
    """The sections of a program, made once each.

    A repeat's body runs once per iteration. The test and the body of a while run once. Of an if,
    the branch that takes longer if all clocks begin together. A truth value that the control
    program reads decides what every chip does, so all zones wait for each other there; this takes
    no cycles.

    Attributes:
        functions: by name.
        advances: of each superstep.
        zones: their number.
        branches: the branch of each if that counts, as far as it is known.
    """

    def __init__(
        self,
        functions: Mapping[str, func.FuncOp],
        advances: Mapping[Superstep, Advance],
        zones: int,
        branches: Mapping[control.IfOp, Block] | None = None,
    ) -> None:
        self.functions = functions
        self.advances = advances
        self.zones = zones
        self.branches = dict(branches or {})
        self._everybody = Meeting.of(np.zeros(zones, np.int64))
        self._known: dict[Block, Line] = {}
        self._made: list[Section] = []
        self._steps: dict[Superstep, Steps] = {}

    def block(self, block: Block, calling: tuple[str, ...]) -> Section:
        """The section of a block.

        Args:
            calling: as for callee_of.
        """
        if block not in self._known:
            self._known[block] = self._keep(Line(self._elements(block, calling), self.zones))
        return self._known[block]

    def dearer_branch(self, op: control.IfOp, calling: tuple[str, ...]) -> Block:
        """The branch of an if that takes more cycles; the first if both take as many."""
        if op not in self.branches:
            branches = op.then.block, op.otherwise.block
            self.branches[op] = max(branches, key=lambda b: self.block(b, calling).ways.longest)
        return self.branches[op]

    @cached_property
    def run(self) -> tuple[Integers, Taken]:
        """The clocks at the end of a run, (zones,), and how often its longest way goes through each
        zone in each superstep, (zones,).

        Where several zones are late alike, the way goes through the first of them.
        """
        entry = self.functions[ENTRY].body.block
        start = np.zeros((self.zones, 1), np.int64)
        line = self._keep(Line(self._elements(entry, (ENTRY,)), self.zones, start))
        end = line.ways.cycles[:, 0]
        last = np.array([np.argmax(end)])
        line.take(last, last, np.ones(1, np.int64))
        # Each section was made after those within it.
        for section in reversed(self._made):
            section.pass_on()
        taken = {
            step: np.where(self.advances[step].takes_part, found.taken, 0)
            for step, found in self._steps.items()
        }
        return end, taken

    def after_read(self, clocks: Integers) -> Integers:
        """The clocks after the control program has read a truth value, (zones,)."""
        return clocks if self._everybody is None else np.full_like(clocks, clocks.max())

    def _keep(self, section: Line) -> Line:
        self._made.append(section)
        return section

    def _elements(self, block: Block, calling: tuple[str, ...]) -> list[Element]:
        """The elements of a block. Supersteps in which nobody waits for others are one element."""
        found: list[Element] = []
        run: list[Superstep] = []

        def end_run() -> None:
            if run:
                found.append(self._together(run))
                run.clear()

        for op in block.ops:
            if isinstance(op, Superstep):
                meeting = self.advances[op].meeting
                if meeting is not None:
                    end_run()
                    found.append(Meet(meeting))
                run.append(op)
                continue
            inner = list(self._inner(op, calling))
            if inner:
                end_run()
                found += inner
        end_run()
        return found

    def _together(self, steps: list[Superstep]) -> Steps:
        cycles = np.sum([self.advances[step].cycles for step in steps], axis=0)
        found = Steps(cycles, np.zeros_like(cycles))
        self._steps.update(dict.fromkeys(steps, found))
        return found

    def _inner(self, op: Operation, calling: tuple[str, ...]) -> Iterator[Element]:
        match op:
            case control.RepeatOp():
                body = self.block(op.body.block, calling)
                if op.iterations:
                    loop = Power(body, op.iterations)
                    self._made.append(loop)
                    yield Inner(loop)
            case control.IfOp():
                yield Inner(self.block(self.dearer_branch(op, calling), calling))
            case control.WhileOp():
                yield Inner(self.block(op.test.block, calling))
                yield Inner(self.block(op.body.block, calling))
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                inside = (*calling, callee.sym_name.data)
                yield Inner(self.block(callee.body.block, inside))
            case Read():
                if self._everybody is not None:
                    yield Meet(self._everybody)
            case _:
                return
