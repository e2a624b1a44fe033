"""A convolution with its bias, activation and residual: one operation or four, the same bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from abele.backends.evaluate.partition import run_partition
from abele.backends.evaluate.tile import run_tile
from abele.backends.machine import Machine
from abele.backends.op_check import OpCheck
from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.dtypes import element_type
from abele.dialects.levels import EXCHANGE, PARTITION, TILE
from abele.dialects.structured import Stage
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module, print_module
from abele.ir.verify import verify
from abele.passes.fuse_chains import FuseChains
from abele.passes.pipelines import PASSES, pipeline

from .strategies import context

TARGET = "tiny:12"
SHAPES = {"x": (2, 6, 7, 7), "w": (4, 3, 3, 3), "b": (4, 1, 1), "r": (2, 4, 4, 4)}
STAGES = (Stage("add"), Stage("relu"), Stage("add"))
LEVELS = ("nn", "partition", "tile", "exchange")

PLANS = {
    "whole": Plan((2, 2, 1, 2, 1, 1, 1, 1), first_tile=1),
    "partials": Plan((1, 1, 1, 1, 1, 3, 3, 1), combine=Plan((2, 1, 2, 2, 1, 1, 1))),
    "partials of partials": Plan(
        (1, 1, 1, 2, 1, 3, 1, 1),
        combine=Plan((1, 2, 1, 1, 1, 3), combine=Plan((1, 2, 1, 2, 1, 1))),
    ),
}


def arrays(dtype: str, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in SHAPES.items()}


def program(dtype: str, plan: Plan | None, together: bool) -> tuple[ModuleOp, object]:
    """relu(conv(x, w) + b) + r, the convolution with a plan."""
    element = element_type(np.dtype(dtype))
    block = Block(arg_types=[TensorType(element, shape) for shape in SHAPES.values()])
    x, w, b, r = block.args
    conv = nn.ConvOp(x, w, stride=[2, 2], pad_low=[1, 1], pad_high=[1, 1], groups=2)
    ops: list[Operation] = [conv, nn.AddOp(conv.result, b)]
    ops.append(nn.ReluOp(ops[-1].results[0]))
    ops.append(nn.AddOp(ops[-1].results[0], r))
    if together:
        nn.join(0, ops)
    module = ModuleOp([])
    if plan is not None:
        small = PlanAttr(Plan((2, 2, 1, 2)))
        for op in ops[:1] if together else ops:
            op.attributes["plan"] = PlanAttr(plan) if op is ops[0] else small
        module.attributes["abele.target"] = StringAttr(TARGET)
    block.add_ops([*ops, func.ReturnOp(ops[-1].results[0])])
    types = ([a.type for a in block.args], [ops[-1].results[0].type])
    main = func.FuncOp("main", types, Region(block))
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, SHAPES))
    main.attributes["result_names"] = ArrayAttr([StringAttr("y")])
    module.body.block.add_op(main)
    return module, context()


def results(
    module: ModuleOp, ctx, inputs: dict[str, np.ndarray], passes: str = "", name: str = "y"
) -> dict:
    """A result of a program at every level, and what the check of the machine found."""
    check = OpCheck()
    found = {"nn": run_reference(module, inputs).outputs[name]}

    def apply(names: str) -> None:
        for each in parse_pipeline(names, PASSES):
            each.apply(ctx, module)
            verify(module)
            text = print_module(module)
            assert print_module(parse_module(text, ctx)) == text

    apply(passes + "convert-nn-to-partition")
    found["partition"] = run_partition(module, inputs).outputs[name]
    apply(pipeline(PARTITION, TILE, TARGET))
    found["tile"] = run_tile(module, inputs).outputs[name]
    apply(pipeline(TILE, EXCHANGE, TARGET))
    machine = Machine(module, resolve_target(TARGET), strict=True, observers=[check])
    machine.load()
    found["exchange"] = machine.run(inputs)[name]
    found["check"] = check
    return found


@pytest.mark.parametrize("plan", PLANS)
def test_a_chain_and_separate_operations_give_the_same_bits_in_float32(plan: str):
    inputs = arrays("float32")
    apart = results(*program("float32", PLANS[plan], together=False), inputs)
    together = results(*program("float32", PLANS[plan], together=True), inputs)
    for level in LEVELS[1:]:
        np.testing.assert_array_equal(together[level], apart["exchange"], strict=True)
    np.testing.assert_array_equal(together["nn"], apart["nn"], strict=True)
    assert together["check"].first is None


@pytest.mark.parametrize("plan", PLANS)
def test_a_chain_on_whole_numbers_is_exact_at_every_level(plan: str):
    inputs = {name: np.rint(a).astype(np.float32) for name, a in arrays("float32").items()}
    together = results(*program("float32", PLANS[plan], together=True), inputs)
    for level in LEVELS:
        np.testing.assert_array_equal(together[level], together["nn"], strict=True)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float64"])
def test_every_dtype_stays_within_its_bound(plan: str, dtype: str):
    found = results(*program(dtype, PLANS[plan], together=True), arrays(dtype))
    assert found["check"].checked > 0
    assert found["check"].first is None, str(found["check"].first)
    np.testing.assert_array_equal(found["partition"], found["exchange"])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_planned_chain_runs_at_every_level(dtype: str):
    inputs = arrays(dtype)
    plan = f'plan-splits{{target="{TARGET}"}},'
    together = results(*program(dtype, None, together=True), inputs, plan)
    assert together["check"].first is None
    np.testing.assert_allclose(
        together["exchange"].astype(np.float64), together["nn"], rtol=2e-3, atol=2e-3
    )


def gelu_and_more(x: SSAValue, w: SSAValue) -> list[Operation]:
    """GELU of a product, divided by one more than its square, and a cosine of that."""
    product = nn.MatMulOp(x, w)
    scaled = nn.ScaleOp(product.result, 0.5**0.5)
    erf = nn.ErfOp(scaled.result)
    one = nn.ShiftOp(erf.result, 1.0)
    both = nn.MulOp(product.result, one.result)
    gelu = nn.ScaleOp(both.result, 0.5)
    square = nn.SquareOp(gelu.result)
    more = nn.ShiftOp(square.result, 1.0)
    divided = nn.DivOp(gelu.result, more.result)
    return [
        *(product, scaled, erf, one, both, gelu, square, more, divided),
        nn.CosOp(divided.result),
    ]


@pytest.mark.parametrize("split", [(2, 2, 1), (1, 2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_body_that_reads_values_twice_is_computed_within_its_bound(split: tuple, dtype: str):
    element = element_type(np.dtype(dtype))
    block = Block(arg_types=[TensorType(element, (4, 6)), TensorType(element, (6, 8))])
    ops = gelu_and_more(*block.args)
    nn.join(0, ops)
    combine = Plan((2, 2, 1)) if split[2] > 1 else None
    ops[0].attributes["plan"] = PlanAttr(Plan(split, combine=combine))
    block.add_ops([*ops, func.ReturnOp(ops[-1].results[0])])
    main = func.FuncOp(
        "main", ([a.type for a in block.args], [ops[-1].results[0].type]), Region(block)
    )
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, "xw"))
    main.attributes["result_names"] = ArrayAttr([StringAttr("y")])
    module = ModuleOp([main])
    module.attributes["abele.target"] = StringAttr(TARGET)
    random = np.random.default_rng(0)
    inputs = {n: random.normal(size=s).astype(dtype) for n, s in (("x", (4, 6)), ("w", (6, 8)))}
    found = results(module, context(), inputs)
    assert found["check"].checked > 0
    assert found["check"].first is None, str(found["check"].first)
    assert found["check"].largest_ratio > 0.001
    np.testing.assert_array_equal(found["partition"], found["exchange"], strict=True)
    wide = found["nn"].astype(np.float64)
    near = 3e-6 if dtype == "float32" else 4e-3
    np.testing.assert_allclose(found["exchange"].astype(np.float64), wide, rtol=near, atol=near)
    text = print_module(module)
    assert "then scale [0.7071067811865476], erf, shift [1.0], mul(v0, v3)," in text


QUANTISED = """func.func @main(%x: tensor<6x10xf32>, %w: tensor<10x8xf32>, %s: tensor<f32>) -> (
  tensor<6x8xi8>, tensor<6x8xf32>, tensor<6x10xf32>) attributes {
    arg_names = ["x", "w", "s"], result_names = ["q", "back", "chosen"]} {
  %0 = nn.matmul %x, %w : (tensor<6x10xf32>, tensor<10x8xf32>) -> tensor<6x8xf32>
  %1 = nn.div %0, %s : (tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf32>
  %2 = nn.round %1 : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %3 = nn.cast %2 : (tensor<6x8xf32>) -> tensor<6x8xi8>
  %4 = nn.matmul %x, %w : (tensor<6x10xf32>, tensor<10x8xf32>) -> tensor<6x8xf32>
  %5 = nn.cast %4 : (tensor<6x8xf32>) -> tensor<6x8xi8>
  %6 = nn.cast %5 : (tensor<6x8xi8>) -> tensor<6x8xf32>
  %7 = nn.mul %6, %s : (tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf32>
  %8 = nn.less %x, %s : (tensor<6x10xf32>, tensor<f32>) -> tensor<6x10xi1>
  %9 = nn.logical_not %8 : (tensor<6x10xi1>) -> tensor<6x10xi1>
  %10 = nn.select %9, %x, %s : (tensor<6x10xi1>, tensor<6x10xf32>, tensor<f32>) -> tensor<6x10xf32>
  func.return %3, %7, %10 : tensor<6x8xi8>, tensor<6x8xf32>, tensor<6x10xf32>
}"""


def test_casts_comparisons_and_choices_in_bodies_are_within_their_bounds():
    ctx = context()
    module = parse_module(QUANTISED, ctx)
    FuseChains().apply(ctx, module)
    random = np.random.default_rng(1)
    inputs = {n: random.normal(size=s) for n, s in (("x", (6, 10)), ("w", (10, 8)))}
    inputs = {n: (7 * a).astype(np.float32) for n, a in inputs.items()}
    inputs["s"] = np.array(0.75, np.float32)
    found = {}
    for name in ("q", "back", "chosen"):
        found[name] = results(
            module.clone(), ctx, inputs, f'plan-splits{{target="{TARGET}"}},', name
        )
        assert found[name]["check"].first is None, str(found[name]["check"].first)
        np.testing.assert_array_equal(found[name]["partition"], found[name]["exchange"])
    product = inputs["x"].astype(float) @ inputs["w"].astype(float)
    quantised = np.clip(np.rint(product / 0.75), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(found["q"]["exchange"], quantised)
    back = np.clip(np.trunc(product), -128, 127) * 0.75
    np.testing.assert_array_equal(found["back"]["exchange"], back.astype(np.float32))
    np.testing.assert_array_equal(found["chosen"]["nn"], np.maximum(inputs["x"], 0.75))
    np.testing.assert_array_equal(found["chosen"]["exchange"], np.maximum(inputs["x"], 0.75))
