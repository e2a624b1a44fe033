"""abele cache lists, explains and clears what other commands keep, and nothing else."""

from pathlib import Path

import pytest
from some_extensions import loads_taken_back
from typer.testing import CliRunner

from abele.tools.cli import app

TARGET = ("--target", "tiny:8")


@pytest.fixture(autouse=True)
def folder(net: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "cache" / "programs"


def abele(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == code, done.output
    return done.output


def kept(folder: Path) -> int:
    return len(list(folder.glob("*.abele")))


def test_commands_share_a_program(folder: Path):
    assert "read" in abele("run", "net.onnx", *TARGET)
    assert kept(folder) == 1
    # A hit reads a program, and runs no pass.
    assert "partition 0" not in abele("run", "net.onnx", *TARGET)
    for line in (
        ("compile", "net.onnx", "-o", "net.abele", "--profile", "p.json"),
        ("memory", "net.onnx"),
        ("graph", "net.onnx"),
        ("run", "net.onnx", "--at", "nn"),
        ("run", "net.onnx", "--check"),
    ):
        abele(*line, *TARGET)
    assert kept(folder) == 1
    assert '"seconds_by_pass": {}' in Path("p.json").read_text()


@pytest.mark.parametrize("line", [("memory",), ("graph",), ("run", "--check"), ("run",)])
def test_a_command_prints_the_same_from_the_cache(folder: Path, line: tuple[str, ...]):
    def printed() -> list[str]:
        found: list[str] = []
        row = ""
        for each in abele(line[0], "net.onnx", *TARGET, *line[1:]).splitlines():
            # A row's further lines have no name.
            row = each[1:].split("│")[0].strip() or row if each.startswith("│") else ""
            if row != "seconds":
                found.append(each)
        return found

    def framed(lines: list[str]) -> list[list[str]]:
        return [each.replace("─", " ").replace("┬", " ").split() for each in lines]

    assert framed(printed()) == framed(printed())
    assert kept(folder) == 1


def test_no_cache_keeps_nothing(folder: Path):
    for line in (
        ("run", "net.onnx", "--no-cache"),
        ("run", "net.onnx", "--dump-ir", "dump"),
        ("plan", "net.onnx"),
    ):
        abele(*line, *TARGET)
    assert not folder.exists()


def test_a_run_with_inputs_is_checked_the_same_from_the_cache(folder: Path):
    import numpy as np

    np.savez("x.npz", x=np.ones((16, 256), np.float32))
    np.savez("bad.npz", x=np.ones((3, 3), np.float32))
    cold = abele("run", "net.onnx", "--inputs", "bad.npz", *TARGET, code=2)
    assert not kept(folder)
    for name in ("cold.npz", "warm.npz"):
        abele("run", "net.onnx", "--inputs", "x.npz", "--outputs", name, *TARGET)
    assert Path("cold.npz").read_bytes() == Path("warm.npz").read_bytes()
    assert abele("run", "net.onnx", "--inputs", "bad.npz", *TARGET, code=2) == cold


def test_programs_are_listed_with_the_last_used_first(folder: Path):
    assert abele("cache").startswith("0 programs, 0 of 100,000,000 bytes, in ")
    for tiles in ("tiny:5", "tiny:6", "tiny:5"):
        abele("run", "net.onnx", "--target", tiles)
    lines = [each for each in abele("cache", "list").splitlines() if "net.onnx" in each]
    assert ["tiny:5" in lines[0], "tiny:6" in lines[1], len(lines)] == [True, True, 2]


def test_a_program_for_the_default_target_is_listed_as_such(folder: Path):
    abele("memory", "net.onnx")
    (row,) = [each for each in abele("cache").splitlines() if "net.onnx" in each]
    assert row.split("│")[2].strip() == "default"


def test_a_miss_is_explained_by_the_parts_that_differ(folder: Path):
    assert "no other program is kept" in abele("cache", "explain", "net.onnx", *TARGET)
    abele("run", "net.onnx", *TARGET)
    assert "its program is kept" in abele("cache", "explain", "net.onnx", *TARGET)
    text = abele("cache", "explain", "net.onnx", "--target", "tiny:9", "--vertices-per-tile", "2")
    rows = [each.split("│")[1].strip() for each in text.splitlines() if each.startswith("│")]
    assert rows == ["target", "vertices per tile"]
    assert "None" in text


def test_a_program_without_a_key_is_explained(folder: Path):
    Path("more.py").write_text("from abele.tools.extensions import guard\n@guard\ndef g(): ...\n")
    text = abele("cache", "explain", "net.onnx", "--load", "more.py", code=2)
    Path("more.py").write_text(
        "from abele.backends.target import resolve_target\n"
        "from dataclasses import replace\n"
        "mine = replace(resolve_target('tiny'), name='mine', base='mine')\n"
    )
    with loads_taken_back():
        text = abele("cache", "explain", "net.onnx", "--load", "more.py")
    assert "more.py may import anything" in text


def test_clear_removes_programs_and_nothing_else(folder: Path):
    abele("run", "net.onnx", *TARGET)
    mine = [folder / "mine.abele", folder / "a.json", folder.parent / "light-1.npz"]
    for each in mine:
        each.write_text("mine")
    assert abele("cache", "clear").startswith("1 programs removed, ")
    assert sorted(folder.parent.rglob("*.*")) == sorted(mine)
    assert abele("cache", "clear").startswith("0 programs removed, ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("explain",), "no MODEL"),
        (("explain", "nosuch.onnx"), "nosuch.onnx: cannot be read"),
        (("explain", "p.abele"), "compiled already"),
        (("explain", "more.py"), "more.py: unknown kind of file; need .onnx, .pt2, "),
        (("explain", "net.onnx", "--target", "nothere"), "'nothere' is not a preset"),
        (("explain", "net.onnx", "--recompute", "auto:x"), "'x' is no number of bytes"),
        (("explain", "net.onnx", "--weights", "no.safetensors"), "no.safetensors: cannot be read"),
        (("clear", "net.onnx"), "a model only goes with explain"),
        (("everything",), "is not one of"),
    ],
)
def test_wrong_use_is_one_message(line: tuple[str, ...], message: str):
    text = abele("cache", *line, code=2)
    assert message in text


def test_a_cache_that_is_off_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_CACHE_BYTES", "0")
    for line in (("cache",), ("cache", "explain", "net.onnx")):
        assert "the cache is off (ABELE_CACHE_BYTES=0)" in abele(*line)


def test_a_wrong_limit_is_one_message(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_CACHE_BYTES", "10 GB")
    assert "need a number of bytes" in abele("run", "net.onnx", *TARGET, code=2)
    assert "need a number of bytes" in abele("cache", code=2)
