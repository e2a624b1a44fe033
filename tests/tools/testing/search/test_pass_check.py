"""Passes that are wrong are found, made small, and told apart from those that fail themselves."""

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr, f16, f32

from abele.dialects import nn
from abele.dialects.levels import NN, TILE, level_of
from abele.dialects.nn.base import number, number_of
from abele.ir.errors import InputError
from abele.ir.rules import parse_rule_set, rules_pass
from abele.ir.text import print_module
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.rules.own import own_vocabulary
from abele.tools.testing import (
    Miscompiled,
    PassFailed,
    Program,
    StrategyFailed,
    check_pass,
    check_pipeline,
    programs,
)
from abele.tools.testing.limits import at_most
from abele.tools.testing.search import settings
from abele.tools.testing.search.settings import LIMIT

from ..wrong_passes import DropOtherUses, DropRemainder, NarrowPartials, SwapSub, never_holds

COMPUTE = ("nn", "partition")
OPS = 4
"""A reduced program has at most so many operations."""


def failure(
    tested: ModulePass, level: str, folder: Path, examples: int = 400, seed: int = 2
) -> Miscompiled:
    with pytest.raises(Miscompiled) as caught:
        check_pass(tested, level, examples=examples, seed=seed, folder=folder)
    return caught.value


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("tested", "level", "examples", "seed"),
    [
        (SwapSub(), "nn", 200, 2),
        (DropOtherUses(), "nn", 300, 2),
        (DropRemainder(), "nn", 1500, 2),
        # Other seeds find it in a loop whose body reads the number of the iteration. The reducer
        # does not take such a loop apart.
        (NarrowPartials(), "partition", 200, 5),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_wrong_pass_is_found_and_its_program_is_small(
    tested: ModulePass, level: str, examples: int, seed: int, tmp_path: Path
):
    found = failure(tested, level, tmp_path, examples, seed)
    ops = [op for op in found.program.module.walk() if op.name.partition(".")[0] in COMPUTE]
    assert len(ops) <= OPS
    assert found.blamed == tested.name


def test_a_smaller_program_may_take_some_times_as_long_as_the_failing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limits: list[float] = []

    @contextmanager
    def noted(seconds: float) -> Generator[None]:
        limits.append(seconds)
        with at_most(seconds):
            yield

    monkeypatch.setattr("abele.tools.testing.search.judge.at_most", noted)
    failure(SwapSub(), "nn", tmp_path, 200)
    assert limits[0] == LIMIT
    assert min(limits) < LIMIT / 4


def test_a_failure_says_what_differs_and_is_replayed_by_one_command(tmp_path: Path):
    found = failure(SwapSub(), "nn", tmp_path)
    text = str(found)
    assert "after pass 'swap-sub' (example" in text
    assert "element [" in text
    assert "nn.sub" in text
    before, after = text.split("The program after it:")
    operands = re.compile(r"nn\.sub (%\w+), (%\w+)")
    assert operands.search(before).groups() == operands.search(after).groups()[::-1]
    assert f"saved in {tmp_path}" in text
    again = subprocess.run(found.command, shell=True, capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stderr
    assert "element [" in again.stdout


def test_a_pipeline_names_the_pass(tmp_path: Path):
    wrong = SwapSub()
    tested = ("canonicalize", wrong, "eliminate-dead")
    from abele.ir.pass_manager import parse_pipeline
    from abele.passes.pipelines import PASSES

    passes = [
        *parse_pipeline(tested[0], PASSES),
        wrong,
        *parse_pipeline(tested[2], PASSES),
    ]
    with pytest.raises(Miscompiled, match="swap-sub") as caught:
        check_pipeline(passes, examples=300, seed=2, folder=tmp_path)
    assert caught.value.blamed == "swap-sub"
    # Some programs are compiled without the passes that only improve them.
    named = ("canonicalize", "swap-sub", "eliminate-dead")
    assert caught.value.passes == tuple(each for each in named if each in caught.value.passes)


@dataclass(frozen=True)
class Raises(ModulePass):
    """Fails on a difference."""

    name = "raises"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(each, nn.SubOp) for each in op.walk()):
            raise KeyError("difference")


def test_a_pass_that_raises_is_reported_as_such(tmp_path: Path):
    with pytest.raises(PassFailed, match="raised KeyError") as caught:
        check_pass(Raises(), examples=300, seed=1, folder=tmp_path)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "nn.sub" in str(caught.value)


def test_a_rule_that_raises_is_named():
    raises = "permuted(shape(q), [5]) == [1]"
    text = f"rule again: nn.relu(nn.relu(_) as r) as q => r where same_shape(r, q) and {raises}"
    again = rules_pass("drop-again", parse_rule_set(text, own_vocabulary(), "again.rw"))
    twice = programs("nn", operators=[nn.ReluOp], control_flow=False)
    with pytest.raises(PassFailed, match=r"IndexError.*in rule again \(again.rw:1\)"):
        check_pass(again(), programs=twice, examples=50, seed=1, reduce_seconds=0)
    with pytest.raises(PassFailed, match="in rule again"):
        check_pass(again(), examples=200, seed=1, reduce_seconds=0)


def test_a_pass_that_raises_on_a_broken_program_is_not_to_blame(tmp_path: Path):
    @dataclass(frozen=True)
    class TakesShapes(ModulePass):
        name = "takes-shapes"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            if any(isinstance(e, nn.NegOp) and e.result.type != e.operand.type for e in op.walk()):
                raise KeyError("shape")

    with pytest.raises(Miscompiled, match="does not verify") as caught:
        check_pipeline([Invalid(), TakesShapes()], examples=300, seed=1, folder=tmp_path)
    assert caught.value.blamed == "invalid"


@dataclass(frozen=True)
class Hangs(ModulePass):
    """Does not end."""

    name = "hangs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        while any(isinstance(each, nn.NegOp) for each in op.walk()):
            pass


def test_a_pass_that_hangs_is_cut_off(tmp_path: Path):
    with pytest.raises(PassFailed, match="is not done after 0.3 s") as caught:
        check_pass(
            Hangs(),
            examples=400,
            seed=1,
            limit=0.6,
            folder=tmp_path,
        )
    assert "nn.neg" in str(caught.value)


STUCK = """
from dataclasses import dataclass
import numpy as np
from abele.ir.upstream import ModulePass
from abele.tools.testing import check_pass

@dataclass(frozen=True)
class Stuck(ModulePass):
    name = "stuck"
    def apply(self, ctx, op):
        np.broadcast_to(1.0, (10**13,)).sum()

check_pass(Stuck(), examples=1, seed=1, limit=0.2)
"""


def test_a_pass_that_hangs_in_c_ends_the_process_with_its_program():
    done = subprocess.run(
        [sys.executable, "-c", STUCK], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "passes stuck: compiling the program is not done after 0.6 s" in done.stderr
    assert "func.func @main" in done.stderr
    assert "saved in" in done.stderr


@dataclass(frozen=True)
class Invalid(ModulePass):
    """Leaves a value of another type."""

    name = "invalid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.NegOp):
                each.result._type = nn.tensor((1, 2, 3), each.operand.type.element_type)


def test_a_program_that_does_not_verify_is_reported(tmp_path: Path):
    found = failure(Invalid(), "nn", tmp_path)
    assert "does not verify" in str(found)


@dataclass(frozen=True)
class Refuses(ModulePass):
    """Takes nothing."""

    name = "refuses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise InputError("not this one")


def test_a_pass_that_refuses_every_program_is_reported():
    with pytest.raises(InputError, match="programs were refused.*not this one"):
        check_pass(Refuses(), examples=20, seed=1)


def test_a_relation_is_checked_in_addition_to_the_results(tmp_path: Path):
    def changed(before: Program, after: Program, compiled: object) -> str | None:
        return "as it was" if before.text == after.text else None

    with pytest.raises(Miscompiled, match="changed does not hold: as it was"):
        check_pass("decompose", examples=50, seed=1, relation=changed, folder=tmp_path)
    with pytest.raises(Miscompiled, match="element"):
        check_pass(SwapSub(), examples=200, seed=1, relation=(), folder=tmp_path)


def test_a_relation_that_does_not_hold_is_replayed_by_one_command(tmp_path: Path):
    with pytest.raises(Miscompiled, match="never_holds does not hold") as caught:
        check_pass("canonicalize", examples=5, seed=1, relation=never_holds, folder=tmp_path)
    command = caught.value.command
    again = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stderr
    assert "never_holds does not hold: no" in again.stdout


def test_programs_of_a_strategy_are_checked():
    strategy = programs("nn", operators=[nn.AddOp, nn.ReluOp], control_flow=False)
    report = check_pass("fuse-chains", programs=strategy, examples=30, seed=1)
    assert report.examples == 30
    assert {op for op, _, _ in report.exercised} <= {
        *("nn.add", "nn.relu"),
        *("nn.load", "nn.store", "nn.state", "nn.constant"),
    }


def drawn(number: int) -> Program:
    raise KeyError("drawn")


@st.composite
def ill_typed(draw: st.DrawFn) -> Program:
    program = draw(programs("nn", operators=[nn.NegOp], control_flow=False))
    for each in program.module.walk():
        if isinstance(each, nn.NegOp):
            each.result._type = nn.tensor((1, 2, 3), each.operand.type.element_type)
    return program


@st.composite
def without_inputs(draw: st.DrawFn) -> Program:
    program = draw(programs("nn", operators=[nn.SliceOp], control_flow=False))
    program.inputs = {name: "none" for name in program.inputs}
    return program


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (st.integers().map(drawn), "the strategy raised KeyError: 'drawn'"),
        (st.integers(), "the strategy made a value of type int; need a Program"),
        (ill_typed(), "made an invalid program: the program does not verify"),
        (without_inputs(), "made a program that cannot run before any pass"),
        (st.nothing(), "the strategy"),
    ],
)
def test_a_strategy_that_fails_is_reported_as_such(strategy: st.SearchStrategy[Program], said: str):
    with pytest.raises(StrategyFailed) as caught:
        check_pass("decompose", programs=strategy, examples=60, seed=1)
    assert said in str(caught.value)


def test_a_check_without_a_budget_ends_after_the_default_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settings, "SECONDS", 0.5)
    report = check_pass("canonicalize", seed=1, expect_changes=False)
    assert 0 < report.examples < 5000
    assert report.cpu_seconds < 5


@pytest.mark.parametrize("first", [3, 6])
def test_the_number_of_programs_does_not_change_them(first: int):
    def seen(examples: int) -> list[str]:
        texts: list[str] = []

        @dataclass(frozen=True)
        class Look(SwapSub):
            def apply(self, ctx: Context, op: ModuleOp) -> None:
                texts.append(print_module(op))
                super().apply(ctx, op)

        check_pass(Look(), "nn", seed=3, examples=examples, results=False, expect_changes=False)
        return texts

    few = seen(first)
    assert seen(12)[: len(few)] == few


def test_a_check_ends_in_time():
    report = check_pass("canonicalize", seconds=0.5, seed=1, expect_changes=False)
    assert report.examples > 0
    assert report.cpu_seconds < 5


@dataclass(frozen=True)
class CountTiles(ModulePass):
    """Looks at programs of tile, as it declares."""

    name = "count-tiles"
    takes = TILE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["level"] = StringAttr(level_of(op).name)
        assert level_of(op) == TILE


@dataclass(frozen=True)
class CastToHalf(ModulePass):
    """Rounds what relu makes to float16, a cast for the loss."""

    name = "cast-to-half"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if not isinstance(each, nn.ReluOp) or nn.element_of(each.result) != f32:
                continue
            narrow = nn.CastOp(each.result, f16)
            wide = nn.CastOp(narrow.result, f32)
            each.parent.insert_ops_after([narrow, wide], each)
            each.result.replace_uses_with_if(
                wide.result, lambda use, narrow=narrow: use.operation is not narrow
            )


class DeclaresRounding(CastToHalf):
    takes = NN
    rounds = True


def test_a_pass_is_tested_on_programs_of_the_level_that_it_declares():
    assert check_pass(CountTiles(), examples=5, seed=0).changed == 5
    with pytest.raises(PassFailed, match="AssertionError"):
        check_pass(CountTiles(), NN, examples=5, seed=0)


def test_a_pass_may_give_up_precision_only_where_it_declares_it(tmp_path: Path):
    some = programs(operators=[nn.ReluOp, nn.MatMulOp], dtypes=[f32], control_flow=False)
    with pytest.raises(Miscompiled):
        check_pass(CastToHalf(), programs=some, examples=60, seed=0, folder=tmp_path)
    assert check_pass(DeclaresRounding(), programs=some, examples=60, seed=0).changed > 10


@dataclass(frozen=True)
class Change(ModulePass):
    """Change a number of each rounding of a name."""

    name = "change"
    takes = NN

    rounding: str = "nn.stochastic"
    which: str = "digits"
    by: float = -4.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name == self.rounding:
                own = number_of(each.properties[self.which])
                each.properties[self.which] = number(own + self.by)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", ["nn.stochastic", "nn.drawn"])
def test_a_rounding_that_is_several_steps_away_is_found(name: str, tmp_path: Path):
    with pytest.raises(Miscompiled):
        check_pass(Change(name), operators=(name,), examples=100, seed=1, folder=tmp_path)


def test_a_rounding_by_other_words_is_right_because_it_is_within_a_step(tmp_path: Path):
    tested = Change("nn.stochastic", "key", 1.0)
    report = check_pass(tested, operators=("nn.stochastic",), examples=30, seed=1, folder=tmp_path)
    assert report.changed > 5
