import numpy as np
import pytest

from abele.backends.reference import within, worst_of

INF, NAN = np.inf, np.nan


def ratio(actual, value, bound, dtype="float32") -> float:
    actual = np.array([actual], dtype)
    return within(actual, np.array([value], float), np.array([bound], float))


def test_the_ratio_is_error_over_bound():
    assert ratio(1.5, 1.0, 1.0) == 0.5
    assert ratio(1.5, 1.0, 0.25) == 2.0
    assert ratio(1.0, 1.0, 0.0) == 0.0
    assert ratio(1.5, 1.0, 0.0) == INF


@pytest.mark.parametrize(
    ("actual", "value", "need"),
    [
        (NAN, NAN, 0.0),
        (NAN, 1.0, INF),
        (1.0, NAN, INF),
        (INF, INF, 0.0),
        (-INF, INF, INF),
        (INF, 1.0, INF),
        (3e38, INF, INF),
        (NAN, INF, INF),
    ],
)
def test_categories_come_before_numbers(actual: float, value: float, need: float):
    assert ratio(actual, value, 0.5) == need


def test_an_infinity_is_right_where_the_value_is_out_of_range():
    assert ratio(INF, 65519.0, 32.0, "float16") == 0.0
    assert ratio(INF, 1e5, 0.0, "float16") == 0.0
    assert ratio(-INF, 1e5, 0.0, "float16") == INF
    assert ratio(INF, 60000.0, 30.0, "float16") == INF


def test_an_infinite_bound_allows_everything():
    assert ratio(INF, 1.0, INF) == ratio(NAN, 1.0, INF) == ratio(5.0, 1.0, INF) == 0.0


def test_integers_differ_or_do_not():
    actual, value = np.array([2**60 + 1, 5]), np.array([2**60, 5])
    assert within(actual, value, np.zeros(2)) == INF
    assert within(value, value, np.zeros(2)) == 0.0
    truth = np.array([True, False])
    assert within(truth, ~truth, np.zeros(2)) == INF


def test_the_worst_element_is_named():
    actual = np.zeros((2, 3), np.float32)
    actual[1, 2] = 3
    actual[0, 1] = 1
    worst = worst_of(actual, np.zeros((2, 3)), np.ones((2, 3)))
    assert worst.index == (1, 2)
    assert str(worst) == "[1, 2]: 3.0; need 0.0 within 1, error is 3 times that"


def test_no_elements_are_right_and_shapes_must_agree():
    none = np.zeros((0, 2))
    assert within(none, none, none) == 0.0
    with pytest.raises(ValueError, match=r"shapes \(0, 2\), \(2,\) and \(0, 2\)"):
        within(none, np.zeros(2), none)
