"""A front end: what reads the models of one kind, and what abele asks about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from ...ir.context import AbeleContext
    from ...ir.upstream import ModuleOp
    from .bounds import GivenSize
    from .given_weights import GivenWeights
    from .huge_weights import WeightCheck
    from .safetensors import ReadTensors
    from .uses import Use

    OptionalInputs = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]

ANY = "?"
"""The symbol that exporters write for several unknown sizes, which may differ."""

OpenShape: TypeAlias = "tuple[int | str, ...] | None"
"""The shape of an input: for each axis its size, or the name of a free one, "" if it has no name;
None if the number of axes is unknown."""

OpenShapes: TypeAlias = Mapping[str, OpenShape]
"""The shapes of inputs by name."""


def weigh_nothing(weights: Mapping[str, int]) -> None:
    """Accept weights of any size."""


def _refused(message: str) -> Mapping[str, str]:
    return {"refused": message}


@dataclass(frozen=True)
class Reading:
    """How a model is read.

    Attributes:
        context: for its operations and blobs.
        place: the model's name in messages.
        dims: sizes of free dimensions, by name or by "INPUT:AXIS", or the bounds of sizes that each
            run chooses.
        values: inputs that are known now.
        batch: the number of samples.
        lenient: also read a model that breaks rules of its kind.
        training: whether the program is to be trained, so that what only acts in training acts.
        weights: tensors that replace weights of the model. A front end that hands them to its
            ProgramBuilder computes with them; for any other, abele replaces the states of the
            module that it returns.
        notes: lines for the user about what was read. A front end may add some.
        check: called with the sizes of all weights in bytes, by name, before any is read; it raises
            DoesNotFit.
    """

    context: AbeleContext
    place: str
    dims: Mapping[str, GivenSize] = field(
        default_factory=dict[str, "GivenSize"],
        metadata=_refused("dimensions given ({given}); {suffix} has sizes"),
    )
    values: Mapping[str, ArrayLike] = field(
        default_factory=dict[str, "ArrayLike"],
        metadata=_refused("values given ({given}); need {kinds}"),
    )
    batch: int | None = field(
        default=None, metadata=_refused("--batch {given} is given; need {kinds}")
    )
    lenient: bool = False
    training: bool = False
    weights: GivenWeights | None = None
    notes: list[str] = field(default_factory=list[str])
    check: WeightCheck = weigh_nothing


REFUSED: Mapping[str, str] = {
    each.name: each.metadata["refused"] for each in fields(Reading) if each.metadata
}
"""The messages about fields of Reading that a front end does not understand, by field.

A message has places for the value that was given ({given}), the suffix of the model's file
({suffix}), and the models for which the field is understood ({kinds}).
"""


@dataclass(frozen=True)
class FrontEnd:
    """What reads the models of one kind.

    Attributes:
        name: the name of the kind, such as "ONNX".
        suffixes: the ends of the names of its files, such as ".onnx".
        read: returns the module of a path or of a model in memory, of nn or of a dialect that
            passes lower; it raises InputError.
        understands: the fields of Reading that it reads, among those of REFUSED; abele refuses the
            others.
        is_text: whether a pass that fails is blamed on the file: a text can hold any program, also
            one that no importer makes.
        takes: whether an object is a model in memory of this kind.
        in_memory: the name of such an object in messages.
        serialized: returns the bytes of a model in memory. They stand for it in the cache's key.
        files: returns the names of the other files that a model's file names, such as files of
            weights. They must lie below the model's folder, and are part of the cache's key.
        marker: bytes that are in each file that names others, so that no other file is read for
            them; `read` then checks where they lie itself. b"" if there are no such bytes.
        open_shapes: returns the shapes of the inputs that a program of the model takes, in their
            order, with their free sizes; a front end without it has no free sizes.
        optional_inputs: returns the shapes and element types of the inputs that have a value in
            the model, which `values` may replace.
        layer_names: returns names for tables and pictures that say more than the nodes' own, by
            node.
        source_lines: returns what lines of the program that made the model say, by file and line,
            such as net.py:12, as far as the model holds them.
        uses: returns the operators of a model, with those that cannot be read; and why some nodes
            could not be checked, "" if all were.
        tensors: what reads files of weights that `--weights` takes, by the suffix of their names:
            arrays by the names of states.
        folds_weights: whether `read` may compute with the values of weights, which then cannot
            change from run to run.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Any, Reading], ModuleOp]
    understands: frozenset[str] = frozenset()
    is_text: bool = False
    takes: Callable[[object], bool] | None = None
    in_memory: str = ""
    serialized: Callable[[Any], bytes] | None = None
    files: Callable[[Path], Sequence[str]] | None = None
    marker: bytes = b""
    open_shapes: Callable[[Any], OpenShapes] | None = None
    optional_inputs: Callable[[Any], OptionalInputs] | None = None
    layer_names: Callable[[Any], Mapping[str, str]] | None = None
    source_lines: Callable[[Any], Mapping[str, str]] | None = None
    uses: Callable[[Any, Reading], tuple[list[Use], str]] | None = None
    tensors: Mapping[str, ReadTensors] = field(default_factory=dict[str, "ReadTensors"])
    folds_weights: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for a field of Reading that is unknown."""
        unknown = self.understands - REFUSED.keys()
        if unknown:
            raise ValueError(f"front end {self.name}: understands {min(unknown)!r}")
