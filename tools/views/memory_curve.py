"""The bytes of the fullest tile over time: a table of CSV, or a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ...backends.prices.price import step_prices
from ...backends.timeline import Skipped, timeline
from ...dialects.steps import Superstep
from ...ir.node_names import node_names
from ...ir.upstream import ModuleOp
from ...passes.narrow_stashes import STASH, Stash
from ..driver.executable import MACHINE, Executable
from ..driver.files import write_text
from ..driver.recomputation.record import Recomputed
from ..driver.shown_text import shown
from .figure import new_figure, write_figure
from .planning.columns import Column, csv_text

MOST_EXECUTIONS = 10_000
"""The most executions of supersteps in a curve. It stays level in further iterations of a loop."""

LABELLED = 8
"""The most choices that a picture names: those that save most."""

LABEL = 28
"""The most characters of a name in a picture."""

APART = 0.025
"""The least distance of two names, as a share of the width of a picture."""

KINDS: Mapping[str, Mapping[str, Any]] = {
    "computed again": {"marker": "o", "color": "tab:red"},
    "laid out anew": {"marker": "s", "color": "tab:orange"},
    "kept narrow": {"marker": "v", "color": "tab:green"},
}
"""What a choice does at a moment, and the mark for it."""


@dataclass(frozen=True)
class Moment:
    """One execution of a superstep.

    Attributes:
        step: its name; "" for iterations of a loop, or a call, that are not listed.
        tile: the tile with the most live bytes.
        bytes: these, with those that the target reserves.
        effects: the choices that take effect here, each with a key of KINDS.
    """

    start: int
    cycles: int
    step: str
    tile: int
    bytes: int
    effects: tuple[tuple[Recomputed, str], ...]


@dataclass(frozen=True, eq=False)
class MemoryCurve:
    """The memory of a program over one run.

    Attributes:
        recompute: the option with which it was compiled; "" if nothing is computed again.
        path: of the model.
    """

    recompute: str
    path: str
    moments: tuple[Moment, ...]

    @staticmethod
    def of(exe: Executable, recompute: str = "", kept: Executable | None = None) -> MemoryCurve:
        """The curve of a program.

        Args:
            kept: the same program with nothing computed again.
        """
        module, memory = exe.module_at(MACHINE), exe.memory
        # A function's superstep has a place in memory for each call. The fullest one counts.
        fullest = {each.name: each for each in sorted(memory.steps, key=lambda each: each.bytes)}
        effects = _effects(
            exe.recomputed, module, None if kept is None else kept.module_at(MACHINE)
        )
        advances = {each.step: each.advance for each in step_prices(module, exe.target)}
        found: list[Moment] = []
        for each in timeline(module, advances, exe.target, MOST_EXECUTIONS):
            if isinstance(each, Skipped):
                tile, size = (found[-1].tile, found[-1].bytes) if found else (0, 0)
                found.append(Moment(each.start, each.cycles, "", tile, size, ()))
                continue
            name = each.step.sym_name.data
            most = fullest[name]
            size = most.bytes + exe.target.memory.reserved_bytes
            own = tuple(effects.get(name, ()))
            found.append(Moment(each.start, each.cycles, name, most.tile, size, own))
        # Different chips run different supersteps at a time.
        found.sort(key=lambda each: each.start)
        return MemoryCurve(recompute, exe.path, tuple(found))


def _effects(
    choices: Sequence[Recomputed], module: ModuleOp, kept: ModuleOp | None
) -> dict[str, list[tuple[Recomputed, str]]]:
    """The choices that take effect in each superstep, by its name, each with a key of KINDS.

    A copy of an operation has the names of its original. So a value is computed again wherever its
    name begins anew, but for the first times: as many as there are if it is kept.
    """
    steps = [op for op in module.walk() if isinstance(op, Superstep)]
    names = [_names(step) for step in steps]
    stashes = [_stashed(each) for each in names]
    before = [] if kept is None else [_names(o) for o in kept.walk() if isinstance(o, Superstep)]
    found: dict[str, list[tuple[Recomputed, str]]] = {}
    for choice in choices:
        own = [_places(name, names)[max(len(_places(name, before)), 1) :] for name in choice.nodes]
        own += [_places(name, names) for name in choice.apart]
        anew = [_places(name, names) for name in choice.anew]
        narrow = [_places(Stash.read(each).name, stashes) for each in choice.narrow]
        for kind, places in zip(KINDS, (own, anew, narrow), strict=True):
            for at in sorted(set(chain.from_iterable(places))):
                found.setdefault(steps[at].sym_name.data, []).append((choice, kind))
    return found


def _names(step: Superstep) -> frozenset[str]:
    """The names of the operations in a superstep."""
    return frozenset(name for op in step.body.block.ops for name in node_names(op))


def _stashed(names: frozenset[str]) -> frozenset[str]:
    """The names of operations whose results are made narrow by operations with these names."""
    ends = [n.removesuffix(f"/{STASH}") for n in names if n.endswith(f"/{STASH}")]
    return frozenset(chain(ends, *(each.split("+") for each in ends)))


def _places(name: str, names: Sequence[frozenset[str]]) -> list[int]:
    """The indices of the supersteps in which an operation begins to run.

    An operation of several supersteps begins once, unless something else runs between them.

    Args:
        name: as the pass recompute takes it: of a node, of several as a+b, or NAME:N.
        names: of what runs in each superstep.
    """
    here = [name in own or own.issuperset(name.split("+")) for own in names]
    base, _, number = name.rpartition(":")
    if not any(here) and base and number.isdecimal():
        return _places(base, names)
    return [at for at, is_here in enumerate(here) if is_here and not (at and here[at - 1])]


@dataclass(frozen=True)
class _Row:
    recompute: str
    moment: Moment


COLUMNS: Sequence[Column[_Row]] = (
    Column("recompute", lambda row: shown(row.recompute)),
    Column("start", lambda row: row.moment.start),
    Column("cycles", lambda row: row.moment.cycles),
    Column("superstep", lambda row: shown(row.moment.step)),
    Column("tile", lambda row: row.moment.tile),
    Column("bytes", lambda row: row.moment.bytes),
    Column(
        "effects",
        lambda row: "; ".join(f"{kind}: {shown(c.what)}" for c, kind in row.moment.effects),
    ),
)
"""The columns of the table."""


def write_memory_curves(path: Path, curves: Sequence[MemoryCurve], limit: int) -> None:
    """Write curves, in the format of the path's suffix. Raises InputError.

    Args:
        curves: of the same model; the last one's choices are marked.
        limit: bytes that a tile may hold.
    """
    if path.suffix == ".png":
        _draw(path, curves, limit)
    else:
        rows = (_Row(curve.recompute, each) for curve in curves for each in curve.moments)
        write_text(path, csv_text(COLUMNS, rows))


def _draw(path: Path, curves: Sequence[MemoryCurve], limit: int) -> None:
    figure = new_figure(figsize=(10, 5.5), layout="constrained")
    axes: Any = figure.subplots()
    last = curves[-1]
    # A program alone may have been compiled with recomputation before.
    plain = "nothing recomputed" if len(curves) > 1 else "live and reserved"
    for curve in curves:
        label = f"with --recompute {_short(curve.recompute)}" if curve.recompute else plain
        edges = [*(each.start for each in curve.moments), _end(curve)]
        style = (
            {"color": "tab:blue", "linewidth": 1.2, "baseline": None}
            if curve is last
            else {"color": "0.8", "fill": True}
        )
        if curve.moments:
            # Text between two dollar signs would be mathematics.
            shape = {"label": label.replace("$", r"\$"), **style}
            axes.stairs([each.bytes for each in curve.moments], edges, **shape)
    axes.axhline(limit, color="black", linestyle="--", linewidth=1, label=f"limit: {limit:,} bytes")
    for kind, style in KINDS.items():
        marked = [each for each in last.moments if any(kind == k for _, k in each.effects)]
        if marked:
            at = [each.start for each in marked], [each.bytes for each in marked]
            axes.scatter(*at, s=26, zorder=3, label=kind, **style)
    _label(axes, last)
    axes.set_xlim(0, max(1, *map(_end, curves)))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("cycles")
    axes.set_ylabel("bytes of the fullest tile")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_with_commas)
    axes.grid(visible=True, alpha=0.2)
    figure.legend(loc="outside lower center", ncols=6, fontsize=9, frameon=False)
    write_figure(path, figure)


def _short(text: str) -> str:
    """The text as it may be shown, cut off if it is too long."""
    text = shown(text)
    return text if len(text) <= LABEL else f"{text[: LABEL - 3]}..."


def _with_commas(value: float, _place: int) -> str:
    return f"{value:,.0f}"


def _end(curve: MemoryCurve) -> int:
    return max((each.start + each.cycles for each in curve.moments), default=0)


def _label(axes: Any, curve: MemoryCurve) -> None:
    """Name the choices that save most above the picture, each where it first takes effect."""
    first: dict[Recomputed, Moment] = {}
    for each in curve.moments:
        for choice, _ in each.effects:
            first.setdefault(choice, each)
    most = sorted(first, key=lambda choice: -choice.bytes)[:LABELLED]
    names: dict[Moment, list[str]] = {}
    for choice in sorted(most, key=lambda choice: first[choice].start):
        names.setdefault(first[choice], []).append(choice.what)
    end = max(_end(curve), 1)
    at = _apart([each.start / end for each in names], APART)
    for (moment, texts), x in zip(names.items(), at, strict=True):
        axes.annotate(
            _short(", ".join(texts)),
            xy=(moment.start, moment.bytes),
            xytext=(x, 1.02),
            textcoords=axes.transAxes,
            rotation=45,
            fontsize=8,
            parse_math=False,
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.5},
        )


def _apart(places: Sequence[float], least: float) -> list[float]:
    """Places in order, moved to the left as little as leaves `least` between neighbours."""
    found: list[float] = []
    for place in reversed(places):
        found.append(min(place, found[-1] - least) if found else place)
    return found[::-1]
