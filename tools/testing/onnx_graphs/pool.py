"""The values and nodes of a model that is being generated."""

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
from ..generators.sketch import Sketch
from ..generators.values import values_of
from .draw import Shape
from .graph import WEIGHTS_ARE_NO_INPUTS

COMPUTED = 0.2
"""How often a parameter is computed by nodes instead of given as a constant."""

ODD = 0.15
"""How often a value has an odd name, such as those of frameworks, or worse."""

ODD_NAMES = ("x:0", "a/b", "größe 1", "%0", "@w", "main", "0", 'so "called"', "a,b", "x.y[0]", "π")

_DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bool": np.bool_,
    **{f"{u}int{n}": np.dtype(f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)},
}

DTYPES: dict[str, np.dtype[Any]] = {f"tensor({n})": np.dtype(d) for n, d in _DTYPES.items()}
"""The dtype of each ONNX type."""

CODES = {name: helper.np_dtype_to_tensor_dtype(dtype) for name, dtype in DTYPES.items()}
"""ONNX's number of each type."""

TYPES: dict[int, str] = {code: name for name, code in CODES.items()}

INTEGERS = "tensor(int64)"


@dataclass(frozen=True)
class PoolValue:
    """A value that nodes may read.

    Attributes:
        shape: its sizes, with -1 for a size that depends on values.
        array: its elements, if they are constant.
        shared: whether more than one node may read it.
    """

    name: str
    type: str
    shape: Shape
    array: Array | None = None
    shared: bool = True

    @property
    def info(self) -> onnx.ValueInfoProto:
        """The description of the value, for the inputs and outputs of a graph."""
        shape = [None if n < 0 else n for n in self.shape]
        return helper.make_tensor_value_info(self.name, CODES[self.type], shape)


@dataclass(frozen=True)
class Listed:
    """A sequence of tensors of one type.

    Attributes:
        shapes: the shapes of its elements.
    """

    name: str
    type: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Maybe:
    """An optional value.

    Attributes:
        content: its content; None if it is empty.
    """

    name: str
    content: PoolValue | Listed | None


@dataclass(frozen=True)
class Mark:
    """The size of a pool, and of the pools around it, at one time."""

    lengths: tuple[int, ...]
    made: int
    outer: Mark | None


class Pool:
    """The inputs, weights, nodes and values of a model during its generation.

    Attributes:
        inputs: elements of each input.
        infos: descriptions of the inputs.
        results: values that may be outputs of the model.
        lists, maybes: sequences and optional values.
        told: descriptions of results that onnx does not infer.
        used: names that nodes read.
        made: number of names given.
        outer: the pool of the enclosing graph, for the pool of an inner graph.
    """

    def __init__(
        self, sketch: Sketch, opset: int, ir_version: int, outer: Pool | None = None
    ) -> None:
        self.outer = outer
        self.depth = 0 if outer is None else outer.depth + 1
        self.sketch = sketch
        self.opset = opset
        self.ir_version = ir_version
        self.inputs: dict[str, Array] = {}
        self.infos: list[onnx.ValueInfoProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.nodes: list[onnx.NodeProto] = []
        self.values: list[PoolValue] = []
        self.results: list[PoolValue] = []
        self.lists: list[Listed] = []
        self.maybes: list[Maybe] = []
        self.told: list[onnx.ValueInfoProto] = []
        self.used: set[str] = set()
        self._made = [0]
        (constant,) = onnx.defs.get_schema("Constant", opset).type_constraints
        self._constants = frozenset(constant.allowed_type_strs)

    def inner(self, parameters: Sequence[PoolValue]) -> Pool:
        """The pool of a node's inner graph, which may read all values of this pool.

        Args:
            parameters: the values that the node gives to the graph.
        """
        pool = Pool(self.sketch, self.opset, self.ir_version, self)
        pool.values += [*self.values, *parameters]
        pool.lists += self.lists
        pool.maybes += self.maybes
        pool.used, pool._made = self.used, self._made
        return pool

    @property
    def made(self) -> int:
        """Number of names given, including those in inner graphs."""
        return self._made[0]

    @property
    def _lists(self) -> tuple[list[Any], ...]:
        lists = (self.infos, self.initializers, self.nodes, self.values, self.results)
        return (*lists, self.lists, self.maybes, self.told)

    def mark(self) -> Mark:
        """A mark of the current state, for roll_back."""
        outer = None if self.outer is None else self.outer.mark()
        return Mark(tuple(map(len, self._lists)), self.made, outer)

    def roll_back(self, mark: Mark) -> None:
        """Remove everything added since a mark."""
        for gone in self.infos[mark.lengths[0] :]:
            self.inputs.pop(gone.name, None)
        for some, length in zip(self._lists, mark.lengths, strict=True):
            del some[length:]
        self._made[0] = mark.made
        if self.outer is not None and mark.outer is not None:
            self.outer.roll_back(mark.outer)

    def name(self, random: Random) -> str:
        """A new, unique name."""
        self._made[0] += 1
        if random.random() < ODD:
            return f"{random.choice(ODD_NAMES)}{self.made}"
        return f"v{self.made}"

    def append(
        self, node: onnx.NodeProto, results: Sequence[PoolValue], shown: bool = True
    ) -> None:
        """Append a node.

        Args:
            shown: whether its results may be outputs of the model.
        """
        self.used.update(node.input)
        self.nodes.append(node)
        self.values += results
        if shown:
            self.results += results

    # Inputs, initializers and constants

    def leaf(
        self, type_: str, shape: Shape, random: Random, what: str = "", shared: bool = True
    ) -> PoolValue:
        """A new random value: an input, an initializer or a constant.

        Args:
            what: "positive" for elements above 0, "divisor" for nonzero elements, "" for any
                elements.
        """
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
    ) -> PoolValue:
        """A value with these elements: an input, an initializer or a constant.

        Args:
            known: never an input, because the reader needs the elements.
        """
        chance = random.random()
        constant = type_ in self._constants
        if self.outer is not None and (chance < 0.55 or not constant):
            # A graph inside a node reads what is outside.
            value = self.outer.given(array, type_, random, known, shared)
            self.values.append(value)
            return value
        name = self.name(random)
        if chance < 0.55 and not known:
            self.inputs[name] = array
            value = PoolValue(name, type_, array.shape, shared=shared)
            self.infos.append(value.info)
            self.values.append(value)
            return value
        value = PoolValue(name, type_, array.shape, array, shared)
        tensor = numpy_helper.from_array(array, name)
        weights_are_inputs = self.ir_version < WEIGHTS_ARE_NO_INPUTS
        inside = self.outer is not None and weights_are_inputs
        if (chance < 0.8 or not constant) and not inside:
            self.initializers.append(tensor)
            if weights_are_inputs:
                self.infos.append(value.info)
            self.values.append(value)
        else:
            self.append(helper.make_node("Constant", [], [name], value=tensor), [value], False)
        return value

    def parameter(self, array: Array, type_: str, random: Random) -> PoolValue:
        """A value whose elements the reader can compute: a constant or computed from shapes."""
        vector = array.ndim == 1 and array.size > 0 and type_ == INTEGERS
        if not vector or random.random() > COMPUTED:
            return self.given(array, type_, random, known=True)
        parts = [self._part(int(n), random).name for n in array]
        whole = PoolValue(self.name(random), INTEGERS, array.shape, array)
        self.append(helper.make_node("Concat", parts, [whole.name], axis=0), [whole], False)
        return whole

    def _part(self, n: int, random: Random) -> PoolValue:
        """A vector with the element n: an entry of a value's shape if there is one, or a
        constant."""
        array = np.array([n], np.int64)
        places = [(v, i) for v in self.shared for i, m in enumerate(v.shape) if m == n and n > 1]
        if not places:
            return self.given(array, INTEGERS, random, known=True)
        source, axis = random.choice(places)
        sizes = np.array(source.shape, np.int64)
        shape = PoolValue(self.name(random), INTEGERS, sizes.shape, sizes)
        self.append(helper.make_node("Shape", [source.name], [shape.name]), [shape], False)
        index = self.given(np.array([axis], np.int64), INTEGERS, random, known=True)
        part = PoolValue(self.name(random), INTEGERS, (1,), array)
        node = helper.make_node("Gather", [shape.name, index.name], [part.name], axis=0)
        self.append(node, [part], False)
        return part

    @property
    def shared(self) -> list[PoolValue]:
        """The values that any node may read."""
        return [v for v in self.values if v.shared]

    def of_shape(self, type_: str, shape: Shape) -> list[PoolValue]:
        """The values of a type and shape that any node may read."""
        return [v for v in self.shared if v.type == type_ and v.shape == shape]

    def broadcasting(self, type_: str, shape: Shape, most: int) -> list[PoolValue]:
        """The values of a type that broadcast with a shape to at most this many elements."""
        return [v for v in self.shared if v.type == type_ and _elements(v.shape, shape) <= most]


def _elements(one: Shape, other: Shape) -> float:
    """The number of elements of two shapes after broadcasting; infinite if impossible."""
    try:
        return prod(np.broadcast_shapes(one, other))
    except ValueError:
        return float("inf")
