"""Reads the model of a case without running the command: what front ends do, and nothing after."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from zlib import crc32

import typer

from ....passes.train import Train
from ... import importers
from ...driver.compile_anew import read_model
from ...driver.request import Request
from ...importers.stablehlo import print_generic, through_jaxlib
from ...views.user_errors import text_in, user_errors
from .case import Case


def read_model_of(case: Case) -> None:
    """Read the model of a case and lead it to nn, for inference or for training.

    Exits as a command would.
    """
    # Some front ends read more for training, such as data layers and losses.
    trains = crc32(case.files[case.damaged]) & 1 == 1
    request = Request(case.model, case.target, train=Train() if trains else None)
    try:
        with user_errors(text_in(case.model), case.model):
            settled = request.settled()
            read_model(settled, settled.extensions.context())
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def reading(case: Case) -> Case:
    """The case, of which only the model is read."""
    return replace(case, reads_only=True)


def prepare() -> None:
    """Import all front ends before the first fork, and let forks of this process print the generic
    form of StableHLO, because jaxlib takes a second to import."""
    for each in pkgutil.walk_packages(importers.__path__, f"{importers.__name__}."):
        import_module(each.name)
    with suppress(ImportError):
        import_module("jaxlib.mlir.dialects.stablehlo")
        import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
        through_jaxlib.print_generic = in_a_fork


def in_a_fork(data: bytes, file: Path | None, seconds: int) -> subprocess.CompletedProcess[bytes]:
    """What a fork of this process prints and ends with: damaged bytecode may abort it."""
    assert file is not None, "a case is a file"
    with TemporaryFile(dir=".") as out, TemporaryFile(dir=".") as err:
        process = os.fork()
        if process == 0:
            try:
                print_generic.limit(seconds)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os._exit(_printed(file))
            finally:
                os._exit(1)
        _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([], code, out.read(), err.read())


def _printed(file: Path) -> int:
    """Print the generic form of a file to the standard output, and return an exit code."""
    with open(1, "w", closefd=False) as sys.stdout, open(2, "w", closefd=False) as sys.stderr:
        return print_generic.main(str(file))
