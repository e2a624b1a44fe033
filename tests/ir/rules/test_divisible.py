"""Which divisions the guards of a rule prove to leave no remainder."""

import pytest

from abele.ir.rules.divisible import Divisors
from abele.ir.rules.parse import parse_guards
from abele.ir.rules.syntax import Operator


def whole(division: str, guards: str) -> bool:
    (found,) = parse_guards(division)
    assert isinstance(found, Operator)
    a, b = found.operands
    return Divisors.of(parse_guards(guards or "true")).divides(b, a)


@pytest.mark.parametrize(
    ("division", "guards"),
    [
        ("8 / 2", ""),
        ("k / 1", ""),
        ("k / 4", "k % 4 == 0"),
        ("k / 4", "k % 16 == 0"),
        ("k / 4", "n > 2, (k % 8 == 0 and n < 9)"),
        ("k / 6", "k % 2 == 0, k % 3 == 0"),
        ("k / n", "k % n == 0"),
        ("(a * b) / b", ""),
        ("(a * b * c) / (c * a)", ""),
        ("(4 * a) / (a * 2)", ""),
        ("(k * a) / 4", "k % 4 == 0"),
        ("(2 * k) / 4", "k % 2 == 0"),
        ("(a + b) / 2", "a % 2 == 0, b % 4 == 0"),
        ("(a * k - b * k) / k", ""),
        ("-k / 2", "k % 2 == 0"),
        ("(k / 4) / 2", "k % 8 == 0"),
        ("(a + b) / 3", "(a + b) % 3 == 0"),
        ("(k / 2 * 6) / 3", ""),
    ],
)
def test_a_division_without_remainder(division, guards):
    assert whole(division, guards)


@pytest.mark.parametrize(
    ("division", "guards"),
    [
        ("7 / 2", ""),
        ("8 / 0", ""),
        ("k / 4", ""),
        ("k / 4", "k % 2 == 0"),
        ("k / 4", "k % 4 == 1"),
        ("k / 4", "k % 4 == 0 or n == 1"),
        ("k / 4", "not k % 4 == 0"),
        ("k / n", "n % k == 0"),
        ("(a + b) / b", ""),
        ("(a + b) / 2", "a % 2 == 0"),
        ("(a * b) / (b * b)", ""),
        ("(k / 4) / 2", "k % 4 == 0"),
    ],
)
def test_a_division_that_may_leave_a_remainder(division, guards):
    assert not whole(division, guards)
