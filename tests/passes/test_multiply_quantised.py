import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st
from some_tensors import context, module_of

from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.multiply_quantised import MultiplyQuantised
from abele.tools.importers.onnx.reader import import_onnx
from abele.tools.testing import check_pass
from abele.tools.testing.generators.program import Program

from ..tools.quantising.networks import quantised

TINY = resolve_target("tiny")


def rewritten(text: str, **blobs: np.ndarray) -> ModuleOp:
    ctx = context()
    module = module_of(text, ctx, **blobs)
    MultiplyQuantised().apply(ctx, module)
    verify(module)
    return module


def products(module: ModuleOp) -> list[str]:
    """The element types of the operands of each contraction."""
    return [
        " ".join(str(nn.element_of(v)) for v in op.operands)
        for op in module.walk()
        if isinstance(op, nn.CONTRACTIONS)
    ]


def program(seed: int) -> Program:
    ctx = context()
    module = import_onnx(quantised(seed), ctx)
    random = np.random.default_rng(seed)
    (x,) = (op for op in module.walk() if op.name == "func.func")
    shape = nn.shape_of(x.regions[0].block.args[0])
    return Program(module, ctx, {"x": random.standard_normal(shape).astype(np.float32)}, TINY)


def test_quantised_networks_compute_the_same():
    report = check_pass(
        "multiply-quantised",
        "nn",
        programs=st.integers(0, 500).map(program),
        examples=8,
        seed=3,
    )
    assert report.changed == report.examples


def test_both_products_read_float16_and_nothing_is_rounded_twice():
    """Between the products of this network are a maximum and a reshape, of one scale."""
    ctx = context()
    networks = (import_onnx(quantised(seed), ctx) for seed in range(40))
    seen = set[int]()
    for module in networks:
        before = sum(isinstance(op, nn.RoundOp) for op in module.walk())
        MultiplyQuantised().apply(ctx, module)
        verify(module)
        assert products(module) == ["f16 f16", "f16 f16"]
        (last,) = (op for op in module.walk() if isinstance(op, nn.MatMulOp))
        # What the second rounding gave has no reader where it is rounded as before.
        moved = isinstance(last.lhs.owner, nn.ReshapeOp)
        seen.add(before if moved else -before)
    assert seen == {3, -3}


UNEQUAL = """func.func @main(%q: tensor<4x8xui8>, %w: tensor<8x2xi8>, %s: tensor<SHAPExf32>)
    -> tensor<4x2xf32> {
  %0 = nn.cast %q : (tensor<4x8xui8>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %s : (tensor<4x8xf32>, tensor<SHAPExf32>) -> tensor<4x8xf32>
  %2 = nn.cast %w : (tensor<8x2xi8>) -> tensor<8x2xf32>
  %3 = nn.matmul %1, %2 : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  func.return %3 : tensor<4x2xf32>
}"""


@pytest.mark.parametrize(("shape", "is_rewritten"), [("4x1", True), ("8", False), ("4x8", False)])
def test_a_scale_is_taken_out_of_a_sum_if_it_is_the_same_for_all_terms(
    shape: str, is_rewritten: bool
):
    module = rewritten(UNEQUAL.replace("SHAPE", shape))
    assert products(module) == ["f16 f16" if is_rewritten else "f32 f32"]


WIDE = """func.func @main(%q: tensor<4x8xELEMENT>, %w: tensor<8x2xi8>) -> tensor<4x2xf32>
    attributes {arg_names = ["q", "w"]} {
  %0 = nn.cast %q : (tensor<4x8xELEMENT>) -> tensor<4x8xf32>
  %2 = nn.cast %w : (tensor<8x2xi8>) -> tensor<8x2xf32>
  %3 = nn.matmul %0, %2 : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  func.return %3 : tensor<4x2xf32>
}"""


@pytest.mark.parametrize(
    ("element", "is_rewritten"),
    [("i8", True), ("ui8", True), ("f8E4M3FNUZ", True), ("i16", False), ("i1", False)],
)
def test_only_elements_of_8_bits_are_multiplied_as_float16(element: str, is_rewritten: bool):
    module = rewritten(WIDE.replace("ELEMENT", element))
    assert products(module) == ["f16 f16" if is_rewritten else "f32 f32"]


@pytest.mark.parametrize(("target", "expected"), [("c600", "f8E4M3FNUZ"), ("mk2", "f16")])
def test_units_for_8_bit_floats_multiply_them(target: str, expected: str):
    ctx = context()
    module = module_of(
        WIDE.replace("ELEMENT", "f8E4M3FNUZ").replace("8x2xi8", "8x2xf8E4M3FNUZ"), ctx
    )
    MultiplyQuantised(target).apply(ctx, module)
    verify(module)
    assert products(module) == [f"{expected} {expected}"]


def test_sums_of_8_bit_floats_fit_float16():
    """All operands are the largest number."""
    ctx = context()
    module = module_of(
        WIDE.replace("ELEMENT", "f8E4M3FNUZ").replace("8x2xi8", "8x2xf8E4M3FNUZ"), ctx
    )
    MultiplyQuantised("c600").apply(ctx, module)
    most = [np.full(shape, 240, ml_dtypes.float8_e4m3fnuz) for shape in ((4, 8), (8, 2))]
    (result,) = run_reference(module, dict(zip(("q", "w"), most, strict=True))).outputs.values()
    assert (result == 8 * 240 * 240).all()


def test_sums_of_no_products_are_zeros():
    ctx = context()
    text = WIDE.replace("ELEMENT", "f8E4M3FNUZ").replace("8x2xi8", "8x2xf8E4M3FNUZ")
    module = module_of(text.replace("4x8x", "4x0x").replace("8x2x", "0x2x"), ctx)
    MultiplyQuantised("c600").apply(ctx, module)
    none = [np.zeros(shape, ml_dtypes.float8_e4m3fnuz) for shape in ((4, 0), (0, 2))]
    (result,) = run_reference(module, dict(zip(("q", "w"), none, strict=True))).outputs.values()
    assert (result == np.zeros((4, 2))).all()


def test_a_product_with_a_plan_stays():
    text = WIDE.replace("ELEMENT", "i8").replace(
        "nn.matmul %0, %2 :", "nn.matmul %0, %2 {plan = #abele.plan<split [2, 1, 1]>} :"
    )
    assert products(rewritten(text)) == ["f32 f32"]


def test_other_readers_read_the_float16_too():
    """So the tile that computes it stores it once, in 16 bits."""
    text = WIDE.replace("ELEMENT", "i8").replace(
        "func.return %3 : tensor<4x2xf32>",
        "%4 = nn.relu %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        "func.return %3, %4 : tensor<4x2xf32>, tensor<4x8xf32>",
    )
    text = text.replace("-> tensor<4x2xf32>\n", "-> (tensor<4x2xf32>, tensor<4x8xf32>)\n", 1)
    module = rewritten(text)
    (relu,) = (op for op in module.walk() if isinstance(op, nn.ReluOp))
    cast = relu.operands[0].owner
    assert isinstance(cast, nn.CastOp), print_module(module)
    assert str(nn.element_of(cast.operand)) == "f16"
