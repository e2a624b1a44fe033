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
from abele.tools.executors import carry_out
from abele.tools.executors.executor import Executor
from abele.tools.executors.limits import Limits
from abele.tools.executors.local import Local
from abele.tools.executors.named import executor_of
from abele.tools.executors.task import End, Json, Task


def task(name: str, **arguments: Json) -> Task:
    return Task(f"{some_tasks.MODULE}:{name}", arguments)


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    with Local(2) as made:
        yield made


@pytest.mark.parametrize("name", ["here", "local:2"])
def test_every_task_has_one_result_whatever_the_executor(name: str, local: Local):
    executor: Executor = local if name == local.name else executor_of(name)
    told: list[Json] = []
    with executor if executor is not local else executor_of("here"):
        results = list(
            executor.run(
                (task("square", number=n) for n in range(7)), lambda _, said: told.append(said)
            )
        )
    assert sorted((each.task.arguments["number"], each.value) for each in results) == [
        (n, n * n) for n in range(7)
    ]
    assert sorted(map(str, told)) == sorted(str({"half of": n}) for n in range(7))


def test_workers_keep_their_process_have_one_thread_and_may_print(local: Local):
    found = [each.value for each in local.run(task("process") for _ in range(6))]
    assert len({pid for pid, _ in found}) <= 2
    assert {threads for _, threads in found} == {"1"}


def test_a_result_says_how_long_its_task_took(local: Local):
    (waited,) = local.run([task("wait", seconds=0.05)])
    assert 0.05 < waited.lasted < 5
    assert waited.seconds < waited.lasted


def test_a_process_ends_after_as_many_tasks_as_it_may_have():
    with Local(1, Limits(tasks=1)) as executor:
        found = [each.value[0] for each in executor.run(task("process") for _ in range(2))]
        assert len(set(found)) == 2
        assert executor.busy() == []


def test_an_exception_is_a_result_with_its_message(local: Local):
    tasks = [task("refuse", text="tiles"), task("stumble"), task("unmarked"), task("missing")]
    found = {each.task.function.partition(":")[2]: each for each in local.run(tasks)}
    assert {each.end for each in found.values()} == {End.FAILED}
    refused, stumbled = found["refuse"], found["stumble"]
    assert (refused.error, refused.problem, refused.details) == ("InputError", "no tiles", "")
    assert stumbled.error == "KeyError"
    assert "some_tasks.py" in stumbled.details
    assert "no function there that is marked" in found["unmarked"].problem
    assert "no function there that is marked" in found["missing"].problem


@pytest.mark.parametrize(("deaths", "end"), [(1, End.DONE), (2, End.LOST)])
def test_the_task_of_a_killed_worker_is_tried_once_again(
    deaths: int, end: End, local: Local, tmp_path: Path
):
    tally = tmp_path / "tally"
    others = [task("square", number=n) for n in range(3)]
    results = list(local.run([task("die", tally=str(tally), times=deaths), *others]))
    (found,) = [each for each in results if each.task.function.endswith("die")]
    assert found.end is end
    assert tally.read_text() == ".."
    assert {each.end for each in results if each is not found} == {End.DONE}
    if end is End.LOST:
        assert "SIGKILL" in found.problem


def test_a_task_that_needs_too_much_memory_or_time_fails_alone():
    with Local(1, Limits(seconds=0.5, memory_bytes=3 << 30)) as executor:
        tasks = [
            task("allocate", size=1 << 32),
            task("square", number=3),
            task("wait", seconds=60),
        ]
        big, small, slow = executor.run(tasks)
    assert (big.end, big.error) == (End.FAILED, "MemoryError")
    assert small.value == 9
    assert (slow.end, slow.problem) == (End.LATE, "took longer than 0.5 s")


def test_ctrl_c_stops_tasks_and_yields_what_they_still_return(local: Local):
    # Warm, so that both tasks have begun when the signal comes.
    _ = list(local.run(task("square", number=n) for n in range(4)))
    begun: list[Json] = []

    def count(_: Task, said: Json) -> None:
        begun.append(said)
        if len(begun) == 2:
            Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    tasks = [task("wait", seconds=60, caught="half"), task("wait", seconds=60)]
    found: list[Json] = []
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        found.extend(each.value for each in local.run([*tasks, *tasks], count))
    assert found == ["half"]
    assert time.monotonic() - start < 5
    # The executor works on.
    assert [each.value for each in local.run([task("square", number=5)])] == [25]


def test_a_task_that_is_stopped_before_it_begins_does_not_begin():
    with Local(2) as executor:

        def tasks() -> Iterator[Task]:
            yield task("wait", seconds=60)
            # Its process has not even started yet.
            executor.stop()

        assert [each.end for each in executor.run(tasks())] == [End.STOPPED]


def test_nobody_waits_for_tasks_of_an_abandoned_run(local: Local):
    run = local.run([task("square", number=2), task("wait", seconds=60)])
    assert next(run).value == 4
    run.close()
    assert local.busy() == []


def test_a_worker_of_another_version_is_refused(local: Local, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(carry_out, "stamp", lambda: "abele 9.9")
    with pytest.raises(InputError, match=r"process \d+: another version of abele.*abele 9\.9"):
        _ = list(local.run([task("square", number=2)]))


def test_workers_that_cannot_start_are_one_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.tools.executors.local.MODULE", "abele.no_such_module")
    with Local(2) as executor, pytest.raises(InputError, match=r"ended at its start.*No module"):
        _ = list(executor.run([task("square", number=2)]))


PARENT = """
import os, sys, some_tasks
from abele.tools.executors.local import Local
from abele.tools.executors.task import Task

def say(_, said):
    print(local._processes[0]._process.pid, flush=True)

local = Local(1)
list(local.run([Task("some_tasks:wait", {"seconds": 60})], say))
"""


def test_workers_end_when_their_parent_is_killed():
    paths = os.pathsep.join(each for each in sys.path if each)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while os.path.exists(f"/proc/{worker}") and _is_running(worker):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_running(process: int) -> bool:
    """Whether a process runs; a dead one that nobody has waited for does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
