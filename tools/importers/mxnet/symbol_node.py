"""One node of a graph of MXNet that is being imported: its attributes, operands and weights."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from ....ir.provenance import source_line
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.support.number_kinds import is_floating
from ....passes.gradients.factors import Factors
from ..applying import ApplyingNode
from ..building import Known, Value, shape_of
from ..first_values import fans, generator_of
from ..front_end import weigh_nothing
from ..huge_weights import Weighed
from ..onnx.node import GraphScope
from .symbol import OUTER, SymbolNode

F32 = np.dtype(np.float32)

NUMBER = re.compile(r"[-+]?[0-9]{1,18}L?")

MOST_LIST = 32
"""The most entries of a tuple."""

IGNORED = frozenset({"workspace", "cudnn_tune", "cudnn_off", "num_args", "layout", "out_grad"})
"""Attributes of operators that do not change what is computed; layout is checked."""

CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""The layouts whose second axis has the channels, by the number of spatial axes."""

LAYOUTS = ("", "None", *CHANNELS_FIRST.values())

TRUTH = {"True": True, "true": True, "1": True, "False": False, "false": False, "0": False}


@dataclass(frozen=True)
class Variable:
    """An input or a weight that is not made yet.

    Attributes:
        node: of the graph.
        array: of the file of weights; None if it does not have it.
    """

    node: SymbolNode
    array: Array | None


@dataclass
class Scope:
    """The graph that is being read.

    Attributes:
        program: the program so far.
        values: the outputs of the nodes so far, by the index of the node.
        variables: inputs and weights, by the index of the node.
        made: weights that are made, by the index of the node.
        weighed: the sizes of weights so far.
        factors: of the learning rate and the weight decay, by the name of the state.
        trained: what the graph says of its training: options of the pass train.
    """

    program: GraphScope
    values: dict[int, Sequence[Value]] = field(default_factory=dict[int, "Sequence[Value]"])
    variables: dict[int, Variable] = field(default_factory=dict[int, Variable])
    made: dict[int, Known] = field(default_factory=dict[int, Known])
    weighed: Weighed = field(default_factory=lambda: Weighed(weigh_nothing))
    factors: dict[str, Factors] = field(default_factory=dict[str, Factors])
    trained: dict[str, str] = field(default_factory=dict[str, str])


class MxNode(ApplyingNode):
    """A node.

    Attributes:
        node: as the file has it.
        scope: the graph around it.
        asked: the attributes that the importer has asked for.
        operands: the values that it has read.
    """

    def __init__(self, node: SymbolNode, name: str, scope: Scope) -> None:
        place = None
        if node.line:
            place = source_line(os.path.basename(scope.program.place), node.line)
        super().__init__(name, scope.program, place)
        self.node = node
        self.scope = scope
        self.asked: set[str] = set()
        self.operands: list[Value | None] = []

    def __str__(self) -> str:
        line = f", line {self.node.line}" if self.node.line else ""
        return f"node {self.name[:60]!r} ({self.node.operator[:60]}{line})"

    @property
    def heading(self) -> str:
        """The node in messages about what is not supported."""
        return str(self)

    def meaning(self) -> str:
        """Its operator, in messages of the operators of ONNX that it applies."""
        return self.node.operator

    # Attributes

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute as text, or the default. Raises InputError if it is missing."""
        self.asked.add(name)
        found = self.node.attributes.get(name, default)
        if found is None:
            raise self.bad(f"attribute {name} is missing")
        return found

    def has(self, name: str) -> bool:
        """Whether an attribute is given, and is not None."""
        return self.text(name, "None") not in ("None", "")

    def wrong(self, name: str, need: str) -> InputError:
        """An error in an attribute."""
        return self.bad(f"attribute {name} is {self.node.attributes.get(name, '')[:60]!r}; {need}")

    def integer(self, name: str, default: int | None = None, least: int | None = None) -> int:
        """An integer, or the default."""
        text = self.text(name, None if default is None else str(default)).strip()
        if not NUMBER.fullmatch(text) or (least is not None and int(text.rstrip("L")) < least):
            raise self.wrong(name, f"need an integer{'' if least is None else f' from {least} on'}")
        return int(text.rstrip("L"))

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number, or the default."""
        text = self.text(name, None if default is None else repr(default))
        try:
            found = float("x" if "_" in text else text)
        except ValueError:
            found = float("nan")
        if not np.isfinite(found):
            raise self.wrong(name, "need a finite number")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        text = self.text(name, str(default))
        if text not in TRUTH:
            raise self.wrong(name, "need True or False")
        return TRUTH[text]

    def choice(self, name: str, names: Sequence[str], default: str | None = None) -> str:
        """One of some names."""
        text = self.text(name, default)
        if text not in names:
            raise self.wrong(name, f"need one of {', '.join(names)}")
        return text

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A tuple of integers, such as (3, 3), or one integer."""
        text = self.text(name, None if default is None else str(tuple(default))).strip()
        inner = text[1:-1] if text[:1] + text[-1:] in ("()", "[]") else text
        parts = [each.strip() for each in inner.split(",") if each.strip()]
        if len(parts) > MOST_LIST or not all(NUMBER.fullmatch(each) for each in parts):
            raise self.wrong(name, "need a tuple of integers, such as (3, 3)")
        return [int(each.rstrip("L")) for each in parts]

    def spatial(self, name: str, rank: int, default: int, least: int = 0) -> list[int]:
        """A tuple with an integer for each spatial axis."""
        found = self.integers(name, ()) or [default] * rank
        if len(found) != rank or min(found) < least or max(found) > 1 << 24:
            raise self.wrong(name, f"need {rank} integers from {least} to 2^24")
        return found

    def check_attributes(self) -> None:
        """Raise UnsupportedError for an attribute that no one has asked for."""
        layout = self.node.attributes.get("layout", "")
        if "layout" not in self.asked and layout not in LAYOUTS:
            raise self.unsupported(
                f"layout {self.node.attributes['layout'][:20]!r}", "channels after samples are"
            )
        for name in self.node.attributes:
            if name not in self.asked | IGNORED and not OUTER.fullmatch(name):
                raise self.unsupported(f"attribute {name[:60]!r}", "it may change the result")

    # Operands

    @property
    def count(self) -> int:
        """The number of operands."""
        return len(self.node.inputs)

    def value(self, index: int) -> Value:
        """An operand. Raises InputError if it is missing, or no value."""
        if index >= self.count:
            raise self.bad(f"operand {index} is missing; {self.count} are given")
        node, output = self.node.inputs[index]
        scope = self.scope
        if node in scope.variables and node not in scope.values:
            scope.values[node] = [self._whole(node)]
        found = scope.values.get(node)
        if found is None or output >= len(found):
            raise self.bad(f"operand {index} is output {output} of node {node}, which is no value")
        self.operands.append(found[output])
        return found[output]

    def __getitem__(self, index: int) -> SSAValue:
        """An operand, as the result of an operation."""
        return self.ssa(self.value(index))

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an operand."""
        return shape_of(self.value(index))

    def takes(self, least: int, most: int | None = None) -> None:
        """Raise InputError for another number of operands."""
        most = least if most is None else most
        if not least <= self.count <= most:
            need = str(least) if least == most else f"{least} to {most}"
            raise self.bad(f"{self.count} operands; need {need}")

    def _whole(self, index: int) -> Known:
        """A variable with an array, as a weight of the array's shape."""
        variable = self.scope.variables[index]
        if variable.array is None:
            raise self.bad(f"{variable.node.name[:60]!r} has no shape; need __shape__ or .params")
        return self._made(index, variable.array.shape)

    def weight(self, index: int, shape: Sequence[int], default: float | None = None) -> Value:
        """An operand that is a weight of a shape that follows from the operator.

        A weight that the file of weights does not have gets its initializer's value.

        Args:
            default: the value of every element; None for the default initializer.
        """
        if index >= self.count:
            raise self.bad(f"operand {index} is missing; {self.count} are given")
        node, output = self.node.inputs[index]
        if node not in self.scope.variables or node in self.scope.values:
            value = self.value(index)
            if shape_of(value) != tuple(shape):
                raise self.bad(
                    f"operand {index} has shape {list(shape_of(value))}; need {list(shape)}"
                )
            return value
        if output:
            raise self.bad(f"operand {index} is output {output} of a variable")
        known = self._made(node, shape, default)
        self.operands.append(known)
        return known

    def _made(self, index: int, shape: Sequence[int], default: float | None = None) -> Known:
        scope, variable = self.scope, self.scope.variables[index]
        name, array = variable.node.name, variable.array
        if index in scope.made:
            known = scope.made[index]
        else:
            dtype = F32 if array is None else array.dtype
            scope.weighed.add(name, prod(shape) * dtype.itemsize)
            rate, decay = (self._factor(variable.node, n) for n in ("lr_mult", "wd_mult"))
            known = scope.program.weight(
                name,
                shape,
                dtype,
                self._initial(variable.node, shape, default) if array is None else lambda: array,
                fixed=rate == 0.0,
            )
            if is_floating(dtype):
                scope.factors[name] = Factors(rate, decay)
            scope.made[index] = known
        own = known.shape if array is None else array.shape
        if own != tuple(shape):
            raise self.bad(f"weight {name[:60]!r} has shape {list(own)}; need {list(shape)}")
        return known

    def _factor(self, variable: SymbolNode, name: str) -> float:
        """A factor of a weight. Raises InputError for one that is less than 0, or no number."""
        text = variable.hidden(name)
        try:
            found = float(text or 1.0)
        except ValueError:
            found = -1.0
        if not 0.0 <= found < float("inf"):
            raise self.bad(
                f"weight {variable.name[:60]!r}: {name} is {text[:60]!r}; need 0 or more"
            )
        return found

    def _initial(
        self, variable: SymbolNode, shape: Sequence[int], default: float | None
    ) -> Callable[[], Array]:
        """What makes the first value of a weight: `__init__` of its variable, or a default.

        Raises InputError for an initializer that abele does not have.
        """
        name, given = ("uniform", {}) if default is None else ("constant", {"value": default})
        text = variable.hidden("init")
        try:
            if text:
                found: Any = json.loads(text)
                name, given = str(found[0]).lower(), dict(cast("Mapping[str, Any]", found[1]))
            make = INITIALIZERS[name]
            with np.errstate(over="raise", invalid="raise"):
                _ = make((1,) * len(shape), given, np.random.default_rng(0))
        except (ValueError, LookupError, TypeError, RecursionError, ArithmeticError):
            raise self.bad(
                f"weight {variable.name[:60]!r}: __init__ is {text[:60]!r}; need one of "
                f'{", ".join(INITIALIZERS)} with numbers, such as ["xavier", {{"magnitude": 2}}], '
                "or a file of weights"
            ) from None
        label, size = variable.name, tuple(shape)
        return lambda: make(size, given, generator_of(label))


# Initializers

Fill = Callable[[tuple[int, ...], Mapping[str, Any], np.random.Generator], Array]


def _uniform(shape: tuple[int, ...], given: Mapping[str, Any], random: Any) -> Array:
    most = float(given.get("scale", 0.07))
    return ((random.random(shape) * 2 - 1) * most).astype(np.float32)


def _normal(shape: tuple[int, ...], given: Mapping[str, Any], random: Any) -> Array:
    return (random.standard_normal(shape) * float(given.get("sigma", 0.01))).astype(np.float32)


def _xavier(shape: tuple[int, ...], given: Mapping[str, Any], random: Any) -> Array:
    """Of magnitude / fan, uniform or gaussian."""
    if len(shape) < 2:
        return _uniform(shape, {}, random)
    into, out = fans(shape)
    fan = {"in": into, "out": out}.get(str(given.get("factor_type", "avg")), (into + out) / 2)
    size = (float(given.get("magnitude", 3)) / max(fan, 1)) ** 0.5
    if given.get("rnd_type", "uniform") == "gaussian":
        return (random.standard_normal(shape) * size).astype(np.float32)
    return _uniform(shape, {"scale": size}, random)


def _msra(shape: tuple[int, ...], given: Mapping[str, Any], random: Any) -> Array:
    slope = float(given.get("slope", 0.25))
    plain = {"rnd_type": "gaussian", "magnitude": 2.0 / (1 + slope**2)}
    return _xavier(shape, {**plain, "factor_type": given.get("factor_type", "avg")}, random)


def _constant(shape: tuple[int, ...], given: Mapping[str, Any], random: Any) -> Array:
    return np.full(shape, float(given.get("value", 0.0)), np.float32)


INITIALIZERS: dict[str, Fill] = {
    "uniform": _uniform,
    "normal": _normal,
    "xavier": _xavier,
    "msraprelu": _msra,
    "constant": _constant,
    "zero": lambda shape, given, random: np.zeros(shape, np.float32),
    "zeros": lambda shape, given, random: np.zeros(shape, np.float32),
    "one": lambda shape, given, random: np.ones(shape, np.float32),
    "ones": lambda shape, given, random: np.ones(shape, np.float32),
}
"""The initializers by the name that MXNet gives them."""


Importer = Callable[[MxNode], "Sequence[Value] | Value"]
"""Reads a node, and returns its outputs, or the only one."""
