"""Plans that take an operator a part at a time, where it does not fit at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from abele.backends.target import resolve_target
from abele.dialects.abele import PlanAttr
from abele.passes.planner.problem import Problem
from abele.passes.planner.question import Question, unplaced
from abele.passes.planner.search import fastest
from abele.passes.planner.serial import plans
from abele.passes.planner.terms import Terms
from abele.passes.plans.steps import takes_steps
from abele.tools.cli import app

from .some_operators import matmul

F32 = np.dtype(np.float32)
HALF = np.dtype(np.float16)
MK2 = resolve_target("mk2")
USABLE = MK2.usable_bytes_per_tile

SMALL = """base = "tiny"
tiles = 16
[memory]
bytes_per_tile = 8192
reserved_bytes = 1024
"""


def product(rows: int, depth: int, columns: int, most: int, dtype: np.dtype = F32) -> Problem:
    structure = matmul(rows, depth, columns)
    terms = Terms(temporary_bytes=most)
    return Problem(structure, (dtype,) * 2, dtype, (False,) * 2, terms=terms, free=(True,) * 2)


def on_mk2(problem: Problem) -> Question:
    return unplaced(problem, MK2, USABLE)


def test_a_product_that_fits_takes_one_step():
    asked = product(256, 256, 256, USABLE // 2)
    best = plans(on_mk2(asked))[0]
    assert best == fastest(on_mk2(asked))


def test_a_product_that_does_not_fit_takes_the_fewest_steps_that_fit():
    most = int(0.6 * USABLE)
    asked = product(2048, 2048, 8192, most, HALF)
    assert fastest(on_mk2(asked)).temporary_bytes > most
    best = plans(on_mk2(asked))[0]
    assert takes_steps(best.plan)
    assert best.temporary_bytes <= most
    roomy = fastest(on_mk2(replace(asked, terms=Terms())))
    assert roomy.cycles < best.cycles < 1.2 * roomy.cycles


def test_a_decided_split_is_kept_even_if_it_does_not_fit():
    asked = product(2048, 2048, 8192, 1000, HALF)
    asked = replace(asked, terms=replace(asked.terms, split=(16, 8, 4)))
    assert {c.plan.split for c in plans(on_mk2(asked))} == {(16, 8, 4)}


def program(plan: str) -> str:
    matrix = "tensor<64x64xf32>"
    return f"""
    builtin.module attributes {{abele.target = "{resolve_target("small.toml").spelling()}"}} {{
      func.func @main(%a: {matrix}, %b: {matrix}) -> {matrix} {{
        %0 = "nn.matmul"(%a, %b) {plan} : ({matrix}, {matrix}) -> {matrix}
        func.return %0 : {matrix}
      }}
    }}"""


def test_a_chosen_plan_of_several_steps_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    target = resolve_target("small.toml")
    asked = product(64, 64, 64, 4096)
    best = plans(unplaced(asked, target, 4096))[0]
    assert takes_steps(best.plan)
    assert best.temporary_bytes <= 4096
    Path("steps.mlir").write_text(program(f"{{plan = #abele.plan<{PlanAttr(best.plan).text()}>}}"))
    passes = "convert-nn-to-partition,tile,exchange"
    arguments = ["run", "steps.mlir", "-p", passes, "--check", "--strict", "--target", "small.toml"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
