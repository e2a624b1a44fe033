import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from abele.dialects.message_order import parsed_keys
from abele.ir.geometry.part_keys import MOST, SIDES, Key, Part, applied, difference, part, total

from .strategies import part_keys


@given(part_keys(), st.data())
def test_values_of_arrays_are_those_of_plain_integers(key: Key, data: st.DataObject):
    """The text is the oracle: Python reads it, with // for floordiv and % for mod."""
    numbers = st.lists(st.integers(0, 50), min_size=4, max_size=4)
    drawn = {side: np.array([data.draw(numbers) for _ in range(2)]) for side in SIDES}
    text = key.text().replace("floordiv", "//").replace("mod", "%")
    found = np.broadcast_to(key.values({side: list(each) for side, each in drawn.items()}), 4)
    for i in range(4):
        names = {f"{side}{k}": int(drawn[side][k, i]) for side in SIDES for k in range(2)}
        right = eval(text, {"sign": lambda v: (v > 0) - (v < 0)}, names)
        assert found[i] == right


@given(part_keys())
def test_a_key_parses_back_equal(key: Key):
    assert parsed_keys(key.text()) == (key,)


@given(part_keys(), st.integers(1, MOST - 1), st.integers(1, MOST - 1))
def test_no_value_exceeds_the_bound(key: Key, large: int, small: int):
    at = [np.array([0, large, small]), np.array([large, 0, small])]
    numbers = {side: at if side in "dp" else at[::-1] for side in SIDES}
    assert (abs(key.values(numbers)) <= key.most).all()


def test_terms_are_added():
    assert difference(part("d", 0), part("d", 0)) == Key()
    assert total((part("d", 0), 2), (part("d", 0), 1)) == Key(((Part("d", 0), 3),))


def test_numbers_make_a_key_suit_some_grids_only():
    assert not difference(part("d", 0), part("s", 0)).has_numbers
    assert not applied("sign", part("s", 1)).has_numbers
    for key in (applied("mod", part("d", 0), 4), total((part("d", 0), 2)), Key(offset=1)):
        assert key.has_numbers


def test_a_key_whose_values_do_not_fit_is_refused():
    wide = total((part("d", 0), MOST - 1))
    for make in (
        lambda: total((wide, 1), (total((part("s", 0), MOST - 1)), 1)),
        lambda: applied("mod", part("d", 0), 0),
        lambda: applied("mod", part("d", 0), MOST),
        lambda: Key(offset=MOST),
    ):
        with pytest.raises(ValueError, match="need|use smaller"):
            make()
