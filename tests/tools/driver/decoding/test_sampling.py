"""Sampling against NumPy: the tokens that may be drawn, the same draws, and how often."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr, f16, f32, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from abele.backends.codelets.philox import philox
from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.text import write_module
from abele.ir.upstream import Builder, InsertPoint, ModuleOp, UnknownLoc
from abele.tools import compile_model
from abele.tools.driver.decoding.emit import Emit
from abele.tools.driver.decoding.sampling import (
    UINT32,
    Choice,
    best_token,
    drawn_token,
    lower_bound,
)

NAMES = ("scores", "temperature", "top_k", "top_p", "seed", "position")


def bounding(words: int) -> ModuleOp:
    types = [nn.tensor((words,), f32), nn.tensor((), f32)]
    block = Block(arg_types=types)
    emit = Emit(Builder(InsertPoint.at_end(block)), UnknownLoc())
    scores, limit = block.args
    ones = emit.constant(np.ones(words), np.float32)
    bound = emit(nn.GreaterEqualOp(scores, lower_bound(emit, scores, ones, limit)))
    emit.insert(ReturnOp(bound))
    main = FuncOp("main", (types, [bound.type]), Region(block))
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, ("scores", "limit")))
    main.attributes["result_names"] = ArrayAttr([StringAttr("allowed")])
    return ModuleOp([main])


def sampler(words: int, element: Attribute = f32) -> ModuleOp:
    types = [nn.tensor((words,), element), *(nn.tensor((), each) for each in (f32, f32, f32))]
    types += [nn.tensor((), UINT32), nn.tensor((), i32)]
    block = Block(arg_types=types)
    emit = Emit(Builder(InsertPoint.at_end(block)), UnknownLoc())
    scores, temperature, top_k, top_p, seed, position = block.args
    drawn = drawn_token(emit, scores, Choice(temperature, seed, top_k, top_p), position)
    best = best_token(emit, scores)
    emit.insert(ReturnOp(drawn, best))
    main = FuncOp("main", (types, [drawn.type, best.type]), Region(block))
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, NAMES))
    main.attributes["result_names"] = ArrayAttr(map(StringAttr, ("drawn", "best")))
    return ModuleOp([main])


def inputs(
    scores: np.ndarray,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    position: int = 0,
) -> dict[str, Any]:
    numbers = (temperature, top_k or len(scores), top_p)
    integers = (np.uint32(seed), np.int32(position))
    values = (scores, *map(np.float32, numbers), *integers)
    return {name: np.asarray(value) for name, value in zip(NAMES, values, strict=True)}


def allowed(given: dict[str, Any]) -> np.ndarray:
    """The tokens that may be drawn, by sorting."""
    scores = given["scores"].astype(np.float64) / given["temperature"]
    keep = scores >= np.sort(scores)[::-1][int(given["top_k"]) - 1]
    chances = np.where(keep, np.exp(scores - scores.max()), 0)
    chances /= chances.sum()
    higher = np.array([chances[scores > each].sum() for each in scores])
    return keep & ((higher < given["top_p"]) | (given["top_p"] >= 1))


def expected(given: dict[str, Any]) -> int:
    """The token that is drawn with the same bits."""
    words = len(given["scores"])
    nothing = np.zeros(words, np.uint32)
    counter = (np.arange(words), nothing, nothing + given["position"], nothing)
    bits, *_ = philox(counter, (nothing + given["seed"], nothing))
    uniform = ((bits >> 8) + 0.5) * 2.0**-24
    noisy = given["scores"].astype(np.float64) / given["temperature"] - np.log(-np.log(uniform))
    return int(np.where(allowed(given), noisy, -np.inf).argmax())


def of(module: ModuleOp, given: dict[str, Any]) -> tuple[int, int]:
    found = run_reference(module, given).outputs
    return int(found["drawn"]), int(found["best"])


SCORES = np.random.default_rng(0).normal(size=40).astype(np.float32) * 3


CASES = [
    {"temperature": 0.25},
    {"temperature": 8.0, "top_k": 7},
    {"top_k": 1},
    {"top_k": 7, "top_p": 0.6},
    {"temperature": 2.0, "top_p": 0.01},
    {"temperature": 8.0, "top_p": 0.95},
]


def test_the_token_is_that_of_sorted_scores_with_the_same_bits():
    module = sampler(len(SCORES))
    for seed, options in enumerate(CASES):
        for position in (0, 9):
            given = inputs(SCORES, **options, seed=seed, position=position)
            assert of(module, given) == (expected(given), SCORES.argmax())


@pytest.mark.parametrize(
    "scores",
    [
        [0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38],
        [5.0, 5.0, 5.0, 5.0, 1.0, 1.0],
        [-1e30, -2e30, -np.inf, -3e30, -np.inf, -4e30],
        [-7.0, -6.0, -5.0, -4.0, -3.0, -2.0],
    ],
)
def test_bounds_are_exact_at_the_ends_of_float32_and_for_equal_scores(scores: list[float]):
    values = np.array(scores, np.float32)
    module = bounding(len(values))
    for limit in (1, 2, 5, 6):
        given = {"scores": values, "limit": np.array(limit, np.float32)}
        found = run_reference(module, given).outputs["allowed"]
        assert found.tolist() == (values >= np.sort(values)[-limit]).tolist()


def test_the_draws_are_as_frequent_as_chances_say():
    """Those of NumPy, which are the same as those of the device."""
    scores = np.array([0.0, 1.0, 2.0, 1.5, -1.0, 0.5, 1.0, -3.0], np.float32)
    module, count = sampler(len(scores)), 1000
    for options in ({"temperature": 0.7}, {"top_k": 4}, {"top_p": 0.8}):
        given = inputs(scores, **options)
        chances = np.where(allowed(given), np.exp(scores / given["temperature"]), 0)
        drawn = [expected(inputs(scores, **options, position=i)) for i in range(count)]
        for position in range(0, count, 250):
            token, _ = of(module, inputs(scores, **options, position=position))
            assert token == drawn[position]
        found = np.bincount(drawn, minlength=len(scores))
        wanted = count * chances / chances.sum()
        assert not found[wanted == 0].any()
        some = wanted > 0
        # Chi-square with at most 7 degrees of freedom: above 24.3 in one of 1,000 cases.
        assert ((found - wanted)[some] ** 2 / wanted[some]).sum() < 24.3


def test_every_level_draws_the_same_token(tmp_path: Path):
    path = tmp_path / "sampler.mlir"
    write_module(sampler(len(SCORES), f16), path)
    exe = compile_model(path, "tiny:4")
    scores = SCORES.astype(np.float16)
    for position in range(2):
        given = inputs(scores, 0.8, 9, 0.9, 7, position)
        for level in exe.levels:
            found = exe.run(given, at=level)
            assert (int(found["drawn"]), int(found["best"])) == (expected(given), scores.argmax())
