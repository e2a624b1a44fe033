"""A program that abele takes must be taken after a user's pass too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from abele.dialects import nn
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.schedule_supersteps import SUPERSTEP
from abele.tools.testing import Miscompiled, check_pass, check_pipeline

from ..idle_passes import mark


@dataclass(frozen=True)
class LosePlans(ModulePass):
    """Forgets the plan of a sum."""

    name = "lose-plans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.AddOp):
                each.attributes.pop("plan", None)


@dataclass(frozen=True)
class LoseNumbers(ModulePass):
    """Forgets the superstep of the last copy."""

    name = "lose-numbers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        numbered = [each for each in op.walk() if each.name == "tile.copy"]
        for each in numbered[-1:]:
            each.attributes.pop(SUPERSTEP, None)


@dataclass(frozen=True)
class MarkAll(ModulePass):
    """Harms nothing."""

    name = "mark-all"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            mark(each)


@dataclass(frozen=True)
class RefuseSums(ModulePass):
    """Takes no program with a sum, whatever ran before."""

    name = "refuse-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mark(op)
        if any(isinstance(each, nn.AddOp) for each in op.walk()):
            raise InputError("no sums")


@dataclass(frozen=True)
class TooLarge(RefuseSums):
    """Says that programs with a sum do not fit."""

    name = "too-large"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            super().apply(ctx, op)
        except InputError:
            raise DoesNotFit("sum", 2, 1) from None


PLANNED = ("decompose,plan-splits", MarkAll(), LosePlans(), "convert-nn-to-partition")
NUMBERED = (
    "partition,tile,schedule-supersteps",
    LoseNumbers(),
    "allocate,group-supersteps,convert-tile-to-exchange",
)


@pytest.mark.parametrize(
    ("tested", "refuser", "blamed"),
    [
        (("nn", *PLANNED), "convert-nn-to-partition", "lose-plans"),
        (("nn", *NUMBERED), "allocate", "lose-numbers"),
    ],
)
def test_a_refusal_is_blamed_on_the_pass_that_broke_the_program(
    tested: tuple[ModulePass | str, ...],
    refuser: str,
    blamed: str,
    tmp_path: Path,
):
    with pytest.raises(Miscompiled) as caught:
        check_pipeline(tested, examples=60, seed=1, folder=tmp_path)
    assert caught.value.wrong.kind == "refused"
    assert caught.value.blamed == blamed
    text = str(caught.value)
    assert f"after pass '{blamed}', of " in text
    assert f"pass {refuser}: " in text
    assert f"without '{blamed}' it takes the program" in text


def test_a_pass_may_refuse_programs_itself():
    report = check_pass(RefuseSums(), level="nn", examples=40, seed=1)
    assert report.refused > 0
    assert report.unfit == 0
    # A refusal that an earlier pass has nothing to do with stands.
    both = (MarkAll(), RefuseSums())
    report = check_pipeline(both, "nn", examples=40, seed=1, expect_changes=False)
    assert report.refused > 0


def test_programs_that_do_not_fit_are_counted_apart():
    both = (MarkAll(), TooLarge())
    report = check_pipeline(both, "nn", examples=40, seed=1, expect_changes=False)
    assert report.unfit > 0
    assert report.refused == 0
    assert f"{report.unfit} did not fit" in str(report)
