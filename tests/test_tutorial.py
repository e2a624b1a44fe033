"""The tutorial runs as it stands: each chapter from its first block to its last, in one folder."""

import io
import re
import subprocess
from collections.abc import Generator, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from typer.testing import CliRunner

from abele.ir.user_entries import remove_entries
from abele.tools import extensions
from abele.tools.cli import app

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial"
CHAPTERS = sorted(TUTORIAL.glob("[0-9]*.md"))

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"(?://|#) (\S+\.(?:py|rw|mlir|toml))\n")
"""The first line of a block that is a file."""


@dataclass(frozen=True)
class Block:
    """A block of a chapter. line: its first, in the chapter."""

    chapter: Path
    line: int
    kind: str
    text: str


def blocks_of(chapter: Path) -> Iterator[Block]:
    text = chapter.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield Block(chapter, text.count("\n", 0, found.start()) + 2, found[1], found[2])


class Reader:
    """Somebody who types a chapter in: writes its files, runs its Python and its commands."""

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
            for line, command, shown in commands_of(block):
                compare(shown, output_of(command), f"$ {command}", f"{line}")
        else:
            pytest.fail(f"{block.chapter.name}:{block.line}: a block {block.kind!r} does nothing")

    def _run(self, block: Block) -> None:
        # Errors show the chapter and its lines.
        code = compile("\n" * (block.line - 1) + block.text, block.chapter, "exec")
        with redirect_stdout(io.StringIO()) as stream:
            exec(code, self.names)
        self.printed = stream.getvalue()


def commands_of(block: Block) -> Iterator[tuple[int, str, str]]:
    """The commands of a console block, each with its line and what is shown below it."""
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


def output_of(command: str) -> str:
    """What a command prints: abele's in this process, another's in a shell."""
    if not command.startswith("abele "):
        return subprocess.run(
            command, shell=True, text=True, capture_output=True, check=True
        ).stdout
    result = CliRunner().invoke(app, split(command)[1:], prog_name="abele")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def compare(shown: str, actual: str, what: str, place: str) -> None:
    """Hold output to what is shown, in which ... stands for any text, and on its own for lines.

    How wide a table is depends on its times.
    """
    pattern = re.escape(_evened(shown)).replace(r"\.\.\.", ".*?")
    if not re.fullmatch(pattern, _evened(actual), re.DOTALL):
        pytest.fail(
            f"line {place}: {what}\n--- shown\n{shown}\n--- actual\n{actual}", pytrace=False
        )


def _evened(text: str) -> str:
    text = re.sub(r"─+", "─", re.sub(r" +", " ", text))
    return "\n".join(line.strip() for line in text.strip().splitlines())


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """A chapter has a folder of its own; what it loads is taken back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extensions, "_PARTS", {})
    yield
    for part in extensions._PARTS.values():
        remove_entries(part.owner)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs_as_it_stands(chapter: Path):
    reader = Reader()
    for block in blocks_of(chapter):
        reader.read(block)


def test_the_index_names_every_chapter():
    index = (TUTORIAL / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\d.*?\.md)\)", index) == [path.name for path in CHAPTERS]
