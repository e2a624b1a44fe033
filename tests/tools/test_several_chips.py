"""Programs compiled for several chips compute what one chip does."""

from __future__ import annotations

import numpy as np
import pytest
from lengths import large
from some_models import classifier, convolutions

from abele.dialects.exchange import VariableOp
from abele.tools import Executable, Training, compile_model

FAST = (
    "links.topology=ladder,links.rung_gbytes=1e6,links.rail_gbytes=1e6,"
    "links.hop_ns=0,links.first_word_ns=0"
)
"""Links that cost little, so that small programs use all chips."""


def machine(chips: int) -> str:
    return "tiny:16" if chips == 1 else f"tiny:{4 * chips},{FAST},links.chips={chips}"


def crosses(exe: Executable) -> bool:
    return 'sync "all"' in str(exe.module_at("exchange"))


def last_tile(exe: Executable) -> int:
    placed = [op for op in exe.module_at("exchange").walk() if isinstance(op, VariableOp)]
    return max(op.placed.tiles.end for op in placed)


@pytest.mark.parametrize("chips", [2, 4])
def test_a_network_gives_the_same_results_on_several_chips(chips: int):
    rng = np.random.default_rng(0)
    one = compile_model(convolutions(), machine(1), batch=8, cache=False)
    several = compile_model(convolutions(), machine(chips), batch=8, cache=False)
    assert last_tile(several) > 4
    given = {each.name: rng.normal(size=each.shape).astype(each.dtype) for each in one.inputs}
    for name, array in one.run(given).items():
        np.testing.assert_allclose(several.run(given)[name], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("optimizer", "chips"), [("adam", 2), large("sgd", 4)])
def test_steps_of_training_leave_the_same_weights_on_several_chips(chips: int, optimizer: str):
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.normal(size=(8, 12)).astype(np.float32),
        "target": np.arange(8, dtype=np.int32) % 4,
    }

    def trained(number: int) -> Executable:
        train = Training(optimizer=optimizer)
        exe = compile_model(classifier(), machine(number), batch=8, train=train, cache=False)
        for _ in range(3):
            _ = exe.run(inputs)
        return exe

    one, several = trained(1), trained(chips)
    assert crosses(several)
    for name, array in one.states.items():
        np.testing.assert_allclose(several.states[name], array, rtol=1e-4, atol=1e-6)
