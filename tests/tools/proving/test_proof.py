"""Verdicts on rules: one rule for each way in which a rule is proved, refuted or left open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from xdsl.ir import SSAValue

from abele.ir.rules import guard, parse_rule_set
from abele.ir.rules.library import FUNCTIONS
from abele.passes.rules.own import own_rules, own_vocabulary
from abele.tools.proving.proof import prove_rule
from abele.tools.proving.verdicts import Verdict

SECONDS = 3.0
"""Enough for a part of the grid, which is why these tests do not count forms."""


def verdict(text: str, seconds: float = SECONDS) -> Verdict:
    rules = parse_rule_set(text, own_vocabulary(), "tried.rw")
    return prove_rule(rules.bound[0], rules, seconds)


def own(file: str, name: str) -> Verdict:
    rules = own_rules(file).chosen(only=[name])
    return prove_rule(rules.bound[0], rules, SECONDS)


@pytest.mark.parametrize("name", ["relu_of_relu", "expand_to_itself"])
def test_a_rule_that_carries_all_axes_is_proved_for_all_ranks(name: str):
    found = own("canonicalize", name)
    assert (found.kind, found.equality) == ("all ranks", "equal to the bit")
    assert len(found.grid.ranks) > 2


@pytest.mark.parametrize("name", ["reshape_of_reshape"])
def test_a_rule_that_moves_elements_is_proved_for_all_sizes(name: str):
    found = own("canonicalize", name)
    assert (found.kind, found.grid.least) == ("all sizes", 1)


def test_a_factor_goes_through_the_sum_of_a_convolution_of_any_size():
    found = own("fold_scales", "scale_of_conv")
    assert found.kind == "all sizes"
    assert found.equality.startswith("equal up to rounding")


def test_what_a_guard_promises_of_elements_is_assumed():
    assert own("fold_scales", "power_of_a_half").kind == "all ranks"


def test_a_sum_over_a_padded_axis_is_the_sum_over_the_axis():
    found = verdict(
        'rule padded: nn.reduce(nn.pad(x: ?[_]) {low = [1], high = [2], mode = "constant", '
        'value = 0.0}) {combiner = "sum", axes = [0], keep_dims = _} as r => r(x)'
    )
    assert found.kind == "all sizes"


def test_a_wrong_rule_is_refuted_by_a_program_that_runs():
    found = verdict("rule wrong: nn.relu(nn.neg(x)) => nn.relu(x) where is_float(x)")
    assert found.kind == "refuted"
    assert "func.func @main" in found.example


def test_a_rule_that_is_wrong_at_infinity_only_is_refuted():
    found = verdict(
        "rule wrong: nn.scale(x) {factor = 0.0} => nn.sub(x, nn.abs(x)) where is_float(x)"
    )
    assert found.kind == "refuted"


def test_integers_wrap_around():
    assert verdict("rule wraps: nn.abs(nn.neg(x: i32[...])) => nn.abs(x)").kind == "all ranks"


@contextmanager
def unsaid_guard() -> Iterator[None]:
    @guard
    def odd_rank(value: SSAValue) -> bool:  # pyright: ignore[reportUnusedFunction]
        """Whether a tensor has an odd number of axes."""
        return bool(len(value.type.get_shape()) % 2)  # pyright: ignore

    try:
        yield
    finally:
        del FUNCTIONS["odd_rank"]


def test_a_guard_without_a_meaning_leaves_the_listed_shapes():
    with unsaid_guard():
        found = verdict("rule odd: nn.neg(nn.neg(x)) => x where odd_rank(x)")
    assert found.kind == "listed shapes"
    assert found.reason == "nobody has said what the guard odd_rank means"


def test_a_rule_of_a_level_below_nn_is_told_apart_at_once():
    found = own("tile_to_exchange", "variable")
    assert found.text == "not of nn (tile.variable is no operation of nn); not tested"
    assert found.seconds < 0.5


def test_no_more_than_the_given_time_is_used():
    found = verdict("rule slow: nn.square(nn.abs(x: i64[...])) => nn.square(x)", seconds=1.0)
    assert found.seconds < 3


def test_a_rule_of_which_not_every_operator_and_type_is_proved_in_time_is_not_decided():
    found = verdict("rule late: nn.max(nn.min(x, y), z) => nn.min(nn.max(x, z), nn.max(y, z))", 0.4)
    assert found.kind == "not decided"
    assert "forms are proved" in found.reason
