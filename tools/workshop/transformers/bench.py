"""`abele bench transformers`: BERT-base and GPT-2 on abele's machine and in onnxruntime."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits

from ....backends.host.threads import using
from ....backends.target import Target
from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ...bench.measure import THREADS, host, in_threads, medians, session
from ...bench.named import names_in
from ...bench.own_process import in_own_process
from ...debug.run_check import relative_error
from ...driver.compile import compile_model
from ...driver.executable import Executable
from ...driver.files import check_files
from ...views.terminal import console
from .graphs import BERT_BASE, GPT2_MEDIUM, GPT2_SMALL, Array, Shape, decoder, encoder, kept_caches

MODELS: Mapping[str, tuple[str, Shape]] = {
    "bert-base": ("encoder", BERT_BASE),
    "gpt2-small": ("decoder step", GPT2_SMALL),
    "gpt2-medium": ("medium decoder step", GPT2_MEDIUM),
}
"""By name, what is computed, and its sizes."""

USUAL = "bert-base,gpt2-small"
"""The models that are measured unless others are named."""

DTYPES = ("float32", "float16")

TOKENS_COMPARED = 4
"""Tokens that are decoded one by one and compared with the whole sequence."""

PARTS = (
    ("query, key, value", re.compile(r"layer\d+\.[qkv]\b")),
    ("attention", re.compile(r"layer\d+\.attend|^(past|present)\d+\.")),
    ("attention output", re.compile(r"layer\d+\.out\b")),
    ("feed-forward", re.compile(r"layer\d+\.(up|down|gelu)\b")),
    ("normalisation, sums", re.compile(r"norm\b|_sum\b")),
    ("logits", re.compile(r"^(logits|words_turned)")),
)
"""Parts of a transformer, each with the names of its nodes. The first that fits counts."""

REST = "embeddings, masks"


@dataclass(frozen=True)
class Result:
    """The figures of one model.

    Attributes:
        error: the largest difference from onnxruntime, relative to the largest output.
        whole: of decoding token by token from the whole sequence at once, or None. Seconds are of
            wall-clock time, in one thread and in two, except compile_seconds, of CPU time.
        parts: cycles of copies and vertices by part of the model, without syncs.
        macs: multiplications with weights, by part.
    """

    name: str
    tokens: int
    cycles: int
    clock_hz: float
    peak_macs: float
    fullest_tile: int
    compile_seconds: float
    run_seconds: tuple[float, ...]
    onnxruntime_seconds: tuple[float, ...]
    error: float
    whole: float | None
    parts: dict[str, int]
    macs: dict[str, int]

    @property
    def utilisation(self) -> float:
        """The multiplications of a run, as a share of what the units could do in its cycles."""
        return sum(self.macs.values()) / (self.cycles * self.peak_macs)

    def part_utilisation(self, part: str) -> float:
        """The utilisation of a part and its cycles."""
        return self.macs.get(part, 0) / (self.parts[part] * self.peak_macs)


def transformers(
    networks: str = USUAL, target: str = "mk2", layers: int = 0, report: Path | None = None
) -> None:
    """Compile and run encoders and steps of decoders, and print figures by model and by part.

    Args:
        networks: names of models, with commas.
        layers: of each; 0 for those that it has.
        report: a JSON file for all figures.
    """
    check_files({}, {"--json": report})
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names_in("--networks", networks, MODELS):
            for dtype in DTYPES:
                path = Path(folder, "model.onnx")
                results.append(in_own_process(measure, name, dtype, layers, target, path))
    here = in_own_process(host)
    out = console()
    cut = f", {layers} layers" if layers else ""
    out.print(
        f"{target}{cut}; {here['processor']}, {here['kernels']} kernels; "
        f"onnxruntime {here['onnxruntime']}"
    )
    out.print(models_table(results))
    out.print(parts_table(results))
    if report is not None:
        figures = {"host": here, "models": [asdict(each) for each in results]}
        with whole_file(report) as stream:
            stream.write(json.dumps(figures, indent=2).encode())


def measure(name: str, dtype: str, layers: int, target: str, path: Path) -> Result:
    """The figures of one model. Call it in a process of its own.

    Args:
        path: for its .onnx file.
    """
    kind, shape = MODELS[name]
    is_step = kind != "encoder"
    shape = replace(shape, layers=layers or shape.layers)
    model = decoder(shape, dtype, step=True) if is_step else encoder(shape, dtype)
    path.write_bytes(model.SerializeToString())
    del model
    kept = kept_caches(shape) if is_step else {}
    ids = np.random.default_rng(0).integers(0, shape.words, shape.tokens)
    inputs: dict[str, Array] = {"ids": ids}
    if is_step:
        inputs = {"ids": ids[:1], "position": np.zeros(1, np.int64)}
    caches = {name: np.zeros((shape.tokens, shape.width), dtype) for name in kept}
    with threadpool_limits(1), using(1):
        start = process_time()
        exe = compile_model(path, target, keep=kept, cache=False)
        compiled = process_time() - start
        (output,) = (each.name for each in exe.outputs)
        found = exe.run(inputs)[output]
        peer, names = session(path, 1)
        expected = dict(zip(names, peer.run(None, inputs | caches), strict=True))[output]
        run = partial(exe.run, inputs)
        peers = [peer, *(session(path, n)[0] for n in THREADS[1:])]
        times = medians(
            *(partial(in_threads, n, run) for n in THREADS),
            *(partial(each.run, None, inputs | caches) for each in peers),
        )
        whole = token_by_token(exe, shape, dtype, ids) if is_step else None
    machine = exe.target
    return Result(
        f"{kind}, {dtype}",
        len(inputs["ids"]),
        int(exe.profile["cycles"]),
        machine.clock_hz,
        _peak(machine, dtype),
        int(exe.profile["max_tile_bytes"]),
        compiled,
        tuple(times[: len(THREADS)]),
        tuple(times[len(THREADS) :]),
        relative_error(found, expected),
        whole,
        cycles_by_part(exe),
        macs_by_part(shape, len(inputs["ids"]), is_decoder=is_step),
    )


def token_by_token(exe: Executable, shape: Shape, dtype: str, ids: Array) -> float:
    """The largest difference between logits decoded one by one, with the cache on the device, and
    onnxruntime's of the whole sequence at once; relative to the largest logit."""
    exe.reset()
    (name,) = (each.name for each in exe.outputs)
    count = min(TOKENS_COMPARED, shape.tokens)
    own = [
        exe.run({"ids": ids[i : i + 1], "position": np.array([i], np.int64)})[name]
        for i in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "whole.onnx")
        path.write_bytes(decoder(shape, dtype).SerializeToString())
        peer, _ = session(path, 1)
        (expected,) = peer.run(None, {"ids": ids})
    return relative_error(np.concatenate(own), expected[:count])


def _peak(target: Target, dtype: str) -> float:
    """Multiply-accumulates per cycle of all tiles. Raises InputError if they have no conv units."""
    units = target.conv_units(dtype, "float32")
    if units is None:
        raise InputError(f"target {target.spelling()} has no units for products of {dtype}")
    return target.tiles * units.macs_per_cycle


def part_of(node: str | None) -> str:
    """The part of a transformer that a node belongs to, by its name."""
    return next((part for part, names in PARTS if names.search(node or "")), REST)


def cycles_by_part(exe: Executable) -> dict[str, int]:
    """Cycles of copies and vertices by part of the model."""
    found: Counter[str] = Counter()
    for each in exe.operation_prices.values():
        found[part_of(each.node)] += each.times * each.cycles
    return dict(found)


def macs_by_part(shape: Shape, tokens: int, *, is_decoder: bool) -> dict[str, int]:
    """Multiplications by part of the model.

    Args:
        tokens: the number of tokens computed in a run.
    """
    square = shape.width * shape.width
    found = {
        "query, key, value": 3 * square,
        "attention": 2 * shape.tokens * shape.width,
        "attention output": square,
        "feed-forward": 2 * shape.width * shape.hidden,
    }
    found = {part: tokens * shape.layers * macs for part, macs in found.items()}
    if is_decoder:
        found["logits"] = tokens * shape.words * shape.width
    return found


def models_table(results: Sequence[Result]) -> Table:
    """A table with a row per model."""
    table = Table(title="transformers, in 1 and 2 threads", title_justify="left")
    table.add_column("model", no_wrap=True)
    for title in (
        "cycles",
        "cycles/token",
        "us/token",
        "of peak",
        "fullest tile",
        "compile CPU s",
        *(f"{what}, {n}" for n in THREADS for what in ("run ms", "onnxruntime ms", "ratio")),
        "error",
        "by token",
    ):
        table.add_column(title, justify="right")
    for each in results:
        table.add_row(
            each.name,
            f"{each.cycles:,}",
            f"{each.cycles // each.tokens:,}",
            f"{each.cycles / each.tokens / each.clock_hz * 1e6:.1f}",
            f"{each.utilisation:.1%}",
            f"{each.fullest_tile:,}",
            f"{each.compile_seconds:.1f}",
            *(
                figure
                for own, other in zip(each.run_seconds, each.onnxruntime_seconds, strict=True)
                for figure in (f"{own * 1e3:.0f}", f"{other * 1e3:.0f}", f"{own / other:.1f}")
            ),
            f"{each.error:.1e}",
            "" if each.whole is None else f"{each.whole:.1e}",
        )
    return table


def parts_table(results: Sequence[Result]) -> Table:
    """A table of cycles and shares of peak, with a row per part of the models."""
    table = Table(title="cycles without syncs, and share of peak", title_justify="left")
    table.add_column("part", no_wrap=True)
    for each in results:
        table.add_column(each.name, justify="right")
    for part in [part for part, _ in PARTS] + [REST]:
        table.add_row(part, *_part_cells(part, results))
    return table


def _part_cells(part: str, results: Iterable[Result]) -> list[str]:
    cells: list[str] = []
    for each in results:
        if part not in each.parts:
            cells.append("")
        elif part in each.macs:
            cells.append(f"{each.parts[part]:,} {each.part_utilisation(part):.1%}")
        else:
            cells.append(f"{each.parts[part]:,}")
    return cells
