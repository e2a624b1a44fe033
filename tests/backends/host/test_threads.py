"""A run leaves the same bytes for any number of threads, whoever does which unit of its calls."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Thread
from time import monotonic, sleep
from unittest import mock

import numpy as np
import onnx
import pytest

from abele.backends.faults import IndexFault
from abele.backends.host import calls, routes, runs, threads
from abele.backends.host.binders import best_binder
from abele.backends.host.threads import THREADS, Threads, using
from abele.backends.machine import Machine
from abele.tools import compile_model
from abele.tools.driver.arrays import seeded
from abele.tools.driver.executable import Executable
from abele.tools.testing import Program

from ... import some_models
from .test_generated_programs import generated
from .unit_orders import in_another_order

pytest.importorskip("numba")

COUNTS = (1, 2, 3, 7)
PROGRAMS, EACH = 2, 4
RACING = 20
"""The number of a generated program that a race shows in."""

SMALL_MODELS = ("products", "convolutions", "normalisations", "shuffle", "classifier")

States = dict[str, bytes]


@pytest.fixture(autouse=True)
def _shared_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every call into many units, however small it is."""
    monkeypatch.setattr(calls, "SMALL_NANOSECONDS", 0.0)
    monkeypatch.setattr(calls, "LEAST_NANOSECONDS", 1.0)


def states(machine: Machine, inputs: dict[str, np.ndarray]) -> States:
    """The outputs of two runs, and the states after them."""
    found: dict[str, np.ndarray] = {}
    for iteration in range(2):
        found |= {f"{iteration} {name}": x for name, x in machine.run(inputs).items()}
    kept = (name for name, v in machine.variables.items() if v.initial is not None)
    found |= {name: machine.read(name) for name in kept}
    return {name: array.tobytes() for name, array in found.items()}


def fast(program: Program) -> Machine:
    return Machine(program.module, program.target, binder=best_binder())


def differing(program: Program) -> list[str]:
    """The orders of units, and the numbers of threads, that leave other states than one thread."""
    expected = states(fast(program), program.inputs)
    found: list[str] = []
    for seed in range(2):
        with mock.patch.object(Threads, "run", in_another_order(seed)):
            if states(fast(program), program.inputs) != expected:
                found.append(f"order {seed}")
    for count in COUNTS[1:]:
        with using(count):
            if states(fast(program), program.inputs) != expected:
                found.append(f"{count} threads")
    return found


def programs(numbers: Iterable[int]) -> Iterator[Program]:
    for number in numbers:
        program = generated(number)
        if program is None:
            continue
        try:
            fast(program).run(program.inputs)
        except IndexFault:
            continue
        yield program


@pytest.mark.parametrize("part", range(PROGRAMS))
def test_generated_programs_leave_equal_states_for_any_number_of_threads(part: int):
    numbers = range(part * EACH, (part + 1) * EACH)
    assert [*filter(None, map(differing, programs(numbers)))] == []


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_small_networks_have_equal_results_for_any_number_of_threads(name: str):
    proto: onnx.ModelProto = getattr(some_models, name)()
    found: set[bytes] = set()
    for count in COUNTS:
        with using(count):
            exe = compile_model(proto, target="tiny:64")
            given = seeded(exe.inputs)
            found |= {b"".join(x.tobytes() for x in exe.run(given).values()) for _ in range(3)}
    assert len(found) == 1


def test_a_planted_race_is_found():
    """Without the cut between cells and their replicas, a replica may be copied too early."""

    def at_once(table: np.ndarray, kind: np.ndarray, group: np.ndarray, unit: int) -> object:
        return [np.arange(len(kind) + 1, dtype=np.int64)]

    routes._KNOWN.clear()
    with mock.patch.object(runs, "stages_of", at_once):
        # A change of the generator may move it.
        numbers = (RACING, *range(PROGRAMS * EACH))
        found = next(filter(None, map(differing, programs(numbers))), [])
    routes._KNOWN.clear()
    assert found


def test_calls_are_cut_alike_for_any_number_of_threads():
    cuts = []
    for count in COUNTS:
        with using(count):
            cuts.append(calls.even_cuts(1000, 1e6, 8).tolist())
    assert cuts == cuts[:1] * len(COUNTS)


def test_cuts_cover_all_parts_and_keep_to_their_steps():
    cuts = calls.even_cuts(1001, 1e5, 8)
    assert (cuts[0], cuts[-1]) == (0, 1001)
    assert not (cuts[:-1] % 8).any()
    assert (np.diff(cuts) > 0).all()
    uneven = calls.unit_cuts(np.array([1.0, 1e5, 1.0, 1e5]), np.array([2, 4]))
    assert uneven.tolist() == [0, 2, 4]


@pytest.mark.parametrize("parts", [0, 1])
def test_a_call_without_work_is_one_unit(parts: int):
    assert calls.even_cuts(parts, 0.0).tolist() == [0, parts]
    assert calls.unit_cuts(np.zeros(parts)).tolist() == [0, parts]


@dataclass
class Network:
    """A small network with calls that threads share, and what one thread computes."""

    exe: Executable
    inputs: dict[str, np.ndarray]
    expected: list[bytes]

    @classmethod
    def of(cls, proto: onnx.ModelProto) -> "Network":
        exe = compile_model(proto, target="tiny:64")
        made = cls(exe, seeded(exe.inputs), [])
        with using(1):
            made.expected = made.results()
        return made

    def results(self) -> list[bytes]:
        return [x.tobytes() for x in self.exe.run(self.inputs).values()]

    @property
    def is_right(self) -> bool:
        return self.results() == self.expected


@pytest.fixture
def network() -> Network:
    return Network.of(some_models.convolutions())


def test_threads_that_have_parked_join_in_again(network: Network):
    THREADS.end()
    with using(3):
        assert network.is_right
        end = monotonic() + 60
        while THREADS._parked[0] < 2 and monotonic() < end:
            sleep(0.001)
        assert THREADS._parked[0] == 2
        assert network.is_right


def test_threads_can_be_ended_and_begin_again(network: Network):
    with using(3):
        assert network.is_right
        own = list(THREADS._workers)
        THREADS.end()
        assert own
        assert not any(each.is_alive() for each in own)
        assert network.is_right


def test_a_host_without_more_threads_runs_in_one(network: Network):
    THREADS.end()
    with using(3), mock.patch.object(threads.Thread, "start", side_effect=RuntimeError):
        assert network.is_right
    THREADS.end()


def test_two_threads_of_python_run_two_machines():
    made = [Network.of(some_models.convolutions()), Network.of(some_models.products())]
    found: list[bool] = []

    def run(own: Network) -> None:
        found.extend(own.is_right for _ in range(20))

    with using(2):
        both = [Thread(target=run, args=(own,)) for own in made]
        for each in both:
            each.start()
        for each in both:
            each.join()
    assert found == [True] * 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_starts_threads_of_its_own(network: Network):
    with using(2):
        assert network.is_right
        child = os.fork()
        if not child:
            os._exit(not network.is_right)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert network.is_right


LONG_RUN = """
import signal, sys
# A shell's background jobs ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
from abele.backends.host import calls
calls.SMALL_NANOSECONDS, calls.LEAST_NANOSECONDS = 0.0, 1.0
from abele.backends.host.threads import THREADS
from abele.tools import compile_model
from abele.tools.driver.arrays import seeded
from abele.tools.driver.executable import Executable
THREADS.count = 3
exe = compile_model(sys.argv[1], target="tiny:16")
given = seeded(exe.inputs)
exe.run(given)
print("runs", flush=True)
while True:
    exe.run(given)
"""


def test_an_interrupt_ends_a_run_with_threads(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(some_models.products().SerializeToString())
    command = [sys.executable, "-c", LONG_RUN, str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "runs\n"
        run.send_signal(signal.SIGINT)
        try:
            _, told = run.communicate(timeout=20)
        finally:
            run.kill()
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert told.count("Traceback") == 1
