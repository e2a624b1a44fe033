"""nn.compute: any space with any body, as text, in Python, at every level, and what is refused."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f16, f32, f64, i1, i8, i32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from abele.dialects import nn
from abele.dialects.abele import BodyAttr, SpaceAttr
from abele.dialects.structured import Structure
from abele.ir.context import AbeleContext
from abele.ir.text import parse_module
from abele.tools.driver.compile import compile_model
from abele.tools.driver.context import new_context
from abele.tools.testing import check_pipeline
from abele.tools.testing.generators.strategies import programs


def values(*types: tuple[tuple[int, ...], Attribute]) -> list[SSAValue]:
    return list(Block(arg_types=[TensorType(of, shape) for shape, of in types]).args)


def structure(space: str, body: str) -> Structure:
    context: AbeleContext = new_context()
    parsed = Parser(context, f"#abele.space<{space}>").parse_attribute()
    assert isinstance(parsed, SpaceAttr)
    what = Parser(context, f"#abele.body<{body}>").parse_attribute()
    assert isinstance(what, BodyAttr)
    return Structure(parsed.data, what.data)


def test_python_builds_the_space_that_the_text_names():
    a, b = values(((8, 4), f32), ((4, 5), f32))
    y, x, k = nn.dim("y", 8), nn.dim("x", 5), nn.dim("k", 4, "reduction")
    op = nn.compute("mul", [nn.at(a, y, k), nn.at(b, k, x)], [y, x], combiner="sum")
    space = "[y = 8, x = 5, k = 4 reduction] (y, k) of [8, 4], (k, x) of [4, 5] -> (y, x) of [8, 5]"
    assert op.structure() == structure(space, "mul sum")
    assert op.result.type == TensorType(f32, [8, 5])


def test_a_convolution_and_its_transpose_are_spaces():
    image, weight, gradient = values(((2, 9), f32), ((3, 2, 3), f32), ((3, 5), f32))
    o, y, c = nn.dim("o", 3), nn.dim("y", 5), nn.dim("c", 2, "reduction")
    k = nn.dim("ky", 3, "reduction")
    at = (2 * y + k - 1).outside("fill")
    conv = nn.compute("mul", [nn.at(image, c, at), nn.at(weight, o, c, k)], [o, y], combiner="sum")
    own = nn.ConvOp(*values(((1, 2, 9), f32), ((3, 2, 3), f32)), stride=[2], pad_low=[1],
                    pad_high=[1]).structure()  # fmt: skip
    assert conv.structure().space.operands[0].axes[1].numerators((3, 5, 2, 3)) == (-1, 9)
    assert own.space.operands[0].axes[2].numerators((1, 3, 5, 2, 3)) == (-1, 9)
    i, ci, oi = nn.dim("i", 9), nn.dim("c", 2), nn.dim("o", 3, "reduction")
    back = (i - k + 1).exactly(2).outside("fill")
    reads = [nn.at(gradient, oi, back), nn.at(weight, oi, ci, k)]
    transposed = nn.compute("mul", reads, [ci, i], combiner="sum")
    text = str(SpaceAttr(transposed.structure().space))
    assert "-ky + i + 1 exactdiv 2 fill" in text or "i - ky + 1 exactdiv 2 fill" in text


def test_an_index_refuses_what_no_map_can_express():
    y = nn.dim("y", 8)
    with pytest.raises(ValueError, match="a division and a rule come last"):
        _ = y // 2 + 1
    with pytest.raises(ValueError, match="need one division"):
        _ = (y // 2).exactly(2)
    with pytest.raises(ValueError, match="need a dimension alone"):
        _ = (y + 1).dim
    (a,) = values(((8, 4), f32))
    with pytest.raises(ValueError, match=r"1 indices of a tensor viewed as \[8, 4\]"):
        nn.at(a, y)
    with pytest.raises(ValueError, match="two dimensions are named y"):
        nn.compute("identity", [nn.at(a, y, nn.dim("y", 4))], [y])


MATRIX = "[m = 8, k = 4 reduction] (m, k) of [8, 4], (k) of [4] -> (m) of [8]"
EIGHT, FOUR = ((8, 4), f32), ((4,), f32)
DIAGONAL = "[m = 8, k = 4] (m, k) of [8, 4] -> (m, k) of [8, 4] at (m - k + 3) of [11]"
WRONG = [
    (f"{DIAGONAL} as operand 2 from -3", "add", [EIGHT], "coordinate for operand 2 of add; need"),
    (f"{DIAGONAL} as operand 0 from -3", "add", [((8, 4), i1)], "element types i32 and i1"),
    (f"{DIAGONAL} as operand 1 from 120", "add", [((8, 4), i8)], "from 120 to 130: int8 does not"),
    (DIAGONAL.replace("m - k + 3", "m + k edge") + " as operand 1", "add", [EIGHT], "a division"),
    (
        "[m = 8, k = 4 reduction] (m, k) of [8, 4] -> (m) of [8] at (k) of [4] as operand 1",
        "mul sum",
        [EIGHT],
        "coordinate for operand 1, of which sum is computed; need a function alone",
    ),
    (MATRIX, "mul", [EIGHT, FOUR], "reduction dimension k: nothing merges its 4 points"),
    (MATRIX, "nothing sum", [EIGHT, FOUR], "scalar function nothing; need one of abs,"),
    (MATRIX, "relu sum", [EIGHT, FOUR], "relu of 2 operands and 0 parameters; need 1 and 0"),
    (MATRIX, "mul sum", [EIGHT], "1 operands for a space of 2"),
    (MATRIX, "mul sum", [((4, 8), f32), FOUR], r"operand 0: tensor<4x8xf32>, which the space"),
    (MATRIX, "mul sum", [EIGHT, ((4,), f16)], "element types f32 and f16; need one"),
    (
        MATRIX,
        "mul sum then to_nearest [11.0, -14.0, 65504.0, 0.0]",
        [((8, 4), f64), ((4,), f64)],
        "to_nearest in the chain: operand 0 has elements f64; need f32",
    ),
    (MATRIX, "logical_and max", [EIGHT, FOUR], "operand 0 has elements f32; need i1"),
    (MATRIX, "add sum narrow", [EIGHT, FOUR], "narrow add sum; need a sum of products"),
    (MATRIX, "members argmax", [EIGHT, FOUR], "members of argmax, which steps leave each other"),
    (MATRIX, "mul pick", [EIGHT, FOUR], "pick without a relation"),
    ("[m = 8] (m) of [8] -> (0) of [1]", "relu", [((8,), f32)], "parallel dimension m: nothing"),
    ("[m = 8] (m) of [8] -> (m) of [9]", "relu", [((8,), f32)], "result axis 0 of 9 elements"),
    ("[m = 8] (m edge) of [0] -> (m) of [8]", "relu", [((0,), f32)], "edge of an axis without"),
    ("[m = 8 whole] (m) of [8] -> (m) of [8]", "identity along sum", [((8,), i1)], "sum of i1"),
    (MATRIX, "add sum", [((8, 4), i1), ((4,), i1)], "sum of add over i1, whose results may be no"),
    (
        "[p = 27, r = 27 reduction] (-r reflect) of [27] pad 1.0 -> (p) of [27]",
        "scale min [-2.0]",
        [((27,), i1)],
        "min of scale over i1, whose results may be no truth values; need identity, or a cast",
    ),
    (
        "[m = 8, r = 5 reduction] (r) of [5], (m) of [8] -> (m) of [8] where operand 1 is (r) "
        "of [5]",
        "identity pick",
        [((5,), f32), ((8,), f32)],
        "operand 1, of a relation, has elements f32; need integers",
    ),
    (
        "[m = 8, k = 1152921504606846976 reduction] (m) of [8] -> (m) of [8]",
        "identity sum",
        [((8,), f32)],
        "space of 9,223,372,036,854,775,808 points; at most 4,398,046,511,104 points are allowed",
    ),
    (
        "[m = 8, k = 4 reduction] (m, k) of [8, 4] -> (m) of [8], (m) of [8]",
        "identity argmax",
        [EIGHT],
        "2 results and 0 positions; need 2 and 1",
    ),
]  # fmt: skip


@pytest.mark.parametrize("body", ["logical_and max", "mul sum", "less min", "max prod"])
def test_functions_that_give_truth_values_are_merged_over_truth_values(body):
    op = nn.ComputeOp(values(((8, 4), i1), ((4,), i1)), structure(MATRIX, body))
    assert op.result.type == TensorType(i1, [8])


@pytest.mark.parametrize(("space", "body", "types", "message"), WRONG)
def test_an_error_names_what_does_not_fit(space, body, types, message):
    with pytest.raises(VerifyException, match=message):
        nn.ComputeOp(values(*types), structure(space, body))


@pytest.mark.parametrize(
    ("body", "element", "result", "allowed"),
    [
        ("mul sum", f16, f32, True),
        ("mul sum", i8, i32, True),
        ("mul max", f16, f32, True),
        ("mul max", i8, f32, False),
        ("mul sum", f32, f16, False),
    ],
)
def test_results_of_narrow_floats_and_sums_of_integers_may_be_wider(body, element, result, allowed):
    given = values(((8, 4), element), ((4,), element))
    if allowed:
        nn.ComputeOp(given, structure(MATRIX, body), elements=[result])
    else:
        with pytest.raises(VerifyException, match="result type .*; need elements [fi]"):
            nn.ComputeOp(given, structure(MATRIX, body), elements=[result])


@pytest.mark.parametrize("element", [f16, f32])
def test_a_chain_over_narrow_floats_takes_functions_of_f32(element):
    body = "mul sum then to_nearest [11.0, -14.0, 65504.0, 0.0]"
    op = nn.ComputeOp(values(((8, 4), element), ((4,), element)), structure(MATRIX, body))
    assert op.result.type == TensorType(element, [8])


def test_a_refused_operation_leaves_its_operands_alone():
    a, b = values(EIGHT, FOUR)
    with pytest.raises(VerifyException):
        nn.ComputeOp([a, b], structure(MATRIX, "mul"))
    assert a.first_use is None


def test_a_space_that_does_not_fit_is_found_in_a_text():
    text = """func.func @main(%x: tensor<7xf32>) -> tensor<8xf32> {
  %0 = nn.compute(%x) space <[m = 8] (m) of [8] -> (m) of [8]> body <relu>
    : (tensor<7xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}"""
    module = parse_module(text, new_context())
    with pytest.raises(VerifyException, match="operand 0: tensor<7xf32>, which the space reads"):
        module.verify()


RING = """func.func @main(%x: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xf32> {
  %0 = nn.compute(%x) space <[i = 12, k = 3 reduction] (i + k - 1 wrap) of [12] -> (i) of [12]>
    body <identity sum then scale [2.0]> : (tensor<12xf32>) -> tensor<12xf32>
  %1 = nn.neg %0 : (tensor<12xf32>) -> tensor<12xf32>
  %2 = nn.mul %1, %0 : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  %3 = nn.compute(%2, %b) space <[i = 12] (i) of [12], (-i + 11) of [12] -> (i) of [12]>
    body <add> : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
  func.return %3 : tensor<12xf32>
}"""


def test_a_group_with_computes_at_both_ends_gives_the_same_at_every_level(tmp_path):
    path = tmp_path / "ring.mlir"
    path.write_text(RING)
    exe = compile_model(path, "tiny:4")
    computes = [op for op in exe.module_at("partition").walk() if op.name == "partition.compute"]
    assert len(computes) == 1
    x, b = np.arange(12, dtype=np.float32), np.arange(12, dtype=np.float32) ** 2
    total = 2 * (np.roll(x, 1) + x + np.roll(x, -1))
    for level in ("nn", "partition", "tile", "exchange"):
        (found,) = exe.run({"arg0": x, "arg1": b}, at=level).values()
        np.testing.assert_allclose(found, -total * total + b[::-1], rtol=1e-5)


def test_generated_spaces_are_right_at_every_level():
    operators = ["nn.compute", "nn.iota", "nn.relu", "nn.add"]
    report = check_pipeline(programs=programs(operators=operators, max_ops=3), examples=25, seed=5)
    assert report
