"""Suggestions for a name that does not exist."""

from abele.ir.support.suggestions import suggestion


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


RULES = [f"fold-{name}" for name in "relu exp pool add pad load scale softmax sub mul".split()]
RULES += ["follow", "relu-of-relu", "drop-cast", "Conv/Weights"]


def test_names_that_share_a_word_are_suggested():
    assert suggestion("relu", RULES) == "; did you mean fold-relu or relu-of-relu?"
    assert suggestion("my-softmax-rule", RULES) == "; did you mean fold-softmax?"


def test_case_does_not_matter():
    assert suggestion("conv/weights", RULES) == "; did you mean Conv/Weights?"
    assert suggestion("FOLLOW", RULES) == "; did you mean follow?"


def test_a_short_name_is_not_similar_to_a_long_one():
    assert suggestion("foo", RULES) == ""


def test_a_message_says_where_many_names_are_listed():
    assert suggestion("foo", RULES, "abele lists them") == "; abele lists them"
    assert suggestion("folow", RULES, "abele lists them") == "; did you mean follow?"
    assert suggestion("foo", ["bar"], "abele lists them") == "; there is bar"
