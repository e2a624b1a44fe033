"""What a user asks for: a model, what it is compiled to, and how. A new option is a field here.

compile_model takes the fields as its parameters. The command line has an option for most of them
(`commands/compiling.py`). What reads, plans, compiles or keeps a program gets the request whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, cast

from numpy.typing import ArrayLike

from ...backends.target import DEFAULT_TARGET, Target, named_target, resolve_target
from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.on_step import OnStep
from ...ir.support.turns import COMPILING
from ...ir.well_known import LEVEL_NAMES
from ..importers.bounds import GivenSize
from ..importers.front_end import FrontEnd
from ..importers.front_ends import FRONT_ENDS, Model, front_end_of, listed, suffixes
from .argument_kinds import (
    ARRAYS,
    BOUNDS,
    COUNT,
    FUNCTION,
    NAMES,
    NONE,
    NUMBER,
    PATH,
    PATHS,
    SWITCH,
    TARGET,
    TEXT,
    TEXTS,
    TRAINING,
    Kind,
    check_arguments,
)
from .arrays import Tensor
from .decoding.asked import Decoding
from .example import Example, example_of, sizes_by_example
from .executable import Executable
from .extensions.load import load_extensions
from .extensions.loaded import Extensions
from .files import PROGRAM_FILE

with deferred(__name__):
    from ...dialects.levels import NN
    from ...passes.keep_remote import KeepRemote
    from ...passes.narrow_stashes import NarrowStashes
    from ...passes.train import Train
    from ..importers.other_files import how_to_export
    from .held_homes import Held, held_by
    from .partials import constrains_partials, partials_options
    from .pipelines import PipelineOptions
    from .program import ReadProgram, plan_target, target_of
    from .recomputation.asked import is_automatic, read_recompute, read_stashes
    from .replicated import read_replicas
    from .sparsity import without_zeros
    from .users_pipeline import (
        with_changed_values,
        with_remote_states,
        with_replicas,
        with_stages,
    )

MODEL = Kind(
    lambda value: PATH.accepts(value) or front_end_of(value) is not None,
    f"the path of an {listed((*suffixes(FRONT_ENDS), PROGRAM_FILE))} file, or "
    + listed(each.in_memory for each in FRONT_ENDS if each.in_memory),
)

PROGRAMS = Kind(
    lambda value: (
        isinstance(value, list | tuple)
        and all(isinstance(each, Executable) for each in cast("Sequence[object]", value))
    ),
    "a list of executables",
)

DECODING = Kind(lambda value: isinstance(value, Decoding), "a Decoding with its options")

EXAMPLE = Kind(lambda value: isinstance(value, Example), "shapes")

Precision = Literal["float16", "bfloat16", "float8", "pure-float16", "pure-bfloat16"]

NARROW: Mapping[str, str] = {
    "float16": "narrow-floats{to=f16 states=unseen}",
    "bfloat16": "narrow-floats{to=bf16 states=unseen}",
    "float8": "narrow-floats{to=f16 states=unseen},narrow-products",
    "pure-float16": "narrow-floats{to=f16 states=narrow}",
    "pure-bfloat16": "narrow-floats{to=bf16 states=narrow}",
}
"""The passes that make a float32 program compute in a precision."""

AUTO_IO = "auto"
"""What io_tiles is if their number is chosen by price."""

ROUNDINGS = ("nearest", "stochastic", "hardware")

ROUND = "round-stores"
"""The pass that decides how results of 16 bits are rounded."""

STAGES = "stages"
"""What `recompute` is if backward stages of a pipeline compute their forward stage again."""

PARTIALS = "narrow-partials"
"""The pass that chooses the type of partial sums."""

Rounding = Literal["nearest", "stochastic", "hardware"]

PRECISION = Kind(
    lambda value: isinstance(value, str) and value in NARROW, " or ".join(map(repr, NARROW))
)

ROUNDING = Kind(
    lambda value: isinstance(value, str) and value in ROUNDINGS, " or ".join(map(repr, ROUNDINGS))
)

EXTENSIONS = Kind(lambda value: isinstance(value, Extensions), "loaded extensions")

RUNS = 10
"""Runs between two changes of programs that a compile counts on, unless it is told."""

PLANNED = "compiled already, so it cannot be planned again; need the model"
BESIDE = (
    "compiled already, so it cannot be laid out beside others; need the model, or compile the "
    "others beside it"
)

IN_MEMORY = "<model>"
"""The name of a model in memory."""


@dataclass(frozen=True)
class Option:
    """The facts about a field of a request, besides its type and default.

    Attributes:
        kind: the kind of values that Python code may give.
        part: its name in the parts of a cache's key, if that is not the name of the field; None if
            it does not decide the bytes of the program.
        refused: why a compiled program refuses it, with {} for its value; "" if it does not.
    """

    kind: Kind
    part: str | None = ""
    refused: str = ""


def _is(kind: Kind, part: str | None = "", refused: str = "") -> Mapping[str, Option]:
    return {"option": Option(kind, part, refused)}


@dataclass(frozen=True)
class Request:
    """A model, what it is compiled to, and how.

    Attributes:
        model: the path of an .onnx file, of an .mlir file of any level, or of a saved .abele
            program; or an onnx.ModelProto.
        target: as for resolve_target; the default is the model's own, else mk2.
        chips: only the first chips of the target; or, of a target with one chip, so many that are
            joined as usual.
        dims: sizes of free dimensions, by symbol or by "INPUT:AXIS"; for a size that each run
            chooses, its bounds, such as (0, 64) or "0..64".
        values: inputs of an ONNX model that are known now; the program does not take them. The
            value of an input that has one in the model, which is a weight, replaces it.
        example: inputs of the model, as arrays by name or as an .npz file. Their shapes give sizes
            to free dimensions; they must agree with dims and with the model.
        batch: the number of samples of an ONNX model, as for import_onnx.
        keep: inputs that become states on the device, each with the output that it receives in the
            next run; see keep_states.
        passes: a pipeline that leads to the last level, in which a level stands for the passes that
            lead there; "" for all of them.
        tailored: whether the passes are those of the default pipeline and of options, to which a
            compile adds passes for products that the program has. Settling a request without a
            pipeline turns it on.
        precision: float16 or bfloat16, in which a float32 program computes, except for sums: the
            pass narrow-floats before all others. Training keeps weights in float32, unless the
            precision is pure-float16 or pure-bfloat16. float8 is float16, and 8-bit floats for the
            operands of products: the pass narrow-products.
        sparsity: which matrix products leave zeros of weights out where that is faster: zeros, for
            weights that have zeros; HEIGHTxWIDTH, for those in such blocks; HEIGHTxWIDTH:SHARE,
            which first sets that share of the blocks of each weight to zero. The pass
            multiply-sparse.
        rounding: how results of 16 bits are rounded: nearest, stochastic, or hardware, whose
            random bits depend on the plan; they then overflow as the target does. By default to
            nearest, and to infinities.
        partials: the type in which sums of float16 are kept between their parts:
            float16, float32, auto, or auto:ERROR; or one of them for a part of a step of training,
            as in "float16,weight-gradient=float32". auto takes float16 where the bound of the error
            that this adds is at most ERROR, 0.05 by default, of the sum of all absolute products.
        recompute: what is computed again instead of kept, to save memory: auto, which chooses as
            little as the memory of a tile asks for; auto:BYTES, for a lower bound; sqrt, PopART's
            schedule; stages, with a pipeline, whose backward stages then compute their forward
            stage again; or names of operators, joined by commas.
        replicas: among how many chips, or groups of chips, the batch is shared; each holds all
            weights. An integer, or with the way in which their sums are merged, as in "4:ring":
            direct, ring, both, middle or auto, the default, which takes the fastest.
        stash: activations that training keeps in a narrower type for the backward pass, as
            TYPE:NAME or TYPE@SCALE:NAME with the name of an operator or a pattern: the pass
            narrow-stashes. TYPE is float16, bfloat16, f143, f152 or f134; SCALE is a power of two.
            TYPE:auto lets recompute=auto choose those that it pays for.
        remote: states that remote memory holds instead of the tiles, by name or pattern; or
            optimizer, for the moments and other states that training adds for weights: the pass
            keep-remote.
        load: extension files, as for load_extensions.
        constraints: a JSON file of choices for operators.
        pipeline: the number of stages into which the planner cuts the network, each on chips of its
            own; or names of nodes, joined by commas, each of which begins a stage.
        schedule: of the pipeline: grouped, which is the default, interleaved or sequential.
        stage_chips: the chips of its stages, joined by commas; stage s is on chip s by default.
        micro_batches: how many micro-batches a run computes, one after the other or in a pipeline:
            the parts of the batch, or else that many batches of the model's own size. Training has
            an option of this name.
        io_tiles: how many tiles of each chip are kept aside for traffic with the host, which then
            overlaps with other runs; the target's number by default. "auto" compiles the program
            with several numbers, and takes the one with the most items a second.
        shard: which dimensions of which operators are cut across chips: NAME:DIM=N, such as
            "fc1:n=4", with the name of an operator or a pattern.
        memory_proportion: the share of a tile's memory that one operator may take temporarily.
        vertices_per_tile: how fine the work of each compute set is split.
        unbounded: also compile a program that does not fit, for reports; it cannot run.
        weights: a file of weights (safetensors, .caffemodel or .params), or arrays by name, that
            replace the model's weights.
        partial_weights: let the model and `weights` each have weights that the other lacks.
        lenient: also take an ONNX model that breaks rules of ONNX, such as one with an unknown
            attribute or a false output type.
        train: how the program's weights are trained; it then computes a step of training, of which
            batch is the number of samples.
        decoding: make a decoder of a language model, which has its cache as inputs and outputs, a
            program that reads a prompt or generates tokens, with the cache on the device; see
            Decoder.
        beside: programs with which it shares a machine, as in a Session; an empty list for the
            first of them. Its states and constants get the layouts and addresses that they have
            there, where that pays, and the default of target is theirs.
        runs: how many runs it does between two changes of programs; this decides what pays.
        dump_ir: a folder for the program after each pass, and for a page that shows what each pass
            did.
        reproducers: a folder for what reproduces a failure of a pass, or a function from the name
            of the pass to such a folder; dump_ir's folder takes precedence.
        verify_each: verify the program after each pass.
        watch: called with the name of each slow step.
        on_read: called with a model's program before any pass runs; it may raise.
        on_note: called with each line for the user about the model, which the program keeps too.
        on_inputs: called with the program's inputs before any pass runs, so that values for them
            can be checked first; it may raise.
        cache: take the program from the cache if it was compiled before, and keep it there
            otherwise; not with dump_ir, nor with an extension in Python, which may import anything.
    """

    model: Model = field(metadata=_is(MODEL))
    target: str | Target | None = field(default=None, metadata=_is(TARGET | NONE))
    _: KW_ONLY
    chips: int | None = field(
        default=None,
        metadata=_is(COUNT | NONE, refused="compiled already, for its chips; need the model"),
    )
    dims: Mapping[str, GivenSize] | None = field(
        default=None,
        metadata=_is(BOUNDS | NONE, refused="dimensions given ({}); a program has sizes"),
    )
    values: Mapping[str, ArrayLike] | None = field(
        default=None, metadata=_is(ARRAYS | NONE, refused="values given ({}); need the model")
    )
    example: Mapping[str, ArrayLike] | str | os.PathLike[str] | Example | None = field(
        default=None, metadata=_is(ARRAYS | PATH | EXAMPLE | NONE, None)
    )
    batch: int | None = field(
        default=None, metadata=_is(COUNT | NONE, refused="--batch {} is given; need the model")
    )
    keep: Mapping[str, str] | None = field(
        default=None,
        metadata=_is(NAMES | NONE, refused="inputs to keep given ({}); need the model"),
    )
    passes: str = field(
        default="",
        metadata=_is(
            Kind(TEXT.accepts, 'a pipeline as text, or "" for all passes'),
            refused="compiled already, so no pass is left to run; need the model",
        ),
    )
    tailored: bool = field(default=False, metadata=_is(SWITCH))
    precision: Precision | None = field(
        default=None,
        metadata=_is(
            PRECISION | NONE, None, "compiled already, so it keeps its precision; need the model"
        ),
    )
    rounding: Rounding | None = field(
        default=None,
        metadata=_is(
            ROUNDING | NONE, None, "compiled already, so it keeps its rounding; need the model"
        ),
    )
    sparsity: str = field(
        default="",
        metadata=_is(
            Kind(TEXT.accepts, "zeros, HEIGHTxWIDTH or HEIGHTxWIDTH:SHARE"),
            refused="compiled already, so its products are what they are; need the model",
        ),
    )
    partials: str = field(
        default="",
        metadata=_is(
            Kind(TEXT.accepts, "float16, float32, auto or auto:ERROR"),
            None,
            "compiled already, so it keeps its partial sums; need the model",
        ),
    )
    recompute: str = field(
        default="",
        metadata=_is(
            Kind(TEXT.accepts, "auto, auto:BYTES, sqrt, or names joined by commas"),
            refused="compiled already, so it keeps what it keeps; need the model",
        ),
    )
    replicas: int | str | None = field(
        default=None,
        metadata=_is(
            Kind(
                lambda value: value is None or COUNT.accepts(value) or TEXT.accepts(value),
                "a number of replicas, or 'NUMBER:WAY'",
            ),
            None,
            "compiled already, so its batch is cut already; need the model",
        ),
    )
    stash: Sequence[str] = field(
        default=(),
        metadata=_is(
            Kind(
                lambda value: not isinstance(value, str) and TEXTS.accepts(value),
                "a list of choices such as 'f134@0.25:relu*'",
            ),
            refused="compiled already, so it keeps what it keeps; need the model",
        ),
    )
    remote: Sequence[str] = field(
        default=(),
        metadata=_is(
            Kind(
                lambda value: not isinstance(value, str) and TEXTS.accepts(value),
                "a list of names of states, such as 'fc*.weight' or 'optimizer'",
            ),
            refused="compiled already, so its states stay where they are; need the model",
        ),
    )
    load: Sequence[str | os.PathLike[str]] | Extensions = field(
        default=(), metadata=_is(PATHS | EXTENSIONS, "loaded")
    )
    constraints: str | os.PathLike[str] | None = field(
        default=None, metadata=_is(PATH | NONE, refused=PLANNED)
    )
    pipeline: str = field(
        default="",
        metadata=_is(
            Kind(TEXT.accepts, "a number of stages, or names joined by commas"),
            None,
            "compiled already, so its stages are where they are; need the model",
        ),
    )
    schedule: str | None = field(
        default=None,
        metadata=_is(
            TEXT | NONE, None, "compiled already, so it keeps its schedule; need the model"
        ),
    )
    stage_chips: str = field(
        default="",
        metadata=_is(
            Kind(TEXT.accepts, "numbers of chips, joined by commas"),
            None,
            "compiled already, so its stages are where they are; need the model",
        ),
    )
    micro_batches: int | None = field(
        default=None,
        metadata=_is(COUNT | NONE, refused="compiled already, with its batch; need the model"),
    )
    io_tiles: int | Literal["auto"] | None = field(
        default=None,
        metadata=_is(
            Kind(
                lambda value: value is None or value == AUTO_IO or COUNT.accepts(value),
                f"a whole number, or {AUTO_IO!r}",
            ),
            refused="compiled already, so its tiles are chosen; need the model",
        ),
    )
    shard: Sequence[str] = field(
        default=(),
        metadata=_is(
            Kind(
                lambda value: not isinstance(value, str) and TEXTS.accepts(value),
                "a list of shards such as 'fc1:n=4'",
            ),
            refused=PLANNED,
        ),
    )
    memory_proportion: float | None = field(
        default=None, metadata=_is(NUMBER | NONE, refused=PLANNED)
    )
    vertices_per_tile: int | None = field(default=None, metadata=_is(COUNT | NONE, refused=PLANNED))
    unbounded: bool = field(default=False, metadata=_is(SWITCH, None))
    weights: str | os.PathLike[str] | Mapping[str, ArrayLike] | None = field(
        default=None,
        metadata=_is(
            ARRAYS | PATH | NONE, refused="compiled already, with its weights; need the model"
        ),
    )
    partial_weights: bool = field(default=False, metadata=_is(SWITCH))
    lenient: bool = field(default=False, metadata=_is(SWITCH))
    train: Train | None = field(
        default=None,
        metadata=_is(
            TRAINING | NONE,
            "training",
            "compiled already, so it cannot be trained; need the model",
        ),
    )
    decoding: Decoding | None = field(
        default=None,
        metadata=_is(
            DECODING | NONE, refused="compiled already, so it stays what it is; need the model"
        ),
    )
    beside: Sequence[Executable] | Held | None = field(
        default=None, metadata=_is(PROGRAMS | NONE, refused=BESIDE)
    )
    runs: float = field(default=RUNS, metadata=_is(NUMBER, None))
    dump_ir: str | os.PathLike[str] | None = field(
        default=None,
        metadata=_is(
            PATH | NONE, None, "compiled already, so no pass is left to dump; need the model"
        ),
    )
    reproducers: str | os.PathLike[str] | Callable[[str], Path] | None = field(
        default=None, metadata=_is(PATH | FUNCTION | NONE, None)
    )
    verify_each: bool = field(default=True, metadata=_is(SWITCH, None))
    watch: OnStep | None = field(default=None, metadata=_is(FUNCTION | NONE, None))
    on_read: Callable[[ReadProgram], None] | None = field(
        default=None, metadata=_is(FUNCTION | NONE, None)
    )
    on_inputs: Callable[[Sequence[Tensor]], None] | None = field(
        default=None, metadata=_is(FUNCTION | NONE, None)
    )
    on_note: Callable[[str], None] | None = field(default=None, metadata=_is(FUNCTION | NONE, None))
    cache: bool = field(default=True, metadata=_is(SWITCH, None))

    @property
    def file(self) -> str:
        """The path of the model; "" for a model in memory."""
        return os.fspath(self.model) if isinstance(self.model, str | os.PathLike) else ""

    @property
    def path(self) -> str:
        """The model's name in messages."""
        return self.file or IN_MEMORY

    @property
    def extensions(self) -> Extensions:
        """The extensions, loaded. Raises InputError."""
        return self.load if isinstance(self.load, Extensions) else load_extensions(self.load)

    @property
    def held(self) -> Held | None:
        """The homes of the programs beside it; None if it is not beside others."""
        if self.beside is None or isinstance(self.beside, Mapping):
            return self.beside
        with COMPILING:
            return held_by(
                self.beside, machine_of(self.target, self.chips, self.io_tiles), self.runs
            )

    def on_step(self, step: str) -> None:
        """Call `watch` as a slow step begins."""
        if self.watch is not None:
            self.watch(step)

    def tell(self, notes: Iterable[str]) -> None:
        """Call `on_note` with lines for the user."""
        if self.on_note is not None:
            for each in notes:
                self.on_note(each)

    def check(self, what: str) -> None:
        """Raise InputError for a value of a wrong kind.

        Args:
            what: the function, for the message.
        """
        kinds = {name: each.kind for name, each in OPTIONS.items()}
        model = kinds.pop("model")
        check_arguments(what, kinds, vars(self))
        # An extension may know further kinds of models.
        _ = self.extensions
        check_arguments(what, {"model": model}, vars(self))

    def with_values(self, more: Mapping[str, ArrayLike]) -> Request:
        """The request with values of further inputs."""
        return replace(self, values={**(self.values or {}), **more})

    def settled(self) -> Request:
        """The request with its extensions loaded, for its own machine, with what the programs
        beside it hold, with the sizes of its example, and with the passes of its pipeline,
        precision, sparsity, stashes, recomputation, rounding, partial sums, replicas and remote
        states.

        Raises InputError.
        """
        loaded = replace(self, load=self.extensions, tailored=self.tailored or not self.passes)
        if self.target is None and self.beside and not isinstance(self.beside, Mapping):
            loaded = replace(loaded, target=self.beside[0].target)
        loaded = loaded.with_machine()
        settled = loaded.with_sizes().with_pipeline().with_precision()
        settled = settled.with_sparsity().with_stashes().with_recomputation()
        settled = settled.with_rounding().with_partials().with_replicas().with_remote()
        return replace(settled, beside=loaded.held)

    def with_machine(self) -> Request:
        """The request whose target has its numbers of chips and I/O tiles. Raises InputError.

        Without a target it is unchanged: a program may name its own.
        """
        given = self.chips, self.io_tiles
        if self.target is None or given == (None, None) or self.file.endswith(PROGRAM_FILE):
            return self
        return replace(self, target=machine_of(self.target, *given), chips=None, io_tiles=None)

    def machine(self, program: ReadProgram) -> Target:
        """The machine for which a program is compiled, which is also written on an nn module.

        Raises InputError.
        """
        target = self.target
        if self.chips is not None or self.io_tiles is not None:
            own = target_of(program.module, target, program.path)
            target = machine_of(own, self.chips, self.io_tiles)
        return plan_target(program.module, target, program.path)

    def with_pipeline(self) -> Request:
        """The request with the passes that its pipeline stands for. Raises InputError."""
        if self.file.endswith(PROGRAM_FILE):
            return self
        again = self.recompute == STAGES
        if not self.pipeline:
            for option, given in (
                ("--schedule", self.schedule),
                ("--stage-chips", self.stage_chips),
                (f"--recompute {STAGES}", again),
            ):
                if given:
                    raise InputError(f"{option} without --pipeline; need both")
            return self
        target = None if self.target is None else _resolved(self.target)
        axes = () if self.train is None else self.train.batch_axes
        copies = None if self.replicas is None else read_replicas(self.replicas, axes)
        if copies is not None:
            copies = replace(copies, shard=tuple(self.shard))
        asked = PipelineOptions(
            self.pipeline,
            self.schedule,
            self.stage_chips,
            recompute=again,
            target=target,
            replicate=copies,
        )
        asked.check(self.train, self.micro_batches)
        return replace(
            self,
            pipeline="",
            schedule=None,
            stage_chips="",
            replicas=None,
            recompute="" if again else self.recompute,
            passes=with_stages(self.passes, asked.passes()),
        )

    def with_stashes(self) -> Request:
        """The request with the pass that keeps stashes narrow. Raises InputError."""
        if not self.stash or self.file.endswith(PROGRAM_FILE):
            return self
        own = tuple(map(str, read_stashes(self.stash, self.recompute)))
        chosen = tuple(filter(is_automatic, self.stash))
        passes = with_changed_values(self.passes, NarrowStashes(own)) if own else self.passes
        return replace(self, stash=chosen, passes=passes)

    def with_recomputation(self) -> Request:
        """The request with the passes that its recomputation stands for, unless the compiler is to
        choose. Raises InputError."""
        if not self.recompute or self.file.endswith(PROGRAM_FILE):
            return self
        again = read_recompute(self.recompute).again
        if again is None:
            return self
        return replace(self, recompute="", passes=with_changed_values(self.passes, again))

    def with_replicas(self) -> Request:
        """The request with the pass that cuts the batch across chips. Raises InputError."""
        if self.replicas is None or self.file.endswith(PROGRAM_FILE):
            return self
        axes = () if self.train is None else self.train.batch_axes
        copies = replace(read_replicas(self.replicas, axes), shard=tuple(self.shard))
        passes = with_replicas(self.passes, copies)
        return replace(self, replicas=None, passes=passes)

    def with_remote(self) -> Request:
        """The request with the pass that keeps states in remote memory, behind all passes that
        change what is computed. Raises InputError."""
        if not self.remote or self.file.endswith(PROGRAM_FILE):
            return self
        passes = with_remote_states(self.passes, KeepRemote(tuple(self.remote)))
        return replace(self, remote=(), passes=passes)

    def without_recomputation(self) -> Request:
        """The request, not settled yet, for the same program with no value computed again, and none
        kept narrow but by the user's own choice. It tells and dumps nothing."""
        own = tuple(each for each in self.stash if not is_automatic(each))
        return replace(self, recompute="", stash=own, dump_ir=None, on_read=None, on_note=None)

    def with_precision(self) -> Request:
        """The request with the pass that its precision stands for. Raises InputError."""
        if self.precision is None or self.file.endswith(PROGRAM_FILE):
            return self
        narrow = NARROW[self.precision]
        if narrow.partition("{")[0] in self.passes:
            raise InputError(
                f"--precision {self.precision} and the pipeline '{self.passes}', which narrows "
                "floats too; need one of the two"
            )
        passes = f"{narrow},{self.passes or ','.join(LEVEL_NAMES)}"
        return replace(self, precision=None, passes=passes)

    def with_sparsity(self) -> Request:
        """The request with the pass that multiplies sparse weights, before the passes of nn.

        Raises InputError for a pipeline without the level nn, and for training.
        """
        if not self.sparsity or self.file.endswith(PROGRAM_FILE):
            return self
        if self.train is not None:
            raise InputError(
                f"--sparsity {self.sparsity} and training, which changes the weights; need one of "
                "the two"
            )
        target = "" if self.target is None else _resolved(self.target).spelling()
        return replace(self, passes=without_zeros(self.sparsity, self.passes, target))

    def with_rounding(self) -> Request:
        """The request with the pass that its rounding stands for, behind the passes of nn.

        Raises InputError for a pipeline without the level nn, and for one that has this pass.
        """
        if self.rounding is None or self.file.endswith(PROGRAM_FILE):
            return self
        what = f"--rounding {self.rounding}"
        passes = self._behind_nn(what, ROUND, f"rounding={self.rounding}")
        return replace(self, rounding=None, passes=passes)

    def with_partials(self) -> Request:
        """The request with the pass that chooses partial sums, behind the passes of nn.

        Raises InputError for a pipeline without the level nn, and for one that has this pass.
        """
        if self.file.endswith(PROGRAM_FILE):
            return self
        if self.partials:
            what, options = f"--partials {self.partials}", partials_options(self.partials)
        elif self.constraints is not None and constrains_partials(self.constraints):
            if PARTIALS in self.passes:
                return self
            what, options = "--constraints with partials", "partials=keep"
        else:
            return self
        return replace(self, partials="", passes=self._behind_nn(what, PARTIALS, options))

    def _behind_nn(self, what: str, name: str, options: str) -> str:
        """The pipeline with a pass behind the passes of nn.

        Raises InputError for a pipeline without the level nn, and for one that has this pass.

        Args:
            what: the option that stands for the pass, for the message.
        """
        names = (self.passes or ",".join(LEVEL_NAMES)).split(",")
        if NN.name not in names or any(each.startswith(name) for each in names):
            raise InputError(
                f"{what} and the pipeline '{self.passes}'; need a pipeline with {NN.name} and "
                f"without {name}"
            )
        target = "" if self.target is None else f' target="{_resolved(self.target).spelling()}"'
        names.insert(names.index(NN.name) + 1, f"{name}{{{options}{target}}}")
        return ",".join(names)

    def with_sizes(self) -> Request:
        """The request with the sizes of its example, and without the example. Raises InputError."""
        if self.example is None:
            return self
        front_end = None if self.file.endswith(PROGRAM_FILE) else found_front_end(self.model)
        if front_end is None or front_end.open_shapes is None:
            return replace(self, example=None)
        declared = front_end.open_shapes(self.model)
        dims, values = dict(self.dims or {}), dict(self.values or {})
        example = example_of(self.example)
        found = sizes_by_example(self.path, declared, example, dims, values, self.batch)
        return replace(self, example=None, dims=found)

    def refuse_for_program(self) -> None:
        """Raise InputError for an option that makes no sense for a compiled program."""
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if option.refused and is_given(value):
                is_by_name = isinstance(value, Mapping)
                shown = ", ".join(cast("Mapping[str, object]", value)) if is_by_name else str(value)
                raise InputError(f"{self.path}: {option.refused.format(shown)}")


OPTIONS: Mapping[str, Option] = {each.name: each.metadata["option"] for each in fields(Request)}
"""The facts about each field, by name."""


def found_front_end(model: Model) -> FrontEnd:
    """The front end that reads a model that is not compiled yet. Raises InputError if none does."""
    found = front_end_of(model)
    if found is None:
        path = os.fspath(model) if isinstance(model, str | os.PathLike) else IN_MEMORY
        known = listed((*suffixes(), PROGRAM_FILE))
        other = how_to_export(path)
        raise InputError(f"{path}: {other or f'unknown kind of file; need {known}'}")
    return found


def is_given(value: object) -> bool:
    """Whether a value asks for something. No names, no sizes and an empty pipeline do not."""
    return value is not None and not (isinstance(value, Mapping | str | tuple) and not value)


def machine_of(
    target: str | Target | None, chips: int | None, io_tiles: int | Literal["auto"] | None
) -> Target:
    """The machine that the options target, chips and io_tiles stand for. Raises InputError, also
    for a number of I/O tiles that is not chosen yet."""
    if io_tiles == AUTO_IO:
        raise InputError(
            "--io-tiles auto compares whole compiled programs, and none is compiled here; need a "
            "number (abele report shows which one auto chooses)"
        )
    found = _resolved(target)
    if chips is not None:
        try:
            found = found.with_chips(chips)
        except InputError as error:
            raise InputError(f"--chips {chips}: {error}") from None
    return found if io_tiles is None else replace(found, io_tiles=io_tiles)


def _resolved(target: str | Target | None) -> Target:
    if target is None:
        return named_target(DEFAULT_TARGET)
    return resolve_target(target) if isinstance(target, str) else target


P = ParamSpec("P")
R = TypeVar("R")


def with_fields_of(
    request: Callable[P, Request],
) -> Callable[[Callable[[Request], R]], Callable[P, R]]:
    """Let a function of a request take the fields of the request instead, as its parameters.

    What the fields mean follows the first paragraph of the function's docstring.
    """

    def changed(function: Callable[[Request], R]) -> Callable[P, R]:
        @wraps(function)
        def called(*given: P.args, **options: P.kwargs) -> R:
            return function(request(*given, **options))

        returned = function.__annotations__["return"]
        cast(Any, called).__signature__ = signature(request).replace(return_annotation=returned)
        first, rest = (function.__doc__ or "").split("\n\n", 1)
        meanings = (request.__doc__ or "").split("\n\n", 1)[1].rstrip()
        meanings = meanings.replace("Attributes:", "Args:", 1)
        called.__doc__ = f"{first}\n\n{meanings}\n{rest}"
        return called

    return changed
