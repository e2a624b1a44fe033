from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from built_steps import values_of
from numpy.typing import NDArray

from abele.backends.codelets.philox import philox
from abele.dialects.dtypes import element_type
from abele.passes.stablehlo_to_nn.random_bits import GENERATORS

STATE = np.array([7 + (8 << 32), 9 + (10 << 32)], np.uint64)


def drawn(
    name: str, state: NDArray[Any], shape: tuple[int, ...], dtype: Any = np.uint32
) -> list[NDArray[Any]]:
    """The state that follows, and elements drawn by a generator."""

    def build(new: Any, given: Any) -> Any:
        found = GENERATORS[name](new, given, shape, element_type(np.dtype(dtype)))
        return [found.state, found.bits]

    found = values_of(build, state)
    assert isinstance(found, list)
    return found


# What XLA gives on a host, by jax 0.10.2.
OF_XLA = {
    "THREE_FRY": [2312292062, 3466003948, 1282440866, 4197300169, 4020401866, 2556134132],
    "PHILOX": [3330768776, 17749722, 1732036292, 1522029110, 3905811962, 205554797],
}


@pytest.mark.parametrize("name", OF_XLA)
def test_words_are_those_of_xla(name: str) -> None:
    state, bits = drawn(name, STATE, (5, 3))
    np.testing.assert_array_equal(bits.reshape(-1)[:6], OF_XLA[name])
    assert state.tolist() == [STATE[0], STATE[1] + (9 if name == "THREE_FRY" else 4)]


def test_philox_is_that_of_random123() -> None:
    for words in (2, 3):
        state = np.array([7 + (8 << 32), 2**64 - 1, 5][:words], np.uint64)
        after, bits = drawn("PHILOX", state, (8,))
        high = int(state[2]) if words == 3 else int(state[0])
        counters = [int(state[1]) + (high << 64) + i for i in range(2)]
        rows = [
            philox(
                [np.array(c >> 32 * i & 0xFFFFFFFF) for i in range(4)], [np.array(7), np.array(8)]
            )
            for c in counters
        ]
        np.testing.assert_array_equal(bits, np.stack([np.stack(row) for row in rows]).reshape(-1))
        total = (int(state[1]) + (high << 64) + 2) % 2**128
        parts = [total & (2**64 - 1), total >> 64]
        assert after.tolist() == [int(state[0]), *parts[: words - 1]]


def test_a_shape_of_several_odd_axes_leaves_words_out_at_the_end_of_the_longest() -> None:
    _, long = drawn("THREE_FRY", STATE, (3, 6))
    _, odd = drawn("THREE_FRY", STATE, (3, 5))
    np.testing.assert_array_equal(odd, long[:, :5])


def test_all_bits_equal_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    algorithms = {"THREE_FRY": "RNG_THREE_FRY", "PHILOX": "RNG_PHILOX"}
    for (name, theirs), dtype, shape in product(
        algorithms.items(), (np.uint8, np.uint16, np.uint32), ((), (5,), (3, 4), (3, 5))
    ):
        algorithm = getattr(jax.lax.RandomAlgorithm, theirs)
        key, bits = jax.lax.rng_bit_generator(
            STATE.view(np.uint32), shape, dtype=dtype, algorithm=algorithm
        )
        state, own = drawn(name, STATE, shape, dtype)
        np.testing.assert_array_equal(state.view(np.uint32), np.asarray(key))
        np.testing.assert_array_equal(own, np.asarray(bits))
