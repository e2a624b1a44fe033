"""Schedules of the learning rate."""

import numpy as np
import pytest

from abele.ir.errors import InputError
from abele.tools.driver.schedules import schedule


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("constant", [0.4] * 6),
        ("step:2", [0.4, 0.4, 0.04, 0.04, 0.004, 0.004]),
        ("step:3:0.5", [0.4, 0.4, 0.4, 0.2, 0.2, 0.2]),
        ("linear-warmup:4", [0.1, 0.2, 0.3, 0.4, 0.4, 0.4]),
        ("linear-warmup:2+step:4", [0.2, 0.4, 0.4, 0.4, 0.04, 0.04]),
        ("exp:0.5", [0.4, 0.2, 0.1, 0.05, 0.025, 0.0125]),
        ("inv:1:2", [0.4, 0.1, 0.4 / 9, 0.025, 0.016, 0.4 / 36]),
        ("multistep:0.5:1:3", [0.4, 0.2, 0.2, 0.1, 0.1, 0.1]),
        ("poly:2", [0.4 * (1 - i / 6) ** 2 for i in range(6)]),
        ("poly:1:4", [0.4, 0.3, 0.2, 0.1, 0.0, 0.0]),
        ("sigmoid:-1:2", [0.4 / (1 + np.exp(i - 2)) for i in range(6)]),
        ("cosine", 0.2 * (1 + np.cos(np.pi * np.arange(6) / 6))),
    ],
)
def test_a_schedule_is_what_its_name_says(text: str, rates: list[float]):
    found = schedule(text, 0.4, 6)
    assert [found(step) for step in range(6)] == pytest.approx(list(rates))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cos",
        "step",
        "step:0",
        "step:x",
        "step:1:-1",
        "cosine:2",
        "exp",
        "inv:1",
        "poly:1:0",
        "exp:nan",
        "multistep:0.5",
    ],
)
def test_what_is_no_schedule_is_refused(text: str):
    with pytest.raises(InputError, match="--schedule"):
        schedule(text, 0.1, 10)


@pytest.mark.parametrize(
    ("text", "rate"), [("exp:1e300", 1e-300), ("multistep:1e200:1:2", 1e-200), ("step:1:1e25", 1.0)]
)
def test_a_rate_that_float32_cannot_hold_is_refused_at_its_step(text: str, rate: float):
    found = schedule(text, rate, 10)
    with pytest.raises(InputError, match="rate of step 3 is more than"):
        _ = [found(step) for step in range(3)]
