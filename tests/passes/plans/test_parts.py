"""Tests for passes/plans/parts.py."""

from __future__ import annotations

import numpy as np
import pytest
from some_tensors import module_of
from xdsl.dialects.builtin import ModuleOp

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.dialects.placement import Placement
from abele.ir.errors import InputError
from abele.passes.plan_splits import PlanSplits
from abele.passes.plans.parts import Part, Parts
from abele.passes.plans.planned import plan_of

from ...strategies import context

FOUR = "tiny:16,links.topology=ladder,links.chips=4"
MACHINE = resolve_target(FOUR)
T = "tensor<8x8xf32>"


def function(name: str, body: str, chips: str = "") -> str:
    where = f"attributes {{abele.chips = {chips}}}" if chips else ""
    return f"func.func @{name}(%x: {T}) -> {T} {where} {{ {body} }}\n"


def call(name: str, value: str = "%x") -> str:
    return f"%{name} = func.call @{name}({value}) : ({T}) -> {T} "


def layers(weight: str) -> str:
    return (
        f"%w = nn.load @{weight} : {T} %0 = nn.matmul %x, %w : ({T}, {T}) -> {T} "
        f"%1 = nn.relu %0 : ({T}) -> {T} func.return %1 : {T}"
    )


RETURN = f"func.return %x : {T}"
STATES = "".join(f"nn.state @{name} : {T} = <[{', '.join(['1.0'] * 64)}] : {T}>\n" for name in "wv")


def parsed(*functions: str) -> ModuleOp:
    return module_of(STATES + "".join(functions), context())


def parts_of(*functions: str) -> Parts:
    return Parts(parsed(*functions), MACHINE, Part(MACHINE))


def test_a_function_lies_where_it_says_and_the_others_on_all_chips():
    parts = parts_of(
        function("main", call("a") + RETURN),
        function("a", RETURN, "[1, 2, 2]"),
        function("b", RETURN),
    )
    assert parts.of("a").placement == Placement(1, 2, 2)
    assert parts.of("a").target.chips == 2
    assert parts.of("main").is_whole
    assert parts.of("b").is_whole
    assert [part.placement for part in parts.placed] == [Placement(1, 2, 2)]


def test_a_function_without_chips_lies_where_all_its_callers_lie():
    inner, shared = function("inner", RETURN), function("shared", RETURN)
    parts = parts_of(
        inner,
        shared,
        function("main", call("a") + call("b", "%a") + RETURN),
        function("a", call("inner") + call("shared") + RETURN, "[3, 1, 1]"),
        function("b", call("shared") + RETURN, "[2, 1, 1]"),
    )
    assert parts.of("inner").placement == Placement(3)
    assert parts.of("shared").is_whole


def test_functions_on_one_chip_are_planned_for_the_same_machine():
    parts = parts_of(
        function("a", RETURN, "[3, 1, 1]"),
        function("b", RETURN, "[1, 1, 7]"),
        function("c", RETURN, "[3, 1, 2]"),
    )
    assert parts.of("a").target == parts.of("b").target == MACHINE.one_chip
    assert parts.of("a") == parts.of("c") != parts.of("b")


@pytest.mark.parametrize(
    ("chips", "problem"),
    [
        (
            "[4, 1, 1]",
            r"@a at .*: abele.chips = \[4, 1, 1\]: chips up to 4; target tiny\S* has chips 0..3",
        ),
        ("[1, 2, 3]", r"chips up to 4; target tiny\S* has chips 0..3"),
        ("[1, 2]", r"need \[first chip, number of chips, chips apart\]"),
    ],
)
def test_chips_that_the_machine_does_not_have_are_refused(chips: str, problem: str):
    text = function("a", RETURN, "[0, 1, 1]").replace("[0, 1, 1]", chips)
    module = parsed(function("main", RETURN))
    broken = module_of(text, context())
    module.body.block.add_op(broken.body.block.first_op.clone())  # type: ignore[union-attr]
    with pytest.raises(InputError, match=problem):
        PlanSplits(target=FOUR).apply(context(), module)


def test_a_part_has_no_io_tiles():
    machine = resolve_target(f"{FOUR},io_tiles=1")
    whole, some = Part.of(machine), Part.of(machine, Placement(1, 2, 2))
    assert whole.target == machine.computing
    assert (whole.target.tiles, some.target.tiles) == (12, 6)
    assert whole.is_whole
    plan = Plan((6,), across=(2,), apart=3)
    assert str(whole.moved(plan).tiles) == "0..2, 4..6"
    assert str(some.moved(plan).tiles) == "4..6, 12..14"
    assert some.own(some.moved(plan)) == plan


@pytest.mark.parametrize("machine", [FOUR, "tiny:4"])
def test_plans_and_homes_on_io_tiles_are_refused(machine: str):
    body = layers("w").replace("%x, %w :", "%x, %w {plan = #abele.plan<split [1, 1, 1] at 3>} :")
    module = parsed(function("main", body))
    with pytest.raises(InputError, match=r"plan: tiles 3..3 in a row; programs may use 0..2"):
        PlanSplits(target=f"{machine},io_tiles=1").apply(context(), module)
    home = "{home = #abele.layout<[8 by 2, 8] (d0, d1) of [8, 8] at 2>}"
    module = parsed(function("main", layers("w")))
    state = next(op for op in module.body.block.ops if isinstance(op, nn.StateOp))
    other = module_of(f"nn.state @w : {T} = <[{', '.join(['1.0'] * 64)}] : {T}> {home}", context())
    state.attributes |= other.body.block.first_op.attributes  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"home on tiles 2..3, some of which are I/O tiles"):
        PlanSplits(target=f"{machine},io_tiles=1").apply(context(), module)


def test_a_machine_of_one_chip_has_chip_0():
    module = parsed(function("main", call("a") + RETURN), function("a", layers("w"), "[1, 1, 1]"))
    with pytest.raises(InputError, match=r"chips up to 1; target tiny\S* has one chip, 0"):
        PlanSplits(target="tiny:4").apply(context(), module)


def test_a_state_lies_with_the_first_placed_function_that_uses_it():
    parts = parts_of(
        function("main", f"%w = nn.load @w : {T} " + call("a") + call("b", "%a") + RETURN),
        function("a", layers("w"), "[3, 1, 1]"),
        function("b", f"nn.store %x, @w : {T} {layers('v')}", "[2, 1, 1]"),
    )
    assert parts.owners["w"].placement == Placement(3)
    assert parts.owners["v"].placement == Placement(2)


def test_a_state_that_a_placed_function_is_given_lies_there():
    taken = function("a", RETURN, "[2, 1, 1]").replace(f"%x: {T}", f"%x: {T}, %w: {T}")
    calls = f"%w = nn.load @w : {T} %a = func.call @a(%x, %w) : ({T}, {T}) -> {T} {RETURN}"
    assert parts_of(function("main", calls), taken).owners["w"].placement == Placement(2)


def test_a_state_with_a_home_elsewhere_is_brought():
    home = "{home = #abele.layout<[8 by 4, 8] (d0, d1) of [8, 8]>}"
    module = parsed(function("main", call("a") + RETURN), function("a", layers("w"), "[3, 1, 1]"))
    state = next(op for op in module.body.block.ops if isinstance(op, nn.StateOp))
    other = module_of(f"nn.state @w : {T} = <[{', '.join(['1.0'] * 64)}] : {T}> {home}", context())
    state.attributes |= other.body.block.first_op.attributes  # type: ignore[union-attr]
    assert Parts(module, MACHINE, Part(MACHINE)).owners["w"].is_whole
    PlanSplits(target=FOUR).apply(context(), module)
    assert all(plan_of(op).first_tile >= 12 for op in module.walk() if "plan" in op.attributes)


def test_a_plan_on_other_chips_than_those_of_its_function_is_refused():
    body = layers("w").replace("%x, %w :", "%x, %w {plan = #abele.plan<split [2, 1, 1] at 4>} :")
    module = parsed(function("main", call("a") + RETURN), function("a", body, "[2, 1, 1]"))
    with pytest.raises(InputError, match=r"plan: tiles 4..5; chips \[2, 1, 1\] have 8..11"):
        PlanSplits(target=FOUR).apply(context(), module)


Decided = tuple[tuple[int, ...], str, list[int]]
"""What a plan decides: its split, its method, and the tile of each cell."""


def decided(plan: Plan | None) -> list[Decided]:
    if plan is None:
        return []
    tiles = plan.tiles.of(np.arange(plan.tiles.count)).tolist()
    return [(plan.split, plan.method, tiles), *decided(plan.combine)]


def plans(text: str, target: str) -> list[list[Decided]]:
    """The plans of the functions but @main, moved to the first chips."""
    module = parsed(function("main", call("a") + call("b", "%a") + "func.return %b : " + T), text)
    PlanSplits(target=target).apply(context(), module)
    machine = resolve_target(target)
    parts = Parts(module, machine, Part(machine))
    planned = (op for op in module.walk() if "plan" in op.attributes)
    return [decided(parts.around(op).own(plan_of(op))) for op in planned]


@pytest.mark.parametrize("chips", ["[0, 1, 1]", "[3, 1, 1]", "[0, 2, 2]", "[1, 2, 2]", "[0, 4, 1]"])
def test_functions_have_the_plans_of_a_program_on_their_chips_only(chips: str):
    count = int(chips[4])
    alone = (
        "tiny:4" if count == 1 else f"tiny:{4 * count},links.topology=ladder,links.chips={count}"
    )
    every = f"[0, {count}, 1]"

    def text(where: str) -> str:
        return function("a", layers("w"), where) + function("b", layers("v"), where)

    assert plans(text(chips), FOUR) == plans(text(every), alone)
