"""Compares predicted cycles with measurements on real chips."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ...driver.files import check_files
from ...views.progress import progress
from ...views.terminal import console
from ..named import names_in
from .cases import Network
from .measured import Skipped
from .pods.price import Priced, price_row
from .pods.report import left_out, pods_figures, pods_table
from .pods.rows import PODS, Row, is_of_pods, read_pods
from .predict import by_family, predictions, same_decisions
from .report import decisions_line, family_table, figures, row_table, skipped_table
from .rows import CALIBRATION, NETWORKS, SPEED_UPS, read_rows
from .units import Unclear


def fidelity(
    csv: Path | None = None,
    rows: bool = False,
    networks: str | None = None,
    report: Path | None = None,
    timetables: bool = False,
) -> None:
    """Print the errors of predictions by family.

    Steps of training on pods are compared in a table of their own, without errors.

    Raises InputError if the measurements cannot be read or the report cannot be written.

    Args:
        csv: the measurements. By default, the calibration.
        rows: whether to print every row.
        networks: names of networks, or of steps on pods, whose published measurements are compared
            instead, with commas; with measurements of steps on pods, those of their names.
        report: the file for all figures.
        timetables: whether timetables price exchanges, where the messages of a row are known.
    """
    source = csv or (CALIBRATION if networks is None else NETWORKS)
    check_files({"--csv": source}, {"--json": report})
    if csv is not None and _is_of_pods(csv):
        _of_pods(read_pods(csv), networks, report)
        return
    if csv is not None and networks is not None:
        raise InputError("both --csv and --networks name measurements; need one of them")
    measurements, skipped = read_rows(source)
    if csv is None and networks is None:
        further = read_rows(SPEED_UPS)
        measurements, skipped = measurements + further[0], skipped + further[1]
    if networks is not None:
        by_name = [(m.case.name, m) for m in measurements if isinstance(m.case, Network)]
        on_pods = read_pods(PODS)
        known = [*dict(by_name), *(each.name for each in on_pods)]
        wanted = names_in("--networks", networks, known)
        if any(each.name in wanted for each in on_pods):
            if not {each.name for each in on_pods} >= set(wanted):
                raise InputError(
                    f"--networks {networks}: networks on a chip and on pods are compared apart; "
                    "need one of the two"
                )
            _of_pods(on_pods, networks, report)
            return
        measurements = [each for name, each in by_name if name in wanted]
        rows = True
    with progress() as on_step:
        found, unpriced = predictions(
            measurements, lambda name: on_step(f"price {name}"), timetables=timetables
        )
    families = by_family(found)
    show = console()
    if rows and found:
        show.print(row_table(found))
    show.print(family_table(families))
    same, told = same_decisions(found)
    if told:
        show.print(decisions_line(same, told), highlight=False)
    if skipped or unpriced:
        show.print(skipped_table([*skipped, *unpriced]))
    if report is not None:
        with whole_file(report) as stream:
            stream.write(json.dumps(figures(families, (same, told)), indent=2).encode() + b"\n")


def _is_of_pods(path: Path) -> bool:
    try:
        return is_of_pods(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _of_pods(rows: Sequence[Row], names: str | None, report: Path | None) -> None:
    """Print the prices of steps on pods beside their measurements.

    Args:
        names: of the rows, with commas; all of them by default.
    """
    wanted = [each.name for each in rows]
    if names is not None:
        wanted = names_in("--networks", names, wanted)
    found: list[Priced] = []
    skipped: list[Skipped] = []
    with progress() as on_step:
        for row in (each for each in rows if each.name in wanted):
            on_step(f"price {row.name}")
            try:
                found.append(price_row(row))
            except Unclear as error:
                skipped.append(Skipped(row.name, row.model, str(error)))
    show = console()
    if found:
        show.print(pods_table(found))
        for line in left_out(found):
            show.print(line, highlight=False)
    if skipped:
        show.print(skipped_table(skipped))
    if report is not None:
        with whole_file(report) as stream:
            stream.write(json.dumps(pods_figures(found), indent=2).encode() + b"\n")
