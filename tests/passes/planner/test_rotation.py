"""Plans of several steps: their price is that of the program, and they fit where others do not."""

from dataclasses import replace
from itertools import product
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from abele.backends.memory import memory_report
from abele.backends.prices.price import price
from abele.backends.target import resolve_target
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.partition import partition_type
from abele.ir.geometry.layout import linear_layout
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES
from abele.passes.planner.question import Question, unplaced
from abele.passes.planner.rotation import priced_in_steps, search_in_steps
from abele.passes.planner.search import search
from abele.tools.cli import app

from ...strategies import context
from .some_operators import F16, F32, chained, conv, matmul, problem

TARGET = resolve_target("tiny:16")
PLENTY = TARGET.usable_bytes_per_tile
SIZES = M, K, N = 32, 96, 48
DOWN = (
    "convert-partition-to-tile,schedule-supersteps,allocate,group-supersteps,"
    "convert-tile-to-exchange"
)


def lowered(plan: Plan, element: str):
    """A product of an input and weights, at partition."""
    made = context()
    digest = made.blobs.add(np.zeros((K, N), f"f{int(element[1:]) // 8}")).digest
    left, right, out = (f"tensor<{a}x{b}x{element}>" for a, b in ((M, K), (K, N), (M, N)))
    text = f"""
    builtin.module attributes {{abele.target = "tiny:16"}} {{
      nn.state @w : {right} = <"{digest}">
      func.func @main(%a: {left}) -> {out} {{
        %b = nn.load @w : {right}
        %0 = "nn.matmul"(%a, %b) {{plan = #abele.plan<{PlanAttr(plan).text()}>}}
          : ({left}, {right}) -> {out}
        func.return %0 : {out}
      }}
    }}"""
    module = parse_module(text, made)
    for each in parse_pipeline("convert-nn-to-partition", PASSES):
        each.apply(made, module)
    return module, made


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    "plan",
    [
        Plan((4, 4, 1), steps=(1, 1, 4), ring=(-1, -1, 0)),
        Plan((4, 4, 1), steps=(1, 1, 2), ring=(-1, -1, 1)),
        Plan((2, 8, 1), steps=(1, 1, 6)),
        Plan((2, 2, 2), steps=(1, 1, 3)),
        Plan((2, 2, 2), steps=(1, 1, 3), combine=Plan((4, 2, 1))),
        Plan((2, 4, 1), steps=(2, 2, 1)),
    ],
)
def test_the_price_is_that_of_the_program(plan: Plan, element: str):
    own = problem(matmul(M, K, N), F16 if element == "f16" else F32, (False, True))
    linear = linear_layout((M, K), own.operand_dtypes[0].itemsize, TARGET.tiles)
    plan = priced_in_steps(Question(own, (linear, None), TARGET, PLENTY), plan).plan
    module, made = lowered(plan, element)
    entry = next(op for op in module.walk() if op.name == "func.func").regions[0].block
    arrives = partition_type(entry.args[0]).layout.data
    for each in parse_pipeline(DOWN, PASSES):
        each.apply(made, module)
    steps = price(module, TARGET)
    paid = sum(step.cycles for step in steps if step.exchange_cycles or step.compute_cycles)

    choice = priced_in_steps(Question(own, (arrives, None), TARGET, PLENTY), plan)
    assert choice.cycles == pytest.approx(paid, rel=0.01)
    report = memory_report(module, TARGET)
    held = report.max_tile_bytes - TARGET.memory.reserved_bytes
    arrived = arrives.block_elements * own.operand_dtypes[0].itemsize
    assert choice.resident_bytes + choice.temporary_bytes + arrived >= held
    assert choice.resident_bytes <= int(report.always_live_bytes.max())


def test_in_a_ring_weights_are_resident_once():
    own = problem(matmul(64, 64, 64), F32, (False, True))
    question = unplaced(own, TARGET, PLENTY)
    found = search_in_steps(question)
    rotating = [choice for choice in found if choice.plan.ring]
    assert rotating
    for choice in rotating:
        (d,) = (d for d, r in enumerate(choice.plan.ring) if r >= 0)
        steps, round_ = choice.plan.steps[d], choice.plan.split[choice.plan.ring[d]]
        assert choice.resident_bytes * choice.cells == 64 * 64 * 4 * round_ // steps
    once = search(question)
    assert min(c.resident_bytes for c in rotating) <= min(c.resident_bytes for c in once)


def test_no_plan_found_is_both_slower_and_larger_than_another():
    own = problem(matmul(64, 128, 32), F16, (False, True))
    found = search_in_steps(unplaced(own, TARGET, PLENTY))
    assert len(found) > 1
    cycles, resident = zip(*((c.cycles, c.resident_bytes) for c in found), strict=True)
    assert list(cycles) == sorted(cycles)
    assert list(resident) == sorted(resident, reverse=True)
    assert len(set(resident)) == len(found)


def test_a_tight_bound_is_kept():
    own = problem(matmul(64, 64, 64), F32, (False, True))
    free = search_in_steps(unplaced(own, TARGET, PLENTY))
    most = max(c.resident_bytes + c.temporary_bytes for c in free)
    tight = search_in_steps(unplaced(own, TARGET, most - 1))
    assert tight
    assert all(c.resident_bytes + c.temporary_bytes < most for c in tight)


def test_a_chain_follows_the_last_step():
    plan = Plan((4, 4, 1), steps=(1, 1, 4), ring=(-1, -1, 0))
    plain = problem(matmul(64, 64, 64), F32)
    long = problem(chained(matmul(64, 64, 64), False), F32)
    without, with_chain = (
        priced_in_steps(unplaced(p, TARGET, PLENTY), plan) for p in (plain, long)
    )
    assert without.cycles < with_chain.cycles < 1.2 * without.cycles


def test_only_matrix_products_take_steps():
    assert search_in_steps(unplaced(problem(conv(8, 8, 8, 3)), TARGET, PLENTY)) == ()
    assert search_in_steps(unplaced(problem(matmul(8, 1, 8)), TARGET, PLENTY)) == ()


# End to end, where memory is tight.

SMALL = """base = "tiny"
tiles = 16
[memory]
bytes_per_tile = 8192
reserved_bytes = 1024
"""
USABLE = 7168


def program(plan: str) -> str:
    matrix = "tensor<64x64xf32>"
    return f"""
    builtin.module attributes {{abele.target = "{resolve_target("small.toml").spelling()}"}} {{
      func.func @main(%a: {matrix}, %b: {matrix}) -> {matrix} {{
        %0 = "nn.matmul"(%a, %b) {plan} : ({matrix}, {matrix}) -> {matrix}
        func.return %0 : {matrix}
      }}
    }}"""


def run(*arguments: str):
    return CliRunner().invoke(app, ["run", *arguments, "--target", "small.toml"])


def test_a_rotating_plan_fits_where_no_plan_of_one_step_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    for parts in product(range(1, 17), repeat=3):
        m, k, n = (ceil(64 / p) for p in parts)
        assert np.prod(parts) > 16 or 4 * (m * k + k * n + m * n) > USABLE
    target = resolve_target("small.toml")
    assert target.usable_bytes_per_tile == USABLE
    own = replace(problem(matmul(64, 64, 64), F32))
    found = search_in_steps(unplaced(own, target, USABLE))
    assert found[0].resident_bytes + found[0].temporary_bytes <= USABLE
    plan = f"{{plan = #abele.plan<{PlanAttr(found[0].plan).text()}>}}"
    Path("steps.mlir").write_text(program(plan))
    Path("free.mlir").write_text(program(""))
    for name in ("steps.mlir", "free.mlir"):
        result = run(name, "--check", "--strict")
        assert result.exit_code == 0, result.output
