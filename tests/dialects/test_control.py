import numpy as np
import pytest

from abele.dialects.levels import NN
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp, VerifyException
from abele.ir.verify import verify

from ..strategies import context

T = "tensor<4xf32>"


def module(body: str) -> str:
    return f"func.func @main(%x: {T}, %c: tensor<i1>) {{ {body} func.return }}"


VALID = [
    f"%0 = control.repeat 10 (%x) : ({T}) -> {T} {{ ^bb0(%y: {T}): control.yield %y : {T} }}",
    "control.repeat 3 () : () -> () { control.yield }",
    f"%0 = control.repeat 10 (%x) : ({T}) -> {T} {{ ^bb0(%y: {T}, %turn: tensor<i32>): "
    f"control.yield %y : {T} }}",
    f"%0 = control.repeat 10 runs (%x) : ({T}) -> {T} {{ ^bb0(%y: {T}, %turn: tensor<i32>): "
    f"control.yield %y : {T} }}",
    f"%0 = control.if %c : tensor<i1> -> ({T}) {{ control.yield %x : {T} }} else "
    f"{{ control.yield %x : {T} }}",
    f"%0 = control.while (%x) : ({T}) -> {T} {{ ^bb0(%y: {T}): control.condition %c : tensor<i1> "
    f"}} do {{ ^bb0(%y: {T}): control.yield %y : {T} }}",
]


@pytest.mark.parametrize("body", VALID)
def test_control_flow_prints_parses_and_verifies(body: str):
    made = context()
    first = parse_module(module(body), made)
    verify(first)
    text = print_module(first)
    assert print_module(parse_module(text, made)) == text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (VALID[0].replace("repeat 10", "repeat -1"), "repeat -1 times; need 0 or more"),
        (
            VALID[0].replace("control.yield %y : tensor<4xf32>", "control.yield"),
            "repeat body: yields",
        ),
        (
            VALID[4].replace("else { control.yield %x : tensor<4xf32> }", "else { control.yield }"),
            "else: yields",
        ),
        (VALID[5].replace("%c : tensor<i1>", "%x : tensor<4xf32>"), "need a single i1"),
        (VALID[0].replace("10 (", "10 runs ("), "iterations that are runs need a number"),
        (VALID[2].replace("tensor<i32>", "tensor<f32>"), "repeat body: takes"),
        (
            VALID[2].replace("repeat 10", "repeat 9876543210"),
            "9876543210 numbered iterations; need at",
        ),
        (VALID[2].replace("10 (", "10 turn @t ("), "is an argument and in a variable"),
        (
            VALID[0].replace(
                "^bb0(%y: tensor<4xf32>): control.yield %y",
                "^bb0(%y: tensor<2xf32>): control.yield %x",
            ),
            "repeat body: takes",
        ),
    ],
)
def test_control_flow_that_does_not_fit_is_named(body: str, message: str):
    broken = parse_module(module(body), context())
    with pytest.raises(VerifyException, match=message):
        verify(broken)


RUNS = """
nn.state @w : tensor<4xf32> = {w}
func.func @main() -> tensor<4xf32> {{
  {before}
  control.repeat 3 runs () : () -> () {{
  ^bb0(%turn: tensor<i32>):
    %old = nn.load @w : tensor<4xf32>
    nn.store %old, @w : tensor<4xf32>
    control.yield
  }}
  {after}
  func.return %x : tensor<4xf32>
}}
"""
CONSTANT = "%x = nn.constant {w} : tensor<4xf32>"
LOAD = "%x = nn.load @w : tensor<4xf32>"


def with_runs(before: str, after: str) -> ModuleOp:
    made = context()
    w = f'<"{made.blobs.add(np.zeros(4, np.float32)).digest}">'
    text = RUNS.format(before=before, after=after, w="{w}").replace("{w}", w)
    return parse_module(text, made)


def test_a_loop_of_runs_has_the_states_that_it_stores_to_for_itself():
    verify(with_runs(CONSTANT, ""), NN)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (LOAD, "", "stores to state 'w', which is loaded outside of it"),
        ("", LOAD, "stores to state 'w', which is loaded outside of it"),
        (CONSTANT, "nn.store %x, @w : tensor<4xf32>", "'w', which gets a value outside of it"),
    ],
)
def test_a_state_of_a_loop_of_runs_is_not_read_or_set_outside_of_it(
    before: str, after: str, message: str
):
    module = with_runs(before, after)
    with pytest.raises(VerifyException, match=message):
        verify(module, NN)
