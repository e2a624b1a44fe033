"""Loads everything that commands need before the first fork, so that each case starts fast."""

from __future__ import annotations

import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.core import TyperGroup

from .agreement import disagreement
from .programs import MODULE, program_files


def preload(commands: TyperGroup) -> None:
    """Import all commands, and compile and run a program once at all levels."""
    for name in commands.commands:
        _ = commands.commands[name]
    files = program_files("nn", 0)
    target = files.program.target.spelling()
    with TemporaryDirectory() as folder, open(os.devnull, "w") as nothing:
        root = Path(folder)
        for name, data in {MODULE: files.text.encode(), **files.blobs}.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(data)
        arguments = ["run", str(root / MODULE), "--target", target, "--check"]
        with redirect_stdout(nothing), redirect_stderr(nothing):
            commands.main(arguments, "abele", standalone_mode=False)
        problem = disagreement(str(root / MODULE), target)
    assert not problem, problem
