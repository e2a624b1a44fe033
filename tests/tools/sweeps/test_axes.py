import pytest

from abele.ir.support.errors import InputError
from abele.tools.sweeps.axes import Values, length, values_of


def values(given: object) -> Values:
    return values_of(given, "key", is_list=lambda _: False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, [3]),
        ("mk2", ["mk2"]),
        ([1, 4, 16], [1, 4, 16]),
        ({"from": 1, "to": 7, "step": 3}, [1, 4, 7]),
        ({"from": 1, "to": 6, "step": 3}, [1, 4]),
        ({"from": 7, "to": 1, "step": -3}, [7, 4, 1]),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, [0.1, 0.2, 0.3]),
        ({"from": 2, "to": 16, "factor": 2}, [2, 4, 8, 16]),
        ({"from": 1000, "to": 9999, "factor": 10}, [1000]),
        ({"from": 0, "to": 10, "count": 3}, [0, 5, 10]),
        ({"from": 0.0, "to": 1, "count": 3}, [0.0, 0.5, 1.0]),
    ],
)
def test_a_key_has_one_value_a_list_or_a_range(given: object, expected: list[object]):
    found = values(given)
    assert [found[k] for k in range(length(found))] == pytest.approx(expected)
    assert {type(found[k]) for k in range(length(found))} == {type(expected[-1])}


@pytest.mark.parametrize("step", [1, 3, -2, 10**20])
def test_the_length_of_a_range_is_known_however_long_it_is(step: int):
    first, last = (0, 10**30) if step > 0 else (10**30, 0)
    found = values({"from": first, "to": last, "step": step})
    assert length(found) == 10**30 // abs(step) + 1
    assert found[0] == first


def test_the_values_of_a_long_range_of_floats_are_not_listed():
    assert length(values({"from": 0.0, "to": 1e9, "step": 1e-3})) == 10**12 + 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "key: an empty list"),
        ({"from": 5, "to": 1, "step": 1}, "key: an empty range from 5 to 1"),
        ({"from": 5, "to": 1, "factor": 2}, "key: an empty range from 5 to 1"),
        ({"from": 1, "to": 5, "step": 0}, "step is 0"),
        ({"from": 1, "to": 5}, "need from, to, and one of step, factor or count"),
        ({"from": 1, "to": 5, "step": 1, "count": 2}, "one of step, factor or count"),
        ({"from": 1, "to": 5, "steps": 1}, "no key 'steps'; did you mean step"),
        ({"from": "1", "to": 5, "step": 1}, "from is '1'; need a number"),
        ({"from": 1, "to": float("inf"), "step": 1}, "to is inf"),
        ({"from": 0, "to": 5, "factor": 2}, "values above 0"),
        ({"from": 1, "to": 5, "factor": 1}, "a factor above 1"),
        ({"from": 1, "to": 5, "count": 1}, "whole number from 2"),
    ],
)
def test_a_range_that_means_nothing_is_refused(given: object, problem: str):
    with pytest.raises(InputError, match=problem):
        values(given)
