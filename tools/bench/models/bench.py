"""`abele bench models`: published models on abele's machine, compared with onnxruntime."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, cast

import numpy as np
import onnx
from rich.table import Table
from threadpoolctl import threadpool_limits

from ....backends.faults import MachineFault
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.support.whole_file import whole_file
from ...debug.run_check import check_run, relative_error
from ...driver.compile import compile_model
from ...driver.files import check_files
from ...executors.limits import Limits
from ...executors.named import executor_of
from ...executors.task import End, Json, Task, Tell, task_function
from ...executors.task import Result as Done
from ...views.terminal import console
from ..measure import host, medians, session
from .inputs import Array, fed
from .published import chosen, download, model_bytes

AGREES = 2e-3
"""The largest difference from onnxruntime, relative to an output's largest value."""


@dataclass(frozen=True)
class Result:
    """The result of one model.

    Seconds are of wall-clock time, in one thread.

    Attributes:
        nodes: of its main graph.
        why: the message, if it did not run.
        error: the largest difference of an output from onnxruntime's, relative to that output's
            largest value; of integers, the largest difference.
        checked: the number of operations compared with their error bounds.
        problem: the operation outside its bound.
    """

    name: str
    nodes: int
    why: str = ""
    error: float = float("nan")
    checked: int = 0
    problem: str = ""
    cycles: int = 0
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    onnxruntime_seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """Seconds of a run, relative to onnxruntime's."""
        return self.run_seconds / self.onnxruntime_seconds

    @property
    def verdict(self) -> str:
        """`agrees`, `wrong` or `refused`."""
        if self.why:
            return "refused"
        return "wrong" if self.problem or not self.error <= AGREES else "agrees"


def models(
    networks: str = "",
    target: str = "mk2",
    folder: Path | None = None,
    report: Path | None = None,
    executor: str = "local:1",
) -> None:
    """Run the published models that are installed or lie in the folder, and print a table.

    Raises InputError.

    Args:
        networks: names, separated by commas; "" for all.
        folder: of wheels; packages that are missing are downloaded there. Without one, only
            installed packages count.
        report: a JSON file for all figures.
        executor: what runs the models, each in a process of its own. More than one at a time slow
            each other down.
    """
    wanted = chosen(networks)
    check_files({}, {"--json": report})
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        download(wanted, folder)
    where = "" if folder is None else str(folder.absolute())
    with tempfile.TemporaryDirectory() as scratch:
        here = [each for each in wanted if model_bytes(each, folder or Path(scratch)) is not None]
    absent = [each for each in wanted if each not in here]
    if not here:
        raise InputError(
            f"none of these models is installed: {', '.join(each.name for each in absent)}; "
            "need --folder DIR, into which their packages are downloaded"
        )
    out = console()
    found: dict[str, Result] = {}
    with executor_of(executor, Limits(tasks=1)) as workers:
        tasks = (
            Task(_task(run_published), {"name": each.name, "target": target, "folder": where})
            for each in here
        )
        for done in workers.run(tasks):
            result = _result_of(done)
            found[result.name] = result
            out.print(f"{result.name}: {result.verdict}")
        (of_host,) = workers.run([Task(_task(host_of_worker), {})])
    results = [found[each.name] for each in here]
    host_figures = cast("dict[str, str]", of_host.value)
    out.print(
        f"{target}, one thread; {host_figures['processor']}, {host_figures['kernels']} kernels; "
        f"onnxruntime {host_figures['onnxruntime']}"
    )
    out.print(results_table(results))
    for each in results:
        if each.verdict != "agrees":
            out.print(f"{each.name}: {each.why or each.problem or 'differs'}", markup=False)
    if absent:
        out.print(f"not installed: {', '.join(each.name for each in absent)}")
    if report is not None:
        figures = {"host": host_figures, "models": [vars(each) for each in results]}
        with whole_file(report) as stream:
            stream.write(json.dumps(figures, indent=2).encode())


def _task(function: Callable[..., Json]) -> str:
    return f"{function.__module__}:{function.__name__}"


def _result_of(done: Done) -> Result:
    """The result of a model. Raises InputError if its worker had none."""
    if done.end is not End.DONE:
        raise InputError(f"{done.task.arguments['name']}: {done.problem}\n{done.details}".rstrip())
    return Result(**cast("dict[str, Any]", done.value))


@task_function
def host_of_worker(tell: Tell) -> Json:
    """The facts of the host that a worker runs on."""
    del tell
    return host()


@task_function
def run_published(tell: Tell, name: str, target: str, folder: str) -> Json:
    """Run a published model that is installed or lies in a folder. Returns its result."""
    del tell
    (model,) = chosen(name)
    with tempfile.TemporaryDirectory() as scratch:
        data = model_bytes(model, Path(folder or scratch))
        if data is None:
            raise InputError(f"{name}: neither installed nor in {folder!r} on this worker")
        path = Path(scratch, f"{name}.onnx")
        path.write_bytes(data)
        return vars(run_model(name, path, target))


def run_model(name: str, path: Path, target: str) -> Result:
    """Compile and run one model, and check it operation by operation and against onnxruntime."""
    (model,) = chosen(name)
    proto = onnx.load(path)
    nodes = len(proto.graph.node)
    fed_all = fed(proto, dict(model.inputs), dict(model.dims))
    values = {key: np.full_like(fed_all[key], value) for key, value in model.values.items()}
    inputs = {key: array for key, array in fed_all.items() if key not in values}
    theirs = fed_all | values
    with threadpool_limits(1):
        start = perf_counter()
        try:
            exe = compile_model(
                path, target, dims=model.dims, values=values, lenient=model.lenient, cache=False
            )
            compiled = perf_counter() - start
            results = exe.run(inputs)
            verdict = check_run(exe, inputs, results, "exchange")
        except (InputError, DoesNotFit, MachineFault) as error:
            return Result(name, nodes, why=str(error))
        peer, names = session(path, 1)
        # Where onnxruntime moves quantisations, its results are several steps from those without.
        judge, _ = session(path, 1, as_written=True) if is_quantised(proto) else (peer, names)
        expected = dict(zip(names, judge.run(None, theirs), strict=True))
        seconds, other = medians(partial(exe.run, inputs), partial(peer.run, None, theirs))
    return Result(
        name,
        nodes,
        error=max(difference(results[key], expected[key]) for key in expected),
        checked=verdict.checked,
        problem=verdict.problem,
        cycles=int(exe.profile["cycles"]),
        compile_seconds=compiled,
        run_seconds=seconds,
        onnxruntime_seconds=other,
    )


def is_quantised(model: onnx.ModelProto) -> bool:
    """Whether a model rounds numbers to quantised numbers."""
    return any("Quantize" in node.op_type for node in model.graph.node)


def difference(found: Array, wanted: Array) -> float:
    """The difference of an output from onnxruntime's, relative to the largest value; 0 if equal."""
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return float("inf")
    return 0.0 if np.array_equal(found, wanted) else relative_error(found, wanted)


def results_table(results: Sequence[Result]) -> Table:
    """A table with a row per model, and the numbers that agree and the median ratio below."""
    ran = [each for each in results if not each.why]
    table = Table(title="published models", title_justify="left", show_footer=True)
    agree = sum(each.verdict == "agrees" for each in results)
    table.add_column("model", f"{len(results)} models", no_wrap=True)
    table.add_column("nodes", justify="right")
    table.add_column("verdict", f"{agree} agree")
    for title, footer in (
        ("error", ""),
        ("checked", ""),
        ("cycles", ""),
        ("compile s", ""),
        ("run ms", ""),
        ("onnxruntime ms", "median"),
        ("ratio", f"{median(each.ratio for each in ran):.1f}" if ran else ""),
    ):
        table.add_column(title, footer, justify="right")
    for each in results:
        figures = () if each.why else _figures(each)
        table.add_row(each.name, str(each.nodes), each.verdict, *figures)
    return table


def _figures(result: Result) -> tuple[str, ...]:
    return (
        f"{result.error:.1e}",
        f"{result.checked:,}",
        f"{result.cycles:,}",
        f"{result.compile_seconds:.1f}",
        f"{result.run_seconds * 1e3:.1f}",
        f"{result.onnxruntime_seconds * 1e3:.1f}",
        f"{result.ratio:.1f}",
    )
