"""Draws one node of a model from its operator's schema and the additions in operators.py."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..generators.sketch import Step
from .draw import MOST_ELEMENTS, Draw, Form, Parameter, Shape
from .operators import (
    DIVISORS,
    FIRST_SHAPES,
    FORMS,
    MOST_AXES,
    NEVER_SET,
    NO_OPERAND,
    OVERWRITTEN,
    PARAMETERS,
    POSITIVE,
    RANKS,
)
from .pool import CODES, DTYPES, Pool, PoolValue
from .runtimes import Types, is_function, kernels

TYPE_WEIGHTS = {
    "tensor(float)": 12,
    "tensor(float16)": 4,
    "tensor(int32)": 3,
    "tensor(int64)": 3,
    "tensor(bool)": 2,
    "tensor(double)": 1,
    "tensor(uint8)": 1,
    "tensor(int8)": 1,
}
"""The types of values, and the relative frequency with which a new value has each type."""

MOST_RESULT = 8 * MOST_ELEMENTS
"""Elements of a result, at most."""
REUSE_FIRST = 0.85
"""How often the first operand of a node is an existing value, if one fits."""
REUSE_SHARED = 0.25
"""How often such a first operand is chosen among the values that other nodes already read."""
REUSE_OTHER = 0.8
"""How often the other operands of a node are existing values, if any fit."""
OPTIONAL = 0.5
"""How often an optional operand or attribute is given."""
UNNAMED = 0.3
"""How often a node has no name."""

FormalParameter = onnx.defs.OpSchema.FormalParameter
Attribute = onnx.defs.OpSchema.Attribute
_Kind = onnx.defs.OpSchema.AttrType
_Option = onnx.defs.OpSchema.FormalParameterOption


class NotDrawn(Exception):
    """Raised if no valid node can be drawn."""


class NodeDraw:
    """Draws one node. New leaves and parameters go into the pool, the node itself does not.

    Attributes:
        new_operand: make a new value for the first operand, in a shape that suits the operator.
    """

    def __init__(
        self,
        pool: Pool,
        schema: onnx.defs.OpSchema,
        step: Step,
        random: Random,
        new_operand: bool,
    ) -> None:
        self.pool = pool
        self.schema = schema
        self.step = step
        self.random = random
        self.new_operand = new_operand
        self.types: dict[str, str] = {}
        self.kernels: Sequence[Types] = kernels(schema.name, schema.since_version)
        if not self.kernels and is_function(schema):
            # onnxruntime replaces the operator by the operators that define it.
            self.kernels = ({},)

    def node(self) -> onnx.NodeProto:
        """Draw the node. It may be invalid. Raises NotDrawn."""
        try:
            return self._node()
        except (ValueError, IndexError) as error:
            # Random choices had no candidates, such as an index into an empty axis.
            raise NotDrawn(str(error)) from None

    def _node(self) -> onnx.NodeProto:
        schema = self.schema
        self.first = self._first()
        self.draw = self._draw(self.first.shape if self.first else ())
        self.form = FORMS[schema.name](self.draw) if schema.name in FORMS else Form()
        operands: list[str] = []
        for i, formal in enumerate(schema.inputs):
            leads = i == 0 and self.first is not None
            if leads and self.first is not None:
                operands.append(self.first.name)
            if formal.option == _Option.Variadic:
                operands += self._variadic(formal)
            elif not leads:
                operands.append(self._operand(i, formal))
        while operands and not operands[-1]:
            operands.pop()
        attributes = self._attributes()
        named = self.random.random() > UNNAMED
        name = f"{schema.name}_{self.pool.made}" if named else ""
        node = helper.make_node(schema.name, operands, self._results(), name)
        node.attribute.extend(attributes)
        return node

    def _draw(self, shape: Shape) -> Draw:
        pool = self.pool
        return Draw(self.random, self.schema, pool.opset, shape, self.types, pool.sketch.sizes)

    # Types

    def _allowed(self, variable: str) -> list[str]:
        """The types that a type variable may have, given the variables that are bound already."""
        if variable in self.types:
            return [self.types[variable]]
        if variable in DTYPES:
            return [variable]
        constraints = {c.type_param_str: c.allowed_type_strs for c in self.schema.type_constraints}
        fitting = [
            each
            for each in self.kernels
            if all(type_ in each.get(other, (type_,)) for other, type_ in self.types.items())
        ]
        return [
            type_
            for type_ in TYPE_WEIGHTS
            if type_ in constraints.get(variable, ())
            and any(type_ in each.get(variable, (type_,)) for each in fitting)
        ]

    def _bound(self, variable: str) -> str:
        """The type of a type variable. An unbound variable gets a random type here."""
        allowed = self._allowed(variable)
        if not allowed:
            raise NotDrawn(f"no type for {variable}")
        weights = [TYPE_WEIGHTS.get(type_, 1) for type_ in allowed]
        found = self.random.choices(allowed, weights)[0]
        self.types[variable] = found
        return found

    # Operands

    def _first(self) -> PoolValue | None:
        """The first operand, which limits all other choices; None if the operator has none."""
        schema, random = self.schema, self.random
        if not schema.inputs or schema.name in NO_OPERAND:
            return None
        variable = schema.inputs[0].type_str
        least, most = RANKS.get(schema.name, (int("axis" in schema.attributes), MOST_AXES))
        allowed = self._allowed(variable)
        there = [v for v in self.pool.shared if v.type in allowed and least <= len(v.shape) <= most]
        if there and not self.new_operand and random.random() < REUSE_FIRST:
            shared = [v for v in there if v.name in self.pool.used]
            value = there[-1 - self.step.operand % len(there)]
            if shared and random.random() < REUSE_SHARED:
                value = random.choice(shared)
            self.types[variable] = value.type
            return value
        type_ = self._bound(variable)
        if schema.name in FIRST_SHAPES and random.random() < 0.8:
            shape = FIRST_SHAPES[schema.name](self._draw(()))
        else:
            shape = self._shape(least, most)
        return self.pool.leaf(type_, shape, random)

    def _shape(self, least: int, most: int) -> Shape:
        likely = [r for r in (0, 1, 1, 2, 2, 3, 3, 4, 4, 5) if least <= r <= most]
        shape: list[int] = []
        for _ in range(self.random.choice(likely)):
            size = self.random.choice(self.pool.sketch.sizes)
            shape.append(size if size * prod(shape) <= MOST_ELEMENTS else 1)
        return tuple(shape)

    def _variadic(self, formal: FormalParameter) -> list[str]:
        """The names of the operands of a variadic parameter."""
        shapes: Sequence[Shape | None] = self.form.others
        if self.schema.name not in FORMS:
            shapes = [None] * self.random.choice((0, 1, 1, 2, 3))
        return [self._value(formal, shape) for shape in shapes]

    def _operand(self, index: int, formal: FormalParameter) -> str:
        """The name of an operand; "" if the operand is omitted."""
        name, optional = formal.name, formal.option == _Option.Optional
        if name in self.form.parameters:
            return self._parameter(formal, self.form.parameters[name])
        if optional and not self.draw.chance(OPTIONAL):
            return ""
        if name in PARAMETERS:
            return self._parameter(formal, PARAMETERS[name](self.draw))
        shapes = self.form.others
        return self._value(formal, shapes[index - 1] if index <= len(shapes) else None)

    def _parameter(self, formal: FormalParameter, value: Parameter) -> str:
        if value is None:
            if formal.option != _Option.Optional:
                raise NotDrawn(f"no {formal.name}")
            return ""
        type_ = self._bound(formal.type_str)
        array = np.asarray(value, DTYPES[type_])
        return self.pool.parameter(array, type_, self.random).name

    def _value(self, formal: FormalParameter, shape: Shape | None) -> str:
        """The name of an existing or new value of a shape; of any that broadcasts if None."""
        type_ = self._bound(formal.type_str)
        what = "positive" if formal.name in POSITIVE else ""
        if (self.schema.name, formal.name) in DIVISORS and DTYPES[type_].kind in "iu":
            what = "divisor"
        own = formal.name in OVERWRITTEN
        if not what and not own and self.random.random() < REUSE_OTHER:
            alike = (
                self.pool.broadcasting(type_, self.draw.shape, MOST_RESULT)
                if shape is None
                else self.pool.of_shape(type_, shape)
            )
            if alike:
                return self.random.choice(alike).name
        shape = self.draw.broadcast() if shape is None else shape
        return self.pool.leaf(type_, shape, self.random, what, shared=not own).name

    # Attributes and results

    def _attributes(self) -> list[onnx.AttributeProto]:
        made: list[onnx.AttributeProto] = []
        for name, attribute in sorted(self.schema.attributes.items()):
            value = self._attribute(name, attribute)
            if value is None or (isinstance(value, list) and not value):
                if attribute.required:
                    raise NotDrawn(f"no {name}")
                continue
            if attribute.type == _Kind.TENSOR:
                value = numpy_helper.from_array(np.asarray(cast(Any, value)))
            made.append(helper.make_attribute(name, value))
        return made

    def _attribute(self, name: str, attribute: Attribute) -> Parameter:
        """The value of an attribute; None if it is omitted."""
        if name in self.form.parameters:
            return self.form.parameters[name]
        if name in NEVER_SET or not (attribute.required or self.draw.chance(OPTIONAL)):
            return None
        if name == "to":
            return CODES[self._bound(self.schema.outputs[0].type_str)]
        if name in PARAMETERS:
            return PARAMETERS[name](self.draw)
        if attribute.type == _Kind.INT:
            return self.random.choice((0, 1))
        return self.random.choice((0.5, 1.0, 2.0)) if attribute.type == _Kind.FLOAT else None

    def _results(self) -> list[str]:
        count = self.form.results
        if count is None:
            least = self.schema.min_output
            more = (self.draw.chance(0.3) for _ in self.schema.outputs[least:])
            count = least + sum(more)
        return [self.pool.name(self.random) for _ in range(count)]
