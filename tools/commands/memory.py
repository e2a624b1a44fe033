"""abele memory."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from ...ir.support.errors import InputError
from ...ir.support.json_lines import read_json
from ...ir.support.whole_file import whole_file
from ..advice.combined import combinations
from ..advice.memory_map import MemoryMap, memory_map
from ..advice.recomputation import can_change_nn, recomputations
from ..advice.room import CompileSettings, Trial, more_chips, trials
from ..advice.serial_split import constraints_with, serial_splits
from ..advice.sharding import shardings
from ..driver.compile import compiled
from ..driver.executable import Executable
from ..driver.files import PROGRAM_FILE, check_files
from ..driver.recomputation.asked import check_bound, read_recompute
from ..driver.request import Request
from ..views.loss_curve import check_curve
from ..views.memory_curve import MemoryCurve, write_memory_curves
from ..views.terminal import console
from ..views.user_errors import TOO_LARGE, print_error_line, text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import tell_recomputed, warn

if TYPE_CHECKING:
    from ...passes.train import Train

NOTHING_AGAIN = "computing values again would free no memory on the fullest tile"


@compiles
def memory_command(
    model: ModelFile,
    *,
    how: Compilation,
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="Layers and supersteps to show.")
    ] = 8,
    advise: Annotated[
        bool, typer.Option("--advise", help="Try changes that free memory. Each trial compiles.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write all figures here.")
    ] = None,
    over_time: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="M.csv|M.png",
            help="Write the bytes of the fullest tile over time here, as a table or a picture; "
            "with --recompute both without and with it, and where its choices take effect. May be "
            "repeated.",
        ),
    ] = None,
) -> None:
    """Show what fills the fullest tile in its worst superstep, by category and layer.

    Reports a program that does not fit, too, and then exits with 3. One that misses the bound of
    --recompute auto:BYTES exits with 2. The sizes of code, vertex state, exchange code and stacks
    follow from rules in the target's table `code`.
    """
    with user_errors(text_in(model), model) as context:
        extensions = context.load(how.load)
        check_files(
            {
                "the model": Path(model),
                **how.files,
            },
            {"--json": output, **{f"--over-time {each}": each for each in over_time or ()}},
        )
        for each in over_time or ():
            check_curve(each)
        if advise and model.endswith(PROGRAM_FILE):
            raise InputError(f"{model}: compiled already; --advise needs the model")

        with how.progress(extensions) as tell:
            request = replace(how.request(model, extensions, tell), unbounded=True)
            exe = compiled(request)
            found = memory_map(exe)
        warn(exe.relaxed)
        tell_recomputed(exe, every=how.verbose)
        _show(found, model, top)
        if over_time:
            _write_over_time(over_time, request, exe, how)
        tried: tuple[Trial, ...] = ()
        if advise:
            own = CompileSettings(
                found.target, how.passes, how.memory_proportion, recompute=how.recompute
            )
            # Combinations begin with changes that were tried alone.
            compile_with = cache(partial(_compiled, how, request))
            again = recomputations(found, exe, own, compile_with)
            cheap = trials(found, own, compile_with)
            serial = serial_splits(found, exe, own, compile_with, extensions)
            tried = tuple(map(_told, chain(cheap, serial)))
            more = tuple(map(_told, again))
            tried = (*tried, *more)
            if not any(each.fits and each.keeps_target for each in tried):
                cut = shardings(found, exe, own, tuple(request.shard), compile_with)
                tried = (*tried, *map(_told, cut))
            if not any(each.fits and each.keeps_target for each in tried):
                batch = _batch_in_parts(how)
                together = combinations(found, exe, own, batch, compile_with, extensions)
                tried = (*tried, *map(_told, together))
            if not found.fits and not any(each.fits and each.keeps_target for each in tried):
                tried = (*tried, *map(_told, more_chips(found, own, compile_with)))
            table = _trial_table(tried)
            console().print(table)
            if not more and not found.fits and can_change_nn(found, exe, own):
                console().print(NOTHING_AGAIN)
            _tell_what_to_add(found, tried)
        if output is not None:
            _write(output, found, tried)
        _tell_overheads(found)
        if not found.fits:
            frees = found.variable_bytes > found.target.usable_bytes_per_tile and not advise
            hint = "; --advise tries changes that free memory" if frees else ""
            print_error_line(f"error: does not fit: {found.shortage}{hint}")
            raise typer.Exit(TOO_LARGE)
        check_bound(request.recompute, exe.memory.max_tile_bytes)


def _write_over_time(
    paths: Sequence[Path], request: Request, exe: Executable, how: Compilation
) -> None:
    """Write the memory of a program over time; also without recomputation, if there is any.

    Raises InputError.
    """
    limit = exe.target.bytes_per_tile
    kept: Executable | None = None
    if request.recompute:
        limit = read_recompute(request.recompute).bound or limit
        with how.progress(request.extensions) as tell:
            kept = compiled(replace(request.without_recomputation(), watch=tell))
    curves = [MemoryCurve.of(exe, request.recompute, kept)]
    if kept is not None:
        curves.insert(0, MemoryCurve.of(kept))
    for path in paths:
        write_memory_curves(path, curves, limit)


def _batch_in_parts(how: Compilation) -> int | None:
    """The size of a batch that could be taken in parts; None if it is taken in parts already, or if
    parts would make it larger."""
    train = how.asked
    return how.batch if train is not None and train.micro_batches == 1 else None


def _tell_what_to_add(found: MemoryMap, tried: Sequence[Trial]) -> None:
    """Print the options that make the program fit, those with the fewest cycles."""
    fitting = [each for each in tried if each.fits and each.cycles is not None]
    if fitting and not found.fits:
        best = min(fitting, key=lambda each: (not each.keeps_target, each.cycles or 0))
        console().print(f"it fits with {best.change}", highlight=False, soft_wrap=True)


def _compiled(how: Compilation, request: Request, other: CompileSettings) -> Executable:
    """The program, compiled with other options. Shows progress."""
    with (
        _constraints(how.constraints, other.operators) as constraints,
        how.progress(request.extensions) as tell,
    ):
        return compiled(
            replace(
                request,
                target=other.target.spelling(),
                chips=None,
                io_tiles=None,
                passes=other.passes,
                tailored=not how.passes,
                memory_proportion=other.proportion,
                recompute=other.recompute,
                train=_in_parts(request.train, other.micro_batches),
                constraints=constraints,
                shard=(*request.shard, *other.shard),
                watch=tell,
                cache=False,
            )
        )


def _in_parts(train: Train | None, parts: int) -> Train | None:
    """The training with a batch in parts; as it is if there are none."""
    return replace(train, micro_batches=parts) if train is not None and parts else train


def _told(tried: Trial) -> Trial:
    """Show a trial on standard error as soon as it is done, and return it."""
    fits = "fits" if tried.fits else "does not fit"
    why = f"; {tried.note}" if tried.note else ""
    print_error_line(
        f"tried {tried.change}: {tried.bytes:,} of {tried.available:,} bytes, {fits}{why}"
    )
    return tried


@contextmanager
def _constraints(
    given: Path | None, operators: Sequence[tuple[str, float]]
) -> Generator[Path | None]:
    """A file of constraints, extended by the memory proportions of some operators."""
    if not operators:
        yield given
        return
    # Compiling has already checked that the file holds constraints.
    own = None if given is None else cast("Mapping[str, object]", read_json(given).value)
    extended = constraints_with(own, operators)
    with TemporaryDirectory() as folder:
        path = Path(folder, "constraints.json")
        path.write_text(json.dumps(extended), encoding="utf-8")
        yield path


def _show(found: MemoryMap, model: str, top: int) -> None:
    terminal = console()
    tile = found.target.bytes_per_tile
    terminal.print(
        f"{model} on {found.target.label()}: tile {found.tile} in {found.step or '-'}",
        highlight=False,
        soft_wrap=True,
    )
    table = Table()
    for name in ("category", "bytes", "of the tile"):
        table.add_column(name, justify="left" if name == "category" else "right")
    for name, size in found.categories.items():
        table.add_row(name, f"{size:,}", f"{size / tile:.1%}")
    table.add_section()
    table.add_row("all", f"{found.all_bytes:,}", f"{found.all_bytes / tile:.1%}")
    terminal.print(table)
    if found.remote_bytes:
        terminal.print(
            f"remote memory holds states of {found.remote_bytes:,} bytes, which are on the tiles "
            "only while they are used",
            highlight=False,
        )

    table = Table(title="layers on this tile in that superstep", title_justify="left")
    for name in ("layer", "always live", "live now"):
        table.add_column(name, justify="left" if name == "layer" else "right")
    for each in found.layers[:top]:
        table.add_row(each.layer, f"{each.always_live:,}", f"{each.live_now:,}")
    if rest := found.layers[top:]:
        always, now = sum(e.always_live for e in rest), sum(e.live_now for e in rest)
        table.add_row(f"{len(rest)} others", f"{always:,}", f"{now:,}")
    terminal.print(table)

    if found.phases:
        terminal.print(_phase_table(found))

    table = Table(title="fullest supersteps", title_justify="left")
    for name in ("superstep", "live bytes", "tile"):
        table.add_column(name, justify="left" if name == "superstep" else "right")
    for name, size, at in found.steps[:top]:
        table.add_row(name, f"{size:,}", str(at))
    terminal.print(table)
    if found.conflicts:
        terminal.print(_conflict_table(found, top))


def _conflict_table(found: MemoryMap, top: int) -> Table:
    """The exchanges that wait because tiles read and write one memory element."""
    title = "exchanges that read and write one memory element of a tile"
    table = Table(title=title, title_justify="left")
    for name in ("superstep", "tiles", "cycles, about"):
        table.add_column(name, justify="left" if name == "superstep" else "right")
    for each in found.conflicts[:top]:
        tiles, cycles = (
            "too many messages" if number is None else f"{number:,}"
            for number in (each.tiles, each.cycles)
        )
        table.add_row(each.step, tiles, cycles)
    if rest := found.conflicts[top:]:
        cycles = sum(each.cycles or 0 for each in rest)
        table.add_row(f"{len(rest)} others", "", f"{cycles:,}")
    return table


def _phase_table(found: MemoryMap) -> Table:
    """The worst superstep of each phase, and what each phase has on the fullest tile."""
    table = Table(title="phases of the step", title_justify="left")
    names = ("phase", "most live bytes", "on tile", "in superstep", "its always live", "live now")
    for name in names:
        table.add_column(name, justify="left" if name in ("phase", "in superstep") else "right")
    for each in found.phases:
        numbers = f"{each.always_live:,}", f"{each.live_now:,}"
        table.add_row(each.phase, f"{each.bytes:,}", str(each.tile), each.step, *numbers)
    return table


def _trial_table(tried: tuple[Trial, ...]) -> Table:
    table = Table(title="changes that free memory", title_justify="left")
    for name in ("change", "fullest tile", "of", "fits", "cycles"):
        table.add_column(name, justify="left" if name == "change" else "right")
    for each in tried:
        cycles = "-" if each.cycles is None else f"{each.cycles:,}"
        fits = "yes" if each.fits else "no"
        table.add_row(each.change, f"{each.bytes:,}", f"{each.available:,}", fits, cycles)
    return table


def _tell_overheads(found: MemoryMap) -> None:
    """Warn if code, vertex state, exchange code and stacks need more than is reserved for them, and
    say whether they fit beside the variables."""
    if found.overhead_bytes <= found.reserved:
        return
    lacks = found.all_bytes - found.target.bytes_per_tile
    if lacks > 0:
        room = f"the variables fit, but beside them the tile lacks {lacks:,} bytes for these"
    else:
        room = "they fit beside the variables of this tile"
    said = f"; {room}" if found.fits else ""
    print_error_line(
        f"warning: code, vertex state, exchange code and stacks take {found.overhead_bytes:,} "
        f"bytes by the target's rules, and {found.reserved:,} are reserved{said}; set "
        f"memory.reserved_bytes={found.overhead_bytes} in the target to plan with enough room"
    )


def _write(path: Path, found: MemoryMap, tried: tuple[Trial, ...]) -> None:
    """Write all figures as JSON. Raises InputError."""
    record = found.to_dict()
    record["trials"] = [vars(each) | {"fits": each.fits} for each in tried]
    try:
        with whole_file(path) as stream:
            stream.write(json.dumps(record, indent=1).encode() + b"\n")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
