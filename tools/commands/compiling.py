"""The options that all compiling commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import typer

from ...backends.target.presets import PRESET_VALUES
from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.on_step import OnStep
from ..driver.extensions.loaded import Extensions
from ..driver.io_tiles import read_io_tiles
from ..driver.request import OPTIONS, Precision, Request, Rounding
from ..views.progress import progress
from ..views.user_errors import print_error_line
from .arguments import (
    DumpFolder,
    ListOps,
    Load,
    given_values,
    kept,
    sizes,
)
from .training_options import (
    LossName,
    OptimizerName,
    TrainFlag,
    TrainingNumbers,
    given_training,
)
from .wall import WALL

with deferred(__name__):
    from ...ir.instruments.reproducer import fresh_folder
    from ...passes.train import Train
    from ..quantising.product_scales import with_calibrated_scales
    from .operators import show_operators


@dataclass(frozen=True)
class Compilation:
    """The options, as given. Every field becomes an option of each compiling command.

    A field with the name and the form of a field of Request becomes that field.
    """

    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help=f"A preset ({', '.join(PRESET_VALUES)}), NAME:TILES, a TOML file, or a target of "
            "an extension. Default: the model's own, else mk2.",
        ),
    ] = None
    chips: Annotated[
        int | None,
        typer.Option(
            "--chips",
            min=1,
            metavar="N",
            help="Only the first N chips of the target; or, of a target with one chip, N that are "
            "joined as usual.",
        ),
    ] = None
    dim: Annotated[
        list[str] | None,
        typer.Option(
            "--dim",
            metavar="NAME=SIZE",
            help="Set the size of a free dimension, by its name or as INPUT:AXIS. With bounds, as "
            "in past=0..64, each run chooses the size. May be repeated.",
        ),
    ] = None
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="X.npz",
            help="Inputs by name. Their shapes give sizes to free dimensions. A run takes their "
            "values: missing ones get seeded values, or the value that an ONNX model has for them.",
        ),
    ] = None
    value: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="INPUT=VALUE",
            help="Compile an ONNX model for one value of an input: a number, a list such as 1,2 or "
            "[[1],[2]], or a .npy file. May be repeated.",
        ),
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            min=1,
            metavar="B",
            help="Compile an ONNX model for B samples, which is the size of its inputs' first "
            "axis, also if the model holds another number.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="INPUT=OUTPUT",
            help="Keep a value on the device: the input becomes a state, which holds the output of "
            "the run before, and zeros in the first. A state of a text or of a StableHLO program "
            "also keeps an output. Names of nested values stand for all their leaves, such as "
            "params=result[0]. May be repeated.",
        ),
    ] = None
    passes: Annotated[
        str,
        typer.Option(
            "-p",
            "--pass-pipeline",
            metavar="SPEC",
            help="Passes in order: 'a,b{option=1}'. nn, partition, tile and exchange stand for the "
            "default passes that lead there. Default: all four.",
        ),
    ] = ""
    precision: Annotated[
        Precision | None,
        typer.Option(
            "--precision",
            help="Compute a float32 model in 16 bits, except for sums: the pass narrow-floats "
            "before all others. Training keeps weights in float32, unless the precision is pure. "
            "float8 also multiplies 8-bit floats: the pass narrow-products.",
        ),
    ] = None
    sparsity: Annotated[
        str,
        typer.Option(
            "--sparsity",
            metavar="zeros|HxW[:SHARE]",
            help="Leave zeros of weights out of matrix products where that takes fewer cycles: of "
            "weights that have zeros, in any blocks, or in blocks of H outputs by W terms. SHARE "
            "first sets that share of the blocks of each weight to zero, such as 16x16:0.9.",
        ),
    ] = ""
    calibrate: Annotated[
        Path | None,
        typer.Option(
            "--calibrate",
            metavar="X.npz",
            help="With --precision float8: run the float model on these samples, an array for each "
            "input, and choose the scales of activations by them. Default: a scale of 1.",
        ),
    ] = None
    rounding: Annotated[
        Rounding | None,
        typer.Option(
            "--rounding",
            help="How results of 16 bits are rounded; they then overflow as the target does. "
            "stochastic has the same random bits under every plan; hardware has those of the "
            "generators of the workers, which depend on the plan. "
            "Default: to nearest, and to infinities.",
        ),
    ] = None
    partials: Annotated[
        str,
        typer.Option(
            "--partials",
            metavar="float16|float32|auto[:ERROR]",
            help="The type that sums of products of float16 have between their parts: float16 is "
            "faster and smaller, and rounds each part; auto takes it where the bound of the error "
            "that this adds is at most ERROR, 0.05 by default, of the sum of all absolute "
            "products. Also for a part of training: 'float16,weight-gradient=float32'.",
        ),
    ] = ""
    recompute: Annotated[
        str,
        typer.Option(
            "--recompute",
            metavar="auto[:BYTES]|sqrt|stages|NAME,...",
            help="Compute values again instead of keeping them: auto chooses as little as the "
            "memory of a tile, or BYTES of it, asks for; sqrt is PopART's schedule; stages, "
            "with --pipeline, computes each forward stage again for its backward stage.",
        ),
    ] = ""
    replicas: Annotated[
        str | None,
        typer.Option(
            "--replicas",
            metavar="R[:WAY]",
            help="Share the batch among R chips, or R groups of them; each holds all weights. WAY "
            "says how they merge their sums: direct, ring, both, middle, or auto for the fastest, "
            "which is the default.",
        ),
    ] = None
    stash: Annotated[
        list[str] | None,
        typer.Option(
            "--stash",
            metavar="TYPE[@SCALE]:NAME",
            help="Training keeps the results of an operator, or of all that fit a pattern, in a "
            "narrower type until the backward pass reads them: float16, bfloat16, f143, f152 or "
            "f134. SCALE is a power of two. May be repeated; the first that fits decides. With "
            "the name auto, --recompute auto chooses those that cost less than computing again.",
        ),
    ] = None
    remote: Annotated[
        list[str] | None,
        typer.Option(
            "--remote",
            metavar="NAME",
            help="Keep a state, or all that fit a pattern, in remote memory (streaming memory) "
            "instead of on the tiles: it is loaded before it is used, and stored after its "
            "update. optimizer stands for what training adds for weights, such as moments. May be "
            "repeated.",
        ),
    ] = None
    load: Load = None
    constraints: Annotated[
        Path | None,
        typer.Option(
            "--constraints",
            metavar="FILE.json",
            help="Choices per operator: method, split, tiles, steps, memory_proportion, partials, "
            "plan.",
        ),
    ] = None
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            metavar="N|NAME,...",
            help="Put stages of the network on chips of their own, which work on different "
            "micro-batches at once: N stages, which the planner chooses, or a stage from each "
            "named node on; layer3 also names layer3/query.",
        ),
    ] = ""
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="grouped|interleaved|sequential",
            help="grouped: all stages work in each cycle. interleaved: no chip works on two stages "
            "in a cycle, so it keeps fewer micro-batches. sequential: one stage works in each "
            "cycle. Default: grouped.",
        ),
    ] = None
    stage_chips: Annotated[
        str,
        typer.Option(
            "--stage-chips",
            metavar="CHIP,...",
            help="The chip of each stage. Default: stage s is on chip s.",
        ),
    ] = ""
    micro_batches: Annotated[
        int | None,
        typer.Option(
            "--micro-batches",
            metavar="N",
            help="Compute N micro-batches in a run, one after the other or in a pipeline: the "
            "parts of --batch, or else N batches of the model's own size. For training: --training "
            "micro-batches=N.",
        ),
    ] = None
    io_tiles: Annotated[
        str | None,
        typer.Option(
            "--io-tiles",
            metavar="N|auto",
            help="Keep N tiles of each chip aside: inputs and results go through them, while the "
            "other tiles compute other runs. auto compiles with several numbers, and takes the one "
            "with the most items a second.",
        ),
    ] = None
    shard: Annotated[
        list[str] | None,
        typer.Option(
            "--shard",
            metavar="NAME:DIM=N",
            help="Cut a dimension of an operator, or of all that fit a pattern, across N chips; "
            "several dimensions as in fc1:m=2,n=2. N = 1 keeps it on one chip. May be repeated.",
        ),
    ] = None
    memory_proportion: Annotated[
        float | None,
        typer.Option(
            "--memory-proportion",
            metavar="P",
            help="The share of a tile's usable memory, 0..1, that one operator may take for "
            "copies, partials and its result. Relaxed, with a warning, if no plan keeps it. "
            "Default: the constraints' own, else 0.6.",
        ),
    ] = None
    vertices_per_tile: Annotated[
        int | None,
        typer.Option(
            "--vertices-per-tile",
            metavar="N",
            help="Split work into at most N vertices of each compute set per tile; the workers of "
            "the tile take turns. Default: one per worker.",
        ),
    ] = None
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            metavar="W.safetensors",
            help="Replace the weights of the model by the tensors of this file, by name: "
            "safetensors, or a .caffemodel or .params. The file must have all weights of the "
            "model, and no tensor of floats besides.",
        ),
    ] = None
    partial_weights: Annotated[
        bool,
        typer.Option(
            "--partial-weights",
            help="With --weights: weights that the file lacks keep their values, and its further "
            "tensors are left out.",
        ),
    ] = False
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient",
            help="Take an ONNX model that breaks rules of ONNX, such as one with an unknown "
            "attribute or a false output type.",
        ),
    ] = False
    train: TrainFlag = False
    loss: LossName = None
    optimizer: OptimizerName = None
    training: TrainingNumbers = None
    dump_ir: DumpFolder = None
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            help="Compile the model even if the cache has its program, and do not keep it there.",
        ),
    ] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="Print what each stage does, and how many seconds it takes."
        ),
    ] = False

    def progress(self, extensions: Extensions) -> AbstractContextManager[OnStep]:
        """The progress display that the options ask for."""
        return progress(verbose=self.verbose, passes=extensions.passes)

    @property
    def asked(self) -> Train | None:
        """The training that the options ask for; None if they ask for none. Raises InputError."""
        return given_training(self.train, self.loss, self.optimizer, self.training)

    @property
    def files(self) -> dict[str, Path | None]:
        """The files that the options name, by option, for `check_files`."""
        return {
            "--constraints": self.constraints,
            "--weights": self.weights,
            "--calibrate": self.calibrate,
        }

    def request(self, model: str, extensions: Extensions, watch: OnStep | None = None) -> Request:
        """The request that the options make. Raises InputError.

        Args:
            extensions: the extensions of --load.
        """
        if self.partial_weights and self.weights is None:
            raise InputError("--partial-weights without --weights; need both")
        alike: dict[str, Any] = {name: getattr(self, name) for name in ALIKE}
        request = Request(
            model,
            **alike,
            load=extensions,
            dims=sizes(self.dim),
            example=self.inputs,
            values=given_values(self.value),
            keep=kept(self.keep),
            io_tiles=read_io_tiles(self.io_tiles),
            shard=tuple(self.shard or ()),
            stash=tuple(self.stash or ()),
            remote=tuple(self.remote or ()),
            train=self.asked,
            cache=not self.no_cache,
            reproducers=fresh_folder,
            watch=watch,
            on_note=each_once(print_error_line),
        )
        return (
            request if self.calibrate is None else with_calibrated_scales(request, self.calibrate)
        )


ALIKE = {each.name for each in fields(Compilation)} & OPTIONS.keys() - {
    "io_tiles",
    "keep",
    "load",
    "remote",
    "shard",
    "stash",
    "train",
}
"""The options that a request takes as they are given."""


def each_once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Say each line only the first time."""
    said: set[str] = set()

    def say_new(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    return say_new


def compiles(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option per field of its Compilation parameter, and --list-ops."""
    return compiles_without()(command)


def compiles_without(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command all options of its Compilation parameter but those for these fields, and
    --list-ops.
    """
    rest = [each.name for each in fields(Compilation) if each.name not in names]
    return partial(_with_options, names=rest, list_ops=True)


def compiles_with(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command options for these fields of its Compilation parameter."""
    return partial(_with_options, names=names, list_ops=False)


def _with_options(
    command: Callable[..., None], names: Sequence[str], list_ops: bool
) -> Callable[..., None]:
    hints = get_type_hints(command, include_extras=True)
    own = get_type_hints(Compilation, include_extras=True)
    default = {each.name: each.default for each in fields(Compilation)}
    (how,) = (name for name, hint in hints.items() if hint is Compilation)
    options = [(name, own[name], default[name]) for name in names]
    options += [("list_ops", ListOps, False)] * list_ops
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        is_how = each.name == how
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=hint)
            for name, hint, value in (
                options if is_how else [(each.name, hints[each.name], each.default)]
            )
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        WALL.call()
        asked = Compilation(**{name: given.pop(name) for name in names})
        if given.pop("list_ops", False):
            show_operators(given["model"], asked.dim, asked.value, asked.load, asked.inputs)
        else:
            command(**given, **{how: asked})

    # typer reads these.
    cast(Any, run).__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
