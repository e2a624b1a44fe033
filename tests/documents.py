"""Runs documents as tests: their blocks are files, commands, Python code, and outputs."""

import io
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from some_extensions import loads_taken_back
from typer.testing import CliRunner

from abele.tools.cli import app

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"(?://|#) (\S+\.(?:py|rw|mlir|toml|prototxt))\n")
"""The first line of a block that is a file: its name in a comment."""

MODULES = {
    "pytest": ["pytest", "-p", "no:cacheprovider"],
    "xdsl-opt": ["xdsl.tools.xdsl_opt"],
}
"""Programs that are modules of Python, and their first arguments."""

PROGRESS = re.compile(r"^abele: compiling kernels.*\n", re.MULTILINE)
"""Lines that appear only in the first run on a host, which may be any test's."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a document. line: the number of its first line."""

    chapter: Path
    line: int
    kind: str
    text: str


def blocks_of(chapter: Path) -> Iterator[Block]:
    text = chapter.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield Block(chapter, text.count("\n", 0, found.start()) + 2, found[1], found[2])


def is_file(block: Block) -> bool:
    """True if a block is a file, named in its first line."""
    return TITLE.match(block.text) is not None


class Reader:
    """Follows a document: writes its files, and runs its Python code and its commands."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "tutorial"}
        self.printed = ""

    def read(self, block: Block) -> None:
        title = TITLE.match(block.text)
        if title is not None:
            Path(title[1]).write_text(block.text)
        elif block.kind == "python":
            self._run(block)
        elif block.kind == "text":
            compare(block.text, self.printed, "what was printed", f"{block.line}")
        elif block.kind == "console":
            self._type(block)
        else:
            pytest.fail(f"{block.chapter.name}:{block.line}: a block {block.kind!r} does nothing")

    def _type(self, block: Block) -> None:
        """Run commands and compare their output. A block without any output checks none.

        A command of which a document shows nothing in particular has to succeed.
        """
        commands = tuple(commands_of(block))
        silent = not any(shown for *_, shown in commands)
        for line, command, shown in commands:
            output, status = run(command)
            if status and (silent or shown.strip() == "..."):
                pytest.fail(f"line {line}: $ {command}\n{output}", pytrace=False)
            if not silent:
                compare(shown, output, f"$ {command}", f"{line}")

    def _run(self, block: Block) -> None:
        # Tracebacks show the document and its lines.
        code = compile("\n" * (block.line - 1) + block.text, block.chapter, "exec")
        with redirect_stdout(io.StringIO()) as stream:
            exec(code, self.names)
        self.printed = stream.getvalue()


def commands_of(block: Block) -> Iterator[tuple[int, str, str]]:
    """The commands of a console block: (line, command, output shown below it)."""
    pieces = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not pieces[0], f"{block.chapter.name}:{block.line}: need a line that begins with $"
    line = block.line
    for piece in pieces[1:]:
        command, _, shown = piece.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = command.removesuffix("\\") + more
        yield line, command, shown
        line += piece.count("\n")


def run(command: str) -> tuple[str, int]:
    """The output and the exit status of a command.

    abele runs in this process, pytest and xdsl-opt in another one, pytest without this project's
    settings, and other commands in a shell.
    """
    command = command.removeprefix(".venv/bin/")
    program, *words = split(command)
    if program in MODULES:
        words = [sys.executable, "-m", *MODULES[program], *words]
        done = subprocess.run(words, text=True, capture_output=True, check=False)
        return done.stdout, done.returncode
    if program != "abele":
        done = subprocess.run(command, shell=True, text=True, capture_output=True, check=True)
        return done.stdout, done.returncode
    result = CliRunner().invoke(app, words, prog_name="abele")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return PROGRESS.sub("", result.output), result.exit_code


def compare(shown: str, actual: str, what: str, place: str) -> None:
    """Compare output with the shown text, in which ... matches any text, or any lines if it is a
    line of its own.

    Runs of spaces and table borders are equal, because the width of a table depends on its times.
    """
    lines = (_pattern(line) for line in _evened(shown).splitlines())
    if not re.fullmatch("".join(lines), _evened(actual)):
        message = f"line {place}: {what}\n--- shown\n{shown}\n--- actual\n{actual}"
        pytest.fail(message, pytrace=False)


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return re.escape(line).replace(r"\.\.\.", ".*?") + r"\n"


def _evened(text: str) -> str:
    text = re.sub(r"─+", "─", re.sub(r" +", " ", text))
    return "".join(f"{line.strip()}\n" for line in text.strip().splitlines())


@contextmanager
def reading(folder: Path) -> Generator[Reader]:
    """A reader in a folder. Extensions that the document loads are removed at the end."""
    with pytest.MonkeyPatch.context() as patch, loads_taken_back():
        patch.chdir(folder)
        yield Reader()
