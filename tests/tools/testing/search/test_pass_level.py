"""The level of the programs that a pass is tested on."""

import pytest

from abele.dialects.levels import EXCHANGE, NN, PARTITION, TILE
from abele.ir.errors import InputError
from abele.ir.level import Level
from abele.ir.pass_manager import parse_pipeline
from abele.ir.upstream import ModulePass
from abele.passes.pipelines import PASSES
from abele.tools.testing import check_pass
from abele.tools.testing.search import pass_level
from abele.tools.testing.search.pass_level import level_for, level_given, levels_named_by
from abele.tools.testing.search.settings import CheckSettings

from ..idle_passes import (
    MarkBoth,
    MarkCopies,
    MarkNothing,
    MarkPlans,
    MarkRelayouts,
    MarkVariables,
)
from ..wrong_passes import NarrowPartials, SwapSub


@pytest.mark.parametrize(
    ("tested", "level", "why"),
    [
        (MarkRelayouts(), "partition", "its code names operations of partition"),
        (MarkCopies(), "tile", "its code names operations of tile"),
        (NarrowPartials(), "partition", "its code names"),
        (SwapSub(), "nn", "of its programs"),
        (MarkBoth(), "tile", "of its programs"),
        (MarkVariables(), "tile", "of its programs"),
        (MarkPlans(), "planned", "of its programs"),
        (MarkNothing(), "nn", "changed none of 8 programs of each of nn, partition, tile,"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_level_is_the_one_the_code_names_or_else_one_where_the_pass_changes_programs(
    tested: ModulePass, level: str, why: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pass_level, "TRIED", 8)
    monkeypatch.setattr(pass_level, "ENOUGH", 2)
    found = level_for(tested, CheckSettings(seed=1))
    assert found.level == level
    assert why in found.why


@pytest.mark.parametrize(
    ("name", "level"), [("canonicalize", "nn"), ("convert-tile-to-exchange", "grouped")]
)
def test_a_declared_level_is_taken_without_a_trial(name: str, level: str):
    (tested,) = parse_pipeline(name, PASSES)
    found = level_for(tested, CheckSettings(seed=1))
    assert (found.level, found.why) == (level, "declared by the pass")


@pytest.mark.parametrize(
    ("tested", "levels"),
    [(MarkRelayouts(), [PARTITION]), (MarkCopies(), [TILE]), (MarkBoth(), [NN, TILE])],
)
def test_the_levels_that_code_names_come_highest_first(tested: ModulePass, levels: list[Level]):
    assert levels_named_by(tested) == levels


def test_a_given_level_must_be_known():
    assert level_given(EXCHANGE).level == "exchange"
    with pytest.raises(InputError, match="level 'tiel'; need one of stablehlo, nn, partition"):
        level_given("tiel")
    with pytest.raises(InputError, match="level 'tiel'"):
        check_pass(MarkCopies(), level="tiel", examples=1)


@pytest.mark.parametrize("tested", [MarkRelayouts(), MarkVariables()])
def test_a_check_without_a_level_changes_programs_of_the_right_one(tested: ModulePass):
    report = check_pass(tested, examples=6, seed=1)
    assert report.changed > 3
    assert f" of {report.level} in" in str(report)
