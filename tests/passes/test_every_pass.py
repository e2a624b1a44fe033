"""The property that every step of the way down keeps: the program computes the same.

Programs are generated from the operators' definitions, and go down by random legal decisions; a
pass that is added is tested with no further line.
"""

from random import Random

import pytest

from abele.passes.pipelines import PASSES, TAKES
from abele.tools.testing import check_pass, check_pipeline
from abele.tools.testing.build import build, default_operators
from abele.tools.testing.checks import invalid, unreadable
from abele.tools.testing.decisions import PLANNED
from abele.tools.testing.levels import at_level
from abele.tools.testing.oracles import bounded_run, difference, run
from abele.tools.testing.sketch import random_sketch


def level_before(name: str) -> str:
    """What programs a pass is for."""
    return PLANNED if name == "convert-nn-to-partition" else TAKES.get(name, "nn")


@pytest.mark.parametrize("name", [name for name in PASSES if name != "plan-splits"])
def test_a_pass_leaves_the_meaning_of_any_program(name: str):
    report = check_pass(name, level_before(name), examples=40, seed=0)
    assert report.examples > 10


def test_the_planners_own_plans_compute_the_same():
    check_pipeline("decompose,partition", examples=25, seed=0)


def test_the_whole_way_down_computes_the_same():
    check_pipeline(examples=25, seed=1)


@pytest.mark.parametrize("level", [PLANNED, "partition", "tile", "exchange"])
def test_all_levels_compute_the_same_under_any_legal_decisions(level: str):
    for number in range(30):
        program = build(random_sketch(Random(f"every pass {number}")), default_operators())
        lower = at_level(program, level)
        if lower is None:
            continue
        assert invalid(lower.module) is None
        assert unreadable(lower) is None
        assert difference(bounded_run(program), run(lower)) is None, program
