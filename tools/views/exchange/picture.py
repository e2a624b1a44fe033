"""A picture of an exchange: what each lane carries, cycle by cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..figure import new_figure, write_figure
from .exchanges import Exchange
from .lanes import lanes_picture, used_tiles

COLUMNS = 1600
"""Cycles that are told apart in a row."""


def draw_exchange(exchange: Exchange, path: Path) -> None:
    """Write the picture of an exchange as a PNG file. Raises InputError.

    Each tile is a row. On the left, the lanes out; on the right, the lanes in. The colour of a
    message is its sender, so neighbouring rows of one colour on the right hear one message. White
    is an idle lane. The line marks the bound: where a perfect order would end without latency.
    """
    table = exchange.table
    figure = new_figure(figsize=(13, 7), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    used = used_tiles(table)
    end = max(table.cycles, 1)
    images: list[Any] = []
    for side, (axis, title) in enumerate(zip(axes, ("lanes out", "lanes in"), strict=True)):
        drawn = axis.imshow(
            lanes_picture(table, used, side, COLUMNS),
            aspect="auto",
            interpolation="nearest",
            cmap=_colours(),
            extent=(0, end, len(used), 0),
            vmin=0,
            vmax=max(int(used.max(initial=1)), 1),
        )
        images.append(drawn)
        axis.axvline(table.bound, color="black", linewidth=1, linestyle="--")
        axis.set_title(title, loc="left")
        axis.set_xlabel("cycle")
    ticks = np.unique(np.linspace(0, max(len(used) - 1, 0), 9).astype(np.int64))
    axes[0].set_yticks(ticks + 0.5, [str(used[k]) for k in ticks] if len(used) else [])
    axes[0].set_ylabel("tile")
    figure.colorbar(images[0], ax=axes, label="tile that sends", shrink=0.6)
    times = f"{table.cycles / table.bound:.2f} times the bound" if table.bound else ""
    figure.suptitle(
        f"@{exchange.name}: {table.cycles:,} cycles, {times} of {table.bound:,}", parse_math=False
    )
    write_figure(path, figure)


def _colours() -> object:
    """A map of colours that leaves idle lanes white."""
    from matplotlib import colormaps  # noqa: PLC0415

    return colormaps["turbo"].with_extremes(bad="white")
