from dataclasses import dataclass
from typing import Any

import pytest

from abele.ir.errors import InputError
from abele.ir.legality import row
from abele.ir.level import Level
from abele.ir.pass_levels import PassLevels, declared_levels, level_after
from abele.ir.upstream import Context, ModuleOp, ModulePass

HIGH, LOW = (Level(name, (row(name),)) for name in ("high", "low"))


@dataclass(frozen=True)
class Anything(ModulePass):
    name = "anything"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


class Lower(Anything):
    takes = HIGH
    leaves = LOW


class Tidy(Anything):
    takes = HIGH
    skips_other_levels = True


class Late(Anything):
    takes = Level("high", (row("high"),), decisions=("open", "closed"))
    decided = "closed"


class Narrow(Anything):
    rounds = True


def test_a_pass_declares_by_class_attributes():
    assert declared_levels(Lower) == PassLevels(HIGH, LOW)
    assert declared_levels(Narrow) == PassLevels(rounds=True)
    assert declared_levels(Late) == PassLevels(HIGH, decided="closed")
    assert declared_levels(Anything) is None


def test_declarations_are_described_in_words():
    assert str(PassLevels(HIGH, LOW, rounds=True)) == (
        "takes high, leaves low, may give up precision"
    )
    assert str(PassLevels(HIGH, skips_other_levels=True)) == (
        "takes high, other levels are left as they are"
    )
    assert str(PassLevels(HIGH, LOW, decided="closed")) == "takes high (closed), leaves low"
    assert str(PassLevels(rounds=True)) == "takes any level, may give up precision"


def test_a_pass_needs_the_level_it_takes_unless_it_skips_other_levels():
    assert PassLevels(HIGH).needs == HIGH
    assert PassLevels(HIGH, skips_other_levels=True).needs is None


def test_a_pass_that_declares_nothing_may_leave_any_level():
    assert level_after(Anything, HIGH) is None


def test_a_pass_leaves_the_level_it_declares_or_the_one_it_was_given():
    assert level_after(Lower, HIGH) == LOW
    assert level_after(Lower, None) == LOW
    assert level_after(Tidy, LOW) == LOW
    assert level_after(Narrow, None) is None


@pytest.mark.parametrize(
    ("attribute", "value", "says"),
    [
        ("takes", "high", "takes is 'high'; need a Level, such as abele.dialects.levels.NN"),
        ("leaves", 1, "leaves is 1; need a Level"),
        ("decided", 1, "decided is 1; need a name among the decisions of a Level"),
        ("decided", "done", "decided is 'done'; need a level with decisions in takes"),
        ("rounds", HIGH, "rounds is Level.*; need True or False"),
    ],
)
def test_a_declaration_of_another_type_is_refused(attribute: str, value: Any, says: str):
    made = type("Made", (Anything,), {attribute: value})
    with pytest.raises(InputError, match=f"pass 'anything': {says}"):
        declared_levels(made)


def test_declarations_become_attributes_of_a_class():
    made = type("Made", (Anything,), {})
    PassLevels(HIGH, rounds=True).declare(made)
    assert declared_levels(made) == PassLevels(HIGH, rounds=True)


def test_a_declared_decision_must_be_one_of_the_level():
    made = type("Made", (Late,), {"decided": "done"})
    with pytest.raises(InputError, match="pass 'anything': decided is 'done'; need one of open, c"):
        declared_levels(made)
