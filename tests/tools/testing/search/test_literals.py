"""Numbers in the code of a pass, which attributes of generated programs are now and then."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from lengths import large
from xdsl.rewriter import Rewriter

from abele.dialects import nn
from abele.dialects.nn import values_of
from abele.dialects.nn.base import integers, number
from abele.ir.pass_manager import load_pass
from abele.ir.rules.choices import Hints
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.pipelines import PASSES
from abele.tools.testing import Report, check_pass
from abele.tools.testing.generators.sketch import NO_LITERALS, about_literals, random_sketch
from abele.tools.testing.search import pass_check
from abele.tools.testing.search.aim import Aim
from abele.tools.testing.search.failures import Wrong
from abele.tools.testing.search.named import literals_of

FEW = 160
"""Programs in which a mistake at one number is found."""

SIX = 6.0


@dataclass(frozen=True)
class ClipAtSix(ModulePass):
    """Forgets the lower bound where the upper one is 6."""

    name = "clip-at-six"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.ClipOp) and each.high.value.data == SIX:
                each.properties["low"] = number(-64)


@dataclass(frozen=True)
class Roots(ModulePass):
    """Takes some powers for the square root."""

    name = "roots"
    exponents: tuple[float, ...] = (0.375, 1.75)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.PowerOp) and each.exponent.value.data in self.exponents:
                each.properties["exponent"] = number(0.5)


@dataclass(frozen=True)
class StepOfFour(ModulePass):
    """Takes every third element instead of every fourth one."""

    name = "step-of-four"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.SliceOp):
                steps = (3 if step == 4 else step for step in values_of(each.steps))
                each.properties["steps"] = integers(steps)


@dataclass(frozen=True)
class AlongAxisTwo(ModulePass):
    """Sorts the other way along the third axis."""

    name = "along-axis-two"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.SortOp) and each.axis.value.data == 2:
                turned = nn.SortOp(each.operand, 2, descending=each.descending is None)
                Rewriter.replace_op(each, turned)


@dataclass(frozen=True)
class OfTwelve(ModulePass):
    """Squares a number where a factor is the constant 12."""

    name = "of-twelve"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.MulOp) and isinstance(each.rhs.owner, nn.ConstantOp):
                array = each.rhs.owner.value.array
                if array.size and (array == 12).all() and each.lhs.type == each.rhs.type:
                    each.operands[1] = each.operands[0]


class Found(Exception):
    """Ends a check at its first failure, which is not made small."""


@pytest.fixture
def unreduced(monkeypatch: pytest.MonkeyPatch):
    def found(self: object, program: object, wrong: Wrong):
        assert wrong.kind == "value"
        raise Found

    monkeypatch.setattr(pass_check._Check, "_miscompiled", found)


def find(tested: ModulePass, examples: int = FEW) -> int:
    """In how many programs a mistake is found; 0 if it is not found."""
    report = Report()
    try:
        check_pass(tested, "nn", examples=examples, seed=0, expect_changes=False, report=report)
    except Found:
        return report.examples
    return 0


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize("tested", [ClipAtSix, Roots, StepOfFour, AlongAxisTwo])
def test_a_mistake_at_a_number_that_the_code_names_is_found(tested: type[ModulePass]):
    assert find(tested())


@pytest.mark.usefixtures("unreduced")
def test_a_mistake_at_a_factor_takes_more_programs():
    assert find(OfTwelve(), 3 * FEW)


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize("tested", [large(Roots), large(ClipAtSix), StepOfFour, large(OfTwelve)])
def test_without_the_numbers_it_is_not(tested: type[ModulePass], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Aim, "literals", lambda self: NO_LITERALS)
    assert not find(tested())


@dataclass(frozen=True)
class Many(ModulePass):
    """Uses numbers of all kinds, as a user writes them."""

    name = "many"
    bound: float = 2.5

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        def inside(axes: tuple[int, ...]) -> bool:
            return axes == (0, 2, 1) or len(axes) > 77

        assert inside((1,)) or self.bound * 1e300 > float("inf") or ctx is not True
        assert 1 + 0 < 100_000 < SIX * 1e9


def test_the_numbers_are_those_of_functions_options_and_tables():
    found = literals_of(Many())
    assert {77, 2} <= set(found.ints)
    assert {2.5, SIX} <= set(found.floats)
    assert (0, 2, 1) in found.lists
    # Those that attributes have anyway, truth values, and those that no attribute can be.
    assert not {0, 1, 100_000} & set(found.ints)


def test_abeles_own_passes_have_no_numbers_of_their_own():
    (own,) = (load_pass("canonicalize", PASSES)(),)
    assert Aim.of([own], "nn").literals() == NO_LITERALS
    assert Aim.of([own, Many()], "nn").literals() == literals_of(Many())


def test_some_axes_are_near_a_number_and_a_sketch_gets_its_numbers_once():
    some = [random_sketch(Random(n)) for n in range(80)]
    about = [about_literals(each, Hints(ints=(31,)), Random(n)) for n, each in enumerate(some)]
    longer = [each for each, old in zip(about, some, strict=True) if each.sizes != old.sizes]
    assert 8 < len(longer) < 32
    assert {each.sizes[-1] for each in longer} <= {31, 32, 62}
    assert about_literals(longer[0], Hints(ints=(31,)), Random(0)) is longer[0]
