"""The published placements of BERT on several chips, in miniature, compute what one chip does."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lengths import large

from abele.dialects.variable import Variable
from abele.tools import Executable, compile_model
from abele.tools.driver.training import Training
from abele.tools.workshop.transformers.graphs import Shape, encoder

SMALL = Shape(layers=2, width=8, heads=2, hidden=16, words=12, tokens=4)

TILES = 2
"""Of a chip."""

LAYERS = {"pipeline": "layer1.*"}
"""A stage for each layer; the head is on the chip of the last one."""

TIED = {"pipeline": "layer0.up.*,layer1.q.*,layer1.up.*,head.*", "stage_chips": "0,1,2,3,0"}
"""Stages on four chips, of which the first one has the embedding, and the head behind the others,
which has its weight."""

INSIDE = {"pipeline": "layer0.up.*,layer1.up.*,head.*", "stage_chips": "0,1,2,0"}
"""Cuts between attention and feed-forward."""

AGAIN = {"recompute": "stages"}
TURNS = {"schedule": "interleaved"}
COPIES = {"replicas": 2}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with the head of a language model."""
    path = tmp_path_factory.mktemp("bert") / "bert.onnx"
    onnx.save(encoder(SMALL, language=True), path)
    return path


def machine(chips: int) -> str:
    links = f",links.topology=ladder,links.chips={chips}" if chips > 1 else ""
    return f"tiny:{TILES * chips}{links}"


@cache
def trained(path: Path, chips: int, parts: int, **options: Any) -> tuple[Executable, float]:
    """A step of training that was done twice, and the last loss."""
    train = Training("softmax_cross_entropy", learning_rate=0.5, micro_batches=parts)
    exe = compile_model(path, machine(chips), train=train, **options, cache=False)
    words = np.random.default_rng(0).integers(0, SMALL.words, (2, parts * SMALL.tokens))
    inputs = {"ids": words[0], "target": words[1].astype(np.int32)}
    found = [exe.step(inputs) for _ in range(2)]
    return exe, float(found[-1]["loss"])


def chips_of(exe: Executable, state: str) -> set[int]:
    """The chips on which a state lies."""
    placed = [op for op in exe.module_at("tile").walk() if isinstance(op, Variable)]
    (tiles,) = (op.placed.tiles for op in placed if op.symbol == state)
    return {tile // TILES for tile in (tiles.first, tiles.end - 1)}


@pytest.mark.parametrize(
    ("chips", "parts", "options"),
    [
        large(2, 4, LAYERS),
        large(2, 4, LAYERS | AGAIN | TURNS),
        large(4, 4, TIED | TURNS),
        (4, 4, INSIDE | AGAIN | TURNS),
        large(2, 4, LAYERS | AGAIN),
        large(2, 4, LAYERS | TURNS),
        large(4, 10, TIED),
        large(8, 4, TIED | TURNS | COPIES),
        large(4, 8, INSIDE),
        large(8, 4, INSIDE | TURNS | COPIES),
    ],
)
def test_a_bert_in_stages_trains_as_on_one_chip(
    bert: Path, chips: int, parts: int, options: dict[str, Any]
):
    one, expected = trained(bert, 1, parts)
    several, loss = trained(bert, chips, parts, **options)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert one.states.keys() == several.states.keys()
    for name, array in one.states.items():
        np.testing.assert_allclose(several.states[name], array, rtol=1e-5, atol=1e-6)


def test_the_embedding_and_the_head_share_a_weight_on_one_chip(bert: Path):
    exe, _ = trained(bert, 4, 4, **TIED, **TURNS)
    assert chips_of(exe, "words") == chips_of(exe, "head.weight") == {0}
    ups = [chips_of(exe, f"layer{i}.{each}.weight") for i in range(2) for each in ("q", "up")]
    assert ups == [{0}, {1}, {2}, {3}]
