import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from abele.ir.support.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.executors.executor import OnProgress
from abele.tools.executors.here import Here
from abele.tools.executors.local import Local
from abele.tools.executors.task import End, Result, Task
from abele.tools.sweeps.folder import LOG, PAGE, PICTURE, ROWS, SECONDS, SUMMARY
from abele.tools.sweeps.spec import read_spec
from abele.tools.sweeps.sweep import Progress, run_sweep, sweep, with_choice

TARGETS = """
[[target]]
base = "tiny:4"
clock_hz = [1e9, 2e9]
"memory.bytes_per_tile" = [16640, 65536]

[[target]]
base = "tiny:8"
tiles = [2, 0]
"""


@pytest.fixture
def spec(product: Path) -> Path:
    path = product.with_name("s.toml")
    path.write_text(
        f'[[model]]\nfile = "{product.name}"\n{TARGETS}\n[options]\nvertices_per_tile = [1, 2]\n'
    )
    return path


@pytest.fixture
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the time that drawing takes."""
    monkeypatch.setattr("abele.tools.sweeps.sweep.draw", lambda *_: None)


class Counted(Here):
    """An executor that counts, and that may stop or fail."""

    def __init__(self, stop_after: int = 10**9, end: End = End.DONE) -> None:
        super().__init__()
        self.stop_after = stop_after
        self.end = end
        self.tasks: list[Task] = []

    def run(self, tasks: Iterable[Task], on_progress: OnProgress | None = None) -> Iterator[Result]:
        for task in tasks:
            if len(self.tasks) == self.stop_after:
                raise KeyboardInterrupt
            self.tasks.append(task)
            if self.end is End.DONE:
                yield from super().run([task], on_progress)
            else:
                yield Result(task, self.end, problem="two workers ended")


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return parquet.read_table(folder / ROWS).to_pylist()


def test_every_point_is_a_row_with_figures_or_a_reason(spec: Path, tmp_path: Path):
    frame = sweep(spec, executor="here")
    folder = spec.with_suffix(".sweep")
    rows = rows_in(folder)
    assert len(frame) == len(rows) == 12
    assert [row["point"] for row in rows] == list(range(12))
    by_status: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_status.setdefault(row["status"], []).append(row)
    assert {status: len(found) for status, found in by_status.items()} == {
        "fits": 6,
        "does not fit": 4,
        "refused": 2,
    }
    for row in by_status["does not fit"]:
        assert row["memory_bytes_per_tile"] == 16640
        assert row["binds"] == "memory"
        assert row["missing_bytes"] > 0
    for row in by_status["refused"]:
        assert row["tiles"] == 0
        assert "tiles: 0; need an integer in 1..1e+06" in row["reason"]
    for row in by_status["fits"]:
        parts = row["compute_cycles"] + row["exchange_cycles"] + row["sync_cycles"]
        assert row["cycles"] == parts
        assert row["macs"] == 4 * 16 * 8
        assert 0 < row["utilisation"] < 1
        assert row["reason"] == ""
    for name in (SUMMARY, PAGE, PICTURE, SECONDS):
        assert (folder / name).stat().st_size > 0


def test_figures_are_those_of_a_compile(spec: Path):
    sweep(spec, executor="here")
    for row in rows_in(spec.with_suffix(".sweep")):
        if row["status"] != "fits" or row["clock_hz"] is None:
            continue
        target = f"tiny:4,clock_hz={row['clock_hz']}"
        exe = compile_model(
            spec.with_name("product.mlir"),
            target,
            vertices_per_tile=row["vertices_per_tile"],
            cache=False,
        )
        for name in ("cycles", "exchange_bytes", "items_per_s", "max_tile_bytes", "vertices"):
            assert row[name] == pytest.approx(exe.profile[name], rel=1e-15), name
        # Both count what the target reserves, so that a program that fits has at most 1.
        assert row["memory_share"] == row["max_tile_bytes"] / row["memory_bytes_per_tile"] <= 1


@pytest.mark.usefixtures("no_picture")
def test_points_that_differ_in_what_no_pass_reads_share_a_program(spec: Path):
    executor = Counted()
    swept = run_sweep(read_spec(spec), spec.with_suffix(".f"), executor)
    # Two clocks share a program: 2 sizes of memory and a machine of 2 tiles, with 2 options.
    assert swept.programs == len(executor.tasks) == (2 + 1) * 2
    slow, fast = (
        [row for row in swept.rows.rows if row["clock_hz"] == clock and row["status"] == "fits"]
        for clock in (1e9, 2e9)
    )
    for one, other in zip(slow, fast, strict=True):
        assert one["cycles"] == other["cycles"]
        assert one["seconds"] == 2 * other["seconds"]


def test_files_are_the_same_whatever_the_order_and_the_executor(spec: Path, tmp_path: Path):
    with Local(1) as executor:
        run_sweep(read_spec(spec), tmp_path / "other", executor)

    class Backwards(Here):
        def run(self, tasks: Iterable[Task], on_progress: OnProgress | None = None):
            return super().run(reversed(list(tasks)), on_progress)

    run_sweep(read_spec(spec), tmp_path / "one", Backwards())
    for name in (ROWS, SUMMARY, PAGE, PICTURE):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.mark.usefixtures("no_picture")
def test_a_stopped_sweep_goes_on_and_writes_the_same(spec: Path, tmp_path: Path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_sweep(read_spec(spec), whole, Here())
    computed = 0
    for after in (2, 1):
        executor = Counted(stop_after=after)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(read_spec(spec), parts, executor)
        computed += len(executor.tasks)
        assert not (parts / ROWS).exists()
    executor = Counted()
    swept = run_sweep(read_spec(spec), parts, executor)
    assert computed + len(executor.tasks) == 6
    # The two clocks of two programs, and the row of a third one.
    assert swept.kept == 6
    assert (parts / ROWS).read_bytes() == (whole / ROWS).read_bytes()
    again = Counted()
    assert run_sweep(read_spec(spec), parts, again).kept == 10
    assert again.tasks == []


@pytest.mark.usefixtures("no_picture")
def test_a_wider_spec_computes_only_what_is_new(spec: Path):
    folder = spec.with_suffix(".f")
    run_sweep(read_spec(spec), folder, Here())
    spec.write_text(spec.read_text().replace("[1, 2]", "[1, 2, 3]"))
    executor = Counted()
    swept = run_sweep(read_spec(spec), folder, executor)
    assert len(swept.rows.rows) == 18
    assert {task.arguments["request"]["vertices_per_tile"] for task in executor.tasks} == {3}


@pytest.mark.usefixtures("no_picture")
def test_a_changed_model_is_computed_again(spec: Path):
    folder = spec.with_suffix(".f")
    run_sweep(read_spec(spec), folder, Here())
    model = spec.with_name("product.mlir")
    model.write_text(model.read_text().replace("4x16", "8x16").replace("4x8", "8x8"))
    executor = Counted()
    swept = run_sweep(read_spec(spec), folder, executor)
    assert len(executor.tasks) == 6
    assert {row["macs"] for row in swept.rows.rows if row["status"] == "fits"} == {8 * 16 * 8}


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize(("end", "again"), [(End.LOST, 6), (End.LATE, 6), (End.FAILED, 0)])
def test_a_failed_point_is_a_row_and_a_lost_one_is_tried_again(end: End, again: int, spec: Path):
    folder = spec.with_suffix(".f")
    swept = run_sweep(read_spec(spec), folder, Counted(end=end))
    failed = [row for row in swept.rows.rows if row["status"] == "failed"]
    assert len(failed) == 10
    assert all("two workers ended" in row["reason"] for row in failed)
    executor = Counted()
    run_sweep(read_spec(spec), folder, executor)
    assert len(executor.tasks) == again


@pytest.mark.usefixtures("no_picture")
def test_progress_says_how_many_points_have_rows(spec: Path):
    told: list[Progress] = []
    run_sweep(read_spec(spec), spec.with_suffix(".f"), Here(), told.append)
    assert [each.done for each in told] == [2, 4, 6, 8, 10, 11, 12]
    assert {each.points for each in told} == {12}
    assert "left" in told[3].words


@pytest.mark.usefixtures("no_picture")
def test_the_best_point_keeps_the_constraints(spec: Path):
    choice = with_choice(read_spec(spec), "max items_per_s / tiles", ["tiles < 4"])
    swept = run_sweep(choice, spec.with_suffix(".f"), Here())
    best = choice.choice.best_of(swept.rows.rows)
    assert best is not None
    assert best["tiles"] == 2
    free = with_choice(read_spec(spec), "min seconds", []).choice.best_of(swept.rows.rows)
    fits = [row for row in swept.rows.rows if row["status"] == "fits"]
    assert free is not None
    assert free["seconds"] == min(row["seconds"] for row in fits)
    none = with_choice(read_spec(spec), "min seconds", ["tiles > 9"])
    assert none.choice.best_of(swept.rows.rows) is None
    with pytest.raises(InputError, match="no figure itms_per_s; did you mean items_per_s"):
        run_sweep(
            with_choice(read_spec(spec), "max itms_per_s", []), spec.with_suffix(".f"), Here()
        )


def test_a_sweep_of_a_dictionary_needs_a_folder(product: Path):
    with pytest.raises(InputError, match="need folder"):
        sweep({"model": [{"file": str(product)}]})


SWEEP = """
import sys
from abele.tools.cli import main
sys.argv = ["abele", *sys.argv[1:]]
main()
"""


def test_a_killed_sweep_goes_on(spec: Path):
    folder = spec.with_suffix(".sweep")
    command = [sys.executable, "-c", SWEEP, "sweep", str(spec), "--executor", "here"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert running.stderr is not None
    assert b"of 12 points" in running.stderr.readline()
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stderr.close()
    before = (folder / LOG).read_bytes().count(b"\n") - 1
    assert 0 < before < 10 or not (folder / ROWS).exists()
    swept = run_sweep(read_spec(spec), folder, Here())
    assert swept.kept >= before - 2
    assert len(swept.rows.rows) == 12
