"""Random programs for several chips become pipelines at every level."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from abele.dialects.levels import PLANNED
from abele.passes.replicas.written import replicas_of
from abele.tools.testing import Program
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.pipelines import pipelined
from abele.tools.testing.generators.replicas import shared
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.oracle.oracles import bounded_run, difference

CHIPS = "tiny:8,links.topology=ladder,links.chips=4"


def pairs(
    count: int, *, training: bool = False, straight: bool = False
) -> Iterator[tuple[Program, Program]]:
    """Programs for four chips, as they are built and as the kit gives them to a pass of nn.

    Args:
        straight: whether the sketches have no control flow, so that any may become a pipeline.
    """
    for n in range(count):
        sketch = replace(random_sketch(Random(f"0 {n}")), target=CHIPS)
        if straight:
            sketch = replace(sketch, steps=tuple(replace(s, within="") for s in sketch.steps))
        built = build(replace(sketch, training=n + 2 if training else 0), default_operators())
        found = at_level(built, "nn")
        assert found is not None
        yield built, found


@pytest.mark.parametrize("training", [False, True])
def test_pipelines_of_every_kind_are_drawn(training: bool):
    # One such program in twelve has stages in a loop, one in forty replicas too.
    several: list[Program] = []
    for _, program in pairs(400, training=training, straight=True):
        if "@stage" in program.text:
            several.append(program)
        if len(several) > 3 and any(replicas_of(each.module) > 1 for each in several):
            break
    assert len(several) > 3
    assert any(replicas_of(program.module) > 1 for program in several)
    assert all(program.target.chips == 4 for program in several)


def test_a_pipeline_computes_what_its_program_computes():
    compared = 0
    for built, found in pairs(30):
        if "@stage" not in found.text and "@chip" not in found.text:
            continue
        before = bounded_run(built)
        if before.fault is not None or before.dead_fault:
            # Whatever a program computes that faults is right.
            continue
        assert difference(before, bounded_run(found)) is None
        compared += 1
    assert compared > 5


def test_a_program_of_a_lower_level_is_compared_with_the_one_that_is_no_pipeline():
    built = next(
        built for built, found in pairs(60) if "@stage" in found.text and "repeat" in built.text
    )
    program = at_level(built, PLANNED)
    assert program is not None
    assert "@stage" in program.text
    assert "@stage" not in program.source_program().text


def test_a_program_for_one_chip_is_no_pipeline():
    sketch = replace(random_sketch(Random("1")), target="tiny:4")
    built = build(sketch, default_operators())
    assert pipelined(shared(built)) is built
