"""Random programs are shared among replicas at every level, with no further line for a pass."""

from collections.abc import Sequence
from random import Random

import pytest
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
from abele.tools.testing.generators.sketch import random_sketch


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


def test_a_gradient_that_is_added_twice_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replicate, "summed", add_a_part_twice)
    lower = LowerAtRandom(PARTITION.name)
    with pytest.raises(Miscompiled):
        _ = check_pass(lower, PLANNED, examples=200, seed=0, training=True, reduce_seconds=0)
