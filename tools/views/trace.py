"""The supersteps of a run as trace events, which Perfetto and Chrome's chrome://tracing show.

Source: "Trace Event Format", Google, 2016: complete events (ph "X") and metadata (ph "M").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects.func import CallOp

from ...backends.prices.price import SuperstepPrice, price
from ...backends.prices.price_operations import OperationPrice
from ...backends.target import Target
from ...backends.timeline import Execution, Skipped, timeline
from ...dialects.tile import SuperstepOp
from ...ir.provenance import place
from ..driver.executable import MACHINE, Executable

MOST_EXECUTIONS = 10_000
"""The most executions of supersteps in a trace. Longer traces open slowly; the last iterations of
loops are left out.
"""

PROCESS = 1
STEPS = 1
"""The row of the supersteps and their phases. The later rows are for operations."""

EXCHANGE, COMPUTE = "exchange", "compute"

Event = dict[str, Any]


def trace_text(exe: Executable, lines: Mapping[str, str] = MappingProxyType({})) -> str:
    """The trace of one run as JSON, one event per line.

    A superstep is a slice with slices for its phases: sync, exchange, compute. The operations of a
    phase run on different tiles at the same time, so each has its own row; its slice is as long as
    the time of the tile that is busy longest with it. Times are the cycles in the program's price,
    divided by the target's clock.

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
    steps: Mapping[SuperstepOp, SuperstepPrice]
    operations: Mapping[SuperstepOp, list[OperationPrice]]
    executions: tuple[Execution | Skipped, ...]

    @staticmethod
    def of(exe: Executable, lines: Mapping[str, str]) -> _Trace:
        """The trace of a program's last level."""
        module = exe.module_at(MACHINE)
        found = [op for op in module.walk() if isinstance(op, SuperstepOp)]
        steps = dict(zip(found, price(module, exe.target), strict=True))
        cycles = {step: each.cycles for step, each in steps.items()}
        run = tuple(timeline(module, cycles, MOST_EXECUTIONS))
        operations: dict[SuperstepOp, list[OperationPrice]] = {step: [] for step in found}
        for op, each in exe.operation_prices.items():
            operations[cast(SuperstepOp, op.parent_op())].append(each)
        return _Trace(exe.target, lines, steps, operations, run)

    @property
    def cycles(self) -> int:
        """The cycles of the run."""
        if not self.executions:
            return 0
        last = self.executions[-1]
        own = last.cycles if isinstance(last, Skipped) else self.steps[last.step].cycles
        return last.start + own

    def events(self) -> Iterator[Event]:
        """All events: the names of the rows, and then the slices in order."""
        yield _named("process_name", 0, f"{self.target.spelling()}: {self.target.tiles:,} tiles")
        yield _named("thread_name", STEPS, "supersteps")
        for row in range(max((len(each) for each in self.operations.values()), default=0)):
            yield _named("thread_name", STEPS + 1 + row, f"operations {row + 1}")
        for each in self.executions:
            yield from self._skipped(each) if isinstance(each, Skipped) else self._step(each)

    def _skipped(self, each: Skipped) -> Iterator[Event]:
        if isinstance(each.loop, CallOp):
            name, what = f"call of @{each.loop.callee.string_value()}", "call"
        else:
            name, what = f"{each.iterations:,} more iterations of the loop", "loop"
        yield self._slice(name, what, STEPS, each.start, each.cycles, **{what: place(each.loop)})

    def _step(self, execution: Execution) -> Iterator[Event]:
        found, start = self.steps[execution.step], execution.start
        more = {
            "node": found.origin,
            **self._source(found.line),
            "busiest_tile": found.busiest_tile,
        }
        if execution.iterations:
            more["turn"] = ", ".join(str(each + 1) for each in execution.iterations)
        yield self._slice(found.name, "superstep", STEPS, start, found.cycles, **more)
        exchange = start + found.sync_cycles
        compute = exchange + found.exchange_cycles
        yield self._slice("sync", "sync", STEPS, start, found.sync_cycles)
        if found.exchange_cycles:
            yield self._slice(
                EXCHANGE,
                EXCHANGE,
                STEPS,
                exchange,
                found.exchange_cycles,
                exchange_bytes=found.exchange_bytes,
            )
        if found.compute_cycles:
            yield self._slice(COMPUTE, COMPUTE, STEPS, compute, found.compute_cycles)
        end = start + found.cycles
        for row, each in enumerate(self.operations[execution.step]):
            yield from self._operation(each, STEPS + 1 + row, exchange, compute, end)

    def _operation(
        self, each: OperationPrice, row: int, exchange: int, compute: int, end: int
    ) -> Iterator[Event]:
        """The slices of an operation on its busiest tile.

        Args:
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
        self, name: str, kind: str, row: int, start: int, cycles: int, **more: object
    ) -> Event:
        return {
            "ph": "X",
            "pid": PROCESS,
            "tid": row,
            "name": name,
            "cat": kind,
            "ts": self._microseconds(start),
            "dur": self._microseconds(cycles),
            "args": {"cycles": cycles, **{key: v for key, v in more.items() if v is not None}},
        }

    def _microseconds(self, cycles: int) -> float:
        return cycles * 1e6 / self.target.clock_hz


def _named(kind: str, row: int, name: str) -> Event:
    return {"ph": "M", "pid": PROCESS, "tid": row, "name": kind, "args": {"name": name}}
