"""Tests for passes/sink_loads.py."""

import pytest
from some_tensors import context, counting, module_of

from abele.ir.text import print_module
from abele.ir.verify import verify
from abele.passes.eliminate_dead import EliminateDead
from abele.passes.sink_loads import SinkLoads

W = counting((4, 4))
T = "tensor<4x4xf32>"
STATES = f"nn.state @w : {T} = {{w}} nn.state @v : {T} = {{w}}"


def check(before: str, after: str) -> None:
    """Loads and constants without readers are gone afterwards."""
    ctx = context()
    module = module_of(before, ctx, w=W)
    for each in (SinkLoads(), EliminateDead()):
        each.apply(ctx, module)
    verify(module)
    wanted = module_of(after, ctx, w=W)
    EliminateDead().apply(ctx, wanted)
    assert print_module(module, locations=False) == print_module(wanted, locations=False)


def stays(text: str) -> None:
    check(text, text)


def layer(given: str, body: str, attributes: str = "") -> str:
    return f"""
    func.func @layer({given}) -> {T} {attributes} {{
      {body}
      %0 = nn.matmul %x, %w : ({T}, {T}) -> {T}
      func.return %0 : {T}
    }}"""


def main(body: str) -> str:
    return f"func.func @main(%a: {T}) -> {T} {{ {body} }}"


LOAD, LOAD_OTHER = (f"%{name} = nn.load @{name} : {T}" for name in "wv")
CONSTANT = f"%w = nn.constant {{w}} : {T}"
GIVEN, INSIDE = layer(f"%x: {T}, %w: {T}", ""), layer(f"%x: {T}", LOAD)
LOOP = (
    f"%b = control.repeat 3 (%a) : ({T}) -> ({T}) {{ ^bb0(%c: {T}): "
    "CALL control.yield %d : TYPE } func.return %b : TYPE"
).replace("TYPE", T)


def call(*values: str) -> str:
    types = ", ".join([T] * len(values))
    return f"%d = func.call @layer({', '.join(values)}) : ({types}) -> {T}"


def test_a_function_loads_the_state_that_all_calls_give_it():
    check(
        STATES + main(LOAD + LOOP.replace("CALL", call("%c", "%w"))) + GIVEN,
        STATES + main(LOOP.replace("CALL", call("%c"))) + INSIDE,
    )


def test_a_function_that_hands_a_state_on_loads_it_in_neither():
    outer = (
        f"func.func @outer(%x: {T}, %w: {T}) -> {T} {{ {call('%x', '%w')} func.return %d : {T} }}"
    )
    calls = f"{LOAD} %b = func.call @outer(%a, %w) : ({T}, {T}) -> {T} func.return %b : {T}"
    after = outer.replace(f", %w: {T}", "").replace(call("%x", "%w"), call("%x"))
    check(
        STATES + GIVEN + outer + main(calls),
        STATES
        + INSIDE
        + after
        + main(f"%b = func.call @outer(%a) : ({T}) -> {T} func.return %b : {T}"),
    )


@pytest.mark.parametrize(
    "second",
    [f"{LOAD_OTHER} %e = func.call @layer(%d, %v)", "%e = func.call @layer(%d, %a)"],
)
def test_a_parameter_that_gets_different_values_stays(second: str):
    end = f" : ({T}, {T}) -> {T} func.return %e : {T}"
    stays(STATES + main(LOAD + call("%a", "%w") + second + end) + GIVEN)


def test_a_constant_with_no_other_reader_moves_into_the_function():
    check(
        main(CONSTANT + call("%a", "%w") + f"func.return %d : {T}") + GIVEN,
        main(call("%a") + f"func.return %d : {T}") + layer(f"%x: {T}", CONSTANT),
    )


OTHER = CONSTANT + call("%a", "%w") + f"%f = nn.add %d, %w : ({T}, {T}) -> {T} func.return %f : {T}"


def test_a_constant_with_another_reader_stays():
    stays(main(OTHER) + GIVEN)


def test_a_function_on_chips_of_its_own_gets_a_constant_of_its_own():
    where = "attributes {abele.chips = [1, 1, 1]}"
    check(
        main(OTHER) + layer(f"%x: {T}, %w: {T}", "", where),
        main(OTHER.replace(call("%a", "%w"), call("%a"))) + layer(f"%x: {T}", CONSTANT, where),
    )


def test_a_loop_of_runs_keeps_its_loads():
    """A load there gives what the state held when the iteration began."""
    loop = LOOP.replace("repeat 3", "repeat 3 runs").replace(
        f"%c: {T})", f"%c: {T}, %turn: tensor<i32>)"
    )
    stays(STATES + main(loop.replace("CALL", LOAD + call("%c", "%w"))) + GIVEN)


def test_the_names_of_the_other_parameters_stay():
    named = "attributes {{arg_names = [{}]}}".format
    check(
        STATES
        + main(LOAD + call("%w", "%a") + f"func.return %d : {T}")
        + layer(f"%w: {T}, %x: {T}", "", named('"w", "x"')),
        STATES + main(call("%a") + f"func.return %d : {T}") + layer(f"%x: {T}", LOAD, named('"x"')),
    )
