"""The symbols that operations of any dialect define and reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from .upstream import ModuleOp

SYMBOL = "sym_name"
"""The property that holds the symbol which an operation defines."""


def symbol_of(op: Operation) -> str | None:
    """The symbol that an operation defines; None if it defines none."""
    symbol = op.properties.get(SYMBOL)
    return symbol.data if isinstance(symbol, StringAttr) else None


def symbols_in(attribute: Attribute | None) -> Iterator[str]:
    """The symbols that an attribute references, itself or in a list."""
    listed = (attribute,)
    if isinstance(attribute, ArrayAttr):
        listed = cast("ArrayAttr[Attribute]", attribute).data
    for each in listed:
        if isinstance(each, SymbolRefAttr):
            yield each.string_value()


def referenced_symbols(op: Operation) -> Iterator[str]:
    """The symbols that an operation references."""
    for attribute in (*op.properties.values(), *op.attributes.values()):
        yield from symbols_in(attribute)


def rename_references(module: ModuleOp, names: Mapping[str, str]) -> None:
    """Rename the symbols that operations reference, in place.

    The operations that define the symbols are not renamed.

    Args:
        names: the new name for each old one.
    """
    for op in module.walk():
        for where in (op.properties, op.attributes):
            for key, attribute in where.items():
                if not names.keys().isdisjoint(symbols_in(attribute)):
                    where[key] = _renamed(attribute, names)


def number_symbols(module: ModuleOp) -> None:
    """Rename all symbols except those of functions to s0, s1, ... in program order, in place.

    Only symbols at the top of the module are referenced. Symbols of nested operations serve as
    labels for people, and may repeat other names.
    """
    definitions = [
        op for op in module.walk() if symbol_of(op) is not None and not isinstance(op, FuncOp)
    ]
    names = {
        str(symbol_of(op)): f"s{i}" for i, op in enumerate(definitions) if op.parent_op() is module
    }
    rename_references(module, names)
    for i, op in enumerate(definitions):
        op.properties[SYMBOL] = StringAttr(f"s{i}")


def _renamed(attribute: Attribute, names: Mapping[str, str]) -> Attribute:
    if isinstance(attribute, ArrayAttr):
        listed = cast("ArrayAttr[Attribute]", attribute).data
        return ArrayAttr(_renamed(each, names) for each in listed)
    if not isinstance(attribute, SymbolRefAttr):
        return attribute
    return SymbolRefAttr(names.get(attribute.string_value(), attribute.string_value()))
