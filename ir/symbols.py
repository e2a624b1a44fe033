"""The symbols that a module's operations have and name, whatever operations these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from .upstream import ModuleOp

SYMBOL = "sym_name"
"""The property in which an operation has its symbol."""


def symbol_of(op: Operation) -> str | None:
    """The symbol that an operation has; None if it has none."""
    symbol = op.properties.get(SYMBOL)
    return symbol.data if isinstance(symbol, StringAttr) else None


def symbols_in(attribute: Attribute | None) -> Iterator[str]:
    """The symbols that an attribute names: one, or a list of them."""
    listed = (attribute,)
    if isinstance(attribute, ArrayAttr):
        listed = cast("ArrayAttr[Attribute]", attribute).data
    for each in listed:
        if isinstance(each, SymbolRefAttr):
            yield each.string_value()


def symbols_named(op: Operation) -> Iterator[str]:
    """The symbols that an operation names."""
    for attribute in (*op.properties.values(), *op.attributes.values()):
        yield from symbols_in(attribute)


def name_others(module: ModuleOp, names: Mapping[str, str]) -> None:
    """Let operations name other symbols, in place. names: the new one for each old one."""
    for op in module.walk():
        for where in (op.properties, op.attributes):
            for key, attribute in where.items():
                if not names.keys().isdisjoint(symbols_in(attribute)):
                    where[key] = _renamed(attribute, names)


def number_symbols(module: ModuleOp) -> None:
    """Give all symbols but functions' new names, by the order in which they stand, in place.

    What is named stands in the module itself; what stands further in has a name for people only,
    which may be that of something else too.
    """
    having = [
        op for op in module.walk() if symbol_of(op) is not None and not isinstance(op, FuncOp)
    ]
    named = {str(symbol_of(op)): f"s{i}" for i, op in enumerate(having) if op.parent_op() is module}
    name_others(module, named)
    for i, op in enumerate(having):
        op.properties[SYMBOL] = StringAttr(f"s{i}")


def _renamed(attribute: Attribute, names: Mapping[str, str]) -> Attribute:
    if isinstance(attribute, ArrayAttr):
        listed = cast("ArrayAttr[Attribute]", attribute).data
        return ArrayAttr(_renamed(each, names) for each in listed)
    if not isinstance(attribute, SymbolRefAttr):
        return attribute
    return SymbolRefAttr(names.get(attribute.string_value(), attribute.string_value()))
