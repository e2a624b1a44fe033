"""Conditions of --fail-if: a small grammar, and clear messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.errors import InputError
from abele.tools.views.report.condition import read_condition

NOW = {"cycles": 103.0, "bytes": 50.0, "fits": 1.0}
WAS = {"cycles": 100.0, "bytes": 50.0, "fits": 1.0}


def holds(text: str) -> bool:
    return read_condition(text).holds(NOW, WAS)


@pytest.mark.parametrize(
    "text",
    [
        "cycles > 1.02 * baseline.cycles",
        "cycles - baseline.cycles == 3",
        "cycles / baseline.cycles > 1 and bytes <= baseline.bytes",
        "not cycles < 100",
        "(cycles > 200 or bytes == 50) and fits == 1",
        "2 + 3 * 4 == 14",
        "(2 + 3) * 4 == 20",
        "10 - 3 - 2 == 5",
        "-cycles < -1e2",
        "cycles > 200 or cycles > 100 and bytes < 60",
    ],
)
def test_it_is_true(text: str):
    assert holds(text)
    assert not holds(f"not ({text})")


@given(
    st.integers(-99, 99), st.integers(-99, 99), st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
)
def test_numbers_compare_as_python_compares_them(a: int, b: int, sign: str):
    expected = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[
        sign
    ]
    assert holds(f"{a} {sign} {b}") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cycles",
        "cycles >",
        "1 < 2 < 3",
        "__import__('os') > 1",
        "cycles.real > 1",
        "1 ** 9 > 1",
        "cycles > 1; 1 > 0",
        "f(1) > 0",
        "cycles > 'a'",
    ],
)
def test_anything_else_is_not_understood(text: str):
    with pytest.raises(InputError, match="not understood at"):
        read_condition(text)


def test_an_unknown_figure_is_named_with_the_nearest_one():
    with pytest.raises(InputError, match="no figure baseline.cycle.*cycles"):
        holds("cycles > baseline.cycle")


def test_a_baseline_is_needed_only_where_it_is_named():
    assert read_condition("cycles > 100").holds(NOW, None)
    with pytest.raises(InputError, match="need BASELINE"):
        read_condition("cycles > baseline.cycles").holds(NOW, None)


def test_a_division_by_zero_is_an_error():
    with pytest.raises(InputError, match="divides by zero"):
        holds("cycles / (bytes - 50) > 1")


def test_a_very_long_condition_is_refused():
    with pytest.raises(InputError, match="letters"):
        read_condition("1 < 2 and " * 200 + "1 < 2")
