"""The weights in a .caffemodel: for each layer, its blobs in order, and the states they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np

from ....dialects.tensor_limits import check_tensor_limits
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ..files_beside import read_regular
from ..wire_format import BYTES, FIXED32, VARINT, fields_in, sized_fields_in, varints_in
from .kinds import OLD_TYPES

MOST_AXES = 32
"""The most axes of a blob, as in Caffe."""

MOST_LOOSE = 1 << 16
"""The most elements of all blobs of a file that are not packed. Caffe packs all."""

LAYER, OLD_LAYER = 100, 2
"""The fields of a network that hold its layers: `layer`, and `layers`."""

PARTS = {LAYER: (1, 2, 7), OLD_LAYER: (4, 5, 6)}
"""The fields of a layer that hold its name, its type and its blobs."""

PARAMETERS = {LAYER: 6, OLD_LAYER: 1001}
"""The field of a layer that holds the names of its weights: messages, or the names themselves."""

OLD_TYPE_NUMBERS = dict(OLD_TYPES.values())
"""The types of layers, by their number in `layers`."""

OLD_SHAPE, DATA, SHAPE, DOUBLES = (1, 2, 3, 4), 5, 7, 8
"""The fields of a blob."""

PARTS_OF_STATES: Mapping[str, tuple[str, ...]] = {
    "BatchNorm": ("mean", "variance", "factor"),
    "PReLU": ("slope",),
    "Bias": ("bias",),
}
"""What the blobs of a layer are called, by its type, where it is not weight and bias."""


def part_of_state(type_: str, index: int) -> str:
    """What a blob of a layer is called: its state is LAYER.weight, or LAYER.bias."""
    names = PARTS_OF_STATES.get(type_, ("weight", "bias"))
    return names[index] if index < len(names) else f"blob{index}"


@dataclass
class LayerBlobs:
    """The blobs of a layer.

    Attributes:
        names: of its weights, in the order of the blobs; "" for one without a name of its own.
    """

    name: str = ""
    type: str = ""
    blobs: list[Array] = field(default_factory=list[Array])
    names: list[str] = field(default_factory=list[str])

    def state(self, index: int) -> str:
        """The name of the state that a blob is the value of."""
        own = self.names[index] if index < len(self.names) else ""
        return own or f"{self.name}.{part_of_state(self.type, index)}"


def read_blobs(path: Path) -> dict[str, LayerBlobs]:
    """The layers of a .caffemodel that have blobs, by name. Raises InputError for a damaged file.

    The arrays share the bytes of the file.
    """
    what = str(path)
    data = read_regular(path, what)
    try:
        found = list(_layers(memoryview(data)))
    except ValueError as error:
        raise InputError(f"{what}: damaged, or no weights of Caffe: {error}") from None
    by_name: dict[str, LayerBlobs] = {}
    for each in found:
        if not each.blobs:
            continue
        if each.name in by_name:
            raise InputError(f"{what}: two layers {each.name!r} have weights; need one")
        by_name[each.name] = each
    if not by_name:
        raise InputError(f"{what}: no layer has weights; need a .caffemodel that Caffe has saved")
    return by_name


def states_in(path: Path) -> dict[str, Array]:
    """The arrays of a .caffemodel by the names of the states that they are values of.

    Raises InputError for a damaged file.
    """
    return {
        layer.state(index): array
        for layer in read_blobs(path).values()
        for index, array in enumerate(_as_states(layer))
    }


AXES = {"InnerProduct": 2, "Embed": 2}
"""The number of axes of the first blob of a layer, which old files give four; others have one."""


def _as_states(layer: LayerBlobs) -> list[Array]:
    """The blobs of a layer as its states have them."""
    if layer.type == "BatchNorm" and len(layer.blobs) > 2:
        return [divided_by_factor(each.ravel(), layer.blobs[2]) for each in layer.blobs[:2]]
    found: list[Array] = []
    for index, blob in enumerate(layer.blobs):
        axes = AXES.get(layer.type, blob.ndim) if not index else 1
        extra = blob.ndim - axes
        is_old = extra > 0 and all(n == 1 for n in blob.shape[:extra])
        found.append(blob.reshape(blob.shape[extra:]) if is_old else blob)
    return found


def divided_by_factor(total: Array, factor: Array) -> Array:
    """A statistic of a batch normalisation, from the sum that the file has; 0 without samples."""
    by = factor.reshape(-1)[0] if factor.size else np.float32(0.0)
    with np.errstate(all="ignore"):
        share = np.float32(0.0) if by == 0 else np.float32(1.0) / by
        return total * share


@dataclass
class _Loose:
    """The elements of a file that are not packed.

    Attributes:
        left: how many more may come.
    """

    left: int = MOST_LOOSE

    def take(self) -> None:
        """Count one. Raises ValueError if there are too many, because each takes a while."""
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"more than {MOST_LOOSE:,} elements are not packed; pack them")


def _layers(data: memoryview) -> Iterator[LayerBlobs]:
    seen = _Loose()
    for number, value in sized_fields_in(data):
        if number in PARTS:
            yield _layer(value, number, seen)


def _layer(data: memoryview, form: int, seen: _Loose) -> LayerBlobs:
    name, type_, blobs = PARTS[form]
    found = LayerBlobs()
    for number, kind, value in fields_in(data):
        if isinstance(value, int):
            if form == OLD_LAYER and number == type_:
                found.type = OLD_TYPE_NUMBERS.get(value, "")
        elif kind == BYTES and number == name:
            found.name = bytes(value).decode()
        elif kind == BYTES and number == type_ and form == LAYER:
            found.type = bytes(value).decode()
        elif kind == BYTES and number == PARAMETERS[form]:
            found.names.append(bytes(value).decode() if form == OLD_LAYER else _name(value))
        elif kind == BYTES and number == blobs:
            try:
                found.blobs.append(_blob(value, seen))
            except ValueError as error:
                raise ValueError(
                    f"layer {found.name!r}, blob {len(found.blobs)}: {error}"
                ) from None
        elif form == OLD_LAYER and number == 1:
            raise ValueError("layers of the form before 2013; upgrade_net_proto_binary converts it")
    return found


def _name(data: memoryview) -> str:
    """The name in a message ParamSpec; "" if it has none."""
    found = ""
    for number, value in sized_fields_in(data):
        if number == 1:
            found = bytes(value).decode()
    return found


def _blob(data: memoryview, seen: _Loose) -> Array:
    """An array of float32. Raises ValueError for a shape that its elements do not have."""
    old: dict[int, int] = {}
    shape: list[int] | None = None
    packed: dict[int, memoryview] = {}
    loose: list[memoryview] = []
    for number, kind, value in fields_in(data):
        if kind == VARINT and number in OLD_SHAPE:
            assert isinstance(value, int)
            old[number] = value
        elif kind == BYTES and number == SHAPE:
            assert isinstance(value, memoryview)
            shape = _shape(value)
        elif kind == BYTES and number in (DATA, DOUBLES):
            assert isinstance(value, memoryview)
            if number in packed:
                raise ValueError("its elements are in several pieces")
            packed[number] = value
        elif kind == FIXED32 and number == DATA:
            assert isinstance(value, memoryview)
            seen.take()
            loose.append(value)
    elements = _elements(packed, loose)
    if shape is None:
        shape = [old.get(i, 1) for i in OLD_SHAPE] if old else [elements.size]
    if len(shape) > MOST_AXES or any(n < 0 for n in shape) or prod(shape) != elements.size:
        raise ValueError(f"shape {shape[:8]} of {elements.size:,} elements")
    check_tensor_limits(shape, elements.itemsize)
    return elements.reshape(shape)


def _shape(data: memoryview) -> list[int]:
    found: list[int] = []
    for number, kind, value in fields_in(data):
        if number != 1:
            continue
        if kind == VARINT:
            assert isinstance(value, int)
            found.append(value)
        elif isinstance(value, memoryview) and kind == BYTES:
            if len(value) > 10 * MOST_AXES:
                raise ValueError(f"a shape of {len(value):,} bytes")
            found += varints_in(value)
    return found


def _elements(packed: Mapping[int, memoryview], loose: Sequence[memoryview]) -> Array:
    if len(packed) + bool(loose) > 1:
        raise ValueError("elements of two types")
    if DOUBLES in packed:
        with np.errstate(all="ignore"):
            return np.frombuffer(packed[DOUBLES], "<f8").astype(np.float32)
    data = packed[DATA] if DATA in packed else b"".join(loose)
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False)
