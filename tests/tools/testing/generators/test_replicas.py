"""Random programs are shared among replicas at every level, with no further line for a pass."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from abele.dialects import nn
from abele.dialects.levels import PARTITION, PLANNED
from abele.passes import replicate
from abele.passes.gradients.emit import Emitter
from abele.passes.replicas.rounds import Method, summed
from abele.passes.replicas.written import replicas_of
from abele.tools.testing import Miscompiled, Program, check_pass
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.decisions import LowerAtRandom
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import Sketch, Step, random_sketch

Merge: TypeAlias = Callable[[Emitter, SSAValue, Method], SSAValue]
"""Combines the parts of replicas, as rounds.summed does."""


def programs(level: str, numbers: Sequence[int]) -> list[Program]:
    """The programs of a level with these numbers that fit their machines."""
    operators = default_operators()
    made = (at_level(build(random_sketch(Random(f"0 {n}")), operators), level) for n in numbers)
    return [program for program in made if program is not None]


def test_some_programs_of_every_level_are_shared():
    found = programs("nn", range(120))
    replicas = [replicas_of(program.module) for program in found]
    assert {1, 2, 4} <= {*replicas}
    several = [n for n, count in enumerate(replicas) if count > 1]
    assert len(several) > 5
    assert all(found[n].target.chips % replicas[n] == 0 for n in several)
    # Sums are merged in rounds in some.
    assert any("wrap" in str(found[n].module) for n in several)
    for program in programs(PLANNED, several[:2]):
        assert replicas_of(program.module) > 1
        # What a program has to compute is what it computed before it was shared.
        assert replicas_of(program.source_program().module) == 1


def test_a_program_is_shared_alike_each_time():
    one, two = programs("nn", range(40)), programs("nn", range(40))
    assert [program.text for program in one] == [program.text for program in two]


def add_a_part_twice(emit: Emitter, parts: SSAValue, method: Method) -> SSAValue:
    total = summed(emit, parts, method)
    shape = nn.shape_of(parts)
    first = emit(nn.SliceOp(parts, (0,) * len(shape), (1,) * len(shape), (1, *shape[1:])))
    return emit(nn.AddOp(total, emit.reshaped(first, shape[1:])))


def steps_that_merge(count: int, merge: Merge, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The first small steps of training in which two replicas merge sums, by a given function.

    Few random programs do, so these are made of operators that have gradients, on two chips.
    """
    merged: list[Method] = []

    def noted(emit: Emitter, parts: SSAValue, method: Method) -> SSAValue:
        merged.append(method)
        return merge(emit, parts, method)

    monkeypatch.setattr(replicate, "summed", noted)
    operators = default_operators()
    kinds = tuple(map(operators.classes.index, (nn.MulOp, nn.AddOp)))
    machine = "tiny:4,links.topology=ladder,links.chips=2"
    found: list[Program] = []
    for seed in range(1, 100):
        steps = tuple(Step(kind, seed=seed + i) for i, kind in enumerate(kinds))
        sketch = Sketch(steps, (4,), 0, "normal", seed, machine, kinds, training=seed)
        merged.clear()
        program = at_level(build(sketch, operators), PLANNED)
        if program is not None and merged:
            found.append(program)
        if len(found) == count:
            break
    return found


def test_a_gradient_that_is_added_twice_is_found(monkeypatch: pytest.MonkeyPatch):
    lower = LowerAtRandom(PARTITION.name)
    for merge in (summed, add_a_part_twice):
        some = st.sampled_from(steps_that_merge(4, merge, monkeypatch)).map(Program.clone)
        wrong = pytest.raises(Miscompiled, match=r"element \[.*need")
        with nullcontext() if merge is summed else wrong:
            check_pass(lower, PLANNED, programs=some, examples=10, seed=0, reduce_seconds=0)
