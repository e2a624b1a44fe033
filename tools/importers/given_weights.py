"""Weights that a user gives for those of a model, by name: tensors of a file, or arrays.

A front end that reads through a `ProgramBuilder` takes them where it would read its own weights, so
what it computes of weights while it reads is right, too. In a module that was read otherwise, the
first values of the states are replaced.

A file and a model belong together if they have the same tensors of floats, by name and shape. If
the model has one that the file lacks, an old value would stay among new ones. If the file has one
that the model lacks, such as a scale of batch normalisation, an exporter may have folded it into
another weight, which the file holds unfolded. So both are refused unless `partial` is given, and
said if it is. Integers that only one of them has are counters, shapes and indices.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ...dialects import nn, partition
from ...dialects.blob_attr import BlobAttr
from ...dialects.first_values import FirstValue, first_values
from ...dialects.random_states import SEED, STEP
from ...ir.blob import Blob
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.number_kinds import is_floating
from ...ir.support.suggestions import similar_names
from ...ir.upstream import ModuleOp
from .safetensors import ReadTensors, TensorFile, read_tensor_file

SHOWN = 3
"""The number of names that a message lists."""

LONGEST_NAME = 100
"""The most letters of a name in a message."""

CHECKPOINT = frozenset({"step", "seed"})
"""The metadata of a checkpoint of abele, which also holds what an optimiser keeps."""

FOLDED = (
    "an exporter may have folded them into other weights; if so, export again without that, as by "
    "torch.export.save"
)
OWN = "train."
"""How the names of states begin that belong to an optimiser, and to no weight."""

PARTIAL = (
    "; with --partial-weights, in Python partial_weights=True, weights that the file lacks keep "
    "their values, and its further tensors are left out"
)


@dataclass
class GivenWeights:
    """Tensors that replace weights of a model, and what became of each.

    Attributes:
        arrays: the tensors, by name.
        source: the file in messages.
        partial: whether the model and the file may each have weights that the other lacks.
        is_checkpoint: whether the file is a checkpoint of abele, which also holds what an optimiser
            keeps.
        declared: the names that a front end has, also of weights that nothing reads.
        asked: the shape and element type of each weight that it has read, as the model has them.
        problems: for a weight that cannot be replaced, why.
        converted: how often each pair of element types was converted.
    """

    arrays: Mapping[str, Array]
    source: str
    partial: bool = False
    is_checkpoint: bool = False
    declared: set[str] = field(default_factory=set[str])
    asked: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = field(
        default_factory=dict[str, "tuple[tuple[int, ...], np.dtype[Any]]"]
    )
    problems: dict[str, str] = field(default_factory=dict[str, str])
    converted: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])

    def replacing(
        self, name: str, shape: Sequence[int], dtype: np.dtype[Any], read: Callable[[], Array]
    ) -> Callable[[], Array]:
        """What reads a weight: the given tensor, or what `read` returns if there is none.

        Args:
            name, shape, dtype: of the weight in the model.
        """
        self.declared.add(name)

        def given() -> Array:
            self.asked[name] = tuple(shape), dtype
            found = self._found(name, tuple(shape), dtype)
            return read() if found is None else found

        return given

    def _found(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
        """The tensor for a weight; None if there is none, or none of its type."""
        array = self.arrays.get(name)
        if array is None:
            return None
        if array.shape != shape:
            self.problems[name] = (
                f"{_kind(array.dtype, array.shape)}, and the model's {_kind(dtype, shape)}"
            )
            return None
        found = _converted(array, dtype)
        if isinstance(found, str):
            self.problems[name] = found
            return None
        if array.dtype != dtype:
            self.converted[name] = array.dtype.name, dtype.name
        return found

    def settle(self, module: ModuleOp, place: str) -> list[str]:
        """Replace what no front end has asked for, and return lines for the user.

        Raises InputError if the given tensors and the model's weights do not belong together.

        Args:
            module: the module that a front end has read.
            place: the model's name in messages.
        """
        values = {each.name: each for each in first_values(module)}
        if not self.declared:
            unread = _unread(module)
            self._replace({n: each for n, each in values.items() if n not in unread})
        # What is no float and became no state has decided shapes only.
        needed = [
            name for name, (_, dtype) in self.asked.items() if is_floating(dtype) or name in values
        ]
        self._check(place, needed)
        return self._lines(place, needed)

    def _replace(self, values: Mapping[str, FirstValue]) -> None:
        """Replace the first values of states."""
        for name, each in values.items():
            if name in (SEED, STEP) and name not in self.arrays:
                continue
            old = each.blob.array
            self.declared.add(name)
            self.asked[name] = old.shape, old.dtype
            found = self._found(name, old.shape, old.dtype)
            if found is not None:
                each.set(BlobAttr(Blob(found)))

    def _check(self, place: str, needed: Collection[str]) -> None:
        what = f"{place}: weights of {self.source}"
        if not self.declared:
            raise InputError(f"{what}: the model has no weights")
        if not self.arrays.keys() & self.declared:
            raise InputError(
                f"{what}: none of its {len(self.arrays):,} tensors is a weight of the model: it "
                f"has {_listed(self.arrays)}; the model has {_listed(needed)}{self._prefixed()}"
            )
        parts = [
            f"{_counted(len(self.problems), 'tensor')} cannot replace the model's: "
            + "; ".join(f"{_named(n)} is {why}" for n, why in _first(self.problems.items()))
        ] * bool(self.problems)
        missing, extra = self._missing(needed), self._extra()
        if not self.partial and missing:
            parts.append(
                f"{len(missing):,} of the model's {len(needed):,} weights are not in it: "
                f"{_listed(missing, {n: self._near(self.asked[n][0], extra) for n in missing})}"
            )
        if not self.partial and extra:
            parts.append(
                f"{len(extra):,} of its {len(self.arrays):,} tensors are not in the model: "
                f"{_listed(extra)} ({FOLDED})"
            )
        if parts:
            raise InputError(f"{what}: {'; '.join(parts)}{'' if self.problems else PARTIAL}")

    def _missing(self, needed: Collection[str]) -> list[str]:
        return [name for name in self.asked if name in needed and name not in self.arrays]

    def _extra(self) -> list[str]:
        """The tensors of floats that the model lacks, and that may have been folded into others."""
        return [name for name in self._further() if is_floating(self.arrays[name].dtype)]

    def _near(self, shape: tuple[int, ...], names: Iterable[str]) -> list[str]:
        """Those of these tensors that have a shape."""
        return [name for name in names if self.arrays[name].shape == shape]

    def _prefixed(self) -> str:
        """Advice if the names differ by a beginning only, as those of a wrapped module do."""
        for of_file, one, other in (
            (True, self.arrays, self.declared),
            (False, self.declared, self.arrays),
        ):
            for name in one:
                parts = name.split(".")
                ends = (".".join(parts[i:]) for i in range(1, len(parts)))
                end = next((each for each in ends if each in other), None)
                if end is not None:
                    begin = name.removesuffix(end)
                    how = f"without {begin!r} before" if of_file else f"with {begin!r} before"
                    return f"; its names may fit {how} them"
        return ""

    def _further(self) -> list[str]:
        """The tensors that the model lacks, without those that belong to an optimiser."""
        further = [name for name in self.arrays if name not in self.declared]
        if not self.is_checkpoint:
            return further
        return [name for name in further if not self._is_optimisers(name)]

    def _is_optimisers(self, name: str) -> bool:
        """Whether a tensor is one of the optimiser's own, or one that it keeps for a weight."""
        return name.startswith(OWN) or name.rpartition(".")[0] in self.declared

    def _lines(self, place: str, needed: Collection[str]) -> list[str]:
        lines: list[str] = []
        for (old, new), count in Counter(self.converted.values()).items():
            named = _listed([n for n, pair in self.converted.items() if pair == (old, new)])
            lines.append(f"{_counted(count, 'tensor')} converted from {old} to {new}: {named}")
        missing = self._missing(needed)
        if missing:
            lines.append(
                f"{len(missing):,} of the {len(needed):,} weights of {place} are not in it, and "
                f"keep their values: {_listed(missing)}"
            )
        extra = self._further()
        if extra:
            lines.append(
                f"{len(extra):,} of its {len(self.arrays):,} tensors are not in {place}, and are "
                f"left out: {_listed(extra)}"
            )
        return [f"note: {self.source}: {line}" for line in lines]


def _unread(module: ModuleOp) -> set[str]:
    """The states whose values no operation reads, because a pass has folded them into constants.

    The levels below partition have no such states.
    """
    states = {
        op.sym_name.data for op in module.ops if isinstance(op, nn.StateOp | partition.StateOp)
    }
    read = {
        op.state.string_value()
        for op in module.walk()
        if isinstance(op, nn.StoreOp | partition.StoreOp)
        or (isinstance(op, nn.LoadOp | partition.LoadOp) and op.result.first_use is not None)
    }
    return states - read


def given_weights(
    weights: str | os.PathLike[str] | Mapping[str, ArrayLike],
    partial: bool = False,
    kinds: Mapping[str, ReadTensors] = MappingProxyType({}),
) -> GivenWeights:
    """Weights by name, from a file of weights or from arrays. Raises InputError.

    A file is one of safetensors, or of one of `kinds`.

    Args:
        partial: whether the model and the file may each have weights that the other lacks.
        kinds: what reads other files of weights, by the suffix of their names.
    """
    if isinstance(weights, Mapping):
        arrays = {name: _numbers(name, each) for name, each in weights.items()}
        return GivenWeights(arrays, "the arrays given", partial)
    path = os.fspath(weights)
    for suffix, read in kinds.items():
        if path.endswith(suffix):
            return GivenWeights(read(Path(path)), path, partial)
    file = read_tensor_file(weights)
    return GivenWeights(
        _with_shared(file), os.fspath(weights), partial, CHECKPOINT <= file.metadata.keys()
    )


def _numbers(name: str, given: ArrayLike) -> Array:
    array = np.asarray(given)
    if array.dtype.kind not in "biuf" and not is_floating(array.dtype):
        raise InputError(f"weight {_named(name)}: elements {array.dtype}; need numbers")
    return array


def _with_shared(file: TensorFile) -> dict[str, Array]:
    """The tensors, also by the further names of those that a model has under several.

    safetensors.torch.save_model stores such a tensor once. The metadata map each further name to
    the one that is stored.
    """
    found = dict(file.arrays)
    for name, stored in file.metadata.items():
        if name not in found and stored in file.arrays:
            found[name] = file.arrays[stored]
    return found


def _converted(array: Array, dtype: np.dtype[Any]) -> Array | str:
    """An array with elements of a type, or why it cannot have them."""
    if array.dtype == dtype:
        return array
    if is_floating(array.dtype) != is_floating(dtype):
        return f"{array.dtype.name}, and the model's {dtype.name}"
    with np.errstate(all="ignore"):
        found = array.astype(dtype)
        if is_floating(dtype):
            wide = np.float64
            lost = np.isfinite(array.astype(wide)) & ~np.isfinite(found.astype(wide))
        else:
            lost = found.astype(array.dtype) != array
            lost |= (found < 0) != (array < 0)
    if lost.any():
        at = cast("tuple[int, ...]", np.unravel_index(int(np.argmax(lost)), lost.shape))
        return f"{array.dtype.name}, whose element {array[at]} no {dtype.name} holds"
    return found


def _kind(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    return f"{dtype.name}{list(shape)}"


def _first(each: Iterable[Any]) -> list[Any]:
    return list(each)[:SHOWN]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _named(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


def _listed(
    names: Collection[str], near: Mapping[str, Collection[str]] = MappingProxyType({})
) -> str:
    """The first few names.

    Args:
        near: names for a name, of which the most similar one is shown, too.
    """
    few: list[str] = []
    for name in _first(names):
        similar = similar_names(name, near.get(name, ()))[:1]
        few.append(_named(name) + "".join(f" (it has {_named(each)})" for each in similar))
    return ", ".join(few) + (", ..." if len(names) > SHOWN else "")
