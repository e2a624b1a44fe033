"""Compares predicted cycles with measurements on real chips."""

from __future__ import annotations

import json
from pathlib import Path

from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ...driver.files import check_files
from ...views.progress import progress
from ...views.terminal import console
from ..named import names_in
from .cases import Network
from .predict import by_family, predictions
from .report import family_table, figures, row_table, skipped_table
from .rows import CALIBRATION, NETWORKS, read_rows


def fidelity(
    csv: Path | None = None,
    rows: bool = False,
    networks: str | None = None,
    report: Path | None = None,
) -> None:
    """Print the errors of predictions by family.

    Raises InputError if the measurements cannot be read or the report cannot be written.

    Args:
        csv: the measurements. By default, the calibration.
        rows: whether to print every row.
        networks: names of networks whose published measurements are compared instead, with commas.
        report: the file for all figures.
    """
    if csv is not None and networks is not None:
        raise InputError("both --csv and --networks name measurements; need one of them")
    source = csv or (CALIBRATION if networks is None else NETWORKS)
    check_files({"--csv": source}, {"--json": report})
    measurements, skipped = read_rows(source)
    if networks is not None:
        by_name = [(m.case.name, m) for m in measurements if isinstance(m.case, Network)]
        wanted = names_in("--networks", networks, list(dict(by_name)))
        measurements = [each for name, each in by_name if name in wanted]
        rows = True
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
