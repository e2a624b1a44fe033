from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from some_models import relu

from abele.ir.errors import DoesNotFit, InputError
from abele.tools import Training, compile_model
from abele.tools.driver.executable import Executable
from abele.tools.driver.spare import ROUNDS, fitting

DIGITS = Path(__file__).parents[3] / "examples" / "digits.onnx"

TIGHT = "tiny:8,memory.bytes_per_tile=109400"
"""A machine that a step of digits does not fit by a few bytes, which no estimate sees."""


def too_large(needed: int, tile: int | None = 3) -> DoesNotFit:
    return DoesNotFit("the program", needed, 1000, tile=tile)


@pytest.fixture(scope="module")
def small() -> Executable:
    return compile_model(relu(), "tiny", cache=False)


def needing(found: list[int], small: Executable) -> tuple[list[int], Callable[[int], Executable]]:
    """Compiles that need so many bytes in turn; None once these are used up. And what they got."""
    asked: list[int] = []

    def compile_with(spare: int) -> Executable:
        asked.append(spare)
        if len(asked) <= len(found):
            raise too_large(found[len(asked) - 1])
        return small

    return asked, compile_with


def test_a_program_is_planned_for_as_many_bytes_less_as_it_lacked(small: Executable):
    asked, compile_with = needing([1010, 1004], small)
    said: list[str] = []
    assert fitting(compile_with, said.extend, unbounded=False) is small
    assert asked == [0, 10, 14]
    assert said == [
        "planned for 14 bytes of each tile less, because the variables of the first plans did not "
        "fit"
    ]
    assert small.notes[-1:] == (said[-1],)


def test_a_program_that_never_fits_is_refused_as_it_was_first(small: Executable):
    asked, compile_with = needing([1010, *[1001] * ROUNDS], small)
    with pytest.raises(DoesNotFit, match="needs 1010 bytes"):
        fitting(compile_with, lambda lines: None, unbounded=False)
    assert len(asked) == 1 + ROUNDS


@pytest.mark.parametrize("then", [InputError("no pass plans"), too_large(1400, tile=None)])
def test_the_search_ends_where_no_plans_are_so_small(then: Exception):
    asked: list[int] = []

    def compile_with(spare: int) -> Executable:
        asked.append(spare)
        raise then if spare else too_large(1010)

    with pytest.raises(DoesNotFit, match="needs 1010 bytes"):
        fitting(compile_with, lambda lines: None, unbounded=False)
    assert asked == [0, 10]


def test_wrong_input_is_told_at_once():
    def compile_with(spare: int) -> Executable:
        raise InputError("no such file")

    with pytest.raises(InputError, match="no such file"):
        fitting(compile_with, lambda lines: None, unbounded=False)


def test_a_step_fits_whose_first_plans_leave_gaps():
    said: list[str] = []
    how = {"batch": 16, "train": Training(learning_rate=0.01), "cache": False}
    exe = compile_model(DIGITS, TIGHT, on_note=said.append, **how)
    (note,) = exe.notes
    assert note.startswith("planned for 192 bytes of each tile less")
    assert said == [note]
    assert exe.profile["max_tile_bytes"] <= 109_400
    same = compile_model(DIGITS, TIGHT, unbounded=True, **how)
    assert same.profile["cycles"] == exe.profile["cycles"]
    x = np.random.default_rng(0).random((16, *exe.inputs[0].shape[1:]), np.float32)
    first, second = (
        float(exe.step({"x": x, "target": np.arange(16, dtype=np.int32) % 10})["loss"])
        for _ in range(2)
    )
    assert second < first


def test_without_smaller_plans_that_step_does_not_fit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.tools.driver.spare.ROUNDS", 0)
    with pytest.raises(DoesNotFit, match="needs 93208 bytes, 93016 available"):
        compile_model(DIGITS, TIGHT, batch=16, train=Training(learning_rate=0.01), cache=False)


@pytest.mark.parametrize("spare", [-1, 10**9])
def test_plans_cannot_need_less_than_nothing(spare: int):
    with pytest.raises(InputError, match=f"spare {spare}; the plans need"):
        compile_model(
            relu(), "tiny", passes=f"plan-splits{{spare={spare}}},nn,partition,tile,exchange"
        )
