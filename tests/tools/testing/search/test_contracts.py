"""The contracts find a pass that refuses programs or leaves its work undone."""

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
from abele.tools.testing.search.contracts import contracts_of, must_accept_all, with_apply

BUDGET = {"examples": 12, "seed": 2}


def _refuses(ctx: Context, op: ModuleOp) -> None:
    raise InputError("not this one")


def _is_too_small(ctx: Context, op: ModuleOp) -> None:
    raise DoesNotFit("it", 2, 1)


def _does_nothing(ctx: Context, op: ModuleOp) -> None:
    pass


def test_a_refused_program_fails_the_check():
    with pytest.raises(PassFailed, match="raised WronglyRefused: not this one"):
        check_pass(must_accept_all(with_apply(Allocate(), _refuses)), "placed", **BUDGET)


def test_a_program_that_does_not_fit_may_be_refused():
    with pytest.raises(InputError, match="programs were refused"):
        check_pass(must_accept_all(with_apply(Allocate(), _is_too_small)), "placed", **BUDGET)


def test_work_left_undone_is_reported_by_a_later_pass():
    undone = with_apply(ScheduleSupersteps(), _does_nothing)
    with pytest.raises(
        Miscompiled, match="allocate, which .* raised WronglyRefused: .* no superstep"
    ):
        check_pass(undone, "plain", relation=contracts_of(ScheduleSupersteps), **BUDGET)


@pytest.mark.parametrize("name", ["schedule-supersteps", "allocate", "decompose"])
def test_abeles_own_passes_keep_their_contracts(name: str):
    from abele.ir.pass_manager import parse_pipeline

    (tested,) = parse_pipeline(name, PASSES)
    report = check_pass(
        must_accept_all(tested),
        level_before(type(tested)),
        relation=contracts_of(type(tested)),
        examples=5,
        seed=3,
    )
    assert report.examples == 5
    assert sum(report.held.values()) == 5


def test_an_operation_of_the_old_level_after_a_conversion_is_reported():
    undone = with_apply(ConvertTileToExchange(), _does_nothing)
    with pytest.raises(Miscompiled, match="its output is not all of exchange"):
        check_pass(undone, "grouped", relation=contracts_of(ConvertTileToExchange), **BUDGET)


@dataclass(frozen=True)
class Undeclared(ModulePass):
    name = "mine"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


class Declared(Undeclared):
    takes = TILE
    leaves = EXCHANGE


def test_a_pass_without_declarations_has_no_contracts():
    assert contracts_of(Undeclared) == ()


def test_a_pass_that_misses_its_declared_level_is_reported():
    (relation,) = contracts_of(Declared)
    with pytest.raises(Miscompiled, match="its output is not all of exchange"):
        check_pass(Declared(), relation=relation, **BUDGET)
