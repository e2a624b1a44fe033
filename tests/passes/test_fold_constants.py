import numpy as np
import pytest
from some_tensors import context, counting, module_of

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.instruments.record_ir import RecordIR
from abele.ir.pass_manager import PassManager
from abele.ir.provenance import origin
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.decompose import Decompose
from abele.passes.fold_constants import FoldConstants

W = counting((4,))


def folded(text: str, ctx: AbeleContext, **blobs: np.ndarray) -> ModuleOp:
    module = module_of(text, ctx, **blobs)
    FoldConstants().apply(ctx, module)
    verify(module)
    return module


def check(before: str, after: str, **blobs: np.ndarray) -> None:
    ctx = context()
    got = print_module(folded(before, ctx, **blobs), locations=False)
    assert got == print_module(module_of(after, ctx, **blobs), locations=False)


CHAIN = """
nn.state @w : tensor<4xf32> = {w}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.load @w : tensor<4xf32>
  %1 = nn.square %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.add %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  STORE
  func.return %3 : tensor<4xf32>
}"""


def test_a_chain_of_constants_becomes_one():
    after = """
    nn.state @w : tensor<4xf32> = {w}
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.load @w : tensor<4xf32>
      %1 = nn.constant {folded} : tensor<4xf32>
      %2 = nn.add %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>
    }"""
    check(CHAIN.replace("STORE", ""), after, w=W, folded=-W * W)


def test_a_state_with_a_store_is_not_a_constant():
    text = CHAIN.replace("STORE", "nn.store %3, @w : tensor<4xf32>")
    check(text, text, w=W)


def test_a_load_alone_stays_a_load():
    text = """
    nn.state @w : tensor<4xf32> = {w}
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.load @w : tensor<4xf32>
      %1 = nn.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32>
    }"""
    check(text, text, w=W)


EXPAND = """
func.func @main() -> tensor<SIZEx4xf32> {
  %0 = nn.constant {w} : tensor<4xf32>
  %1 = nn.expand %0 to [SIZE, 4] : (tensor<4xf32>) -> tensor<SIZEx4xf32>
  func.return %1 : tensor<SIZEx4xf32>
}"""


def test_a_much_larger_result_is_not_folded():
    text = EXPAND.replace("SIZE", "4097")
    check(text, text, w=W)
    ctx = context()
    module = folded(EXPAND.replace("SIZE", "4096"), ctx, w=W)
    assert [op.name for op in module.walk() if isinstance(op, nn.PureTensorOp)] == []


def test_an_operation_of_too_many_points_is_not_folded():
    text = """
    func.func @main() -> tensor<1x1x2xf32> {
      %0 = nn.constant {w} : tensor<1x1x2xf32>
      %1 = nn.pool "sum" %0 window [WINDOW] stride [1] dilation [1] pad [BELOW] to [ABOVE]
        : (tensor<1x1x2xf32>) -> tensor<1x1x2xf32>
      func.return %1 : tensor<1x1x2xf32>
    }"""

    def left(reach: int) -> int:
        sizes = {"WINDOW": 2 * reach + 1, "BELOW": reach, "ABOVE": reach}
        program = text
        for name, size in sizes.items():
            program = program.replace(name, str(size))
        weights = {"w": np.array([[[1, 2]]], np.float32)}
        module = folded(program, context(), **weights)
        return len([op for op in module.walk() if isinstance(op, nn.PoolOp)])

    assert left(1) == 0
    assert left(1 << 40) == 1


ONE_NUMBER = """
func.func @main(%x: tensor<1048576xf32>) -> TYPE {
  %0 = nn.constant {half} : tensor<1xf32>
  %1 = nn.expand %0 to [1048576, 1024] : (tensor<1xf32>) -> tensor<1048576x1024xf32>
  BODY
  func.return %2 : TYPE
}"""
"""A tensor of 4 GiB, which no test may make."""


@pytest.mark.parametrize(
    ("body", "type_", "number"),
    [
        ("%2 = nn.neg %1 : (BIG) -> BIG", "BIG", -0.5),
        ("%2 = nn.add %1, %0 : (BIG, tensor<1xf32>) -> BIG", "BIG", 1.0),
        ("%2 = nn.equal %1, %0 : (BIG, tensor<1xf32>) -> BITS", "BITS", True),
        ("%2 = nn.cast %1 : (BIG) -> HALF", "HALF", 0.5),
        ("%2 = nn.transpose %1 [1, 0] : (BIG) -> FLIPPED", "FLIPPED", 0.5),
        ("%2 = nn.reshape %1 to [1024, 1048576] : (BIG) -> FLIPPED", "FLIPPED", 0.5),
        ("%2 = nn.concat %1, %1 axis 1 : (BIG, BIG) -> TWICE", "TWICE", 0.5),
        (
            '%2 = nn.pad "edge" %1 low [0, 0] high [0, 1024] value 0.0 : (BIG) -> TWICE',
            "TWICE",
            None,
        ),
        (
            '%2 = nn.pad "constant" %1 low [0, 0] high [0, 1024] value 0.0 : (BIG) -> TWICE',
            "TWICE",
            None,
        ),
    ],
)
def test_a_tensor_of_one_number_is_folded_without_its_elements(
    body: str, type_: str, number: float | None
):
    text = ONE_NUMBER.replace("BODY", body).replace("TYPE", type_)
    for name, spelled in {
        "BIG": "tensor<1048576x1024xf32>",
        "BITS": "tensor<1048576x1024xi1>",
        "HALF": "tensor<1048576x1024xf16>",
        "FLIPPED": "tensor<1024x1048576xf32>",
        "TWICE": "tensor<1048576x2048xf32>",
    }.items():
        text = text.replace(name, spelled)
    if number is None:
        text = text.replace("1048576", "32")
    module = folded(text, context(), half=np.full(1, 0.5, np.float32))
    (main,) = module.body.block.ops
    returned = main.body.block.last_op.operands[0].owner
    if number is not None:
        # What is only returned is copied, so no constant has to stay.
        assert isinstance(returned, nn.ExpandOp)
        returned = returned.operand.owner
        assert returned.value.array == number
    assert isinstance(returned, nn.ConstantOp)
    assert not returned.value.data.is_splat


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("%3 = nn.add %x, %2 : (BIG, BIG) -> BIG", 1),
        (
            "%3 = control.repeat 3 (%2) : (BIG) -> (BIG) { ^bb0(%y: BIG): control.yield %y : BIG }",
            0,
        ),
        ("%3 = func.call @other(%2) : (BIG) -> BIG", 0),
    ],
)
def test_one_number_stays_a_constant_where_an_operator_reads_it(body: str, constants: int):
    text = f"""
    func.func @main(%x: BIG) -> BIG {{
      %0 = nn.constant <[0.5] : tensor<f32>> : tensor<f32>
      %1 = nn.expand %0 to [64, 1024] : (tensor<f32>) -> BIG
      %2 = nn.neg %1 : (BIG) -> BIG
      {body}
      func.return %3 : BIG
    }}
    func.func @other(%x: BIG) -> BIG {{
      func.return %x : BIG
    }}""".replace("BIG", "tensor<64x1024xf32>")
    module = folded(text, context())
    large = [
        op for op in module.walk() if isinstance(op, nn.ConstantOp) and op.value.array.size > 1
    ]
    assert len(large) == constants
    again = module.clone()
    FoldConstants().apply(context(), again)
    assert str(again) == str(module)


def test_one_number_scattered_to_one_row_is_no_splat():
    text = """
    func.func @main() -> tensor<3xi32> {
      %0 = nn.constant <[7] : tensor<i32>> : tensor<i32>
      %1 = nn.constant <[1] : tensor<i32>> : tensor<i32>
      %2 = nn.scatter "sum" %0, %1 axis 0 size 3 : (tensor<i32>, tensor<i32>) -> tensor<3xi32>
      func.return %2 : tensor<3xi32>
    }"""
    module = folded(text, context())
    assert run_reference(module, {}).outputs["out0"].tolist() == [0, 7, 0]


def test_one_number_times_where_it_is_is_no_splat():
    text = """
    func.func @main() -> tensor<4xi32> {
      %0 = nn.constant <[7] : tensor<i32>> : tensor<i32>
      %1 = nn.compute(%0) space <[p = 4] () of [] -> (p) of [4] at (p) of [4] as operand 1>
        body <mul> : (tensor<i32>) -> tensor<4xi32>
      func.return %1 : tensor<4xi32>
    }"""
    module = folded(text, context())
    assert run_reference(module, {}).outputs["out0"].tolist() == [0, 7, 14, 21]


def test_different_numbers_side_by_side_are_no_splat():
    text = """
    func.func @main() -> tensor<80000xf32> {
      %0 = nn.constant {a} : tensor<40000xf32>
      %1 = nn.constant {b} : tensor<40000xf32>
      %2 = nn.concat %0, %1 axis 0 : (tensor<40000xf32>, tensor<40000xf32>) -> tensor<80000xf32>
      func.return %2 : tensor<80000xf32>
    }"""
    a, b = (np.broadcast_to(np.float32(n), (40_000,)) for n in (1, 2))
    module = folded(text, context(), a=a, b=b)
    *_, last = (op for op in module.walk() if isinstance(op, nn.ConstantOp))
    np.testing.assert_array_equal(last.value.array, np.concatenate([a, b]))


def test_constants_are_folded_inside_loops_too():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %w = nn.constant {w} : tensor<4xf32>
      %0 = control.repeat 3 (%x) : (tensor<4xf32>) -> (tensor<4xf32>) {
      ^bb0(%y: tensor<4xf32>):
        BODY
        %z = nn.add %y, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        control.yield %z : tensor<4xf32>
      }
      func.return %0 : tensor<4xf32>
    }"""
    check(
        text.replace("BODY", "%n = nn.neg %w : (tensor<4xf32>) -> tensor<4xf32>"),
        text.replace("BODY", "%n = nn.constant {folded} : tensor<4xf32>"),
        w=W,
        folded=-W,
    )


BATCH_NORM = """
nn.state @s : tensor<4xf32> = {s}
nn.state @v : tensor<4xf32> = {v}
func.func @main(%x: tensor<1x4x3xf32>) -> tensor<1x4x3xf32> {
  %s = nn.load @s : tensor<4xf32>
  %v = nn.load @v : tensor<4xf32>
  %0 = nn.batch_norm %x, %s, %s, %s, %v epsilon 1.0e-05
    : (tensor<1x4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<1x4x3xf32> loc("bn")
  func.return %0 : tensor<1x4x3xf32>
}"""


def test_a_folded_batch_normalisation_is_one_mul_and_one_add_with_the_same_bits():
    ctx = context()
    module = module_of(BATCH_NORM, ctx, s=W - 1.3, v=W + 0.7)
    inputs = {"arg0": counting((1, 4, 3)) / 7}
    before = run_reference(module, inputs).outputs["out0"]
    Decompose().apply(ctx, module)
    FoldConstants().apply(ctx, module)
    verify(module)
    left = [op.name for op in module.walk() if isinstance(op, nn.PureTensorOp)]
    assert left == ["nn.mul", "nn.add"]
    np.testing.assert_array_equal(run_reference(module, inputs).outputs["out0"], before)
    constants = [op for op in module.walk() if isinstance(op, nn.ConstantOp)]
    assert all((origin(op) or "").startswith("bn/") for op in constants)
    assert all(op.value.data.digest in ctx.blobs for op in constants)
    once = print_module(module)
    FoldConstants().apply(ctx, module)
    assert print_module(module) == once


def test_every_rewrite_is_reported():
    module, record = module_of(CHAIN.replace("STORE", ""), context(), w=W), RecordIR()
    PassManager((FoldConstants(),), (record,)).run(context(), module)
    names = [each.source.name for each in record.stages[-1].changes]
    assert names == ["fold nn.neg", "fold nn.square"]
