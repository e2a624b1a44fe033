from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.backends.executable import PROGRAM
from abele.ir import text_version
from abele.ir.support.errors import InputError
from abele.ir.text import parse_module, print_module, read_module, write_module
from abele.ir.text_version import TEXT, version_of, with_version
from abele.ir.upstream import ModuleOp
from abele.tools.cli import app
from abele.tools.driver.context import new_context

MODULE = "builtin.module {\n}\n"
LATER = replace(TEXT, version=3, gone=("abele 0.1",))
"""Texts of a later abele, which still reads version 2."""


@pytest.mark.parametrize(
    "text",
    [
        "",
        MODULE,
        "// a comment\n\n" + MODULE,
        "// the next abele text, version 9\n" + MODULE,
        # Below the module's first line, a comment says nothing of the text.
        MODULE + "// abele text, version 9\n",
    ],
)
def test_a_text_without_a_version_has_version_1(text: str):
    assert version_of(text, "net.mlir") == 1


def test_a_saved_text_says_its_version_once_above_the_module(tmp_path: Path):
    write_module(ModuleOp([]), tmp_path / "net.mlir", "// heading\n")
    text = (tmp_path / "net.mlir").read_text()
    assert text == "// heading\n// abele text, version 1\n" + print_module(ModuleOp([]))
    read_module(tmp_path / "net.mlir", new_context())


@pytest.mark.parametrize(
    "above", ["", "// heading\n", "\n\n  \n", "// abele-opt x.mlir\r\n// why\r\n"]
)
@pytest.mark.parametrize("version", [2, 3])
def test_an_older_version_that_is_read_and_the_newest(
    above: str, version: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(text_version, "TEXT", LATER)
    text = f"{above}//  abele text, version  {version} \r\n{MODULE}"
    assert version_of(text, "net.mlir") == version
    assert version_of(with_version(MODULE), "net.mlir") == 3


@pytest.mark.parametrize("text", [MODULE, "// abele text, version 1\n" + MODULE])
def test_an_older_text_is_refused_with_the_abele_that_reads_it(
    text: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(text_version, "TEXT", LATER)
    with pytest.raises(InputError, match=r"net\.mlir.*: version 1 of abele text, which abele 0\.1"):
        parse_module(text, new_context(), "net.mlir")


def test_a_newer_text_is_refused_before_anything_below_it_is_read():
    with pytest.raises(InputError) as raised:
        parse_module("\n// abele text, version 2\n ???\n", new_context(), "net.mlir")
    assert str(raised.value) == (
        "net.mlir:2: version 2 of abele text is of a newer abele; this one reads version 1; update "
        "abele, or write the text again with this one"
    )


@pytest.mark.parametrize(
    "word", ["", "two", "-1", "0", "1.0", "1, or so", "²", "9" * 19, "9" * 10**6, "x" * 10**6]
)
def test_hostile_versions_have_one_short_message_and_exit_code_2(tmp_path: Path, word: str):
    (tmp_path / "net.mlir").write_text(f"// abele text, version {word}\n{MODULE}", encoding="utf-8")
    done = CliRunner().invoke(app, ["opt", str(tmp_path / "net.mlir")])
    assert done.exit_code == 2
    message = " ".join(done.stderr.split())
    assert message.count("of abele text; need version 1") == 1
    assert len(message) < 300


def test_long_lines_take_time_in_proportion():
    text = "// abele text, version 1" + " \t" * 200_000 + "x\n" + "// y\n" * 200_000
    with pytest.raises(InputError, match="need version 1"):
        version_of(text, "net.mlir")


def test_each_part_of_a_result_that_is_written_says_its_version(tmp_path: Path):
    (tmp_path / "in.mlir").write_text(MODULE + "// -----\n" + MODULE)
    options = ["--split-input-file", "-o", str(tmp_path / "out.mlir")]
    done = CliRunner().invoke(app, ["opt", str(tmp_path / "in.mlir"), *options])
    assert done.exit_code == 0, done.output
    parts = (tmp_path / "out.mlir").read_text().split("// -----")
    assert [part.lstrip().partition("\n")[0] for part in parts] == ["// abele text, version 1"] * 2


def test_printed_text_says_no_version(tmp_path: Path):
    (tmp_path / "in.mlir").write_text(with_version(MODULE))
    done = CliRunner().invoke(app, ["opt", str(tmp_path / "in.mlir")])
    assert done.stdout == print_module(ModuleOp([]), locations=False)


def test_a_new_version_of_texts_makes_a_new_version_of_program_files():
    """Texts in a program file say no version, so that of the file stands for theirs."""
    assert (PROGRAM.version, TEXT.version) == (3, 1), "raise both versions, then this test's"
