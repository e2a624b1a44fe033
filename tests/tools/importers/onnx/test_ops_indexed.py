"""Caches that are replaced in part, and indices that are out of range."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from abele.backends.faults import IndexFault
from abele.ir.errors import InputError
from abele.tools import compile_model

from .one_node import agree_with_onnx, computed, one_node


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("axis", [1, -1])
def test_each_sample_is_replaced_from_its_own_index_on(axis: int):
    cache, update = floats(2, 5, 6), floats(2, 5, 6)[:, :2] if axis == 1 else floats(2, 5, 2)
    first = np.array([1, 3])
    agree_with_onnx(*one_node("TensorScatter", cache, update, first, opset=24, axis=axis))
    agree_with_onnx(*one_node("TensorScatter", cache, update, opset=24, axis=axis))


def test_a_circular_cache_begins_again():
    first = np.array([4, 11])
    model = one_node(
        "TensorScatter", floats(2, 3, 5, 2), floats(2, 3, 4, 2), first, opset=24, mode="circular"
    )
    agree_with_onnx(*model)


def test_an_update_must_fit_the_cache():
    model, inputs = one_node("TensorScatter", floats(2, 3, 4), floats(2, 5, 4), opset=24)
    with pytest.raises(InputError, match="update of 5 elements for 3 along axis 1"):
        computed(model, inputs)


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def compiled(node: onnx.NodeProto, inputs: dict[str, tuple[int, list[int]]], result: list[int]):
    given = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
    y = helper.make_tensor_value_info("y", FLOAT, result)
    graph = helper.make_graph([node], "g", given, [y])
    opsets = [helper.make_opsetid("", 24)]
    return compile_model(
        helper.make_model(graph, opset_imports=opsets, ir_version=10), target="tiny:2"
    )


@pytest.mark.parametrize("bad", [[0, 4], [-4, 0], [3, 0]])
def test_a_coordinate_out_of_range_is_a_fault_wherever_its_position_leads(bad):
    node = helper.make_node("GatherND", ["x", "at"], ["y"], name="pick")
    exe = compiled(node, {"x": (FLOAT, [3, 4]), "at": (INT64, [2, 2])}, [2])
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    good = np.array([[2, -1], [-3, 0]])
    assert exe.run({"x": x, "at": good}, at="nn")["y"].tolist() == [11, 0]
    with pytest.raises(IndexFault, match="pick"):
        exe.run({"x": x, "at": np.array([[1, 1], bad])}, at="nn")


@pytest.mark.parametrize("bad", [[1, 4], [-1, 0]])
def test_a_run_that_leaves_its_cache_is_a_fault(bad):
    node = helper.make_node("TensorScatter", ["x", "u", "w"], ["y"], name="cache", axis=1)
    kinds = {"x": (FLOAT, [2, 5, 3]), "u": (FLOAT, [2, 2, 3]), "w": (INT64, [2])}
    exe = compiled(node, kinds, [2, 5, 3])
    inputs = {"x": np.zeros((2, 5, 3), np.float32), "u": np.ones((2, 2, 3), np.float32)}
    found = exe.run({**inputs, "w": np.array([0, 3])}, at="nn")["y"].sum(axis=2)
    assert found.tolist() == [[3, 3, 0, 0, 0], [0, 0, 0, 3, 3]]
    with pytest.raises(IndexFault, match="cache"):
        exe.run({**inputs, "w": np.array(bad)}, at="nn")
