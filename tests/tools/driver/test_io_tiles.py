"""The number of I/O tiles is chosen by the items a second."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import onnx
import pytest
from some_models import model, node

from abele.backends.target import resolve_target
from abele.ir.errors import DoesNotFit, InputError
from abele.tools import Executable, compile_model
from abele.tools.driver.io_tiles import numbers, read_io_tiles, with_best_io_tiles
from abele.tools.driver.request import machine_of
from abele.tools.views.report.collect import collect


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
    assert exe.profile["notes"] == collect(exe).program["notes"] == told
    assert f"{rates[0]:,.0f} with 0, {rates[1]:,.0f} with 1" in told[0]
    assert told[0].startswith(f"{chosen} I/O tiles")


def test_the_program_is_that_of_the_chosen_number():
    of = layer(64)
    exe = compile_model(of, "tiny:16", io_tiles="auto", cache=False)
    own = compile_model(of, "tiny:16", io_tiles=exe.target.io_tiles, cache=False)
    x = {"x": np.arange(16 * 64, dtype=np.float32).reshape(16, 64) % 7}
    np.testing.assert_array_equal(exe.run(x)["y"], own.run(x)["y"])
    assert exe.profile["cycles"] == own.profile["cycles"]


class Made:
    """What the choice asks of a compiled program."""

    def __init__(self, number: int, rate: float, problem: DoesNotFit | None) -> None:
        self.target = replace(resolve_target("tiny:16"), io_tiles=number)
        self.profile = {"items_per_s": rate}
        self.memory = SimpleNamespace(problem=lambda: problem)
        self.notes: list[str] = []

    def note(self, line: str) -> None:
        self.notes.append(line)


@pytest.mark.parametrize(
    ("rates", "chosen", "tried"),
    [
        ([10, 5, 8, 12], 4, [0, 1, 2, 4]),
        ([10, 12, 11, 20], 1, [0, 1, 2]),
        ([10, 12, None, 15], 4, [0, 1, 4]),
        ([10, 9, 9, 12], 0, [0, 1, 2]),
        ([None, 12, 11, 20], 0, []),
    ],
)
def test_the_search_goes_on_while_more_tiles_help(
    rates: list[float | None], chosen: int, tried: list[int]
):
    """None is a program that does not fit."""

    def compile_with(number: int) -> Executable:
        rate = rates[(0, 1, 2, 4).index(number)]
        problem = None if rate is not None else DoesNotFit("too large", 2, 1)
        return cast("Executable", Made(number, rate or 1000, problem))

    told: list[str] = []
    found = with_best_io_tiles(compile_with, told.extend, unbounded=True)
    assert found.target.io_tiles == chosen
    assert list(found.notes) == told
    for line in told:
        assert [int(each) for each in re.findall(r"with (\d+)", line)] == tried
    assert len(told) == (tried != [])


def test_numbers_begin_with_few_and_stay_below_a_quarter_of_a_chip():
    assert [*numbers(resolve_target("mk2x4"))] == [23, 46, 92, 184, 368]
    assert [*numbers(resolve_target("tiny:2"))] == []


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "", "9" * 30])
def test_other_texts_are_refused(text: str):
    with pytest.raises(InputError, match="need a number from 1 up, or auto"):
        read_io_tiles(text)


def test_where_nothing_is_priced_a_number_is_needed():
    with pytest.raises(InputError, match="^--io-tiles auto compares .* need a number"):
        machine_of("tiny:4", None, "auto")
