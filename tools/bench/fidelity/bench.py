"""Compares predicted cycles with measurements on real chips."""

from __future__ import annotations

import json
from pathlib import Path

from ....ir.support.whole_file import whole_file
from ...driver.files import check_files
from ...views.progress import progress
from ...views.terminal import console
from .predict import by_family, predictions
from .report import family_table, figures, row_table, skipped_table
from .rows import CALIBRATION, read_rows


def fidelity(csv: Path = CALIBRATION, rows: bool = False, report: Path | None = None) -> None:
    """Print the errors of predictions by family.

    Raises InputError if the measurements cannot be read or the report cannot be written.

    Args:
        csv: the measurements.
        rows: whether to print every row.
        report: the file for all figures.
    """
    check_files({"--csv": csv}, {"--json": report})
    measurements, skipped = read_rows(csv)
    with progress() as on_step:
        found, unpriced = predictions(measurements, lambda name: on_step(f"price {name}"))
    families = by_family(found)
    show = console()
    if rows and found:
        show.print(row_table(found))
    show.print(family_table(families))
    if skipped or unpriced:
        show.print(skipped_table([*skipped, *unpriced]))
    if report is not None:
        with whole_file(report) as stream:
            stream.write(json.dumps(figures(families), indent=2).encode() + b"\n")
