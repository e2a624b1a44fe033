"""The page of a report: one file, which opens without a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...driver.page.assets import Assets
from ...driver.shown_text import shown
from .blocks import repeated_blocks
from .chip_boxes import chip_boxes
from .chips import shown_chips
from .collect import Report
from .columns import Table
from .folder import plain_columns
from .graph_layout import graph_of
from .warnings import warnings_of

PAGE = "index.html"

MARK = "<!-- abele: the report of a program -->"
"""The comment at the beginning of every page."""

SCRIPTS = (
    "draw.js",
    "report.js",
    "view_summary.js",
    "view_memory.js",
    "view_operations.js",
    "view_graph.js",
    "view_execution.js",
    "view_chips.js",
    "view_program.js",
    "view_provenance.js",
    "view_compare.js",
    "view_health.js",
    "start.js",
)

ASSETS = Assets(__package__ or "", MARK, "report.html", "report.css", SCRIPTS)

LEFT_OUT = (
    *("superstep_tiles", "layout", "alternatives", "links", "crossings", "placements"),
    "chip_executions",
)
"""Tables that the page has in another form, or does not need."""

MOST_CELLS = 1_500_000
"""The most supersteps x tiles in a page. Assumed: some 3 MB. For more, the page has one tile in N,
and names N.
"""


def page_text(
    report: Report,
    compared: Mapping[str, Any] | None = None,
    links: Mapping[str, str] | None = None,
    health: Mapping[str, Any] | None = None,
) -> str:
    """The text of a page.

    Args:
        compared: the comparison with a baseline.
        links: other pages by name; the {} in them stands for a node.
        health: the health of a training run.
    """
    program, tables = dict(report.program), report.tables
    data = {
        "program": program,
        "tables": {
            name: plain_columns(found) for name, found in tables.items() if name not in LEFT_OUT
        },
        "absent": dict(report.absent),
        "alternatives": _alternatives(tables["alternatives"]),
        "work": _work(report),
        "chips": shown_chips(tables, program["target"]["chips"]),
        "lanes": [each.to_dict() for each in report.lanes],
        "boxes": chip_boxes(report).to_dict() if program["target"]["chips"] > 1 else None,
        "warnings": warnings_of(report),
        "graph": graph_of(
            *(tables[name] for name in ("operations", "links", "parts", "variables"))
        ),
        "blocks": repeated_blocks(tables["operations"], tables["plans"]),
        "sources": {line: shown(text) for line, text in report.sources.items()},
        "compared": compared,
        "health": health,
        "links": dict(links or {}),
    }
    return ASSETS.page(f"{program['name']}: report", data)


def _work(report: Report) -> dict[str, Any]:
    """Cycles of each superstep and tile, row by row; for large programs, of one tile in `every`."""
    rows = report.tables["superstep_tiles"]
    tiles, steps = int(report.program["tiles"]), len(report.tables["supersteps"]["name"])
    every = max(-(-tiles * steps // MOST_CELLS), 1)
    kept = np.arange(0, tiles, every)
    if every > 1:
        critical = np.unique(np.asarray(report.tables["supersteps"]["critical_tile"]))
        kept = np.union1d(kept, critical[:: max(len(critical) // 64, 1)])
    place = np.full(tiles, -1)
    place[kept] = np.arange(len(kept))
    step, tile = np.asarray(rows["superstep"]), np.asarray(rows["tile"])
    here = place[tile] >= 0
    found: dict[str, Any] = {"tiles": kept.tolist(), "every": every}
    for name in ("compute", "exchange"):
        cells = np.zeros((steps, len(kept)), np.int64)
        cells[step[here], place[tile[here]]] = np.asarray(rows[f"{name}_cycles"])[here]
        found[name] = cells.ravel().tolist()
    return found


def _alternatives(found: Table) -> dict[int, list[list[Any]]]:
    """The plans of the dearest operator of each operation: cycles, bytes, split, chosen, best."""
    rows: dict[int, list[list[Any]]] = {}
    columns = plain_columns(found)
    names = ("operation", "cycles", "temporary_bytes", "split", "chosen", "pareto")
    for operation, *row in zip(*(columns[name] for name in names), strict=True):
        rows.setdefault(operation, []).append(row)
    return rows
