"""Turn errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from shlex import quote
from typing import NoReturn

import typer

from ...backends.faults import IterationLimit, MachineFault
from ...ir.support.deferred import deferred
from ...ir.support.errors import (
    DoesNotFit,
    InputError,
    NotEnoughMemory,
    one_line,
    short_notes,
    shortened,
)
from ..driver.extensions.load import load_extensions
from ..driver.extensions.loaded import Extensions
from ..driver.files import PROGRAM_FILE
from ..driver.shown_text import shown
from ..importers.front_ends import front_end_at

with deferred(__name__):
    from ...ir.provenance import place
    from ...ir.step import FailedStepNote, failed_step
    from ...ir.upstream import VerifyException
    from .syntax.colour import message_for

CHECK_FAILED, BAD_INPUT, TOO_LARGE = 1, 2, 3

TRACEBACK = "ABELE_TRACEBACK"
"""The environment variable that asks for a traceback instead of a message."""


@dataclass
class ErrorContext:
    """The context that messages need.

    Attributes:
        text: the path of the IR file or program file that is read; "" if there is none.
        model: the file that is compiled or run, for commands that messages suggest.
    """

    text: str = ""
    model: str = "MODEL"
    extensions: Extensions = field(default_factory=Extensions)

    def load(self, paths: Sequence[str] | None) -> Extensions:
        """Load extensions, and print the warnings of their rules.

        From here on, errors in their code are reported as their users'. Raises InputError.
        """
        self.extensions = load_extensions(paths or ())
        for warning in self.extensions.warnings:
            print_error_line(warning)
        return self.extensions


def text_in(model: str) -> str:
    """The path of a model that is text or a program file; "" for one that an importer reads."""
    front_end = front_end_at(model)
    is_text = front_end is not None and front_end.is_text
    return model if is_text or model.endswith(PROGRAM_FILE) else ""


@contextmanager
def user_errors(text: str = "", model: str = "MODEL") -> Generator[ErrorContext]:
    """Turn users' errors into one message and an exit code; let abele's own bugs through.

    Args:
        text: the path of the IR file or program file that is read, if any. Such a file can hold any
            verified program. If a pass or the machine raises an error for it, the file is to blame.
        model: the file that is compiled or run.
    """
    context = ErrorContext(text, model)
    with _reporting(context):
        yield context


def report_errors(errors: Sequence[Exception], context: ErrorContext) -> None:
    """Report each error as user_errors does; exit with their code, or BAD_INPUT if they differ."""
    codes: set[int] = set()
    for error in errors:
        try:
            with _reporting(context):
                raise error
        except typer.Exit as ended:
            codes.add(ended.exit_code)
    if codes:
        raise typer.Exit(codes.pop() if len(codes) == 1 else BAD_INPUT)


@contextmanager
def _reporting(context: ErrorContext) -> Generator[None]:
    try:
        yield
    except typer.Exit:
        raise
    except DoesNotFit as error:
        named = str(error).replace("abele memory MODEL", f"abele memory {quote(context.model)}")
        fail(TOO_LARGE, f"does not fit: {named}")
    except (InputError, IterationLimit) as error:
        fail(BAD_INPUT, str(error))
    except MemoryError as error:
        step = failed_step(error)
        what = str(error) if isinstance(error, NotEnoughMemory) else "that"
        wanted = what if step is None else str(step)
        fail(BAD_INPUT, f"this host has not enough memory for {wanted}")
    except BrokenPipeError:
        # The reader has closed the pipe: not an error, and nothing is left to flush at exit.
        sys.stdout = None
        raise typer.Exit(0) from None
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _report(error, context)
        raise


def fail(code: int, message: str) -> NoReturn:
    """Print a message, and exit with a code."""
    print_error_line(f"error: {message}")
    raise typer.Exit(code) from None


def print_error_line(message: str) -> None:
    """Write a message to standard error, with its first word in colour on a terminal.

    Leaves out the middle of lines that are too long to read.
    """
    short = "\n".join(map(shortened, message.split("\n")))
    sys.stderr.write(f"{message_for(shown(short), sys.stderr)}\n")


def _report(error: Exception, context: ErrorContext) -> None:
    """Print a message and exit; return for a bug of abele's, which needs a traceback."""
    if _is_users(error, context.extensions):
        fail(BAD_INPUT, _blame(error, context.extensions))
    if isinstance(error, (MachineFault, VerifyException)):
        fail(CHECK_FAILED, "\n".join([str(error), *short_notes(error)]))
    if isinstance(error, RecursionError):
        fail(BAD_INPUT, "\n".join(["the input is nested too deeply", *_advice(error)]))
    if isinstance(error, ValueError) and TOO_MANY_DIGITS in str(error):
        # Python neither reads nor prints such an integer, wherever in the input it is.
        where = f"{context.text}: " if context.text else ""
        most = sys.get_int_max_str_digits()
        fail(BAD_INPUT, f"{where}an integer has too many digits; need at most {most:,}")
    if isinstance(error, OSError):
        # The disk is full, or a folder has gone. Paths were checked before.
        where = "" if error.filename is None else f"{error.filename}: "
        if not where and _has_no_folder():
            fail(BAD_INPUT, "the working folder was deleted; change to another one")
        fail(BAD_INPUT, f"{where}{error.strerror or error}")
    if context.text and isinstance(error, STUMBLES):
        problem = "; ".join([f"cannot be compiled or run: {one_line(error)}", *_places(error)])
        shows = f"{TRACEBACK}=1 shows where"
        fail(BAD_INPUT, "\n".join([f"{context.text}: {problem}; {shows}", *_advice(error)]))


def _has_no_folder() -> bool:
    """Whether the working folder was deleted, so that no relative path leads anywhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


TOO_MANY_DIGITS = "for integer string conversion"
"""A part of Python's message for an integer of thousands of digits."""

STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a pass or the machine for text that verifies but makes no sense."""


def _is_users(error: Exception, extensions: Extensions) -> bool:
    """Whether users' code is at fault: their pass, or their function in another pass."""
    step = failed_step(error)
    return bool(extensions.traceback(error)) or (
        step is not None and extensions.provides(step.current)
    )


def _blame(error: Exception, extensions: Extensions) -> str:
    """Describe an error in users' code: the pass, the operation, and the lines of their files."""
    step, op = failed_step(error), extensions.operation(error)
    where = "your code" if step is None else str(step)
    if isinstance(error, VerifyException) and not extensions.traceback(error):
        return "\n".join([str(error), *_advice(error)])
    at = "" if op is None else f" at {op.name}, {place(op)}"
    traceback = extensions.traceback(error)
    return "\n".join([f"{where} failed{at}: {one_line(error)}", traceback, *_advice(error)])


def _places(error: BaseException) -> list[str]:
    return [note for note in short_notes(error) if isinstance(note, FailedStepNote)]


def _advice(error: BaseException) -> list[str]:
    return [note for note in short_notes(error) if not isinstance(note, FailedStepNote)]
