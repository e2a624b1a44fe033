"""Post-training quantisation of a model, from Python."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx.helper import find_min_ir_version_for

from ...backends.target import DEFAULT_TARGET, Target, resolve_target
from ...backends.target.dtype_kinds import lacks
from ...dialects import partition
from ...dialects.levels import PARTITION
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.on_step import OnStep
from ..driver.arrays import Tensor
from ..driver.compile import compiled
from ..driver.compile_anew import read_model
from ..driver.executable import MACHINE, Executable
from ..driver.files import write_bytes
from ..driver.program import signature
from ..driver.request import Precision, Request
from ..importers.bounds import GivenSize
from ..importers.onnx.model_file import MOST_BYTES
from .calibration import Interpreted, calibrated
from .choice import Choice, chosen, kept_nodes
from .formats import FP8, INT8, UINT8, Activations, Format, Scaling, To
from .histogram import Histogram
from .judging import Judged, Run, compare, judged
from .model import Graph, Model, read_graph
from .ranges import DEFAULT, METHODS, Method
from .rewriting import write_quantised
from .samples import LABELS, Data, Units, arrays_of, units_of, with_sizes

HELD_OUT = 0.25
"""The share of the samples that is kept out of calibration, to judge by."""

FEW_SAMPLES = 8
"""With fewer samples, ranges are likely to be too narrow for others."""

LEAST_OPSET: Mapping[To, int] = {"int8": 13, "fp8": 19}
"""The first opset with scales along an axis, and the first one with 8-bit floats."""

ACTIVATIONS: Mapping[Activations, Format] = {"uint8": UINT8, "int8": INT8}


@dataclass(frozen=True)
class Cost:
    """What a program costs on the target.

    Attributes:
        tile_bytes: of the fullest tile.
        weight_bytes: of the weights and constants that the program holds, each once.
        fits: whether the program fits the target.
    """

    cycles: int
    tile_bytes: int
    weight_bytes: int
    exchange_bytes: int
    fits: bool

    @staticmethod
    def of(exe: Executable) -> Cost:
        """The cost of a program."""
        profile = exe.profile
        size = int(profile["max_tile_bytes"])
        return Cost(
            int(profile["cycles"]),
            size,
            _weight_bytes(exe),
            int(profile["exchange_bytes"]),
            exe.memory.problem() is None,
        )


@dataclass(frozen=True)
class NodeLoss:
    """What quantising one node alone changes: a row of the table of sensitivity."""

    node: str
    judged: Judged


@dataclass(frozen=True)
class Quantised:
    """A quantised model, and what it loses and gains.

    Attributes:
        model: the written model.
        method: of calibration.
        target: the target that the costs are for.
        scalings: of each activation whose numbers were counted, and of each weight.
        judged: its outputs compared with those of the float model on samples that were not used to
            calibrate; None if there are none.
        before, after: what the float model and the quantised one cost on the target.
        sensitivity: what each product costs, the worst first, if that was asked for.
        notes: warnings for the user.
    """

    model: onnx.ModelProto
    to: To
    method: Method
    target: str
    choice: Choice
    scalings: Mapping[str, Scaling]
    judged: Judged | None
    before: Cost
    after: Cost
    sensitivity: Sequence[NodeLoss] = ()
    notes: Sequence[str] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a temporary file that is then renamed. Raises InputError."""
        if self.model.ByteSize() > MOST_BYTES:
            size = self.model.ByteSize()
            raise InputError(f"{path}: {size:,} bytes; an ONNX file holds {MOST_BYTES:,}")
        write_bytes(Path(path), self.model.SerializeToString(deterministic=True))


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How a model is to be quantised; `quantise` says what the fields mean."""

    request: Request
    inputs: Data
    to: To
    keep: Sequence[str] = ()
    method: Method = DEFAULT
    activations: Activations = "uint8"
    validation: float | None = None
    validation_data: Data | None = None
    labels: str = LABELS
    sensitivity: int = 0
    seed: int = 0


def quantise(
    model: Model,
    inputs: Data,
    *,
    to: To = "int8",
    keep: Sequence[str] = (),
    method: Method = DEFAULT,
    activations: Activations = "uint8",
    validation: float | None = None,
    validation_data: Data | None = None,
    labels: str = LABELS,
    sensitivity: int = 0,
    seed: int = 0,
    target: str | Target | None = None,
    precision: Precision | None = None,
    dims: Mapping[str, GivenSize] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
    batch: int | None = None,
    lenient: bool = False,
    watch: OnStep | None = None,
) -> Quantised:
    """Calibrate a float model on samples, and write it with 8-bit products.

    Raises InputError.

    Args:
        model: an ONNX model, as a path or in memory.
        inputs: samples for each input, along the first axis of arrays by name or of an .npz file,
            or with an axis of runs before the input's own.
        to: int8, with a scale and a zero point for each activation and scales for each output
            channel of weights; or fp8, with a power of two for each tensor.
        keep: regular expressions; nodes with a name that one of them matches stay in float.
        method: how scales follow from the numbers that were seen.
        activations: the type of activations with int8.
        validation: the share of the samples that is not calibrated with but judged by; a fourth by
            default.
        validation_data: samples to judge by, instead of a share.
        labels: the name of an array of classes among the samples, if there is one.
        sensitivity: with how many samples to judge what each product alone costs.
        seed: of the choice of samples to judge by.
        target, precision, dims, values, batch, lenient: as for compile_model.
    """
    request = Request(
        model,
        target,
        precision=precision,
        dims=dims,
        values=values,
        batch=batch,
        lenient=lenient,
        watch=watch,
    )
    request.check(quantise.__name__)
    return quantised(
        Wish(
            request=request,
            inputs=inputs,
            to=to,
            keep=keep,
            method=method,
            activations=activations,
            validation=validation,
            validation_data=validation_data,
            labels=labels,
            sensitivity=sensitivity,
            seed=seed,
        )
    )


def quantised(wish: Wish) -> Quantised:
    """The model that a wish asks for. Raises InputError."""
    _check(wish)
    request = replace(wish.request, unbounded=True)
    _check_target(wish)
    form = FP8 if wish.to == "fp8" else ACTIVATIONS[wish.activations]
    graph = read_graph(request.model, LEAST_OPSET[wish.to])
    notes: list[str] = []
    request, units, held = _samples(wish, request, notes)
    kept = kept_nodes(graph, wish.keep)
    seen = calibrated(graph, request, units, chosen(graph, kept).roots)
    choice = chosen(graph, kept, _floats(graph, kept, seen.floats))
    scalings = _scalings(graph, choice, seen.histograms, wish.method, form)
    losses: list[NodeLoss] = []
    if wish.sensitivity and held is not None:
        losses = _losses(wish, graph, choice, scalings, form, held)
    weights = write_quantised(graph, choice, scalings, form)
    _finish(graph)
    request.on_step("compile the float model")
    before = compiled(request)
    request.on_step("compile the quantised model")
    after = compiled(replace(request, model=graph.model, weights=None, on_note=None))
    found = None
    if held is not None:
        found = judged(_runner(before), _runner(after), held, request.on_step)
    return Quantised(
        graph.model,
        wish.to,
        wish.method,
        before.target.spelling(),
        choice,
        {**scalings, **weights},
        found,
        Cost.of(before),
        Cost.of(after),
        losses,
        notes,
    )


def _check(wish: Wish) -> None:
    """Raise InputError for values that no wish may have."""
    for what, value, allowed in (
        ("to", wish.to, tuple(LEAST_OPSET)),
        ("method", wish.method, tuple(METHODS)),
        ("activations", wish.activations, tuple(ACTIVATIONS)),
    ):
        if value not in allowed:
            raise InputError(f"{what} {value!r}; need one of {', '.join(allowed)}")
    if wish.validation is not None and wish.validation_data is not None:
        raise InputError("--validation and --validation-data; need one of the two")
    if wish.sensitivity < 0:
        raise InputError(f"--sensitivity {wish.sensitivity}; need a number of samples")
    if wish.request.weights is not None:
        raise InputError("weights beside the model; need them in the model that is written")


def _check_target(wish: Wish) -> None:
    """Raise InputError for 8-bit floats on a target without units for their products."""
    given = wish.request.target
    target = resolve_target(given or DEFAULT_TARGET) if not isinstance(given, Target) else given
    if wish.to == "fp8" and lacks(FP8.dtype.name, target):
        raise InputError(
            f"--to fp8 --target {target.spelling()}: it has no units for products of 8-bit floats; "
            "need a target that has them, such as c600, or --to int8"
        )


def _samples(wish: Wish, request: Request, notes: list[str]) -> tuple[Request, Units, Units | None]:
    """The request with the sizes of the samples, the samples to calibrate with, and those to judge
    by, if there are any."""
    arrays, path = arrays_of(wish.inputs, "inputs")
    request = with_sizes(request, arrays, path, wish.labels)
    program = read_model(request, request.extensions.context())
    request = replace(request, on_note=None)
    tensors = signature(program.module, program.path).inputs
    units = units_of(arrays, tensors, path, wish.labels)
    held: Units | None = None
    if wish.validation_data is not None:
        held = units_of(*_held(wish, tensors))
    elif units.count > 1:
        share = HELD_OUT if wish.validation is None else wish.validation
        if wish.validation is None:
            share = max(share, 1 / units.count)
        units, held = units.split(share, wish.seed)
    elif wish.validation is not None:
        raise InputError(f"{path}: one sample, and --validation {wish.validation:g}; need more")
    if held is None:
        notes.append("one sample, and none to judge by: agreement is unknown")
    if units.count < FEW_SAMPLES:
        notes.append(
            f"calibrated with {units.count} of {path}'s samples; with fewer than {FEW_SAMPLES}, "
            "other inputs are likely to be cut off"
        )
    return request, units, held


def _held(
    wish: Wish, tensors: Sequence[Tensor]
) -> tuple[Mapping[str, Array], Sequence[Tensor], str, str]:
    assert wish.validation_data is not None
    arrays, path = arrays_of(wish.validation_data, "validation_data")
    return arrays, tensors, path, wish.labels


def _floats(graph: Graph, kept: Collection[str], roots: Collection[str]) -> set[str]:
    """The activations with float32 numbers: those whose scales come from such tensors."""
    first = chosen(graph, kept)
    return {name for name, root in first.activations.items() if root in roots}


def _scalings(
    graph: Graph,
    choice: Choice,
    seen: Mapping[str, Histogram],
    method: Method,
    form: Format,
) -> dict[str, Scaling]:
    return {
        name: METHODS[method](seen[name], form, f"{graph.place}: {name!r}") for name in choice.roots
    }


def _finish(graph: Graph) -> None:
    """Say in the model which version of the file format it needs."""
    model = graph.model
    model.ir_version = max(model.ir_version, find_min_ir_version_for(model.opset_import))


def _losses(
    wish: Wish,
    graph: Graph,
    choice: Choice,
    scalings: Mapping[str, Scaling],
    form: Format,
    held: Units,
) -> list[NodeLoss]:
    """What quantising each product alone changes, the worst first."""
    request = wish.request
    few = held.take(np.arange(min(wish.sensitivity * (held.batch or 1), held.count)))
    wanted = list(map(Interpreted.of(request, graph.model).run, (i for i, _, _ in few.runs())))
    found: list[NodeLoss] = []
    for node in choice.products:
        request.on_step(f"sensitivity of {node}")
        alone = graph.copy()
        own = chosen(alone, {*choice.kept, *choice.products} - {node})
        _ = write_quantised(alone, own, scalings, form)
        _finish(alone)
        run = Interpreted.of(request, alone.model).run
        loss = Judged()
        for (inputs, first, left), expected in zip(few.runs(), wanted, strict=True):
            labels = None if few.labels is None else few.labels[first : first + left]
            compare(loss, expected, run(inputs), left if few.batch else 0, labels)
        found.append(NodeLoss(node, loss))
    return sorted(found, key=lambda each: _decibels(each.judged))


def _decibels(judged: Judged) -> float:
    main = judged.main
    return inf if main is None else main.decibels


def _runner(exe: Executable) -> Run:
    """What runs a program: the machine, or the partition level if it does not fit."""
    fits = exe.memory.problem() is None
    return partial(exe.run, at=MACHINE if fits else PARTITION.name)


def _weight_bytes(exe: Executable) -> int:
    """The bytes of the weights and constants of a program, each once."""
    total = 0
    for op in exe.module_at(PARTITION.name).walk():
        if isinstance(op, partition.StateOp):
            total += op.initial.array.nbytes
        elif isinstance(op, partition.ConstantOp):
            total += op.value.array.nbytes
    return total
