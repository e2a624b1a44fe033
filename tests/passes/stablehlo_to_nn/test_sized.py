from __future__ import annotations

import numpy as np
import pytest
from lowered_stablehlo import lowered, operations, results_of, returned, values_of

from abele.ir.support.errors import InputError
from abele.ir.upstream import VerifyException

GIVEN = np.arange(12, dtype=np.float32).reshape(4, 3)
X = "tensor<4x3xf32>"


def listed(name: str, values: str, type_: str = "2xi64") -> str:
    """A constant list."""
    return (
        f'%{name} = "stablehlo.constant"() <{{value = dense<{values}> : tensor<{type_}>}}> '
        f": () -> tensor<{type_}>\n"
    )


def main(body: str, type_: str) -> str:
    """A body that returns %0."""
    return body + returned(["0"], [type_], "func.return")


def test_a_static_result_says_its_shape() -> None:
    shape = "tensor<3xi64>"
    body = main(
        f"""%0 = "stablehlo.dynamic_broadcast_in_dim"(%x, %n) <{{broadcast_dimensions =
        array<i64: 1, 2>}}> : ({X}, {shape}) -> tensor<2x4x3xf32>\n""",
        "tensor<2x4x3xf32>",
    )
    found = results_of(body, f"%x: {X}, %n: {shape}", "tensor<2x4x3xf32>", GIVEN, [2, 4, 3])
    np.testing.assert_array_equal(found[0], np.broadcast_to(GIVEN, (2, 4, 3)))
    body = main(
        f'%0 = "stablehlo.dynamic_reshape"(%x, %n) : ({X}, tensor<1xi64>) -> tensor<12xf32>\n',
        "tensor<12xf32>",
    )
    found = results_of(body, f"%x: {X}, %n: tensor<1xi64>", "tensor<12xf32>", GIVEN, [12])
    np.testing.assert_array_equal(found[0], GIVEN.reshape(-1))
    body = main(
        """%0 = "stablehlo.dynamic_iota"(%n) <{iota_dimension = 1 : i64}> : (tensor<2xi64>) ->
        tensor<2x3xi32>\n""",
        "tensor<2x3xi32>",
    )
    found = results_of(body, "%n: tensor<2xi64>", "tensor<2x3xi32>", np.array([2, 3]))
    np.testing.assert_array_equal(found[0], [[0, 1, 2], [0, 1, 2]])


def test_a_shape_that_is_known_to_be_another_is_refused() -> None:
    body = listed("n", "13", "1xi64")
    body += f'%0 = "stablehlo.dynamic_reshape"(%x, %n) : ({X}, tensor<1xi64>) -> tensor<12xf32>\n'
    with pytest.raises(InputError, match=r"output_shape is \[13\], the result has shape \[12\]"):
        lowered(main(body, "tensor<12xf32>"), f"%x: {X}", "tensor<12xf32>")


PAD = f"""%0 = "stablehlo.dynamic_pad"(%x, %f, %a, %b, %c) : ({X}, tensor<f32>, tensor<2xi64>,
    tensor<2xi64>, tensor<2xi64>) -> tensor<6x5xf32>\n"""


def test_padding_must_be_known() -> None:
    lists = listed("a", "[1, 0]") + listed("b", "[1, 0]") + listed("c", "[0, 1]")
    outer = f"%x: {X}, %f: tensor<f32>"
    body = main(lists + PAD, "tensor<6x5xf32>")
    (found,) = results_of(body, outer, "tensor<6x5xf32>", GIVEN, np.float32(-1))
    want = np.full((6, 5), -1, np.float32)
    want[1:5, ::2] = GIVEN
    np.testing.assert_array_equal(found, want)
    free = "".join(f", %{name}: tensor<2xi64>" for name in "abc")
    with pytest.raises(InputError, match="edge_padding_low that only a run knows"):
        lowered(main(PAD, "tensor<6x5xf32>"), outer + free, "tensor<6x5xf32>")
    with pytest.raises(InputError, match="the result"):
        wrong = lists.replace("[0, 1]", "[1, 1]")
        lowered(main(wrong + PAD, "tensor<6x5xf32>"), outer, "tensor<6x5xf32>")


def cut(result: str) -> str:
    """A slice of %x from %a to %b by %c."""
    return f"""%0 = "stablehlo.real_dynamic_slice"(%x, %a, %b, %c) : ({X}, tensor<2xi64>,
        tensor<2xi64>, tensor<2xi64>) -> {result}\n"""


def test_a_slice_may_begin_anywhere() -> None:
    lists = listed("b", "[4, 3]") + listed("c", "[2, 1]")
    body = main(listed("a", "[1, 1]") + lists + cut("tensor<2x2xf32>"), "tensor<2x2xf32>")
    (found,) = results_of(body, f"%x: {X}", "tensor<2x2xf32>", GIVEN)
    np.testing.assert_array_equal(found, GIVEN[1:4:2, 1:3])
    free = f"%x: {X}, %a: tensor<2xi64>, %b: tensor<2xi64>"
    body = main(listed("c", "1") + cut("tensor<2x2xf32>"), "tensor<2x2xf32>")
    module = lowered(body, free, "tensor<2x2xf32>")
    (found,) = values_of(module, GIVEN, np.array([2, 1]), np.array([4, 3]))
    np.testing.assert_array_equal(found, GIVEN[2:4, 1:3])
    body = main(listed("c", "[2, 1]") + cut("tensor<2x2xf32>"), "tensor<2x2xf32>")
    with pytest.raises(InputError, match="strides from a start that only a run knows"):
        lowered(body, free, "tensor<2x2xf32>")


def test_sizes_of_slices_are_constants() -> None:
    body = main(
        listed("n", "[1, 3]")
        + f"""%0 = "stablehlo.dynamic_gather"(%x, %i, %n) <{{dimension_numbers = #stablehlo.gather<
        offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1
        >}}> : ({X}, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>\n""",
        "tensor<2x3xf32>",
    )
    outer = f"%x: {X}, %i: tensor<2x1xi32>"
    (found,) = results_of(body, outer, "tensor<2x3xf32>", GIVEN, np.array([[3], [1]], np.int32))
    np.testing.assert_array_equal(found, GIVEN[[3, 1]])


def test_the_size_of_an_axis_is_a_constant() -> None:
    body = main(
        f"""%0 = "stablehlo.get_dimension_size"(%x) <{{dimension = 1 : i64}}> : ({X}) ->
        tensor<i32>\n""",
        "tensor<i32>",
    )
    module = lowered(body, f"%x: {X}", "tensor<i32>")
    assert operations(module) == ["nn.constant"]
    assert int(values_of(module, GIVEN)[0]) == 3


def convolved(padding: str, attributes: str = "feature_group_count = 1 : i64") -> str:
    types = f"(tensor<1x1x4xf32>, tensor<1x1x3xf32>, tensor<{padding}>) -> tensor<1x1x4xf32>"
    return main(
        listed("p", "1", padding)
        + f"""%0 = "stablehlo.dynamic_conv"(%x, %w, %p) <{{batch_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>,
        {attributes}}}> : {types}\n""",
        "tensor<1x1x4xf32>",
    )


CONVOLVED = "%x: tensor<1x1x4xf32>, %w: tensor<1x1x3xf32>", "tensor<1x1x4xf32>"


def test_the_padding_of_a_convolution_is_a_constant() -> None:
    image, kernel = np.arange(4, dtype=np.float32), np.array([1, 2, 3], np.float32)
    (found,) = results_of(
        convolved("1x2xi64"), *CONVOLVED, image.reshape(1, 1, 4), kernel.reshape(1, 1, 3)
    )
    np.testing.assert_array_equal(found.reshape(-1), np.correlate(image, kernel, "same"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (convolved("2x1xi64"), r"padding has shape \[2, 1\]; need \[1, 2\]"),
        (convolved("1x2xi64", "feature_group_count = 0 : i64"), "0 groups of features"),
        (
            convolved(
                "1x2xi64",
                "feature_group_count = 1 : i64, window_strides = array<i64: 0>",
            ),
            r"window_strides \[0\]; need 1 or more",
        ),
    ],
)
def test_a_convolution_with_a_mistake_is_refused(body: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        lowered(body, *CONVOLVED)
