"""The supersteps of a run as trace events, which Perfetto and Chrome's chrome://tracing show.

Source: "Trace Event Format", Google, 2016: complete events (ph "X") and metadata (ph "M").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from xdsl.dialects.func import CallOp

from ...backends.clocks.zones import zones_of
from ...backends.prices.price import StepPrice, step_prices
from ...backends.prices.price_operations import OperationPrice
from ...backends.target import Target
from ...backends.timeline import Execution, Skipped, timeline
from ...dialects.steps import Superstep
from ...ir.provenance import place
from ..driver.executable import MACHINE, Executable

MOST_EXECUTIONS = 10_000
"""The most executions of supersteps in a trace. Longer traces open slowly; the last iterations of
loops are left out.
"""

PROCESS = 1
"""The first chip. Each of the others is a process of its own, in order, and then the I/O tiles of
each chip."""

STEPS = 1
"""The row of the supersteps and their phases. The later rows are for operations."""

WAIT, EXCHANGE, COMPUTE = "wait", "exchange", "compute"

Event = dict[str, Any]


def trace_text(exe: Executable, lines: Mapping[str, str] = MappingProxyType({})) -> str:
    """The trace of one run as JSON, one event per line.

    A superstep is a slice with slices for its phases: sync, exchange, compute. The operations of a
    phase run on different tiles at the same time, so each has its own row; its slice is as long as
    the time of the tile that is busy longest with it. Times are the cycles in the program's price,
    divided by the target's clock. Each chip is a process with supersteps of its own, and with
    slices in which it waits for other chips. I/O tiles are a process, too. Operations stand below
    the chip or the I/O tiles on which their superstep takes longest.

    Args:
        lines: what lines of the model's source say, by file and line, such as net.py:12.
    """
    trace = _Trace.of(exe, lines)
    events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in trace.events())
    other = {
        "program": exe.path,
        "target": exe.target.spelling(),
        "clock_hz": exe.target.clock_hz,
        "cycles": trace.cycles,
    }
    return (
        f'{{"displayTimeUnit":"ns","otherData":{json.dumps(other)},"traceEvents":[\n{events}\n]}}\n'
    )


@dataclass(frozen=True)
class _Trace:
    target: Target
    lines: Mapping[str, str]
    steps: Mapping[Superstep, StepPrice]
    operations: Mapping[Superstep, list[OperationPrice]]
    executions: tuple[Execution | Skipped, ...]

    @staticmethod
    def of(exe: Executable, lines: Mapping[str, str]) -> _Trace:
        """The trace of a program's last level."""
        module = exe.module_at(MACHINE)
        steps = {each.step: each for each in step_prices(module, exe.target)}
        advances = {step: each.advance for step, each in steps.items()}
        run = tuple(timeline(module, advances, exe.target, MOST_EXECUTIONS))
        operations: dict[Superstep, list[OperationPrice]] = {step: [] for step in steps}
        for op, each in exe.operation_prices.items():
            operations[cast(Superstep, op.parent_op())].append(each)
        return _Trace(exe.target, lines, steps, operations, run)

    @property
    def cycles(self) -> int:
        """The cycles of the run."""
        return max((each.end for each in self.executions), default=0)

    def events(self) -> Iterator[Event]:
        """All events: the names of the rows, and then the slices in order."""
        label, zones = self.target.spelling(), zones_of(self.target, self.target.tiles)
        tiles = np.bincount(zones.of_tile)
        operations = max((len(each) for each in self.operations.values()), default=0)
        for zone in range(zones.count):
            where = ", ".join(filter(None, (label, zones.name(zone))))
            yield _named("process_name", PROCESS + zone, 0, f"{where}: {tiles[zone]:,} tiles")
            yield _named("thread_name", PROCESS + zone, STEPS, "supersteps")
            for row in range(operations):
                name = f"operations {row + 1}"
                yield _named("thread_name", PROCESS + zone, STEPS + 1 + row, name)
        for each in self.executions:
            yield from self._skipped(each) if isinstance(each, Skipped) else self._step(each)

    def _skipped(self, each: Skipped) -> Iterator[Event]:
        if isinstance(each.loop, CallOp):
            name, what = f"call of @{each.loop.callee.string_value()}", "call"
        else:
            name, what = f"{each.iterations:,} more iterations of the loop", "loop"
        for zone, start, end in zip(each.zones, each.starts, each.ends, strict=True):
            row = int(zone), STEPS
            yield self._slice(
                name, what, row, int(start), int(end - start), **{what: place(each.loop)}
            )

    def _step(self, execution: Execution) -> Iterator[Event]:
        step = self.steps[execution.step]
        found, advance = step.price, step.advance
        more = {"node": found.origin, **self._source(found.line)}
        if execution.iterations:
            more["turn"] = ", ".join(str(each + 1) for each in execution.iterations)
        busiest = zones_of(self.target, self.target.tiles).of_tile[found.busiest_tile]
        for at, zone in enumerate(execution.zones.tolist()):
            arrives, start = int(execution.arrives[at]), int(execution.starts[at])
            sync, exchanging, computing = (
                int(each[zone])
                for each in (advance.sync_cycles, advance.exchange_cycles, advance.compute_cycles)
            )
            row, tile = (zone, STEPS), int(advance.tile[zone])
            if start > arrives:
                yield self._slice(WAIT, WAIT, row, arrives, start - arrives)
            whole = sync + exchanging + computing
            yield self._slice(found.name, "superstep", row, start, whole, **more, busiest_tile=tile)
            exchange = start + sync
            compute = exchange + exchanging
            yield self._slice("sync", "sync", row, start, sync)
            if exchanging:
                # Of all chips together.
                moved = {"exchange_bytes": found.exchange_bytes}
                yield self._slice(EXCHANGE, EXCHANGE, row, exchange, exchanging, **moved)
            if computing:
                yield self._slice(COMPUTE, COMPUTE, row, compute, computing)
            if zone == busiest:
                for k, each in enumerate(self.operations[execution.step]):
                    here = zone, STEPS + 1 + k
                    yield from self._operation(each, here, exchange, compute, start + whole)

    def _operation(
        self, each: OperationPrice, row: tuple[int, int], exchange: int, compute: int, end: int
    ) -> Iterator[Event]:
        """The slices of an operation on its busiest tile.

        Args:
            row: the clock zone, and the row of the operation.
            exchange, compute: the start of each phase on the superstep's busiest tile.
            end: of the superstep.
        """
        # A tile may compute while the busiest tile still exchanges, and vice versa.
        compute = max(exchange + each.exchange_cycles, min(compute, end - each.compute_cycles))
        name = f"{each.node or each.writes}: {each.operation}"
        more = {
            "node": each.node,
            **self._source(each.line),
            "writes": each.writes,
            "exchange_bytes": each.exchange_bytes,
            "tile_bytes": each.tile_bytes,
        }
        for phase, start, cycles in (
            (EXCHANGE, exchange, each.exchange_cycles),
            (COMPUTE, compute, each.compute_cycles),
        ):
            if cycles:
                yield self._slice(name, phase, row, start, cycles, **more)

    def _source(self, line: str) -> dict[str, str]:
        """A line of the model's source, and what it says; {} if it is not known."""
        text = self.lines.get(line, "")
        return ({"line": line} if line else {}) | ({"text": text} if text else {})

    def _slice(
        self, name: str, kind: str, row: tuple[int, int], start: int, cycles: int, **more: object
    ) -> Event:
        chip, line = row
        return {
            "ph": "X",
            "pid": PROCESS + chip,
            "tid": line,
            "name": name,
            "cat": kind,
            "ts": self._microseconds(start),
            "dur": self._microseconds(cycles),
            "args": {"cycles": cycles, **{key: v for key, v in more.items() if v is not None}},
        }

    def _microseconds(self, cycles: int) -> float:
        return cycles * 1e6 / self.target.clock_hz


def _named(kind: str, process: int, row: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": row, "name": kind, "args": {"name": name}}
