"""Threads, and forked processes, that compile and run programs at the same time."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Barrier, Lock
from time import sleep
from typing import Any

import numpy as np
import onnx
import pytest
from some_models import model, node, products, random, relu

from abele.ir.errors import InputError
from abele.tools import Executable, Session, Training, compile_model
from abele.tools.driver import compile_anew
from abele.tools.driver.arrays import seeded

THREADS = 4

SUM = """
func.func @main(%x: tensor<4xf32>, %past: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {arg_names = ["x", "past"], result_names = ["present", "negative"]} {
  %0 = nn.add %x, %past : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
"""
"""A program that adds up its inputs, in a state if `past` is kept."""


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """What threads return that begin work at the same time; each gets its number."""
    barrier = Barrier(threads)

    def begin(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


@pytest.fixture
def running_sum(tmp_path: Path) -> Executable:
    path = tmp_path / "sum.mlir"
    path.write_text(SUM)
    return compile_model(path, "tiny:4", keep={"past": "present"}, cache=False)


def dense(batch: int = 4) -> onnx.ModelProto:
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "y")]
    return model(nodes, {"x": [batch, 6]}, ["y"], {"w": random((6, 4))})


@pytest.mark.parametrize("at", ["nn", "partition", "exchange"])
def test_each_thread_gets_the_answer_for_its_own_inputs(at: str):
    exe = compile_model(products(), "tiny:8", cache=False)
    given = [seeded(exe.inputs, seed) for seed in range(THREADS)]
    wanted = [exe.run(each, at=at)["y"] for each in given]

    def runs(number: int) -> bool:
        found = [exe.run(given[number], at=at)["y"] for _ in range(30)]
        return all(np.array_equal(each, wanted[number]) for each in found)

    assert at_once(runs) == [True] * THREADS


def test_every_run_finds_the_state_that_the_run_before_it_has_left(running_sum: Executable):
    """So the runs of all threads together give each sum once."""
    one = {"x": np.ones(4, np.float32)}

    def runs(_: int) -> list[float]:
        return [-float(running_sum.run(one)["negative"][0]) for _ in range(25)]

    running_sum.reset()
    assert sorted(chain(*at_once(runs))) == [*range(1, 25 * THREADS + 1)]


def test_programs_load_and_run_for_the_first_time_at_once():
    """In a process of its own, which has loaded no kernel yet."""
    script = (
        "import sys, threading; sys.path.insert(0, sys.argv[1])\n"
        "from some_models import products; from abele.tools import compile_model\n"
        "from abele.backends.host.threads import THREADS; THREADS.count = 2\n"
        "from abele.tools.driver.arrays import seeded\n"
        "exes = [compile_model(products(), 'tiny:8', cache=False) for _ in range(4)]\n"
        "given, found, barrier = seeded(exes[0].inputs), [], threading.Barrier(4)\n"
        "def run(exe): barrier.wait(); found.append(exe.run(given)['y'].tobytes())\n"
        "threads = [threading.Thread(target=run, args=[each]) for each in exes]\n"
        "[each.start() for each in threads]; [each.join() for each in threads]\n"
        "print(len(found), len({*found}))"
    )
    command = [sys.executable, "-X", "faulthandler", "-c", script, str(Path(__file__).parents[2])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "1"]


def test_threads_that_compile_at_once_compile_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    inside, compiled = Lock(), compile_anew.compile_anew

    def watched(*given: Any, **options: Any) -> Executable:
        assert inside.acquire(blocking=False)
        sleep(0.01)
        try:
            return compiled(*given, **options)
        finally:
            inside.release()

    def file(each: onnx.ModelProto, name: str) -> bytes:
        compile_model(each, "tiny:8", cache=False).save(tmp_path / name)
        return (tmp_path / name).read_bytes()

    models = [products(), relu(), dense(), dense(2)]
    alone = [file(each, f"{i}.abele") for i, each in enumerate(models)]
    monkeypatch.setattr(compile_anew, "compile_anew", watched)
    assert at_once(lambda i: file(models[i], f"again{i}.abele")) == alone


def test_a_module_is_made_once_for_all_threads():
    exe = compile_model(products(), "tiny:8", cache=False)
    assert len({*map(id, at_once(lambda _: exe.runners.at(strict=True)))}) == 1


def test_steps_of_a_session_take_turns():
    """Steps of training and runs of the trained network: as many as were asked for, and no mix."""
    training = Training(loss="mean_square", optimizer="sgd", learning_rate=0.1)
    used = Training(update=False, outputs=True, reduction="none", loss="mean_square")
    programs = {
        "train": compile_model(dense(4), "tiny:8", train=training, cache=False),
        "use": compile_model(dense(2), "tiny:8", train=used, cache=False),
    }

    def given(batch: int) -> dict[str, np.ndarray]:
        return {"x": np.ones((batch, 6), np.float32), "target": np.zeros((batch, 4), np.float32)}

    def losses(session: Session, steps: int) -> list[float]:
        return [float(session.run(given(4))["loss"].mean()) for _ in range(steps)]

    alone = losses(Session(programs), 4 * THREADS)
    for each in programs.values():
        each.reset()
    session = Session(programs)

    def work(number: int) -> list[float]:
        if number % 2:
            return losses(session, 8)
        for _ in range(8):
            session.run(given(2))
        return []

    assert sorted(chain(*at_once(work)), reverse=True) == alone
    taken = [each.after for each in session.history]
    assert taken[1:] == [name for name in taken[:-1] for name in ({*programs} - {name})]


def test_a_child_that_is_forked_while_threads_run_gets_right_answers():
    script = (
        "import os, signal, sys, threading; sys.path.insert(0, sys.argv[1])\n"
        "from some_models import products; from abele.tools import compile_model\n"
        "from abele.backends.host.threads import THREADS; THREADS.count = 2\n"
        "from abele.tools.driver.arrays import seeded\n"
        "exe = compile_model(products(), 'tiny:8', cache=False); stop = threading.Event()\n"
        "given = [seeded(exe.inputs, seed) for seed in (0, 1)]\n"
        "wanted = [exe.run(each)['y'].tobytes() for each in given]\n"
        "def run():\n"
        "    while not stop.is_set(): exe.run(given[0])\n"
        "threads = [threading.Thread(target=run) for _ in range(3)]\n"
        "[each.start() for each in threads]; codes = []\n"
        "for _ in range(4):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        signal.alarm(20); os._exit(exe.run(given[1])['y'].tobytes() == wanted[1])\n"
        "    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "stop.set(); [each.join() for each in threads]; print(*codes)"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parents[2])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"] * 4


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_holds_a_machine_is_not_copied(copied: Callable[[object], object]):
    exe = compile_model(relu(), "tiny:3")
    for each, name in ((exe, "Executable <model>"), (Session({"a": exe}), "Session of a")):
        with pytest.raises(InputError, match=rf"<{name} .*> cannot be copied or pickled: .*save"):
            copied(each)
