"""Suggestions for a name that does not exist."""

from abele.ir.suggestions import suggestion


def test_only_similar_names_are_suggested():
    ops = [f"nn.{name}" for name in "relu exp pool add pad load scale softmax sub mul div".split()]
    ops += [f"tile.{name}" for name in "copy read".split()]
    assert suggestion("nn.rel", ops) == "; did you mean nn.relu?"
    assert suggestion("nn.frobnicate", ops) == ""
    assert suggestion("tile.cpy", ops) == "; did you mean tile.copy?"


def test_few_names_are_all_listed():
    assert suggestion("b", ["size", "axis"]) == "; there are axis, size"
    assert suggestion("b", ["axis"]) == "; there is axis"
    assert suggestion("b", []) == "; there are none"
