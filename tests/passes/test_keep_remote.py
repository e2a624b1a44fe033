"""States in remote memory are loaded late and stored early, and programs compute the same."""

import numpy as np
import pytest
from some_tensors import context, counting, module_of

from abele.backends.reference import run_reference
from abele.ir.errors import InputError
from abele.ir.text import print_module
from abele.ir.verify import verify
from abele.passes.keep_remote import KeepRemote

W = counting((4,))
T = "tensor<4xf32>"
TO = f"({T}) -> {T}"
PAIR = f"({T}, {T}) -> {T}"


def program(*body: str, home: str = ' {home = "remote"}') -> str:
    return (
        f"nn.state @w : {T} = {{w}}{home}\n"
        f"func.func @main(%x: {T}) -> {T} {{\n" + "\n".join(body) + "\n}"
    )


def kept(text: str, *states: str):
    ctx = context()
    module = module_of(text, ctx, w=W)
    KeepRemote(states).apply(ctx, module)
    verify(module)
    return module


def check(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """The pass makes one program from the other, leaves that one, and changes no value."""
    wanted = module_of(program(*after), context(), w=W)
    text = print_module(wanted, locations=False)
    assert print_module(kept(program(*before, home="")), locations=False) == text
    assert print_module(kept(program(*after)), locations=False) == text
    x = {"arg0": np.arange(4, dtype=np.float32)}
    old, new = (
        run_reference(module_of(program(*each), context(), w=W), x) for each in (before, after)
    )
    assert np.array_equal(old.outputs["out0"], new.outputs["out0"])
    assert np.array_equal(old.state["w"], new.state["w"])


LOAD = f"%w = nn.load @w : {T}"
TANH = f"%a = nn.tanh %x : {TO}"
ADD = f"%b = nn.add %a, %w : {PAIR}"
EXP = f"%c = nn.tanh %b : {TO}"
STORE = f"nn.store %b, @w : {T}"
RETURN = f"func.return %c : {T}"


def test_a_load_comes_late_and_a_store_early():
    check((LOAD, TANH, ADD, EXP, STORE, RETURN), (TANH, LOAD, ADD, STORE, EXP, RETURN))


def test_readers_after_a_long_wait_get_a_load_of_their_own():
    many = tuple(f"%{'bcdefg'[i + 1]} = nn.tanh %{'bcdefg'[i]} : {TO}" for i in range(5))
    last, end = f"%h = nn.mul %g, %w : {PAIR}", f"func.return %h : {T}"
    again = f"%w_1 = nn.load @w : {T}"
    check(
        (LOAD, TANH, ADD, *many, last, end),
        (TANH, LOAD, ADD, *many, again, last.replace("%w", "%w_1"), end),
    )


def test_all_loads_stay_before_the_store():
    # The multiplication wants the old value, so it is loaded before the store.
    mul = f"%d = nn.mul %c, %w : {PAIR}"
    more = tuple(f"%{'cef'[i + 1]} = nn.tanh %{'cef'[i]} : {TO}" for i in range(2))
    mul = mul.replace("%c", "%f")
    end = f"func.return %d : {T}"
    check(
        (LOAD, TANH, ADD, EXP, *more, mul, STORE, end),
        (
            *(TANH, LOAD, ADD, f"%w_1 = nn.load @w : {T}", STORE, EXP, *more),
            *(mul.replace("%w", "%w_1"), end),
        ),
    )


def test_a_reshape_of_a_load_moves_with_it():
    shape = f"%v = nn.reshape %w to [2, 2] : ({T}) -> tensor<2x2xf32>"
    other = f"%y = nn.reshape %a to [2, 2] : ({T}) -> tensor<2x2xf32>"
    two = "tensor<2x2xf32>"
    add = f"%b = nn.add %y, %v : ({two}, {two}) -> {two}"
    back = f"%c = nn.reshape %b to [4] : ({two}) -> {T}"
    check(
        (LOAD, shape, TANH, other, add, back, RETURN), (TANH, other, LOAD, shape, add, back, RETURN)
    )


def test_a_load_that_nothing_reads_stays():
    shape = f"%v = nn.reshape %w to [2, 2] : ({T}) -> tensor<2x2xf32>"
    body = (LOAD, shape, TANH, f"func.return %a : {T}")
    check(body, body)


def test_of_several_stores_none_moves():
    twice = (LOAD, TANH, ADD, STORE, EXP, f"nn.store %c, @w : {T}", RETURN)
    check(twice, (TANH, LOAD, *twice[2:]))


@pytest.mark.parametrize("states", [("w",), ("*",), ("w*",), ()])
def test_states_are_chosen_by_name(states: tuple[str, ...]):
    text = program(LOAD, TANH, ADD, EXP, RETURN, home="")
    assert 'home = "remote"' in print_module(kept(text, *states))


@pytest.mark.parametrize(
    ("name", "message"),
    [("v", "no state of that name"), ("optimizer", "need a step of training")],
)
def test_a_name_that_matches_no_state_is_refused(name: str, message: str):
    with pytest.raises(InputError, match=message):
        kept(program(LOAD, TANH, ADD, EXP, RETURN, home=""), name)
