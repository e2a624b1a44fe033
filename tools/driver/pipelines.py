"""What the options of pipelines ask for: the passes that make one, and the micro-batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...backends.target import Target
from ...dialects.host import ARGUMENT_SIZES, KEPT_SIZES, LENGTHS, RESULT_SIZES
from ...dialects.levels import NN
from ...ir.context import AbeleContext
from ...ir.geometry.pipeline import SCHEDULES, Pipeline, ScheduleName
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...passes.assign_stages import AssignStages
from ...passes.cut_batch import CutBatch
from ...passes.decompose import Decompose
from ...passes.pipeline_stages import PipelineStages
from ...passes.replicate import Replicate
from ...passes.train import Train
from .program import ReadProgram

MOST_DIGITS = 6
"""The most digits of a number of stages, and of the number of a chip."""


@dataclass(frozen=True)
class PipelineOptions:
    """The options of a pipeline, as the user gives them.

    Attributes:
        text: the number of stages, or names of the nodes that begin a stage.
        schedule: its name; None for the default.
        chips: the chips of the stages, joined by commas; "" for the default.
        recompute: whether backward stages compute the values of their forward stage again.
        target: the target.
        replicate: the pass that shares the batch among copies of the pipeline; None for a single
            pipeline.
    """

    text: str
    schedule: str | None
    chips: str
    recompute: bool
    target: Target | None
    replicate: Replicate | None = None

    @property
    def cuts(self) -> tuple[str, ...]:
        """The nodes that begin a stage; () if the planner chooses. Raises InputError."""
        number = self.text.strip()
        if number.isdecimal():
            return ()
        if number.removeprefix("-").isdecimal():
            raise InputError(f"--pipeline {number}: need 1 or more stages")
        names = tuple(name.strip() for name in self.text.split(","))
        if not all(names):
            raise InputError(
                f"--pipeline {self.text!r}: need a number of stages, or names joined by commas"
            )
        return names

    @property
    def stages(self) -> int:
        """The number of forward stages. Raises InputError."""
        if self.cuts:
            return len(self.cuts) + 1
        number = self.text.strip()
        if len(number) > MOST_DIGITS:
            raise InputError(f"--pipeline {number[:9]}...: need at most {MOST_DIGITS} digits")
        if not int(number):
            raise InputError(f"--pipeline {self.text}: 0 stages; need 1 or more")
        return int(number)

    @property
    def stage_chips(self) -> tuple[int, ...]:
        """The chip of each forward stage. Raises InputError."""
        if not self.chips:
            return tuple(range(self.stages))
        texts = [each.strip() for each in self.chips.split(",")]
        if not all(each.isdecimal() and len(each) <= MOST_DIGITS for each in texts):
            raise InputError(
                f"--stage-chips {self.chips!r}: need numbers of at most {MOST_DIGITS} digits, "
                "joined by commas"
            )
        if len(texts) != self.stages:
            raise InputError(
                f"--stage-chips {self.chips}: {len(texts)} chips for {self.stages} stages; need "
                "one for each stage"
            )
        return tuple(map(int, texts))

    @property
    def named_schedule(self) -> ScheduleName:
        """The schedule. Raises InputError."""
        for each in SCHEDULES:
            if each == (self.schedule or SCHEDULES[0]):
                return each
        raise InputError(f"--schedule {self.schedule}{suggestion(str(self.schedule), SCHEDULES)}")

    def passes(self) -> list[str]:
        """The passes that make the pipeline, which come before those of nn."""
        number = 0 if self.cuts else self.stages
        chips, schedule = self.stage_chips if self.chips else (), self.named_schedule
        spelling = "" if self.target is None else self.target.spelling()
        assign = AssignStages(self.cuts, number, chips, schedule, spelling)
        pipeline = PipelineStages(schedule, self.recompute, self.replicas)
        copies = () if self.replicate is None else (replace(self.replicate, target=spelling),)
        return [str(each.spec()) for each in (Decompose(), *copies, assign, pipeline)]

    @property
    def replicas(self) -> int:
        """The copies of the pipeline."""
        return 1 if self.replicate is None else self.replicate.replicas

    def check(self, train: Train | None, micro_batches: int | None) -> None:
        """Raise InputError for options that contradict each other, such as a number of
        micro-batches that the schedule cannot take."""
        chips = self.stage_chips
        if train is not None:
            chips = (*chips, *reversed(chips))
        if train is not None and train.steps > 1:
            raise InputError("--pipeline with several steps in a run; need steps=1")
        own, needed = max(chips) + 1, (max(chips) + 1) * self.replicas
        if self.replicas > 1 and self.target is not None and needed > self.target.chips:
            raise InputError(
                f"--pipeline {self.text} on {own} chips with {self.replicas} replicas: {needed} "
                f"chips; target {self.target.called} has {self.target.chips}"
            )
        count = 1 if micro_batches is None else micro_batches
        if count < 1:
            raise InputError(f"--micro-batches {count}: need 1 or more")
        if train is not None:
            count = train.micro_batches
        least = Pipeline.of(self.named_schedule, chips).overlap
        option = "--micro-batches N" if train is None else "--training micro-batches=N"
        what = f"--pipeline {self.text}: {count} micro-batch{'es' * (count > 1)}"
        if count < least:
            raise InputError(
                f"{what}; a {self.named_schedule} schedule of {len(chips)} stages needs at least "
                f"{least}: give {option}"
            )
        if train is not None and count % least:
            raise InputError(
                f"{what}; a {self.named_schedule} schedule of {len(chips)} stages trains with a "
                f"multiple of {least}: give {option}"
            )


def part_of_batch(batch: int | None, micro_batches: int | None) -> int | None:
    """The samples of a micro-batch; None if the batch is the model's own.

    Raises InputError if the batch cannot be cut into so many parts.
    """
    if batch is None or not micro_batches:
        return batch
    if micro_batches < 1 or batch % micro_batches:
        raise InputError(
            f"micro_batches {micro_batches} of a batch of {batch}; need a number that divides the "
            "batch"
        )
    return batch // micro_batches


SIZES = (RESULT_SIZES, ARGUMENT_SIZES, LENGTHS, KEPT_SIZES)
"""Attributes of modules with sizes that only a run knows."""


def make_parts(micro_batches: int | None, train: Train | None, program: ReadProgram) -> None:
    """Let a program compute several micro-batches in a run, before its first pass.

    Raises InputError.
    """
    if micro_batches is None:
        return
    if train is not None:
        raise InputError("--micro-batches with training; need --training micro-batches=N")
    if program.level != NN:
        raise InputError(
            f"{program.path}: micro_batches: the program is at {program.level}; need {NN}"
        )
    if any(each in program.module.attributes for each in SIZES):
        raise InputError(
            f"{program.path}: micro_batches of a program with sizes that only a run knows; give "
            "the sizes with --dim"
        )
    CutBatch(micro_batches).apply(AbeleContext(), program.module)
