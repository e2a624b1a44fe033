import os
import pty
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from abele.tools.views.syntax.colour import (
    COLOURS,
    has_colour,
    highlighted,
    ir_for,
    message_for,
)
from abele.tools.views.syntax.languages import LANGUAGES

ROOT = Path(__file__).parents[4]
CODE = re.compile(r"\x1b\[[0-9;]*m")
LINE = '%0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("a")\n'


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_has_colour_and_a_pipe_has_none():
    assert has_colour(Terminal())
    assert not has_colour(StringIO())
    assert not has_colour(None)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("NO_COLOR", "1", False), ("NO_COLOR", "", True), ("TERM", "dumb", False)],
)
def test_colour_can_be_turned_off(
    name: str, value: str, shown: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(name, value)
    assert has_colour(Terminal()) is shown
    assert (ir_for(LINE, Terminal()) != LINE) is shown


def test_the_word_that_begins_a_message_is_in_colour():
    assert message_for("error: no file", Terminal()) == "\x1b[1;31merror:\x1b[0m no file"
    assert message_for("warning: slow", Terminal()) == "\x1b[1;33mwarning:\x1b[0m slow"
    for plain in ("an error: no", "12:3 error: no"):
        assert message_for(plain, Terminal()) == plain
    assert message_for("error: no file", StringIO()) == "error: no file"


@pytest.mark.parametrize("path", ["examples/recurrent.mlir", "passes/rules/canonicalize.rw"])
def test_highlighting_adds_only_codes(path: str):
    text = (ROOT / path).read_text()
    found = highlighted(text, LANGUAGES[Path(path).suffix])
    assert CODE.sub("", found) == text
    assert {code for code in re.findall(r"\x1b\[([0-9;]+)m", found)} >= {"0", "90", "1"}


def test_text_outside_the_language_stays_uncoloured():
    assert highlighted('` "open', LANGUAGES[".mlir"]) == '` "open'


def test_each_colour_is_of_a_token():
    tokens = {each.token for language in LANGUAGES.values() for each in language.words}
    assert not [each for each in COLOURS if not any(t.startswith(each) for t in tokens)]


def seen_on_terminal(*arguments: str) -> str:
    """What a process of abele writes to a terminal."""
    script = "from abele.tools.cli import main; main()"
    reader, writer = pty.openpty()
    command = [sys.executable, "-c", script, *arguments]
    subprocess.run(command, stdout=writer, stderr=writer, check=False)
    os.close(writer)
    found = b""
    try:
        while chunk := os.read(reader, 1 << 16):
            found += chunk
    except OSError:  # the terminal is gone
        pass
    os.close(reader)
    return found.decode()


def test_opt_is_coloured_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.mlir"
    path.write_text("builtin.module {\n}\n")
    assert seen_on_terminal("opt", str(path)).startswith("\x1b[1mbuiltin.module\x1b[0m {")
    missing = seen_on_terminal("opt", str(tmp_path / "none.mlir"))
    assert missing.startswith("\x1b[1;31merror:\x1b[0m ")
    monkeypatch.setenv("NO_COLOR", "1")
    assert CODE.search(seen_on_terminal("opt", str(path))) is None
