"""Sparse initialisers become weights with their zeros."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.support.errors import DoesNotFit, InputError
from abele.tools import compile_model
from abele.tools.importers import import_onnx
from abele.tools.importers.onnx.valid import CHECKED_BYTES

SHAPE = (6, 4)
VALUES = np.array([1.5, -2.0, 3.0], np.float32)
FLAT = np.array([1, 6, 23])
BY_AXIS = np.array([[0, 1], [1, 2], [5, 3]])


def sparse(values=VALUES, indices=FLAT, shape=SHAPE, name="w") -> onnx.SparseTensorProto:
    made = onnx.SparseTensorProto(values=numpy_helper.from_array(values, name), dims=shape)
    if indices is not None:
        made.indices.CopyFrom(numpy_helper.from_array(np.asarray(indices), "indices"))
    return made


def model(*weights: onnx.SparseTensorProto, shape=SHAPE, dense=(), inputs=()) -> onnx.ModelProto:
    """y = x w."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")],
        "graph",
        [info("x", TensorProto.FLOAT, [2, shape[0]]), *inputs],
        [info("y", TensorProto.FLOAT, [2, shape[1]])],
        dense,
        sparse_initializer=weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def weight(proto: onnx.ModelProto | Path, **options) -> np.ndarray:
    module = import_onnx(proto, AbeleContext(), **options)
    (state,) = (op for op in module.walk() if isinstance(op, nn.StateOp))
    assert state.sym_name.data == "w"
    return state.value.array


def whole(shape=SHAPE) -> np.ndarray:
    made = np.zeros(shape, np.float32)
    made.reshape(-1)[FLAT] = VALUES
    return made


@pytest.mark.parametrize("indices", [FLAT, BY_AXIS], ids=["flat", "by axis"])
def test_a_sparse_weight_is_read_with_its_zeros(indices):
    np.testing.assert_array_equal(weight(model(sparse(indices=indices))), whole())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_its_elements_may_have_any_type(dtype):
    made = model(sparse(VALUES.astype(dtype)))
    for each in (made.graph.input[0], made.graph.output[0]):
        each.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    found = weight(made)
    np.testing.assert_array_equal(found, whole().astype(dtype))
    assert found.dtype == dtype


def test_none_of_its_elements_or_all_may_be_listed():
    none = sparse(VALUES[:0], None)
    np.testing.assert_array_equal(weight(model(none)), np.zeros(SHAPE, np.float32))
    dense = np.arange(24, dtype=np.float32).reshape(SHAPE)
    found = weight(model(sparse(dense.reshape(-1), np.arange(24))))
    np.testing.assert_array_equal(found, dense)


def test_it_computes_what_onnxruntime_does(tmp_path: Path):
    path = tmp_path / "model.onnx"
    onnx.save(model(sparse()), path)
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    (wanted,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    np.testing.assert_array_equal(
        compile_model(path, "tiny:2", cache=False).run({"x": x})["y"], wanted
    )
    np.testing.assert_array_equal(wanted, x @ whole())


def test_its_values_and_indices_may_lie_in_files(tmp_path: Path):
    each = sparse()
    for tensor, name in ((each.values, "values"), (each.indices, "indices")):
        (tmp_path / name).write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=name)
    path = tmp_path / "model.onnx"
    onnx.save(model(each), path)
    np.testing.assert_array_equal(weight(path), whole())
    (tmp_path / "indices").write_bytes(b"short")
    with pytest.raises(InputError, match="weight 'w': indices: "):
        weight(path)


def test_an_input_of_its_name_may_have_another_value():
    info = helper.make_tensor_value_info("w", TensorProto.FLOAT, SHAPE)
    made = model(sparse(), inputs=[info])
    np.testing.assert_array_equal(weight(made), whole())
    exe = compile_model(made, "tiny:2", cache=False, values={"w": np.ones(SHAPE, np.float32)})
    x = np.ones((2, 6), np.float32)
    np.testing.assert_array_equal(exe.run({"x": x})["y"], np.full((2, 4), 6))


DAMAGED = {
    "an index outside": (sparse(indices=[1, 6, 24]), r"index \[24\] is outside shape \[24\]"),
    "a negative index": (sparse(indices=[-1, 6, 23]), r"index \[-1\] is outside shape \[24\]"),
    "an index outside an axis": (
        sparse(indices=[[0, 1], [1, 4], [5, 3]]),
        r"index \[1, 4\] is outside shape \[6, 4\]",
    ),
    "an index twice": (
        sparse(indices=[1, 6, 6]),
        r"index \[6\] follows \[6\]; need each index once",
    ),
    "unsorted indices": (
        sparse(indices=[[0, 1], [5, 3], [1, 2]]),
        r"index \[1, 2\] follows \[5, 3\]; need each index once, in ascending order",
    ),
    "too few indices": (
        sparse(indices=[1, 6]),
        r"indices of shape \[2\]; need \[3\] or \[3, 2\]",
    ),
    "indices for other axes": (sparse(indices=np.zeros((3, 3), int)), r"indices of shape \[3, 3\]"),
    "no indices": (sparse(indices=None), "indices of element type 0; need int64"),
    "narrow indices": (
        sparse(indices=FLAT.astype(np.int32)),
        "indices of element type 6; need int64",
    ),
    "values with two axes": (sparse(VALUES[None]), r"values of shape \[1, 3\]; need one axis"),
    "no axes": (sparse(shape=()), "a sparse tensor without axes"),
    "a negative size": (sparse(shape=(6, -4)), r"shape \[6, -4\]; sizes are 0 or more"),
    "an empty shape": (sparse(shape=(6, 0)), r"index \[1\] is outside shape \[0\]"),
}


@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
@pytest.mark.parametrize(("each", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_reported(each: onnx.SparseTensorProto, message: str, lenient: bool):
    made = model(each)
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_value = max([1, *each.dims[:1]])
    del made.graph.output[0].type.tensor_type.shape.dim[:]
    made.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(InputError, match=f"^<model>: weight 'w': {message}"):
        weight(made, lenient=lenient)


def test_missing_values_are_reported():
    each = sparse()
    each.values.ClearField("raw_data")
    with pytest.raises(InputError, match="weight 'w': values: damaged tensor"):
        weight(model(each))


def test_a_name_is_given_once():
    dense = numpy_helper.from_array(whole(), "w")
    with pytest.raises(InputError, match="weight 'w' is given twice"):
        weight(model(sparse(), dense=[dense]))
    with pytest.raises(InputError, match="a weight has no name"):
        weight(model(sparse(), sparse(name="")))


def test_zeros_that_no_chip_holds_are_refused_unread():
    """A file of a few bytes may name any shape."""
    huge = (1 << 40, 4)
    with pytest.raises(
        DoesNotFit, match=r"the model with 1 weight \(w \d+ B\), not read yet, needs"
    ):
        compile_model(model(sparse(shape=huge), shape=huge), "tiny:2", cache=False)


def test_large_ones_need_no_room_in_the_checkers_copy():
    shape = (CHECKED_BYTES, 4)
    found = weight(model(sparse(shape=shape), shape=shape))
    np.testing.assert_array_equal(found, whole(shape))


def test_a_sparse_weight_becomes_a_sparse_product(tmp_path: Path):
    rng, shape = np.random.default_rng(0), (256, 256)
    held = np.zeros(shape, np.float32)
    held[:16] = rng.integers(1, 5, (16, 256))
    places = np.flatnonzero(held)
    made = model(sparse(held.reshape(-1)[places], places, shape), shape=shape)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 64
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 64
    exe = compile_model(made, "mk2:64", sparsity="zeros", cache=False)
    found = (op for op in exe.module_at("partition").walk() if op.name == "partition.compute")
    assert any(op.structure().space.relations for op in found)
    x = rng.integers(-4, 5, (64, 256)).astype(np.float32)
    np.testing.assert_array_equal(exe.run({"x": x})["y"], x @ held)
