"""What is needed to see a failure again, written when a pass fails."""

import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from time import monotonic

from ..errors import DoesNotFit, InputError
from ..pass_manager import Instrument, PassManager, Step, pipeline_spec
from ..text import write_module
from ..upstream import ModuleOp
from ..whole_file import check_folder

COMMAND = "abele-opt"
HEADING = f"// {COMMAND} "
"""What a reproducer begins with."""

REDUCE_SECONDS = 20.0

Reduce = Callable[[ModuleOp, Callable[[ModuleOp], bool]], ModuleOp]
"""Makes a module smaller, as long as the smaller one still fails."""

Folder = Path | Callable[[str], Path]
"""A folder, or what finds one for the name of a pass."""


def fresh_folder(name: str) -> Path:
    """A folder that is not there yet, named after a pass: here, else among temporary files."""
    here = Path()
    try:
        check_folder(here)
    except InputError:
        here = Path(tempfile.gettempdir())
    first = here / f"abele-reproducer-{name}"
    candidates = (first.with_name(f"{first.name}-{number}") for number in count(2))
    return first if not first.exists() else next(each for each in candidates if not each.exists())


class Reproducer(Instrument):
    """Keep the module before each pass; when the pass fails, write it with the one command line.

    The file is reproducer-NN-pass-name.mlir, its blobs beside it in blobs/; the error gets a note
    with the command. A file of that name that is no reproducer is left alone. InputError and
    DoesNotFit are answers to the user, and a lack of memory is nobody's bug: they write nothing.
    Put it first among the instruments, so that it sees what the others find.

    arguments: more of the command line. reduce: makes the module smaller, given some seconds.
    checks: the instruments whose findings are to be reproduced, such as verification.
    """

    def __init__(
        self,
        folder: Folder,
        arguments: Sequence[str] = (),
        *,
        checks: Sequence[Instrument] = (),
        reduce: Reduce | None = None,
        seconds: float = REDUCE_SECONDS,
    ) -> None:
        self.folder = folder
        self.arguments = tuple(arguments)
        self.checks = tuple(checks)
        self.reduce = reduce
        self.seconds = seconds
        self._before: ModuleOp | None = None

    def before(self, step: Step, module: ModuleOp) -> None:
        """Keep a clone: cheaper than text, and most passes succeed."""
        self._before = module.clone()

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Write the reproducer."""
        if self._before is None or isinstance(error, InputError | DoesNotFit | MemoryError):
            return
        name = step.current.name
        folder = self.folder if isinstance(self.folder, Path) else self.folder(name)
        path = _free(folder / f"reproducer-{step.index + 1:02d}-{name}.mlir")
        words = [COMMAND, str(path), "-p", pipeline_spec(step.rest), *self.arguments]
        command = shlex.join(words)
        try:
            write_module(
                self._reduced(self._before, step, error),
                path,
                f"// {command}\n// {type(error).__name__}: {_first_line(error)}\n",
            )
        except OSError as trouble:
            # The pass's error is the one to be told.
            error.add_note(f"no reproducer: {path}: cannot be written: {trouble.strerror}")
        else:
            error.add_note(f"reproduce with: {command}")

    def _reduced(self, module: ModuleOp, step: Step, error: Exception) -> ModuleOp:
        """The module, or a smaller one on which the pass fails alike."""
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

    def _fails_alike(self, module: ModuleOp, step: Step, error: Exception) -> bool:
        try:
            PassManager((step.current,), self.checks).run(step.context.clone(), module.clone())
        except Exception as other:
            return type(other) is type(error) and _first_line(other) == _first_line(error)
        return False


def _first_line(error: Exception) -> str:
    """The first line of a message, without the place of a pass in its pipeline."""
    line = str(error).partition("\n")[0]
    return re.sub(r"^after pass '[^']*' \(\d+ of \d+\): ", "", line)


def _free(path: Path) -> Path:
    """The path, numbered if something that is no reproducer has it."""
    numbered = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return path if _may_write(path) else next(each for each in numbered if _may_write(each))


def _may_write(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(HEADING)) == HEADING.encode()
    except FileNotFoundError:
        return True
    except OSError:
        # Writing will say why not; there is no other name to try.
        return not path.is_dir()
