"""Numbers and lists in the conditions of rules stay within their limits."""

from fractions import Fraction
from math import prod

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from abele.ir.errors import InputError
from abele.ir.rules.bounded import TooLarge, checked, product_of, times
from abele.ir.rules.evaluate import CallFailed, NoValue, evaluate
from abele.ir.rules.parse import parse_guards
from abele.ir.support.limits import INTEGER_BITS, LIST_ITEMS

from .some_rules import VOCABULARY, rewritten

BIG = 10**1000


@given(st.lists(st.integers(-(2**700), 2**700), max_size=12))
def test_a_product_is_exact_or_refused(values: list[int]):
    exact = prod(values)
    try:
        assert product_of(values) == exact
    except TooLarge as error:
        assert exact.bit_length() > INTEGER_BITS.most or 0 in values
        assert "integer bits are allowed (ABELE_MOST_INTEGER_BITS changes it)" in str(error)
    else:
        assert exact.bit_length() <= INTEGER_BITS.most + 1


@pytest.mark.parametrize(("a", "b"), [((1, 2), 3), ("a", 4), (3, (1,)), (None, 1)])
def test_only_numbers_are_multiplied(a: object, b: object):
    with pytest.raises(TypeError):
        times(a, b)


def test_lists_within_lists_are_checked():
    with pytest.raises(TooLarge, match="an integer of"):
        checked((1, (2, BIG**2)))
    with pytest.raises(TooLarge, match="a list of 1,000,001 items; at most 1,000,000 list items"):
        checked((0,) * (LIST_ITEMS.most + 1))


_numbers = st.sampled_from(["0", "1", "7", "1.5", "2.0", str(BIG), "9" * 1200, "x"])


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    symbols = st.sampled_from(["+", "-", "*", "/", "//", "%", "==", "<"])
    lists = st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
    calls = st.builds(
        "{}({})".format,
        st.sampled_from(["product", "total", "length", "counted", "repeated", "at"]),
        st.lists(inner | lists, min_size=1, max_size=2).map(", ".join),
    )
    return st.builds("({} {} {})".format, inner, symbols, inner) | lists | calls


@settings(max_examples=60)
@given(st.recursive(_numbers, _joined, max_leaves=12), st.integers(-5, 2**64))
@example("product([" + ", ".join(["9" * 1200] * 9) + "])", 1)
@example("counted(1000000000000)", 1)
@example("repeated(1, 1000000000000)", 1)
@example(f"({BIG} * 1.5)", 1)
@example(f"({BIG} / 7.0)", 1)
@example(f"({BIG} < 1.5)", 1)
@example("([1, 2] * 1000000000)", 1)
@example(f"total([{BIG}, 1.5])", 1)
def test_any_condition_has_a_value_or_says_why_not(text: str, x: int):
    (guard,) = parse_guards(text)
    try:
        checked(evaluate(guard, {"x": x}, VOCABULARY))
    except NoValue:
        pass
    except TooLarge as error:
        assert str(error).startswith("<rules>:1:")
        assert "are allowed (ABELE_MOST_" in str(error)
    except CallFailed as failed:
        # Binding refuses calls with arguments of the wrong kinds, as a huge integer and a fraction.
        assert isinstance(failed.error, TypeError | OverflowError)
    except ValueError as error:
        assert "zip() argument" in str(error)


def test_a_rule_whose_condition_is_too_large_is_refused_by_name():
    factors = " * ".join(["9" * 1000] * 9)
    with pytest.raises(InputError, match=r"my\.rw:1:\d+: an integer of .* bits; at most 4,096"):
        rewritten(f"rule r: nn.neg(x) => x where {factors} > 1", "%0 = nn.neg %a : T1")


def test_integers_stay_exact():
    (guard,) = parse_guards(f"{BIG} * 7 // {BIG} == 7")
    assert evaluate(guard, {}, VOCABULARY) is True
    assert Fraction(times(BIG, 3), 3) == BIG
