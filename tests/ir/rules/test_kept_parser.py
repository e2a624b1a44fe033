from pathlib import Path

import pytest

from abele.ir.rules import kept_parser as module
from abele.ir.rules.kept_parser import kept_parser

GRAMMAR = """
start: "a"+
pattern: "b"
guards: "c"
"""


def made(*_: object) -> None:
    raise AssertionError("a parser was made")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept" / "rules"


def test_a_second_process_reads_the_parser_that_a_first_one_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    first = kept_parser(GRAMMAR).parse("aa", start="start")
    monkeypatch.setattr(module, "_made", made)
    assert kept_parser(GRAMMAR).parse("aa", start="start") == first
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, None])
def test_a_damaged_file_is_made_again(
    damage: bytes | None, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    kept_parser(GRAMMAR)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    flipped = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    path.write_bytes(flipped if damage is None else damage)
    assert kept_parser(GRAMMAR).parse("b", start="pattern").data == "pattern"
    monkeypatch.setattr(module, "_made", made)
    kept_parser(GRAMMAR)


def test_another_grammar_has_another_file(folder: Path):
    kept_parser(GRAMMAR)
    kept_parser(GRAMMAR.replace('"c"', '"d"'))
    assert len(list(folder.iterdir())) == 2


def test_other_options_have_another_file(folder: Path, monkeypatch: pytest.MonkeyPatch):
    kept_parser(GRAMMAR)
    monkeypatch.setitem(module.OPTIONS, "propagate_positions", False)
    kept_parser(GRAMMAR)
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_others_can_write_to_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    kept_parser(GRAMMAR)
    assert not list(folder.iterdir())


def test_a_cache_that_cannot_be_made_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "file"))
    assert kept_parser(GRAMMAR).parse("c", start="guards").data == "guards"
