"""Builds the user's operation that a custom operator of PyTorch names."""

from __future__ import annotations

from typing import Any, cast

from xdsl.ir import SSAValue

from ....dialects.model_calls import ModelCall, called_operation, model_call
from ....ir.rules.values import Plain
from .aten_node import AtenNode, Importer, Results, as_list, is_value, kind_of


def users_importer(operator: str) -> Importer | None:
    """What reads an operator such as "mine.softsign"; None if no extension knows the name."""
    call = model_call(operator)
    if call is None:
        # The part behind the second dot is an overload.
        namespace, _, name = operator.partition(".")
        call = model_call(f"{namespace}.{name.partition('.')[0]}")
    return None if call is None else lambda node: called_results(call, node)


def called_results(call: ModelCall, node: AtenNode) -> Results:
    """The results of the user's operation that a node calls: its tensors are the operands, in
    order, and its other arguments are attributes.

    Raises InputError for operands and attributes that do not fit.
    """
    for length in node.lengths_read():
        raise node.size_refused("the size of an argument", length)
    operands: list[SSAValue] = []
    given: dict[str, Plain] = {}
    for name in node.call.arguments:
        value = node.get(name, None)
        if is_value(value):
            operands.append(node[name])
        elif value is not None:
            given[name] = _plain(node, name, value)
    op = called_operation(call, operands, given)
    return list(node.append(op).results)


def _plain(node: AtenNode, name: str, value: Any) -> Plain:
    """An argument that is not a tensor."""
    if all(isinstance(each, bool | int | float | str) for each in as_list(value)):
        return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
    raise node.bad(f"argument {name} is {kind_of(value)}; need a tensor, numbers or a text")
