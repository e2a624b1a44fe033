"""The shadow of strict mode compares bytes only where variables may share them."""

from random import Random
from unittest import mock

import hypothesis.strategies as st
from hypothesis import assume, given, settings
from xdsl.dialects.builtin import IntegerAttr, i64

from abele.backends.evaluate.shadow import Numbers, Shadow
from abele.backends.faults import IndexFault, MachineFault
from abele.backends.machine import Machine
from abele.dialects.exchange import ALIGNMENT, VariableOp
from abele.tools.testing import Program
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import random_sketch


def moved(number: int) -> Program | None:
    """A program whose variables lie anywhere, so that some share bytes."""
    random = Random(f"shadow {number}")
    program = at_level(build(random_sketch(random), default_operators()), "exchange")
    if program is None:
        return None
    variables = [op for op in program.module.ops if isinstance(op, VariableOp)]
    end = max(op.start + op.bytes_per_tile for op in variables)
    for op in random.sample(variables, min(len(variables), random.choice((0, 1, 1, 2)))):
        room = (end - op.bytes_per_tile) // ALIGNMENT
        op.address = IntegerAttr(random.randint(0, max(room, 0)) * ALIGNMENT, i64)
    return program


def fault(program: Program) -> str:
    """What a strict machine says of a program; "" if it runs."""
    try:
        Machine(program.module, program.target, strict=True).run(program.inputs)
    except (MachineFault, IndexFault) as found:
        return str(found)
    return ""


def all_numbers(self: Shadow, name: str) -> Numbers:
    """As if every variable shared bytes with all others."""
    del name
    return frozenset(self._number.values())


@settings(max_examples=40)
@given(st.integers(0, 9999))
def test_skipped_comparisons_find_nothing(number: int):
    program = moved(number)
    assume(program is not None)
    found = fault(program)
    with mock.patch.object(Shadow, "_meeting", all_numbers):
        assert fault(program) == found


def test_some_of_these_programs_are_faulty_and_some_are_not():
    programs = filter(None, map(moved, range(40)))
    seen: set[bool] = set()
    for program in programs:
        seen.add(bool(fault(program)))
        if len(seen) == 2:
            break
    assert seen == {False, True}
