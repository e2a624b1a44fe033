"""What the command says about a report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .collect import Report


def report_lines(report: Report, folder: Path) -> Iterator[str]:
    """A few lines: where the report is, and its first figures."""
    program, operations = report.program, report.tables["operations"]
    yield f"{program['name']} on {program['target']['name']} -> {folder}"
    milliseconds = 1e3 * program["seconds_of_a_run"]
    yield (
        f"{program['cycles']:,} cycles ({milliseconds:.3g} ms): compute "
        f"{program['compute_cycles']:,}, exchange {program['exchange_cycles']:,}, sync "
        f"{program['sync_cycles']:,}"
    )
    fits = "fits" if program["fits"] else f"{program['over_bytes']:,} bytes too large"
    yield (
        f"fullest tile {program['fullest_tile']}: {program['max_tile_bytes']:,} of "
        f"{program['bytes_per_tile']:,} bytes, {fits}"
    )
    cycles = np.asarray(operations["cycles"])
    for k in np.argsort(-cycles, kind="stable")[:3]:
        share = cycles[k] / max(program["cycles"], 1)
        yield f"{share:6.1%}  {operations['name'][k]}"
    for view, why in report.absent.items():
        yield f"{view}: {why}"
