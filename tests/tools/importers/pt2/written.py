"""Programs that tests write down themselves, as archives of torch.export; no PyTorch is needed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from abele.tools.importers.pt2.schema import DTYPES
from abele.tools.testing.hostile.exported import (
    argument_tree,
    graph_tree,
    higher_tree,
    meta_tree,
    node_tree,
)
from abele.tools.testing.hostile.zips import Member, archive_of

CODES = {dtype: code for code, dtype in DTYPES.items()}

Shape = tuple[int | str, ...]
Typed = tuple[Shape, str]
"""The shape of a tensor, in which a text is a symbol, and the name of its element type."""


def types_of(tensors: Mapping[str, Typed]) -> dict[str, Any]:
    return {name: meta_tree(shape, CODES[np.dtype(d)]) for name, (shape, d) in tensors.items()}


def inner_tree(inputs: Mapping[str, Typed], nodes: Sequence[Any], outputs: Sequence[str]) -> Any:
    """A graph inside a node, as an argument."""
    return graph_tree([*inputs], nodes, outputs, types_of(inputs))


def written(
    inputs: Mapping[str, Typed],
    nodes: Sequence[Any],
    outputs: Sequence[str],
    results: Mapping[str, Typed] | None = None,
    constants: Mapping[str, np.ndarray] | None = None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
) -> bytes:
    """The archive of a program.

    Args:
        inputs: the tensors that a user gives.
        nodes: from `node_tree`.
        results: the types of values, where they matter.
        constants: tensors that the program holds.
        ranges: the least and the greatest value of each symbol.
    """
    held = dict(constants or {})
    tensors = {**inputs, **(results or {})} | {
        name: (array.shape, array.dtype.name) for name, array in held.items()
    }
    whole = graph_tree((*held, *inputs), nodes, outputs, types_of(tensors))
    graph = whole["as_graph"]["graph"]
    signature = {
        "input_specs": [
            {"tensor_constant": {"arg": {"name": name}, "tensor_constant_name": name}}
            for name in held
        ]
        + [{"user_input": {"arg": argument_tree(name)}} for name in inputs],
        "output_specs": [{"user_output": {"arg": argument_tree(name)}} for name in outputs],
    }
    program = {
        "graph_module": {"graph": graph, "signature": signature, "module_call_graph": []},
        "range_constraints": {
            name: {"min_val": low, "max_val": high} for name, (low, high) in (ranges or {}).items()
        },
        "schema_version": {"major": 8, "minor": 20},
    }
    config = {
        name: {
            "path_name": f"tensor_{i}",
            "use_pickle": False,
            "tensor_meta": meta_tree(array.shape, CODES[array.dtype]),
        }
        for i, (name, array) in enumerate(held.items())
    }
    return archive_of(
        [
            Member("net/archive_format", b"pt2"),
            Member("net/models/model.json", json.dumps(program).encode()),
            Member(
                "net/data/constants/model_constants_config.json",
                json.dumps({"config": config}).encode(),
            ),
            *(
                Member(f"net/data/constants/tensor_{i}", array.tobytes())
                for i, array in enumerate(held.values())
            ),
        ]
    )


__all__ = ["higher_tree", "inner_tree", "node_tree", "written"]
