"""Programs that JAX wrote, kept with the tests, compute what JAX computed. No JAX is needed."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.dialects.host import host_names
from abele.ir.pass_manager import PassManager, parse_pipeline
from abele.passes.pipelines import PASSES
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.importers.front_end import Reading
from abele.tools.importers.stablehlo.reader import read_stablehlo

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.mlir"))
VALUES = dict(np.load(FOLDER / "values.npz"))

ON_THE_MACHINE = (
    "adam_step",
    "fourier_filter",
    "gradient_of_pools",
    "loop_until",
    "special_constants",
    "random_numbers",
)
"""The programs that are also compiled and run at exchange."""


def values(name: str, kind: str) -> list[np.ndarray[Any, Any]]:
    found = [each for each in VALUES if each.startswith(f"{name}/{kind}/")]
    return [VALUES[f"{name}/{kind}/{i}"] for i in range(len(found))]


def agree(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for mine, other in zip(found, wanted, strict=True):
        narrow = mine.dtype == ml_dtypes.bfloat16
        mine = mine.astype(np.float32) if narrow else mine
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(mine, other)


def test_there_are_fifty_programs():
    assert len(PROGRAMS) >= 50
    assert {each.partition("/")[0] for each in VALUES} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_jax_computed(name: str):
    context = new_context()
    module = read_stablehlo(FOLDER / f"{name}.mlir", Reading(context, f"{name}.mlir"))
    PassManager(parse_pipeline("convert-stablehlo-to-nn", PASSES)).run(context, module)
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    names = host_names(main, "arg_names", len(main.args))
    with np.errstate(all="ignore"):
        found = run_reference(module, dict(zip(names, values(name, "in"), strict=True)))
    agree(list(found.outputs.values()), values(name, "out"))


@pytest.mark.parametrize("name", ON_THE_MACHINE)
def test_a_program_runs_on_the_machine(name: str):
    exe = compile_model(FOLDER / f"{name}.mlir", target="tiny:4", cache=False)
    inputs = dict(zip([each.name for each in exe.inputs], values(name, "in"), strict=True))
    found = exe.run(inputs)
    agree([found[each.name] for each in exe.outputs], values(name, "out"))
