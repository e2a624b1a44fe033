from __future__ import annotations

import numpy as np
import pytest
from lowered_stablehlo import applied, lowered, operations, results_of, returned, values_of

GIVEN = np.array([[3, -1, 4, 1, -5], [2, 6, -5, 3, 5]], np.float32)
X = "tensor<2x5xf32>"


def windows(region: str, pad: str, first: str = "0.0", window: str = "1, 5") -> str:
    """Windows of %x along its last axis, merged by a region on %a and %b."""
    return (
        f"""%z = "stablehlo.constant"() <{{value = dense<{first}> : tensor<f32>}}>
            : () -> tensor<f32>
        %0 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: {window}>,
            padding = dense<[[0, 0], {pad}]> : tensor<2x2xi64>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>): {region}"""
        + returned(["m"], ["tensor<f32>"])
        + f"}}) : ({X}, tensor<f32>) -> {X}\n"
        + returned(["0"], [X], "func.return")
    )


@pytest.mark.parametrize(
    ("name", "first", "function"),
    [
        ("add", "0.0", np.add),
        ("multiply", "1.0", np.multiply),
        ("maximum", "0xFF800000", np.maximum),
        ("minimum", "0x7F800000", np.minimum),
        ("add", "2.0", np.add),
    ],
)
@pytest.mark.parametrize(("pad", "back"), [("[4, 0]", False), ("[0, 4]", True)])
def test_windows_up_to_each_element_are_a_scan(
    name: str, first: str, function: np.ufunc, pad: str, back: bool
) -> None:
    region = applied(f"stablehlo.{name}", "ab", "tensor<f32>", "m")
    module = lowered(windows(region, pad, first), f"%x: {X}", X)
    assert "nn.scan" in operations(module)
    turned = GIVEN[:, :: -1 if back else 1]
    want = function.accumulate(turned, axis=1)[:, :: -1 if back else 1]
    (found,) = values_of(module, GIVEN)
    np.testing.assert_array_equal(found, want + (2 if first == "2.0" else 0))


@pytest.mark.parametrize(("pad", "back"), [("[4, 0]", False), ("[0, 4]", True)])
def test_any_other_region_is_merged_in_steps_that_double(pad: str, back: bool) -> None:
    region = applied("stablehlo.multiply", "ab", "tensor<f32>", "p")
    region += applied("stablehlo.add", "ab", "tensor<f32>", "s")
    region += applied("stablehlo.add", "ps", "tensor<f32>", "m")
    (found,) = results_of(windows(region, pad), f"%x: {X}", X, GIVEN)
    # a + b + a * b is (1 + a) * (1 + b) - 1.
    turned = GIVEN[:, :: -1 if back else 1]
    want = np.cumprod(1 + turned, axis=1)[:, :: -1 if back else 1] - 1
    np.testing.assert_array_equal(found, want)


def test_other_windows_are_no_scan() -> None:
    region = applied("stablehlo.add", "ab", "tensor<f32>", "m")
    module = lowered(windows(region, "[2, 0]", window="1, 3"), f"%x: {X}", X)
    assert "nn.scan" not in operations(module)
    (found,) = values_of(module, GIVEN)
    np.testing.assert_array_equal(found[:, -1], GIVEN[:, -3:].sum(1))
