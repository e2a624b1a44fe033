from pathlib import Path
from typing import Any

import pytest

from abele.ir.support.errors import InputError
from abele.tools.executors.here import Here
from abele.tools.sweeps.choice import Choice, read_choice
from abele.tools.sweeps.folder import LOG
from abele.tools.sweeps.spec import spec_of
from abele.tools.sweeps.sweep import run_sweep

ROWS: list[dict[str, Any]] = [
    {"status": "fits", "cycles": 3, "links_rung_gbytes": None, "joules": None},
    {"status": "fits", "cycles": 4, "links_rung_gbytes": 50.0, "joules": 2.0},
    {"status": "fits", "cycles": 5, "links_rung_gbytes": 99.0, "joules": 1.0},
    {"status": "does not fit", "cycles": None, "links_rung_gbytes": 99.0, "joules": None},
]


def choice(**table: object) -> Choice:
    return read_choice(table, "result")


def test_a_row_without_a_figure_does_not_keep_a_constraint_that_names_it():
    assert choice(best="min cycles").best_of(ROWS) == ROWS[0]
    slow = choice(best="min cycles", constraints=["links_rung_gbytes < 80"])
    assert slow.best_of(ROWS) == ROWS[1]
    assert [slow.allows(row) for row in ROWS] == [False, True, False, False]


def test_a_row_without_the_figure_of_a_goal_is_not_the_best():
    assert choice(best="min joules").best_of(ROWS) == ROWS[2]
    assert choice(best="max joules").best_of(ROWS) == ROWS[1]
    assert choice(best="max joules").best_of(ROWS[:1]) is None


@pytest.mark.parametrize(
    "result",
    [
        {"best": "min cycle"},
        {"best": "min model"},
        {"pareto": ["min tiles", "min cycle"]},
        {"constraints": ["cycle < 3"]},
    ],
)
def test_an_unknown_figure_is_refused_before_anything_is_compiled(
    result: dict[str, object], product: Path
):
    given = {
        "model": [{"file": product.name}],
        "target": [{"base": "tiny:2"}],
        "result": result,
    }
    with pytest.raises(InputError, match="no figure (cycle; did you mean cycles|model)"):
        run_sweep(spec_of(given, "s.toml", product.parent), product.with_name("f"), Here())
    assert not (product.with_name("f") / LOG).exists()
