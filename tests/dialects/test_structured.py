import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.dialects.structured import CHAINABLE, FUNCTIONS, Body, Stage, Structure
from abele.ir.geometry.space import Dim, Space, identity_map

NUMBERS = st.floats(-50, 50, allow_nan=False)
POSITIONS = [(name, at) for name, allowed in CHAINABLE.items() for at in allowed]


@pytest.mark.parametrize(("name", "at"), POSITIONS)
@given(data=st.data())
def test_a_function_of_a_chain_deviates_most_at_the_ends_of_an_interval(name, at, data):
    arity, count = FUNCTIONS[name]
    others = [np.float64(data.draw(NUMBERS)) for _ in range(arity - 1)]
    parameters = tuple(data.draw(NUMBERS) for _ in range(count))
    middle, error = data.draw(NUMBERS), data.draw(st.floats(0, 20))

    def value(points: np.ndarray) -> np.ndarray:
        operands = [np.broadcast_to(x, points.shape) for x in others]
        operands.insert(at, points)
        return SCALAR_FUNCTIONS[name].apply(parameters, *operands)

    with np.errstate(all="ignore"):
        inside = value(middle + np.linspace(-error, error, 41))
        deviation = np.abs(inside - value(np.array([middle])))
    worst = np.maximum(deviation[0], deviation[-1])
    # Nothing is promised where an end is undefined or out of range.
    assert not np.isfinite(worst) or deviation.max() <= worst * (1 + 1e-9) + 1e-12


def test_no_truth_value_may_be_in_a_chain():
    assert not any(SCALAR_FUNCTIONS[name].boolean for name in CHAINABLE)


def test_a_body_knows_how_many_operands_its_chain_adds():
    body = Body("mul", "sum", (), (Stage("add"), Stage("relu"), Stage("sub", at=1)))
    assert (body.own_arity, body.arity) == (2, 4)


def test_without_its_chain_a_structure_has_its_own_operands_only():
    dims, access = (Dim("x", 3),), identity_map((0,), (3,))
    plain = Structure(Space(dims, (access,), (access,)), Body("exp"))
    chain = Structure(Space(dims, (access,) * 2, (access,)), Body("exp", then=(Stage("add"),)))
    assert chain.unchained == plain
    assert plain.unchained is plain
