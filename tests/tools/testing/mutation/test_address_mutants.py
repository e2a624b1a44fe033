"""What the proof of addresses passes runs correctly, whatever the memory held before.

Programs whose loops do not end, or whose indices are out of range, are left out.
"""

from random import Random

import hypothesis.strategies as st
import numpy as np
from hypothesis import assume, given, settings

from abele.backends.addresses.prove import prove_addresses
from abele.backends.evaluate.binder import Binder
from abele.backends.faults import IndexFault, IterationLimit, MachineFault
from abele.backends.host.binders import best_binder
from abele.backends.machine import Machine
from abele.tools.testing import Program, programs
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.mutation.address_mutants import ADDRESS_CLASSES, address_mutants

ITERATIONS = 40
MUTANTS = 5

Values = list[tuple[str, np.ndarray]]


def with_garbage(binder: type[Binder], seed: int) -> type[Binder]:
    """A binder whose memory is not zeroed."""

    class Garbage(binder):
        @staticmethod
        def memory(tiles: int, bytes_per_tile: int) -> np.ndarray:
            memory = binder.memory(tiles, bytes_per_tile)
            memory[...] = np.random.default_rng(seed).integers(0, 256, memory.shape, np.uint8)
            return memory

    return Garbage


PLAIN, FAST = with_garbage(Binder, 1), with_garbage(best_binder(), 2)


def values(program: Program, binder: type[Binder], strict: bool = False) -> Values:
    """The outputs and states of two successive runs."""
    machine = Machine(
        program.module, program.target, strict, binder=binder, iteration_limit=ITERATIONS
    )
    held = [name for name, v in machine.variables.items() if v.is_resident]
    found: Values = []
    for _ in range(2):
        found += sorted(machine.run(program.inputs).items())
        found += [(name, machine.read(name)) for name in held]
    return found


def assert_same(left: Values, right: Values) -> None:
    """The same bytes, except that any NaN is as good as any other."""
    assert [name for name, _ in left] == [name for name, _ in right]
    for (name, a), (_, b) in zip(left, right, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        a, b = a.reshape(-1), b.reshape(-1)
        equal = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
        if a.dtype.kind not in "biu":
            equal |= np.isnan(a) & np.isnan(b)
        assert equal.all(), name


def refused(program: Program) -> str:
    """Why the proof refuses a program; "" if it does not."""
    try:
        prove_addresses(program.module, program.target)
    except MachineFault as fault:
        return str(fault)
    return ""


@settings(max_examples=12)
@given(programs("exchange"), st.integers(0, 1 << 16))
def test_a_mutant_is_refused_or_runs_as_if_its_variables_lay_apart(program: Program, seed: int):
    assert not refused(program)
    try:
        original = values(program, PLAIN)
    except (IterationLimit, IndexFault):
        assume(False)
    for mutant in address_mutants(program, Random(seed), MUTANTS):
        why = refused(mutant.program)
        try:
            checked = values(mutant.program, Binder, strict=True)
        except MachineFault as fault:
            assert why, f"{mutant.mutation.name}: only a strict machine finds: {fault}"
            continue
        except IterationLimit:
            continue
        if why:
            continue
        for binder in (PLAIN, FAST):
            assert_same(values(mutant.program, binder), checked)
        if mutant.mutation.moves_only:
            assert_same(checked, original)


def test_every_class_of_mutations_is_made():
    made, wanted = set(), {each.name for each in ADDRESS_CLASSES}
    assert len(wanted) == len(ADDRESS_CLASSES)
    for seed in range(12):
        if made == wanted:
            break
        sketch = random_sketch(Random(seed))
        program = at_level(build(sketch, default_operators()), "exchange")
        if program is not None:
            random = Random(seed)
            made |= {each.mutation.name for each in address_mutants(program, random, 40)}
    assert made == wanted
