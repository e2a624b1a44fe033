"""Plans of several steps: in time as in space, and round a ring of tiles."""

from itertools import pairwise

import numpy as np
import pytest

from abele.backends.machine import Machine
from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects import partition
from abele.dialects.abele import Plan
from abele.dialects.partition import partition_type
from abele.dialects.structured import Body, Structure
from abele.ir.errors import InputError
from abele.ir.geometry.overlap import overlap
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES
from abele.passes.plans.derive import final_layout, operand_layouts
from abele.passes.plans.steps import check_steps, passes_of

from ...strategies import context

TARGET = "tiny:8"
M, N, K = 6, 8, 12
RING = "split [2, 4, 1] steps [1, 1, 4] ring [-1, -1, 1]"

WEIGHTS = np.random.default_rng(1).normal(size=(K, N)).astype(np.float32)


WAY = "convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps,allocate,"
WAY += "group-supersteps,convert-tile-to-exchange"


def product(plan: str, element: str = "f32", *, squared: bool = False):
    """A product of matrices with a plan, its weights a state; or its square, in one group."""
    made = context()
    digest = made.blobs.add(WEIGHTS.astype(f"f{int(element[1:]) // 8}")).digest
    left, right, out = (f"tensor<{a}x{b}x{element}>" for a, b in ((M, K), (K, N), (M, N)))
    square = f"%1 = nn.mul %0, %0 {{group = 0}} : ({out}, {out}) -> {out}"
    text = f"""
    builtin.module attributes {{abele.target = "{TARGET}"}} {{
      nn.state @w : {right} = <"{digest}">
      func.func @main(%a: {left}) -> {out} {{
        %b = nn.load @w : {right}
        %0 = "nn.matmul"(%a, %b) {{group = 0, plan = #abele.plan<{plan}>}}
          : ({left}, {right}) -> {out}
        {square if squared else ""}
        func.return {"%1" if squared else "%0"} : {out}
      }}
    }}"""
    return parse_module(text, made), made


def lowered(
    plan: str, element: str = "f32", to: str = "convert-nn-to-partition", *, squared: bool = False
):
    module, made = product(plan, element, squared=squared)
    for each in parse_pipeline(to, PASSES):
        each.apply(made, module)
    module.verify()
    return module


def computes(module):
    return [op for op in module.walk() if isinstance(op, partition.ComputeOp)]


@pytest.mark.parametrize(
    "plan",
    [
        "split [2, 4, 1] steps [1, 1, 3]",
        "split [2, 4, 1] steps [3, 1, 1]",
        "split [2, 2, 2] steps [1, 2, 3] combine split [2, 2, 1]",
        RING,
        "split [2, 4, 1] steps [3, 1, 2] ring [-1, -1, 1]",
        "split [1, 8, 1] order [1] workers [2, 1, 1] steps [2, 1, 4] ring [-1, -1, 1]",
    ],
)
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_a_product_in_steps_is_the_product(plan: str, element: str):
    module = lowered(plan, element, WAY)
    a = np.random.default_rng(0).normal(size=(M, K)).astype(f"f{int(element[1:]) // 8}")
    (found,) = Machine(module, resolve_target(TARGET), strict=True).run({"arg0": a}).values()
    (exact,) = run_reference(product(plan, element)[0], {"arg0": a}).outputs.values()
    np.testing.assert_allclose(found, exact, rtol=1e-3 if element == "f16" else 1e-5, atol=1e-2)


def test_a_chain_that_reads_its_first_value_twice_reads_the_sum_of_all_steps():
    plan = "split [2, 4, 1] steps [1, 1, 3]"
    *_, last = computes(lowered(plan, squared=True))
    assert [stage.reads for stage in last.body.data.then] == [(), (1, 1)]
    a = np.random.default_rng(0).normal(size=(M, K)).astype(np.float32)
    module = lowered(plan, to=WAY, squared=True)
    (found,) = Machine(module, resolve_target(TARGET), strict=True).run({"arg0": a}).values()
    np.testing.assert_allclose(found, (a @ WEIGHTS) ** 2, rtol=1e-4, atol=1e-5)


def test_steps_over_a_reduction_add_to_the_partials():
    first, second, third = computes(lowered("split [2, 4, 1] steps [1, 1, 3]"))
    assert not first.body.data.then
    assert [stage.function for stage in third.body.data.then] == ["add"]
    assert second.operands[2] is first.result
    assert [op.space.data.operands[0].axes[1].offset for op in (first, second, third)] == [0, 4, 8]


def test_steps_over_a_result_are_joined_without_a_byte_between_tiles():
    module = lowered("split [2, 4, 1] steps [3, 1, 1]")
    (join,) = (
        op
        for op in module.walk()
        if isinstance(op, partition.RelayoutOp) and op.moves and len(op.inputs) == 3
    )
    result = partition_type(join.result).layout.data
    for value, move in zip(join.inputs, join.moves, strict=True):
        assert overlap(partition_type(value).layout.data, result, move.data).received.sum() == 0


def test_weights_are_on_the_tiles_that_read_them_in_each_step():
    module = lowered("split [2, 4, 1] steps [1, 1, 3]")
    load = next(op for op in module.walk() if isinstance(op, partition.LoadOp))
    home = partition_type(load.result).layout.data
    assert home.is_partition
    moved = [use.operation.results[0] for use in load.result.uses]
    assert len(moved) == 3
    for part in moved:
        assert overlap(home, partition_type(part).layout.data).received.sum() == 0


def test_in_a_ring_no_two_tiles_hold_the_same_part_and_each_goes_one_tile_on():
    module = lowered(RING)
    layouts = [partition_type(op.operands[0]).layout.data for op in computes(module)]
    assert len(layouts) == 4
    block = (M // 2) * (K // 4)
    for before, after in pairwise(layouts):
        assert before.is_partition
        assert before.block_elements == block
        assert (overlap(before, after).received == block).all()


def test_a_rotating_operand_starts_in_its_own_layout():
    structure = product_structure()
    left, right = operand_layouts(structure, Plan((2, 4, 1), steps=(1, 1, 4), ring=(-1, -1, 1)))
    assert left.is_partition
    assert left.block_elements == (M // 2) * (K // 4)
    assert right.block_elements == K * (N // 4)


def product_structure() -> Structure:
    def matrix(rows: int, columns: int, *dims: int) -> AccessMap:
        return AccessMap(
            tuple(AxisMap(n, ((d, 1),)) for n, d in zip((rows, columns), dims, strict=True))
        )

    dims = (Dim("m", M), Dim("n", N), Dim("k", K, "reduction"))
    operands = (matrix(M, K, 0, 2), matrix(K, N, 2, 1))
    return Structure(Space(dims, operands, (matrix(M, N, 0, 1),)), Body("mul", "sum"))


def test_every_point_is_in_one_step():
    structure = product_structure()
    plan = Plan((2, 2, 1), steps=(3, 2, 4))
    passes = list(passes_of(structure, plan))
    assert [len(steps) for steps in passes] == [4] * 6
    assert sum(s.structure.space.points for steps in passes for s in steps) == M * N * K
    assert len({steps[0].starts for steps in passes}) == 6
    assert final_layout(structure, plan).is_partition


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan((1, 1, 1), steps=(1, 1, 5)), "dimension k: 5 steps of 12; need a divisor"),
        (Plan((1, 8, 1), steps=(1, 2, 1)), "dimension n: 2 steps of 4 elements in 8 parts"),
        (Plan((1, 1, 1), steps=(1, 2)), "steps of 2 dimensions; the space has 3"),
        (Plan((1, 1, 1), steps=(1, 2, 1), ring=(-1, 0, -1)), "need a reduction that goes round"),
        (Plan((1, 2, 1), steps=(1, 1, 3), ring=(-1, -1, 1)), "3 steps round 2 parts of 8"),
        (Plan((1, 4, 2), steps=(1, 1, 2), ring=(-1, -1, 1)), "2 steps round 4 parts of 8"),
        (
            Plan((1, 1, 2), steps=(2, 1, 1), combine=Plan((1, 1, 1), steps=(2, 1, 1))),
            "within steps; need one step",
        ),
    ],
)
def test_illegal_steps_are_refused(plan: Plan, message: str):
    with pytest.raises(ValueError, match=message):
        check_steps(product_structure(), plan)


def test_a_plan_that_cannot_be_followed_names_the_operation():
    with pytest.raises(InputError, match=r"nn.matmul at .*: dimension k: 5 steps of 12"):
        lowered("split [1, 1, 1] steps [1, 1, 5]")
