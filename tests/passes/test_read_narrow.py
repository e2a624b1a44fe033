from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.dtypes import numpy_dtype
from abele.ir.upstream import Context, ModulePass
from abele.passes.read_narrow import ReadNarrow
from abele.tools.debug.run_check import check_run
from abele.tools.driver.compile import compile_model
from abele.tools.driver.context import new_context
from abele.tools.driver.executable import Executable
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.generators.program import Program
from abele.tools.testing.search.contracts import with_apply

TEXT = """
func.func @main(%x: tensor<5x96xTYPE>) -> (tensor<5x96xf32>, tensor<5x1xKIND>) {
  %0 = nn.cast %x : (tensor<5x96xTYPE>) -> tensor<5x96xf32>
  %1, %2 = nn.summarize "COMBINER" %0 axes [1] keep_dims
      : (tensor<5x96xf32>) -> (tensor<5x1xf32>, tensor<5x1xKIND>)
  %3 = nn.sub %0, %1 : (tensor<5x96xf32>, tensor<5x1xf32>) -> tensor<5x96xf32>
  func.return %3, %2 : tensor<5x96xf32>, tensor<5x1xKIND>
}
"""


def compiled(folder: Path, combiner: str, dtype: str, *before: str) -> Executable:
    path = folder / "net.mlir"
    kind = "i32" if combiner == "argmax" else "f32"
    text = TEXT.replace("TYPE", dtype).replace("KIND", kind).replace("COMBINER", combiner)
    path.write_text(text)
    passes = ",".join((*before, "nn,partition,tile,exchange"))
    return compile_model(path, "mk2:64", passes=passes, cache=False)


@pytest.mark.parametrize("combiner", ["moments", "exp_sum", "argmax"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_summaries_of_narrow_tensors_are_the_same_on_the_machine(
    combiner: str, dtype: str, tmp_path: Path
):
    own = compiled(tmp_path, combiner, dtype, "read-narrow")
    other = compiled(tmp_path, combiner, dtype)
    kind = np.dtype(np.float16 if dtype == "f16" else ml_dtypes.bfloat16)
    x = np.random.default_rng(0).normal(3, 2, (5, 96)).astype(kind)
    (name,) = (each.name for each in own.inputs)
    found, expected = own.run({name: x}), other.run({name: x})
    for each in expected:
        np.testing.assert_allclose(found[each], expected[each], rtol=2e-6, atol=2e-6)
    assert own.profile["exchange_bytes"] < other.profile["exchange_bytes"]
    assert not check_run(own, {name: x}, found, "machine").problem


def test_a_tensor_that_is_wide_already_stays(tmp_path: Path):
    exe = compiled(tmp_path, "moments", "f32", "read-narrow")
    assert exe.profile["ops"]["nn"] == compiled(tmp_path, "moments", "f32").profile["ops"]["nn"]


# Bugs that are planted in the pass, which the kit finds in programs that widen floats


def widened(seed: int) -> Program:
    """@main casts its argument for one or two summaries, and for a sum with what it is cast to."""
    rng = np.random.default_rng(seed)
    element = f16 if rng.integers(2) else bf16
    shape = tuple(int(n) for n in rng.integers(1, 7, rng.integers(1, 4)))
    block = Block(arg_types=[TensorType(element, shape)])
    cast = nn.CastOp(block.args[0], f32)
    block.add_op(cast)
    results: list[SSAValue] = []
    for combiner in rng.choice(["moments", "exp_sum", "argmax"], rng.integers(1, 3)):
        axis = int(rng.integers(len(shape)))
        made = nn.SummarizeOp(cast.result, str(combiner), [axis], keep_dims=True)
        block.add_op(made)
        results += made.results
    if rng.integers(2):
        total = nn.AddOp(cast.result, cast.result)
        block.add_op(total)
        results.append(total.result)
    block.add_op(ReturnOp(*results))
    types = [block.args[0].type], [each.type for each in results]
    x = (rng.standard_normal(shape) * 3).astype(numpy_dtype(element))
    module = ModuleOp([FuncOp("main", types, Region(block))])
    return Program(module, new_context(), {"arg0": x}, resolve_target("tiny:4"))


WIDENED = st.integers(0, 500).map(widened)


def rounded_twice(op: nn.ComputeOp) -> None:
    """The narrow tensor is rounded to the other type of 16 bits first."""
    value = op.operands[0]
    element = nn.element_of(value)
    other = nn.CastOp(value, bf16 if element == f16 else f16)
    back = nn.CastOp(other.result, element)
    block = op.parent
    assert block is not None
    block.insert_ops_before([other, back], op)
    op.operands[0] = back.result


def results_swapped(op: nn.ComputeOp) -> None:
    """Each reader of a result gets the other one, if both have the same type."""
    first, second = op.results
    if first.type == second.type:
        places = [(use.operation, use.index) for use in second.uses]
        first.replace_all_uses_with(second)
        for operation, index in places:
            operation.operands[index] = first


def damaged(damage: Callable[[nn.ComputeOp], None]) -> ModulePass:
    tested = ReadNarrow()

    def apply(ctx: Context, op: ModuleOp) -> None:
        tested.apply(ctx, op)
        for each in [each for each in op.walk() if isinstance(each, nn.ComputeOp)]:
            damage(each)

    return with_apply(tested, apply)


def test_the_kit_finds_no_difference_in_summaries_of_widened_floats():
    report = check_pass(ReadNarrow(), programs=WIDENED, examples=30, seed=0)
    assert report.changed == report.examples


@pytest.mark.parametrize("damage", [rounded_twice, results_swapped])
def test_the_kit_finds_a_planted_bug(damage: Callable[[nn.ComputeOp], None]):
    with pytest.raises(Miscompiled) as found:
        _ = check_pass(damaged(damage), programs=WIDENED, examples=200, seed=0)
    assert found.value.examples <= 20
