"""Tasks on workers of Dask have the results that they have here, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest
import some_tasks

from abele.ir.support.errors import InputError
from abele.tools.executors import carry_out, on_dask
from abele.tools.executors.limits import Limits, one_thread
from abele.tools.executors.local import paths_of_modules
from abele.tools.executors.named import executor_of
from abele.tools.executors.on_dask import DaskLocal
from abele.tools.executors.task import End, Json, Task
from abele.tools.sweeps.folder import ROWS
from abele.tools.sweeps.spec import read_spec
from abele.tools.sweeps.sweep import run_sweep

pytest.importorskip("distributed", reason="the extra dask is not installed")


def task(name: str, **arguments: Json) -> Task:
    return Task(f"{some_tasks.MODULE}:{name}", arguments)


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskLocal]:
    with DaskLocal(2, Limits(memory_bytes=3 << 30)) as made:
        yield made


class Parts:
    """A scheduler and workers that somebody else has started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.start("scheduler", *options, "--scheduler-file", str(file))
        until = time.monotonic() + 60
        while not file.exists() or not file.read_text().strip():
            assert time.monotonic() < until
            time.sleep(0.02)
        self.address = json.loads(file.read_text())["address"]
        self.name = f"dask://{self.address.removeprefix('tcp://')}"

    def start(self, program: str, *arguments: str, first: str = "") -> None:
        code = f"{first}\nfrom distributed.cli.dask_{program} import main; main()"
        self.started.append(
            subprocess.Popen(
                [sys.executable, "-P", "-c", code, *arguments],
                env=one_thread(paths_of_modules()),
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def add_worker(self, first: str = "") -> None:
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "10"]
        self.start("worker", self.address, *options, "--local-directory", ".", first=first)

    def end(self) -> None:
        for each in self.started:
            each.kill()
            each.wait()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path)
    try:
        yield made
    finally:
        made.end()


def test_every_task_has_one_result_and_its_progress_is_heard(cluster: DaskLocal):
    told: list[Json] = []
    tasks = (task("square", number=n) for n in range(7))
    results = list(cluster.run(tasks, lambda _, said: told.append(said)))
    assert sorted((each.task.arguments["number"], each.value) for each in results) == [
        (n, n * n) for n in range(7)
    ]
    assert sorted(map(str, told)) == sorted(str({"half of": n}) for n in range(7))
    assert {each.worker.partition(":")[0] for each in results} == {"tcp"}
    assert cluster.workers == 2


SPEC = """
[[model]]
file = "relu.mlir"

[[target]]
base = "tiny"
tiles = [2, 4, 8]
"""

RELU = """
builtin.module {
  func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %0 = nn.relu %x : (tensor<4x16xf32>) -> tensor<4x16xf32> loc("relu")
    func.return %0 : tensor<4x16xf32>
  }
}
"""


def test_a_sweep_has_the_same_bytes_as_here(cluster: DaskLocal, tmp_path: Path):
    (tmp_path / "relu.mlir").write_text(RELU)
    (tmp_path / "sweep.toml").write_text(SPEC)
    spec = read_spec(tmp_path / "sweep.toml")
    for name, executor in (("dask", cluster), ("here", executor_of("here"))):
        _ = run_sweep(spec, tmp_path / name, executor)
    rows = [(tmp_path / name / ROWS).read_bytes() for name in ("dask", "here")]
    assert rows[0] == rows[1]


def test_an_exception_is_a_result_with_its_message(cluster: DaskLocal):
    tasks = [task("refuse", text="tiles"), task("stumble"), task("allocate", size=1 << 32)]
    found = {each.task.function.partition(":")[2]: each for each in cluster.run(tasks)}
    assert {each.end for each in found.values()} == {End.FAILED}
    assert (found["refuse"].problem, found["refuse"].details) == ("no tiles", "")
    assert "some_tasks.py" in found["stumble"].details
    assert found["allocate"].error == "MemoryError"


def test_a_task_that_ends_its_process_is_tried_again_and_is_then_lost(
    cluster: DaskLocal, tmp_path: Path
):
    tasks = [task("die", tally=str(tmp_path / name), times=n) for name, n in (("a", 1), ("b", 2))]
    found = {each.task.arguments["times"]: each.end for each in cluster.run(tasks)}
    assert found == {1: End.DONE, 2: End.LOST}


def test_the_task_of_a_killed_worker_goes_to_another_one(cluster: DaskLocal):
    killed: list[int] = []

    def kill(_: Task, said: Json) -> None:
        # The first time that both workers have a task.
        if not killed and said == "begun":
            killed.append(cluster.processes[0])
            os.kill(killed[0], signal.SIGKILL)

    tasks = [task("wait", seconds=0.2) for _ in range(4)]
    results = list(cluster.run(tasks, kill))
    assert [each.value for each in results] == ["waited"] * 4
    assert killed
    # Another worker has taken the place of the killed one.
    cluster.look_after_workers()
    assert killed[0] not in cluster.processes
    assert len(cluster.processes) == 2


def test_ctrl_c_stops_tasks_and_yields_what_they_still_return(cluster: DaskLocal):
    begun: list[Json] = []

    def count(_: Task, said: Json) -> None:
        begun.append(said)
        if len(begun) == 1:
            Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    found: list[Json] = []
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tasks = [task("wait", seconds=60, caught="half")] * 3
        found.extend(each.value for each in cluster.run(tasks, count))
    assert set(found) == {"half"}
    assert time.monotonic() - start < on_dask.PATIENCE
    assert [each.value for each in cluster.run([task("square", number=5)])] == [25]


def test_nobody_waits_for_tasks_of_an_abandoned_run(cluster: DaskLocal):
    run = cluster.run([task("square", number=2), task("wait", seconds=60)])
    assert next(run).value == 4
    run.close()
    # Both workers are free again.
    again = [each.value for each in cluster.run([task("wait", seconds=0)] * 4)]
    assert again == ["waited"] * 4


def test_a_worker_of_another_version_is_refused(
    cluster: DaskLocal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(carry_out, "stamp", lambda: "abele 9.9")
    with pytest.raises(InputError, match=r"worker tcp://.*: another version of abele.*abele 9\.9"):
        _ = list(cluster.run([task("square", number=2)]))


def test_a_scheduler_that_is_not_there_is_one_message_within_seconds():
    start = time.monotonic()
    with pytest.raises(InputError, match="dask://127.0.0.1:1: no scheduler of Dask answers"):
        _ = executor_of("dask://127.0.0.1:1").__enter__()
    assert time.monotonic() - start < 2 * on_dask.CONNECTING


def test_a_killed_scheduler_ends_the_run_and_what_came_is_kept(
    parts: Parts, caplog: pytest.LogCaptureFixture
):
    parts.add_worker()
    found: list[Json] = []
    with (
        executor_of(parts.name) as executor,
        pytest.raises(InputError, match="the connection to the scheduler is lost"),
    ):
        for result in executor.run([task("square", number=3), task("wait", seconds=60)]):
            found.append(result.value)
            parts.started[0].kill()
    assert found == [9]
    # One message is enough.
    assert not [each for each in caplog.records if each.name.startswith("distributed")]


def test_a_worker_without_abele_and_a_scheduler_without_workers_are_refused(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
):
    with executor_of(parts.name) as executor:
        monkeypatch.setattr(on_dask, "WITHOUT_WORKERS", 0.1)
        with pytest.raises(InputError, match="the scheduler has no workers; start one with"):
            _ = list(executor.run([task("square", number=2)]))
        monkeypatch.setattr(on_dask, "WITHOUT_WORKERS", 60.0)
        parts.add_worker("import sys; sys.modules['abele'] = None")
        with pytest.raises(InputError, match="worker tcp://.* cannot carry out tasks: .*abele"):
            _ = list(executor.run([task("square", number=2)]))
