"""Functions that read the index of a dimension, which takes no tensor at any level."""

import numpy as np
import pytest

from abele.dialects import nn
from abele.ir.printer import module_text
from abele.ir.text import parse_module
from abele.passes.fold_constants import FoldConstants
from abele.passes.plans.coordinates import reading
from abele.passes.plans.fused import FusedGroups
from abele.tools.driver.compile import compile_model
from abele.tools.driver.context import new_context


def module(body: str, arguments: str, results: str):
    text = f"func.func @main({arguments}) -> {results} {{\n{body}\n}}"
    return parse_module(text, new_context())


def only(found, name: str):
    (op,) = [op for op in found.walk() if op.name == name]
    return op


EQUAL = """
  %0 = nn.iota start 2 steps [3] : tensor<5xi32>
  %1 = nn.equal %x, %0 : (tensor<4x1xi32>, tensor<5xi32>) -> tensor<4x5xi1>
  func.return %1 : tensor<4x5xi1>"""
CAST = """
  %0 = nn.iota start 2 steps [-1, 3] : tensor<4x5xf16>
  %1 = nn.matmul %x, %y : (tensor<4x3xf16>, tensor<3x5xf16>) -> tensor<4x5xf16>
  %2 = nn.sub %0, %1 {group = 0} : (tensor<4x5xf16>, tensor<4x5xf16>) -> tensor<4x5xf16>
  func.return %2 : tensor<4x5xf16>"""
SCALED = """
  %0 = nn.iota start 0 steps [2] : tensor<5xf32>
  %1 = nn.scale %x by 3.0 : (tensor<5xf32>) -> tensor<5xf32>
  %2 = nn.add %1, %0 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %2 : tensor<5xf32>"""
OTHERS = """
  %0 = nn.iota start 0 steps [1, 5] : tensor<4x5xf32>
  %1 = nn.reduce "sum" %0 axes [1] : (tensor<4x5xf32>) -> tensor<4xf32>
  %2 = nn.matmul %x, %0 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<3x5xf32>"""


def test_a_function_reads_an_iota_as_a_coordinate():
    found = module(EQUAL, "%x: tensor<4x1xi32>", "tensor<4x5xi1>")
    op = only(found, "nn.equal")
    read = reading(op.structure(), op.operands, op.result)
    assert read.operands == (op.operands[0],)
    (position,) = read.structure.space.coordinates
    assert (position.operand, position.limits) == (1, (2, 14))
    assert position.access.axes[0].terms == ((1, 3),)


def test_sums_and_products_read_a_tensor():
    found = module(OTHERS, "%x: tensor<3x4xf32>", "(tensor<4xf32>, tensor<3x5xf32>)")
    for name in ("nn.reduce", "nn.matmul"):
        op = only(found, name)
        assert not reading(op.structure(), op.operands, op.result).absorbed


def test_operations_are_as_they_were_after_planning():
    found = module(EQUAL, "%x: tensor<4x1xi32>", "tensor<4x5xi1>")
    before = module_text(found, locations=False)
    with FusedGroups(found):
        assert [op.name for op in found.walk()][2:4] == ["nn.fused", "func.return"]
    assert module_text(found, locations=False) == before
    found.verify()


@pytest.mark.parametrize(
    ("body", "arguments", "results", "expected"),
    [
        (EQUAL, "%x: tensor<4x1xi32>", "tensor<4x5xi1>", lambda x: x == 2 + 3 * np.arange(5)),
        (SCALED, "%x: tensor<5xf32>", "tensor<5xf32>", lambda x: 3 * x + 2 * np.arange(5)),
        (
            CAST,
            "%x: tensor<4x3xf16>, %y: tensor<3x5xf16>",
            "tensor<4x5xf16>",
            lambda x, y: 2 - np.arange(4)[:, None] + 3 * np.arange(5) - x @ y,
        ),
        (
            OTHERS,
            "%x: tensor<3x4xf32>",
            "(tensor<4xf32>, tensor<3x5xf32>)",
            lambda x: (5 * np.arange(4) + 50, x @ (np.arange(4)[:, None] + 5 * np.arange(5))),
        ),
    ],
)
def test_every_level_counts_the_same(tmp_path, body, arguments, results, expected):
    path = tmp_path / "count.mlir"
    path.write_text(f"func.func @main({arguments}) -> {results} {{\n{body}\n}}")
    exe = compile_model(path, "tiny:5")
    random = np.random.default_rng(0)
    inputs = [random.integers(-3, 12, i.shape).astype(i.dtype) for i in exe.inputs]
    wanted = expected(*(each.astype(np.float64) for each in inputs))
    given = {each.name: array for each, array in zip(exe.inputs, inputs, strict=True)}
    for level in ("nn", "partition", "tile", "exchange"):
        made = list(exe.run(given, at=level).values())
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for value, each in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(value, each)
    states = exe.module_at("tile")
    assert not any(op.name == "tile.constant" for op in states.walk())


TABLE = np.arange(5, dtype=np.int32) * 3 + 2


@pytest.mark.parametrize(
    ("table", "counted"),
    [(TABLE, True), (TABLE[::-1], True), (TABLE.astype(np.float32) / 4, False), (TABLE * 0, False)],
)
def test_a_table_of_even_numbers_is_counted(table, counted):
    element = "f32" if table.dtype == np.float32 else "i32"
    context = new_context()
    found = parse_module(
        f"""func.func @main(%x: tensor<4x1x{element}>) -> tensor<4x1xi1> {{
  %0 = nn.less %x, %x : (tensor<4x1x{element}>, tensor<4x1x{element}>) -> tensor<4x1xi1>
  func.return %0 : tensor<4x1xi1>
}}""",
        context,
    )
    less = only(found, "nn.less")
    constant = nn.ConstantOp(context.blobs.add(np.ascontiguousarray(table)))
    less.parent.insert_op_before(constant, less)
    compared = nn.EqualOp(less.operands[0], constant.result)
    less.parent.insert_op_before(compared, less)
    FoldConstants().apply(context, found)
    assert isinstance(compared.operands[1].owner, nn.IotaOp) == counted
    if counted:
        iota = compared.operands[1].owner
        assert iota.start.value.data == table[0]
        assert nn.values_of(iota.steps) == (int(table[1]) - int(table[0]),)


def test_a_table_that_is_looked_up_stays(tmp_path):
    context = new_context()
    found = parse_module(
        """func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  func.return %x : tensor<3xi32>
}""",
        context,
    )
    end = only(found, "func.return")
    constant = nn.ConstantOp(context.blobs.add(TABLE))
    gather = nn.GatherOp(constant.result, end.operands[0], 0)
    end.parent.insert_ops_before([constant, gather], end)
    end.operands[0] = gather.result
    FoldConstants().apply(context, found)
    assert gather.operands[0].owner is constant


DISTANCES = """nn.state @keys : tensor<1x300xi32> = {keys}
nn.state @queries : tensor<300x1xi32> = {queries}
func.func @main(%x: tensor<1xi32>) -> tensor<300x300xi1> {
  %0 = nn.load @keys : tensor<1x300xi32>
  %1 = nn.load @queries : tensor<300x1xi32>
  %2 = nn.sub %0, %1 : (tensor<1x300xi32>, tensor<300x1xi32>) -> tensor<300x300xi32>
  %3 = nn.less_equal %2, %x : (tensor<300x300xi32>, tensor<1xi32>) -> tensor<300x300xi1>
  func.return %3 : tensor<300x300xi1>
}"""


def test_a_difference_of_weights_that_count_is_counted():
    places = np.arange(300, dtype=np.int32)
    context = new_context()
    blobs = {"keys": places[None], "queries": places[:, None]}
    handles = {name: f'<"{context.blobs.add(a.copy()).digest}">' for name, a in blobs.items()}
    text = DISTANCES
    for name, handle in handles.items():
        text = text.replace(f"{{{name}}}", handle)
    found = parse_module(text, context)
    FoldConstants().apply(context, found)
    found.verify()
    less = only(found, "nn.less_equal")
    iota = less.operands[0].owner
    assert isinstance(iota, nn.IotaOp)
    assert (nn.values_of(iota.steps), iota.start.value.data) == ((-1, 1), 0)
