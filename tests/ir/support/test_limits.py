"""Limits are named in messages, and the environment changes them."""

import pytest

from abele.ir.errors import InputError
from abele.ir.support.limits import LIMITS, Limit, short


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_a_limit_is_named_and_changed_by_its_variable(
    limit: Limit, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(limit.variable, raising=False)
    assert limit.most == limit.default
    monkeypatch.setenv(limit.variable, "12")
    assert limit.most == 12
    text = limit.refusal("this")
    assert text == f"this; at most 12 {limit.name} are allowed ({limit.variable} changes it)"


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1.5", "1e3", "many", "9" * 19, "9" * 5000, "\u0663"]
)
def test_only_positive_integers_are_limits(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(LIMITS[0].variable, text)
    with pytest.raises(InputError, match=f"{LIMITS[0].variable}=.*; need an integer from 1"):
        _ = LIMITS[0].most


def test_names_differ():
    assert len({limit.variable for limit in LIMITS}) == len(LIMITS)


def test_long_numbers_are_shortened():
    assert short(-12345) == "-12,345"
    assert short(2**9999) == "a number of 10,000 bits"
