import math
import tracemalloc
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from abele.backends.codelets.conversion import float_limits
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction, scalar_function
from abele.backends.reference import evaluate_structure, worst_of
from abele.dialects.nn.elementwise import broadcast_space
from abele.dialects.structured import Body, Structure

from .definitions import FLOATS as FUNCTIONS_OF_FLOATS

PARAMETERS = {
    "leaky_relu": (0.01,),
    "clip": (-0.1, 6.3),
    "scale": (0.1,),
    "scaled_mul": (0.125,),
    "shift": (0.3,),
    "power": (-0.75,),
    "random_bits": (5.0,),
    "to_nearest": (11.0, -14.0, 65504.0, 1.0),
    "drawn": (11.0, -14.0, 65504.0, 1.0),
    "by_word": (11.0, -14.0, 65504.0, 1.0),
    "stochastic": (5.0, 11.0, -14.0, 65504.0, 1.0),
    "to_code": (5.0, 1.0),
    "from_code": (5.0, 1.0),
    "packed_mul": (4.0,),
}
FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)

# What Python's own numbers say, away from the edges.
MEANING = {
    "identity": lambda x: x,
    "bitcast": lambda x: x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "scaled_mul": lambda x, y: x * y * 0.125,
    "div": lambda x, y: x / y,
    "max": max,
    "min": min,
    "pow": math.pow,
    "relu": lambda x: max(x, 0.0),
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "reciprocal": lambda x: 1 / x,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "neg": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "logical_and": lambda x, y: bool(x) and bool(y),
    "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_not": lambda x: not x,
    "select": lambda c, x, y: x if c else y,
    "leaky_relu": lambda x: x if x >= 0 else 0.01 * x,
    "clip": lambda x: min(max(x, -0.1), 6.3),
    "scale": lambda x: 0.1 * x,
    "shift": lambda x: x + 0.3,
    "power": lambda x: x**-0.75,
    "softplus": lambda x: math.log(1 + math.exp(x)),
    "floor": math.floor,
    "sign": lambda x: float(x > 0) - float(x < 0),
    "ceil": math.ceil,
    "round": round,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": lambda x: math.asin(x) if x <= 1 else math.nan,
    "acos": lambda x: math.acos(x) if x <= 1 else math.nan,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "asinh": math.asinh,
    "acosh": lambda x: math.acosh(x) if x >= 1 else math.nan,
    "atanh": lambda x: math.atanh(x) if x < 1 else math.nan,
    "mod": lambda x, y: x % y,
    "fmod": math.fmod,
    "is_nan": math.isnan,
    "is_inf": math.isinf,
    "bitwise_and": lambda x, y: int(x) & int(y),
    "bitwise_or": lambda x, y: int(x) | int(y),
    "bitwise_xor": lambda x, y: int(x) ^ int(y),
    "bitwise_not": lambda x: ~int(x),
    "shift_left": lambda x, y: int(x) << int(y),
    "shift_right": lambda x, y: int(x) >> int(y),
    "gate": FUNCTIONS_OF_FLOATS["gate"],
    "match": FUNCTIONS_OF_FLOATS["match"],
    "random_bits": lambda x, y, z: float(FUNCTIONS_OF_FLOATS["random_bits"](x, y, z, 5.0)),
    "to_nearest": lambda x: FUNCTIONS_OF_FLOATS["to_nearest"](x, 11.0, -14.0, 65504.0, 1.0),
    "drawn": lambda x: FUNCTIONS_OF_FLOATS["drawn"](x, 11.0, -14.0, 65504.0, 1.0),
    "by_word": lambda x, word: FUNCTIONS_OF_FLOATS["by_word"](x, word, 11.0, -14.0, 65504.0, 1.0),
    "stochastic": lambda *xs: FUNCTIONS_OF_FLOATS["stochastic"](
        *xs, 5.0, 11.0, -14.0, 65504.0, 1.0
    ),
    "to_code": lambda x: FUNCTIONS_OF_FLOATS["to_code"](x, 5.0, 1.0),
    "from_code": lambda x: FUNCTIONS_OF_FLOATS["from_code"](x, 5.0, 1.0),
    "packed_mul": lambda *xs: FUNCTIONS_OF_FLOATS["packed_mul"](*xs, 4.0),
}


def edges(dtype) -> np.ndarray:
    limits = float_limits(np.dtype(dtype))
    plain = [0, -0.0, 1, -1, 2, 0.5, -0.5, 3, 100, -100, 88, 89, -88, -89, -104, 1e4, 6e4, -6e4]
    small = [1e-3, 1e-8, 6e-5, -6e-5, limits.smallest_normal, limits.smallest_subnormal]
    return np.array([*plain, *small, limits.largest, np.inf, -np.inf, np.nan]).astype(dtype)


def operands(dtype, arity: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    # Of five operands there are millions of edges.
    at_edges = np.meshgrid(*[edges(dtype)[:: 1 if i < 3 else 9] for i in range(arity)])
    with np.errstate(all="ignore"):
        wide = np.exp(rng.normal(size=(arity, 4000)) * 10) * rng.choice([-1, 1], (arity, 4000))
        near = rng.normal(size=(arity, 4000)) * rng.choice([1, 10, 1e-3], (arity, 4000))
        random = np.concatenate([wide, near, 1 + near * 1e-3], 1).astype(dtype)
    return [np.concatenate([e.ravel(), r]) for e, r in zip(at_edges, random, strict=True)]


def operands_of(name: str, dtype) -> list[np.ndarray]:
    if name != "select":
        return operands(dtype, SCALAR_FUNCTIONS[name].arity)
    a, b = operands(dtype, 2)
    return [np.arange(a.size) % 3 == 0, a, b]


def test_the_table_has_a_meaning_for_every_function():
    assert list(MEANING) == list(SCALAR_FUNCTIONS)


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_in_float64_a_function_equals_that_of_python(name: str):
    rng = np.random.default_rng(3)
    function = SCALAR_FUNCTIONS[name]
    arrays = [rng.uniform(0.1, 3, 50) for _ in range(function.arity)]
    if name in (
        "leaky_relu",
        "clip",
        "relu",
        "abs",
        "sigmoid",
        "tanh",
        "floor",
        "sign",
        "softplus",
    ):
        arrays[0] -= 1.5
    got = function.apply(PARAMETERS.get(name, ()), *arrays)
    need = [MEANING[name](*row) for row in zip(*arrays, strict=True)]
    np.testing.assert_allclose(got.astype(float), need, rtol=1e-14)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_no_function_leaves_its_bound(name: str, dtype):
    arrays = operands_of(name, dtype)
    parameters = PARAMETERS.get(name, ())
    got = SCALAR_FUNCTIONS[name].apply(parameters, *arrays)
    shape = got.shape
    structure = Structure(
        broadcast_space((shape,) * len(arrays), shape), Body(name, None, parameters)
    )
    value, bound = evaluate_structure(structure, arrays, got.dtype, shape)
    worst = worst_of(got, value, bound)
    assert worst.ratio <= 1, (str(worst), [a[worst.index] for a in arrays])


@pytest.mark.parametrize("name", ["exp", "add", "sigmoid", "power"])
def test_a_bound_finds_an_error_of_a_few_units(name: str):
    arrays = [np.linspace(0.5, 2, 64, dtype=np.float32)] * SCALAR_FUNCTIONS[name].arity
    parameters = PARAMETERS.get(name, ())
    got = SCALAR_FUNCTIONS[name].apply(parameters, *arrays) * np.float32(1 + 2.0**-19)
    shape = got.shape
    structure = Structure(
        broadcast_space((shape,) * len(arrays), shape), Body(name, None, parameters)
    )
    assert worst_of(got, *evaluate_structure(structure, arrays, got.dtype, shape)).ratio > 1


@pytest.mark.parametrize("dtype", FLOATS[:3], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_results_do_not_depend_on_where_they_are_written(name: str, dtype):
    arrays = operands_of(name, dtype)
    function, parameters = SCALAR_FUNCTIONS[name], PARAMETERS.get(name, ())
    alone = function.apply(parameters, *arrays)
    strided = np.zeros((alone.size, 3), alone.dtype)[:, 1]
    assert function.apply(parameters, *arrays, out=strided) is strided
    np.testing.assert_array_equal(strided.astype(float), alone.astype(float))
    for i, array in enumerate(arrays):
        if array.dtype == alone.dtype:
            own = [a.copy() for a in arrays]
            function.apply(parameters, *own, out=own[i])
            np.testing.assert_array_equal(own[i].astype(float), alone.astype(float))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_results_do_not_depend_on_the_stride_of_elements(name: str, dtype):
    function = scalar_function(name)
    parameters = PARAMETERS.get(name, ())
    for read, written, count in product((1, 2, 3, 4, 8), (1, 2, 4, 8), (1, 2, 5)):
        operands = [(np.arange(64) % 31 + 1 + i).astype(dtype) for i in range(function.arity)]
        if function.values:
            operands[0] = operands[0] % 2 == 0
        views = [a[: read * count : read] for a in operands]
        need = function.apply(parameters, *(v.copy() for v in views))
        out = np.zeros(64, need.dtype)[: written * count : written]
        function.apply(parameters, *views, out=out)
        np.testing.assert_allclose(out.astype(float), need.astype(float), rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_a_result_interleaved_with_its_operands_is_the_same_to_the_bit(name: str, dtype):
    function, parameters = SCALAR_FUNCTIONS[name], PARAMETERS.get(name, ())
    arrays = operands_of(name, dtype)
    alone = function.apply(parameters, *arrays)
    # As on tiles: the blocks of one variable are followed by those of the next.
    memory = np.zeros((alone.size, 16 * (len(arrays) + 1)), np.uint8)
    at = [memory[:, 16 * i :][:, : a.itemsize].view(a.dtype)[:, 0] for i, a in enumerate(arrays)]
    for place, array in zip(at, arrays, strict=True):
        place[...] = array
    among = memory[:, 16 * len(arrays) :][:, : alone.itemsize].view(alone.dtype)[:, 0]
    function.apply(parameters, *at, out=among)
    assert among.tobytes() == alone.tobytes()


@pytest.mark.parametrize("name", ["add", "mul", "relu", "exp", "identity", "sigmoid", "clip"])
def test_float32_into_float32_makes_no_copy(name: str):
    big = np.ones((2, 1 << 18), np.float32)
    function = SCALAR_FUNCTIONS[name]
    arrays = [big[:, ::2]] * function.arity
    out = np.empty_like(arrays[0])
    tracemalloc.start()
    function.apply(PARAMETERS.get(name, ()), *arrays, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out.nbytes // 4


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_functions_that_jump_or_flatten_are_right_at_the_edges(dtype):
    largest = float_limits(np.dtype(dtype)).largest
    tiny = float_limits(np.dtype(dtype)).smallest_subnormal
    x = np.array([-0.0, 0.0, tiny, -tiny, 0.5, -0.5, 2, -2, largest, -largest, np.inf, -np.inf])
    x = np.append(x, np.nan).astype(dtype)

    def of(name: str) -> np.ndarray:
        found = SCALAR_FUNCTIONS[name].apply((), x)
        assert found.dtype == x.dtype
        return found.astype(np.float64)

    floor = [-0.0, 0, 0, -1, 0, -1, 2, -2, largest, -largest, np.inf, -np.inf, np.nan]
    np.testing.assert_array_equal(of("floor"), floor)
    assert np.signbit(of("floor")[0])
    sign = [0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, np.nan]
    np.testing.assert_array_equal(of("sign"), sign)
    softplus = of("softplus")
    half = np.array(np.log(2)).astype(dtype).astype(np.float64)
    np.testing.assert_allclose(softplus[:4], half, rtol=2.0**-7)
    np.testing.assert_array_equal(softplus[8:], [largest, 0, np.inf, 0, np.nan])
    low = np.array([-10, -8]).astype(dtype)
    near = SCALAR_FUNCTIONS["softplus"].apply((), low).astype(np.float64)
    np.testing.assert_allclose(near, np.exp([-10, -8]), rtol=2.0**-7)


def test_whole_numbers_have_a_floor_and_a_sign():
    for dtype in (np.int8, np.int32, np.int64, np.uint8):
        x = np.array([-3, 0, 7]).astype(dtype)
        assert SCALAR_FUNCTIONS["floor"].apply((), x).tolist() == x.tolist()
        assert SCALAR_FUNCTIONS["sign"].apply((), x).tolist() == [
            int(v > 0) - int(v < 0) for v in x
        ]


def test_float16_is_computed_in_float32():
    half = np.array([60000, 1], np.float16)
    wide = np.empty(2, np.float32)
    SCALAR_FUNCTIONS["add"].apply((), half, half, out=wide)
    assert wide[0] == 120000
    assert SCALAR_FUNCTIONS["add"].apply((), half, half)[0] == np.inf


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int64"])
@pytest.mark.parametrize("parameter", [-1.0, 300.0, -(2.0**40), 2.0**63])
def test_a_parameter_beyond_the_width_of_integers_wraps(parameter: float, dtype: str):
    x = np.arange(-2, 4).astype(dtype)
    wide = x.astype(object)
    meant = {
        "scale": wide * int(parameter),
        "shift": wide + int(parameter),
        "leaky_relu": np.where(wide < 0, wide * int(parameter), wide),
    }
    for name, exact in meant.items():
        found = SCALAR_FUNCTIONS[name].apply((parameter,), x)
        assert np.array_equal(found, (exact % 2**64).astype(np.uint64).astype(dtype)), name


def test_steps_of_a_function_may_lie_on_any_of_its_operands():
    def kernel(parameters, arrays, out, dtype):
        np.add(arrays[0], arrays[1], out=out)
        np.multiply(out, arrays[1], out=out)

    function = ScalarFunction("sum_times", 2, kernel, ulps=1, steps=2)
    for at in range(2):
        x, y = np.arange(4, dtype=np.float32), np.full(4, 3, np.float32)
        out = (x, y)[at]
        assert function.apply((), x, y, out=out).tolist() == [9, 12, 15, 18]


def test_integers_wrap_and_divide_towards_zero():
    def ints(*values: int) -> np.ndarray:
        return np.array(values, np.int8)

    apply = {name: f.apply for name, f in SCALAR_FUNCTIONS.items()}
    assert apply["add"]((), ints(127), ints(1)).tolist() == [-128]
    assert apply["div"]((), ints(7, -7, 7, -7, 5), ints(2, 2, -2, -2, 0)).tolist() == [
        3,
        -3,
        -3,
        3,
        0,
    ]
    assert apply["pow"]((), ints(2, 2, -1, 1, 3), ints(6, 7, -3, -5, -1)).tolist() == [
        64,
        -128,
        -1,
        1,
        0,
    ]
    assert apply["clip"]((-1.5, math.inf), ints(-5, -1, 120)).tolist() == [-1, -1, 120]
    assert apply["scale"]((3.0,), ints(2, 100)).tolist() == [6, 44]
    assert apply["power"]((3.0,), ints(-2)).tolist() == [-8]
    assert apply["relu"]((), ints(-2, 2)).tolist() == [0, 2]
    assert apply["leaky_relu"]((0.5,), ints(-5, 3)).tolist() == [-2, 3]


def test_wrong_operands_and_unknown_functions_are_named():
    with pytest.raises(ValueError, match="add: 1 operands and 0 parameters; need 2 and 0"):
        SCALAR_FUNCTIONS["add"].apply((), np.ones(2))
    with pytest.raises(ValueError, match="no scalar function gelu; there are identity, bitcast"):
        scalar_function("gelu")


@pytest.mark.parametrize("name", ["gate", "match"])
@pytest.mark.parametrize("is_in_place", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "int8"])
def test_what_a_condition_keeps_keeps_its_bits_and_all_else_is_positive_zero(
    name: str, is_in_place: bool, dtype: str
):
    of = np.dtype(dtype)
    unsigned = np.dtype(f"u{of.itemsize}")
    # Of floats: zeros of both signs, the smallest denormal, NaN with payloads, ordinary numbers.
    high = 1 << 8 * of.itemsize - 1
    bits = [0, 1, high, high - 1, 2 * high - 1, 2 * high - 2, high >> 1, high | high >> 1]
    value = np.array(bits * 2, unsigned).view(of)
    kept = np.arange(16) < 8
    condition = [kept.astype(of)]
    if name == "match":
        condition.append(np.ones(16, of))
    # Every second element of a longer row, as on tiles.
    out = np.full(32, 3, of)[::2]
    if is_in_place:
        out[...] = value
        value = out
    SCALAR_FUNCTIONS[name].kernel((), (*condition, value), out, of)
    assert out.view(unsigned).tolist() == [*bits, *[0] * 8]
