"""What all operations of the dialect share: their text, their notes, and the opsets around them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, var_operand_def, var_result_def

from ...ir.upstream import ModuleOp, Parser, Printer
from ..onnx_level import FUNCTION
from .definitions import latest_version, plain_domain

NODE = "onnx.node"
"""The note of an operation about its node in the file: name, names of results, doc string."""

GRAPH = "onnx.graph"
"""The note of the end of a graph: its name, and what the file states about its values."""

MODEL = "onnx.model"
"""The attribute of a module: the fields of its model beside graph and functions."""

OUTPUTS = "outputs"
"""The entry of NODE with the names of the results."""

OPSETS = "opset_import"
"""The entry of MODEL, and of a function, with the opsets."""


class Node(IRDLOperation, ABC):
    """An operation of the dialect: values in, values out, attributes, perhaps graphs.

    Attributes:
        inputs: the operands by position; one that is left out is the result of `onnx.none`.
        made: the results by position; one that is left out has the name "".
    """

    inputs = var_operand_def()
    made = var_result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` prints."""
        start = parser.pos
        operands = parser.parse_op_args_list()
        given = parser.parse_optional_attr_dict()
        regions: list[Region] = []
        if parser.parse_optional_keyword("graphs") is not None:
            regions = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_region)
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        known = cls.get_irdl_definition().properties
        return cls.create(
            operands=parser.resolve_operands(operands, tuple(types.inputs.data), start),
            result_types=tuple(types.outputs.data),
            properties={name: each for name, each in given.items() if name in known},
            attributes={name: each for name, each in given.items() if name not in known},
            regions=regions,
        )

    def print(self, printer: Printer) -> None:
        """Print operands, attributes, graphs and types."""
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(")")
        printer.print_op_attributes({**self.properties, **self.attributes})
        if self.regions:
            printer.print_string(" graphs (")
            printer.print_list(self.regions, printer.print_region)
            printer.print_string(")")
        printer.print_string(" : ")
        printer.print_function_type(
            [value.type for value in self.operands], [value.type for value in self.results]
        )


def note_of_node(op: Operation) -> Mapping[str, Attribute]:
    """What an operation's note says about its node; nothing for an operation that a pass made."""
    note = op.attributes.get(NODE)
    return note.data if isinstance(note, DictionaryAttr) else {}


def names_of_results(op: Operation) -> tuple[str, ...]:
    """The names of an operation's results in its file; () if a pass has made the operation."""
    return texts_of(note_of_node(op).get(OUTPUTS))


def texts_of(attribute: Attribute | None) -> tuple[str, ...]:
    """The texts of a list of texts; () for anything else."""
    if not isinstance(attribute, ArrayAttr):
        return ()
    items = cast("ArrayAttr[Any]", attribute).data
    return tuple(each.data for each in items if isinstance(each, StringAttr))


# Opsets


def opsets_around(op: Operation | None) -> Mapping[str, int]:
    """The opsets that the model, or the model function, around an operation imports, by domain.

    Empty outside of a module that says so.
    """
    while op is not None:
        if op.name == FUNCTION:
            return opsets_of(op.properties.get("fields"))
        if isinstance(op, ModuleOp):
            return opsets_of(op.attributes.get(MODEL))
        op = op.parent_op()
    return {}


def opsets_of(fields: Attribute | None) -> Mapping[str, int]:
    """The opsets in the fields of a model or function."""
    if not isinstance(fields, DictionaryAttr):
        return {}
    known = _KNOWN.get(id(fields))
    if known is None or known[0] is not fields:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[id(fields)] = (fields, _opsets(fields))
    return known[1]


_MOST_KNOWN = 256
_KNOWN: dict[int, tuple[Attribute, Mapping[str, int]]] = {}
"""Opsets that were read, by the identity of the attribute, which is kept so that it stays."""


def _opsets(fields: DictionaryAttr) -> Mapping[str, int]:
    found: dict[str, int] = {}
    listed = fields.data.get(OPSETS)
    for each in cast("ArrayAttr[Any]", listed).data if isinstance(listed, ArrayAttr) else ():
        entry: Mapping[str, Attribute] = each.data if isinstance(each, DictionaryAttr) else {}
        domain, version = entry.get("domain"), entry.get("version")
        if isinstance(version, IntegerAttr):
            name = domain.data if isinstance(domain, StringAttr) else ""
            found[plain_domain(name)] = cast("IntegerAttr[Any]", version).value.data
    return found


def version_for(op: Operation, domain: str, operands: Sequence[SSAValue] = ()) -> int | None:
    """The version of a domain that holds for an operation; the latest one if nothing says which.

    None if the model imports opsets, but none of this domain.

    Args:
        operands: values beside the operation, if it is in no module yet.
    """
    opsets = opsets_around(op)
    for each in operands:
        if opsets:
            break
        owner = each.owner
        opsets = opsets_around(owner if isinstance(owner, Operation) else owner.parent_op())
    return opsets.get(domain) if opsets else latest_version(domain)
