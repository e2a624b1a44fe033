"""A run as a Perfetto trace: the control program, supersteps, tiles, memory, and the host.

Source: Perfetto, "Converting arbitrary timestamped data to Perfetto": track descriptors, slices and
counters as protobuf packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....ir.support.errors import InputError
from .chip_runs import PHASES, chip_runs
from .collect import Report
from .columns import length
from .folder import plain_columns, rows_of

SEQUENCE = 1
"""The number of the only sequence. All packets belong to it, since nothing is written in
parallel."""

MOST_TILES = 64
"""The most tiles in a trace. Assumed: nobody reads more rows, and each has up to 20,000 slices."""

NANOSECONDS = 1e9


def check_tiles(text: str) -> tuple[int, ...]:
    """The tiles of --tiles, such as "0,7,715". Raises InputError."""
    parts = [each.strip() for each in text.split(",")] if text else []
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in parts):
        raise InputError(f"--tiles {text}: need numbers of tiles, such as 0,7")
    found = tuple(dict.fromkeys(map(int, parts)))
    if len(found) > MOST_TILES:
        raise InputError(f"--tiles: {len(found)} tiles; need at most {MOST_TILES}")
    return found


def needs_perfetto() -> None:
    """Raise InputError if the package perfetto is not installed."""
    _perfetto()


def trace_bytes(report: Report, tiles: Sequence[int] = ()) -> bytes:
    """The trace of a run.

    Raises InputError for a tile that the program does not have.

    Args:
        tiles: the tiles with a row; by default, the slowest, median and fastest.
    """
    wrong = [tile for tile in tiles if tile >= report.program["tiles"]]
    if wrong:
        raise InputError(f"--tiles {wrong[0]}: need 0 to {report.program['tiles'] - 1}")
    trace = _Trace(report, float(report.program["target"]["clock_hz"]))
    trace.control()
    trace.supersteps()
    trace.memory()
    for name, tile in _chosen(report, tiles):
        trace.tile(name, tile)
    trace.host()
    return trace.builder.serialize()


def _chosen(report: Report, tiles: Sequence[int]) -> Iterator[tuple[str, int]]:
    if tiles:
        yield from ((f"tile {tile}", tile) for tile in tiles)
        return
    busy = np.argsort(np.asarray(report.tables["tiles"]["compute_cycles"]), kind="stable")
    if len(busy):
        for name, at in (("slowest", -1), ("median", len(busy) // 2), ("fastest", 0)):
            yield f"{name}: tile {int(busy[at])}", int(busy[at])


@dataclass
class _Trace:
    """Builds a trace.

    Attributes:
        clock: cycles per second.
        runs: what each chip does.
    """

    report: Report
    clock: float
    builder: Any = field(default_factory=lambda: _perfetto().trace_proto_builder())
    tracks: int = 0
    machine: int = 0
    runs: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    operations: Mapping[str, list[Any]] = field(default_factory=dict[str, list[Any]])

    def __post_init__(self) -> None:
        self.runs = [rows_of(vars(each)) for each in chip_runs(self.report)]
        self.steps = rows_of(self.report.tables["supersteps"])
        self.operations = plain_columns(self.report.tables["operations"])
        name = f"{self.report.program['name']} on {self.report.program['target']['name']}"
        self.machine = self._track(name, process=1)

    # Tracks, slices and counters

    def _track(self, name: str, parent: int = 0, *, process: int = 0, counter: bool = False) -> int:
        """Add a track; returns its number.

        Args:
            process: a number makes the track a process.
        """
        self.tracks += 1
        packet = self.builder.add_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        described = packet.track_descriptor
        described.uuid = self.tracks
        if process:
            described.process.pid = process
            described.process.process_name = name
        else:
            described.name = name
            described.parent_uuid = parent
        if counter:
            described.counter.unit_name = "bytes"
        return self.tracks

    def _event(self, track: int, time: float) -> Any:
        packet = self.builder.add_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.timestamp = round(time * NANOSECONDS)
        packet.track_event.track_uuid = track
        return packet.track_event

    def _begin(self, track: int, time: float, name: str, facts: dict[str, Any]) -> None:
        event = self._event(track, time)
        event.type = event.TYPE_SLICE_BEGIN
        event.name = name
        for key, value in facts.items():
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = str(value)

    def _end(self, track: int, time: float) -> None:
        event = self._event(track, time)
        event.type = event.TYPE_SLICE_END

    def _slice(self, track: int, start: float, end: float, name: str, **facts: Any) -> None:
        if end > start:
            self._begin(track, start, name, facts)
            self._end(track, end)

    def _count(self, track: int, time: float, value: int) -> None:
        event = self._event(track, time)
        event.type = event.TYPE_COUNTER
        event.counter_value = value

    # The contents of the tracks

    def control(self) -> None:
        """Draw functions, calls, loops and branches, each around its contents."""
        track = self._track("control program", self.machine)
        nodes = rows_of(self.report.tables["tree"])
        now = 0.0
        open_nodes: list[dict[str, Any]] = []
        for node in nodes:
            while open_nodes and node["depth"] <= open_nodes[-1]["depth"]:
                now = self._close(track, open_nodes.pop())
            if node["kind"] in ("superstep", "part"):
                now += node["exclusive_cycles"] / self.clock
                continue
            end = now + node["inclusive_cycles"] / self.clock
            self._begin(track, now, f"{node['kind']} {node['name']}", {"times": node["times"]})
            open_nodes.append({"depth": node["depth"], "end": end})
        while open_nodes:
            self._close(track, open_nodes.pop())

    def _close(self, track: int, node: dict[str, Any]) -> float:
        self._end(track, node["end"])
        return float(node["end"])

    def supersteps(self) -> None:
        """Draw operations, phases of training, and supersteps with sync, exchange and compute, for
        each chip."""
        for chip, run in enumerate(self.runs):
            self._supersteps(run, f", chip {chip}" if len(self.runs) > 1 else "")

    def _supersteps(self, run: list[dict[str, Any]], where: str) -> None:
        operations = self._track(f"operations{where}", self.machine)
        has_phases = any(self.operations["phase"])
        phases = self._track(f"forward, backward, update{where}", self.machine) if has_phases else 0
        steps = self._track(f"supersteps{where}", self.machine)
        for start, end, number in self._joined(run, [step["operation"] for step in self.steps]):
            name = self.operations["name"][number] if number >= 0 else "-"
            self._slice(operations, start, end, name)
        if has_phases:
            of_steps = [self._phase(step["operation"]) for step in self.steps]
            for start, end, name in self._joined(run, of_steps):
                self._slice(phases, start, end, name or "-")
        for each, start, end in self._spans(run):
            self._slice(steps, each["arrives"] / self.clock, start, "wait")
            if each["superstep"] < 0:
                self._slice(steps, start, end, f"{each['turns']} more iterations")
                continue
            step = self._step(each["superstep"])
            step["text"] = self.report.sources.get(step["line"], "")
            facts = {n: step[n] for n in _FACTS if step[n] != ""}
            self._begin(steps, start, step["name"], facts)
            now = start
            for phase in PHASES:
                then = now + each[phase] / self.clock
                self._slice(steps, now, then, phase)
                now = then
            self._end(steps, end)

    def _step(self, number: int) -> dict[str, Any]:
        return self.steps[number]

    def _phase(self, operation: int) -> str:
        return self.operations["phase"][operation] if operation >= 0 else ""

    def _spans(
        self, run: list[dict[str, Any]] | None = None
    ) -> Iterator[tuple[dict[str, Any], float, float]]:
        """Every execution of a chip, or of all chips, with the seconds of its begin and end."""
        every = [each for chip in self.runs for each in chip] if run is None else run
        for each in sorted(every, key=lambda each: each["start"]):
            yield each, each["start"] / self.clock, each["end"] / self.clock

    def _joined(
        self, run: list[dict[str, Any]], values: Sequence[Any]
    ) -> Iterator[tuple[float, float, Any]]:
        """Merge neighbouring executions whose supersteps have the same value into one span."""
        now: tuple[float, float, Any] | None = None
        for each, start, end in self._spans(run):
            value = values[int(each["superstep"])] if each["superstep"] >= 0 else None
            if now is not None and now[2] == value:
                now = now[0], end, value
                continue
            if now is not None and now[2] is not None:
                yield now
            now = start, end, value
        if now is not None and now[2] is not None:
            yield now

    def memory(self) -> None:
        """Draw counters: live bytes of the fullest and of the mean tile, and bytes received."""
        fullest = self._track("live bytes, fullest tile", self.machine, counter=True)
        mean = self._track("live bytes, mean tile", self.machine, counter=True)
        received = self._track("received, all tiles", self.machine, counter=True)
        for each, start, end in self._spans():
            step = self._step(each["superstep"]) if each["superstep"] >= 0 else None
            if step is None or step["live_mean"] is None:
                continue
            self._count(fullest, start, step["live_bytes"])
            self._count(mean, start, round(step["live_mean"]))
            self._count(received, start, step["exchange_bytes"])
            self._count(received, end, 0)

    def tile(self, name: str, tile: int) -> None:
        """Draw a row of one tile: exchange and compute; the tile waits where there is no slice."""
        track = self._track(name, self.machine)
        rows = self.report.tables["superstep_tiles"]
        here = np.asarray(rows["tile"]) == tile
        work = {n: np.zeros(length(self.report.tables["supersteps"]), np.int64) for n in _WORK}
        for column, values in work.items():
            values[np.asarray(rows["superstep"])[here]] = np.asarray(rows[column])[here]
        chips = len(self.runs)
        chip = min(tile * chips // int(self.report.program["tiles"]), chips - 1)
        for each, start, _ in self._spans(self.runs[chip]):
            number = each["superstep"]
            if number < 0:
                continue
            step = self._step(number)
            now = start + each["sync"] / self.clock
            then = now + work["exchange_cycles"][number] / self.clock
            self._slice(track, now, then, "exchange")
            now = then
            then = now + work["compute_cycles"][number] / self.clock
            self._slice(track, now, then, "compute", superstep=step["name"])

    def host(self) -> None:
        """Draw the passes of the compiler, scaled to the length of the run.

        They take seconds, and a run takes a thousandth of a second: to scale, nobody would see the
        run.
        """
        passes = rows_of(self.report.tables["passes"])
        total = sum(each["seconds"] for each in passes)
        if not total:
            return
        track = self._track(
            f"passes: {total:.2f} s, drawn as long as the run",
            self._track("abele on the host", process=2),
        )
        run = max((end for _, _, end in self._spans()), default=0.0)
        now = 0.0
        for each in passes:
            then = now + each["seconds"] * run / total
            seconds = f"{each['seconds']:.3f}"
            self._slice(track, now, then, each["name"], level=each["level"], seconds=seconds)
            now = then


_FACTS = ("origin", "line", "text", "critical_tile", "exchange_bytes", "cycles")
"""What the slice of a superstep says."""

_WORK = ("exchange_cycles", "compute_cycles")


@dataclass(frozen=True)
class _Perfetto:
    trace_proto_builder: Any


def _perfetto() -> _Perfetto:
    try:
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError(
            "--perfetto needs perfetto, which is not installed: pip install 'abele[report]'"
        ) from None
    return _Perfetto(TraceProtoBuilder)
