"""Figures of matplotlib, which is an extra."""

from __future__ import annotations

from typing import Any

from ...ir.support.errors import InputError


def new_figure(**options: Any) -> Any:
    """A figure of matplotlib, which needs no window. Raises InputError if it is not installed."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError(
            "a picture needs matplotlib, which is not installed: pip install 'abele[plot]'"
        ) from None
    return Figure(**options)
