"""What `abele generate` says about the cycles of a token."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from ...backends.prices.price import PhaseCycles
from ..driver.decoding.decoder import READ, Decoder
from .table import figure_table

TOKEN, START = "a token", "start of a run"
"""The names of the last rows."""


def cost_rows(decoder: Decoder) -> Iterator[tuple[str, PhaseCycles]]:
    """Cycles by layer of the model and of what is added to it, of a token, and of what a run does
    once."""
    costs = decoder.costs
    yield from costs.layers.items()
    yield TOKEN, costs.token
    yield START, costs.start


def costs_table(decoder: Decoder) -> Table:
    """A table of the rows of cost_rows, with their shares of a token's cycles."""
    table = figure_table(
        "where a token's cycles go",
        ("layer", "cycles", "share", "sync", "exchange", "compute"),
        ("layer",),
    )
    whole = decoder.costs.token.total
    for name, each in cost_rows(decoder):
        table.add_row(
            name,
            f"{each.total:,}",
            f"{each.total / whole:.1%}" if name != START else "",
            *(f"{n:,}" for n in (each.sync, each.exchange, each.compute)),
            end_section=name == [*decoder.costs.layers][-1],
        )
    return table


def speed(decoder: Decoder) -> str:
    """Tokens per second on the chip, and what reading a prompt takes, in two lines."""
    target, costs = decoder.session.target, decoder.costs
    cycles = costs.cycles(decoder.tokens) / decoder.tokens
    reading = int(decoder.session.programs[READ].profile["cycles"])
    read = "each token" if decoder.prompt == 1 else f"up to {decoder.prompt} tokens"
    return (
        f"{target.clock_hz / cycles:,.0f} tokens per second on {target.spelling()}: "
        f"{cycles:,.0f} cycles ({cycles / target.clock_hz * 1e6:,.1f} us) per token, in runs of "
        f"{decoder.tokens}\n"
        f"{reading:,} cycles ({reading / target.clock_hz * 1e6:,.1f} us) for {read} of the prompt"
    )
