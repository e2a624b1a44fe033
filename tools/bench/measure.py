"""Measures one network: compiling it, and running it on the machine and in onnxruntime, in one
thread and in two."""

from __future__ import annotations

import platform
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from threadpoolctl import threadpool_info, threadpool_limits

from ...backends.host.threads import THREADS as HOST
from ...backends.host.threads import TimedCall, using
from ...backends.target import resolve_target
from ..debug.run_check import relative_error
from ..driver.arrays import Array
from ..driver.compile import compile_model
from ..importers.light_networks import light_input, seeded

T = TypeVar("T")

RUNS = 9
"""Number of timed runs, after one to warm up. The median counts."""

THREADS = (1, 2)
"""Numbers of threads, of abele and of onnxruntime."""

MANY_THREADS = (2, 4, 8)
"""Numbers of threads that are simulated."""

GROWTH_NETWORK, GROWTH_TILES = "squeezenet", (16, 1472)

SCALING_TILES = (64, 256, 1024, 1472)

VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}
"""Names of vector extensions by their flag in /proc/cpuinfo, widest first."""

CHANNELS, SIDE = 16, 14
IMAGE_MACS = CHANNELS * CHANNELS * 9 * SIDE * SIDE
IMAGE_BYTES = 4 * (CHANNELS * (SIDE + 2) ** 2 + CHANNELS * CHANNELS * 9 + 2 * CHANNELS * SIDE**2)


def write_network(name: str, path: Path) -> None:
    """Write a light network with seeded weights as an .onnx file."""
    path.write_bytes(seeded(name).SerializeToString())


def measure(name: str, path: Path, target: str) -> dict[str, Any]:
    """Figures of a network. Call it in a process of its own, because it measures peak memory.

    Times are seconds of wall clock; compile_seconds includes reading the file. The runs that are
    compared alternate. peak_gigabytes is the peak of compiling and running, before onnxruntime
    loads the network.

    Args:
        path: the network's .onnx file.
    """
    inputs: dict[str, Array] = dict(light_input(name))
    with threadpool_limits(1), using(1):
        before = _peak_gigabytes()
        start = perf_counter()
        exe = compile_model(path, target, cache=False)
        compiled = perf_counter() - start
        start = perf_counter()
        results = exe.run(inputs)
        first = perf_counter() - start
        exe.run(inputs)
        peak = _peak_gigabytes()
        sessions = [session(path, threads) for threads in THREADS]
        first_session, names = sessions[0]
        expected = dict(zip(names, first_session.run(None, inputs), strict=True))
        run = partial(exe.run, inputs)
        times = medians(
            *(partial(in_threads, n, run) for n in THREADS),
            *(partial(each.run, None, inputs) for each, _ in sessions),
        )
        own, theirs = times[: len(THREADS)], times[len(THREADS) :]
        alone = in_threads(THREADS[-1], run)
        seen = best_calls(run)
    return {
        "network": name,
        "error": max(relative_error(results[key], expected[key]) for key in expected),
        "compile_seconds": compiled,
        "first_run_seconds": first,
        "run_seconds": own[0],
        "same_bits": all(alone[key].tobytes() == results[key].tobytes() for key in results),
        **{f"run_{n}_seconds": each for n, each in zip(THREADS, own, strict=True)},
        "gain": own[0] / own[-1],
        "onnxruntime_gain": theirs[0] / theirs[-1],
        "best_seconds": seen[0] + sum(each.seconds for each in seen[1]),
        "simulated": {n: vars(simulated(*seen, n)) for n in MANY_THREADS},
        **{f"onnxruntime_{n}_seconds": each for n, each in zip(THREADS, theirs, strict=True)},
        **{f"ratio_{n}": a / b for n, a, b in zip(THREADS, own, theirs, strict=True)},
        "start_gigabytes": before,
        "peak_gigabytes": peak,
        **exe.profile,
    }


def growth(path: Path, target: str) -> dict[str, Any]:
    """Operations at each level, and seconds per run, on few and on many tiles.

    All tiles together have the same memory in both cases.
    """
    few, many = GROWTH_TILES
    inputs: dict[str, Array] = dict(light_input(GROWTH_NETWORK))
    found: dict[int, dict[str, Any]] = {}
    with threadpool_limits(1), using(1):
        for tiles in GROWTH_TILES:
            exe = compile_model(path, _with_tiles(target, tiles, many), cache=False)
            (seconds,) = medians(partial(exe.run, inputs))
            found[tiles] = {"ops": exe.profile["ops"], "run_seconds": seconds}
    ratios = {
        level: found[many]["ops"][level] / operations
        for level, operations in found[few]["ops"].items()
    }
    return {"network": GROWTH_NETWORK, "tiles": found, "ratio": ratios}


def scaling(target: str) -> list[dict[str, Any]]:
    """Times a convolution of one image per tile on more and more tiles.

    If runs scale well, a tile's work takes the same time on any number of tiles. Returns a row per
    number of tiles: the MACs and the bytes (images, replicas of weights and results) of all tiles,
    and the picoseconds of a run per MAC and per byte.
    """
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), using(1):
        for tiles in SCALING_TILES:
            proto, inputs = _images(tiles)
            exe = compile_model(proto, f"{target}:{tiles}", cache=False)
            (seconds,) = medians(partial(exe.run, inputs))
            macs, moved = tiles * IMAGE_MACS, tiles * IMAGE_BYTES
            rows.append(
                {
                    "tiles": tiles,
                    "macs": macs,
                    "bytes": moved,
                    "picoseconds_per_mac": seconds / macs * 1e12,
                    "picoseconds_per_byte": seconds / moved * 1e12,
                }
            )
    return rows


def _images(count: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A padded 3x3 convolution and a ReLU on a batch of images."""
    shape = [count, CHANNELS, SIDE, SIDE]
    random = np.random.default_rng(0)
    weight = random.normal(size=(CHANNELS, CHANNELS, 3, 3)).astype(np.float32)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "images", [x], [y], [numpy_helper.from_array(weight, "w")])
    opset = [helper.make_opsetid("", 21)]
    proto = helper.make_model(graph, opset_imports=opset, ir_version=10)
    return proto, {"x": random.normal(size=shape).astype(np.float32)}


def in_threads(count: int, run: Callable[[], T]) -> T:
    """The result of a run in `count` threads."""
    with using(count):
        return run()


def best_calls(run: Callable[[], object]) -> tuple[float, list[TimedCall]]:
    """The shortest seconds of a run in one thread outside its calls, and of each call."""
    between, calls = float("inf"), list[TimedCall]()
    for _ in range(RUNS):
        start = perf_counter()
        with HOST.timed() as found:
            run()
        seconds = perf_counter() - start
        between = min(between, seconds - sum(each.seconds for each in found))
        pairs = zip(calls or found, found, strict=True)
        calls = [min(pair, key=lambda each: each.seconds) for pair in pairs]
    return between, calls


@dataclass(frozen=True)
class Simulated:
    """The seconds of a simulated run with more threads, by cause.

    Attributes:
        between: outside compiled calls, in Python and in calls of NumPy.
        small: calls that are not shared.
        shared: the others, divided by the threads.
        uneven: waiting for the last unit of each.
        sharing: opening and closing calls.
    """

    between: float
    small: float
    shared: float
    uneven: float
    sharing: float

    @property
    def seconds(self) -> float:
        """The seconds of the whole run."""
        return self.between + self.small + self.shared + self.uneven + self.sharing


SHARING_SECONDS = 1.5e-6
"""The seconds to share a call."""


def simulated(between: float, calls: Sequence[TimedCall], threads: int) -> Simulated:
    """A run of one thread, simulated with its calls shared by threads that do not slow each other
    down.

    The units of a call take equally long.

    Args:
        between, calls: of the run in one thread.
    """
    shared = [each for each in calls if each.units > 1]
    small = sum(each.seconds for each in calls) - sum(each.seconds for each in shared)
    alike = sum(each.seconds for each in shared) / threads
    longest = sum(each.seconds * -(-each.units // threads) / each.units for each in shared)
    return Simulated(
        between=between,
        small=small,
        shared=alike,
        uneven=longest - alike,
        sharing=SHARING_SECONDS * len(shared),
    )


def host() -> dict[str, str]:
    """The processor, the kernels that BLAS selected for it, and the version of onnxruntime."""
    libraries = cast(Sequence[Mapping[str, Any]], threadpool_info())
    kernels = [str(each.get("architecture", each["internal_api"])) for each in libraries]
    return {
        "processor": _processor(),
        "kernels": ", ".join(dict.fromkeys(kernels)) or "unknown",
        "onnxruntime": version("onnxruntime"),
    }


def _with_tiles(target: str, tiles: int, many: int) -> str:
    """A preset with `tiles` tiles that together have as much usable memory as `many` of its own."""
    own = resolve_target(target).memory
    usable = (own.bytes_per_tile - own.reserved_bytes) * many // tiles
    return f"{target}:{tiles},memory.bytes_per_tile={usable + own.reserved_bytes}"


class Session(Protocol):
    """The part of onnxruntime.InferenceSession that is used here; the class itself has no types."""

    def run(self, output_names: None, input_feed: Mapping[str, Array], /) -> Sequence[Array]:
        """Run the network. Returns its outputs in order."""
        ...


def session(path: Path, threads: int, *, as_written: bool = False) -> tuple[Session, list[str]]:
    """A session with so many threads, and the names of its outputs.

    Args:
        as_written: compute what the model says, without onnxruntime's graph optimizations.
    """
    library = cast(Any, onnxruntime)
    options = library.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Only errors are logged: some models make hundreds of warnings.
    options.log_severity_level = 3
    if as_written:
        options.graph_optimization_level = library.GraphOptimizationLevel.ORT_DISABLE_ALL
    made = library.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return cast(Session, made), [str(each.name) for each in made.get_outputs()]


def medians(*runs: Callable[[], object]) -> list[float]:
    """The median seconds of each function. They alternate, so that all see the same conditions.

    Each is run once more before it is timed, which gives the threads of the last one time to end.
    """
    times: list[list[float]] = [[] for _ in runs]
    for iteration in range(RUNS + 1):
        for run, own in zip(runs, times, strict=True):
            run()
            start = perf_counter()
            run()
            if iteration:
                own.append(perf_counter() - start)
    return [median(own) for own in times]


def _peak_gigabytes() -> float:
    """The peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def _processor() -> str:
    """The processor's name, family and widest vectors. The name alone is ambiguous.

    On other systems than Linux on x86, the name that Python knows.
    """
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    first = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    fields = {key.strip(): value.strip() for key, _, value in first}
    if "model name" not in fields:
        return platform.processor()
    flags = fields.get("flags", "").split()
    wide = next((name for flag, name in VECTORS.items() if flag in flags), "no AVX2")
    return f"{fields['model name']}, family {fields.get('cpu family', 'unknown')}, {wide}"
