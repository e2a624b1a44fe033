"""The lines that the command prints about a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...driver.energy import energy_text
from ...driver.figures import items_text
from .collect import Report
from .compare import Comparison


def report_lines(report: Report, folder: Path | None) -> Iterator[str]:
    """A few lines: where the report is, and its first figures."""
    program, operations = report.program, report.tables["operations"]
    where = "" if folder is None else f" -> {folder}"
    yield f"{program['name']} on {program['target']['name']}{where}"
    if not program["planned"]:
        size = sum(np.asarray(report.tables["variables"]["bytes"]).tolist())
        yield f"not planned: {len(operations['name']):,} operations, tensors of {size:,} bytes"
        return
    milliseconds = 1e3 * program["seconds_of_a_run"]
    yield (
        f"{program['cycles']:,} cycles ({milliseconds:.3g} ms): compute "
        f"{program['compute_cycles']:,}, exchange {program['exchange_cycles']:,}, sync "
        f"{program['sync_cycles']:,}"
    )
    yield (
        f"fullest tile {program['fullest_tile']}: {program['max_tile_bytes']:,} of "
        f"{program['bytes_per_tile']:,} bytes; " + _fit(program)
    )
    yield f"items: {items_text(program)}"
    if line := energy_text(program):
        yield line
    yield from _chip_lines(report)
    cycles = np.asarray(operations["cycles"])
    for k in np.argsort(-cycles, kind="stable")[:3]:
        share = cycles[k] / max(program["cycles"], 1)
        yield f"{share:6.1%}  {operations['name'][k]}"
    for view, why in report.absent.items():
        yield f"{view}: {why}"


def _chip_lines(report: Report) -> Iterator[str]:
    """What moves between chips, and how long they wait; nothing for one chip."""
    program, chips, links = report.program, report.tables["chips"], report.tables["chip_links"]
    count = len(chips["chip"])
    if count < 2:
        return
    waiting = float(np.mean(np.asarray(chips["waiting_cycles"]))) / max(program["cycles"], 1)
    line = f"{count} chips, of which the mean one waits for {waiting:.0%} of the run; "
    moved = program["crossing_bytes"]
    if not moved:
        yield line + "nothing moves between them"
        return
    busiest = int(np.argmax(np.asarray(links["busy_cycles"])))
    yield (
        f"{line}{moved:,} bytes between them; link {links['name'][busiest]} carries "
        f"{links['bytes'][busiest]:,} and is busy for {links['share'][busiest]:.1%} of the run"
    )


def _fit(program: Mapping[str, Any]) -> str:
    """Whether a program fits, in one statement."""
    if not program["fits"]:
        return f"it does not fit: {program['shortage']}"
    lacks = program.get("code_shortage", 0)
    if lacks:
        return f"its variables fit, but by the target's rules a tile lacks {lacks:,} bytes for code"
    return "it fits"


def comparison_lines(found: Comparison | None) -> Iterator[str]:
    """A few lines about a comparison: the cycles, and the operations that differ most."""
    if found is None:
        return
    (_, now, was), *_ = found.figures
    yield f"beside {found.baseline['name']}: {now - was:+,} cycles ({now / max(was, 1) - 1:+.1%})"
    if found.note:
        yield found.note
    for row in [row for row in found.rows if row["differs"]][:3]:
        plan = "" if row["split"] == row["was_split"] else ", another plan"
        yield f"{row['cycles'] - row['was_cycles']:+12,}  {row['name']}{plan}"
