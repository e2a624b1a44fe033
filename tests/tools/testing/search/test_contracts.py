"""A pass that refuses, or leaves its work undone, computes nothing wrong, and is found."""

from dataclasses import dataclass

import pytest

from abele.dialects.levels import EXCHANGE, TILE
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.allocate import Allocate
from abele.passes.convert_tile_to_exchange import ConvertTileToExchange
from abele.passes.pipelines import PASSES
from abele.passes.schedule_supersteps import ScheduleSupersteps
from abele.tools.testing import Miscompiled, PassFailed, check_pass
from abele.tools.testing.generators.levels import level_before
from abele.tools.testing.search.contracts import acting_as, goes_on, takes_all

BUDGET = {"examples": 12, "seed": 2}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abele.tools.testing.search.shrink.SHRINKING", 1.0)


def _refuses(ctx: Context, op: ModuleOp) -> None:
    raise InputError("not this one")


def _is_too_small(ctx: Context, op: ModuleOp) -> None:
    raise DoesNotFit("it", 2, 1)


def _does_nothing(ctx: Context, op: ModuleOp) -> None:
    pass


def test_a_pass_that_has_to_take_a_program_must_not_refuse_it():
    with pytest.raises(PassFailed, match="raised Refuses: not this one"):
        check_pass(takes_all(acting_as(Allocate(), _refuses)), "placed", **BUDGET)


def test_a_program_that_does_not_fit_may_be_refused():
    with pytest.raises(InputError, match="programs were refused"):
        check_pass(takes_all(acting_as(Allocate(), _is_too_small)), "placed", **BUDGET)


def test_what_is_left_undone_is_missed_by_the_passes_behind():
    undone = acting_as(ScheduleSupersteps(), _does_nothing)
    with pytest.raises(Miscompiled, match="allocate behind it raised Refuses: .* no superstep"):
        check_pass(undone, "tile", relation=goes_on(ScheduleSupersteps), **BUDGET)


@pytest.mark.parametrize("name", ["schedule-supersteps", "allocate", "decompose"])
def test_abeles_own_passes_keep_their_contracts(name: str):
    from abele.ir.pass_manager import parse_pipeline

    (tested,) = parse_pipeline(name, PASSES)
    report = check_pass(
        takes_all(tested),
        level_before(type(tested)),
        relation=goes_on(type(tested)),
        examples=5,
        seed=3,
    )
    assert report.examples == 5
    assert sum(report.held.values()) == 5


def test_a_conversion_leaves_nothing_of_the_level_above():
    undone = acting_as(ConvertTileToExchange(), _does_nothing)
    with pytest.raises(Miscompiled, match="not all of it is of exchange"):
        check_pass(undone, "grouped", relation=goes_on(ConvertTileToExchange), **BUDGET)


@dataclass(frozen=True)
class Undeclared(ModulePass):
    name = "mine"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


class Declared(Undeclared):
    takes = TILE
    leaves = EXCHANGE


def test_a_users_pass_without_declarations_owes_the_others_nothing():
    assert goes_on(Undeclared) == ()


def test_a_users_pass_leads_to_the_level_that_it_declares():
    (relation,) = goes_on(Declared)
    with pytest.raises(Miscompiled, match="not all of it is of exchange"):
        check_pass(Declared(), relation=relation, **BUDGET)
