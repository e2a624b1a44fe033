"""The answer to --list-ops: the operators of a model, and which of them are supported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ...ir.support.errors import InputError
from ..driver.request import Request
from ..driver.shown_text import shown
from ..importers.front_end import Reading
from ..importers.front_ends import front_end_at, front_ends, listed, suffixes
from ..views.terminal import console
from ..views.user_errors import print_error_line, text_in, user_errors
from .arguments import given_values, sizes

if TYPE_CHECKING:
    from ..importers.uses import Use


def show_operators(
    model: str,
    dim: list[str] | None,
    value: list[str] | None,
    load: list[str] | None,
    inputs: Path | None,
) -> None:
    """Print a table of an ONNX model's operators. The parameters are options, as given."""
    with user_errors(text_in(model), model) as context:
        extensions = context.load(load)
        front_end = front_end_at(model)
        if front_end is None or front_end.uses is None:
            able = [each for each in front_ends() if each.uses is not None]
            raise InputError(
                f"{model}: --list-ops lists operators of {listed(each.name for each in able)}; "
                f"need an {listed(suffixes(able))} file"
            )
        request = Request(model, dims=sizes(dim), values=given_values(value), example=inputs)
        dims, values = request.with_sizes().dims or {}, request.values or {}
        reading = Reading(extensions.context(), model, dims, values)
        uses, problem = front_end.uses(model, reading)
        table = _table(uses)
        console().print(table)
        refused = sum(use.reasons.total() for use in uses)
        every = sum(len(use.nodes) for use in uses)
        sys.stdout.write(f"{every - refused} of {every} nodes are supported\n")
        if problem:
            print_error_line(f"warning: operators were checked by name only: {problem}")


def _table(uses: list[Use]) -> Table:
    table = Table()
    for name in ("operator", "nodes", "supported", "by", "why not"):
        table.add_column(name, justify="right" if name == "nodes" else "left", overflow="fold")
    for use in uses:
        why = [
            text if number == use.reasons.total() else f"{number} nodes: {text}"
            for text, number in use.reasons.most_common()
        ]
        row = (use.operator, str(len(use.nodes)), use.supported, use.how, "; ".join(why))
        table.add_row(*(shown(each) for each in row))
    return table
