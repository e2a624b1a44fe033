"""The number of I/O tiles is chosen by the items a second."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from some_models import model, node

from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.driver.io_tiles import numbers, read_io_tiles
from abele.tools.driver.request import machine_of


def layer(features: int) -> onnx.ModelProto:
    weight = np.ones((features, features), np.float32)
    return model([node("MatMul", "x w", "y")], {"x": [16, features]}, ["y"], {"w": weight})


def rate(of: onnx.ModelProto, target: str, io_tiles: int) -> float:
    exe = compile_model(of, target, io_tiles=io_tiles, cache=False)
    return exe.profile["items_per_s"]


@pytest.mark.parametrize(
    ("features", "target"),
    [(64, "tiny:16"), (16, "tiny:16,host.bytes_per_cycle=100000,host.latency_ns=0")],
    ids=["the link is slow", "the link is fast"],
)
def test_the_number_with_the_most_items_a_second_is_taken(features: int, target: str):
    told: list[str] = []
    of = layer(features)
    exe = compile_model(of, target, io_tiles="auto", on_note=told.append, cache=False)
    rates = {n: rate(of, target, n) for n in (0, 1, 2)}
    chosen = exe.target.io_tiles
    assert exe.profile["items_per_s"] >= max(rates.values())
    assert (chosen == 0) == ("100000" in target)
    assert told == [each for each in exe.notes if "I/O tiles of each chip" in each]
    assert f"{rates[0]:,.0f} with 0, {rates[1]:,.0f} with 1" in told[0]
    assert told[0].startswith(f"{chosen} I/O tiles")


def test_the_program_is_that_of_the_chosen_number():
    of = layer(64)
    exe = compile_model(of, "tiny:16", io_tiles="auto", cache=False)
    own = compile_model(of, "tiny:16", io_tiles=exe.target.io_tiles, cache=False)
    x = {"x": np.arange(16 * 64, dtype=np.float32).reshape(16, 64) % 7}
    np.testing.assert_array_equal(exe.run(x)["y"], own.run(x)["y"])
    assert exe.profile["cycles"] == own.profile["cycles"]


def test_numbers_begin_with_few_and_stay_below_a_quarter_of_a_chip():
    assert [*numbers(resolve_target("mk2x4"))] == [23, 46, 92, 184, 368]
    assert [*numbers(resolve_target("tiny:2"))] == []


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "", "9" * 30])
def test_other_texts_are_refused(text: str):
    with pytest.raises(InputError, match="need a number from 1 up, or auto"):
        read_io_tiles(text)


def test_where_nothing_is_priced_a_number_is_needed():
    with pytest.raises(InputError, match="^--io-tiles auto: only a program .* need a number"):
        machine_of("tiny:4", None, "auto")
