"""The graph in a -symbol.json file of MXNet: nodes with their line, attributes as text, heads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ....ir.support.errors import InputError
from ....ir.support.limits import INLINED_NODES
from ..files_beside import read_regular

MOST_BYTES = 1 << 27
"""The most bytes of a graph. Assumed: published graphs have at most 1 MB."""

VARIABLE = "null"
"""The operator of inputs and weights."""

SPELLINGS = ("attrs", "attr", "param")
"""What versions of MXNet have called the attributes of a node. Old ones have two of them: those of
the operator, and those that users add.
"""

OUTER = re.compile(r"__(\w+)__|(?:.*_)?(lr_mult|wd_mult|ctx_group|init|force_mirroring)")
"""The attributes that say nothing of what an operator computes."""


GAP = re.compile(r"[\s,]*")
"""What stands between two nodes."""


@dataclass(frozen=True)
class SymbolNode:
    """A node of a graph.

    Attributes:
        inputs: the index of an earlier node, and which of its outputs, for each operand.
        attributes: as text.
        line: where it begins; 0 if that is not known.
    """

    name: str
    operator: str
    inputs: Sequence[tuple[int, int]]
    attributes: Mapping[str, str]
    line: int

    def hidden(self, name: str) -> str:
        """An attribute that users add, with or without underscores; "" if there is none."""
        return self.attributes.get(f"__{name}__", self.attributes.get(name, ""))


@dataclass(frozen=True)
class Symbol:
    """A graph.

    Attributes:
        heads: the nodes and outputs that it returns.
    """

    nodes: Sequence[SymbolNode]
    heads: Sequence[tuple[int, int]]


def read_symbol(path: Path, place: str) -> Symbol:
    """The graph of a file. Raises InputError.

    Args:
        place: the file in messages.
    """
    data = read_regular(path, place)
    if len(data) > MOST_BYTES:
        raise InputError(f"{place}: {len(data):,} bytes; at most {MOST_BYTES:,} are read")
    try:
        text = data.decode()
        tree: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: no graph of MXNet: {error}") from None
    try:
        return _symbol(tree, _lines(text, tree), place)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{place}: no graph of MXNet: {str(error)[:200]}") from None


def _lines(text: str, tree: Any) -> list[int]:
    """The line of each node; nothing if the nodes are not found in the text."""
    begin = re.search(r'"nodes"\s*:\s*\[', text)
    decoder, found, nodes = json.JSONDecoder(), list[int](), list[Any]()
    at = begin.end() if begin else len(text)
    line, counted = 1, 0
    while True:
        more = GAP.match(text, at)
        assert more is not None, "the pattern matches nothing, too"
        at = more.end()
        if at >= len(text) or text[at] != "{":
            break
        line, counted = line + text.count("\n", counted, at), at
        node, at = decoder.raw_decode(text, at)
        found.append(line)
        nodes.append(node)
    return found if isinstance(tree, dict) and tree.get("nodes") == nodes else []


def _symbol(tree: Any, lines: Sequence[int], place: str) -> Symbol:
    given = tree["nodes"]
    if not isinstance(given, list) or not given:
        raise ValueError("no nodes")
    count = len(cast("list[Any]", given))
    if count > INLINED_NODES.most:
        raise InputError(f"{place}: {INLINED_NODES.refusal(f'{count} nodes')}")
    nodes: list[SymbolNode] = []
    names: set[str] = set()
    for i, each in enumerate(cast("list[Any]", given)):
        node = _node(each, i, lines[i] if lines else 0)
        if node.name in names and node.operator == VARIABLE:
            raise ValueError(f"two nodes {node.name[:60]!r}")
        names.add(node.name)
        nodes.append(node)
    heads = [_entry(each, len(nodes), "heads") for each in tree["heads"]]
    if not heads:
        raise ValueError("no heads")
    return Symbol(nodes, heads)


def _node(tree: Any, index: int, line: int) -> SymbolNode:
    name, operator = tree["name"], tree["op"]
    what = f"node {index}" + (f", line {line}" if line else "")
    if not isinstance(name, str) or not isinstance(operator, str) or not operator:
        raise ValueError(f"{what}: its name is {str(name)[:60]!r}, its op {str(operator)[:60]!r}")
    if not _is_text(name):
        raise ValueError(f"{what}: its name {name[:60]!r} is no text in UTF-8")
    attributes: dict[str, str] = {}
    for spelling in reversed(SPELLINGS):
        held: Any = tree.get(spelling) or {}
        if not isinstance(held, dict):
            raise ValueError(f"{what}: {spelling} is {str(held)[:60]!r}; need names with texts")
        held = cast("dict[Any, Any]", held)
        if not all(isinstance(each, str) for pair in held.items() for each in pair):
            raise ValueError(f"{what}: {spelling} has values that are no texts")
        attributes |= held
    inputs = [_entry(each, index, what) for each in tree["inputs"]]
    return SymbolNode(name, operator, inputs, attributes, line)


def _is_text(name: str) -> bool:
    """Whether a name can be written. Escapes of JSON may make halves of characters."""
    return all(not "\ud800" <= each <= "\udfff" for each in name)


def _entry(tree: Any, limit: int, what: str) -> tuple[int, int]:
    """A node and one of its outputs. Raises ValueError for a node that is not an earlier one."""
    numbers = list(tree)
    if not 2 <= len(numbers) <= 3 or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError(f"{what}: {str(tree)[:60]} is no node and output")
    if numbers[0] >= limit:
        raise ValueError(f"{what}: node {numbers[0]} is no earlier one")
    return numbers[0], numbers[1]
