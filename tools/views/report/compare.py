"""Two programs side by side, aligned by the framework's nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....ir.support.errors import InputError
from .collect import Report
from .folder import rows_of

FIGURES = (
    "cycles",
    "compute_cycles",
    "exchange_cycles",
    "sync_cycles",
    "exchange_bytes",
    "max_tile_bytes",
    "supersteps",
    "vertices",
    "tiles_used",
)
"""The compared figures of programs."""

LEAST_SHARED = 0.1
"""The minimal share of a program's cycles in operations whose nodes the baseline has as well."""

RETURN = "func.return"
"""The kind of the operation that stands for a program's entry in a report."""

Rows = Sequence[Mapping[str, Any]]

SHOWN = 10
"""The number of operations in a Markdown summary."""


@dataclass(frozen=True)
class Comparison:
    """A program beside a baseline.

    Attributes:
        figures: name, now and before.
        rows: one operation of either program each, the largest difference in cycles first;
            operation is -1 where only the baseline has it.
        note: a difference between the programs that makes their figures hard to compare, "" if
            there is none.
    """

    now: Mapping[str, Any]
    baseline: Mapping[str, Any]
    figures: tuple[tuple[str, int, int], ...]
    rows: tuple[Mapping[str, Any], ...]
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the page has them."""
        return {
            "baseline": dict(self.baseline),
            "note": self.note,
            "figures": [{"name": n, "now": a, "was": b} for n, a, b in self.figures],
            "rows": [dict(row) for row in self.rows],
        }


def compared(now: Report, baseline: Report, path: str) -> Comparison:
    """A program beside a baseline.

    Raises InputError if they have hardly any node in common.

    Args:
        path: of the baseline, for the message.
    """
    _check_facts(baseline.program, path)
    mine, theirs = (rows_of(each.tables["operations"]) for each in (now, baseline))
    planned_alike = ("plans" in now.absent) == ("plans" in baseline.absent)
    if not planned_alike:
        # The vertices' split is the split of a part of an operator; it serves where the planner's
        # split is
        # unknown.
        mine, theirs = ([{**row, "split": ""} for row in rows] for rows in (mine, theirs))
    _check_same_model(mine, theirs, now.program["name"], path)
    waiting = {_key(row): row for row in theirs}
    by_node = {(row["phase"], node): _key(row) for row in theirs for node in _nodes(row)}
    rows: list[Mapping[str, Any]] = []
    for row in mine:
        other = waiting.pop(_key(row), None)
        for node in _nodes(row) if other is None else ():
            # The two programs fuse differently: the first node that both have decides.
            found = by_node.get((row["phase"], node))
            if found in waiting:
                other = waiting.pop(found)
                break
        rows.append(_row(row, other))
    rows += [_row(None, row) for row in waiting.values()]
    rows.sort(key=lambda row: -abs(row["cycles"] - row["was_cycles"]))
    return Comparison(
        now=now.program,
        baseline=baseline.program,
        figures=tuple((n, int(now.program[n]), int(baseline.program[n])) for n in FIGURES),
        rows=tuple(rows),
        note=_note(now.program, baseline.program, planned_alike=planned_alike),
    )


def _check_facts(program: Mapping[str, Any], path: str) -> None:
    """Raise InputError unless a report has the compared facts."""
    kinds = {**dict.fromkeys(FIGURES, int), "name": str, "target": dict, "fits": bool}
    for name, kind in kinds.items():
        if not isinstance(program.get(name), kind):
            raise InputError(f"{path}: the report does not say {name!r}; write the report again")


def _check_same_model(mine: Rows, theirs: Rows, name: str, path: str) -> None:
    """Raise InputError if the operations of two programs have hardly any node in common."""
    # Every program has an entry, which copies inputs and outputs.
    known = {node for row in theirs if row["kind"] != RETURN for node in _nodes(row)}
    own = [row for row in mine if row["kind"] != RETURN]
    whole = sum(row["cycles"] for row in own)
    shared = sum(row["cycles"] for row in own if known.intersection(_nodes(row)))
    if shared < LEAST_SHARED * whole:
        raise InputError(
            f"{path}: the baseline is another model: operations that both have take "
            f"{shared / whole:.0%} of the cycles of {name}; need a program of the same model"
        )


def _nodes(row: Mapping[str, Any]) -> list[str]:
    return row["nodes"].split("+")


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["phase"], row["nodes"]


def _row(now: Mapping[str, Any] | None, was: Mapping[str, Any] | None) -> dict[str, Any]:
    """One row of a comparison; the figures of a missing operation are 0."""
    row: dict[str, Any] = {
        "operation": -1 if now is None else now["operation"],
        "name": (now or was or {})["name"],
        "is_new": was is None,
    }
    for prefix, each in (("", now), ("was_", was)):
        row[f"{prefix}cycles"] = 0 if each is None else each["cycles"]
        row[f"{prefix}peak_bytes"] = 0 if each is None else each["peak_bytes"]
        row[f"{prefix}bytes"] = 0 if each is None else each["resident_bytes"] + each["value_bytes"]
        row[f"{prefix}split"] = "" if each is None else each["split"]
    names = ("cycles", "peak_bytes", "bytes", "split")
    row["differs"] = now is None or was is None or any(row[n] != row[f"was_{n}"] for n in names)
    return row


def _note(now: Mapping[str, Any], baseline: Mapping[str, Any], *, planned_alike: bool) -> str:
    mine, theirs = now["target"]["spelling"], baseline["target"].get("spelling")
    notes: list[str] = []
    if mine != theirs:
        notes.append(f"The targets differ: {mine}, and {theirs} for the baseline.")
    if not planned_alike:
        notes.append("Plans are not compared: one of the two programs was planned before.")
    return " ".join(notes)


def markdown_lines(found: Comparison, verdicts: Mapping[str, bool]) -> list[str]:
    """A summary in Markdown.

    Args:
        verdicts: for each condition of --fail-if, whether it holds.
    """
    lines = [
        f"### {_text(found.now['name'])} on {_text(found.now['target']['name'])}, beside "
        f"{_text(found.baseline['name'])}",
        "",
        *(f"- {'**fails**' if bad else 'passes'}: `{text}`" for text, bad in verdicts.items()),
        *([""] if verdicts else []),
        *([found.note, ""] if found.note else []),
        "| | now | baseline | change |",
        "|---|--:|--:|--:|",
        *(
            f"| {n.replace('_', ' ')} | {a:,} | {b:,} | {_change(a, b)} |"
            for n, a, b in found.figures
        ),
    ]
    changed = [row for row in found.rows if row["differs"]]
    if not changed:
        return [*lines, "", "No operation differs."]
    lines += [
        "",
        f"{len(changed)} of {len(found.rows)} operations differ"
        + (f"; the largest {SHOWN}:" if len(changed) > SHOWN else ":"),
        "",
        "| operation | cycles | baseline | change | plan |",
        "|---|--:|--:|--:|---|",
    ]
    for row in changed[:SHOWN]:
        same = row["split"] == row["was_split"]
        plan = row["split"] if same else f"{row['was_split'] or '-'} → {row['split'] or '-'}"
        lines.append(
            f"| {_text(row['name'])} | {row['cycles']:,} | {row['was_cycles']:,} | "
            f"{_change(row['cycles'], row['was_cycles'])} | {_text(plan)} |"
        )
    return lines


def _change(now: int, was: int) -> str:
    if now == was:
        return "="
    return f"{now / was - 1:+.1%}" if was else "new"


def _text(text: str) -> str:
    """Text that Markdown shows as it is, in one cell."""
    plain = " ".join(text.split())
    for letter in "\\`*_{}[]<>#|":
        plain = plain.replace(letter, f"\\{letter}" if letter not in "<>" else _ENTITY[letter])
    return plain


_ENTITY = {"<": "&lt;", ">": "&gt;"}
