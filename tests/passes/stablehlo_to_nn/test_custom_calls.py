from __future__ import annotations

import numpy as np
import pytest
from lowered_stablehlo import compared, lowered, operations, results_of, returned

from abele.ir.support.errors import InputError

X = "tensor<2x5xf32>"


def call(name: str, result: str = X) -> str:
    """A call of a function that the program only names."""
    return (
        f'%0 = "stablehlo.custom_call"(%x) <{{call_target_name = "{name}"}}> : ({X}) -> {result}\n'
        + returned(["0"], [result], "func.return")
    )


def test_where_devices_hold_a_tensor_changes_nothing() -> None:
    assert operations(lowered(call("Sharding"), f"%x: {X}", X)) == []


def test_other_calls_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="a call of @lapack_sgesdd is not supported"):
        lowered(call("lapack_sgesdd"), f"%x: {X}", X)


def approximate(direction: str, count: int = 2, axis: int = 1) -> str:
    """The call that JAX makes for some of the largest or smallest elements, with their indices."""
    made = f"tensor<2x{count}xf32>, tensor<2x{count}xi32>"
    return (
        f"""%i = "stablehlo.iota"() <{{iota_dimension = 1 : i64}}> : () -> tensor<2x5xi32>
        %f = "stablehlo.constant"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
        %n = "stablehlo.constant"() <{{value = dense<-1> : tensor<i32>}}> : () -> tensor<i32>
        %0, %1 = "stablehlo.custom_call"(%x, %i, %f, %n) <{{call_target_name = "ApproxTopK",
        called_computations = [@before]}}>
        {{mhlo.backend_config = {{reduction_dim = {axis} : i64}}}}
        : ({X}, tensor<2x5xi32>, tensor<f32>, tensor<i32>) -> ({made})\n"""
        + returned(["0", "1"], made.split(", "), "func.return")
        + "}\n func.func private @before(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, "
        "%d: tensor<i32>) -> tensor<i1> {\n"
        + compared("a", "b", direction, "f32", "t")
        + returned(["t"], ["tensor<i1>"], "func.return")
    )


@pytest.mark.parametrize("direction", ["GT", "LT", "GE", "LE"])
def test_approximate_largest_elements_are_the_largest(direction: str) -> None:
    given = np.array([[3, -1, 4, 1, -5], [2, 6, -5, 3, 5]], np.float32)
    outer = "tensor<2x2xf32>, tensor<2x2xi32>"
    values, indices = results_of(approximate(direction), f"%x: {X}", outer, given)
    order = np.argsort(given if direction[0] == "L" else -given, axis=1)[:, :2]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(given, order, 1))


def test_a_comparison_of_other_elements_is_refused() -> None:
    body = approximate("GT").replace("%d: tensor<i32>", "%d: tensor<f32>")
    with pytest.raises(InputError, match="@before is .* compares no two elements"):
        lowered(body, f"%x: {X}", "tensor<2x2xf32>, tensor<2x2xi32>")


@pytest.mark.parametrize(
    ("axis", "count", "why"),
    [(2, 2, "along axis 2"), (0, 2, "along axis 0"), (1, 9, "along axis 1")],
)
def test_calls_that_do_not_fit_are_refused(axis: int, count: int, why: str) -> None:
    outer = f"tensor<2x{count}xf32>, tensor<2x{count}xi32>"
    with pytest.raises(InputError, match=why):
        lowered(approximate("GT", count, axis), f"%x: {X}", outer)
