"""Steps of training BERT-base and GPT-2-small in 16 bits, beside those in float32.

python -m abele.tools.workshop.transformers.training [--models bert,gpt2] [--layers 4] [--steps 10]
[--optimizer sgd] [--rate 0.03] [--target mk2]

The weights are seeded, and the vocabulary is the published one. Each step has 128 words of Python's
own manual. GPT-2 learns which word follows each of them, and BERT which words were masked. All
arithmetics begin with the same weights and see the same words. Seconds are of processor time, in
one thread.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from pydoc_data.topics import topics
from time import process_time
from typing import Annotated

import numpy as np
import onnx
import typer
from threadpoolctl import threadpool_limits

from ....backends.host.threads import using
from ....backends.target import named_target
from ....ir.phases import PHASES
from ....ir.support.arrays import Array
from ...bench.named import names_in
from ...bench.own_process import in_own_process
from ...driver.compile import compile_model
from ...driver.training import Training
from ...views.script import run_script
from ...views.table import figure_table
from ...views.terminal import console
from ..learning.arithmetics import ARITHMETICS, Arithmetic
from .graphs import BERT_BASE, GPT2_SMALL, Shape, decoder, encoder

IGNORED = -100
"""The label of a place that does not count."""

MASKED = 0.15
"""The share of words that BERT has to find. Source: Devlin et al., 2018."""


@dataclass(frozen=True)
class Batch:
    """The inputs of a step: words, and the words to find, by their numbers."""

    ids: Array
    target: Array


@dataclass(frozen=True)
class Model:
    """A model to train.

    Attributes:
        build: makes it from its sizes.
        batch: makes a step's inputs from tokens + 1 words, the vocabulary's size, and the step.
    """

    shape: Shape
    build: Callable[[Shape], onnx.ModelProto]
    batch: Callable[[Array, int, int], Batch]


@dataclass(frozen=True)
class Steps:
    """Some steps in one arithmetic.

    Attributes:
        bytes: of the fullest tile.
        recomputed: how many choices of what to compute again were needed.
        cycles: of a step, by phase.
        compiled, step: seconds of compiling, and of a step after the first one.
    """

    bytes: int
    recomputed: int
    cycles: dict[str, int]
    losses: list[float]
    compiled: float
    step: float

    def distance(self, other: Steps) -> float:
        """The largest relative difference of the losses of a step."""
        return max(abs(a / b - 1) for a, b in zip(self.losses, other.losses, strict=True))


def words_of_manual() -> Array:
    """The words of Python's manual, in order, numbered from the most frequent one."""
    words = re.findall(r"[a-z]+|[^\sa-z]", "\n".join(topics[k] for k in sorted(topics)).lower())
    rank = {word: i for i, (word, _) in enumerate(Counter(words).most_common())}
    return np.array([rank[word] for word in words])


def following(words: Array, vocabulary: int, step: int) -> Batch:
    """Each word, and the one after it."""
    _ = vocabulary, step
    return Batch(words[:-1], words[1:].astype(np.int32))


def masked(words: Array, vocabulary: int, step: int) -> Batch:
    """Words, some of them replaced by the last one of the vocabulary, and those that were."""
    ids = words[:-1]
    hidden = np.random.default_rng(step).random(len(ids)) < MASKED
    target = np.where(hidden, ids, IGNORED).astype(np.int32)
    return Batch(np.where(hidden, vocabulary - 1, ids), target)


MODELS = {
    "bert": Model(BERT_BASE, lambda shape: encoder(shape, language=True), masked),
    "gpt2": Model(GPT2_SMALL, decoder, following),
}


def trained(
    name: str, shape: Shape, arithmetic: Arithmetic, asked: Training, target: str, steps: int
) -> Steps:
    """Compile a step of training of one of MODELS, and do some.

    Raises InputError if it does not fit.
    """
    model, words = MODELS[name], words_of_manual()
    scale, scaling = arithmetic.loss_scale, arithmetic.scaling
    scaled = replace(asked, loss_scale=scale, scaling=scaling, ignore_index=IGNORED)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1), using(1):
        path = Path(folder, "model.onnx")
        onnx.save(model.build(shape), path)
        start = process_time()
        exe = compile_model(
            path,
            target,
            precision=arithmetic.precision,
            rounding=arithmetic.rounding,
            partials=arithmetic.partials,
            recompute="auto",
            train=scaled,
            cache=False,
        )
        compiled = process_time() - start
        losses: list[float] = []
        for i in range(steps):
            start = process_time() if i < 2 else start
            at = i * shape.tokens % (len(words) - shape.tokens)
            batch = model.batch(words[at : at + shape.tokens + 1], shape.words, i)
            found = exe.step({"ids": batch.ids, "target": batch.target})
            losses.append(float(found["loss"]))
        each = (process_time() - start) / max(steps - 1, 1)
    profile = exe.profile
    return Steps(
        exe.memory.max_tile_bytes,
        len(exe.recomputed),
        {"all": profile["cycles"], **{k: profile["phases"][k]["cycles"] for k in PHASES}},
        losses,
        compiled,
        each,
    )


def training(
    models: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(MODELS),
    layers: Annotated[int, typer.Option(min=1, help="Of each model.")] = 4,
    steps: Annotated[int, typer.Option(min=1, help="Of each arithmetic.")] = 10,
    optimizer: Annotated[str, typer.Option(help="As of abele train.")] = "sgd",
    rate: Annotated[float, typer.Option(help="The learning rate.")] = 0.03,
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Train BERT and GPT-2 for some steps in several arithmetics, and print losses and cycles."""
    names = names_in("--models", models, MODELS)
    asked = Training(optimizer=optimizer, learning_rate=rate)
    table = figure_table(
        f"{layers} layers, {target}, of {named_target(target).bytes_per_tile:,} B; {optimizer}",
        (
            "model",
            "arithmetic",
            "fullest tile",
            "recomputed",
            "cycles",
            *PHASES,
            "first loss",
            "last loss",
            "from float32",
            "compile s",
            "step s",
        ),
        ("model", "arithmetic"),
    )
    for name in names:
        shape = replace(MODELS[name].shape, layers=layers)
        first: Steps | None = None
        for arithmetic in ARITHMETICS:
            found = in_own_process(trained, name, shape, arithmetic, asked, target, steps)
            first = first or found
            table.add_row(
                name,
                arithmetic.name,
                f"{found.bytes:,}",
                f"{found.recomputed}",
                *(f"{each:,}" for each in found.cycles.values()),
                f"{found.losses[0]:.4f}",
                f"{found.losses[-1]:.4f}",
                f"{found.distance(first):.1e}",
                f"{found.compiled:.0f}",
                f"{found.step:.1f}",
            )
        table.add_section()
    console().print(table)


if __name__ == "__main__":
    run_script(training)
