"""abele compile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...ir.errors import InputError
from ...ir.instruments.reproducer import fresh_folder
from ..compile import compile_model
from ..executable import PROGRAM_FILE
from .answers import answers, text_in
from .arguments import (
    ConstraintsFile,
    Dims,
    DumpFolder,
    Load,
    MemoryProportion,
    ModelFile,
    Pipeline,
    ProfileFile,
    TargetName,
    VerticesPerTile,
    sizes,
)
from .files import check_files, write_profile
from .showing import progress, show


def compile_command(
    model: ModelFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar=f"P{PROGRAM_FILE}", help="The program file.")
    ],
    target: TargetName = None,
    dim: Dims = None,
    passes: Pipeline = "",
    load: Load = None,
    constraints: ConstraintsFile = None,
    memory_proportion: MemoryProportion = None,
    vertices_per_tile: VerticesPerTile = None,
    profile: ProfileFile = None,
    dump_ir: DumpFolder = None,
) -> None:
    """Compile a model into a program file, which abele run takes."""
    with answers(text_in(model)) as about:
        extensions = about.load(load)
        if output.suffix != PROGRAM_FILE:
            raise InputError(f"{output}: program files end in {PROGRAM_FILE}")
        check_files(
            {"the model": Path(model), "--constraints": constraints},
            {"-o": output, "--profile": profile},
        )
        with progress() as tell:
            exe = compile_model(
                model,
                target,
                dims=sizes(dim),
                passes=passes,
                load=extensions,
                constraints=constraints,
                memory_proportion=memory_proportion,
                vertices_per_tile=vertices_per_tile,
                dump_ir=dump_ir,
                reproducers=fresh_folder,
                watch=tell,
            )
            tell("write")
            exe.save(output)
            if profile is not None:
                write_profile(profile, exe)
        show(exe, f"{model} -> {output}", None)
