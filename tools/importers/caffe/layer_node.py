"""One layer that is being imported: its settings, its bottoms and its weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ....ir.provenance import source_line
from ....ir.support.arrays import Array
from ....passes.gradients.factors import Factors
from ..applying import ApplyingNode
from ..building import Known, Value, shape_of
from ..front_end import weigh_nothing
from ..huge_weights import Weighed
from ..onnx.node import GraphScope
from .blobs import LayerBlobs, part_of_state
from .fields import Fields
from .fillers import filler
from .network import Layer, Parameter, Phase

F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)

LARGEST = 1 << 24
"""The largest setting of a window, such as its padding."""


@dataclass
class Scope:
    """The network that is being read.

    Attributes:
        program: the program so far.
        phase: which layers there are, and how some of them compute.
        stored: the layers of the file of weights, by name.
        shared: weights by their own names, which several layers may have.
        weighed: the sizes of weights so far.
        factors: of the learning rate and the weight decay, by the name of the state.
    """

    program: GraphScope
    phase: Phase
    stored: Mapping[str, LayerBlobs]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    shared: dict[str, Known] = field(default_factory=dict[str, Known])
    weighed: Weighed = field(default_factory=lambda: Weighed(weigh_nothing))
    factors: dict[str, Factors] = field(default_factory=dict[str, Factors])


class LayerNode(ApplyingNode):
    """A layer.

    An importer reads the layer's settings and its bottoms, and returns its tops:

        def relu(node):
            return [node.add(nn.ReluOp(node[0]))]

    Attributes:
        layer: as the file has it.
        scope: the network around it.
        bottoms: the values that it reads.
        held: its weights so far, by the index of the blob.
    """

    def __init__(self, layer: Layer, name: str, scope: Scope, bottoms: Sequence[Value]) -> None:
        place = source_line(os.path.basename(scope.program.place), layer.line)
        super().__init__(name, scope.program, place)
        self.layer = layer
        self.scope = scope
        self.bottoms = bottoms
        self.held: dict[int, Known] = {}

    def __str__(self) -> str:
        return f"layer {self.name[:60]!r} ({self.layer.type[:60]}, line {self.layer.line})"

    @property
    def heading(self) -> str:
        """The layer in messages about what is not supported."""
        return str(self)

    def meaning(self) -> str:
        """Its type, in messages of the operators of ONNX that it applies."""
        return self.layer.type

    # Bottoms

    def value(self, index: int) -> Value:
        """A bottom. Raises InputError if it is missing."""
        if index >= len(self.bottoms):
            raise self.bad(f"bottom {index} is missing; {len(self.bottoms)} are given")
        return self.bottoms[index]

    def __getitem__(self, index: int) -> SSAValue:
        """A bottom, as the result of an operation."""
        return self.ssa(self.value(index))

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of a bottom."""
        return shape_of(self.value(index))

    def takes(self, least: int, most: int | None = None) -> None:
        """Raise InputError for another number of bottoms."""
        most = least if most is None else most
        if not least <= len(self.bottoms) <= most:
            need = str(least) if least == most else f"{least} to {most}"
            raise self.bad(f"{len(self.bottoms)} bottoms; need {need}")

    def along(self, fields: Fields, default: int, index: int = 0, name: str = "axis") -> int:
        """The axis of a bottom that a setting names; it may count from the end."""
        return self.axis(fields.integer(name, default), len(self.shape(index)))

    # Weights

    def weight(
        self, index: int, shape: Sequence[int], fields: Fields, name: str, default: float = 0.0
    ) -> Known:
        """A weight: that of the file of weights, or else what its filler draws.

        Args:
            index: of the blob in the layer.
            fields, name: the message and the field of the filler.
            default: every element, if there is no filler.
        """
        if index not in self.held:
            self.held[index] = self._weight(index, shape, fields, name, default)
        return self.held[index]

    def _weight(
        self, index: int, shape: Sequence[int], fields: Fields, name: str, default: float
    ) -> Known:
        layer = self.layer
        part = part_of_state(layer.type, index)
        parameter = layer.parameters[index] if index < len(layer.parameters) else Parameter()
        if parameter.name in self.scope.shared:
            known = self.scope.shared[parameter.name]
            if prod(known.shape) != prod(shape):
                raise self.bad(
                    f"weight {parameter.name!r} has shape {list(known.shape)} in an earlier "
                    f"layer; here it needs {list(shape)}"
                )
            return known
        label = parameter.name or f"{self.name}.{part}"
        fill = filler(fields, name, tuple(shape), label, default)
        read = self.stored_blob(index, shape, part)
        return self.state(label, shape, fill if read is None else read, parameter)

    def state(
        self,
        label: str,
        shape: Sequence[int],
        read: Callable[[], Array],
        parameter: Parameter,
        *,
        fixed: bool = False,
    ) -> Known:
        """A state of the program."""
        self.scope.weighed.add(label, prod(shape) * F32.itemsize)
        fixed = fixed or parameter.rate == 0.0
        known = self.program.weight(label, shape, F32, read, fixed=fixed)
        if parameter.name:
            self.scope.shared[parameter.name] = known
        self.scope.factors[label] = Factors(parameter.rate, parameter.decay)
        return known

    def stored_blob(
        self, index: int, shape: Sequence[int], part: str
    ) -> Callable[[], Array] | None:
        """What returns a blob of the file of weights; None if the file does not have the layer.

        Old files have four axes for every blob, so axes of size 1 do not count.
        """
        stored = self.scope.stored.get(self.layer.name)
        if stored is None:
            return None
        if index >= len(stored.blobs):
            raise self.bad(f"the file of weights has {len(stored.blobs)} blobs, and no {part}")
        blob = stored.blobs[index]
        if [n for n in blob.shape if n != 1] != [n for n in shape if n != 1]:
            raise self.bad(
                f"{part} has shape {list(shape)}; the file of weights has {list(blob.shape)}"
            )
        return lambda: blob.reshape(tuple(shape))

    def spatial(
        self, fields: Fields, name: str, rank: int, default: int | None = None, least: int = 0
    ) -> list[int]:
        """A setting with a number per spatial axis, one for all, or NAME_h and NAME_w.

        Raises InputError if it is missing and has no default.
        """
        short = name.removesuffix("_size")
        pair = (f"{short}_h", f"{short}_w")
        if any(fields.has(each) for each in pair):
            if rank != len(pair) or fields.has(name):
                raise fields.bad(pair[0], f"with {rank} spatial axes, or next to {name}")
            missing = next((each for each in pair if not fields.has(each)), None)
            if default is None and missing is not None:
                raise fields.bad(missing, "missing")
            found = [fields.integer(each, default or 0, least) for each in pair]
        else:
            found = fields.integers(name, least)
            found = found * rank if len(found) == 1 else found
            if not found:
                if default is None:
                    raise fields.bad(name, "missing")
                found = [default] * rank
        if len(found) != rank or max(found, default=0) > LARGEST:
            raise fields.bad(name, f"is {found[:8]}; need {rank} numbers up to 2^24")
        return found

    def spread(self, value: Value, axis: int, rank: int) -> SSAValue:
        """A value whose axes lie along those of another from an axis on, so that it broadcasts."""
        shape = shape_of(value)
        after = rank - axis - len(shape)
        if after < 0:
            raise self.bad(f"shape {list(shape)} from axis {axis} on, of {rank} axes")
        return self.reshape(self.ssa(value), (*shape, *[1] * after))


Importer = Callable[[LayerNode], Sequence[Value]]
"""Reads a layer, and returns its tops in order. Tops beyond those that the layer names are left
out."""
