"""Descriptions of the definition of an operation: its fields, its syntax, its traits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayOfConstraint,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    OperandDef,
    OptAttributeDef,
    OptOperandDef,
    OptPropertyDef,
    OptResultDef,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    ResultDef,
    VarOperandDef,
    VarResultDef,
)
from xdsl.traits import (
    Commutative,
    HasParent,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    OpTrait,
    Pure,
    SymbolOpInterface,
)

from ...dialects.levels import DIALECTS, SOURCE_DIALECTS, load_dialect
from ...dialects.structured import Composite, Movement, Reinterpretation, Structured
from .documents import document
from .markdown import code, link, plain

KINDS: tuple[type, ...] = (Structured, Movement, Reinterpretation, Composite)
"""The kinds of operations. The docstring of each class describes it."""

TRAITS: dict[type[OpTrait], str] = {
    Pure: "pure",
    Commutative: "commutative",
    IsTerminator: "terminator",
    NoTerminator: "no terminator in its region",
    SymbolOpInterface: "symbol",
    MemoryReadEffect: "reads state",
    MemoryWriteEffect: "writes state",
}
"""The traits that matter to authors of passes, in words."""

WORDS: dict[str, str] = {
    "pure": "It only computes its results: unused ones can be removed, and equal ones merged.",
    "commutative": "The order of its two operands does not matter.",
    "terminator": "It is the last operation of a region, and only there.",
    "no terminator in its region": "The operations in its region end without a terminator.",
    "symbol": "Other operations name it, as `@name`.",
    "reads state": "It must not move across operations that write the same state.",
    "writes state": "It must not be removed, even if nothing uses its results.",
}
"""The meanings of the words for traits."""

NOUNS: Mapping[type[Attribute], tuple[str, str]] = {
    DenseArrayBase: ("integers", "lists of integers"),
    FloatAttr: ("a number", "numbers"),
    IntegerAttr: ("an integer", "integers"),
    StringAttr: ("text", "texts"),
    SymbolRefAttr: ("a symbol", "symbols"),
    TensorType: ("a tensor", "tensors"),
    UnitAttr: ("a flag", "flags"),
}
"""Attributes and types of xDSL in words: singular and plural."""


@dataclass(frozen=True)
class Field:
    """A field of an operation.

    Attributes:
        role: operand, result, property or region.
        holds: its contents, in Markdown.
    """

    name: str
    role: str
    holds: str
    default: str


def fields_of(cls: type[Operation]) -> tuple[Field, ...]:
    """The fields of an operation: first those in its syntax, in order, then the others."""
    if not issubclass(cls, IRDLOperation):
        return ()
    definition = cls.get_irdl_definition()
    found = [Field(name, "operand", _values(each), "") for name, each in definition.operands]
    for name, each in (*definition.properties.items(), *definition.attributes.items()):
        words = holds(each.constr, False, False)
        if isinstance(each, OptPropertyDef | OptAttributeDef) and words != FLAG:
            words += ", or nothing"
        found.append(Field(name, "property", words, _value(each.default_value)))
    found += [Field(name, "region", "operations", "") for name, _ in definition.regions]
    written = re.findall(r"(?<!type\()\$(\w+)", definition.assembly_format or "")
    order = {name: i for i, name in reversed(list(enumerate(written)))}
    found.sort(key=lambda each: order.get(each.name, len(order)))
    found += [Field(name, "result", _values(each), "") for name, each in definition.results]
    return tuple(found)


FLAG = NOUNS[UnitAttr][0]


def _values(definition: OperandDef | ResultDef) -> str:
    """Operands or results in words: their types and their number."""
    if isinstance(definition, OptOperandDef | OptResultDef):
        return f"{holds(definition.constr, False, True)}, or nothing"
    if isinstance(definition, VarOperandDef | VarResultDef):
        return f"{holds(definition.constr, True, True)}, any number"
    return holds(definition.constr, False, True)


def _value(attribute: Attribute | None) -> str:
    """A default in words."""
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return code(str(cast(Any, attribute).value.data))
    return "" if attribute is None else code(str(attribute))


def holds(constraint: object, several: bool, is_value: bool) -> str:
    """The attributes or types that satisfy a constraint, in words.

    Args:
        is_value: the constraint is on the type of a value.
    """
    for kind, words in _CONSTRAINTS.items():
        if isinstance(constraint, kind):
            return words(constraint, several, is_value)
    return code(str(constraint))


_CONSTRAINTS: dict[type, Callable[[Any, bool, bool], str]] = {
    AnyOf: lambda c, several, is_value: " or ".join(
        holds(each, several, is_value) for each in c.attr_constrs
    ),
    AnyAttr: lambda c, several, is_value: (
        f"{'values' if several else 'a value'} of any type" if is_value else "anything"
    ),
    SymbolNameConstraint: lambda c, several, is_value: "the name of a symbol",
    ArrayOfConstraint: lambda c, several, is_value: (
        f"a list of {holds(c.elem_range_constraint, True, False)}"
    ),
    RangeLengthConstraint: lambda c, several, is_value: holds(c.constraint, several, is_value),
    RangeOf: lambda c, several, is_value: holds(c.constr, several, is_value),
    BaseAttr: lambda c, several, is_value: _noun(c.attr, several, is_value),
    ParamAttrConstraint: lambda c, several, is_value: _noun(c.base_attr, several, is_value),
    EqAttrConstraint: lambda c, several, is_value: code(str(c.attr)),
}


def _noun(cls: type[Attribute], several: bool, is_value: bool) -> str:
    """An attribute or type in words; abele's own attributes and types link to their
    descriptions."""
    words = NOUNS.get(cls)
    if words is None:
        name = spelled(cls)
        dialect = name[1:].partition(".")[0]
        known = dialect in DIALECTS or dialect in SOURCE_DIALECTS
        return link(code(name), f"{dialect}.md", heading_of(cls)) if known else code(name)
    if issubclass(cls, TypeAttribute) and not is_value:
        return f"the type of {words[several]}"
    return words[several]


def spelled(cls: type[Attribute]) -> str:
    """The name of an attribute or type, as programs spell it."""
    is_type = issubclass(cls, ParametrizedAttribute) and issubclass(cls, TypeAttribute)
    return f"{'!' if is_type else '#'}{cls.name}"


def heading_of(cls: type[Attribute]) -> str:
    """The heading of an attribute or type: its name, and what it is if an operation has the name
    too.
    """
    operations = load_dialect(cls.name.partition(".")[0]).operations
    is_taken = any(op.name == cls.name for op in operations)
    return f"{spelled(cls)} (attribute)" if is_taken else spelled(cls)


def syntax(cls: type[Operation]) -> str:
    """The syntax of an operation; "" if its definition does not give it.

    $name is a field, [...]? is optional, Name($a, $b) is a directive of that name.
    """
    if not issubclass(cls, IRDLOperation):
        return ""
    definition = cls.get_irdl_definition()
    flags = {f"${each.name}" for each in fields_of(cls) if each.holds == FLAG}
    text = cls.name
    for match in _TOKEN.finditer(definition.assembly_format or ""):
        token = _spelled_out(match)
        # The word beside a flag implies the flag.
        if token not in flags:
            glued = token in (",", ")", "]?", ">") or text.endswith(("(", "[", "<"))
            text += token if glued else f" {token}"
    return text if definition.assembly_format else ""


_TOKEN = re.compile(
    r"""`(?P<literal>[^`]*)`
    | custom<(?P<directive>\w+)>\((?P<fields>[^)]*)\)
    | functional-type\((?P<operands>[^,]*),\s*(?P<results>[^)]*)\)
    | type\((?P<typed>\$\w+)\)\^?
    | (?P<attributes>attr-dict(-with-keyword)?)
    | (?P<variable>\$\w+)\^?
    | (?P<begin>\()
    | (?P<end>\)\?)
    """,
    re.VERBOSE,
)


def _spelled_out(match: re.Match[str]) -> str:
    """A part of an assembly format, in the notation of the page."""
    part = match.groupdict()
    if part["directive"]:
        several = "," in part["fields"]
        return f"{part['directive']}({part['fields']})" if several else part["fields"]
    if part["operands"]:
        return f"(types of {part['operands']}) -> types of {part['results']}"
    if part["typed"]:
        return f"type of {part['typed']}"
    fixed = {"attributes": "{...}", "begin": "[", "end": "]?"}
    found = next((text for group, text in fixed.items() if part[group]), None)
    return found or part["variable"] or part["literal"]


@dataclass(frozen=True)
class Directive:
    """A part of a syntax that stands for several fields.

    Attributes:
        says: its meaning.
    """

    name: str
    fields: tuple[str, ...]
    says: str


def directives(cls: type[Operation]) -> tuple[Directive, ...]:
    """The directives in an operation's syntax that stand for several fields."""
    if not issubclass(cls, IRDLOperation):
        return ()
    definition = cls.get_irdl_definition()
    found: list[Directive] = []
    for match in _TOKEN.finditer(definition.assembly_format or ""):
        name, fields = match["directive"], re.findall(r"\w+", match["fields"] or "")
        if len(fields) > 1:
            says = document(definition.custom_directives[name]).summary
            found.append(Directive(name, tuple(fields), says))
    return tuple(found)


def marks(cls: type[Operation]) -> tuple[str, ...]:
    """The kind of an operation and its relevant traits, in words."""
    kinds = [kind.__name__.lower() for kind in KINDS if issubclass(cls, kind)]
    traits = list(cls.traits.traits) if issubclass(cls, IRDLOperation) else []
    words = [words for trait, words in TRAITS.items() if any(isinstance(t, trait) for t in traits)]
    parents = [p.name for t in traits if isinstance(t, HasParent) for p in t.op_types]
    words += [f"only in {' or '.join(map(code, parents))}"] if parents else []
    return (*kinds, *words)


def vocabulary() -> dict[str, str]:
    """The words of marks, with their meanings."""
    kinds = {kind.__name__.lower(): plain(document(kind).text) for kind in KINDS}
    return kinds | WORDS
