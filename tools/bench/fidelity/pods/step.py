"""Steps of training on one chip, compiled: cycles of a sample and of the update apart."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from .....ir.phases import FORWARD, UPDATE, Phases
from ....driver.compile import compile_model
from ....driver.executable import MACHINE, Executable
from ....driver.training import Training
from ....importers.light_networks import seeded
from .stage import Stage, stage_of_encoder


@dataclass(frozen=True)
class Step:
    """A step of training on one chip.

    Attributes:
        fits: whether the chip holds it.
        cycles: of the step.
        update: of the operations that only update weights, without syncs. What also computes a
            gradient is no part of them.
        forward: the cycles of the forward pass.
        host: the cycles of data from and to the host, if nothing else happens meanwhile.
        weights: the number of elements of the weights.
    """

    fits: bool
    cycles: int
    update: int
    forward: int
    host: int
    weights: int

    @property
    def samples(self) -> int:
        """The cycles of all samples, without those of the update."""
        return self.cycles - self.update


def update_cycles(exe: Executable) -> int:
    """The cycles, without syncs, of the operations that only update weights."""
    phases = Phases.of(exe.module_at(MACHINE))
    return sum(
        each.times * each.cycles
        for op, each in exe.operation_prices.items()
        if phases.every(op) == frozenset({UPDATE})
    )


def step_of_images(network: str, images: int, target: str) -> Step:
    """A step of training a light network with momentum, in fp16.16 with float32 weights.

    What does not fit is computed again. Call it in a process of its own.
    """
    return _step(seeded(network), images, target, Training(momentum=0.9, loss_scale=128.0))


def step_of_stage(stage: Stage, target: str) -> Step:
    """A step of training a stage of BERT, as step_of_images; without momentum."""
    training = Training(loss="mean_square", loss_scale=128.0)
    return _step(stage_of_encoder(stage), None, target, training)


def _step(model: onnx.ModelProto, batch: int | None, target: str, training: Training) -> Step:
    exe = compile_model(
        model,
        target,
        batch=batch,
        precision="float16",
        partials="float16",
        recompute="auto",
        train=training,
        unbounded=True,
        cache=False,
    )
    return Step(
        exe.memory.max_tile_bytes <= exe.target.bytes_per_tile,
        int(exe.profile["cycles"]),
        update_cycles(exe),
        int(exe.profile["phases"][FORWARD]["cycles"]),
        int(exe.profile["host_cycles"]),
        sum(int(onnx.numpy_helper.to_array(each).size) for each in model.graph.initializer),
    )
