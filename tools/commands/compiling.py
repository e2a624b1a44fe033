"""The options that all compiling commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from ...ir.support.deferred import deferred
from ..driver.arrays import Tensor
from ..driver.cache.key import Request
from ..driver.compile import compile_model
from ..driver.executable import Executable
from ..driver.extensions.loaded import Extensions
from ..driver.on_step import OnStep
from ..driver.runs_between import RUNS
from ..views.progress import progress
from .arguments import (
    ConstraintsFile,
    Dims,
    DumpFolder,
    Keep,
    Lenient,
    ListOps,
    Load,
    MemoryProportion,
    NoCache,
    Pipeline,
    Samples,
    TargetName,
    Values,
    Verbose,
    VerticesPerTile,
    given_values,
    kept,
    sizes,
)
from .operators import show_operators
from .training_options import (
    LossName,
    OptimizerName,
    TrainFlag,
    TrainingNumbers,
    given_training,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ...ir.instruments.reproducer import fresh_folder
    from ...passes.train import Train
    from ..driver.program import Program
else:
    fresh_folder = deferred("...ir.instruments.reproducer", "fresh_folder", __package__)


@dataclass(frozen=True)
class Compilation:
    """The options, as given. Every field becomes an option of each compiling command."""

    target: TargetName = None
    dim: Dims = None
    value: Values = None
    batch: Samples = None
    keep: Keep = None
    passes: Pipeline = ""
    load: Load = None
    constraints: ConstraintsFile = None
    memory_proportion: MemoryProportion = None
    vertices_per_tile: VerticesPerTile = None
    lenient: Lenient = False
    train: TrainFlag = False
    loss: LossName = None
    optimizer: OptimizerName = None
    training: TrainingNumbers = None
    dump_ir: DumpFolder = None
    no_cache: NoCache = False
    verbose: Verbose = False

    def progress(self, extensions: Extensions) -> AbstractContextManager[OnStep]:
        """What the command is doing, as the options ask to show it."""
        return progress(verbose=self.verbose, passes=extensions.passes)

    @property
    def asked(self) -> Train | None:
        """How the options say that a model is trained; None if they do not. Raises InputError."""
        return given_training(self.train, self.loss, self.optimizer, self.training)

    def compiled(
        self,
        model: str,
        extensions: Extensions,
        on_step: OnStep,
        *,
        unbounded: bool = False,
        on_read: Callable[[Program], None] | None = None,
        on_inputs: Callable[[Sequence[Tensor]], None] | None = None,
        cache: bool = True,
        train: Train | None = None,
        beside: Sequence[Executable] | None = None,
        runs: float = RUNS,
        values: Mapping[str, ArrayLike] | None = None,
    ) -> Executable:
        """Compile a model, or take it from the cache, unless the options or `cache` forbid it.

        unbounded, on_read, on_inputs, beside, runs: as for compile_model. train: how it is trained,
        if the options do not say it. values: of inputs, besides those of the options. Raises what
        compile_model raises.
        """
        asked = self.request(model, train)
        return compile_model(
            asked.model,
            asked.target,
            dims=asked.dims,
            values={**asked.values, **(values or {})},
            batch=asked.batch,
            keep=asked.keep,
            passes=asked.passes,
            load=extensions,
            constraints=asked.constraints,
            memory_proportion=asked.memory_proportion,
            vertices_per_tile=asked.vertices_per_tile,
            unbounded=unbounded,
            lenient=asked.lenient,
            train=asked.train,
            beside=beside,
            runs=runs,
            on_read=on_read,
            on_inputs=on_inputs,
            cache=cache and not self.no_cache,
            dump_ir=self.dump_ir,
            reproducers=fresh_folder,
            watch=on_step,
        )

    def request(self, model: str, train: Train | None = None) -> Request:
        """The options that decide what a model is compiled to. train: as for compiled.

        Raises InputError.
        """
        return Request(
            model,
            self.target,
            sizes(self.dim),
            given_values(self.value),
            self.batch,
            kept(self.keep),
            self.passes,
            self.constraints,
            self.memory_proportion,
            self.vertices_per_tile,
            self.lenient,
            train or self.asked,
        )


def compiles(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option per field of its Compilation parameter, and --list-ops."""
    hints = get_type_hints(command, include_extras=True)
    own = get_type_hints(Compilation, include_extras=True)
    (how,) = (name for name, hint in hints.items() if hint is Compilation)
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        options = (
            [
                *((field.name, own[field.name], field.default) for field in fields(Compilation)),
                ("list_ops", ListOps, False),
            ]
            if each.name == how
            else [(each.name, hints[each.name], each.default)]
        )
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )
            for name, hint, default in options
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        options = {field.name: given.pop(field.name) for field in fields(Compilation)}
        asked = Compilation(**options)
        if given.pop("list_ops"):
            show_operators(given["model"], asked.dim, asked.value, asked.load)
        else:
            command(**given, **{how: asked})

    # typer reads these.
    cast(Any, run).__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
