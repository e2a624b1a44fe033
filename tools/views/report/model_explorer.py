"""The operations of a program as a graph for Model Explorer, with their costs as node data.

Source: google-ai-edge/model-explorer, wiki, "Develop adapter extension" and "User guide: custom
node data": nodes with incoming edges and attributes, and values by node.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .collect import Report
from .folder import rows_of

GRAPH = "model_explorer.json"

COSTS = {
    "cycles": "model_explorer_cycles.json",
    "peak_bytes": "model_explorer_bytes.json",
    "utilisation": "model_explorer_utilisation.json",
}
"""For each figure of operations, the file of its node data."""

SHOWN = ("kind", "phase", "line", "cycles", "compute_cycles", "exchange_cycles", "exchange_bytes")
MORE = ("utilisation", "limited_by", "plan", "runner_up", "resident_bytes", "peak_bytes")
"""Columns that a node shows as its attributes."""

GRADIENT = [{"stop": 0, "bgColor": "#f1efe9"}, {"stop": 1, "bgColor": "#2f8663"}]


def explorer_files(report: Report) -> dict[str, str]:
    """The texts of all files by name."""
    operations = rows_of(report.tables["operations"])
    name = str(report.program["name"])
    files = {GRAPH: _text(_graph(name, operations, report))}
    for figure, file in COSTS.items():
        values = {
            str(row["operation"]): {"value": row[figure]}
            for row in operations
            if row[figure] is not None
        }
        if values:
            files[file] = _text({name: {"results": values, "gradient": GRADIENT}})
    return files


def _text(value: object) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _graph(name: str, operations: list[dict[str, Any]], report: Report) -> dict[str, Any]:
    incoming: dict[int, list[dict[str, Any]]] = {}
    outputs: dict[tuple[int, int], int] = {}
    counts: dict[int, int] = {}
    variables = report.tables["variables"]["name"]
    for row in rows_of(report.tables["links"]):
        key = row["source"], row["variable"]
        if key not in outputs:
            outputs[key] = counts.get(row["source"], 0)
            counts[row["source"]] = outputs[key] + 1
        into = incoming.setdefault(row["destination"], [])
        into.append(
            {
                "sourceNodeId": str(row["source"]),
                "sourceNodeOutputId": str(outputs[key]),
                "targetNodeInputId": str(len(into)),
            }
        )
    made: dict[int, list[dict[str, Any]]] = {}
    for (source, variable), output in outputs.items():
        attrs = [{"key": "variable", "value": variables[variable]}]
        made.setdefault(source, []).append({"id": str(output), "attrs": attrs})
    nodes = [
        _node(row, incoming.get(row["operation"], []), made.get(row["operation"], []))
        for row in operations
    ]
    return {"label": name, "graphs": [{"id": name, "nodes": nodes}]}


def _node(
    row: Mapping[str, Any], incoming: list[dict[str, Any]], outputs: list[dict[str, Any]]
) -> dict[str, Any]:
    layer = row["layer"].strip("/")
    return {
        "id": str(row["operation"]),
        "label": row["name"].rpartition("/")[2],
        # Layers of a framework are folded; a name without a layer is at the top.
        "namespace": "" if layer == row["name"] else layer,
        "attrs": [
            {"key": key.replace("_", " "), "value": str(row[key])}
            for key in (*SHOWN, *MORE)
            if row[key] not in (None, "")
        ],
        "incomingEdges": incoming,
        "outputsMetadata": outputs,
    }
