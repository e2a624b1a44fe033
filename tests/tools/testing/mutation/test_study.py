"""Planted bugs are found, harmless mutants are told apart, and a study always ends."""

import os
from collections.abc import Callable
from dataclasses import replace
from mmap import mmap
from pathlib import Path

import pytest
from xdsl.dialects.builtin import StringAttr

from abele.dialects import nn
from abele.dialects.steps import Superstep
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.fold_constants import FoldConstants
from abele.passes.group_supersteps import GroupSupersteps
from abele.tools.testing.mutation import study
from abele.tools.testing.mutation.compare import Budget
from abele.tools.testing.mutation.mutant import Mutant, sample_of
from abele.tools.testing.mutation.trial import MEMORY, Trial
from abele.tools.testing.search.contracts import with_apply

BUDGET = Budget(examples=30, seconds=20.0)
IMPATIENT = replace(BUDGET, limit=0.5)


@pytest.fixture(scope="module")
def folding() -> study.Planted:
    return study.plant(FoldConstants(), "", BUDGET)


def trial(planted: study.Planted, mutant: Mutant, budget: Budget = BUDGET) -> Trial:
    ((_, found),) = study.trials(planted, [mutant], budget)
    return found


def acting(planted: study.Planted, apply: Callable[[Context, ModuleOp], None]) -> Mutant:
    original = planted.original
    return Mutant(original.name, "mine", 1, "", "", "", lambda: with_apply(original, apply))


def named(planted: study.Planted, kind: str, before: str) -> Mutant:
    return next(m for m in planted.mutants if m.kind == kind and before in m.before)


def test_mutants_are_the_same_each_time_and_have_unique_names(folding: study.Planted):
    again = study.plant(FoldConstants(), "", BUDGET)
    assert again.mutants == folding.mutants
    assert len({mutant.name for mutant in folding.mutants}) == len(folding.mutants)


@pytest.mark.usefixtures("patient")
def test_a_bug_is_found_and_its_program_is_small(folding: study.Planted):
    found = trial(folding, named(folding, "left-wrong-element", "first"))
    assert (found.verdict, found.how) == ("found", "value")
    assert 0 < found.examples <= BUDGET.examples
    assert found.operators is not None
    assert found.operators <= 2
    assert 0 < found.seconds <= found.total


def test_a_mutant_with_the_same_output_is_no_bug(folding: study.Planted):
    found = trial(folding, acting(folding, folding.original.apply))
    assert found.verdict == "same"


def test_a_mutant_that_compiles_to_the_same_machine_program_is_no_bug():
    planted = study.plant(GroupSupersteps(), "", replace(BUDGET, examples=6))

    def rename(ctx: Context, op: ModuleOp) -> None:
        planted.original.apply(ctx, op)
        for number, step in enumerate(s for s in op.walk() if isinstance(s, Superstep)):
            step.properties["sym_name"] = StringAttr(f"another{number}")

    assert trial(planted, acting(planted, rename)).verdict == "same"


def test_a_harmless_difference_survives_and_is_shown(folding: study.Planted):
    found = trial(folding, acting(folding, lambda ctx, op: None))
    assert (found.verdict, found.how) == ("survived", "differs")
    assert 0 < found.differing < found.compared == BUDGET.examples
    assert "+++ mutant" in found.text


def _dies(ctx: Context, op: ModuleOp) -> None:
    os._exit(3)


def _hangs(ctx: Context, op: ModuleOp) -> None:
    while any(isinstance(each, nn.ElementwiseOp) for each in op.walk()):
        pass


def _grows(ctx: Context, op: ModuleOp) -> None:
    bytearray(1 << 40)


def _raises(ctx: Context, op: ModuleOp) -> None:
    raise KeyError


@pytest.mark.parametrize(
    ("apply", "how"),
    [(_dies, "killed"), (_hangs, "hang"), (_grows, "memory"), (_raises, "raised")],
)
def test_whatever_a_mutant_does_is_a_result(
    folding: study.Planted, apply: Callable[[Context, ModuleOp], None], how: str
):
    found = trial(folding, acting(folding, apply), IMPATIENT)
    assert (found.verdict, found.how) == ("found", how)


def test_the_parents_memory_does_not_count_for_the_mutant(folding: study.Planted):
    with mmap(-1, 5 << 30) as mapped:
        assert len(mapped) > MEMORY
        assert trial(folding, acting(folding, _raises), IMPATIENT).how == "raised"


def test_the_original_pass_survives(folding: study.Planted):
    assert study.check_original(folding, replace(BUDGET, examples=15)).verdict == "survived"


def test_supersteps_that_are_merged_are_found():
    planted = study.plant(GroupSupersteps(), "", replace(BUDGET, examples=5))
    assert trial(planted, named(planted, "left-drop-sync", "any")).verdict == "found"
    assert trial(planted, named(planted, "left-skip-copy", "first")).verdict == "found"


def test_a_sample_has_equally_many_mutants_of_each_class():
    def fail() -> ModulePass:
        raise AssertionError

    many = [Mutant("p", kind, i, "", "", "", fail) for kind in "abc" for i in range(1, 10)]
    chosen = sample_of(many, 6, seed=3)
    assert [mutant.kind for mutant in chosen] == list("aabbcc")
    assert sample_of(many, 6, seed=3) == chosen


def test_trials_leave_nothing_behind(folding: study.Planted, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trial(folding, named(folding, "left-wrong-element", "first"))
    assert not list(tmp_path.iterdir())
