"""abele run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...backends.target import resolve_target
from ...passes.pipelines import LEVELS
from ..debug.check import check_run
from ..driver.arrays import checked, listed, read_npz, seeded, write_npz
from ..driver.executable import MACHINE, PROGRAM_FILE
from ..driver.files import check_files, write_profile
from ..driver.host_memory import refuse_too_little_to_map
from ..views.progress import progress
from .answers import answers, say, text_in
from .arguments import ModelFile, ProfileFile
from .compiling import Compilation, compiles
from .showing import show


@compiles
def run(
    model: ModelFile,
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="X.npz", help="Inputs by name; those missing get seeded values."),
    ] = None,
    outputs: Annotated[
        Path | None, typer.Option(metavar="Y.npz", help="Write the outputs here.")
    ] = None,
    *,
    how: Compilation,
    at: Annotated[str, typer.Option(metavar="|".join(LEVELS), help="The level to run.")] = MACHINE,
    strict: Annotated[
        bool, typer.Option("--strict", help="Poison memory, and check every access.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Hold result and operations to the reference.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the values of missing inputs.")] = 0,
    profile: ProfileFile = None,
) -> None:
    """Compile a model, or load a program, and run it once."""
    with answers(text_in(model)) as about:
        extensions = about.load(how.load)
        check_files(
            {"the model": Path(model), "--inputs": inputs, "--constraints": how.constraints},
            {"--outputs": outputs, "--profile": profile},
        )
        if at == MACHINE and how.target is not None and not model.endswith(PROGRAM_FILE):
            refuse_too_little_to_map(resolve_target(how.target))
        with progress() as tell:
            exe = how.compiled(model, extensions, tell)
            exe.module_at(at)
            given = {} if inputs is None else read_npz(inputs, exe.inputs)
            values = checked(seeded(exe.inputs, seed) | given, exe.inputs)
            missing = [each for each in exe.inputs if each.name not in given]
            if inputs is not None and missing:
                say(f"{inputs}: not there, so seeded: {listed(missing)}")
            tell(f"run at {at}")
            results = exe.run(values, at=at, strict=strict)
            verdict = None
            if check:
                tell("check against the reference")
                verdict = check_run(exe, values, results, at)
            if outputs is not None:
                write_npz(outputs, results)
            if profile is not None:
                write_profile(profile, exe)
        show(exe, f"{model} at {at}", verdict)
