"""Compiled kernels write the bytes that NumPy writes, for generated programs and their states."""

import re
from dataclasses import replace
from random import Random

import pytest

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS, Opcode, Step
from abele.backends.evaluate.binder import Binder
from abele.backends.faults import IndexFault
from abele.backends.host.binders import best_binder
from abele.backends.machine import Machine
from abele.tools.debug.machine_results import Difference, Results, difference
from abele.tools.testing import Operators, Program
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import random_sketch

pytest.importorskip("numba")

TAILS = (9, 15, 17, 31, 33, 65, 67, 129)
"""Lengths of rows that leave a tail after whole vectors of 8 and 16 elements."""
PROGRAMS, EACH = 4, 12


def generated(number: int, operators: Operators | None = None) -> Program | None:
    """A program of exchange; every other one has long rows with tails."""
    random = Random(f"kernels {number}")
    sketch = random_sketch(random)
    if number % 2:
        sizes = (random.choice((1, 2)), *(random.choice(TAILS) for _ in range(2)))
        sketch = replace(sketch, sizes=sizes, target=f"tiny:{random.choice((1, 2, 5))}")
    return at_level(build(sketch, operators or default_operators()), "exchange")


def left_behind(program: Program, binder: type[Binder]) -> Results:
    """The outputs of two runs, and the states after them."""
    machine = Machine(program.module, program.target, binder=binder)
    outputs = {
        f"{turn} {name}": array
        for turn in range(2)
        for name, array in machine.run(program.inputs).items()
    }
    states = (name for name, v in machine.variables.items() if v.initial is not None)
    return Results(outputs, {name: machine.read(name) for name in states})


def differs(program: Program) -> Difference | None:
    """Where kernels and NumPy differ. Of two NaN that meet, a processor keeps either."""
    try:
        plain = left_behind(program, Binder)
    except IndexFault as fault:
        with pytest.raises(IndexFault, match=re.escape(str(fault))):
            left_behind(program, best_binder())
        return None
    return difference(left_behind(program, best_binder()), plain)


@pytest.mark.parametrize("part", range(PROGRAMS))
def test_kernels_and_numpy_write_the_same_bytes(part: int):
    assert best_binder() is not Binder
    some = (generated(part * EACH + i) for i in range(EACH))
    for program in some:
        if program is not None:
            found = differs(program)
            assert found is None, f"{found}\n{program.text}"


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
    wrong = replace(SCALAR_FUNCTIONS["sub"], compiled=(Step(Opcode.ADD, "operand"),))
    monkeypatch.setitem(SCALAR_FUNCTIONS, "sub", wrong)
    subtractions = default_operators(("nn.sub",))
    programs = filter(None, (generated(number, subtractions) for number in range(EACH)))
    assert any(map(differs, programs))
