"""Cycles of training ResNet-50, an image and an update apart, beside logs of real chips.

python -m abele.tools.workshop.images [--batches 16,20,22] [--precision float16]
[--partials float16] [--rounding stochastic] [--recompute auto] [--target bow]

The network is that of the onnx package, which is version 1.5. It is trained with momentum 0.9 and a
loss scale of 128. Operations that only update weights count as the update. What also computes the
gradient of a weight counts for the images. Seconds are processor time.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Annotated

import typer

from ...backends.target import named_target
from ...ir.support.errors import InputError
from ..bench.fidelity.pods.step import update_cycles
from ..bench.measure import write_network
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..driver.request import Precision, Rounding
from ..driver.training import Training
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

NETWORK = "resnet50"

TRAINING = Training(momentum=0.9, loss_scale=128.0)

LOGS = {
    "bow": ("logs of Bow chips, 16, 64 and 128", 616_000, 15_000_000),
    "mk2": ("logs of GC200 chips, 16 and 64", 688_000, 6_000_000),
}
"""By target: cycles an image and an update, as a line through the seconds of a step over images.

Source: Graphcore's results of MLPerf Training 2.0 (Bow) and 1.1 (GC200): ResNet-50 v1.5 in fp16.16,
micro-batches of 20 and 22. Their updates contain sums over all chips, and their images contain
transfers from the host.
"""


@dataclass(frozen=True)
class Step:
    """A step of training.

    Attributes:
        bytes: of the fullest tile.
        chosen: how many choices of what to compute again there are.
        cycles: of the step.
        update: the cycles of operations that only update weights, without syncs.
        gigabytes: the most memory of the compiler.
    """

    bytes: int
    chosen: int
    cycles: int
    update: int
    seconds: float
    gigabytes: float

    def an_image(self, batch: int) -> float:
        """The cycles of one image of a batch, without those of the update."""
        return (self.cycles - self.update) / batch


def compiled(
    batch: int,
    target: str,
    precision: Precision,
    partials: str,
    rounding: Rounding | None,
    recompute: str,
) -> Step:
    """A step of training, even if it does not fit. Call it in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{NETWORK}.onnx")
        write_network(NETWORK, path)
        start = process_time()
        exe = compile_model(
            path,
            target,
            batch=batch,
            precision=precision,
            partials=partials,
            rounding=rounding,
            recompute=recompute,
            train=TRAINING,
            unbounded=True,
            cache=False,
        )
        seconds = process_time() - start
    return Step(
        exe.memory.max_tile_bytes,
        len(exe.recomputed),
        int(exe.profile["cycles"]),
        update_cycles(exe),
        seconds,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    )


def images(
    batches: Annotated[str, typer.Option(help="Numbers of images, by commas.")] = "16,20,22",
    target: Annotated[str, typer.Option(help="A preset machine.")] = "bow",
    precision: Annotated[Precision, typer.Option(help="As of abele train.")] = "float16",
    partials: Annotated[str, typer.Option(help="As of abele train.")] = "float16",
    rounding: Annotated[Rounding | None, typer.Option(help="As of abele train.")] = None,
    recompute: Annotated[str, typer.Option(help="As of abele train.")] = "auto",
) -> None:
    """Print bytes, and cycles an image and of the update, of steps of training ResNet-50."""
    sizes = numbers_in(batches)
    most = named_target(target).bytes_per_tile
    table = figure_table(
        f"ResNet-50, {target}, {precision}, partials {partials or 'float32'}",
        ("images", "fullest tile", "fits", "recomputed", "cycles")
        + ("an image", "the update", "seconds", "GB"),
        ("images",),
    )
    for batch in sizes:
        found = in_own_process(compiled, batch, target, precision, partials, rounding, recompute)
        table.add_row(
            f"{batch}",
            f"{found.bytes:,}",
            "yes" if found.bytes <= most else f"no, of {most:,}",
            f"{found.chosen}",
            f"{found.cycles:,}",
            f"{found.an_image(batch):,.0f}",
            f"{found.update:,}",
            f"{found.seconds:.0f}",
            f"{found.gigabytes:.1f}",
        )
    if target in LOGS:
        name, image, update = LOGS[target]
        table.add_row(name, *[""] * 4, f"{image:,}", f"{update:,}", "", "")
    console().print(table)


def numbers_in(text: str) -> list[int]:
    """The positive numbers of a list with commas. Raises InputError for other words."""
    words = text.split(",")
    for word in words:
        if not (word.isdecimal() and int(word)):
            raise InputError(f"--batches {text}: {word!r} is no number of images, such as 16")
    return [int(word) for word in words]


if __name__ == "__main__":
    run_script(images)
