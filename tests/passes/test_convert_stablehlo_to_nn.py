import numpy as np
import pytest
from lowered_stablehlo import number, results_of

from abele.ir.support.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools.driver.context import new_context


def lowered(body: str, *, arguments: str, result: str, more: str = "") -> str:
    """The operations of @main after the pass, without their locations."""
    context = new_context()
    module = parse_module(
        f"builtin.module {{ func.func @main({arguments}) -> {result} {{ {body} }} {more} }}",
        context,
    )
    ConvertStablehloToNn().apply(context, module)
    module.verify()
    lines = print_module(module, locations=False, numbers=8).split("\n")
    return "\n".join(line.strip() for line in lines[2:-3])


def short(text: str) -> list[str]:
    """The lines of a program without the types."""
    return [line.split(" : ")[0] for line in text.split("\n")]


def test_before_and_after():
    body = """
        %0 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}>
            : (tensor<f32>) -> tensor<2x3xf32>
        %2 = "stablehlo.compare"(%x, %1) <{comparison_direction =
            #stablehlo<comparison_direction GT>}> : (tensor<2x3xf32>, tensor<2x3xf32>)
            -> tensor<2x3xi1>
        %3 = "stablehlo.select"(%2, %x, %1) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>)
            -> tensor<2x3xf32>
        %4 = "stablehlo.transpose"(%3) <{permutation = array<i64: 1, 0>}>
            : (tensor<2x3xf32>) -> tensor<3x2xf32>
        func.return %4 : tensor<3x2xf32>
    """
    found = lowered(body, arguments="%x: tensor<2x3xf32>", result="tensor<3x2xf32>")
    assert short(found) == [
        "%0 = nn.constant <[0.0]",
        "%1 = nn.expand %0 to [2, 3]",
        "%2 = nn.greater %x, %1",
        "%3 = nn.select %2, %x, %1",
        "%4 = nn.transpose %3 [1, 0]",
        "func.return %4",
    ]


CALLS = """
    func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.add"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
"""


def test_a_function_is_inlined_where_it_is_called():
    body = """
        %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
        %1 = func.call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
        func.return %1 : tensor<4xf32>
    """
    found = lowered(body, arguments="%x: tensor<4xf32>", result="tensor<4xf32>", more=CALLS)
    assert short(found) == [
        "%0 = nn.add %x, %x",
        "%1 = nn.add %0, %0",
        "func.return %1",
    ]


def test_a_function_that_calls_itself_is_refused():
    body = """
        %0 = func.call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
        func.return %0 : tensor<4xf32>
    """
    more = """
        func.func private @again(%a: tensor<4xf32>) -> tensor<4xf32> {
          %0 = func.call @again(%a) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %0 : tensor<4xf32>
        }
    """
    with pytest.raises(InputError, match="@again calls itself"):
        lowered(body, arguments="%x: tensor<4xf32>", result="tensor<4xf32>", more=more)


def test_a_composite_returns_what_its_function_does():
    body = """
        %0 = "stablehlo.composite"(%x) <{name = "a.b", decomposition = @twice}>
            : (tensor<4xf32>) -> tensor<4xi32>
        func.return %0 : tensor<4xi32>
    """
    with pytest.raises(InputError, match=r"@twice returns \(tensor<4xf32>\)"):
        lowered(body, arguments="%x: tensor<4xf32>", result="tensor<4xi32>", more=CALLS)


def test_a_pad_keeps_all_digits_of_its_number():
    # No float64 is this number.
    fill = 2**62 + 1
    body = f"""
        {number("f", str(fill), "i64")}
        %0 = "stablehlo.pad"(%x, %f) <{{edge_padding_low = array<i64: 1>,
            edge_padding_high = array<i64: 0>, interior_padding = array<i64: 0>}}>
            : (tensor<3xi64>, tensor<i64>) -> tensor<4xi64>
        %1 = "stablehlo.reduce_window"(%x, %f) <{{window_dimensions = array<i64: 2>,
            padding = dense<[[1, 0]]> : tensor<1x2xi64>}}> ({{
          ^bb0(%a: tensor<i64>, %b: tensor<i64>):
            %c = "stablehlo.minimum"(%a, %b) : (tensor<i64>, tensor<i64>) -> tensor<i64>
            "stablehlo.return"(%c) : (tensor<i64>) -> ()
        }}) : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
        func.return %0, %1 : tensor<4xi64>, tensor<3xi64>
    """
    x = np.array([2**63 - 2, 2**62 - 1, 2**63 - 3])
    padded, least = results_of(body, "%x: tensor<3xi64>", "tensor<4xi64>, tensor<3xi64>", x)
    assert padded.tolist() == [fill, *x.tolist()]
    assert least.tolist() == [fill, 2**62 - 1, 2**62 - 1]


def test_one_message_names_all_that_nothing_replaces():
    body = """
        %0 = "stablehlo.custom_call"(%x) <{call_target_name = "a"}>
            : (tensor<4xf32>) -> tensor<4xf32> loc("first")
        %1 = "stablehlo.custom_call"(%0) <{call_target_name = "b"}>
            : (tensor<4xf32>) -> tensor<4xf32> loc("second")
        %2 = "stablehlo.rng"(%s, %s, %n) <{rng_distribution =
            #stablehlo<rng_distribution UNIFORM>}>
            : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<4xi32> loc("third")
        func.return %1 : tensor<4xf32>
    """
    arguments = "%x: tensor<4xf32>, %s: tensor<i32>, %n: tensor<1xi64>"
    with pytest.raises(InputError) as caught:
        lowered(body, arguments=arguments, result="tensor<4xf32>")
    assert "2 operations are not supported: 2 times, first stablehlo.custom_call at first" in str(
        caught.value
    )
    assert "stablehlo.rng at third" in str(caught.value)


def constant(name: str, number: str, shape: str = "2x3") -> str:
    return f"""
        %{name}_ = "stablehlo.constant"() <{{value = dense<{number}> : tensor<f32>}}>
            : () -> tensor<f32>
        %{name} = "stablehlo.broadcast_in_dim"(%{name}_) <{{broadcast_dimensions = array<i64>}}>
            : (tensor<f32>) -> tensor<{shape}xf32>
    """


@pytest.mark.parametrize(
    ("operation", "number", "after"),
    [
        ("maximum", "0.0", ["%0 = nn.relu %x", "func.return %0"]),
        ("maximum", "0xFF800000", ["func.return %x"]),
        ("minimum", "0x7F800000", ["func.return %x"]),
    ],
)
def test_an_extreme_with_a_constant_is_a_simpler_one(operation, number, after):
    body = f"""
        {constant("c", number)}
        %0 = "stablehlo.{operation}"(%c, %x)
            : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        func.return %0 : tensor<2x3xf32>
    """
    assert short(lowered(body, arguments="%x: tensor<2x3xf32>", result="tensor<2x3xf32>")) == after


def sum_of(made: str, value: str) -> str:
    return f"""
        %{made}_zero = "stablehlo.constant"() <{{value = dense<0.0> : tensor<f32>}}>
            : () -> tensor<f32>
        %{made}_sum = "stablehlo.reduce"(%{value}, %{made}_zero)
            <{{dimensions = array<i64: 1>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
            "stablehlo.return"(%c) : (tensor<f32>) -> ()
        }}) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
        %{made}_column = "stablehlo.broadcast_in_dim"(%{made}_sum)
            <{{broadcast_dimensions = array<i64: 0>}}> : (tensor<2xf32>) -> tensor<2x1xf32>
        {constant(f"{made}_count", "3.0", "2x1")}
        %{made} = "stablehlo.divide"(%{made}_column, %{made}_count)
            : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    """


def test_a_mean_and_the_variance_around_it_are_moments():
    body = f"""
        {sum_of("mean", "x")}
        %wide = "stablehlo.broadcast_in_dim"(%mean) <{{broadcast_dimensions = array<i64: 0, 1>}}>
            : (tensor<2x1xf32>) -> tensor<2x3xf32>
        %centred = "stablehlo.subtract"(%x, %wide)
            : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        %square = "stablehlo.multiply"(%centred, %centred)
            : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        {sum_of("variance", "square")}
        func.return %centred, %variance : tensor<2x3xf32>, tensor<2x1xf32>
    """
    found = lowered(
        body, arguments="%x: tensor<2x3xf32>", result="(tensor<2x3xf32>, tensor<2x1xf32>)"
    )
    assert short(found) == [
        '%0, %1 = nn.summarize "moments" %x axes [1] keep_dims',
        "%2 = nn.expand %0 to [2, 3]",
        "%3 = nn.sub %x, %2",
        "func.return %3, %1",
    ]


def test_a_product_that_is_read_turned_is_computed_turned():
    body = """
        %0 = "stablehlo.dot_general"(%x, %y) <{dot_dimension_numbers = #stablehlo.dot<
            lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}>
            : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
        %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0>}>
            : (tensor<2x4xf32>) -> tensor<4x2xf32>
        func.return %1 : tensor<4x2xf32>
    """
    found = lowered(
        body, arguments="%x: tensor<2x3xf32>, %y: tensor<3x4xf32>", result="tensor<4x2xf32>"
    )
    assert "%0 = nn.matmul %y, %x transpose_lhs transpose_rhs" in short(found)
