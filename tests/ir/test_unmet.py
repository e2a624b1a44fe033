"""Errors about unmet conditions: the message, and the fields that the search reads."""

import pytest

from abele.ir.unmet import Unmet, need_one_of


def test_a_text_that_is_not_allowed_is_refused_with_the_allowed_ones():
    with pytest.raises(Unmet, match="mode 'x'; need one of a, b") as caught:
        need_one_of("mode", "x", ("a", "b"))
    assert caught.value.what == "mode"
    assert caught.value.allowed == ("a", "b")


def test_an_allowed_text_passes():
    need_one_of("mode", "a", ("a", "b"))
