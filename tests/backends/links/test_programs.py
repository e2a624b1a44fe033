"""Programs on several chips: prices of what travels between them, and equal results."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import ceil
from random import Random

import pytest
from lengths import lengths
from xdsl.dialects.builtin import ModuleOp

from abele.backends.faults import IndexFault
from abele.backends.prices.price import price
from abele.backends.target import Target, resolve_target
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.levels import PLANNED
from abele.ir.errors import DoesNotFit
from abele.ir.text import parse_module
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.decisions import lower
from abele.tools.testing.generators.program import Program
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.oracle.oracles import run

from ...strategies import context
from ..exchange_text import lowered

AT_ONCE = "tiny:8,links.topology=ladder,links.chips=2,links.first_word_ns=0"
TWO = resolve_target(AT_ONCE)

COPY = """
exchange.variable @x at 0 : tensor<64xf32> layout <[64 by 4] (d0) of [64]>
exchange.variable @y at 64 : tensor<64xf32> layout <[64 by 4{spread}] (d0) of [64]{there}>
exchange.variable @z at 128 : tensor<64xf32> layout <[3 by 3, 64] (d1) of [64] at 4>
func.func @main() {
  exchange.superstep @move { exchange.sync "{zone}" exchange.move [@x] -> @{to} }
  func.return
}
"""


def _copy(*, spread: str = "", there: str = "", to: str = "y", zone: str = "all") -> ModuleOp:
    text = COPY
    for name, value in (
        ("spread", spread),
        ("there", there),
        ("to", to),
        ("zone", zone),
    ):
        text = text.replace("{" + name + "}", value)
    return parse_module(text, context())


def _exchange(module: ModuleOp, target: Target = TWO) -> int:
    return price(module, target)[0].exchange_cycles


def _link_cycles(moved: int) -> int:
    return ceil(moved / 58.4e9 * TWO.clock_hz)


def test_a_copy_to_another_chip_waits_for_the_link():
    slow = resolve_target(f"{AT_ONCE},links.rung_gbytes=0.1")
    moved = _copy(there=" at 4")
    assert _exchange(moved, slow) == ceil(64 * 4 / 0.1e9 * slow.clock_hz)
    assert _exchange(moved) == _exchange(moved, resolve_target("tiny:8"))
    # Half of the elements stay on their chip.
    half = _copy(spread=" across 2", there=" apart 4")
    assert _exchange(half, slow) == ceil(32 * 4 / 0.1e9 * slow.clock_hz)


def test_the_first_word_takes_a_while_to_another_chip():
    moved = _copy(there=" at 4")
    late = resolve_target(AT_ONCE.replace("first_word_ns=0", "first_word_ns=1000"))
    busy = 64 * 4 / 58.4e9 + 1000e-9
    assert _exchange(moved, late) == ceil(busy * late.clock_hz)
    assert _exchange(_copy(), late) == _exchange(_copy())


def test_words_that_several_tiles_of_a_chip_want_cross_a_link_once():
    slow = resolve_target(f"{AT_ONCE},links.rung_gbytes=0.1")
    assert _exchange(_copy(to="z"), slow) == ceil(64 * 4 / 0.1e9 * slow.clock_hz)


def test_the_tiles_of_all_chips_take_longer_to_meet_than_those_of_one():
    within, between = (price(_copy(zone=z), TWO)[0].sync_cycles for z in ("internal", "all"))
    assert between - within == ceil(30e-9 * TWO.clock_hz)
    one = resolve_target("tiny:8")
    assert price(_copy(zone="all"), one)[0].sync_cycles == within


def _programs_on_chips(seed: int):
    random, operators = Random(seed), default_operators()
    while True:
        sketch = random_sketch(random)
        if "links" in sketch.target:
            yield build(sketch, operators)


def _without_chips(module: ModuleOp) -> int:
    """Put every plan on one chip; returns how many were spread."""
    spread = 0
    for op in module.walk():
        plan = op.attributes.get("plan")
        if isinstance(plan, PlanAttr):
            spread += bool(plan.data.across)
            op.attributes["plan"] = PlanAttr(_stacked(plan.data))
    return spread


def _stacked(plan: Plan) -> Plan:
    combine = None if plan.combine is None else _stacked(plan.combine)
    return replace(plan.stacked, combine=combine)


def _results(program: Program, module: ModuleOp) -> dict[str, bytes] | None:
    """The bytes of the outputs and states of a planned program; None if an index is wrong."""
    found = Program(module, program.context, program.inputs, program.target)
    try:
        done = run(Program(lowered(found), program.context, program.inputs, program.target))
    except IndexFault:
        return None
    return {name: array.tobytes() for name, array in {**done.outputs, **done.state}.items()}


@pytest.mark.parametrize("examples", lengths(12, 40))
def test_chips_change_no_byte_of_a_generated_program(examples: int):
    spread = between = 0
    for program in islice(_programs_on_chips(3), examples):
        if any(op.name == "nn.drawn" for op in program.module.walk()):
            # Each worker of each tile draws words of its own.
            continue
        several = program.module.clone()
        lower(several, PLANNED, program.target, Random(program.sketch.seed))
        one = several.clone()
        spread += bool(_without_chips(one))
        try:
            assert _results(program, one) == _results(program, several)
        except DoesNotFit:
            continue
        between += 'sync "all"' in str(several)
    assert min(spread, between) > examples / 4
