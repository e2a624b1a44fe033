"""Curves of training: a table of CSV, or a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...ir.support.errors import InputError
from ..driver.files import write_text
from ..driver.trainer import Row
from .figure import new_figure, write_figure

SUFFIXES = (".csv", ".png")
"""The suffixes of the files that a curve can be written to."""


def check_curve(path: Path) -> None:
    """Raise InputError unless a curve can be written to a file of this name."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: unknown kind of curve; need {' or '.join(SUFFIXES)}")
    if path.suffix == ".png":
        new_figure(figsize=(1, 1))


def write_curve(path: Path, rows: Sequence[Row]) -> None:
    """Write the known figures of each step, in the format of the path's suffix. Raises
    InputError."""
    if path.suffix == ".png":
        _draw(path, rows)
    else:
        write_text(path, _table(rows))


def _columns(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """The columns that have a value for some step, by name."""
    figures = [row.figures for row in rows]
    columns: dict[str, list[float | None]] = {
        "step": [row.step for row in rows],
        "loss": [row.loss for row in rows],
        "learning_rate": [row.rate for row in rows],
        "loss_scale": [row.scale for row in rows],
        "large_gradients": [row.large for row in rows],
        "validation_loss": [None if each is None else each.loss for each in figures],
        "accuracy": [None if each is None else each.accuracy for each in figures],
        "auc": [None if each is None else each.auc for each in figures],
    }
    return {
        name: column
        for name, column in columns.items()
        if name in ("step", "loss") or any(each is not None for each in column)
    }


def _table(rows: Sequence[Row]) -> str:
    columns = _columns(rows)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(["" if each is None else repr(each) for each in row])
    return stream.getvalue()


def _draw(path: Path, rows: Sequence[Row]) -> None:
    """Draw losses against steps, and below them accuracy and AUC."""
    columns = _columns(rows)
    shares = [name for name in ("accuracy", "auc") if name in columns]
    figure = new_figure(figsize=(9, 6 if shares else 4), layout="constrained")
    panels: list[Any] = list(figure.subplots(1 + bool(shares), 1, sharex=True, squeeze=False)[:, 0])
    panels[0].set_ylabel("loss")
    for name, style in (("loss", {"color": "tab:blue"}), ("validation_loss", {"color": "tab:red"})):
        if name in columns:
            steps, values = _points(columns, name)
            panels[0].plot(steps, values, label=name.replace("_", " "), linewidth=1, **style)
    for name, colour in zip(shares, ("tab:green", "tab:purple")):
        steps, values = _points(columns, name)
        panels[1].plot(steps, values, label=name, color=colour, linewidth=1)
    panels[-1].set_xlabel("step")
    for axes in panels:
        axes.grid(visible=True, alpha=0.2)
        axes.legend()
    write_figure(path, figure)


def _points(
    columns: dict[str, list[float | None]], name: str
) -> tuple[list[float | None], list[float]]:
    """The steps for which a column has a value, and these values."""
    pairs = [(s, v) for s, v in zip(columns["step"], columns[name], strict=True) if v is not None]
    return [step for step, _ in pairs], [value for _, value in pairs]
