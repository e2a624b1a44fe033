"""Writes a reproducer when a pass fails: the module and the command that shows the failure."""

import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from itertools import chain, count
from pathlib import Path
from time import monotonic

from ..pass_manager import Instrument, PassManager, pipeline_spec
from ..step import RunningPass
from ..support.errors import DoesNotFit, InputError
from ..support.whole_file import check_folder
from ..text import print_module, write_module
from ..text_version import with_version
from ..upstream import ModuleOp

COMMAND = "abele-opt"
HEADING = f"// {COMMAND} "
"""The text with which every reproducer begins."""

REDUCE_SECONDS = 20.0
"""The default time limit for making the module smaller."""

Reduce = Callable[[ModuleOp, Callable[[ModuleOp], bool]], ModuleOp]
"""Makes a module smaller. Takes the module, and a predicate that tests whether one still fails."""

Folder = Path | Callable[[str], Path]
"""A folder, or a function that returns one for the name of a pass."""


def fresh_folder(name: str) -> Path:
    """A path for a new folder, named after a pass.

    It is in the current folder, or among temporary files if that cannot be written to.
    """
    here = Path()
    try:
        check_folder(here)
    except (InputError, OSError):
        here = Path(tempfile.gettempdir())
    first = here / f"abele-reproducer-{name}"
    candidates = (first.with_name(f"{first.name}-{number}") for number in count(2))
    return first if not first.exists() else next(each for each in candidates if not each.exists())


class Reproducer(Instrument):
    """Keep the module before each pass. If the pass fails, write that module and a command line.

    The file is reproducer-NN-pass-name.mlir, with its blobs beside it in blobs/. The error gets a
    note with the command. No file is overwritten: if there is one of that name with other contents,
    a number is added. InputError, DoesNotFit and MemoryError are not bugs of a pass, so nothing is
    written for them. Put this instrument first, so that it sees the failures of all others.

    Attributes:
        place: the path by which the command names the folder, if the folder is moved there later.
        arguments: more arguments for the command.
        reduce: makes the module smaller within `seconds`.
        checks: the instruments whose errors to reproduce, such as verification.
    """

    def __init__(
        self,
        folder: Folder,
        arguments: Sequence[str] = (),
        *,
        checks: Sequence[Instrument] = (),
        reduce: Reduce | None = None,
        seconds: float = REDUCE_SECONDS,
        place: Path | None = None,
    ) -> None:
        self.folder = folder
        self.place = place
        self.arguments = tuple(arguments)
        self.checks = tuple(checks)
        self.reduce = reduce
        self.seconds = seconds
        self._before: ModuleOp | None = None

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Keep a clone of the module. It is cheaper than its text, and most passes succeed."""
        self._before = module.clone()

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        """Write the reproducer."""
        if self._before is None or isinstance(error, InputError | DoesNotFit | MemoryError):
            return
        name = step.current.name
        folder = self.folder if isinstance(self.folder, Path) else self.folder(name)
        path = folder / f"reproducer-{step.index + 1:02d}-{name}.mlir"
        try:
            command = self._write(self._reduced(self._before, step, error), path, step, error)
        except OSError as trouble:
            # Report the error of the pass. This one is only a note on it.
            error.add_note(f"no reproducer: {path}: cannot be written: {trouble.strerror}")
        else:
            error.add_note(f"reproduce with: {command}")

    def _write(self, module: ModuleOp, path: Path, step: RunningPass, error: Exception) -> str:
        """Write a reproducer to a path, or to one with a number. Returns the command it names."""
        numbered = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
        for each in chain([path], numbered):
            named = each if self.place is None else self.place / each.name
            words = [COMMAND, str(named), "-p", pipeline_spec(step.rest), *self.arguments]
            command = shlex.join(words)
            heading = f"// {command}\n// {type(error).__name__}: {_first_line(error)}\n"
            text = heading + with_version(print_module(module))
            if not each.exists() or each.read_bytes() == text.encode():
                write_module(module, each, heading)
                return command
        raise AssertionError("numbers never end")

    def _reduced(self, module: ModuleOp, step: RunningPass, error: Exception) -> ModuleOp:
        """The module, or a smaller one on which the pass fails with the same error."""
        if self.reduce is None or not self._fails_alike(module, step, error):
            return module
        end = monotonic() + self.seconds

        def interesting(candidate: ModuleOp) -> bool:
            return monotonic() < end and self._fails_alike(candidate, step, error)

        try:
            smaller = self.reduce(module.clone(), interesting)
            return smaller if self._fails_alike(smaller, step, error) else module
        except Exception as trouble:
            error.add_note(f"not reduced: {type(trouble).__name__}: {_first_line(trouble)}")
            return module

    def _fails_alike(self, module: ModuleOp, step: RunningPass, error: Exception) -> bool:
        try:
            PassManager((step.current,), self.checks).run(step.context.clone(), module.clone())
        except Exception as other:
            return type(other) is type(error) and _first_line(other) == _first_line(error)
        return False


def _first_line(error: Exception) -> str:
    """The first line of a message, without the prefix that names the pass and its position."""
    line = str(error).partition("\n")[0]
    return re.sub(r"^after pass '[^']*' \(\d+ of \d+\): ", "", line)
