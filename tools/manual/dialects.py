"""The pages of dialects: operations, attributes and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from importlib import import_module
from itertools import groupby
from textwrap import wrap
from typing import get_args

from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import IRDLOperation

from ...dialects.levels import DIALECTS, LEVELS, SOURCE_DIALECTS, SOURCES, load_dialect
from ...dialects.nn import TensorOp
from ...ir.pass_options import member_types
from ...ir.rules.bound_rule import BoundRule
from .definitions import directives, fields_of, heading_of, marks, syntax
from .documents import Document, document, without_errors
from .markdown import COLUMNS, code, fence, link, page, plain, prose, table

FAMILY = 2
"""The smallest number of operations with one base class and syntax that are described together."""


def dialect_pages(rules: Mapping[str, Sequence[BoundRule]]) -> dict[str, str]:
    """The pages by path.

    Args:
        rules: rules by file.
    """
    by_root: dict[type[Operation], list[tuple[str, str]]] = {}
    for file, bound in rules.items():
        for rule in bound:
            for cls in rule.roots:
                by_root.setdefault(cls, []).append((file, rule.name))
    names = (*DIALECTS, *SOURCE_DIALECTS)
    return {f"dialects/{name}.md": _page(name, load_dialect(name), by_root) for name in names}


Rules = Mapping[type[Operation], Sequence[tuple[str, str]]]


def meaning(name: str) -> str:
    """The docstring of a dialect's module."""
    module = import_module((DIALECTS | SOURCE_DIALECTS)[name].partition(":")[0])
    return document(module).text


def _page(name: str, dialect: Dialect, rules: Rules) -> str:
    operations, attributes = list(dialect.operations), list(dialect.attributes)
    contents = table(
        ("operation", "meaning", link("kind and traits", "../index.md", "Words")),
        (
            (link(code(op.name), "", op.name), plain(document(op).summary), ", ".join(marks(op)))
            for op in operations
        ),
    )
    sections: list[str] = []
    for family in families(operations):
        if len(family) < FAMILY:
            sections += [_operation(op, rules) for op in family]
        else:
            sections.append(_family(family, rules))
    blocks = [prose(meaning(name))]
    if operations:
        blocks += [_levels(name), f"## Operations\n\n{contents}", _legend(operations), *sections]
    if attributes:
        blocks += ["## Attributes and types", *map(_attribute, attributes)]
    return page(f"The dialect {name}", *blocks)


def _legend(operations: Iterable[type[Operation]]) -> str:
    """An explanation of the notation of the syntax."""
    blocks = [
        "In the syntax, `$name` is a field of the operation, `[...]?` is optional, and `{...}` "
        "stands for all other attributes."
    ]
    shown = {directive: each for each in operations for directive in directives(each)}
    for directive, op in shown.items():
        written = f"{directive.name}({', '.join(f'${name}' for name in directive.fields)})"
        rows = [row for row in _rows(op) if row[0] in map(code, directive.fields)]
        blocks += [f"{code(written)}: {plain(directive.says)}", table(TITLES, rows)]
    return "\n\n".join(blocks)


def _levels(name: str) -> str:
    """The levels at which the operations are legal."""
    found = [level.name for level in (*SOURCES, *LEVELS) if name in level.legal]
    listed = ", ".join(link(code(each), "../levels.md", each) for each in found)
    return f"Legal at {listed}." if found else ""


def families(operations: Iterable[type[Operation]]) -> list[list[type[Operation]]]:
    """Operations grouped by base class, syntax and fields, ordered by the first operation of each
    group.
    """

    def key(op: type[Operation]) -> tuple[object, ...]:
        return op.__bases__, syntax(op).removeprefix(op.name), tuple(_rows(op))

    keys = {op: key(op) for op in operations}
    order = {each: i for i, each in reversed(list(enumerate(keys.values())))}
    ordered = sorted(keys, key=lambda op: order[keys[op]])
    return [list(group) for _, group in groupby(ordered, lambda op: order[keys[op]])]


def _operation(op: type[Operation], rules: Rules) -> str:
    return "\n\n".join(
        block
        for block in (
            f"### {op.name}",
            prose(_document(op).text),
            fence(document(op).example, "mlir") if document(op).example else "",
            _marks(op),
            _form(op, op.name),
            _rules(_of(op, rules)),
        )
        if block
    )


def _family(family: Sequence[type[Operation]], rules: Rules) -> str:
    """The description of operations that differ only in their meaning."""
    base = family[0].__mro__[1]
    shared = [mark for mark in marks(family[0]) if all(mark in marks(op) for op in family)]
    blocks = [f"### {plain(document(base).summary)}".rstrip("."), f"*{', '.join(shared)}*"]
    common = [
        rule for rule in rules.get(family[0], ()) if all(rule in _of(op, rules) for op in family)
    ]
    blocks += [
        _form(family[0], "OPERATION"),
        _rules(common).replace("this operation", "any of these operations"),
    ]
    for op in family:
        own = [mark for mark in marks(op) if mark not in shared]
        blocks += [
            f"#### {op.name}",
            prose(_document(op).text) + (f" *{', '.join(own)}*" if own else ""),
            fence(document(op).example, "mlir") if document(op).example else "",
            _rules(rule for rule in _of(op, rules) if rule not in common),
        ]
    return "\n\n".join(block for block in blocks if block)


def _document(op: type[Operation]) -> Document:
    return document(op, [each.name for each in fields_of(op)])


def _marks(op: type[Operation]) -> str:
    return f"*{', '.join(marks(op))}*" if marks(op) else ""


def _form(op: type[Operation], name: str) -> str:
    """The syntax, and the fields except those that directives describe."""
    written = syntax(op)
    text = fence(_wrapped(written.replace(op.name, name, 1))) if written else ""
    described = {code(field) for directive in directives(op) for field in directive.fields}
    fields = table(TITLES, (row for row in _rows(op) if row[0] not in described))
    return "\n\n".join(block for block in (text, fields) if block)


def _wrapped(syntax: str) -> str:
    """A syntax in lines of COLUMNS characters. Optional parts and the types stay whole."""
    whole = _WHOLE.sub(lambda found: found[0].replace(" ", NO_BREAK), syntax)
    lines = wrap(whole, COLUMNS, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines).replace(NO_BREAK, " ")


_WHOLE = re.compile(r"\[[^\]]*\]\?|: \([^)]*\) -> types of \S+")
"""The parts of a syntax that stay on one line."""

NO_BREAK = "\u00a0"
"""A space at which no line ends."""

TITLES = ("field", "is", "holds", "default", "meaning")


def _rows(op: type[Operation]) -> list[tuple[str, ...]]:
    """The fields of an operation, one per row."""
    found = meanings(op)
    return [
        (code(each.name), each.role, each.holds, each.default, plain(found.get(each.name, "")))
        for each in fields_of(op)
    ]


def meanings(op: type[Operation]) -> dict[str, str]:
    """The meanings of an operation's fields, from its docstring and its bases' docstrings.

    A result without a meaning gets a text about the inference of its type.
    """
    names = [each.name for each in fields_of(op)]
    found: dict[str, str] = {}
    if issubclass(op, TensorOp):
        inferred = without_errors(document(op.infer).text).rstrip(".")
        found["result"] = inferred[:1].lower() + inferred[1:]
    for cls in reversed(op.__mro__):
        if issubclass(cls, Operation) and cls not in (Operation, IRDLOperation):
            found |= document(cls, names).fields
    return found


def _of(op: type[Operation], rules: Rules) -> Sequence[tuple[str, str]]:
    """The rules whose root is an operation."""
    return rules.get(op, ())


def _rules(rules: Iterable[tuple[str, str]]) -> str:
    found = [link(name, "../rules.md", f"{file}.{name}") for file, name in rules]
    return f"Rules with this operation as root: {', '.join(found)}." if found else ""


def _attribute(cls: type[Attribute]) -> str:
    says = document(cls)
    example = fence(says.example, "mlir") if says.example else ""
    return "\n\n".join(
        block
        for block in (f"### {heading_of(cls)}", prose(says.text), example, *map(_held, _parts(cls)))
        if block
    )


def _parts(cls: type[Attribute]) -> Iterator[type]:
    """The class of the frozen values that an attribute holds."""
    bases: tuple[object, ...] = getattr(cls, "__orig_bases__", ())
    for held in (each for base in bases for each in get_args(base)):
        yield from (
            part for part in member_types(held) if is_dataclass(part) and isinstance(part, type)
        )


def _held(cls: type) -> str:
    """The docstring of an attribute's value, and of the value's fields."""
    names = [each.name for each in dataclass_fields(cls)]
    says = document(cls, names)
    meanings = {name: without_errors(text).rstrip(".") for name, text in says.fields.items()}
    rows = ((code(name), plain(meanings[name])) for name in names if name in meanings)
    return "\n\n".join(
        b for b in (prose(without_errors(says.text)), table(("field", "meaning"), rows)) if b
    )
