"""abele run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...ir.support.deferred import deferred
from ...ir.well_known import MOST_SEED, SOURCE_NAMES
from ..driver.arrays import Array, Tensor, checked, listed, npz_names, read_npz, seeded, write_npz
from ..driver.compile import compiled
from ..driver.executable import MACHINE
from ..driver.files import PROGRAM_FILE, check_files, write_text
from ..driver.host_memory import refuse_too_little_to_map
from ..driver.member_names import member_names
from ..driver.request import machine_of
from ..driver.stages import CHECK
from ..views.user_errors import print_error_line, text_in, user_errors
from .arguments import LEVELS_HELP, ModelFile, ProfileFile, TraceFile, given_values, sizes
from .compiling import Compilation, compiles
from .showing import figure, show
from .threads import ThreadCount, use_threads

with deferred(__name__):
    from ..debug.run_check import check_run
    from ..driver.onnx_runs import run_onnx
    from ..driver.overrides import overrides, refuse_other_values
    from ..driver.profile_file import write_profile
    from ..views.layer_names import source_lines
    from ..views.trace import trace_text


ONNX_NAME = "onnx"
"""The level of models of ONNX, which onnx's own evaluator runs."""


class _ReplacedError(Exception):
    """Raised if inputs replace values of the model, so that it must be compiled with them."""


@compiles
def run(
    model: ModelFile,
    outputs: Annotated[
        Path | None, typer.Option(metavar="Y.npz", help="Write the outputs here.")
    ] = None,
    *,
    how: Compilation,
    at: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help=f"The level to run: {LEVELS_HELP}; or {SOURCE_NAMES[0]}, for a program of it as "
            "it was read; or onnx, for a model of ONNX by onnx's own evaluator.",
        ),
    ] = MACHINE,
    strict: Annotated[
        bool, typer.Option("--strict", help="Poison memory and check every access.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Compare the outputs with exact arithmetic (float64 throughout), each operation "
            "with float64 on the operands it received, within its error bound, and the bits of "
            "this run with those of the run that is checked.",
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            help="Seed for missing inputs, and for the random numbers that the model draws.",
        ),
    ] = 0,
    threads: ThreadCount = None,
    profile: ProfileFile = None,
    trace: TraceFile = None,
) -> None:
    """Compile a model, or load a program, and run it once."""
    with user_errors(text_in(model), model) as context:
        use_threads(threads)
        extensions, inputs = context.load(how.load), how.inputs
        if at == ONNX_NAME:
            _run_as_onnx(model, outputs, how, seed)
            return
        check_files(
            {
                "the model": Path(model),
                "--inputs": inputs,
                **how.files,
            },
            {"--outputs": outputs, "--profile": profile, "--trace": trace},
        )
        # Without --target, the model may name one, which is not known yet.
        if at == MACHINE and how.target is not None and not model.endswith(PROGRAM_FILE):
            refuse_too_little_to_map(machine_of(how.target, how.chips, None))
        given: dict[str, Array] = {}
        replaced: dict[str, Array] = {}
        with_values = given_values(how.value)
        if inputs is not None:
            refuse_other_values(inputs, with_values)

        def read_inputs(wanted: Sequence[Tensor]) -> None:
            if inputs is None:
                return
            if not replaced:
                names = {*with_values, *(each.name for each in wanted)}
                replaced.update(overrides(model, inputs, names))
                if replaced:
                    raise _ReplacedError
            given.update(read_npz(inputs, wanted, {*with_values, *replaced}))

        with how.progress(extensions) as on_step:
            request = replace(how.request(model, extensions, on_step), on_inputs=read_inputs)
            if at in SOURCE_NAMES:
                # The cache keeps programs without the text that they were made from.
                request = replace(request, cache=False)
            try:
                exe = compiled(request)
            except _ReplacedError:
                exe = compiled(request.with_values(replaced))
            exe.check_level(at)
            exe.seed_random(seed & MOST_SEED)
            if outputs is not None:
                # Before a long run: write_npz would refuse these names after it.
                member_names(tensor.name for tensor in exe.outputs)
            if inputs is not None and model.endswith(PROGRAM_FILE):
                exe.refuse_optional({*npz_names(inputs)} - {each.name for each in exe.inputs})
                given.update(read_npz(inputs, exe.inputs))
            padded = exe.signature.padded(given)
            longest = exe.signature.first_lengths()
            blocks = exe.signature.seeded_blocks(seed)
            every = seeded(exe.inputs, seed) | longest | blocks | padded
            values = checked(every, exe.inputs)
            missing = [
                each for each in exe.inputs if each.name not in padded and each.name not in longest
            ]
            if inputs is not None and missing:
                print_error_line(f"{inputs}: missing inputs get seeded values: {listed(missing)}")
            on_step(f"load {at}")
            exe.runners.prepared(at, strict)
            on_step(f"run at {at}")
            results = exe.run(values, at=at, strict=strict)
            if strict and exe.runners.unchecked:
                names = ", ".join(f"@{name}" for name in exe.runners.unchecked)
                print_error_line(f"timetables with too many messages were not checked: {names}")
            verdict = None
            if check:
                on_step(CHECK)
                with exe.stages.timed("check"):
                    taken = exe.signature.encoded(values)
                    verdict = check_run(exe, taken, results, at, on_step)
            if outputs is not None:
                with exe.stages.timed("write"):
                    write_npz(outputs, results)
            on_step("figures")
            figure(exe)
            if profile is not None:
                write_profile(profile, exe, source_lines(model))
            if trace is not None:
                on_step("trace")
                write_text(trace, trace_text(exe, source_lines(model)))
        show(exe, f"{model} at {at}", verdict, with_values, verbose=how.verbose)


def _run_as_onnx(model: str, outputs: Path | None, how: Compilation, seed: int) -> None:
    """Run a model of ONNX unchanged, and say what it computed."""
    check_files({"the model": Path(model), "--inputs": how.inputs}, {"--outputs": outputs})
    found = run_onnx(model, how.inputs, sizes(how.dim), seed)
    if found.seeded and how.inputs is not None:
        print_error_line(
            f"{how.inputs}: missing inputs get seeded values: {', '.join(found.seeded)}"
        )
    if outputs is not None:
        write_npz(outputs, found.outputs)
    sys.stdout.write(f"{model} at {ONNX_NAME}, by {found.by}\n")
    for name, array in found.outputs.items():
        sys.stdout.write(f"  {name}: {array.dtype}{list(array.shape)}\n")
