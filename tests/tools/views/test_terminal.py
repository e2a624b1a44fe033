import ast
import io
from pathlib import Path

import pytest
from rich.table import Table
from sources import ROOT, files, imports_in

from abele.tools.views import terminal as module
from abele.tools.views.progress import progress
from abele.tools.views.terminal import Terminal, changing_line

HOME = {"rich": "tools/views/terminal.py", "html": "tools/driver/html_page.py"}
"""The one file that may print, and the one that may escape HTML."""

HARMLESS = {"rich.table", "rich.cells"}
"""What tables are made of. Only a console renders their texts."""

NAMES = ["a[/b]", "dense[bias]", "[bold]x", "[link=u]y[/link]", ":smile:", "[", "\\[x]", "[red"]


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for each in imports_in(path):
        if isinstance(each, ast.Import):
            found |= {alias.name for alias in each.names}
        elif not each.level:
            found.add(each.module or "")
    return found


@pytest.mark.parametrize("library", HOME)
def test_one_file_prints_and_one_escapes(library: str):
    users: dict[str, set[str]] = {}
    for path in files():
        names = {each for each in imported(path) if each.partition(".")[0] == library}
        if names - HARMLESS:
            users[str(path.relative_to(ROOT))] = names
    assert set(users) == {HOME[library]}, users


@pytest.mark.parametrize("name", NAMES)
def test_every_text_is_printed_as_it_is(name: str):
    stream = io.StringIO()
    table = Table(title=f"title {name}", caption=f"caption {name}")
    table.add_column(f"heading {name}", footer=f"footer {name}")
    table.show_footer = True
    table.add_row(f"cell {name}")
    terminal = Terminal(file=stream, width=100)
    terminal.print(f"line {name}", table, markup=True, emoji=True)
    for part in ("title", "caption", "heading", "footer", "cell", "line"):
        assert f"{part} {name}" in stream.getvalue(), part


def test_a_long_name_folds_between_its_parts_and_loses_no_letter():
    stream = io.StringIO()
    table = Table()
    table.add_column("node")
    table.add_column("note")
    name = "encoder.layers.11.self_attention.query_key_value_projection+" + "x" * 40
    table.add_row(name, "some words about it " * 3)
    Terminal(file=stream, width=60).print(table)
    rows = [line.split("│")[1].strip() for line in stream.getvalue().splitlines() if "│" in line]
    assert "".join(rows) == name
    ends = [row[-1] for row in rows if row and "x" not in row.removeprefix("encoder")]
    assert len(ends) > 1
    assert set(ends) <= set("._+")


def test_control_characters_do_not_reach_the_terminal():
    stream = io.StringIO()
    table = Table()
    table.add_column()
    table.add_row("\x1b[2J\x07\x9b\u202e\udcff")
    Terminal(file=stream, width=100).print("\x1b]0;title\x07", table)
    assert "\\x1b]0;title\\x07" in stream.getvalue()
    assert "\\x1b[2J\\x07\\x9b\\u202e\\xff" in stream.getvalue()
    assert not set(stream.getvalue()) & set("\x1b\x07\x9b\u202e\udcff")


@pytest.mark.parametrize("name", NAMES)
def test_the_line_that_changes_shows_text_as_it_is(monkeypatch: pytest.MonkeyPatch, name: str):
    stream = io.StringIO()

    class Tty(Terminal):
        def __init__(self, **_: object) -> None:
            super().__init__(file=stream, width=100)

        @property
        def is_terminal(self) -> bool:
            return True

    monkeypatch.setattr(module, "Terminal", Tty)
    with changing_line() as show, progress() as tell:
        show(f"one {name}")
        tell(f"two {name}")
    with pytest.raises(NotImplementedError):
        Tty().status("three")


def test_steps_show_no_control_characters(capsys: pytest.CaptureFixture[str]):
    with progress(verbose=True) as tell:
        tell("read \x1b[2J[/b]")
    assert "read \\x1b[2J[/b]" in capsys.readouterr().err
