"""The property that every step of the way down keeps: the program computes the same.

Programs are generated from the operators' definitions, and go down by random legal decisions; a
pass that is added is tested with no further line.
"""

import pytest
from lengths import lengths

from abele.dialects.levels import PLANNED
from abele.ir.pass_manager import parse_pipeline
from abele.passes.pipelines import PASSES
from abele.tools.testing import check_pass, check_pipeline
from abele.tools.testing.generators.decisions import LowerAtRandom
from abele.tools.testing.generators.levels import level_before
from abele.tools.testing.search.contracts import contracts_of, must_accept_all

OWN_TESTS = (
    *("plan-splits", "differentiate", "train", "assign-stages", "cut-batch"),
    *("narrow-partials", "narrow-products", "narrow-stashes"),
    *("multiply-quantised", "multiply-sparse", "bucket-blocks", "merge-products", "read-through"),
    *("summarize-softmax", "read-narrow", "take-known-rows"),
    *("convert-linalg-to-nn", "convert-stablehlo-to-nn"),
    *("convert-nn-to-linalg", "convert-nn-to-stablehlo"),
)
"""The passes whose programs compute something else, that take too long, that refuse weights that
are not finite, that look for more than chance makes, or that take programs from elsewhere. They
have their own tests."""

SELDOM = ("update-early", "split-sequences", "fold-constants", "fuse-chains")
"""The passes that change few programs: those that store a state once, early enough to matter, that
have a long sequence or constants alone, or a chain."""


@pytest.mark.parametrize("name", [name for name in PASSES if name not in OWN_TESTS])
@pytest.mark.parametrize("share", lengths(1, 3))
def test_a_pass_leaves_the_meaning_of_any_program(name: str, share: int):
    (tested,) = parse_pipeline(name, PASSES)
    examples = share * (10 if name in SELDOM else 4)
    report = check_pass(
        must_accept_all(tested),
        level_before(type(tested)),
        relation=contracts_of(type(tested)),
        examples=examples,
        seed=0,
    )
    # But for one or two that do not fit their machine.
    assert report.examples >= examples - 2


@pytest.mark.parametrize("name", ["schedule-supersteps", "group-supersteps"])
def test_existing_decisions_are_kept(name: str):
    check_pass(name, "tile", examples=5, seed=0)


@pytest.mark.parametrize("examples", lengths(4, 12))
def test_the_planners_own_plans_compute_the_same(examples: int):
    check_pipeline("decompose,partition", examples=examples, seed=0)


@pytest.mark.parametrize("examples", lengths(4, 16))
def test_the_whole_way_down_computes_the_same(examples: int):
    check_pipeline(examples=examples, seed=1)


@pytest.mark.parametrize("level", ["partition", "tile", "exchange"])
@pytest.mark.parametrize("examples", lengths(4, 12))
def test_all_levels_compute_the_same_under_any_legal_decisions(level: str, examples: int):
    check_pass(LowerAtRandom(level), PLANNED, examples=examples, seed=0)
