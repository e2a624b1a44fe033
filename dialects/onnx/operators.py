"""The operations of ONNX's operators, made from `onnx.defs` when the dialect is loaded.

An operation stands for all versions of its operator. The opset that the model imports says which
version holds, and `Operator.check_version` compares the operation with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import onnx
from onnx import NodeProto, TensorProto, TypeProto
from onnx.defs import OpSchema
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, region_def, traits_def
from xdsl.traits import Pure

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.upstream import VerifyException
from .attributes import TensorAttr
from .base import Node, version_for
from .definitions import Definition, definitions, kind_name, latest_version
from .kinds import OfKinds, attribute_proto
from .tensors import tensor_proto
from .types import SKIPPED, UNKNOWN, UnknownType, agree, merged, type_proto, value_type

MOST_PROPAGATED = 1024
"""The most elements of a constant that shape inference is told."""


class Operator(Node):
    """An operation of one of ONNX's operators.

    Attributes:
        DEFINITION: what ONNX says about the operator.
    """

    DEFINITION: ClassVar[Definition]

    traits = traits_def(Pure())

    @classmethod
    def operand_range(cls) -> tuple[int, int | None]:
        """The fewest and the most operands."""
        return cls.DEFINITION.operands

    @classmethod
    def result_range(cls) -> tuple[int, int | None]:
        """The fewest and the most results."""
        return cls.DEFINITION.results

    @classmethod
    def implied(cls, name: str) -> Attribute | None:
        """What an attribute is if it is absent, in every version of the operator."""
        known = cls.DEFINITION.attributes.get(name)
        return None if known is None else known.default

    @classmethod
    def outdated(cls) -> frozenset[str]:
        """The attributes that the latest version of the operator lacks."""
        definition = cls.DEFINITION
        return frozenset(definition.attributes.keys() - definition.latest.attributes.keys())

    def verify_(self) -> None:
        """Check that the number of operands and results is possible in some version."""
        _check_count("operands", len(self.operands), self.DEFINITION.operands)
        _check_count("results", len(self.results), self.DEFINITION.results)

    def check_version(self) -> None:
        """Raise VerifyException unless the version that the model imports has all of this."""
        schema = self._schema()
        if schema is None:
            return
        where = f"version {schema.since_version} of {schema.name}"
        for count, least, most, what in (
            (len(self.operands), schema.min_input, schema.max_input, "operands"),
            (len(self.results), schema.min_output, schema.max_output, "results"),
        ):
            if not least <= count <= most:
                need = str(least) if least == most else f"{least} to {most}"
                raise VerifyException(f"{count} {what}; {where} has {need}")
        for i, formal in enumerate(schema.inputs[: len(self.operands)]):
            is_needed = formal.option == OpSchema.FormalParameterOption.Single
            if is_needed and self.operands[i].type == SKIPPED:
                raise VerifyException(f"operand {i} ({formal.name}) is left out; {where} needs it")
        self._check_attributes(schema, where)

    def _check_attributes(self, schema: OpSchema, where: str) -> None:
        known = schema.attributes
        for name, value in self.properties.items():
            if name not in known:
                others = [v.since_version for v in self.DEFINITION.versions if name in v.attributes]
                raise VerifyException(
                    f"attribute {name}, which {where} does not have; version"
                    f"{'s' * (len(others) > 1)} {', '.join(map(str, others))} ha"
                    f"{'ve' if len(others) > 1 else 's'} it"
                )
            wanted = OfKinds((kind_name(known[name]),))
            if not wanted.verifies(value):
                raise VerifyException(f"{name} is {value}; {where} needs {wanted.says}")
        for name, each in known.items():
            is_region = name in self.DEFINITION.graphs
            if each.required and not is_region and name not in self.properties:
                raise VerifyException(f"no attribute {name}, which {where} requires")

    def _schema(self) -> OpSchema | None:
        """The version that holds; None for a model function's operator without an opset.

        Raises VerifyException if the opset does not have the operator.
        """
        domain = self.DEFINITION.domain
        version = version_for(self, domain, self.operands)
        if version is None:
            raise VerifyException(
                f"the model imports no opset of {domain or 'ai.onnx'}; add one to opset_import"
            )
        schema = self.DEFINITION.at(version)
        if schema is None:
            first = self.DEFINITION.versions[0].since_version
            raise VerifyException(
                f"opset {version} of {domain or 'ai.onnx'} does not have it; it is there since "
                f"opset {first}"
            )
        if schema.deprecated:
            raise VerifyException(
                f"opset {version} of {domain or 'ai.onnx'} has it no more; it was removed in opset "
                f"{schema.since_version}"
            )
        return schema

    # Types

    def infer_all(self) -> Sequence[Attribute]:
        """The types of the results that every such node has."""
        return self.infer_for(())

    def infer_for(self, wanted: Sequence[Attribute]) -> Sequence[Attribute]:
        """The types of the results.

        Raises VerifyException if operands and attributes contradict each other, or the version.

        Args:
            wanted: types of the values that the results will stand for. If there are more than a
                node must have, it has as many. What they say is used where ONNX infers less.
        """
        self.verify_counts()
        schema = self._schema()
        assert schema is not None
        count = max(schema.min_output, min(len(wanted), schema.max_output))
        found = _inferred(self, schema, count)
        for i, each in enumerate(wanted[:count]):
            if agree(found[i], each):
                # The type of the value that is replaced: other operations have been given it.
                found[i] = each if not isinstance(each, UnknownType) else found[i]
        return found

    def verify_counts(self) -> None:
        """Raise VerifyException for a number of operands that no version has."""
        _check_count("operands", len(self.operands), self.DEFINITION.operands)


def _check_count(what: str, count: int, range_: tuple[int, int | None]) -> None:
    least, most = range_
    if count < least or (most is not None and count > most):
        need = f"{least} or more" if most is None else f"{least} to {most}"
        raise VerifyException(f"{count} {what}; need {least if least == most else need}")


def node_of(op: Operator, operands: Sequence[str], results: Sequence[str], what: str) -> NodeProto:
    """The message of an operation without its graphs. Raises InputError.

    Args:
        operands, results: names.
        what: for messages.
    """
    definition = op.DEFINITION
    node = NodeProto(op_type=definition.op_type, domain=definition.domain)
    node.input.extend(operands)
    node.output.extend(results)
    for name, value in op.properties.items():
        kinds = definition.attributes[name].kinds
        node.attribute.append(attribute_proto(name, value, kinds, what))
    return node


def _inferred(op: Operator, schema: OpSchema, count: int) -> list[Attribute]:
    operands = ["" if each.type == SKIPPED else f"i{i}" for i, each in enumerate(op.operands)]
    results = [f"o{i}" for i in range(count)]
    types: dict[str, TypeProto] = {}
    data: dict[str, TensorProto] = {}
    for name, value in zip(operands, op.operands, strict=True):
        if name and not isinstance(value.type, UnknownType):
            types[name] = type_proto(value.type)
        constant = constant_of(value)
        if name and constant is not None and constant.array.size <= MOST_PROPAGATED:
            data[name] = tensor_proto(constant, name, inline=True)
    if op.regions:
        return [UNKNOWN] * count
    try:
        node = node_of(op, operands, results, op.name)
        found = onnx.shape_inference.infer_node_outputs(
            schema,
            node,
            types,
            data,
            opset_imports=[onnx.helper.make_opsetid(schema.domain, schema.since_version)],
        )
    # onnx raises ValueError for some attributes, and RuntimeError for some lists of operands.
    except (
        InputError,
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        ValueError,
        RuntimeError,
    ) as error:
        raise VerifyException(_reason(error)) from None
    return [value_type(found[name]) if name in found else UNKNOWN for name in results]


def _reason(error: Exception) -> str:
    """What onnx says, without the context that it adds on further lines."""
    return str(error).strip().partition("\n")[0]


def constant_of(value: SSAValue) -> TensorAttr | None:
    """The tensor that a value always is; None if it is not constant, or no array holds it."""
    owner = value.owner
    if not isinstance(owner, Operation) or not isinstance(value, OpResult):
        return None
    held = owner.properties.get(_HOLDS.get(owner.name, ""))
    return held if isinstance(held, TensorAttr) else None


_HOLDS = {"onnx.initializer": "tensor", "onnx.Constant": "value"}
"""The property with the tensor of each operation that may be one."""


def _operator_class(definition: Definition) -> type[Operator]:
    """The operation of an operator."""
    latest = definition.latest
    namespace: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": _document(definition),
        "name": definition.name,
        "DEFINITION": definition,
        "__annotations__": {"DEFINITION": ClassVar[Definition]},
    }
    for name, info in definition.attributes.items():
        make = prop_def if info.is_required else opt_prop_def
        # The name of an attribute may be that of a method.
        namespace[f"{name}_value"] = make(OfKinds(info.kinds), prop_name=name)
    for name in definition.graphs:
        namespace[f"{name}_graph"] = region_def()
    return irdl_op_definition(type(f"{latest.name}Op", (Operator,), namespace))


def _document(definition: Definition) -> str:
    """What ONNX says about an operator, in its first sentence."""
    latest = definition.latest
    text = " ".join((latest.doc or "").split())
    first = text.partition(". ")[0].rstrip(".")
    return f"{first or definition.op_type}."


OPERATORS: tuple[type[Operator], ...] = tuple(map(_operator_class, definitions().values()))
"""The operations of all operators that the installed onnx defines."""

BY_NAME: dict[tuple[str, str], type[Operator]] = {
    (each.DEFINITION.domain, each.DEFINITION.op_type): each for each in OPERATORS
}
"""The operations by domain and name of the operator."""


def no_such_operator(domain: str, op_type: str, version: int | None) -> str:
    """Why an operator of one of ONNX's domains is none, in words."""
    known = [name for own, name in BY_NAME if own == domain]
    return (
        f"{domain or 'ai.onnx'} has no operator {op_type} in opset {version}"
        f"{suggestion(op_type, known)}"
    )


__all__ = [
    "BY_NAME",
    "OPERATORS",
    "Operator",
    "UnitAttr",
    "constant_of",
    "latest_version",
    "merged",
    "node_of",
]
