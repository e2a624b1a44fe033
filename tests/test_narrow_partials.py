"""Sums of products that may be kept in 16 bits, from nn to the machine."""

import numpy as np
from xdsl.dialects.builtin import StringAttr

from abele.backends.target import resolve_target
from abele.dialects import partition
from abele.dialects.structured import Body, Narrow
from abele.ir.context import AbeleContext
from abele.ir.pass_manager import parse_pipeline
from abele.ir.support.number_formats import Overflow
from abele.ir.text import parse_module, print_module
from abele.passes.pipelines import PASSES
from abele.passes.planner.network import plan_network
from abele.tools.testing import Program
from abele.tools.testing.oracle.oracles import bounded_run

from .strategies import context

PRODUCT = """
func.func @main(%a: tensor<64x512xf16>, %b: tensor<512x64xf16>) -> tensor<64x64xf16> {{
  %0 = nn.matmul %a, %b {}: (tensor<64x512xf16>, tensor<512x64xf16>) -> tensor<64x64xf16>
  func.return %0 : tensor<64x64xf16>
}}
"""


def product(narrow: bool):
    return parse_module(PRODUCT.format("narrow_partials " if narrow else ""), context())


def test_narrow_partials_are_text_and_back():
    module = product(True)
    assert "nn.matmul %a, %b narrow_partials" in print_module(module, locations=False)


def test_the_bound_is_that_of_sums_in_16_bits():
    a, b = np.random.default_rng(0).normal(size=(2, 64, 512)).astype(np.float16)
    inputs = {"arg0": a, "arg1": b.T.copy()}
    bounds = {}
    for narrow in (False, True):
        module = product(narrow)
        program = Program(module, context(), inputs, resolve_target("tiny:4"))
        bounds[narrow] = bounded_run(program).errors["out0"].max()
    assert bounds[True] > 20 * bounds[False]


def test_partials_that_are_narrow_take_half_the_bytes_and_cycles():
    target = resolve_target("mk2:16")
    wide, narrow = (plan_network(product(each), target) for each in (False, True))
    assert narrow.cycles < 0.75 * wide.cycles


PLAN = "{plan = #abele.plan<split [4, 1, 2] combine split [8, 1, 1]>} "


def test_a_split_sum_leaves_partials_of_16_bits():
    module = parse_module(PRODUCT.format("narrow_partials " + PLAN), context())
    module.attributes["abele.target"] = StringAttr("tiny:8")
    for each in parse_pipeline("convert-nn-to-partition", PASSES):
        each.apply(AbeleContext(), module)
    computes = [op for op in module.walk() if isinstance(op, partition.ComputeOp)]
    assert len(computes) == 2
    assert {str(op.result.type.tensor.element_type) for op in computes} == {"f16"}


def bodies(text: str, target: str) -> list[Body]:
    module = parse_module(text, context())
    module.attributes["abele.target"] = StringAttr(target)
    for each in parse_pipeline("convert-nn-to-partition", PASSES):
        each.apply(AbeleContext(), module)
    return [op.body.data for op in module.walk() if isinstance(op, partition.ComputeOp)]


def test_units_round_a_sum_after_each_pass_and_parts_are_merged_in_32_bits():
    text = PRODUCT.format("narrow_partials " + PLAN)
    parts, combine = bodies(text, "tiny:8")
    assert (parts.narrow, combine.narrow) == (Narrow(16), None)
    parts, _ = bodies(text, "tiny:8,amp.float16_float16.units=0")
    assert parts.narrow == Narrow(1)


def test_a_part_that_is_too_large_becomes_what_the_rounding_of_the_result_makes_of_it():
    module = parse_module(PRODUCT.format("narrow_partials "), context())
    for each in parse_pipeline("round-stores{rounding=nearest overflow=clip}", PASSES):
        each.apply(AbeleContext(), module)
    text = print_module(module, locations=False).replace(
        "narrow_partials {", "narrow_partials " + PLAN[:-2] + ", "
    )
    parts, combine = bodies(text, "tiny:8")
    assert (parts.narrow, combine.narrow) == (Narrow(16, Overflow.CLIP), None)


def test_a_chain_begins_with_a_rounded_sum_even_of_one_product():
    text = """
    func.func @main(%a: tensor<4x1xf16>, %b: tensor<1x4xf16>, %c: tensor<4x4xf16>)
        -> tensor<4x4xf16> {
      %0 = nn.matmul %a, %b narrow_partials {group = 0}
        : (tensor<4x1xf16>, tensor<1x4xf16>) -> tensor<4x4xf16>
      %1 = nn.add %0, %c {group = 0} : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
      func.return %1 : tensor<4x4xf16>
    }"""
    a, b = np.full((4, 1), 3 + 2**-9, np.float16), np.full((1, 4), 5 + 2**-8, np.float16)
    inputs = {"arg0": a, "arg1": b, "arg2": -(a * b)}
    errors = {}
    for narrow in ("narrow_partials ", ""):
        made = parse_module(text.replace("narrow_partials ", narrow), context())
        program = Program(made, context(), inputs, resolve_target("tiny:4"))
        errors[narrow] = bounded_run(program).errors["out0"].max()
    assert errors["narrow_partials "] > 1.9 * errors[""]


def test_sums_of_32_bits_stay_as_they_are():
    text = PRODUCT.replace("f16", "f32")
    wide, narrow = (parse_module(text.format(each), context()) for each in ("", "narrow_partials "))
    narrow.verify()
    target = resolve_target("mk2:16")
    assert plan_network(wide, target).cycles == plan_network(narrow, target).cycles


SUM = """
func.func @main(%x: tensor<8x512xf16>) -> tensor<8xf16> {{
  %0 = nn.reduce "sum" %x axes [1] {} {{plan = #abele.plan<split [2, 4] combine split [8, 1]>}}
    : (tensor<8x512xf16>) -> tensor<8xf16>
  func.return %0 : tensor<8xf16>
}}
"""


def test_parts_of_a_sum_of_numbers_are_stored_in_16_bits():
    for flag, stored in (("narrow_partials", {"f16"}), ("", {"f16", "f32"})):
        module = parse_module(SUM.format(flag), context())
        module.attributes["abele.target"] = StringAttr("tiny:8")
        for each in parse_pipeline("convert-nn-to-partition", PASSES):
            each.apply(AbeleContext(), module)
        computes = [op for op in module.walk() if isinstance(op, partition.ComputeOp)]
        assert {str(op.result.type.tensor.element_type) for op in computes} == stored


def test_parts_of_a_sum_of_numbers_are_rounded_where_they_are_stored():
    # Each part is 2 and an eighth of a step of float16; all four, half a step of their sum.
    x = np.zeros((8, 512), np.float16)
    x[:, ::128], x[:, 1::128] = 2.0, 2.0**-12
    found = {}
    for flag in ("narrow_partials", ""):
        module = parse_module(SUM.format(flag), context())
        program = Program(module, context(), {"arg0": x}, resolve_target("tiny:8"))
        found[flag] = bounded_run(program)
    wide, narrow = found[""].errors["out0"], found["narrow_partials"].errors["out0"]
    assert (narrow > wide).all()
