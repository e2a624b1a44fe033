"""Loads everything that commands need before the first fork, so that each case starts fast."""

from __future__ import annotations

import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.core import TyperGroup

from ....ir.support.errors import InputError
from .agreement import disagreement
from .programs import MODULE, program_files

MOST_TRIED = 20
"""The most generated programs that are tried: an index may be out of range."""


def preload(commands: TyperGroup) -> None:
    """Import all commands, and compile and run a program once at all levels."""
    for name in commands.commands:
        _ = commands.commands[name]
    runs = any(_runs(commands, number) for number in range(MOST_TRIED))
    assert runs, f"each of {MOST_TRIED} generated programs has a fault"


def _runs(commands: TyperGroup, number: int) -> bool:
    """Run a generated program at all levels. Returns False if it has a fault of its own."""
    files = program_files("nn", number)
    target = files.program.target.spelling()
    with TemporaryDirectory() as folder, open(os.devnull, "w") as nothing:
        root = Path(folder)
        for name, data in {MODULE: files.text.encode(), **files.blobs}.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(data)
        try:
            problem = disagreement(str(root / MODULE), target)
        except InputError:
            return False
        arguments = ["run", str(root / MODULE), "--target", target, "--check"]
        with redirect_stdout(nothing), redirect_stderr(nothing):
            commands.main(arguments, "abele", standalone_mode=False)
    assert not problem, problem
    return True
