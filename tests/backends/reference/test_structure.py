from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from some_structures import vector_product
from some_tensors import small_integers, values_like
from xdsl.dialects.builtin import f32

from abele.backends.codelets.numerics import Placed, run_vertices
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction
from abele.backends.reference import (
    evaluate_operation,
    evaluate_structure,
    operation_value,
    structure_value,
)
from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

EXTENTS = st.sampled_from([1, 2, 3, 5, 7])
SEEDS = st.integers(0, 1 << 16)


def run_onnx(kind: str, arrays: list[np.ndarray], **attributes) -> np.ndarray:
    """What ONNX Runtime makes of one node."""
    names = [f"x{i}" for i in range(len(arrays))]
    graph = helper.make_graph(
        [helper.make_node(kind, names, ["y"], **attributes)],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names, arrays, strict=True)
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options)
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


@st.composite
def convolutions(draw):
    """Image and weight shapes, and the parameters of a convolution that fits."""
    rank = draw(st.integers(1, 2))
    groups = draw(st.sampled_from([1, 1, 2, 3]))

    def each(values):
        return [draw(st.sampled_from(values)) for _ in range(rank)]

    kernel, stride, dilation = each([1, 2, 3]), each([1, 2, 3]), each([1, 2])
    low, high = each([0, 1, 2]), each([0, 1, 3])
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    image = [max(draw(EXTENTS), r - a - b, 1) for r, a, b in zip(reach, low, high, strict=True)]
    n, c, o = draw(st.sampled_from([1, 2])), groups * draw(EXTENTS), groups * draw(EXTENTS)
    parameters = dict(stride=stride, dilation=dilation, pad_low=low, pad_high=high, groups=groups)
    return (n, c, *image), (o, c // groups, *kernel), parameters, draw(SEEDS)


@given(convolutions())
@settings(max_examples=30)
def test_convolution_equals_that_of_onnxruntime(drawn):
    image_shape, weight_shape, p, seed = drawn
    image, weight = small_integers(seed, image_shape), small_integers(seed + 1, weight_shape)
    value = operation_value(nn.ConvOp(*values_like(image, weight), **p), [image, weight])
    need = run_onnx(
        "Conv",
        [image, weight],
        strides=p["stride"],
        dilations=p["dilation"],
        pads=[*p["pad_low"], *p["pad_high"]],
        group=p["groups"],
    )
    np.testing.assert_array_equal(value, need)


@given(convolutions())
@settings(max_examples=30)
def test_transposed_convolution_equals_that_of_onnxruntime(drawn):
    image_shape, weight_shape, p, seed = drawn
    gradient_shape = (image_shape[0], weight_shape[0], *image_shape[2:])
    gradient, weight = small_integers(seed, gradient_shape), small_integers(seed + 1, weight_shape)
    size = [
        (n - 1) * s + d * (k - 1) + 1 - lo - hi
        for n, s, d, k, lo, hi in zip(
            gradient_shape[2:],
            p["stride"],
            p["dilation"],
            weight_shape[2:],
            p["pad_low"],
            p["pad_high"],
            strict=True,
        )
    ]
    if min(size) < 1:
        return
    op = nn.ConvInputGradOp(
        *values_like(gradient, weight),
        size,
        stride=p["stride"],
        dilation=p["dilation"],
        pad_low=p["pad_low"],
        groups=p["groups"],
    )
    need = run_onnx(
        "ConvTranspose",
        [gradient, weight],
        strides=p["stride"],
        dilations=p["dilation"],
        pads=[*p["pad_low"], *p["pad_high"]],
        group=p["groups"],
    )
    np.testing.assert_array_equal(operation_value(op, [gradient, weight]), need)


@given(convolutions())
@settings(max_examples=30)
def test_gradients_of_a_convolution_are_its_adjoints(drawn):
    image_shape, weight_shape, p, seed = drawn
    image, weight = small_integers(seed, image_shape), small_integers(seed + 1, weight_shape)
    forward = nn.ConvOp(*values_like(image, weight), **p)
    result = operation_value(forward, [image, weight])
    gradient = small_integers(seed + 2, result.shape)
    shared = {k: v for k, v in p.items() if k != "pad_high"}
    to_image = nn.ConvInputGradOp(*values_like(gradient, weight), image_shape[2:], **shared)
    to_weight = nn.ConvWeightGradOp(*values_like(image, gradient), weight_shape[2:], **shared)
    inner = np.vdot(result, gradient)
    assert np.vdot(image, operation_value(to_image, [gradient, weight])) == inner
    assert np.vdot(weight, operation_value(to_weight, [image, gradient])) == inner


def test_gradients_of_a_convolution_are_finite_differences():
    rng = np.random.default_rng(5)
    image, weight = rng.normal(size=(2, 4, 5, 4)), rng.normal(size=(6, 2, 3, 2))
    p = dict(stride=[2, 1], dilation=[1, 2], pad_low=[1, 0], groups=2)
    forward = nn.ConvOp(*values_like(image, weight), pad_high=[2, 1], **p)
    gradient = rng.normal(size=nn.shape_of(forward.result))

    def loss() -> float:
        return float(np.vdot(operation_value(forward, [image, weight]), gradient))

    to_image = nn.ConvInputGradOp(*values_like(gradient, weight), image.shape[2:], **p)
    to_weight = nn.ConvWeightGradOp(*values_like(image, gradient), weight.shape[2:], **p)
    for array, slope in (
        (image, operation_value(to_image, [gradient, weight])),
        (weight, operation_value(to_weight, [image, gradient])),
    ):
        numeric = np.empty_like(array)
        for at in np.ndindex(array.shape):
            array[at] += 0.5
            above = loss()
            array[at] -= 1.0
            numeric[at] = above - loss()
            array[at] += 0.5
        # The convolution is linear in either operand: differences are exact.
        np.testing.assert_allclose(numeric, slope, atol=1e-12)


@given(convolutions())
@settings(max_examples=25)
def test_maximum_pooling_equals_that_of_onnxruntime(drawn):
    shape, weights, p, seed = drawn
    low = [min(a, k - 1) for a, k in zip(p["pad_low"], weights[2:], strict=True)]
    high = [min(a, k - 1) for a, k in zip(p["pad_high"], weights[2:], strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(p["dilation"], weights[2:], strict=True)]
    shape = (*shape[:2], *(max(n, r) for n, r in zip(shape[2:], reach, strict=True)))
    image = small_integers(seed, shape)
    window = weights[2:]
    op = nn.PoolOp(
        *values_like(image),
        "max",
        window,
        stride=p["stride"],
        dilation=p["dilation"],
        pad_low=low,
        pad_high=high,
    )
    need = run_onnx(
        "MaxPool",
        [image],
        kernel_shape=window,
        strides=p["stride"],
        dilations=p["dilation"],
        pads=[*low, *high],
    )
    value, bound = evaluate_operation(op, [image])
    np.testing.assert_array_equal(value, need)
    assert not bound.any()


@pytest.mark.parametrize("combiner", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32"])
def test_windows_and_reductions_equal_those_of_numpy(combiner: str, dtype: str):
    image = small_integers(3, (2, 3, 6, 5), dtype)
    merge = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[combiner]
    pool = nn.PoolOp(*values_like(image), combiner, [2, 3], stride=[2, 1])
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 3), (2, 3))[:, :, ::2]
    exact = np.float64 if dtype.startswith("float") else np.int64
    need = merge.reduce(windows.astype(exact), axis=(4, 5)).astype(dtype)
    np.testing.assert_array_equal(operation_value(pool, [image]), need)
    reduce = nn.ReduceOp(*values_like(image), combiner, [1, 3], keep_dims=True)
    need = merge.reduce(image.astype(exact), axis=(1, 3), keepdims=True).astype(dtype)
    np.testing.assert_array_equal(operation_value(reduce, [image]), need)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int64"])
@pytest.mark.parametrize(
    ("lhs", "rhs"), [((4, 3), (3, 5)), ((2, 1, 4, 3), (6, 3, 5)), ((1, 3), (3, 1))]
)
def test_products_of_matrices_equal_those_of_numpy(lhs, rhs, dtype: str):
    a, b = small_integers(1, lhs, dtype), small_integers(2, rhs, dtype)
    op = nn.MatMulOp(*values_like(a, b))
    exact = np.float64 if dtype.startswith("float") else np.int64
    need = np.matmul(a.astype(exact), b.astype(exact)).astype(dtype)
    np.testing.assert_array_equal(operation_value(op, [a, b]), need)
    swapped = np.ascontiguousarray(a.swapaxes(-1, -2))
    op = nn.MatMulOp(*values_like(swapped, b), transpose_lhs=True)
    np.testing.assert_array_equal(operation_value(op, [swapped, b]), need)


def test_integers_stay_exact_beyond_float64():
    a = np.array([[2**40 + 1, 3]], np.int64)
    b = np.array([[2**20], [7]], np.int64)
    value, bound = evaluate_operation(nn.MatMulOp(*values_like(a, b)), [a, b])
    assert value.item() == 2**60 + 2**20 + 21
    assert bound.item() == 0
    big = np.array([2**64 - 1, 2**63], np.uint64)
    one = np.ones(2, np.uint64)
    assert operation_value(nn.MaxOp(*values_like(big, one)), [big, one]).tolist() == big.tolist()
    assert operation_value(nn.LessOp(*values_like(big, one)), [big, one]).tolist() == [False] * 2


@dataclass
class Tripling:
    """A kernel that has no hash."""

    by: float = 3.0

    def __call__(self, parameters, arrays, out, dtype) -> None:
        np.multiply(arrays[0], self.by, out=out)


def test_a_kernel_may_be_any_callable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(SCALAR_FUNCTIONS, "relu", ScalarFunction("relu", 1, Tripling()))
    x = np.array([-1.0, 2.0], np.float32)
    assert operation_value(nn.ReluOp(*values_like(x)), [x]).tolist() == [-3.0, 6.0]


def test_the_value_alone_is_the_same_value():
    a, b = small_integers(1, (3, 8)), small_integers(2, (8,))
    case = (vector_product(8), [a, b], np.dtype(np.float32), (3,))
    np.testing.assert_array_equal(structure_value(*case), evaluate_structure(*case)[0])


@pytest.mark.parametrize("function", ["log", "sqrt", "reciprocal"])
def test_integers_out_of_range_are_cut_off_as_the_machine_cuts_them(function: str):
    dims = (Dim("i", 3),)
    whole = identity_map((0,), (3,))
    body = Structure(Space(dims, (whole,), (whole,)), Body(function))
    given = np.array([0, -1, 4], np.int32)
    found = Placed(np.zeros((1, 16), np.uint8), 0, np.dtype(np.int32))
    memory = np.zeros((1, 16), np.uint8)
    memory[0, :12] = given.view(np.uint8)
    run_vertices(body, Plan((1,)), [Placed(memory, 0, given.dtype)], found)
    expected, _ = evaluate_structure(body, [given], given.dtype, (3,))
    assert (found.memory[0, :12].view(np.int32) == expected).all()


def test_a_result_without_elements_has_its_shape_though_no_dimension_says_so():
    dims = (Dim("e", 0, "reduction"), Dim("i", 7))
    empty = AccessMap((AxisMap(0), AxisMap(7, ((1, 1),))))
    body = Structure(Space(dims, (empty,), (empty,)), Body("identity", "max"))
    value, bound = evaluate_structure(body, [np.zeros((0, 7))], np.dtype(np.float32), (0, 7))
    assert value.shape == bound.shape == (0, 7)


def test_bits_of_a_signalling_nan_are_seen_without_a_warning():
    given = np.array([0x7F800001, 0x3F800000], np.int32)
    op = nn.BitCastOp(nn.ConstantOp(given).result, f32)
    np.testing.assert_array_equal(operation_value(op, [given]), np.array([np.nan, 1], np.float32))
