"""What a command says when something is wrong: one message, and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import typer

from ...backends.evaluate.control import IterationLimit
from ...backends.machine import MachineFault
from ...ir.errors import DoesNotFit, InputError, NotEnoughMemory
from ...ir.pass_manager import InPass, failed_step
from ...ir.provenance import place
from ...ir.upstream import VerifyException
from ..driver.executable import PROGRAM_FILE
from ..driver.extensions.load import load_extensions
from ..driver.extensions.loaded import Extensions

CHECK_FAILED, BAD_INPUT, TOO_LARGE = 1, 2, 3

TRACEBACK = "ABELE_TRACEBACK"
"""The environment variable that asks for a traceback where a message would do."""


@dataclass
class Answers:
    """What messages are about. text: what a file of IR is called, if one is read."""

    text: str = ""
    extensions: Extensions = field(default_factory=Extensions)

    def load(self, paths: Sequence[str] | None) -> Extensions:
        """Load extensions, whose errors are then told as their users'; say what rules warn of.

        Raises InputError.
        """
        self.extensions = load_extensions(paths or ())
        for warning in self.extensions.warnings:
            say(warning)
        return self.extensions


def text_in(model: str) -> str:
    """The model's path if it is a text or a program file: not made by an importer; else ""."""
    return model if model.endswith((".mlir", PROGRAM_FILE)) else ""


@contextmanager
def answers(text: str = "") -> Generator[Answers]:
    """Turn what is nobody's bug, or a user's own, into one message and an exit code.

    text: what a file of IR is called, if one is read. It may say anything that verifies; if that
    makes a pass or the machine stumble, it is refused too.
    """
    about = Answers(text)
    with _answering(about):
        yield about


def answered(errors: Sequence[Exception], about: Answers) -> None:
    """Say what each error was, as answers does; exit with their code, BAD_INPUT if they differ."""
    codes: set[int] = set()
    for error in errors:
        try:
            with _answering(about):
                raise error
        except typer.Exit as ended:
            codes.add(ended.exit_code)
    if codes:
        raise typer.Exit(codes.pop() if len(codes) == 1 else BAD_INPUT)


@contextmanager
def _answering(about: Answers) -> Generator[None]:
    try:
        yield
    except typer.Exit:
        raise
    except DoesNotFit as error:
        fail(TOO_LARGE, f"does not fit: {error}")
    except (InputError, IterationLimit) as error:
        fail(BAD_INPUT, str(error))
    except MemoryError as error:
        step = failed_step(error)
        told = str(error) if isinstance(error, NotEnoughMemory) else "that"
        wanted = told if step is None else str(step)
        fail(BAD_INPUT, f"this host has not enough memory for {wanted}")
    except BrokenPipeError:
        # Whoever reads has had enough: no error, and nothing more to flush at exit.
        sys.stdout = None
        raise typer.Exit(0) from None
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _answer(error, about)
        raise


def fail(code: int, message: str) -> NoReturn:
    """Say what is wrong, and exit."""
    say(f"error: {message}")
    raise typer.Exit(code) from None


def say(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{message}\n")


def _answer(error: Exception, about: Answers) -> None:
    """Fail with a message; do nothing where a traceback is the answer: for a bug of abele's."""
    if _is_users(error, about.extensions):
        fail(BAD_INPUT, _blame(error, about.extensions))
    if isinstance(error, MachineFault | VerifyException):
        fail(CHECK_FAILED, "\n".join([str(error), *_notes(error)]))
    if isinstance(error, RecursionError):
        fail(BAD_INPUT, "\n".join(["the input is nested too deeply", *_advice(error)]))
    if isinstance(error, OSError):
        # A disk that is full, a folder that went away; paths are checked before.
        where = "" if error.filename is None else f"{error.filename}: "
        fail(BAD_INPUT, f"{where}{error.strerror or error}")
    if about.text and isinstance(error, STUMBLES):
        problem = "; ".join([f"cannot be compiled or run: {_summary(error)}", *_places(error)])
        shows = f"{TRACEBACK}=1 shows where"
        fail(BAD_INPUT, "\n".join([f"{about.text}: {problem}; {shows}", *_advice(error)]))


STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What text that verifies, and yet makes no sense, may make a pass or the machine raise."""


def _is_users(error: Exception, extensions: Extensions) -> bool:
    """Whether a user's own code is at fault: their pass, or a function of theirs within another."""
    step = failed_step(error)
    return bool(extensions.traceback(error)) or (
        step is not None and extensions.provides(step.current)
    )


def _blame(error: Exception, extensions: Extensions) -> str:
    """What a user's own code did wrong: which pass, at which operation, in which of its lines."""
    step, op = failed_step(error), extensions.operation(error)
    where = "your code" if step is None else str(step)
    if isinstance(error, VerifyException) and not extensions.traceback(error):
        return "\n".join([str(error), *_advice(error)])
    at = "" if op is None else f" at {op.name}, {place(op)}"
    traceback = extensions.traceback(error)
    return "\n".join([f"{where} failed{at}: {_summary(error)}", traceback, *_advice(error)])


def _summary(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _notes(error: BaseException) -> tuple[str, ...]:
    return tuple(getattr(error, "__notes__", ()))


def _places(error: BaseException) -> list[str]:
    return [note for note in _notes(error) if isinstance(note, InPass)]


def _advice(error: BaseException) -> list[str]:
    return [note for note in _notes(error) if not isinstance(note, InPass)]
