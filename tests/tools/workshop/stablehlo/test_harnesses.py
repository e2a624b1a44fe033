"""A sample of JAX's own cases, where JAX is installed."""

import importlib.util

import pytest

from abele.ir.support.errors import InputError
from abele.tools.workshop.stablehlo import harnesses
from abele.tools.workshop.stablehlo.bench import judge_harness
from abele.tools.workshop.stablehlo.cases import PASSED

HAS_JAX = all(importlib.util.find_spec(each) is not None for each in ("jax", "absl"))
EVERY = 150


@pytest.mark.skipif(HAS_JAX, reason="JAX is installed")
def test_without_jax_the_error_says_what_to_install():
    with pytest.raises(InputError, match=r"pip install 'abele\[jax\]'"):
        harnesses.harnesses()


@pytest.mark.skipif(not HAS_JAX, reason="JAX and absl-py are not installed")
@pytest.mark.filterwarnings("ignore")
def test_no_case_of_a_sample_is_wrong():
    verdicts = [judge_harness(number) for number in harnesses.numbers(harnesses.TYPES)[::EVERY]]
    assert [v for v in verdicts if v.verdict not in (*PASSED, "refused")] == []
    assert sum(v.verdict in PASSED for v in verdicts) >= len(verdicts) // 10


@pytest.mark.parametrize(
    ("group", "params", "outputs"),
    [
        ("sort", {"is_stable": False, "num_keys": 1, "num_arrays": 3}, [1, 2]),
        ("sort", {"is_stable": True, "num_keys": 1, "num_arrays": 3}, []),
        ("approx_top_k", {}, [1]),
        ("add", {}, []),
    ],
)
def test_what_equal_elements_leave_open_is_not_compared(group, params, outputs):
    assert list(harnesses.open_outputs(group, params)) == outputs
