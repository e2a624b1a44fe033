"""abele quantise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ...ir.support.errors import InputError
from ..driver.files import check_files, write_text
from ..importers.front_ends import ONNX, listed
from ..quantising.formats import Activations, To
from ..quantising.judging import Agreement
from ..quantising.quantise import HELD_OUT, LABELS, Cost, NodeLoss, Quantised, Wish, quantised
from ..quantising.ranges import DEFAULT, Method
from ..views.terminal import console
from ..views.user_errors import print_error_line, text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles_with
from .threads import ThreadCount, use_threads


@compiles_with("target", "dim", "value", "batch", "precision", "load", "lenient", "verbose")
def quantise_command(
    model: ModelFile,
    inputs: Annotated[
        Path,
        typer.Option(
            metavar="X.npz",
            help="The samples: an array for each input, samples along axis 0, or with an axis of "
            f"runs before those of the input; and {LABELS!r} for their classes, if known.",
        ),
    ],
    to: Annotated[
        To,
        typer.Option(
            "--to",
            help="int8: scales for each channel of weights, a scale and a zero point for each "
            "other tensor. fp8: a power of two for each tensor.",
        ),
    ] = "int8",
    *,
    how: Compilation,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT.onnx", help="Write the quantised model here."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="REGEX",
            help="Leave nodes whose names it matches, anywhere, in float. May be repeated.",
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(help="How a scale follows from the numbers that a tensor was seen to have."),
    ] = DEFAULT,
    activations: Annotated[
        Activations, typer.Option(help="The type of what is no weight, with int8.")
    ] = "uint8",
    validation: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="Keep this share of the samples out of calibration, and judge by them. Default: "
            f"{HELD_OUT:g}.",
        ),
    ] = None,
    validation_data: Annotated[
        Path | None, typer.Option(metavar="X.npz", help="Judge by the samples of this file.")
    ] = None,
    labels: Annotated[str, typer.Option(metavar="NAME", help="The array of classes.")] = LABELS,
    sensitivity: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Also quantise each product alone, and judge that by N samples: a table of what "
            "to keep.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples to judge by.")] = 0,
    threads: ThreadCount = None,
    report: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write all figures here.")
    ] = None,
) -> None:
    """Quantise a float model after training: calibrate, write it, and say what it loses and gains.

    The products of Conv, ConvTranspose, MatMul and Gemm are quantised. Accuracy and agreement are
    those on samples that were not used to calibrate.
    """
    with user_errors(text_in(model), model) as context:
        use_threads(threads)
        if output is not None and output.suffix not in ONNX.suffixes:
            raise InputError(f"{output}: need a file that ends in {listed(ONNX.suffixes)}")
        check_files(
            {"the model": Path(model), "--inputs": inputs, "--validation-data": validation_data},
            {"-o": output, "--json": report},
        )
        extensions = context.load(how.load)
        with how.progress(extensions) as on_step:
            found = quantised(
                Wish(
                    request=replace(how.request(model, extensions, on_step), example=None),
                    inputs=inputs,
                    to=to,
                    keep=keep or (),
                    method=method,
                    activations=activations,
                    validation=validation,
                    validation_data=validation_data,
                    labels=labels,
                    sensitivity=sensitivity,
                    seed=seed,
                )
            )
        for note in found.notes:
            print_error_line(f"warning: {note}")
        if output is not None:
            found.save(output)
        if report is not None:
            write_text(report, json.dumps(_figures(found), indent=2) + "\n")
        _show(found, model, output)


def _show(found: Quantised, model: str, output: Path | None) -> None:
    out = console()
    written = "" if output is None else f" -> {output}"
    target = found.target
    table = Table(title=f"{model}{written}, {found.to} on {target}", title_justify="left")
    table.add_column("")
    table.add_column("float", justify="right")
    table.add_column(found.to, justify="right")
    for title, before, after in _rows(found.before, found.after):
        table.add_row(title, before, after)
    out.print(table)
    kept = f", {len(found.choice.kept)} kept in float" if found.choice.kept else ""
    out.print(f"{len(found.choice.products)} nodes quantised by {found.method}{kept}")
    if found.judged is not None:
        out.print(f"on {found.judged.samples} samples that were not calibrated with:")
        for each in found.judged.outputs.values():
            out.print(f"  {each}", markup=False)
    if found.sensitivity:
        out.print(_sensitivity(found.sensitivity))


def _rows(before: Cost, after: Cost) -> Iterable[tuple[str, str, str]]:
    for title, name in (
        ("cycles", "cycles"),
        ("bytes of the fullest tile", "tile_bytes"),
        ("bytes of weights and constants", "weight_bytes"),
        ("exchanged bytes", "exchange_bytes"),
    ):
        yield title, f"{getattr(before, name):,}", f"{getattr(after, name):,}"
    if not (before.fits and after.fits):
        yield "fits", _yes(before.fits), _yes(after.fits)


def _yes(fits: bool) -> str:
    return "yes" if fits else "no"


def _sensitivity(rows: Sequence[NodeLoss]) -> Table:
    """A table of what quantising each node alone costs, the worst first."""
    table = Table(title="one node quantised, the others in float", title_justify="left")
    table.add_column("node", no_wrap=True)
    for title in ("dB", "top-1 agreement", "accuracy"):
        table.add_column(title, justify="right")
    for each in rows:
        main = each.judged.main
        if main is not None:
            shares = (_percent(main.share), _percent(main.accuracy))
            table.add_row(each.node, f"{main.decibels:.1f}", *shares)
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _figures(found: Quantised) -> dict[str, Any]:
    judged = {} if found.judged is None else found.judged.outputs
    return {
        "version": 1,
        "to": found.to,
        "method": found.method,
        "target": found.target,
        "before": asdict(found.before),
        "after": asdict(found.after),
        "quantised": list(found.choice.products),
        "kept": list(found.choice.kept),
        "samples": 0 if found.judged is None else found.judged.samples,
        "outputs": [_of(each) for each in judged.values()],
        "sensitivity": [
            {"node": each.node, "outputs": [_of(a) for a in each.judged.outputs.values()]}
            for each in found.sensitivity
        ],
        "notes": list(found.notes),
    }


def _of(each: Agreement) -> dict[str, Any]:
    # JSON has no infinity, which equal outputs have.
    decibels = each.decibels if isfinite(each.decibels) else None
    return {
        "name": each.name,
        "decibels": decibels,
        "top1_agreement": each.share,
        "accuracy_float": each.accuracy_in_float,
        "accuracy": each.accuracy,
        "not_finite": each.not_finite,
    }
