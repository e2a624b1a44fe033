"""What OpCheck finds, and that it finds nothing where nothing is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp

from abele.backends.codelets.numerics import Placed
from abele.backends.evaluate.blocks import Blocks, holds_all, holds_once, read_blocks
from abele.backends.host.binders import best_binder
from abele.backends.host.judges import best_judge
from abele.backends.machine import DropMessage, FlipByte, Machine, Observer
from abele.backends.op_check import Finding, Judge, OpCheck, mismatch, moved_tensor, tile_of
from abele.backends.target import resolve_target
from abele.dialects.steps import Copy, Vertices
from abele.ir.geometry.blocks import scatter
from abele.ir.geometry.space import AxisMap, Dim, Space, identity_map

from ..ir.geometry.strategies import Cutting, cell_indices, tensors_and_cuttings
from ..strategies import Program, planned_programs
from .exchange_text import SHIFT, exchange_module, lowered, relu, step, variable

TINY = resolve_target("tiny")
WATCHED = best_binder(is_watched=True)


def checked(module: ModuleOp, *observers: Observer, faults: Sequence[FlipByte | DropMessage] = ()):
    """What a check finds. All judges find the same."""
    checks = [OpCheck(judge=judge) for judge in (Judge(), best_judge())]
    Machine(module, TINY, faults=faults, observers=[*observers, *checks], binder=WATCHED).run({})
    plain, fast = checks
    assert str(plain.first) == str(fast.first)
    assert plain.largest_ratio == fast.largest_ratio
    return fast


def found(module: ModuleOp, *observers: Observer, faults: Sequence[FlipByte | DropMessage] = ()):
    finding = checked(module, *observers, faults=faults).first
    assert isinstance(finding, Finding)
    return finding


class Spoil(Observer):
    """A codelet that gets one element of a variable wrong."""

    def __init__(self, name: str, tile: int, element: int, value: float) -> None:
        self.name, self.tile, self.element, self.value = name, tile, element, value

    def spoil(self, name: str, machine: Machine) -> None:
        if name == self.name:
            start = machine.variables[name].start + 4 * self.element
            machine.poke(self.tile, start, np.array([self.value], np.float32).view(np.uint8))

    def on_compute(self, op: Vertices, machine: Machine) -> None:
        self.spoil(op.destination, machine)

    def on_move(self, op: Copy, machine: Machine) -> None:
        self.spoil(op.destination, machine)


STEPS = step("one", relu("w", "a")) + step(
    "two", f"exchange.move [@a] -> @b moves [{SHIFT}]", relu("b", "c")
)


def test_a_right_program_passes():
    check = checked(exchange_module(STEPS))
    assert check.first is None
    assert check.checked == 3
    assert check.largest_ratio <= 1


def test_a_wrong_value_is_found_with_its_place():
    finding = found(exchange_module(STEPS), Spoil("c", 3, 2, 5.5))
    assert (finding.kind, finding.op, finding.variable) == ("value", "exchange.compute", "c")
    assert (finding.origin, finding.superstep) == ("c/relu", "two")
    assert (finding.tile, finding.index, finding.actual) == (3, (20,), 5.5)
    # Element 20 came from element 14, whose value is 2.
    assert finding.expected == 2
    assert finding.ratio > 1
    assert "c/relu in superstep @two: @c" in str(finding)
    assert "element [20] on tile 3 is 5.5; need 2.0" in str(finding)


def test_what_a_move_has_brought_is_known_for_its_superstep_only():
    one = step("one", "exchange.move [@w] -> @b", relu("w", "a"))
    moved = exchange_module(one + step("two", relu("b", "c")))
    flip = FlipByte("b", 2, 3, 0x40, when="one")
    assert checked(moved, faults=[flip]).first is None
    read = []

    def reading(blocks: Blocks) -> np.ndarray:
        read.append(blocks.placed.address)
        return read_blocks(blocks)

    module = exchange_module(STEPS)
    with mock.patch("abele.backends.op_check.read_blocks", reading):
        machine = Machine(module, TINY, observers=[OpCheck()], binder=WATCHED)
        machine.run({})
    starts = {name: machine.variables[name].start for name in "wabc"}
    assert [read.count(starts[name]) for name in "wabc"] == [1, 2, 0, 1]


def test_the_first_wrong_operation_is_named():
    assert found(exchange_module(STEPS), Spoil("c", 0, 0, 9), Spoil("a", 1, 0, 9)).variable == "a"


def test_later_operations_are_checked_against_the_values_they_received():
    """A wrong value that goes on is the fault of one operation only."""
    check = checked(exchange_module(STEPS), Spoil("a", 2, 0, 7))
    assert check.first is not None
    assert check.first.variable == "a"
    assert check.largest_ratio > 1
    quiet = checked(exchange_module(STEPS), faults=[FlipByte("a", 2, 3, 0x40, when="one")])
    assert quiet.first is None


def test_a_move_is_held_to_the_bits():
    finding = found(exchange_module(STEPS), Spoil("b", 2, 1, -0.0))
    assert (finding.kind, finding.variable, finding.tile, finding.index) == ("move", "b", 2, (13,))
    padding = found(exchange_module(STEPS), Spoil("b", 0, 1, 1e-30))
    assert (padding.tile, padding.actual, padding.expected) == (0, np.float32(1e-30), 0)


def test_a_lost_message_is_found():
    finding = found(exchange_module(STEPS), faults=[DropMessage("two", 2, 3)])
    assert (finding.kind, finding.superstep, finding.tile) == ("move", "two", 3)


def test_moves_of_a_superstep_without_vertices_are_checked():
    module = exchange_module(step("one", "exchange.move [@w] -> @a"))
    assert checked(module).checked == 1
    assert found(module, Spoil("a", 1, 1, 3)).kind == "move"


def test_replicas_that_disagree_are_found():
    """One of four tiles has a wrong replica: whoever reads it received no one tensor."""
    more = variable("r", 200, "<[4 by 4, 24] (d1) of [24]>")
    more += "exchange.variable @s at 304 : tensor<4xf32> layout <[4 by 4] (d0) of [4]>"
    total = (
        "exchange.compute space <[j = 4, i = 24 reduction] (i) of [24] -> (j) of [4]> "
        "body <identity sum> plan <split [4, 1]> reads [@r] writes @s"
    )
    body = step("one", "exchange.move [@w] -> @r") + step("mid", relu("w", "a"))
    module = exchange_module(body + step("two", total), more)
    assert checked(module).first is None
    finding = found(module, faults=[FlipByte("r", 2, 4 * 10, when="mid")])
    assert (finding.kind, finding.variable, finding.superstep) == ("operand", "r", "two")
    assert (finding.tile, finding.index) == (2, (10,))


def test_tensors_without_elements_hold_nothing_that_could_disagree():
    """Their blocks may lie where others have bytes: here, those of the state @w."""
    more = "".join(
        f"exchange.variable @{name} at 0 : tensor<0xf32> layout <[] (0) of [0]>\n" for name in "no"
    )
    nothing = (
        "exchange.compute space <[i = 0] (i) of [0] -> (i) of [0]> body <relu> plan <split [1]> "
        "reads [@n] writes @o"
    )
    assert checked(exchange_module(step("one", nothing), more)).first is None


@given(planned_programs())
@settings(max_examples=20)
def test_random_programs_pass(program: Program):
    check = OpCheck()
    module = lowered(program)
    target = resolve_target(program.target)
    Machine(module, target, observers=[check], binder=WATCHED).run(program.inputs)
    assert check.first is None
    assert check.checked == sum(isinstance(o, Copy | Vertices) for o in module.walk())


# Blocks and tensors


def blocks_with(dense: np.ndarray, cutting: Cutting) -> Blocks:
    layout = cutting.layout()
    memory = np.zeros((layout.tiles.end, 4 * layout.block_elements), np.uint8)
    scatter(dense, memory, 0, layout)
    return Blocks(Placed(memory, 0, dense.dtype), layout)


@given(tensors_and_cuttings())
@settings(max_examples=50)
def test_a_changed_block_is_found_where_it_is(given_: tuple[np.ndarray, Cutting]):
    dense, cutting = given_
    blocks = blocks_with(dense, cutting)
    assert mismatch(blocks, dense) is None
    tile = blocks.layout.tiles.of(blocks.layout.cells - 1)
    blocks.placed.memory[tile].view(np.float32)[0] = -99
    difference = mismatch(blocks, dense)
    assert difference is not None
    assert (difference.tile, difference.actual) == (tile, -99)
    if min(difference.index, default=0) >= 0 and len(difference.index) == dense.ndim:
        first = [int(i[0]) for i in cell_indices(blocks.layout, blocks.layout.cells - 1)]
        if min(first, default=0) >= 0:
            assert list(difference.index) == first


@given(tensors_and_cuttings())
@settings(max_examples=50)
def test_blocks_that_hold_elements_once_hold_all_of_them_and_nothing_else(
    given_: tuple[np.ndarray, Cutting],
):
    dense, cutting = given_
    blocks, layout = blocks_with(dense, cutting), cutting.layout()
    cells = [cell_indices(layout, cell) for cell in range(layout.cells)]
    places = [(*map(int, at),) for axes in cells for at in product(*axes)]
    held = {at for at in places if min(at, default=0) >= 0}
    assert holds_all(layout) == (len(held) == dense.size)
    if holds_once(layout):
        assert len(places) == len(held) == dense.size
    there = np.zeros(dense.shape, bool)
    for at in held:
        there[at] = True
    np.testing.assert_array_equal(read_blocks(blocks), np.where(there, dense, 0))


def test_a_wrapped_window_that_skips_elements_is_read_in_the_order_of_the_elements():
    # The block holds elements 0, 2 and 1: the window has steps of two, and goes round.
    dims = Dim("y", 3), Dim("k", 1, "reduction")
    axis = AxisMap(3, ((0, 2), (1, 1)), outside="wrap")
    dense = np.array([1, 2, 3], np.float32)
    blocks = blocks_with(dense, Cutting(dims, (axis,), (1, 1), (0, 1), 0))
    np.testing.assert_array_equal(read_blocks(blocks), dense)


@given(tensors_and_cuttings(windows=False))
def test_the_tile_of_an_element_holds_it(given_: tuple[np.ndarray, Cutting]):
    dense, cutting = given_
    layout = cutting.layout()
    for index in np.ndindex(*dense.shape):
        cell = layout.tiles.cell_on(tile_of(layout, index))
        assert all(i in held for i, held in zip(index, cell_indices(layout, cell)))


def test_values_that_are_not_numbers_are_compared_by_their_bits():
    dense = np.array([np.nan, 0.0], np.float32)
    dims = (Dim("i", 2),)
    blocks = blocks_with(dense, Cutting(dims, identity_map((0,), (2,)).axes, (2,), (), 0))
    assert mismatch(blocks, dense) is None
    other = mismatch(blocks, np.array([np.nan, -0.0], np.float32))
    assert other is not None
    assert other.index == (1,)


def test_a_copy_without_moves_keeps_the_order():
    dense = np.arange(4, dtype=np.float32)
    dims = (Dim("i", 2), Dim("j", 2))
    blocks = blocks_with(
        dense.reshape(2, 2), Cutting(dims, identity_map((0, 1), (2, 2)).axes, (2, 1), (), 0)
    )
    np.testing.assert_array_equal(moved_tensor([dense], None, blocks), dense.reshape(2, 2))
    flip = Space(dims, (identity_map((1, 0), (2, 2)),), (identity_map((0, 1), (2, 2)),))
    np.testing.assert_array_equal(
        moved_tensor([dense.reshape(2, 2)], [flip], blocks), dense.reshape(2, 2).T
    )


def test_a_finding_of_an_unnamed_operation_names_its_kind():
    finding = Finding("operand", "exchange.compute", "x", None, "s", np.inf, 1, (2,), 1.0, 2.0, 0.0)
    assert str(finding).startswith("exchange.compute in superstep @s: @x: blocks of an operand")


@pytest.mark.parametrize("kind", ["operand", "result", "value", "move"])
def test_every_kind_of_finding_has_a_text(kind):
    finding = Finding(kind, "op", "x", "n", "s", 2.0, 1, (), 1.0, 2.0, 0.5)
    assert "element [] on tile 1" in str(finding)
