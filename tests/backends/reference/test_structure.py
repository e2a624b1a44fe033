from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from some_tensors import small_integers, values_like

from abele.backends.codelets.numerics import Placed, run_vertices
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction
from abele.backends.reference import (
    evaluate_operation,
    evaluate_structure,
    operation_value,
    structure,
    structure_value,
    within,
)
from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Stage, Structure, extras_of
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


@pytest.mark.parametrize("elements", [3, 7, 64])
def test_small_boxes_give_the_same(monkeypatch: pytest.MonkeyPatch, elements: int):
    image, weight = small_integers(1, (2, 4, 6, 5)), small_integers(2, (6, 2, 3, 3))
    conv = nn.ConvOp(*values_like(image, weight), stride=[2, 1], pad_low=[1, 1], groups=2)
    pools = [
        nn.PoolOp(*values_like(image), c, [2, 3], pad_high=[1, 0]) for c in ("sum", "max", "prod")
    ]
    cases = [(conv, [image, weight]), *((pool, [image]) for pool in pools)]
    whole = [evaluate_operation(op, arrays) for op, arrays in cases]
    monkeypatch.setattr(structure, "BOX_ELEMENTS", elements)
    made: list[tuple[tuple[int, int], ...]] = []
    gathered = structure.gathered
    monkeypatch.setattr(
        structure, "gathered", lambda t, m, box: made.append(box) or gathered(t, m, box)
    )
    for (op, arrays), (value, bound) in zip(cases, whole, strict=True):
        again, other = evaluate_operation(op, arrays)
        np.testing.assert_array_equal(again, value)
        np.testing.assert_allclose(other, bound, rtol=1e-12)
    assert len(set(made)) > 2 * len(cases)


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


def vector_product(k: int) -> Structure:
    dims = (Dim("m", 3), Dim("k", k, "reduction"))
    return Structure(
        Space(
            dims,
            (
                AccessMap((AxisMap(3, ((0, 1),)), AxisMap(k, ((1, 1),)))),
                AccessMap((AxisMap(k, ((1, 1),)),)),
            ),
            (AccessMap((AxisMap(3, ((0, 1),)),)),),
        ),
        Body("mul", "sum"),
    )


def summed(terms: np.ndarray, dtype, rng: np.random.Generator) -> np.ndarray:
    """A sum along the last axis in a random order, each step rounded to a dtype."""
    parts = list(np.moveaxis(terms.astype(dtype), -1, 0))
    with np.errstate(all="ignore"):
        while len(parts) > 1:
            at = int(rng.integers(len(parts)))
            one = parts.pop(at)
            other = parts.pop(int(rng.integers(len(parts))))
            parts.append((one + other).astype(dtype))
    return parts[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_no_sum_in_float32_leaves_the_bound(dtype):
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(300):
        k = int(rng.choice([1, 2, 3, 17, 64, 129]))
        scale = float(rng.choice([1e-6, 1e-3, 1, 30]))
        a = (rng.normal(size=(3, k)) * scale).astype(dtype)
        b = (rng.normal(size=k) * rng.choice([1e-3, 1, 30])).astype(dtype)
        products = a.astype(np.float32) * b.astype(np.float32)
        got = summed(products, np.float32, rng).astype(dtype)
        value, bound = evaluate_structure(vector_product(k), [a, b], got.dtype, (3,))
        worst = max(worst, within(got, value, bound))
    assert 0.001 < worst <= 1


def test_a_sum_in_float16_leaves_the_bound_of_float32_and_keeps_its_own():
    rng = np.random.default_rng(12)
    outside = 0
    for _ in range(100):
        k = int(rng.choice([64, 129, 256]))
        a, b = rng.uniform(size=(3, k)).astype(np.float16), rng.uniform(size=k).astype(np.float16)
        products = a.astype(np.float32) * b.astype(np.float32)
        got = np.add.accumulate(products.astype(np.float16), axis=1, dtype=np.float16)[:, -1]
        case = (vector_product(k), [a, b], got.dtype, (3,))
        outside += within(got, *evaluate_structure(*case)) > 1
        assert within(got, *evaluate_structure(*case, accumulator=np.dtype(np.float16))) <= 1
    assert outside > 90


@pytest.mark.parametrize("name", ["add", "exp", "square"])
def test_no_reduction_of_functions_leaves_the_bound(name: str):
    rng = np.random.default_rng(13)
    for combiner in ("sum", "max", "prod"):
        for _ in range(30):
            k = int(rng.choice([1, 2, 9, 33]))
            arity = 2 if name == "add" else 1
            arrays = [rng.normal(size=(4, k)).astype(np.float32) for _ in range(arity)]
            access = AccessMap((AxisMap(4, ((0, 1),)), AxisMap(k, ((1, 1),))))
            result = AccessMap((AxisMap(4, ((0, 1),)),))
            space = Space((Dim("m", 4), Dim("k", k, "reduction")), (access,) * arity, (result,))
            body = Body(name, combiner)
            with np.errstate(all="ignore"):
                points = {"add": lambda x, y: x + y, "exp": np.exp, "square": np.square}[name](
                    *arrays
                )
                merge = {"sum": np.add, "max": np.maximum, "prod": np.multiply}[combiner]
                got = merge.accumulate(points, axis=1)[:, -1]
            pair = evaluate_structure(Structure(space, body), arrays, got.dtype, (4,))
            assert within(got, *pair) <= 1, (name, combiner, k)
            assert within(got * np.float32(1.001), *pair) > 1


@pytest.mark.parametrize("order", [[1e30, 1e30, 1e-30, 1e-30], [1e-30, 1e-30, 1e30, 1e30]])
def test_a_product_may_leave_the_range_on_its_way(order: list[float]):
    x = np.array([order], np.float32)
    with np.errstate(all="ignore"):
        got = np.multiply.accumulate(x, axis=1)[:, -1]
    assert got[0] in (0.0, np.inf)
    value, bound = evaluate_operation(nn.ReduceOp(*values_like(x), "prod", [1]), [x])
    assert within(got, value, bound) <= 1


def test_the_value_alone_is_the_same_value():
    a, b = small_integers(1, (3, 8)), small_integers(2, (8,))
    case = (vector_product(8), [a, b], np.dtype(np.float32), (3,))
    np.testing.assert_array_equal(structure_value(*case), evaluate_structure(*case)[0])


def test_a_dimension_named_twice_reads_a_diagonal():
    matrix = small_integers(4, (5, 5))
    space = Space(
        (Dim("i", 5, "reduction"),),
        (AccessMap((AxisMap(5, ((0, 1),)), AxisMap(5, ((0, 1),)))),),
        (AccessMap(()),),
    )
    trace = structure_value(Structure(space, Body("identity", "sum")), [matrix], matrix.dtype, ())
    assert trace == np.trace(matrix)


def test_dimensions_of_one_operand_alone_are_summed_and_of_none_counted():
    a, b = small_integers(5, (3, 4)), small_integers(6, (2,))
    space = Space(
        (Dim("i", 3), Dim("j", 4, "reduction"), Dim("k", 2, "reduction"), Dim("l", 5, "reduction")),
        (
            AccessMap((AxisMap(3, ((0, 1),)), AxisMap(4, ((1, 1),)))),
            AccessMap((AxisMap(2, ((2, 1),)),)),
        ),
        (AccessMap((AxisMap(3, ((0, 1),)),)),),
    )
    got = structure_value(Structure(space, Body("mul", "sum")), [a, b], a.dtype, (3,))
    np.testing.assert_array_equal(got, 5 * a.sum(1) * b.sum())


def test_a_product_is_repeated_along_dimensions_that_no_operand_has():
    a, b = small_integers(5, (4,)), small_integers(6, (4,))
    space = Space(
        (Dim("i", 3), Dim("j", 2), Dim("k", 4, "reduction")),
        (AccessMap((AxisMap(4, ((2, 1),)),)),) * 2,
        (AccessMap((AxisMap(3, ((0, 1),)), AxisMap(2, ((1, 1),)))),),
    )
    got, _ = evaluate_structure(Structure(space, Body("mul", "sum")), [a, b], a.dtype, (3, 2))
    np.testing.assert_array_equal(got, np.full((3, 2), a @ b))


@pytest.mark.parametrize(
    ("combiner", "dtype", "need"),
    [
        ("sum", "float32", 0.0),
        ("max", "float32", -np.inf),
        ("min", "int8", 127),
        ("prod", "int32", 1),
    ],
)
def test_merging_nothing_gives_the_identity(combiner: str, dtype: str, need: float):
    empty = np.zeros((2, 0), dtype)
    got = operation_value(nn.ReduceOp(*values_like(empty), combiner, [1]), [empty])
    assert got.tolist() == [need] * 2


def test_operands_that_do_not_fit_the_space_are_refused():
    a, b = small_integers(1, (3, 8)), small_integers(2, (7,))
    with pytest.raises(ValueError, match=r"operand 1: shape \(7,\); the space needs \(8,\)"):
        structure_value(vector_product(8), [a, b], a.dtype, (3,))
    space = vector_product(8).space
    with pytest.raises(ValueError, match="mul: nothing merges dimensions k"):
        structure_value(Structure(space, Body("mul")), [a, a[0]], a.dtype, (3,))


CHAINS = [
    (Stage("add"), Stage("relu")),
    (Stage("scale", (0.3,)), Stage("sub", at=1), Stage("tanh")),
    (Stage("div"), Stage("exp"), Stage("log")),
    (Stage("square"), Stage("add"), Stage("sqrt")),
    (Stage("neg"), Stage("sigmoid"), Stage("mul"), Stage("shift", (-0.7,))),
    (Stage("abs"), Stage("leaky_relu", (-3.0,)), Stage("min"), Stage("clip", (-0.5, 6.0))),
]


def chained_product(stages: tuple[Stage, ...], k: int = 30) -> Structure:
    """[9, k] by [k, 8], then stages with extras of 8, [9, 1], 8, ... elements."""
    dims = (Dim("m", 9), Dim("n", 8), Dim("k", k, "reduction"))
    maps = [identity_map((0, 2), (9, k)), identity_map((2, 1), (k, 8))]
    kinds = (identity_map((1,), (8,)), AccessMap((AxisMap(9, ((0, 1),)), AxisMap(1))))
    maps += [kinds[i % 2] for i in range(extras_of(stages))]
    space = Space(dims, tuple(maps), (identity_map((0, 1), (9, 8)),))
    return Structure(space, Body("mul", "sum", (), stages))


def normal_operands(structure: Structure, dtype: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape).astype(dtype) for a in structure.space.operands]


def on_one_tile(structure: Structure, operands: list[np.ndarray], dtype: str) -> np.ndarray:
    """What the codelets make of it."""
    result = np.zeros(structure.space.results[0].shape, dtype)

    def placed(array: np.ndarray) -> Placed:
        return Placed(array.reshape(1, -1).view(np.uint8), 0, array.dtype)

    plan = Plan((1,) * len(structure.space.dims))
    run_vertices(structure, plan, list(map(placed, operands)), placed(result))
    return result


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("stages", CHAINS)
def test_a_chain_stays_within_its_bound_and_a_wrong_stage_does_not(stages, dtype):
    structure = chained_product(stages)
    wrong = chained_product((*stages[:-1], Stage("shift", (0.01,)), stages[-1]))
    for seed in range(20):
        operands = normal_operands(structure, dtype, seed)
        actual = on_one_tile(structure, operands, dtype)
        value, bound = evaluate_structure(structure, operands, actual.dtype, actual.shape)
        assert within(actual, value, bound) <= 1
        value, bound = evaluate_structure(wrong, operands, actual.dtype, actual.shape)
        assert within(actual, value, bound) > 1


@pytest.mark.parametrize("stages", CHAINS)
def test_the_bound_of_a_chain_is_of_the_size_of_its_errors(stages):
    structure = chained_product(stages)
    operands = normal_operands(structure, "float32", 3)
    f32 = np.dtype(np.float32)
    value, bound = evaluate_structure(structure, operands, f32, (9, 8))
    actual = on_one_tile(structure, operands, "float32")
    rough = np.isfinite(value) & np.isfinite(bound) & (bound > 0)
    assert rough.any()
    # Sums of 30 products seldom reach a tenth of their worst case; stages add little to that.
    assert np.median(np.abs(actual[rough] - value[rough]) / bound[rough]) > 0.002
    np.testing.assert_array_equal(value, structure_value(structure, operands, f32, (9, 8)))


@pytest.mark.parametrize("stages", CHAINS)
def test_bounds_computed_piece_by_piece_are_the_same(monkeypatch: pytest.MonkeyPatch, stages):
    structured = chained_product(stages)
    operands = normal_operands(structured, "float16", 5)
    given = (structured, operands, np.dtype(np.float16), (9, 8))
    value, bound = evaluate_structure(*given)
    pieces = []
    at = structure.Parts.at
    monkeypatch.setattr(structure.Parts, "at", lambda *a: pieces.append(a) or at(*a))
    monkeypatch.setattr(structure, "PIECE", 7)
    again, other = evaluate_structure(*given)
    assert len(pieces) > 10
    np.testing.assert_array_equal(again, value)
    np.testing.assert_allclose(other, bound, rtol=1e-12)


def pointwise(stages: tuple[Stage, ...]) -> Structure:
    access = identity_map((0,), (4,))
    count = 1 + extras_of(stages)
    space = Space((Dim("x", 4),), (access,) * count, (access,))
    return Structure(space, Body("identity", None, (), stages))


def test_functions_that_never_round_leave_a_chain_exact():
    exact = (Stage("relu"), Stage("neg"), Stage("max"), Stage("abs"), Stage("clip", (-2.0, 2.0)))
    operands = [np.array([-1.1, 0, 0.1, 7], np.float16), np.full(4, -0.5, np.float16)]
    for dtype in (np.float16, np.float32):
        value, bound = evaluate_structure(pointwise(exact), operands, np.dtype(dtype), (4,))
        np.testing.assert_array_equal(bound, np.zeros(4))
        assert value.tolist() == [0, 0, float(np.float16(0.1)), 0.5]


def test_the_error_of_a_value_shrinks_and_grows_with_the_chain_after_it():
    base = evaluate_structure(
        chained_product(()), operands := normal_operands(chained_product(()), "float32", 0),
        np.dtype(np.float32), (9, 8),
    )[1]  # fmt: skip
    bounds = {
        stage.function: evaluate_structure(
            chained_product((stage,)), operands, np.dtype(np.float32), (9, 8)
        )[1]
        for stage in (Stage("scale", (64.0,)), Stage("relu"), Stage("tanh"))
    }
    assert (bounds["scale"] > 63 * base).all()
    assert (bounds["relu"] <= 1.001 * base).all()
    assert (bounds["tanh"] <= base + 1e-6).all()


@pytest.mark.parametrize("stages", [(Stage("relu"),), (Stage("neg"), Stage("relu"))])
def test_either_end_of_an_interval_may_be_the_one_that_counts(stages):
    access = identity_map((0, 1), (1, 3))
    dims, result = (Dim("x", 1), Dim("k", 3, "reduction")), identity_map((0,), (1,))
    structure = Structure(Space(dims, (access,), (result,)), Body("identity", "sum", (), stages))
    # The sum may be a little above or below zero, in whichever order it is made.
    near_zero = 1e-5 if stages[0].function == "neg" else -1e-5
    operands = [np.array([[1e4, -1e4, near_zero]], np.float32)]
    value, bound = evaluate_structure(structure, operands, np.dtype(np.float32), (1,))
    assert value.tolist() == [0]
    assert 1e-5 < bound[0] < 0.1


@pytest.mark.parametrize(
    "stages",
    [
        (Stage("sqrt"),),
        (Stage("scale", (0.3,)), Stage("sqrt")),
        (Stage("neg"), Stage("abs"), Stage("sqrt")),
    ],
)
def test_the_square_root_of_nothing_but_zeros_has_a_bound(stages: tuple[Stage, ...]):
    access = identity_map((0, 1), (2, 3))
    dims, result = (Dim("x", 2), Dim("k", 3, "reduction")), identity_map((0,), (2,))
    structure = Structure(Space(dims, (access,), (result,)), Body("square", "sum", (), stages))
    operands = [np.array([[0, 0, 0], [1, -2, 3]], np.float32)]
    value, bound = evaluate_structure(structure, operands, np.dtype(np.float32), (2,))
    assert value[0] == 0
    assert (bound < 1e-5).all()


def test_the_root_of_a_value_that_may_be_negative_has_no_bound():
    access = identity_map((0, 1), (1, 3))
    dims, result = (Dim("x", 1), Dim("k", 3, "reduction")), identity_map((0,), (1,))
    stages = (Stage("sqrt"),)
    structure = Structure(Space(dims, (access,), (result,)), Body("identity", "sum", (), stages))
    operands = [np.array([[1e4, -1e4, 1e-5]], np.float32)]
    _, bound = evaluate_structure(structure, operands, np.dtype(np.float32), (1,))
    assert bound.tolist() == [np.inf]


def test_a_value_that_overflows_within_a_chain_has_no_bound():
    stages = (Stage("exp"), Stage("clip", (0.0, 5.0)))
    operands = [np.array([100, 1, 88.7, -3], np.float32)]
    actual = on_one_tile(pointwise(stages), operands, "float32")
    value, bound = evaluate_structure(pointwise(stages), operands, actual.dtype, (4,))
    assert within(actual, value, bound) <= 1
    assert np.isinf(bound[0])
    assert np.isfinite(bound[1:2]).all()


def test_any_value_is_right_where_an_infinity_meets_a_value_that_may_have_overflowed():
    access = identity_map((0, 1), (1, 2))
    dims, result = (Dim("x", 1), Dim("k", 2, "reduction")), identity_map((0,), (1,))
    space = Space(dims, (access, access, result), (result,))
    structure = Structure(space, Body("mul", "sum", (), (Stage("add"),)))
    operands = [np.full((1, 2), 3e38, np.float32), np.array([[1, 1]], np.float32)]
    infinite = np.array([-np.inf], np.float32)
    value, bound = evaluate_structure(structure, [*operands, infinite], infinite.dtype, (1,))
    assert within(infinite, value, bound) <= 1
    assert within(np.array([np.nan], np.float32), value, bound) <= 1
    operands[0][...] = 1
    value, bound = evaluate_structure(structure, [*operands, infinite], infinite.dtype, (1,))
    assert within(infinite, value, bound) <= 1
    assert within(np.array([np.nan], np.float32), value, bound) > 1


def test_a_chain_on_whole_numbers_is_refused():
    with pytest.raises(ValueError, match="a chain on elements of int32; need floats"):
        evaluate_structure(
            pointwise((Stage("relu"),)), [np.arange(4, dtype=np.int32)], np.dtype(np.int32), (4,)
        )


def test_a_chain_without_its_operands_says_how_many_it_takes():
    with pytest.raises(ValueError, match="the function, its relations and its chain take 2"):
        evaluate_structure(
            pointwise((Stage("add"),)), [np.zeros(4, np.float32)], np.dtype(np.float32), (4,)
        )


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
