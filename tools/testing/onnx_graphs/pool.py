"""What a growing model has: values, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...driver.arrays import Array
from ..generators.build import values_of
from ..generators.sketch import Sketch
from .draw import Shape
from .graph import WEIGHTS_ARE_NO_INPUTS

COMPUTED = 0.2
"""How often a parameter is computed by nodes of its own."""

ODD = 0.15
"""How often a value has a name as frameworks give them, or worse."""

ODD_NAMES = ("x:0", "a/b", "größe 1", "%0", "@w", "main", "0", 'so "called"', "a,b", "x.y[0]", "π")

_DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bool": np.bool_,
    **{f"{u}int{n}": np.dtype(f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)},
}

DTYPES: dict[str, np.dtype[Any]] = {f"tensor({n})": np.dtype(d) for n, d in _DTYPES.items()}
"""The dtypes of ONNX's types."""

CODES = {name: helper.np_dtype_to_tensor_dtype(dtype) for name, dtype in DTYPES.items()}
"""ONNX's numbers of its types."""

TYPES: dict[int, str] = {code: name for name, code in CODES.items()}

INTEGERS = "tensor(int64)"


@dataclass(frozen=True)
class Value:
    """What nodes may read. array: what it always is, if that is known. shared: not by one alone."""

    name: str
    type: str
    shape: Shape
    array: Array | None = None
    shared: bool = True

    @property
    def info(self) -> onnx.ValueInfoProto:
        """For the graph's inputs and outputs."""
        return helper.make_tensor_value_info(self.name, CODES[self.type], self.shape)


class Pool:
    """The inputs, weights, nodes and values of a model so far."""

    def __init__(self, sketch: Sketch, opset: int, ir_version: int) -> None:
        self.sketch = sketch
        self.opset = opset
        self.ir_version = ir_version
        self.inputs: dict[str, Array] = {}
        self.infos: list[onnx.ValueInfoProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.nodes: list[onnx.NodeProto] = []
        self.values: list[Value] = []
        self.results: list[Value] = []
        self.used: set[str] = set()
        self.made = 0
        (constant,) = onnx.defs.get_schema("Constant", opset).type_constraints
        self._constants = frozenset(constant.allowed_type_strs)

    def mark(self) -> tuple[int, ...]:
        """Where to go back to."""
        lists = (self.infos, self.initializers, self.nodes, self.values, self.results)
        return (*map(len, lists), self.made)

    def back_to(self, mark: tuple[int, ...]) -> None:
        """Forget what has been added since."""
        for gone in self.infos[mark[0] :]:
            self.inputs.pop(gone.name, None)
        for some, length in zip(
            (self.infos, self.initializers, self.nodes, self.values, self.results),
            mark,
            strict=False,
        ):
            del some[length:]
        self.made = mark[-1]

    def name(self, random: Random) -> str:
        """A name that no value has."""
        self.made += 1
        if random.random() < ODD:
            return f"{random.choice(ODD_NAMES)}{self.made}"
        return f"v{self.made}"

    def append(self, node: onnx.NodeProto, results: Sequence[Value], shown: bool = True) -> None:
        """Add a node. shown: its results may be the model's."""
        self.used.update(node.input)
        self.nodes.append(node)
        self.values += results
        if shown:
            self.results += results

    # Values that are given

    def leaf(
        self, type_: str, shape: Shape, random: Random, what: str = "", shared: bool = True
    ) -> Value:
        """A value that the graph is given. what: is to be said of its elements."""
        dtype, seed = DTYPES[type_], random.randrange(1 << 30)
        array = np.asarray(values_of(shape, dtype, seed, self.sketch.data))
        if what == "positive":
            array = np.abs(array) + 0.125
        elif what == "divisor":
            array = np.where(array == 0, 2, array)
        return self.given(array.astype(dtype), type_, random, shared=shared)

    def given(
        self,
        array: Array,
        type_: str,
        random: Random,
        known: bool = False,
        shared: bool = True,
    ) -> Value:
        """A value with these elements: an input, an initializer or a constant.

        known: no input, since it is needed when the model is read.
        """
        name, chance = self.name(random), random.random()
        if chance < 0.55 and not known:
            self.inputs[name] = array
            value = Value(name, type_, array.shape, shared=shared)
            self.infos.append(value.info)
            self.values.append(value)
            return value
        value = Value(name, type_, array.shape, array, shared)
        tensor = numpy_helper.from_array(array, name)
        if chance < 0.8 or type_ not in self._constants:
            self.initializers.append(tensor)
            if self.ir_version < WEIGHTS_ARE_NO_INPUTS:
                self.infos.append(value.info)
            self.values.append(value)
        else:
            self.append(helper.make_node("Constant", [], [name], value=tensor), [value], False)
        return value

    def parameter(self, array: Array, type_: str, random: Random) -> Value:
        """A value that is known when the model is read: given, or computed from shapes."""
        vector = array.ndim == 1 and array.size > 0 and type_ == INTEGERS
        if not vector or random.random() > COMPUTED:
            return self.given(array, type_, random, known=True)
        parts = [self._part(int(n), random).name for n in array]
        whole = Value(self.name(random), INTEGERS, array.shape, array)
        self.append(helper.make_node("Concat", parts, [whole.name], axis=0), [whole], False)
        return whole

    def _part(self, n: int, random: Random) -> Value:
        """[n]: taken from the shape of a value that has such an axis, or given."""
        array = np.array([n], np.int64)
        places = [(v, i) for v in self.shared for i, m in enumerate(v.shape) if m == n and n > 1]
        if not places:
            return self.given(array, INTEGERS, random, known=True)
        source, axis = random.choice(places)
        sizes = np.array(source.shape, np.int64)
        shape = Value(self.name(random), INTEGERS, sizes.shape, sizes)
        self.append(helper.make_node("Shape", [source.name], [shape.name]), [shape], False)
        index = self.given(np.array([axis], np.int64), INTEGERS, random, known=True)
        part = Value(self.name(random), INTEGERS, (1,), array)
        node = helper.make_node("Gather", [shape.name, index.name], [part.name], axis=0)
        self.append(node, [part], False)
        return part

    @property
    def shared(self) -> list[Value]:
        """The values that any node may read."""
        return [v for v in self.values if v.shared]

    def alike(self, type_: str, shape: Shape) -> list[Value]:
        """The values of a type and shape."""
        return [v for v in self.shared if v.type == type_ and v.shape == shape]

    def broadcasting(self, type_: str, shape: Shape, most: int) -> list[Value]:
        """The values of a type that broadcast with a shape to at most so many elements."""
        return [v for v in self.shared if v.type == type_ and _together(v.shape, shape) <= most]


def _together(one: Shape, other: Shape) -> float:
    """Elements of two shapes broadcast; infinite if they do not."""
    try:
        return prod(np.broadcast_shapes(one, other))
    except ValueError:
        return float("inf")
