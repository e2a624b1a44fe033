"""A variable that copies alone read is not written, and no result changes."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from abele.backends.host.fast import FastBinder
from abele.backends.host.fusion import FusedBinder
from abele.backends.host.passed_on import passed_on
from abele.backends.machine import Machine
from abele.backends.target import resolve_target

from ..exchange_text import SHIFT, exchange_module, relu, step

pytest.importorskip("numba")

X = {"x": np.arange(1, 25, dtype=np.float32)}
INPUT = step("read", 'exchange.input "x" -> @a : tensor<24xf32>', zone="external")
OUTPUT = step("write", 'exchange.output @e -> "y" : tensor<24xf32>', zone="external")


Copying = Callable[[str, str], str]


def move(source: str, target: str, moves: str = "") -> str:
    return step(f"{source}_{target}", f"exchange.move [@{source}] -> @{target} {moves}")


def shift(source: str, target: str) -> str:
    return move(source, target, f"moves [{SHIFT}]")


def computed(source: str, target: str) -> str:
    return step(f"relu_{target}", relu(source, target))


def program(*steps: str) -> ModuleOp:
    """A program that takes @a and gives @e."""
    return exchange_module("".join((INPUT, *steps, OUTPUT)))


def run(module: ModuleOp) -> Machine:
    """A machine that has run, with the results that all bytes would give."""
    target = resolve_target("tiny:4")
    whole, fused = (Machine(module, target, binder=each) for each in (FastBinder, FusedBinder))
    expected = whole.run(X)["y"]
    assert expected.any()
    for _ in range(2):
        assert fused.run(X)["y"].tolist() == expected.tolist()
    return fused


def held(machine: Machine, name: str) -> np.ndarray:
    """The bytes of a variable's blocks."""
    return machine.blocks[name].placed.memory


@pytest.mark.parametrize("first", [move, shift])
@pytest.mark.parametrize("second", [move, shift])
def test_a_copy_of_a_copy_reads_what_the_first_one_read(first: Copying, second: Copying):
    machine = run(
        program(computed("a", "b"), first("b", "c"), second("c", "d"), computed("d", "e"))
    )
    # Two moves, one after the other, are no move.
    assert held(machine, "c").any() == (first is second is shift)


def test_a_value_is_passed_on_through_several_variables():
    machine = run(program(computed("a", "b"), move("b", "c"), shift("c", "d"), move("d", "e")))
    assert not held(machine, "c").any()
    assert not held(machine, "d").any()


def test_a_copy_with_another_reader_is_made():
    body = move("c", "d"), computed("c", "e"), computed("d", "e")
    machine = run(program(computed("a", "b"), move("b", "c"), *body))
    assert held(machine, "c").any()


def test_a_copy_of_what_is_on_tiles_is_made():
    machine = run(program(move("a", "b"), move("b", "e")))
    assert held(machine, "b").any()


def test_what_is_read_later_is_not_overwritten():
    # Without the last copy, @d could take the bytes of @b.
    body = computed("a", "b"), move("b", "c"), computed("a", "d"), move("d", "w"), move("c", "e")
    machine = run(program(*body))
    assert not held(machine, "c").any()
    assert not np.shares_memory(held(machine, "b"), held(machine, "d"))


def test_a_copy_is_made_if_a_reader_could_not_be_bound():
    module = program(computed("a", "b"), move("b", "c"), move("c", "d"), computed("d", "e"))
    assert [*passed_on(module, "bcd", lambda _, target: target == "d")] == ["c"]
    assert not passed_on(module, "bcd", lambda _, target: False)
    assert not passed_on(module, "cd", lambda _, target: True)
