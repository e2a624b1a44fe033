"""abele fuzz."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ...ir.support.errors import InputError
from ...ir.support.whole_file import check_folder
from ..executors.named import executor_of
from ..views.terminal import console
from ..views.user_errors import CHECK_FAILED, user_errors
from . import fuzz_tool
from .arguments import LEVELS_HELP, Load, PassesElsewhere, Where, refuse_pipeline
from .checkout import from_checkout
from .threads import OneThread, use_threads

if TYPE_CHECKING:
    from ..testing.search.fuzz import Fuzzed


HOSTILE = "..testing.hostile.commands"
"""The module that damages inputs and interrupts commands, which only maintainers of abele need."""

DEFAULT_SECONDS = 60.0
"""Seconds for each pass, or for a tool."""

FINDING = "finding.json"
"""The file that is in the folder of each saved finding of a tool."""


def fuzz_command(
    context: typer.Context,
    passes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PASS]...", help="Passes, each with its options. Default: all."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Seconds for each pass. Default: 60. With --hostile, seconds in all."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed for the programs. Default: a new one.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help=f"The level of the programs: {LEVELS_HELP}. Default: what each pass declares, or "
            "what its code names operations of, or where it changes programs.",
        ),
    ] = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Make half of the programs of this operator. May be repeated."
        ),
    ] = None,
    decision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Make most random plans with this decision, such as ring. May be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", metavar="DIR", help="Save failing programs here.")
    ] = Path("fuzz"),
    reduce_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="CPU seconds for making each failing program smaller. Default: 60. Ctrl-C ends it "
            "with the smallest program so far.",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="How many passes, or hostile inputs, to test at once.")
    ] = 1,
    executor: Where = "",
    threads: OneThread = 1,
    pipeline: PassesElsewhere = None,
    load: Load = None,
    hostile: Annotated[
        bool,
        typer.Option(
            "--hostile", help="Give damaged and absurd inputs to all commands, and test no pass."
        ),
    ] = False,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only",
            help="Read each hostile model and lead it to nn, and run no command. This is many "
            "times as fast.",
        ),
    ] = False,
    tool: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Test a tool of ONNX models and no pass: onnxruntime, onnxsim, onnxoptimizer, "
            "onnxscript, tinygrad, tvm or iree, each with :OPTION; module:function; or a command "
            "with {in} and {out}.",
        ),
    ] = None,
    tool_python: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="The Python that has the tool. Default: abele's own."),
    ] = None,
    tool_seconds: Annotated[
        float | None,
        typer.Option(min=0.1, help="Processor seconds that the tool has for a model. Default: 20."),
    ] = None,
    equivalents: Annotated[
        bool,
        typer.Option(
            "--equivalents",
            help="Compare a tool with itself, on models that proved rules make of each other, and "
            "with no reference. With --load FILE.rw, also by rules about onnx in this file.",
        ),
    ] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Hostile inputs of this kind. May be repeated."),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(min=1, help="How many hostile inputs of each kind, or models with --tool."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Run this saved finding of a tool, or this hostile input, again."
        ),
    ] = None,
    interrupt: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Kill writing commands N times at random events of their files, or fill the disk, "
            "and test no pass.",
        ),
    ] = None,
) -> None:
    """Run generated programs before and after each pass, for as long as you like.

    Exits with 0 if all results agree. Otherwise reduces, saves and prints each failing program, and
    exits with 1. Also exits with 1 if a pass changed hardly any program, because then nothing was
    tested. With --hostile, exits with 1 if a command does anything else with a damaged input than
    accept it or refuse it with a message. With --tool, exits with 1 if the tool fails on a valid
    model, and saves each finding with a script that shows it without abele. A run with the seed of
    an earlier one continues it. With --interrupt, exits with 1 if a command that was stopped leaves
    neither its old outputs nor its new ones.
    """
    with user_errors():
        refuse_pipeline(pipeline, "abele fuzz PASS PASS")
        use_threads(threads)
        here = {
            "--interrupt": interrupt is not None,
            "--replay": replay is not None,
            "--tool": tool is not None,
            "--hostile": hostile,
        }
        for name in (each for each, asked in here.items() if asked and executor):
            raise InputError(f"--executor: {name} works on this host only; leave --executor out")
        if interrupt is not None:
            from_checkout(HOSTILE, "--interrupt").interrupt_commands(context, interrupt, seed)
            return
        if replay is not None and (replay / FINDING).exists():
            fuzz_tool.replay_finding(replay, tool_python)
            return
        if replay is not None:
            from_checkout(HOSTILE, "--replay").replay_failure(context, replay)
            return
        if tool is not None:
            if passes or hostile or level:
                raise InputError("--tool: tests no pass; leave passes and --level out")
            if load and not equivalents:
                raise InputError("--load: with --tool, needs --equivalents, which takes rules")
            fuzz_tool.fuzz_tool(
                tool,
                tool_python,
                examples,
                DEFAULT_SECONDS if seconds is None and examples is None else seconds,
                seed,
                operator or (),
                output,
                reduce_seconds,
                tool_seconds,
                equivalents,
                load or (),
            )
            return
        if tool_python is not None or tool_seconds is not None or equivalents:
            raise InputError("--tool-python, --tool-seconds and --equivalents: need --tool")
        if hostile:
            from_checkout(HOSTILE, "--hostile").damage_inputs(
                context,
                tuple(kind or ()),
                seed,
                output,
                examples,
                seconds,
                jobs,
                reads_only=read_only,
            )
            return
    # The kit takes a second to import; other commands need not wait for it.
    from ..testing.search import fuzz as fuzzing  # noqa: PLC0415

    with user_errors() as errors:
        if kind or examples is not None or read_only:
            raise InputError("--kind, --examples and --read-only: need --hostile")
        check_folder(output)
        _ = errors.load(load)
        asked = fuzzing.Asked(
            tuple(passes or ()),
            level,
            tuple(operator or ()),
            tuple(decision or ()),
            tuple(load or ()),
            threads,
        )
        checks = asked.jobs()
        number = Random().randrange(1 << 32) if seed is None else seed
        each_seconds = DEFAULT_SECONDS if seconds is None else seconds
        terminal = console()
        done: list[Fuzzed] = []
        interrupted = False
        with executor_of(executor or f"local:{jobs}") as workers:
            terminal.print(
                f"seed {number}; {len(checks)} jobs of {each_seconds:g} s, {workers.workers} at "
                "once"
            )
            try:
                for each in fuzzing.fuzz(
                    asked, each_seconds, number, output, workers, reduce_seconds
                ):
                    done.append(each)
                    terminal.print(f"{each.name}: {_short(each)}", highlight=False)
            except KeyboardInterrupt:
                interrupted = True
        terminal.print(_table(done))
        failed = [each for each in done if each.failure]
        for each in failed:
            terminal.print(f"\n{each.name}: {each.failure}", highlight=False, soft_wrap=True)
        if failed:
            raise typer.Exit(CHECK_FAILED)
        if interrupted:
            raise KeyboardInterrupt


def _short(each: Fuzzed) -> str:
    return each.failure.partition("\n")[0] if each.failure else str(each.report)


COUNTS = {
    "examples": "programs",
    "changed": "changed",
    "refused": "refused",
    "unfit": "did not fit",
    "undecided": "undecided",
}
"""The columns of the table, by the counts of a report."""


def _table(done: list[Fuzzed]) -> Table:
    table = Table(title="programs, before and after", title_justify="left")
    table.add_column("")
    for name in (*COUNTS.values(), "a second", "failed"):
        table.add_column(name, justify="right")
    for each in sorted(done, key=lambda fuzzed: fuzzed.name):
        report = each.report
        rate = report.examples / report.seconds if report.seconds else 0
        figures = (*(getattr(report, name) for name in COUNTS), round(rate))
        failed = "yes" if each.failure else "-"
        table.add_row(each.name, *(f"{figure:,}" for figure in figures), failed)
    return table
