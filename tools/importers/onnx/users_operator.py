"""Runs the importer of a user's operator, or builds the user's operation that a node calls. Errors
name the node and the line in the user's file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary, walk_tb
from typing import cast

import onnx
from xdsl.ir import SSAValue

from ....dialects.model_calls import ModelCall, called_operation
from ....ir.rules.values import Plain
from ....ir.support.errors import InputError, one_line
from ..building import Known
from .node import AttributeType, Importer, Node, Results, kind_name

READERS: Mapping[int, Callable[[Node, str], Plain]] = {
    AttributeType.INT: Node.integer,
    AttributeType.FLOAT: Node.number,
    AttributeType.STRING: Node.text,
    AttributeType.INTS: lambda node, name: tuple(node.integers(name)),
    AttributeType.FLOATS: lambda node, name: tuple(node.numbers(name)),
    AttributeType.STRINGS: lambda node, name: tuple(node.texts(name)),
}
"""What reads an attribute, by its kind."""


def called_results(call: ModelCall, node: Node) -> Results:
    """The results of the user's operation that a node calls.

    Raises InputError for operands and attributes that do not fit.
    """
    for index in range(node.operand_count):
        if not node.has(index):
            raise node.bad(f"operand {index} is left out; {call.op.name} takes all of its operands")
    given = {name: _plain(node, each) for name, each in node.attributes.items()}
    operands = [node[index] for index in range(node.operand_count)]
    with node.checked():
        return list(node.append(called_operation(call, operands, given)).results)


def _plain(node: Node, attribute: onnx.AttributeProto) -> Plain:
    """The value of an attribute."""
    reader = READERS.get(attribute.type)
    if reader is None:
        kind = kind_name(attribute.type)
        raise node.bad(f"attribute {attribute.name} is a {kind}; need numbers or a text")
    return reader(node, attribute.name)


def users_results(importer: Importer, node: Node) -> Results:
    """The results of a user's importer for a node.

    Raises InputError for any exception of the importer but MemoryError, and for a return value that
    is not a result. The message names the node, and the line of the user's file.
    """
    try:
        results = importer(node)
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, InputError) and str(error).startswith(node.graph.place):
            raise
        raise node.bad(_described(error)) from error
    if not _are_results(results):
        raise node.bad(
            f"{_place(importer)} returned {_words(results)}; need a result, as node.add or "
            "node.known returns it, or a list of results"
        )
    return results


def _described(error: Exception) -> str:
    """An error with its line in the user's file, and the calls that led there."""
    calls = _users_calls(error)
    if not calls:
        return one_line(error)
    first, *outer = [f"{call.filename}:{call.lineno}" for call in reversed(calls)]
    return f"{first}: {one_line(error)}" + "".join(f"\n  called at {each}" for each in outer)


def _users_calls(error: Exception) -> list[FrameSummary]:
    """The calls in the importer's file and in files beside it, from the outermost.

    The first frame is the one that has called the importer.
    """
    calls = list(StackSummary.extract(list(walk_tb(error.__traceback__))[1:], lookup_lines=False))
    folder = Path(calls[0].filename).parent if calls else None
    return [call for call in calls if Path(call.filename).parent == folder]


def _are_results(results: object) -> bool:
    if isinstance(results, SSAValue | Known):
        return True
    if not isinstance(results, Sequence) or isinstance(results, str) or not results:
        return False
    return all(isinstance(e, SSAValue | Known | str) for e in cast(Sequence[object], results))


def _words(results: object) -> str:
    if isinstance(results, list | tuple):
        values = cast("Sequence[object]", results)
        kinds = dict.fromkeys(type(each).__name__ for each in values)
        return f"a {type(values).__name__} of {', '.join(kinds) or 'nothing'}"
    return "None" if results is None else f"a value of type {type(results).__name__}"


def _place(importer: Importer) -> str:
    """The importer's name, with its line where it is a plain function."""
    code = getattr(importer, "__code__", None)
    name = getattr(importer, "__name__", type(importer).__name__)
    return name if code is None else f"{os.fspath(code.co_filename)}:{code.co_firstlineno}: {name}"
