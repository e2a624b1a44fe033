"""Mistakes in rules are blamed on their pass and their rule."""

from functools import partial

import pytest

from abele.ir.rules import parse_rule_set
from abele.passes.canonicalize import Canonicalize
from abele.passes.rules.own import own_vocabulary
from abele.tools.testing.mutation.compare import Budget
from abele.tools.testing.mutation.mutant import Mutant
from abele.tools.testing.search import shrink
from abele.tools.testing.search.contracts import with_methods
from abele.tools.workshop.blame import Blamed, blamed

RIGHT = "rule abs_of_abs: nn.abs(nn.abs(_) as a) => a"


def mutant(text: str) -> Mutant:
    rules = parse_rule_set(text, own_vocabulary(), "wrong.rw")
    tested = Canonicalize()
    make = partial(with_methods, tested, {"rule_set": staticmethod(lambda: rules)})
    return Mutant("canonicalize", "wrong", 1, "wrong.rw:1", text, text, make)


@pytest.mark.parametrize(
    "text",
    [
        "rule abs_of_neg: nn.neg(x) => nn.abs(x)",
        "rule square: nn.sub(a, b) => nn.add(a, b)",
    ],
)
def test_a_wrong_rule_among_right_passes_is_named(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shrink, "SHRINKING", 1.0)
    found = blamed(mutant(f"{text}\n{RIGHT}"), Budget(examples=200, seed=1))
    assert found is not None
    assert found.names_pass
    assert found.names_rewrite


def test_nothing_is_blamed_on_a_right_rule():
    found = blamed(mutant(RIGHT), Budget(examples=20, seed=1))
    assert found is not None
    assert (found.how, found.rule) == ("", "abs_of_abs")


def test_text_that_is_not_a_rule_is_refused():
    def refused() -> None:
        parse_rule_set("rule", own_vocabulary(), "wrong.rw")

    assert blamed(Mutant("canonicalize", "w", 1, "", "rule a", "", refused), Budget()) is None


def test_another_rewrite_is_not_the_right_one():
    found = Blamed(
        mutant(RIGHT), "value", "canonicalize", "1 of 2: relu_of_relu (x.rw:3) on nn.relu"
    )
    assert found.names_pass
    assert not found.names_rewrite
