from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from abele.backends.reference.run import run_reference
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.dialects.levels import NN
from abele.ir.upstream import Context, ModulePass
from abele.ir.verify import verify
from abele.passes.decompose import Decompose
from abele.passes.summarize_softmax import MOST_ELEMENTS, SummarizeSoftmax, has_short_softmax
from abele.tools.driver.compile import compile_model
from abele.tools.driver.context import new_context
from abele.tools.testing import Miscompiled, check_pass, programs
from abele.tools.testing.generators.program import Program
from abele.tools.testing.search.contracts import with_apply


def program(shape: tuple[int, ...], axis: int, dtype: type[np.floating[Any]]) -> ModuleOp:
    block = Block(arg_types=[TensorType(element_type(np.dtype(dtype)), shape)])
    softmax = nn.SoftmaxOp(block.args[0], axis)
    block.add_ops([softmax, ReturnOp(softmax.result)])
    types = [block.args[0].type], [softmax.result.type]
    module = ModuleOp([FuncOp("main", types, Region(block))])
    Decompose().apply(new_context(), module)
    return module


def rewritten(module: ModuleOp) -> ModuleOp:
    made = module.clone()
    SummarizeSoftmax().apply(new_context(), made)
    verify(made, NN)
    return made


def summaries(module: ModuleOp) -> int:
    return sum(isinstance(op, nn.SummarizeOp) for op in module.walk())


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
@settings(max_examples=15, deadline=None)
def test_a_short_softmax_is_the_same(dtype: Any, shape: list[int], data: st.DataObject):
    axis = data.draw(st.integers(0, len(shape) - 1))
    module = program(tuple(shape), axis, dtype)
    made = rewritten(module)
    assert summaries(made) == 1
    # Some elements are masked, and some are far apart.
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    some = data.draw(st.sampled_from([[], [np.inf], [np.nan], [-np.inf] * 20]))
    x = rng.choice([-np.inf, -60.0, 0.0, 1.5, 30.0, *some], shape).astype(dtype)
    before, after = (run_reference(each, {"arg0": x}).outputs["out0"] for each in (module, made))
    np.testing.assert_allclose(after, before, rtol=2e-6 if dtype is np.float32 else 2e-3)


def test_a_long_softmax_stays():
    assert summaries(rewritten(program((MOST_ELEMENTS // 64 + 1, 64), 1, np.float32))) == 0


@pytest.mark.parametrize("level", ["partition", "tile", "exchange"])
def test_rows_that_are_not_finite_are_those_of_the_two_reductions(level: str, tmp_path: Path):
    """Also where parts of a row lie on several tiles: 1,000 elements a row on 64 tiles."""
    path = tmp_path / "softmax.mlir"
    path.write_text(
        """
func.func @main(%x: tensor<6x1000xf32>) -> tensor<6x1000xf32> {
  %0 = nn.softmax %x axis 1 : (tensor<6x1000xf32>) -> tensor<6x1000xf32>
  func.return %0 : tensor<6x1000xf32>
}"""
    )
    x = np.random.default_rng(0).normal(0, 30, (6, 1000)).astype(np.float32)
    x[0] = -np.inf
    x[1, 7] = np.inf
    x[2, [3, 900]] = -np.inf, np.inf
    x[3, 999] = np.nan
    x[4, 1:] = -np.inf
    own, other = (
        compile_model(
            path, "mk2:64", cache=False, passes=f"decompose,{each}nn,partition,tile,exchange"
        )
        for each in ("summarize-softmax,", "")
    )
    assert own.profile["supersteps"] < other.profile["supersteps"]
    found, expected = (
        next(iter(each.run({"arg0": x}, at=level).values())) for each in (own, other)
    )
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    assert np.isnan(found[:4]).all()
    assert found[4].tolist() == [1.0] + [0.0] * 999


def test_a_sum_that_something_else_reads_stays():
    module = program((3, 4), 1, np.float32)
    (divide,) = (op for op in module.walk() if isinstance(op, nn.DivOp))
    (centred,) = (op for op in module.walk() if isinstance(op, nn.SubOp))
    divide.operands[0] = centred.lhs
    assert summaries(rewritten(module)) == 0


# Bugs that are planted in the pass, which the kit finds in programs with a softmax


def decomposed(made: Program) -> Program:
    Decompose().apply(made.context, made.module)
    return made


SOFTMAXES = (
    programs(operators=[nn.SoftmaxOp, nn.AddOp, nn.ScaleOp], dtypes=(f32, f16), control_flow=False)
    .filter(lambda each: has_short_softmax(each.module))
    .map(decomposed)
)
"""Programs of which each has a softmax, so that tests do not depend on how many do."""


def not_centred(op: nn.SummarizeOp) -> None:
    """Adds up exponentials of the elements, which are too large for scores of 100."""
    power = nn.ExpOp(op.operand)
    total = nn.ReduceOp(
        power.result, "sum", nn.values_of(op.axes), keep_dims=op.keep_dims is not None
    )
    insert_after(op, power, total)
    op.results[1].replace_all_uses_with(total.result)


def of_the_whole(op: nn.SummarizeOp) -> None:
    """Adds up the exponentials of all rows."""
    rank = len(nn.shape_of(op.operand))
    total = nn.ReduceOp(op.results[1], "max", range(rank), keep_dims=True)
    same = nn.ExpandOp(total.result, nn.shape_of(op.results[1]))
    insert_after(op, total, same)
    op.results[1].replace_uses_with_if(same.result, lambda use: use.operation is not total)


def insert_after(op: nn.SummarizeOp, *made: Operation) -> None:
    block = op.parent
    assert block is not None
    block.insert_ops_after(made, op)


def damaged(damage: Callable[[nn.SummarizeOp], None]) -> ModulePass:
    tested = SummarizeSoftmax()

    def apply(ctx: Context, op: ModuleOp) -> None:
        tested.apply(ctx, op)
        for each in list(op.walk()):
            if isinstance(each, nn.SummarizeOp):
                damage(each)

    return with_apply(tested, apply)


def test_the_kit_finds_no_difference_in_programs_with_a_softmax():
    report = check_pass(SummarizeSoftmax(), programs=SOFTMAXES, examples=30, seed=0)
    assert report.changed >= 20


@pytest.mark.parametrize("damage", [not_centred, of_the_whole])
def test_the_kit_finds_a_planted_bug(damage: Callable[[nn.SummarizeOp], None]):
    with pytest.raises(Miscompiled) as found:
        _ = check_pass(damaged(damage), programs=SOFTMAXES, examples=200, seed=0, reduce_seconds=0)
    assert found.value.blamed == "summarize-softmax"
