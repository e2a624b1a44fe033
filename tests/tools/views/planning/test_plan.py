import json
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from some_models import convolutions, model, node, random

from abele.backends.prices.price import price, totals
from abele.backends.target import resolve_target
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.provenance import origin
from abele.ir.text import write_module
from abele.passes.train import Train
from abele.tools import compile_model
from abele.tools.driver.request import Request
from abele.tools.views.planning.plan import plan_model, product_of_matrices
from abele.tools.views.planning.tables import memory_lines, operator_columns

TINY = resolve_target("tiny:16")


def test_every_compiled_operator_has_a_row():
    question = plan_model(Request(convolutions(), "tiny:16", passes="nn"))
    exe = compile_model(convolutions(), "tiny:16")
    compiled = price(exe.module_at("exchange"), TINY)
    found = question.plan
    assert found.between_cycles == pytest.approx(0)
    # Copies of inputs and outputs come with the compiled program.
    assert found.cycles == pytest.approx(totals(compiled).cycles, rel=0.5)
    for each in found.operators:
        assert each.tiles == prod(each.plan.split)
        assert each.temporary_bytes <= each.limit_bytes


def test_a_product_of_matrices_keeps_its_right_operand():
    question = plan_model(
        Request("", TINY, passes="nn"), product_of_matrices(64, 256, 32, "f16", TINY)
    )
    (each,) = question.plan.operators
    assert [d.size for d in each.dims] == [64, 32, 256]
    assert each.node == "matmul"
    assert each.resident_bytes >= 256 * 32 * 2 / 16
    assert question.plan.resident_bytes == each.resident_bytes


def test_types_are_those_that_are_asked_for():
    small, large = (
        plan_model(
            Request("", TINY, passes="nn"), product_of_matrices(64, 256, 32, dtype, TINY)
        ).plan.operators[0]
        for dtype in ("f16", "f32")
    )
    assert small.cycles < large.cycles


def test_a_batch_in_parts_is_planned_as_it_is_compiled():
    shapes = {"x": [8, 16], "w": [16, 4]}
    dense = model([node("MatMul", "x w", "y")], {"x": shapes["x"]}, ["y"], {"w": random((16, 4))})
    asked = Request(dense, TINY, batch=8, train=Train(micro_batches=2), passes="nn")
    found = plan_model(asked).plan.operators
    exe = compile_model(dense, TINY, batch=8, train=Train(micro_batches=2), cache=False)
    (product,) = [each for each in found if each.node == "the_y" and each.phase == "forward"]
    assert product.dims[0].size == 4
    assert exe.inputs[0].shape[0] == 8


MIXED = """
builtin.module {
  func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %i: tensor<4x8xi32>,
                  %j: tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<4x4xi32>) {
    %0 = "nn.matmul"(%x, %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> loc("float")
    %1 = "nn.transpose"(%0) <{permutation = array<i64: 1, 0>}>
      : (tensor<4x8xf32>) -> tensor<8x4xf32> loc("turn")
    %2 = "nn.matmul"(%i, %j) : (tensor<4x8xi32>, tensor<8x4xi32>) -> tensor<4x4xi32> loc("int")
    func.return %1, %2 : tensor<8x4xf32>, tensor<4x4xi32>
  }
}
"""

_counts = st.dictionaries(
    st.sampled_from("mnk"), st.sampled_from([1, 2, 4, 3, 2**31 - 1]), min_size=1
)
_some_constraints = st.fixed_dictionaries(
    {},
    optional={
        "split": _counts,
        "steps": _counts,
        "ring": st.dictionaries(st.sampled_from("mnk"), st.sampled_from("mnk"), min_size=1),
        "tiles": st.integers(1, 16),
        "method": st.sampled_from(["mac", "amp"]),
        "memory_proportion": st.sampled_from([0, 0.1, 1]),
    },
)
_some_plans = st.builds(
    lambda split, steps, ring: {"plan": f"split {split}{steps}{ring}"},
    st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=3),
    st.sampled_from(["", " steps [1, 1, 2]", " steps [2, 1, 4]", " steps [2, 1]"]),
    st.sampled_from(["", " ring [-1, -1, 1]", " ring [-1, 0, -1]"]),
)


@settings(max_examples=60)
@given(st.sampled_from(["float", "int", "turn"]), _some_constraints | _some_plans)
@example("float", {"steps": {"k": 4}})
@example("float", {"steps": {"k": 4}, "ring": {"k": "n"}})
@example("float", {"split": {"k": 2}, "steps": {"m": 1}, "ring": {"k": "n"}})
@example("int", {"steps": {"k": 2}})
def test_any_constraints_are_kept_or_refused(operator: str, constraints: dict):
    with TemporaryDirectory() as folder:
        model, path = Path(folder, "net.mlir"), Path(folder, "c.json")
        model.write_text(MIXED)
        path.write_text(json.dumps({"operators": {operator: constraints}}))
        try:
            found = plan_model(Request(model, TINY, constraints=path, passes="nn"))
        except InputError as error:
            assert f"operators.{operator}" in str(error)
            return
    for op, choice in found.choices.items():
        assert choice in found.trade_offs(op).choices
        if origin(op) == operator and "steps" in constraints:
            dims = [dim.name for dim in found.questions[op].structure.space.dims]
            assert choice.plan.steps == tuple(constraints["steps"].get(d, 1) for d in dims)


LOOP = """
builtin.module {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = control.repeat 5 (%x) : (tensor<8x8xf32>) -> (tensor<8x8xf32>) {
    ^bb0(%a: tensor<8x8xf32>):
      %1 = nn.relu %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
      control.yield %1 : tensor<8x8xf32>
    }
    func.return %0 : tensor<8x8xf32>
  }
}
"""


def test_operations_in_a_loop_count_once_per_iteration(tmp_path):
    path = tmp_path / "loop.mlir"
    path.write_text(LOOP)
    found = plan_model(Request(path, "tiny:16")).plan
    (each,) = found.operators
    assert each.times == 5
    assert found.cycles == pytest.approx(5 * each.cycles + found.between_cycles)
    assert found.between_cycles >= 0


def test_the_alternatives_of_an_operator_include_its_plan():
    question = plan_model(
        Request("", TINY, passes="nn"), product_of_matrices(64, 256, 32, "f16", TINY)
    )
    found = question.trade_offs(question.operator("matmul"))
    assert found.chosen in found.choices
    assert len(found.choices) > len(found.pareto) > 1

    def figures(c) -> tuple[float, int, int]:
        return c.cycles, c.resident_bytes, c.temporary_bytes

    front = [figures(c) for c in found.pareto]
    for c in found.choices:
        assert any(all(a <= b for a, b in zip(f, figures(c), strict=True)) for f in front)
    for f in front:
        others = [g for g in front if g != f]
        assert not any(all(a <= b for a, b in zip(g, f, strict=True)) for g in others)


def test_all_figures_are_in_the_json():
    question = plan_model(Request(convolutions(), "tiny:16", memory_proportion=0.001, passes="nn"))
    record = json.loads(json.dumps(question.plan.to_dict()))
    assert record["target"] == "tiny:16"
    assert record["memory_proportion"] == 0.001
    first = record["operators"][0]
    assert first["plan"].startswith("split [")
    assert first["runner_up"] is None or first["runner_up"]["plan"].startswith("split [")
    assert record["relaxed_limits"]
    assert {"operator", "limit", "relaxed_to", "taken"} == set(record["relaxed_limits"][0])


def test_operators_are_found_by_any_of_their_names():
    linear = model(
        [node("MatMul", "x w", "p"), node("Relu", "p", "y")],
        {"x": [4, 16]},
        ["y"],
        {"w": random((16, 8))},
    )
    question = plan_model(Request(linear, "tiny:16", passes="nn"))
    (op,) = question.questions
    assert question.operator("the_p") is op
    assert question.operator("the_y") is op
    with pytest.raises(InputError, match=r"no operator 'the_q'; did you mean the_"):
        question.operator("the_q")


def test_a_model_of_pytorch_has_its_modules_and_lines_beside_the_plans():
    path = Path(__file__).parents[2] / "importers/onnx/exported/dynamo.onnx"
    planned = plan_model(Request(path, "tiny:4", passes="nn"))
    product = next(each for each in planned.plan.operators if each.op == "nn.conv")
    assert (product.layer, product.line) == ("patch", "export.py:56")
    assert "line" in [each.name for each in operator_columns(planned.plan)]
    by_file_name = planned.operator("node_MatMul_6")
    assert origin(by_file_name) == "blocks.0.attn.qkv.MatMul+blocks.0.attn.qkv.Add"
    assert by_file_name is planned.operator("blocks.0.attn.qkv.MatMul")


def test_a_model_without_lines_has_no_column_for_them():
    planned = plan_model(Request(convolutions(), "tiny:4", passes="nn"))
    assert "line" not in [each.name for each in operator_columns(planned.plan)]


def test_a_program_that_is_planned_already_is_refused(tmp_path):
    exe = compile_model(convolutions(), "tiny:16")
    path = tmp_path / "low.mlir"
    write_module(exe.module_at("tile"), path)
    with pytest.raises(InputError, match="planned already, at tile; need the model"):
        plan_model(Request(path, passes="nn"))


def test_matrices_that_no_tiles_hold_are_refused_before_they_are_made():
    with pytest.raises(DoesNotFit, match=r"float16\[1000000, 1000000\]"):
        product_of_matrices(1, 1_000_000, 1_000_000, "f16", TINY)
    with pytest.raises(InputError, match="dtype 'f8'; need one of f16, f32"):
        product_of_matrices(1, 1, 1, "f8", TINY)


def test_a_plan_says_the_type_of_the_partial_sums_of_each_product():
    shapes = {"x": [8, 64], "w": [64, 4]}
    nodes = [node("MatMul", "x w", "y"), node("Relu", "y", "z")]
    net = model(nodes, {"x": shapes["x"]}, ["z"], {"w": random((64, 4))})
    found = {
        partials: plan_model(
            Request(net, TINY, precision="float16", partials=partials, passes="nn")
        ).plan.operators
        for partials in ("", "float16")
    }
    of_products = {k: [each.partials for each in v if each.partials] for k, v in found.items()}
    assert of_products == {"": ["float32"], "float16": ["float16"]}


@pytest.mark.parametrize(
    ("size", "chips", "fits_one", "line"),
    [
        ((1, 1, 1), 1, True, "on one of 4 chips: no plans found for all of them are faster"),
        ((1024, 64, 64), 4, True, "times as fast as on one, by the planner's estimate"),
        ((8, 1024, 512), 4, False, "on 4 chips: no plans found for one of them fit"),
    ],
)
def test_a_plan_for_several_chips_says_what_they_gain(
    size: tuple[int, int, int], chips: int, fits_one: bool, line: str
):
    target = resolve_target("tiny:16,links.topology=ladder,links.chips=4")
    request = Request("", target, passes="nn")
    plan = plan_model(request, product_of_matrices(*size, "f32", target)).plan
    assert line in " ".join(memory_lines(plan))
    found = plan.to_dict()
    assert found["chips"] == chips
    assert (found["one_chip_cycles"] is not None) == fits_one
    assert not fits_one or found["cycles"] <= found["one_chip_cycles"]


@pytest.mark.parametrize(
    ("placement", "shown"),
    [("[2, 1, 1]", {"2"}), ("[1, 2, 2]", {"1, 3", "1"}), ("[0, 4, 1]", {"0..3", "0"})],
)
def test_the_table_of_a_machine_of_several_chips_says_where_operators_lie(
    tmp_path: Path, placement: str, shown: set[str]
):
    text = f"""
    func.func @main(%x: tensor<512x64xf32>, %w: tensor<64x64xf32>) -> tensor<512x64xf32> {{
      %0 = func.call @stage(%x, %w)
        : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
      func.return %0 : tensor<512x64xf32>
    }}
    func.func @stage(%x: tensor<512x64xf32>, %w: tensor<64x64xf32>) -> tensor<512x64xf32>
        attributes {{abele.chips = {placement}}} {{
      %0 = nn.matmul %x, %w
        : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32> loc("fc")
      func.return %0 : tensor<512x64xf32>
    }}"""
    path = tmp_path / "stage.mlir"
    path.write_text(text)
    target = resolve_target("tiny:16,links.topology=ladder,links.chips=4")
    plan = plan_model(Request(str(path), target, passes="nn")).plan
    (column,) = [each for each in operator_columns(plan) if each.name == "chips"]
    assert {column.cell(row) for row in plan.operators} <= shown
