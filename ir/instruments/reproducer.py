"""What is needed to see a failure again, written when a pass fails."""

import shlex
from pathlib import Path

from ..errors import DoesNotFit, InputError
from ..pass_manager import Instrument, Step, pipeline_spec
from ..text import write_module
from ..upstream import ModuleOp


class Reproducer(Instrument):
    """Keep the module before each pass; when the pass fails, write it with the one command line.

    The file is reproducer-NN-pass-name.mlir, its blobs beside it in blobs/; the error gets a note
    with the command. InputError and DoesNotFit are answers to the user and write nothing. Put it
    first among the instruments, so that it sees what the others find.
    """

    def __init__(self, directory: Path, command: str = "abele-opt") -> None:
        self.directory = directory
        self.command = command
        self._before: ModuleOp | None = None

    def before(self, step: Step, module: ModuleOp) -> None:
        """Keep a clone: cheaper than text, and most passes succeed."""
        self._before = module.clone()

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Write the reproducer."""
        if self._before is None or isinstance(error, InputError | DoesNotFit):
            return
        path = self.directory / f"reproducer-{step.index + 1:02d}-{step.current.name}.mlir"
        command = shlex.join([*self.command.split(), str(path), "-p", pipeline_spec(step.rest)])
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
        try:
            write_module(self._before, path, f"// {command}\n// {problem}\n")
        except OSError as trouble:
            # The pass's error is the one to be told.
            error.add_note(f"no reproducer: {path}: cannot be written: {trouble.strerror}")
        else:
            error.add_note(f"reproduce with: {command}")
