"""Figures of matplotlib, which is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...ir.support.errors import InputError
from ...ir.support.whole_file import whole_file


def new_figure(**options: Any) -> Any:
    """A figure of matplotlib, which needs no window. Raises InputError if it is not installed."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError(
            "a picture needs matplotlib, which is not installed: pip install 'abele[plot]'"
        ) from None
    return Figure(**options)


def write_figure(path: Path, figure: Any) -> None:
    """Write a figure as PNG. Raises InputError."""
    try:
        with whole_file(path) as stream:
            figure.savefig(stream, format="png", dpi=120)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
