"""The page of a dump: one file with compressed data, and a script that unfolds them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Operation

from ....backends.prices.price_operations import OperationPrice, Priced
from ....dialects.levels import LEVELS
from ....ir.instruments.dump_ir import INPUT, file_name
from ....ir.instruments.record_ir import Stage
from ....ir.listing import Line
from ....ir.provenance import origin_names, place
from ....ir.rewriting import Source
from ....ir.upstream import LocationAttr
from ..page.assets import Assets
from ..shown_text import shown
from .folder import MARK
from .nodes import node_names, nodes_of, without_folders
from .price_each import Figures

ASSETS = Assets(__package__ or "", MARK, "page.html", "page.css", ("page.js",))

COSTS = ("exchange_cycles", "compute_cycles", "exchange_bytes", "tile_bytes", "times")
"""The figures of an operation that its card shows."""


def page(
    stages: Sequence[Stage],
    figures: Sequence[Figures | str],
    seconds: Sequence[float],
    title: str,
    target: str,
    costs: Mapping[Priced, OperationPrice],
) -> str:
    """The page of a run.

    Args:
        stages: the input's, then one per pass.
        figures: one per stage, or none.
        title: the path of the program, of which the page names only the file.
        seconds: one for each pass that finished.
        costs: of the operations of the finished program.
    """
    title = os.path.basename(title)
    data = _Data().of(stages, figures, seconds, costs) | {"title": shown(title), "target": target}
    return ASSETS.page(title, data)


@dataclass
class _Table:
    """Numbers for values; equal values share a number."""

    values: list[Any] = field(default_factory=list[Any])
    numbers: dict[Any, int] = field(default_factory=dict[Any, int])

    def __call__(self, value: Any, key: Any = None) -> int:
        key = value if key is None else key
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.values)
            self.values.append(value)
        return number


@dataclass
class _Data:
    """Stages as plain data. Frequent values are in tables, and stages contain their numbers."""

    texts: _Table = field(default_factory=_Table)
    places: _Table = field(default_factory=_Table)
    nodes: _Table = field(default_factory=_Table)
    rules: _Table = field(default_factory=_Table)
    ops: dict[Operation | str, int] = field(default_factory=dict[Operation | str, int])
    known: frozenset[str] = frozenset()
    located: dict[LocationAttr, int] = field(default_factory=dict[LocationAttr, int])

    def of(
        self,
        stages: Sequence[Stage],
        figures: Sequence[Figures | str],
        seconds: Sequence[float],
        costs: Mapping[Priced, OperationPrice],
    ) -> dict[str, Any]:
        if stages and stages[0].listing is not None:
            self.known = node_names(line.location for line in stages[0].listing.lines)
        shown = [self._stage(index, stage) for index, stage in enumerate(stages)]
        for entry, each in zip(shown, figures, strict=False):
            exact = isinstance(each, Figures)
            entry["figures"] = [*vars(each).values()] if exact else each
        for entry, stage, each in zip(shown[1:], stages[1:], seconds, strict=False):
            entry["seconds"] = round(max(each - stage.seconds, 0.0), 6)
        return {
            "stages": shown,
            "texts": self.texts.values,
            "places": self.places.values,
            "nodes": self.nodes.values,
            "rules": self.rules.values,
            "levels": [level.name for level in LEVELS],
            "costs": {
                self.ops[op]: [getattr(each, name) for name in COSTS]
                for op, each in costs.items()
                if op in self.ops
            },
        }

    def _stage(self, index: int, stage: Stage) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": stage.name, "spec": stage.spec, "error": stage.error}
        if stage.listing is not None:
            shown["file"] = "" if stage.error else file_name(index, stage.name) if index else INPUT
            shown["level"] = _level(stage.listing.lines)
            shown |= self._lines(stage.listing.lines)
        if stage.changes:
            shown["new"] = self._lines(stage.new_lines)
            shown["changes"] = [
                [
                    self._rule(each.source),
                    each.root,
                    [[after, run[0], len(run)] for after, run in each.inserted],
                    each.removed,
                ]
                for each in stage.changes
            ]
        return shown

    def _lines(self, lines: Sequence[Line]) -> dict[str, list[int]]:
        return {
            "lines": [self.texts(line.text) for line in lines],
            "ops": [self._op(line) for line in lines],
            "from": [self._place(line) for line in lines],
        }

    def _op(self, line: Line) -> int:
        # The definition of an alias is the same line in all stages, whatever is before it.
        return self.ops.setdefault(line.text if line.is_alias else line.op, len(self.ops))

    def _rule(self, source: Source) -> int:
        return self.rules([source.name, source.file, source.line], source)

    def _place(self, line: Line) -> int:
        number = self.located.get(line.location)
        if number is None:
            names = origin_names(line.location)
            nodes = [self.nodes(node) for node in nodes_of(line.location, self.known)]
            text = without_folders(place(line.op)) if names else ""
            number = self.places([list(names), text, nodes], (names, text))
            self.located[line.location] = number
        return number


def _level(lines: Sequence[Line]) -> str:
    """The lowest level among a module's operations; "" if there is none."""
    dialects = {line.op.name.partition(".")[0] for line in lines}
    return next((level.name for level in reversed(LEVELS) if level.name in dialects), "")
