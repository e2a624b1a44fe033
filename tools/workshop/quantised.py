"""`abele bench quantised`: published models in 8 bits, by method of calibration.

abele bench quantised [--networks NAMES] [--target c600] [--folder DIR] [--json OUT]

Each model is calibrated with seeded inputs of the kind that it expects and judged by others. The
last lines say how many dB each method loses to the best one, over all models: the default of
`abele quantise --method` is the method that loses the least.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from statistics import mean

import numpy as np
import onnx
from rich.table import Table
from threadpoolctl import threadpool_limits

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.whole_file import whole_file
from ..bench.models.inputs import fed
from ..bench.models.published import Published, chosen, download, model_bytes
from ..bench.own_process import in_own_process
from ..driver.files import check_files
from ..quantising.formats import To
from ..quantising.quantise import LEAST_OPSET, Cost, quantise
from ..quantising.ranges import DEFAULT, METHODS, Method
from ..views.terminal import console

NETWORKS = "attacut_c,oww_alexa,oww_embedding,dnsmos_v8,ppocr_cls,magika"
"""Models with products of float32 and inputs that differ from sample to sample."""

CALIBRATED, JUDGED = 8, 16
"""Samples to calibrate with, and others to judge by."""

TRIED: dict[To, tuple[Method, ...]] = {"int8": tuple(METHODS), "fp8": (DEFAULT,)}
"""The methods that are compared. For 8-bit floats, all choose nearly the same powers of two."""

LEAST_DECIBELS, MOST_DECIBELS = 0.0, 60.0
"""Below, nothing is left of an output, and above, it is as good as equal: no method is better than
another by more."""


@dataclass(frozen=True)
class Result:
    """A model in one format, by one method of calibration.

    Attributes:
        decibels, agreement: of the main output; agreement is None where it is no list of classes.
        why: the message, if it was refused.
    """

    name: str
    to: To
    method: Method
    decibels: float = 0.0
    agreement: float | None = None
    before: Cost | None = None
    after: Cost | None = None
    why: str = ""

    @property
    def limited(self) -> float:
        """The ratio of signal to noise in dB, within the limits of what can be told apart."""
        return min(max(self.decibels, LEAST_DECIBELS), MOST_DECIBELS)


def quantised(
    networks: str = NETWORKS,
    target: str = "c600",
    folder: Path | None = None,
    report: Path | None = None,
) -> None:
    """Quantise published models by all methods, and print what each loses and gains.

    Raises InputError.

    Args:
        networks: names of published models, separated by commas.
        folder: of wheels; packages that are missing are downloaded there. Without one, only
            installed packages count.
        report: a JSON file for all figures.
    """
    wanted = chosen(networks)
    check_files({}, {"--json": report})
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        download(wanted, folder)
    results: list[Result] = []
    out = console()
    with tempfile.TemporaryDirectory() as scratch:
        for model in wanted:
            data = model_bytes(model, folder or Path(scratch))
            if data is None:
                out.print(f"{model.name}: not installed; --folder DIR downloads it")
                continue
            path = Path(scratch, f"{model.name}.onnx")
            with whole_file(path) as stream:
                stream.write(data)
            results += in_own_process(measure, model.name, path, target)
            out.print(f"{model.name}: done")
    if not results:
        raise InputError(f"none of these models is installed: {networks}; need --folder DIR")
    out.print(results_table(results, target))
    for each in results:
        if each.why:
            out.print(f"{each.name}, {each.to}: {each.why}", markup=False)
    found = losses(results, "int8")
    if found:
        line = ", ".join(f"{method} {loss:.2f}" for method, loss in found.items())
        out.print(f"int8, mean dB below the best method: {line}")
    if report is not None:
        with whole_file(report) as stream:
            stream.write(json.dumps([_figures(each) for each in results], indent=2).encode())


def measure(name: str, path: Path, target: str) -> list[Result]:
    """All results of a model. Call it in a process of its own."""
    (model,) = chosen(name)
    proto = onnx.load(path)
    calibration, held = (
        runs(model, proto, range(first, first + count))
        for first, count in ((0, CALIBRATED), (CALIBRATED, JUDGED))
    )
    values = {key: np.full_like(calibration[key][0], value) for key, value in model.values.items()}
    for key in values:
        del calibration[key], held[key]
    found: list[Result] = []
    with threadpool_limits(1):
        for to in LEAST_OPSET:
            for method in TRIED[to]:
                try:
                    made = quantise(
                        path,
                        calibration,
                        to=to,
                        method=method,
                        validation_data=held,
                        target=target,
                        dims=model.dims,
                        values=values,
                        lenient=model.lenient,
                    )
                except InputError as error:
                    found.append(Result(name, to, method, why=str(error)))
                    break
                assert made.judged is not None
                main = made.judged.main
                assert main is not None
                figures = main.decibels, main.share
                found.append(Result(name, to, method, *figures, made.before, made.after))
    return found


def runs(model: Published, proto: onnx.ModelProto, seeds: Sequence[int]) -> dict[str, Array]:
    """The inputs of several runs by name, with an axis of runs before their own."""
    each = [fed(proto, dict(model.inputs), dict(model.dims), seed) for seed in seeds]
    return {name: np.stack([one[name] for one in each]) for name in each[0]}


def losses(results: Sequence[Result], to: To) -> dict[Method, float]:
    """The mean over models of how many dB each method is below the best one."""
    by_model: dict[str, dict[Method, float]] = {}
    for each in results:
        if each.to == to and not each.why:
            by_model.setdefault(each.name, {})[each.method] = each.limited
    return {
        method: mean(max(own.values()) - own[method] for own in by_model.values())
        for method in METHODS
        if by_model and all(method in own for own in by_model.values())
    }


def results_table(results: Sequence[Result], target: str) -> Table:
    """A table with a row per model and format: dB by method, and costs."""
    table = Table(title=f"published models in 8 bits on {target}", title_justify="left")
    table.add_column("model", no_wrap=True)
    table.add_column("to")
    for title in (*(f"{each}, dB" for each in METHODS), "top-1", "cycles", "bytes of weights"):
        table.add_column(title, justify="right")
    for name, to in dict.fromkeys((each.name, each.to) for each in results):
        own = {each.method: each for each in results if (each.name, each.to) == (name, to)}
        cells = [_decibels(own.get(method)) for method in METHODS]
        last = list(own.values())[-1]
        if last.before is None or last.after is None:
            table.add_row(name, to, "refused")
            continue
        shares = [each.agreement for each in own.values() if each.agreement is not None]
        table.add_row(
            name,
            to,
            *cells,
            f"{max(shares):.1%}" if shares else "-",
            f"{last.before.cycles:,} -> {last.after.cycles:,}",
            f"{last.before.weight_bytes:,} -> {last.after.weight_bytes:,}",
        )
    return table


def _figures(result: Result) -> dict[str, object]:
    # JSON has no infinity, which equal outputs have.
    decibels = result.decibels if isfinite(result.decibels) else None
    return {**asdict(result), "decibels": decibels}


def _decibels(result: Result | None) -> str:
    if result is None or result.why:
        return "-"
    return f"{result.decibels:.1f}" if isfinite(result.decibels) else "equal"
