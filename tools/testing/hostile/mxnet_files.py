"""Files of MXNet: graphs as JSON, and arrays in the binary format of .params."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...importers.mxnet.params import DTYPES, MAGIC, V2, V3

Array = np.ndarray[Any, Any]

CODES = {np.dtype(each).newbyteorder("="): code for code, each in DTYPES.items()}

OLDEST = 0
"""Stands for arrays that begin with their number of axes."""


def array_bytes(array: Array, version: int = V2) -> bytes:
    """An array as a .params file has it."""
    begin = struct.pack("<I", version) if version != OLDEST else b""
    if version in (V2, V3):
        begin += struct.pack("<i", 0)
    width = "I" if version == OLDEST else "q"
    shape = struct.pack(
        f"<{'I' if version == OLDEST else 'i'}{array.ndim}{width}", array.ndim, *array.shape
    )
    where = struct.pack("<iii", 1, 0, CODES[array.dtype])
    return begin + shape + where + np.ascontiguousarray(array).tobytes()


def params_bytes(arrays: Mapping[str, Array], version: int = V2) -> bytes:
    """A .params file.

    Args:
        arrays: by name, with arg: or aux: in front.
    """
    made = [array_bytes(each, version) for each in arrays.values()]
    names = [struct.pack("<Q", len(each.encode())) + each.encode() for each in arrays]
    counts = struct.pack("<QQQ", MAGIC, 0, len(made)), struct.pack("<Q", len(names))
    return counts[0] + b"".join(made) + counts[1] + b"".join(names)


Node = tuple[str, str, Sequence[str], Mapping[str, Any]]
"""A node: its operator, its name, the names of its operands, and its attributes."""


def symbol_text(nodes: Sequence[Node], heads: Sequence[str], spelling: str = "attrs") -> str:
    """A graph, with one line for each node.

    Args:
        nodes: those that compute; a name that no earlier one has is a variable.
        heads: the names of the nodes that the graph returns.
        spelling: what the attributes are called.
    """
    places: dict[str, int] = {}
    lines: list[str] = []

    def add(operator: str, name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> None:
        tree: dict[str, Any] = {"op": operator, "name": name}
        if attributes:
            tree[spelling] = {key: str(value) for key, value in attributes.items()}
        tree["inputs"] = [
            [places[each.partition("#")[0]], int(each.partition("#")[2] or 0), 0] for each in inputs
        ]
        places[name] = len(lines)
        lines.append(json.dumps(tree))

    for operator, name, inputs, attributes in nodes:
        if operator == "null":
            add(operator, name, (), attributes)
            continue
        for each in inputs:
            if each.partition("#")[0] not in places:
                add("null", each, (), {})
        add(operator, name, inputs, attributes)
    ends = ", ".join(f"[{places[name]}, 0, 0]" for name in heads)
    arguments = [i for i, line in enumerate(lines) if '"op": "null"' in line]
    body = ",\n    ".join(lines)
    return (
        f'{{\n  "nodes": [\n    {body}\n  ],\n  "arg_nodes": {arguments},\n'
        f'  "heads": [{ends}],\n  "attrs": {{"mxnet_version": ["int", 10700]}}\n}}\n'
    )
