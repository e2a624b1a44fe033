"""The facts of every scalar function, held against what its numerics compute."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.dialects.scalar_functions import (
    COMBINERS,
    FUNCTIONS,
    Mathematics,
    chain_operands,
    chainable,
)

NUMBERS = st.floats(-50, 50, allow_nan=False)
FORMATS = st.tuples(
    *(st.integers(2, 24).map(float), st.integers(-20, 3).map(float)),
    *(st.sampled_from((8.0, 24.0, 65504.0)), st.sampled_from((0.0, 1.0, 2.0))),
)
"""Types that a function rounds to, as its parameters. Most numbers are beyond some of them."""
POSITIONS = [(name, at) for name, allowed in chainable().items() for at in allowed]
ENDS = [
    (name, at)
    for name, known in FUNCTIONS.items()
    for at in range(known.values, known.arity)
    # Truth values, which logical functions take, are in no interval.
    if known.ends_decide and at not in known.by_bits and not name.startswith("logical_")
]
GRID = np.array([-40.0, -7.0, -2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0, 8.0, 100.0])


def operands_of(known: Mathematics, grid: np.ndarray = GRID) -> list[np.ndarray]:
    """All combinations of some numbers, and of truth values for conditions."""
    numbers = known.arity - known.values
    grids = np.meshgrid(*[np.array([False, True])] * known.values, *[grid] * numbers)
    return [each.ravel() for each in grids]


def parameters_of(known: Mathematics) -> tuple[float, ...]:
    return known.samples[0] if known.samples else (2.0,) * known.parameters


@pytest.mark.parametrize(("name", "at"), ENDS)
@given(data=st.data())
def test_a_function_deviates_most_at_the_ends_of_an_interval(name, at, data):
    known = FUNCTIONS[name]
    others = [np.float64(data.draw(NUMBERS)) for _ in range(known.arity - 1)]
    if known.values:
        others[0] = np.bool_(others[0] > 0)
    is_code = name in ("to_code", "from_code")
    whole = FORMATS.map(lambda given: given[:2]) if is_code else FORMATS
    numbers = st.tuples(*[NUMBERS] * known.parameters)
    parameters = data.draw(whole if known.rounds or is_code else numbers)
    middle, error = data.draw(NUMBERS), data.draw(st.floats(0, 20))
    if at in known.poles and abs(middle) <= error:
        return
    if at in known.positive and middle <= error:
        return
    if known.positive and known.arity > 1:
        others = [np.abs(x) for x in others]

    def value(points: np.ndarray) -> np.ndarray:
        operands = [np.broadcast_to(x, points.shape) for x in others]
        operands.insert(at, points)
        return SCALAR_FUNCTIONS[name].apply(parameters, *operands).astype(np.float64)

    with np.errstate(all="ignore"):
        inside = value(middle + np.linspace(-error, error, 41))
        deviation = np.abs(inside - value(np.array([middle])))
    worst = np.maximum(deviation[0], deviation[-1])
    if known.meets:
        inside = np.array([worst])
        deviation = np.array([worst])
    # Nothing is promised where an end is undefined or out of range.
    assert not np.isfinite(worst) or deviation.max() <= worst * (1 + 1e-9) + 1e-12


def test_a_function_follows_in_a_chain_where_its_record_says():
    assert chain_operands("sub") == (0, 1)
    assert chain_operands("div") == (0, 1)
    assert chain_operands("less") == chain_operands("pow") == (0, 1)
    assert chain_operands("select") == (0, 1, 2)
    assert chain_operands("mod") == chain_operands("no_such_function") == ()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_identity_that_is_carried_stays_the_identity(name: str):
    known = FUNCTIONS[name]
    function, parameters = SCALAR_FUNCTIONS[name], parameters_of(known)
    for combiner in known.carries_identity_of:
        for at in range(known.arity):
            operands = operands_of(known)
            operands[at] = np.full(operands[at].shape, COMBINERS[combiner])
            assert (function.apply(parameters, *operands) == COMBINERS[combiner]).all(), combiner


@pytest.mark.parametrize("name", [name for name, known in FUNCTIONS.items() if known.degree])
def test_a_result_scales_by_its_degree_to_the_bit(name: str):
    known = FUNCTIONS[name]
    assert known.degree is not None
    parameters = (0.0, np.inf) if name == "clip" else parameters_of(known)
    degrees = [Fraction(0 if i < known.values else 2) for i in range(known.arity)]
    degree = known.degree(parameters, degrees)
    assert degree is not None
    function, operands = SCALAR_FUNCTIONS[name], operands_of(known)
    scaled = [a * 2.0 ** int(d) if d else a for a, d in zip(operands, degrees, strict=True)]
    one = function.apply(parameters, *operands).astype(np.float64)
    other = function.apply(parameters, *scaled).astype(np.float64)
    np.testing.assert_array_equal(other, one * 2.0 ** int(degree))


@pytest.mark.parametrize("name", [name for name, known in FUNCTIONS.items() if known.whole])
def test_whole_operands_give_a_whole_result(name: str):
    known = FUNCTIONS[name]
    operands = operands_of(known, np.array([-40.0, -3.0, -1.0, 0.0, 1.0, 2.0, 100.0]))
    result = SCALAR_FUNCTIONS[name].apply((-2.0, 5.0)[: known.parameters], *operands)
    np.testing.assert_array_equal(result, np.rint(result))


@pytest.mark.parametrize("name", [name for name, known in FUNCTIONS.items() if known.keeps_truth])
def test_truth_values_give_a_truth_value(name: str):
    known = FUNCTIONS[name]
    result = SCALAR_FUNCTIONS[name].apply((), *operands_of(known, np.array([0.0, 1.0])))
    assert set(np.unique(result)) <= {0, 1}


@pytest.mark.parametrize("name", [name for name, known in FUNCTIONS.items() if known.saturating])
def test_a_number_that_saturates_may_be_a_result(name: str):
    known = FUNCTIONS[name]
    parameters = (-3.0, 17.0)[: known.parameters]
    results = SCALAR_FUNCTIONS[name].apply(parameters, *operands_of(known))
    assert {parameters[i] for i in known.saturating} <= set(results.tolist())


@pytest.mark.parametrize("name", [name for name, known in FUNCTIONS.items() if known.arity == 2])
def test_a_function_is_commutative_if_its_record_says_so(name: str):
    function, (a, b) = SCALAR_FUNCTIONS[name], operands_of(FUNCTIONS[name])
    with np.errstate(all="ignore"):
        given = parameters_of(FUNCTIONS[name])
    same = np.array_equal(function.apply(given, a, b), function.apply(given, b, a), equal_nan=True)
    assert same == FUNCTIONS[name].commutative


@pytest.mark.parametrize(
    "name", [name for name, known in FUNCTIONS.items() if known.poles or known.positive]
)
def test_a_function_has_no_bound_near_its_pole(name: str):
    known = FUNCTIONS[name]
    for at in (*known.poles, *known.positive):
        operands = [np.array([3.0])] * known.arity
        operands[at] = np.array([1e-200])
        result = SCALAR_FUNCTIONS[name].apply((-3.0,) * known.parameters, *operands)
        assert result > 1e199 or known.positive


@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples_are_parameters(name: str):
    known = FUNCTIONS[name]
    assert all(len(each) == known.parameters for each in known.samples)


WRONG = {
    "chain \\[1\\]; need operands of 0 to 0": {"chain": (1,), "ends_decide": True},
    "identity of 'mean'; need combiners of sum, max": {"carries_identity_of": ("mean",)},
    "in chains; need ends_decide": {"chain": (0,)},
    "saturating \\[1\\]; need parameters of 0 to 0": {"parameters": 1, "saturating": (1,)},
}


@pytest.mark.parametrize("message", WRONG)
def test_facts_that_contradict_each_other_are_refused(message: str):
    with pytest.raises(ValueError, match=message):
        Mathematics("mine", 1, **WRONG[message])
