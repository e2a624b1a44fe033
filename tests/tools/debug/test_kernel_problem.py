"""A check compares the run that the user gets with others, and names the kernel that is wrong."""

from pathlib import Path

import numpy as np
import pytest
from planted_kernels import LOOP, wrong_kernel
from some_tensors import context, module_of

from abele.backends.host.binders import best_binder
from abele.backends.host.fusion import FusedBinder
from abele.ir.text import write_module
from abele.tools import compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.debug.run_check import check_run
from abele.tools.driver.arrays import seeded
from abele.tools.driver.request import Request

pytestmark = pytest.mark.skipif(best_binder() is not FusedBinder, reason="no kernels")

TARGET = "tiny:4"


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """A program with a loop, a branch and a state."""
    path = tmp_path_factory.mktemp("planted") / "loop.mlir"
    module = module_of(LOOP, context(), n=np.full((8, 24), 0.5, np.float32))
    write_module(module, path)
    return path


def checked(path: Path):
    exe = compile_model(path, TARGET, cache=False)
    inputs = seeded(exe.inputs)
    return check_run(exe, inputs, exe.run(inputs), "exchange")


def test_nothing_is_wrong_with_the_kernels(path):
    assert checked(path).passed
    assert bisect(Request(path, TARGET)).passed


# In the first superstep, a loop, a branch, and what only a state shows.
PLACES = {
    "first": "exchange.compute at first in superstep @first",
    "turn+bend/partials": "exchange.compute at turn+bend/partials in superstep @turn+bend/partials",
    "then": "exchange.compute at then in superstep @then",
    "n": "exchange.compute at count in superstep @n",
}


@pytest.mark.parametrize("variable", PLACES)
def test_a_wrong_bit_of_a_plain_run_fails_the_check_and_names_the_kernel(path, variable):
    with wrong_kernel(variable, byte=1):
        verdict = checked(path)
    assert not verdict.passed
    # Every operation of the run that writes all bytes is right.
    assert verdict.ratio < 1
    assert "a compiled kernel is wrong" in verdict.problem
    assert PLACES[variable] in verdict.problem
    assert "ABELE_KERNELS=plain" in verdict.problem


@pytest.mark.parametrize("variable", PLACES)
def test_a_wrong_bit_of_a_plain_run_makes_bisection_blame_the_kernel_and_no_pass(path, variable):
    with wrong_kernel(variable, byte=1):
        verdict = bisect(Request(path, TARGET))
    assert not verdict.passed
    assert verdict.index is None
    assert PLACES[variable] in verdict.text
    assert "nothing is wrong after any of 17 passes in runs without kernels" in verdict.text


def test_a_kernel_that_is_wrong_once_it_is_warm_is_found(path):
    with wrong_kernel("then", from_call=2):
        verdict = checked(path)
        assert PLACES["then"] in verdict.problem
        assert PLACES["then"] in bisect(Request(path, TARGET)).text


def test_a_kernel_that_fails_once_it_is_warm_is_named(path):
    def fail() -> None:
        runs.append(None)
        if len(runs) > 1:
            raise ValueError("planted")

    runs: list[None] = []
    with wrong_kernel("then", instead=fail):
        verdict = checked(path)
    assert "the run: ValueError: planted in the plain run; it ends with results in" in (
        verdict.problem
    )
    assert PLACES["then"] in verdict.problem


def test_an_operation_that_only_the_watched_run_gets_wrong_is_named(path):
    with wrong_kernel("then", fused=False, watched=True):
        problem = checked(path).problem
    assert PLACES["then"] in problem
    assert "in a run that writes every byte and" in problem


def test_a_kernel_that_is_wrong_within_its_bound_in_both_runs_is_found_by_bisection(path):
    with wrong_kernel("first", watched=True):
        assert checked(path).passed
        assert PLACES["first"] in bisect(Request(path, TARGET)).text


def test_a_kernel_that_is_far_off_in_both_runs_is_called_a_kernel(path):
    with wrong_kernel("first", watched=True, byte=3):
        problem = checked(path).problem
    assert "times its bound" in problem
    assert "a compiled kernel is wrong" in problem
    assert PLACES["first"] in problem


def test_a_difference_that_does_not_come_again_is_reported(path):
    exe = compile_model(path, TARGET, cache=False)
    inputs = seeded(exe.inputs)
    outputs = exe.run(inputs)
    other = {"y": np.nextafter(outputs["y"], np.float32(9))}
    problem = check_run(exe, inputs, other, "exchange").problem
    assert problem.startswith("two runs of one program differ: output 'y': 192 of 192 elements")
    assert "repeated runs agree" in problem


def test_a_check_leaves_the_states_of_a_program_as_they_are(path):
    exe = compile_model(path, TARGET, cache=False)
    inputs = seeded(exe.inputs)
    outputs = exe.run(inputs)
    before = dict(exe.runners.at().states)
    assert check_run(exe, inputs, outputs, "exchange").passed
    after = exe.runners.at().states
    assert not np.array_equal(before["n"], np.full((8, 24), 0.5))
    assert np.array_equal(before["n"], after["n"])
