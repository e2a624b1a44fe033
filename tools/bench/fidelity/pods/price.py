"""The price of an update of training on a pod: micro-batches, the update, the sum over replicas.

A replica's step is compiled for a micro-batch that fits its chips, and so is the sum of gradients.
Nothing is fitted to the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from .....backends.links.links import routes_of
from .....ir.support.errors import DoesNotFit, InputError
from ...own_process import in_own_process
from ..units import Unclear
from .rows import Row
from .stage import Stage
from .step import Step, step_of_images, step_of_stage
from .sums import sum_cycles

LESS = (1.0, 0.75, 0.5, 0.25)
"""Parts of a published micro-batch that are tried until one fits."""

NETWORK = "resnet50"


@dataclass(frozen=True)
class Priced:
    """The predicted cycles of an update.

    Attributes:
        micro_batch: images or packs that were compiled.
        sample: the cycles of one of them.
        samples: those of all of them: of one replica, with the fill and flush of its pipeline.
        update: of the operations that only update weights.
        sums: of gradients, over all replicas.
        left_out: priced, but no part of the prediction.
        notes: what is left out without a price.
    """

    row: Row
    micro_batch: int
    sample: float
    samples: float
    update: float
    sums: float
    left_out: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()

    @property
    def cycles(self) -> float:
        """The predicted cycles of an update."""
        return self.samples + self.update + self.sums


def price_row(row: Row) -> Priced:
    """The price of a row. Raises Unclear if a step does not compile, or does not fit, or if a
    replica has other chips than the steps are made for."""
    chips, price = PRICES[row.model]
    if row.stages != chips:
        raise Unclear(f"{row.stages} chips a replica; {row.model} is priced for {chips}")
    return price(row)


def _fitting(row: Row, steps: Callable[[int, str], list[Step]]) -> tuple[int, list[Step]]:
    """The largest part of a row's micro-batch whose steps fit a chip, and these steps.

    Args:
        steps: the steps that a micro-batch of a size takes on a chip of a name.
    """
    chip = row.target.with_chips(1).spelling()
    sizes = dict.fromkeys(int(part * row.micro_batch) for part in LESS)
    for size in filter(None, sizes):
        found = steps(size, chip)
        if all(each.fits for each in found):
            return size, found
    raise Unclear(f"no micro-batch of {', '.join(map(str, sizes))} fits {chip}")


@cache
def _step(function: Callable[..., Step], *arguments: object) -> Step:
    try:
        return in_own_process(function, *arguments)
    except (InputError, DoesNotFit) as error:
        raise Unclear(str(error).splitlines()[0]) from None


@cache
def _sums(replicas: int, stages: int, elements: int, target: str) -> int:
    return in_own_process(sum_cycles, replicas, stages, elements, target)


IMAGES_WITHOUT = (
    "norms of LARS (priced: momentum)",
    "batch statistics over two replicas",
    "the sums of gradients of micro-batches, and what they take of the memory",
    "float16 weights (priced: float32)",
    "the time of the host between two updates",
)


def _images(row: Row) -> Priced:
    size, (found,) = _fitting(row, lambda size, chip: [_step(step_of_images, NETWORK, size, chip)])
    sample = found.samples / size
    times = row.micro_batch * row.accumulation
    return Priced(
        row,
        size,
        sample,
        sample * times,
        found.update,
        _sums(row.replicas, row.stages, found.weights, row.target.spelling()),
        {"host": found.host * times / size},
        IMAGES_WITHOUT,
    )


BERT_LARGE = Stage(4, 3, 0, 512, 1024, 16, 4096)
"""The sizes of BERT-Large, for packs of 512 tokens, and its largest stages: those of chips 4 and 6.
Chips 5 and 7 have 3 attentions and 4 feed-forwards. Source: the placement in the log."""

BERT_WITHOUT = (
    "the embedding and the head, which share chip 0 with an attention and a feed-forward",
    "moments and norms of LAMB (priced: no moments), and state in remote memory",
    "what waits for the backward stages, in 8 bits (priced: one micro-batch at a time)",
    "dropout",
    "float16 weights (priced: float32)",
    "the time of the host between two updates",
)


def _bert(row: Row) -> Priced:
    def steps(size: int, chip: str) -> list[Step]:
        stages = (Stage(a, f, size, *_rest_of(BERT_LARGE)) for a, f in ((4, 3), (3, 4)))
        return [_step(step_of_stage, each, chip) for each in stages]

    size, found = _fitting(row, steps)
    slowest = max(found, key=lambda each: each.samples)
    sample = slowest.samples / size
    # Forward and backward stages fill and flush the pipeline.
    turns = row.accumulation + 2 * row.stages - 1
    times = turns * row.micro_batch / size
    boundary = 2 * size * BERT_LARGE.tokens * BERT_LARGE.width
    return Priced(
        row,
        size,
        sample,
        slowest.samples * times,
        max(each.update for each in found),
        _sums(
            row.replicas,
            row.stages,
            max(each.weights for each in found),
            row.target.spelling(),
        ),
        {
            "the forward pass, computed again": times * max(each.forward for each in found),
            "between stages": times * _between(row, boundary),
        },
        BERT_WITHOUT,
    )


def _rest_of(stage: Stage) -> tuple[int, int, int, int]:
    return stage.tokens, stage.width, stage.heads, stage.hidden


def _between(row: Row, moved: int) -> float:
    """The cycles in which every chip sends a tensor to the next one of its replica, and its
    gradient back."""
    chips = row.target.chips
    first = np.flatnonzero(np.arange(chips) % row.stages != row.stages - 1)
    pairs = np.sort(np.concatenate([first * chips + first + 1, (first + 1) * chips + first]))
    links = row.target.links
    seconds = routes_of(links).seconds(pairs, np.full(len(pairs), moved, np.int64))
    return float(seconds.max() + links.first_word_seconds()) * row.target.clock_hz


PRICES: Mapping[str, tuple[int, Callable[[Row], Priced]]] = {
    "resnet50": (1, _images),
    "bert": (8, _bert),
}
"""By model, the chips of a replica, and the function that prices the rows."""
