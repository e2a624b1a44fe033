"""Compiled kernels write the bytes that NumPy writes, for generated programs and their states."""

import re
from dataclasses import replace
from random import Random

import pytest
from every_form import different, left_behind

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS, Opcode, ScalarStep
from abele.backends.faults import IndexFault
from abele.backends.host.switch import FORMS
from abele.tools.testing import Operators, Program
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import random_sketch

pytest.importorskip("numba")

TAILS = (9, 15, 17, 31, 33, 65, 67, 129)
"""Lengths of rows that leave a tail after whole vectors of 8 and 16 elements."""
PROGRAMS, EACH = 2, 8


def generated(number: int, operators: Operators | None = None) -> Program | None:
    """A program of exchange; every other one has long rows with tails."""
    random = Random(f"kernels {number}")
    sketch = random_sketch(random)
    if number % 2:
        sizes = (random.choice((1, 2)), *(random.choice(TAILS) for _ in range(2)))
        sketch = replace(sketch, sizes=sizes, target=f"tiny:{random.choice((1, 2, 5))}")
    return at_level(build(sketch, operators or default_operators()), "exchange")


def wrong(program: Program) -> list[tuple[str, str]]:
    """The forms of kernels that write other bytes than NumPy, or miss a fault, and where."""
    given = program.module, program.target, program.inputs
    try:
        return different(*given)
    except IndexFault as fault:
        for form in FORMS:
            with pytest.raises(IndexFault, match=re.escape(str(fault))):
                left_behind(*given, form)
        return []


@pytest.mark.parametrize("part", range(PROGRAMS))
def test_kernels_and_numpy_write_the_same_bytes(part: int):
    some = (generated(part * EACH + i) for i in range(EACH))
    for program in some:
        if program is not None:
            assert wrong(program) == [], program.text


def test_kernels_and_numpy_write_the_same_bytes_of_many_programs(request: pytest.FixtureRequest):
    first = PROGRAMS * EACH
    for number in range(first, first + request.config.getoption("--programs")):
        program = generated(number)
        if program is not None:
            assert wrong(program) == [], program.text


def test_programs_have_rows_with_tails():
    shapes = [
        array.shape
        for number in range(20)
        if (program := generated(number)) is not None
        for array in (*program.inputs.values(), *program.state.values())
    ]
    long = [shape[-1] for shape in shapes if shape and shape[-1] > 8]
    assert sum(n % 8 != 0 for n in long) > 10


def test_a_kernel_that_adds_instead_of_subtracting_is_found(monkeypatch: pytest.MonkeyPatch):
    adds = replace(SCALAR_FUNCTIONS["sub"], compiled=(ScalarStep(Opcode.ADD, "operand"),))
    monkeypatch.setitem(SCALAR_FUNCTIONS, "sub", adds)
    subtractions = default_operators(("nn.sub",))
    programs = filter(None, (generated(number, subtractions) for number in range(EACH)))
    assert any(map(wrong, programs))
