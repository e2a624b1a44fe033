from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.dtypes import dtype_named
from abele.dialects.structured import CASTS, HELD, Stage
from abele.ir.pass_manager import parse_pipeline
from abele.ir.rewriting import limited
from abele.ir.text import parse_module
from abele.passes.fuse_chains import FuseChains
from abele.passes.pipelines import PASSES
from abele.tools import compile_model
from abele.tools.testing import Program, bounded_run
from abele.tools.testing.oracle.oracles import difference, run

from ..strategies import context

MATRIX = "tensor<4x6xf32>"
ONE, TWO = f"({MATRIX}) -> {MATRIX}", f"({MATRIX}, {MATRIX}) -> {MATRIX}"
IMAGE, KERNEL, RESULT = "tensor<1x4x6x6xf32>", "tensor<8x4x3x3xf32>", "tensor<1x8x4x4xf32>"
CONV = f"stride [1, 1] dilation [1, 1] pad [0, 0] to [0, 0] : ({IMAGE}, {KERNEL}) -> {RESULT}"

TELL = ("is_inf", "is_nan")
LOWERED = 'fuse-chains,plan-splits{target="tiny:2"},convert-nn-to-partition'


def groups(takes: str, gives: str, *lines: str) -> list[list[str]]:
    """The members of each group of a function, after the pass."""
    types = ", ".join(t.partition(": ")[2] for t in gives.split(", "))
    names = ", ".join(t.partition(": ")[0] for t in gives.split(", "))
    body = "\n".join(lines)
    text = f"func.func @main({takes}) -> ({types}) {{\n{body}\nfunc.return {names} : {types}\n}}"
    module = parse_module(text, context())
    FuseChains().apply(context(), module)
    module.verify()
    blocks = dict.fromkeys(op.parent for op in module.walk() if op.parent is not None)
    return [[m.name for m in g.members] for block in blocks for g in nn.groups_of(block)]


def test_bias_and_activation_join_the_operation_that_they_follow():
    found = groups(
        f"%x: {IMAGE}, %w: {KERNEL}, %b: tensor<8x1x1xf32>",
        f"%2: {RESULT}",
        f"%0 = nn.conv %x, %w {CONV}",
        f"%1 = nn.add %0, %b : ({RESULT}, tensor<8x1x1xf32>) -> {RESULT}",
        f"%2 = nn.relu %1 : ({RESULT}) -> {RESULT}",
    )
    assert found == [["nn.conv", "nn.add", "nn.relu"]]


def test_a_function_of_two_joins_the_contraction():
    found = groups(
        f"%x: {IMAGE}, %w: {KERNEL}, %y: {RESULT}",
        f"%2: {RESULT}",
        f"%0 = nn.relu %y : ({RESULT}) -> {RESULT}",
        f"%1 = nn.conv %x, %w {CONV}",
        f"%2 = nn.sub %0, %1 : ({RESULT}, {RESULT}) -> {RESULT}",
    )
    assert found == [["nn.conv", "nn.sub"]]


def test_a_function_of_two_joins_the_first_that_it_can():
    takes = f"%x: {MATRIX}, %y: {MATRIX}"
    first = f"%0 = nn.abs %x : {ONE}", f"%1 = nn.neg %y : {ONE}"
    assert groups(takes, f"%2: {MATRIX}", *first, f"%2 = nn.max %0, %1 : {TWO}") == [
        ["nn.abs", "nn.max"]
    ]
    assert groups(takes, f"%2: {MATRIX}", *first, f"%2 = nn.div %0, %1 : {TWO}") == [
        ["nn.abs", "nn.div"]
    ]


@pytest.mark.parametrize(
    "lines",
    [
        (f"%0 = nn.exp %x : {ONE}", f"%2 = nn.mod %0, %x : {TWO}"),
        (
            f"%0 = nn.square %x : {ONE}",
            f"%2 = control.repeat 3 (%x) : ({MATRIX}) -> ({MATRIX}) {{",
            f"^bb0(%a: {MATRIX}):",
            f"%1 = nn.sub %0, %a : {TWO}",
            f"control.yield %1 : {MATRIX}",
            "}",
        ),
    ],
    ids=["a remainder, which jumps", "made before a loop"],
)
def test_what_cannot_be_one_codelet_is_not_grouped(lines: tuple[str, ...]):
    found = groups(f"%x: {MATRIX}", f"%2: {MATRIX}", *lines)
    assert not any(g[0] in ("nn.exp", "nn.square") for g in found)


def test_a_value_with_two_readers_is_computed_in_the_group_that_has_both():
    lines = (
        f"%0 = nn.abs %x : {ONE}",
        f"%1 = nn.sigmoid %0 : {ONE}",
        f"%2 = nn.mul %0, %1 : {TWO}",
    )
    assert groups(f"%x: {MATRIX}", f"%2: {MATRIX}", *lines) == [["nn.abs", "nn.sigmoid", "nn.mul"]]
    both = groups(f"%x: {MATRIX}", f"%2: {MATRIX}, %0: {MATRIX}", *lines)
    assert both == [["nn.sigmoid", "nn.mul"]]


def cast(number: int, source: str, target: str) -> str:
    return f"%{number} = nn.cast %{number - 1} : (tensor<4x6x{source}>) -> tensor<4x6x{target}>"


def test_numbers_that_are_quantised_and_back_are_one_group():
    lines = (
        f"%0 = nn.div %x, %y : {TWO}",
        f"%1 = nn.round %0 : {ONE}",
        *(cast(2, "f32", "i8"), cast(3, "i8", "f32")),
        f"%4 = nn.mul %3, %y : {TWO}",
    )
    found = groups(f"%x: {MATRIX}, %y: {MATRIX}", f"%4: {MATRIX}", *lines)
    assert found == [["nn.div", "nn.round", "nn.cast", "nn.cast", "nn.mul"]]


@pytest.mark.parametrize(
    ("between", "sizes"),
    [("f16", [4]), ("ui16", [4]), ("i32", [2, 2]), ("f64", [2]), ("i64", [2])],
)
def test_values_between_two_stages_are_those_that_float32_holds(between: str, sizes: list[int]):
    lines = f"%0 = nn.abs %x : {ONE}", cast(1, "f32", between), cast(2, between, "f32")
    found = groups(f"%x: {MATRIX}", f"%3: {MATRIX}", *lines, f"%3 = nn.neg %2 : {ONE}")
    assert [len(g) for g in found] == sizes


def test_a_comparison_and_a_choice_are_one_group():
    mask = "tensor<4x6xi1>"
    lines = (
        f"%0 = nn.greater %x, %y : ({MATRIX}, {MATRIX}) -> {mask}",
        f"%1 = nn.logical_and %0, %m : ({mask}, {mask}) -> {mask}",
        f"%2 = nn.select %1, %x, %y : ({mask}, {MATRIX}, {MATRIX}) -> {MATRIX}",
    )
    found = groups(f"%x: {MATRIX}, %y: {MATRIX}, %m: {mask}", f"%2: {MATRIX}", *lines)
    assert found == [["nn.greater", "nn.logical_and", "nn.select"]]


def test_a_group_that_is_long_enough_is_followed_by_the_next():
    lines = [f"%0 = nn.relu %x : {ONE}"]
    lines += [f"%{i} = nn.neg %{i - 1} : {ONE}" for i in range(1, 40)]
    found = groups(f"%x: {MATRIX}", f"%39: {MATRIX}", *lines)
    assert [len(g) for g in found] == [17, 17, 6]


def test_a_group_that_is_there_already_grows():
    text = f"""func.func @main(%x: {MATRIX}) -> {MATRIX} {{
      %0 = nn.abs %x {{group = 4}} : {ONE}
      %1 = nn.neg %0 {{group = 4}} : {ONE}
      %2 = nn.relu %1 : {ONE}
      func.return %2 : {MATRIX}
    }}"""
    module = parse_module(text, context())
    FuseChains().apply(context(), module)
    block = next(op for op in module.walk() if isinstance(op, nn.AbsOp)).parent
    assert block is not None
    (group,) = nn.groups_of(block)
    assert group.stages == (Stage("neg"), Stage("relu"))


def test_each_function_that_joins_is_a_rewrite_of_its_own():
    lines = "\n".join(f"%{i + 1} = nn.neg %{i} : {ONE}" for i in range(3))
    text = f"func.func @main(%0: {MATRIX}) -> {MATRIX} {{ {lines} func.return %3 : {MATRIX} }}"
    module = parse_module(text, context())
    with limited(1):
        FuseChains().apply(context(), module)
    block = next(op for op in module.walk() if isinstance(op, nn.NegOp)).parent
    assert block is not None
    (group,) = nn.groups_of(block)
    assert len(group.members) == 2


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("element", CASTS)
def test_truth_values_follow_a_comparison_to_every_type_that_a_stage_casts_to(
    source: str, element: str, tmp_path: Path
):
    path = tmp_path / "mask.mlir"
    path.write_text(f"""
        func.func @main(%x: tensor<5x{source}>, %y: tensor<5x{source}>) -> tensor<5x{element}>
            attributes {{arg_names = ["x", "y"], result_names = ["z"]}} {{
          %0 = nn.greater %x, %y : (tensor<5x{source}>, tensor<5x{source}>) -> tensor<5xi1>
          %1 = nn.cast %0 : (tensor<5xi1>) -> tensor<5x{element}>
          func.return %1 : tensor<5x{element}>
        }}""")
    exe = compile_model(str(path), "tiny:2")
    x = np.array([1, 2, 3, np.nan, np.inf], dtype_named(source))
    found = exe.run({"x": x, "y": np.full_like(x, 2)})["z"]
    assert found.dtype == dtype_named(element)
    assert found.astype(int).tolist() == [0, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("source", "last", "gives", "fuses"),
    [
        *((s, f"nn.{each} %0", "i1", s == "f32") for s in ("f16", "bf16", "f32") for each in TELL),
        *(("f16", f"nn.{each} %0, %y", "i1", False) for each in ("equal", "greater_equal")),
        *(("f16", "nn.cast %0", t, t in ("i8", "ui8", "i16")) for t in HELD if t[0] in "iu"),
        *(("f16", "nn.cast %0", t, False) for t in ("i32", "ui32")),
        *(("bf16", "nn.cast %0", t, t != "i1") for t in ("i1", "i16", "i32")),
        *(("f16", f"nn.{each} %0", "f16", True) for each in ("reciprocal", "sign", "floor")),
    ],
)
def test_what_tells_numbers_from_infinities_reads_them_rounded(
    source: str, last: str, gives: str, fuses: bool
):
    given, made = f"tensor<4x6x{source}>", f"tensor<4x6x{gives}>"
    operands = ", ".join([given] * last.count("%"))
    found = groups(
        f"%x: {given}, %y: {given}",
        f"%1: {made}",
        f"%0 = nn.exp %x : ({given}) -> {given}",
        f"%1 = {last} : ({operands}) -> {made}",
    )
    assert [len(g) for g in found] == [2] * fuses


@pytest.mark.parametrize(
    ("function", "last", "gives"),
    [
        ("exp", "nn.is_inf %0", "i1"),
        ("cosh", "nn.is_inf %0", "i1"),
        ("sinh", "nn.greater_equal %0, %y", "i1"),
        ("exp", "nn.cast %0", "i32"),
    ],
)
@given(x=st.lists(st.floats(-20, 20, width=16), min_size=4, max_size=4))
@settings(max_examples=10, deadline=None)
def test_a_number_beyond_float16_is_infinite_to_what_asks(
    function: str, last: str, gives: str, x: list[float]
):
    """One operation after the other says what is right."""
    half, made = "tensor<5xf16>", f"tensor<5x{gives}>"
    operands = ", ".join([half] * last.count("%"))
    module = parse_module(
        f"""func.func @main(%x: {half}, %y: {half}) -> {made}
            attributes {{arg_names = ["x", "y"], result_names = ["z"]}} {{
          %0 = nn.{function} %x : ({half}) -> {half}
          %1 = {last} : ({operands}) -> {made}
          func.return %1 : {made}
        }}""",
        context(),
    )
    inputs = {"x": np.array([15.0, *x], np.float16), "y": np.full(5, np.inf, np.float16)}
    program = Program(module, context(), inputs, resolve_target("tiny:2"))
    after = program.clone()
    for each in parse_pipeline(LOWERED, PASSES):
        each.apply(after.context, after.module)
    assert difference(bounded_run(program), run(after)) is None
