from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.passes.merge_products import MergeProducts
from abele.passes.sink_loads import SinkLoads
from abele.tools.driver.compile import compile_model
from abele.tools.driver.compile_anew import read_model
from abele.tools.driver.context import new_context
from abele.tools.driver.decoding.asked import Decoding
from abele.tools.driver.executable import Executable
from abele.tools.driver.merging import with_products
from abele.tools.driver.request import Request
from abele.tools.workshop.transformers.graphs import Shape, decoder, kept_caches

OWN = {"merge-products", "read-through", "summarize-softmax"}
NARROW = {*OWN, "read-narrow"}
SHAPE = Shape(layers=1, width=64, heads=4, hidden=128, words=50, tokens=16)


def step(folder: Path, passes: str = "", **options: Any) -> Executable:
    """A step of a small decoder."""
    path = folder / "step.onnx"
    path.write_bytes(decoder(SHAPE, step=True).SerializeToString())
    kept = kept_caches(SHAPE)
    return compile_model(path, "mk2", keep=kept, cache=False, passes=passes, **options)


def test_a_step_of_a_decoder_takes_fewer_supersteps_by_the_passes_for_products(tmp_path: Path):
    own, other = step(tmp_path), step(tmp_path, "nn,partition,tile,exchange")
    assert own.profile["seconds_by_pass"].keys() >= OWN
    assert own.profile["supersteps"] < other.profile["supersteps"]
    assert own.profile["cycles"] < other.profile["cycles"]
    for i in range(3):
        given = {"ids": np.array([7 * i]), "position": np.array([i])}
        (found,), (expected,) = (each.run(given).values() for each in (own, other))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_pipeline_of_the_users_stays_as_it_is(tmp_path: Path):
    exe = step(tmp_path, "nn,partition,tile,exchange")
    assert not OWN & exe.profile["seconds_by_pass"].keys()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"precision": "float16"}, NARROW),
        ({"precision": "pure-bfloat16"}, NARROW),
        ({"partials": "float32"}, OWN),
        ({"rounding": "nearest"}, OWN),
        ({"sparsity": "zeros"}, OWN),
        # A state that the user has named keeps its name.
        ({"remote": ("layer0.up*",)}, OWN - {"merge-products"}),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_options_keep_the_passes_for_products(
    tmp_path: Path, options: dict[str, Any], expected: set[str]
):
    own = step(tmp_path, **options)
    passes = Request("step.onnx", "mk2", **options).settled().passes
    other = step(tmp_path, passes)
    assert passes
    assert own.profile["seconds_by_pass"].keys() & NARROW == expected
    assert not other.profile["seconds_by_pass"].keys() & NARROW
    assert own.profile["supersteps"] < other.profile["supersteps"]
    assert own.profile["cycles"] < other.profile["cycles"]
    near = 1e-5 if expected == OWN else 0.05
    for i in range(2):
        given = {"ids": np.array([7 * i]), "position": np.array([i])}
        (found,), (wanted,) = (each.run(given).values() for each in (own, other))
        np.testing.assert_allclose(found, wanted, rtol=near, atol=near)


def test_products_are_merged_once_they_have_the_type_that_they_are_computed_in(tmp_path: Path):
    exe = step(tmp_path, precision="float16")
    names = [each.name for each in exe.stages.timings]
    assert names.index("narrow-floats") < names.index("merge-products")
    plans = exe.stages.plans
    assert plans is not None
    products = [op for op in plans.module.walk() if isinstance(op, nn.MatMulOp)]
    merged = [op for op in products if nn.shape_of(op.rhs) == (SHAPE.width, 3 * SHAPE.width)]
    assert [str(nn.element_of(op.rhs)) for op in merged] == ["f16"]


def heads(rows: int) -> onnx.ModelProto:
    """Three products of one value, side by side, and a product of what they give."""
    rng = np.random.default_rng(0)
    sizes = {"q": (64, 64), "k": (64, 64), "v": (64, 64), "out": (192, 64)}
    arrays = {name: rng.normal(0, 0.1, size).astype(np.float32) for name, size in sizes.items()}
    nodes = [helper.make_node("MatMul", ["x", name], [f"{name}.x"], name) for name in "qkv"]
    nodes.append(helper.make_node("Concat", ["q.x", "k.x", "v.x"], ["all"], "all", axis=1))
    nodes.append(helper.make_node("MatMul", ["all", "out"], ["y"], "out"))
    given, made = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [rows, size])
        for name, size in (("x", 64), ("y", 64))
    )
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "heads", [given], [made], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("options", [{"pipeline": "out", "micro_batches": 2}, {"replicas": 2}])
def test_products_are_merged_on_each_chip_of_a_program_that_is_cut(options: dict[str, Any]):
    model = heads(2)
    exe = compile_model(model, "mk2:64", chips=2, cache=False, **options)
    plans = exe.stages.plans
    assert plans is not None
    products = [op for op in plans.module.walk() if isinstance(op, nn.MatMulOp)]
    assert (64, 192) in [nn.shape_of(op.rhs) for op in products]
    # The pipeline has two micro-batches of the model's own size.
    x = np.random.default_rng(1).normal(0, 1, exe.inputs[0].shape).astype(np.float32)
    whole = compile_model(model, "mk2:64", cache=False, passes="nn,partition,tile,exchange")
    (found,) = exe.run({"x": x}).values()
    wanted = [*(whole.run({"x": part})["y"] for part in np.split(x, len(x) // 2))]
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-5, atol=1e-5)


def test_both_programs_of_a_decoder_read_weights_in_one_form():
    """A product of many rows gains less from merging, but would read a second copy of weights."""
    make = run_path(str(Path(__file__).parents[3] / "examples" / "make_decoders.py"))
    sizes = make["Sizes"](layers=1, width=768, heads=12, groups=12, hidden=16, words=11)
    model, context = make["llama"](sizes), new_context()

    def products(new: int | tuple[int, int], tokens: int, rows: int) -> list[tuple[int, ...]]:
        dims = {"batch_size": 1, "past_sequence_length": (0, 64), "sequence_length": new}
        program = read_model(Request(model, "mk2", dims=dims, decoding=Decoding(tokens)), context)
        first = with_products([SinkLoads()], program, resolve_target("mk2"), rows)[0]
        assert isinstance(first, MergeProducts)
        first.apply(context, program.module)
        found = [op for op in program.module.walk() if isinstance(op, nn.MatMulOp)]
        return [nn.shape_of(op.rhs) for op in found if len(nn.shape_of(op.rhs)) == 2]

    generating, reading = products(1, 4, 1), products((1, 64), 0, 1)
    assert generating == reading
    assert (768, 3 * 768) in reading
    assert (768, 3 * 768) not in products((1, 64), 0, 0)


def test_a_program_that_stores_nothing_keeps_the_two_sums_of_its_softmax(tmp_path: Path):
    path = tmp_path / "whole.onnx"
    path.write_bytes(decoder(SHAPE).SerializeToString())
    exe = compile_model(path, "mk2", cache=False)
    assert "summarize-softmax" not in exe.profile["seconds_by_pass"]
