"""Where a task has no kernels, NumPy does it, and all bytes are the same."""

from functools import cache

import numpy as np
import pytest
import some_models

from abele.backends.evaluate.binder import Binder
from abele.backends.host import load
from abele.backends.host.binders import best_binder
from abele.backends.host.judges import FastJudge
from abele.backends.host.kernel_names import kernels_in
from abele.backends.host.read_bound_program import Damaged
from abele.backends.host.switch import choice
from abele.backends.host.tasks import NEEDS
from abele.backends.host.write_bound_program import bound_program_file
from abele.backends.machine import Machine
from abele.backends.op_check import Judge
from abele.tools import Executable, compile_model
from abele.tools.driver.arrays import seeded
from abele.tools.testing import Program

from .test_generated_programs import generated, wrong
from .test_judges import batch_of_products
from .test_read_bound_program import loaded

pytest.importorskip("numba")

MODELS = "products", "convolutions", "normalisations", "classifier"

PROGRAMS = 5
"""Generated programs for each task."""


@pytest.fixture(params=NEEDS)
def task(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A task without kernels."""
    return without(request.param, monkeypatch)


def without(task: str, monkeypatch: pytest.MonkeyPatch) -> str:
    form = choice().name
    for each in NEEDS:
        assert load.has_kernels(each)
    others = {key: held for key, held in load._loaded.items() if key != (form, task)}
    monkeypatch.setattr(load, "_loaded", others)
    monkeypatch.setattr(load, "_problems", {(form, task): load.NoKernels(task, "are planted")})
    return task


@cache
def compiled(model: str) -> tuple[Executable, list[bytes]]:
    """A program, and its outputs by NumPy."""
    exe = compile_model(getattr(some_models, model)(), "tiny:8", cache=False)
    return exe, outputs(exe, machine_of(exe, Binder))


def machine_of(exe: Executable, binder: type[Binder]) -> Machine:
    return Machine(exe.module_at("exchange"), exe.target, binder=binder)


def outputs(exe: Executable, machine: Machine) -> list[bytes]:
    """The outputs of three runs: operands are packed in the second one."""
    runs = (machine.run(seeded(exe.inputs, seed)) for seed in (0, 1, 0))
    return [values.tobytes() for run in runs for values in run.values()]


@pytest.mark.parametrize("model", MODELS)
def test_networks_have_the_bytes_of_numpy(model: str, task: str):
    exe, expected = compiled(model)
    machine = machine_of(exe, best_binder())
    assert outputs(exe, machine) == expected
    used = {name for _, calls, _ in machine.bound() for name in kernels_in(calls)}
    assert task not in used
    assert task == "sharing" or used & {*NEEDS}


@cache
def programs() -> list[Program]:
    """Programs that all tasks run."""
    return list(filter(None, map(generated, range(PROGRAMS))))


def test_generated_programs_have_the_bytes_of_numpy(task: str):
    assert programs()
    for program in programs():
        assert wrong(program) == [], program.text


@pytest.mark.parametrize("missing", ["bounds", "equality"])
def test_checks_find_what_numpy_finds(missing: str, monkeypatch: pytest.MonkeyPatch):
    without(missing, monkeypatch)
    structure = batch_of_products(())
    rng = np.random.default_rng(0)
    given = [rng.normal(size=a.shape).astype(np.float32) for a in structure.space.operands]
    actual = np.matmul(*given)
    actual[0, 0, 0] += 1
    fast, plain = (
        (judge.largest_ratio(structure, given, actual, 0), judge.are_equal(actual, actual.copy()))
        for judge in (FastJudge(), Judge())
    )
    np.testing.assert_allclose(fast, plain, rtol=1e-9)


@pytest.mark.parametrize("missing", ["products", "routes", "sharing"])
def test_a_run_that_was_kept_with_kernels_is_not_used_without_them(
    missing: str, monkeypatch: pytest.MonkeyPatch
):
    exe, _ = compiled("products")
    machine = machine_of(exe, best_binder())
    data = bound_program_file(machine, exe.module_at("exchange"))
    assert data is not None
    assert loaded(data, machine) is not None
    without(missing, monkeypatch)
    with pytest.raises(Damaged, match=f"kernels of {missing}"):
        loaded(data, machine)
