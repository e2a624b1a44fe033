"""The Perfetto trace of a run: tracks, slices and counters."""

from collections import defaultdict
from typing import Any

import pytest
from some_models import convolutions

from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.perfetto_trace import check_tiles, trace_bytes

proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@pytest.fixture(scope="module")
def report() -> Report:
    return collect(compile_model(convolutions(), target="tiny:8"))


def read(data: bytes) -> tuple[dict[int, Any], dict[int, list[Any]]]:
    """The tracks by number, and their packets."""
    trace = proto.Trace()
    trace.ParseFromString(data)
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in trace.packet
        if p.HasField("track_descriptor")
    }
    events = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            events[packet.track_event.track_uuid].append(packet)
    return tracks, events


def test_slices_are_closed_in_order_and_end_with_the_run(report: Report):
    tracks, events = read(trace_bytes(report))
    assert set(events) <= set(tracks)
    end = round(1e9 * report.program["seconds_of_a_run"])
    for packets in events.values():
        open_slices = 0
        for packet in packets:
            event = packet.track_event
            assert 0 <= packet.timestamp <= end + 1
            open_slices += event.type == event.TYPE_SLICE_BEGIN
            open_slices -= event.type == event.TYPE_SLICE_END
            assert open_slices >= 0
        assert open_slices == 0


def test_there_are_tracks_for_tiles_memory_control_and_host(report: Report):
    tracks, events = read(trace_bytes(report, (0, 7)))
    names = {each.name for each in tracks.values()}
    assert names >= {
        "control program",
        "operations",
        "supersteps",
        "tile 0",
        "tile 7",
        "live bytes, fullest tile",
    }
    assert any(name.startswith("passes: ") for name in names)
    counters = [number for number, each in tracks.items() if each.HasField("counter")]
    peak = max(p.track_event.counter_value for p in events[counters[0]])
    assert peak == max(report.tables["supersteps"]["live_bytes"])


def test_every_superstep_is_a_slice(report: Report):
    tracks, events = read(trace_bytes(report))
    number = next(k for k, each in tracks.items() if each.name == "supersteps")
    names = [p.track_event.name for p in events[number]]
    assert [n for n in names if n and n not in ("sync", "exchange", "compute")] == [
        report.tables["supersteps"]["name"][k] for k in report.tables["executions"]["superstep"]
    ]


def test_passes_are_as_long_as_the_run_and_tell_their_seconds(report: Report):
    tracks, events = read(trace_bytes(report))
    number = next(k for k, each in tracks.items() if each.name.startswith("passes: "))
    begins = [p.track_event for p in events[number] if p.track_event.name]
    assert {each.name for each in begins} <= set(report.tables["passes"]["name"])
    run = round(1e9 * report.program["seconds_of_a_run"])
    assert max(p.timestamp for p in events[number]) == pytest.approx(run, abs=2)
    told = {note.name for each in begins for note in each.debug_annotations}
    assert told == {"level", "seconds"}


def test_tiles_are_checked(report: Report):
    assert check_tiles("0, 7,0") == (0, 7)
    for text in ("a", "1,,2", "-1", ",".join(map(str, range(65)))):
        with pytest.raises(InputError, match="--tiles"):
            check_tiles(text)
    with pytest.raises(InputError, match="need 0 to 7"):
        trace_bytes(report, (8,))
