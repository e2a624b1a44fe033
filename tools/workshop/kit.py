"""Measures the testing kit: its speed, what it generates, and its false alarms.

python -m abele.tools.workshop.kit [--clean 20000]

`abele mutate all` measures which bugs it finds, and `python -m abele.tools.workshop.blame` whether
it blames the right pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from time import process_time
from typing import Annotated

import typer
from rich.table import Table

from ...dialects.levels import LEVELS, NN, PLANNED
from ...ir.pass_manager import load_pass
from ...passes.canonicalize import Canonicalize
from ...passes.convert_tile_to_exchange import ConvertTileToExchange
from ...passes.fold_scales import FoldScales
from ...passes.pipelines import PASSES
from ..testing.generators.build import build, default_operators
from ..testing.generators.decisions import LowerAtRandom
from ..testing.generators.levels import level_before
from ..testing.generators.sketch import random_sketch
from ..testing.generators.strategies import programs
from ..testing.rules.rule_check import check_rules
from ..testing.search.pass_check import check_pass, check_pipeline
from ..testing.search.report import Report
from ..views.script import run_script
from ..views.terminal import console

SKETCHES = 2000
"""The number of programs in which operators are counted."""

RULES = 40
"""The number of programs per rule and property."""

RATED = 200
"""The number of programs over which a rate is measured."""

EIGHT = "tiny:8"

NOT_RATED = ("plan-splits", "train")
"""Passes of nn that are not rated: the pipelines plan, and train gives programs another input."""


def kit(
    clean: Annotated[
        int, typer.Option(min=0, help="Programs per level to look for false alarms in.")
    ] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the programs.")] = 0,
) -> None:
    """Print rates, counts and false alarms. Exit with status 1 if there is a false alarm."""
    terminal = console()
    for each in (_rates(), _operators(), _rules()):
        terminal.print(each)
    alarms = 0
    for level, check in _clean(clean, seed):
        begin = process_time()
        try:
            found: object = check()
        except Exception as alarm:
            found = alarm
            alarms += 1
        terminal.print(f"{level}: {found}; {process_time() - begin:.0f} s CPU")
    if alarms:
        raise typer.Exit(1)


def _rates() -> Table:
    """Programs per second of CPU time, after everything is loaded."""
    table = Table(title="programs per second, one core", title_justify="left")
    table.add_column("what")
    table.add_column("per second", justify="right")
    operators = default_operators()
    for number in range(300):
        build(random_sketch(Random(number)), operators)
    own = [
        name
        for name in PASSES
        if level_before(load_pass(name, PASSES)) == NN.name and name not in NOT_RATED
    ]
    eight = programs(target=EIGHT)
    runs: dict[str, Callable[..., Report]] = {
        **{f"nn: {name}": partial(check_pass, name, examples=RATED) for name in own},
        "nn -> exchange, as planned, 1 to 16 tiles": partial(check_pipeline, examples=RATED // 2),
        "nn -> exchange, as planned, 8 tiles": partial(
            check_pipeline, programs=eight, examples=RATED // 2
        ),
        "nn -> exchange, at random": partial(
            check_pass, LowerAtRandom("exchange"), PLANNED, examples=RATED // 2
        ),
    }
    looked_at: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for name, run in runs.items():
        # The first run reads the rules. The second has another seed, because plans of programs that
        # were seen before are cached.
        run(seed=0)
        begin = process_time()
        report = run(seed=1)
        seconds[name] = process_time() - begin
        looked_at[name] = report.examples + report.refused + report.unfit
        table.add_row(name, f"{looked_at[name] / seconds[name]:.0f}")
    each = [f"nn: {name}" for name in own]
    rate = sum(looked_at[n] for n in each) / sum(seconds[n] for n in each)
    table.add_row(f"nn: these {len(own)} together", f"{rate:.0f}")
    return table


def _operators() -> Table:
    """The rarest operators, with the number of programs that contain each."""
    counts: Counter[str] = Counter(dict.fromkeys((c.name for c in default_operators().classes), 0))
    for number in range(SKETCHES):
        program = build(random_sketch(Random(f"kit {number}")), default_operators())
        counts.update({op.name for op in program.module.walk() if op.name in counts})
    table = Table(title=f"programs that contain an operator, of {SKETCHES:,}", title_justify="left")
    table.add_column("operator")
    table.add_column("programs", justify="right")
    for name, count in counts.most_common()[:-9:-1]:
        table.add_row(name, f"{count:,}")
    table.add_row(f"median of {len(counts)}", f"{sorted(counts.values())[len(counts) // 2]:,}")
    return table


def _rules() -> Table:
    """For each pass, the rule that fires least, and how often it fires."""
    table = Table(title=f"rules, {RULES} programs each", title_justify="left")
    for name in ("pass", "rules", "fired least", "times"):
        table.add_column(name, justify="right" if name in ("rules", "times") else "left")
    for each in (Canonicalize, FoldScales, ConvertTileToExchange):
        report = check_rules(each.rule_set(), examples=RULES, seed=1)
        names = each.rule_set().names
        least = min(names, key=lambda rule, fired=report.fired: fired[rule])
        table.add_row(each.name, str(len(names)), least, f"{report.fired[least]:,}")
    return table


def _clean(count: int, seed: int) -> Iterator[tuple[str, Callable[[], Report]]]:
    if not count:
        return
    yield "nn", partial(check_pass, "decompose", examples=count, seed=seed)
    for level in map(str, LEVELS[1:]):
        yield (
            level,
            partial(check_pass, LowerAtRandom(level), PLANNED, examples=count, seed=seed),
        )


if __name__ == "__main__":
    run_script(kit)
