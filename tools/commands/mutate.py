"""abele mutate."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ...ir.support.errors import InputError
from ...ir.support.whole_file import whole_file
from ..driver.files import check_files
from ..executors.named import executor_of
from ..views.progress import progress
from ..views.terminal import console
from ..views.user_errors import CHECK_FAILED, print_error_line, user_errors
from .arguments import LEVELS_HELP, Load, PassesElsewhere, Where, refuse_pipeline
from .threads import OneThread, use_threads


def mutate_command(
    passes: Annotated[
        str,
        typer.Argument(metavar="PASS[,PASS...]", help="Passes, each with its options; or all."),
    ],
    pipeline: PassesElsewhere = None,
    load: Load = None,
    level: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help=f"The level of the programs: {LEVELS_HELP}. Default: the pass's own, else nn.",
        ),
    ] = "",
    examples: Annotated[int, typer.Option(min=1, help="Programs for each mutant.")] = 2000,
    seconds: Annotated[float, typer.Option(min=0.1, help="CPU time for each mutant.")] = 60.0,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the programs, and for what --limit selects.")
    ] = 0,
    only: Annotated[
        str,
        typer.Option(metavar="CLASS,...", help="Only mutants of these classes or names."),
    ] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Mutants of each pass. Default: all.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=2, help="How many mutants to test at once.")] = 1,
    executor: Where = "",
    threads: OneThread = 1,
    output: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write all results here.")
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="List the mutants, and stop.")] = False,
    fail_under: Annotated[
        float,
        typer.Option(min=0, max=100, metavar="PERCENT", help="Exit with 1 if fewer are found."),
    ] = 0.0,
) -> None:
    """Plant bugs in copies of passes, and report which ones generated programs find, and how soon.

    Changes nothing on disk. A planted bug counts only if some program computes something else with
    it. Exits with 1 if a pass is wrong without any planted bug, or if fewer are found than
    --fail-under demands.
    """
    # The kit takes a second to import; other commands need not wait for it.
    from ..testing.mutation import on_executor, report, study  # noqa: PLC0415
    from ..testing.mutation.compare import Budget  # noqa: PLC0415

    with user_errors() as context:
        refuse_pipeline(pipeline, "abele mutate PASS[,PASS...]")
        use_threads(threads)
        rights = on_executor.passes_of(passes, context.load(load).passes)
        check_files({}, {"--json": output})
        wanted = tuple(name for each in only.split(",") if (name := each.strip()))
        budget = Budget(examples, seconds, seed)
        terminal = console()
        done: list[report.Done] = []
        # One mutant at a time needs no other process, in which the bugs would be planted again.
        named = executor or ("here" if jobs == 1 else f"local:{jobs}")
        with progress() as on_step, executor_of(named) as workers:
            for number, right in enumerate(rights):
                on_step(f"{right.name}: look for places")
                asked = on_executor.Asked(passes, number, tuple(load or ()), level, budget)
                planted = on_executor.planted_of(asked)
                chosen = study.chosen_mutants(planted, wanted, limit, seed)
                terminal.print(report.planted_line(planted), highlight=False)
                if only_list:
                    terminal.print(report.mutant_table(chosen))
                    continue
                on_step(f"{right.name}: check the pass itself")
                wrong = study.check_original(planted, budget)
                if wrong.verdict == "found":
                    print_error_line(
                        f"{right.name} is wrong without any bug planted: {wrong.detail}"
                    )
                    print_error_line(wrong.text)
                    raise typer.Exit(CHECK_FAILED)
                own: list[report.Done] = []
                for mutant, trial in on_executor.trials(asked, chosen, workers):
                    own.append((mutant, trial))
                    line = f"{len(own)} of {len(chosen)}, {report.done_line(mutant, trial)}"
                    on_step(line)
                    if not sys.stderr.isatty():
                        # A mutant takes up to a minute: whoever reads a pipe sees that it works.
                        sys.stderr.write(f"{right.name}: {line}\n")
                own.sort(key=lambda each: chosen.index(each[0]))
                terminal.print(report.summary(own, right.name))
                done += own
                if output is not None:
                    _write(output, report.record(done, seed, examples, seconds))
        if only_list:
            return
        if len(rights) > 1:
            terminal.print(report.summary(done, "all passes"))
        for each in report.survivors(done):
            terminal.print(each, highlight=False, soft_wrap=True)
        terminal.print(report.totals_line(done), highlight=False)
        if report.percent_found(done) < fail_under:
            raise typer.Exit(CHECK_FAILED)


def _write(path: Path, record: dict[str, object]) -> None:
    try:
        with whole_file(path) as stream:
            stream.write(json.dumps(record, indent=1).encode() + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
