"""Functions of elements that tiles only store, which are computed in wider types."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowered_stablehlo import results_of, returned

from abele.backends.reference import run_reference
from abele.ir.text import parse_module
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools.driver.context import new_context


def computed(operation: str, kind: str, *inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What an operation computes of tensors of one type."""
    names = [f"%x{i}" for i in range(len(inputs))]
    tensor = f"tensor<{inputs[0].size}x{kind}>"
    arguments = ", ".join(f"{name}: {tensor}" for name in names)
    types = ", ".join([tensor] * len(names))
    context = new_context()
    module = parse_module(
        f"builtin.module {{ func.func @main({arguments}) -> {tensor} {{"
        f'%0 = "stablehlo.{operation}"({", ".join(names)}) : ({types}) -> {tensor} '
        f"func.return %0 : {tensor} }} }}",
        context,
    )
    ConvertStablehloToNn().apply(context, module)
    module.verify()
    given = {f"arg{i}": each for i, each in enumerate(inputs)}
    (found,) = run_reference(module, given).outputs.values()
    return found


WHOLE = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize(
    ("kind", "dtype", "bits"),
    [("i4", ml_dtypes.int4, 4), ("ui4", ml_dtypes.uint4, 4), ("i2", ml_dtypes.int2, 2)],
)
@pytest.mark.parametrize("operation", WHOLE)
def test_narrow_integers_wrap_around(operation: str, kind: str, dtype: Any, bits: int):
    least = 0 if kind.startswith("u") else -(1 << bits - 1)
    every = np.arange(least, least + (1 << bits))
    x, y = (each.ravel() for each in np.meshgrid(every, every))
    exact = (WHOLE[operation](x, y) - least) % (1 << bits) + least
    found = computed(operation, kind, x.astype(dtype), y.astype(dtype))
    assert found.dtype == dtype
    assert found.astype(np.int64).tolist() == exact.tolist()


def test_narrow_floats_are_rounded_once():
    x = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2)
    x = x[np.isfinite(x.astype(np.float32))]
    y = x[::-1].copy()
    with np.errstate(all="ignore"):
        exact = (x.astype(np.float32) * y.astype(np.float32)).astype(x.dtype)
    np.testing.assert_array_equal(computed("multiply", "f8E5M2", x, y), exact)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("i4", ml_dtypes.int4), ("f8E5M2", ml_dtypes.float8_e5m2)]
)
@pytest.mark.parametrize("merge", ["add", "maximum"])
def test_merged_elements_are_computed_wide(merge: str, kind: str, dtype: Any):
    x = np.array([3, 5, 7, 1, -8, 2]).astype(dtype)
    one = f"tensor<{kind}>"
    region = (
        f'({{ ^bb0(%a: {one}, %b: {one}): %c = "stablehlo.{merge}"(%a, %b) : ({one}, {one}) '
        f'-> {one} "stablehlo.return"(%c) : ({one}) -> () }})'
    )
    window = "window_dimensions = array<i64: 2>, window_strides = array<i64: 2>"
    results = (f"tensor<{kind}>", f"tensor<3x{kind}>")
    whole, pairs = results_of(
        f"""
        %0 = "stablehlo.reduce"(%x, %f) <{{dimensions = array<i64: 0>}}> {region} :
            (tensor<6x{kind}>, {one}) -> {results[0]}
        %1 = "stablehlo.reduce_window"(%x, %f) <{{{window}}}> {region} :
            (tensor<6x{kind}>, {one}) -> {results[1]}
        {returned(("0", "1"), results, "func.return")}""",
        f"%x: tensor<6x{kind}>, %f: {one}",
        ", ".join(results),
        *(x, np.array(-1).astype(dtype)),
    )
    function = np.sum if merge == "add" else np.max
    rows = x.astype(np.float64).reshape(3, 2)
    exact = np.array([function([*each, -1.0]) for each in (rows.ravel(), *rows)])
    if kind == "i4":
        exact = (exact + 8) % 16 - 8
    assert whole.dtype == pairs.dtype == dtype
    assert [whole, *pairs] == exact.astype(dtype).tolist()


def test_functions_of_the_highest_bit_see_the_bits_of_the_narrow_type():
    x = np.arange(-8, 8).astype(ml_dtypes.int4)
    bits = np.arange(-8, 8) & 15
    ones = np.bitwise_count(bits.astype(np.uint8))
    np.testing.assert_array_equal(computed("popcnt", "i4", x).astype(int), ones)
    zeros = 4 - np.array([int(each).bit_length() for each in bits])
    np.testing.assert_array_equal(computed("count_leading_zeros", "i4", x).astype(int), zeros)
    for places in (0, 1, 3, 4, -1):
        by = np.full(16, places).astype(ml_dtypes.int4)
        moved = bits >> places if 0 <= places < 4 else bits * 0
        found = computed("shift_right_logical", "i4", x, by).astype(int)
        np.testing.assert_array_equal(found, (moved + 8) % 16 - 8)
