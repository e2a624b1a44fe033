"""What is said of a name that there is not."""

from abele.ir.near import nearest


def test_only_near_names_are_suggested():
    ops = [f"nn.{name}" for name in "relu exp pool add pad load scale softmax sub mul div".split()]
    ops += [f"tile.{name}" for name in "copy read".split()]
    assert nearest("nn.rel", ops) == "; did you mean nn.relu?"
    assert nearest("nn.frobnicate", ops) == ""
    assert nearest("tile.cpy", ops) == "; did you mean tile.copy?"


def test_few_names_are_said_all():
    assert nearest("b", ["size", "axis"]) == "; there are axis, size"
    assert nearest("b", ["axis"]) == "; there is axis"
    assert nearest("b", []) == "; there are none"
