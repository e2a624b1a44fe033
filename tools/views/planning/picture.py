"""Pictures of an operator's plans: cycles against bytes of a tile."""

from __future__ import annotations

from pathlib import Path

from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ..figure import new_figure
from .figures import split_text
from .plan import TradeOffs


def needs_matplotlib() -> None:
    """Raise InputError if matplotlib is not installed."""
    new_figure()


def draw_trade_offs(found: TradeOffs, path: Path) -> None:
    """Write the picture of an operator's plans as a PNG file. Raises InputError.

    Plots cycles against resident and against temporary bytes of the fullest tile. Grey: all priced
    plans. Blue: plans that no other plan beats. Red: the chosen plan.
    """
    figure = new_figure(figsize=(11, 5), layout="constrained")
    dims = found.question.problem.structure.space.dims
    panels = ("resident_bytes", "temporary_bytes")
    front = found.pareto
    for axes, name in zip(figure.subplots(1, len(panels), sharey=True), panels, strict=True):
        for choices, style in (
            (found.choices, {"color": "0.75", "s": 16, "label": "priced"}),
            (front, {"color": "tab:blue", "s": 28, "label": "no other beats it"}),
            ((found.chosen,), {"color": "tab:red", "s": 60, "marker": "x", "label": "chosen"}),
        ):
            axes.scatter([getattr(c, name) for c in choices], [c.cycles for c in choices], **style)
        axes.set_xlabel(f"{name.replace('_', ' ')} of the fullest tile")
        axes.set_yscale("log")
        sizes = [getattr(c, name) for c in found.choices]
        # Zero bytes have a place, too: left of the smallest number.
        least = min((n for n in sizes if n), default=1)
        axes.set_xscale("symlog", base=2, linthresh=least / 2)
        axes.set_xlim(-least / 16, 1.3 * max(*sizes, 1))
        axes.grid(visible=True, which="both", alpha=0.2)
    left = figure.axes[0]
    left.set_ylabel("cycles")
    left.legend()
    figure.suptitle(f"{found.node}: {split_text(dims, found.chosen.plan)}", parse_math=False)
    try:
        with whole_file(path) as stream:
            figure.savefig(stream, format="png", dpi=120)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
