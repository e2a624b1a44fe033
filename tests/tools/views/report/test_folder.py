"""The folder of a report: complete, documented, and without anything of the host."""

import json
import os
from pathlib import Path

import duckdb
import pytest
from some_models import convolutions

from abele.ir.errors import InputError
from abele.ir.support.whole_folder import MANIFEST
from abele.tools import load_report
from abele.tools.driver.compile import compile_model
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.columns import length
from abele.tools.views.report.folder import (
    DATABASE,
    FACTS,
    read_report,
    write_report,
)
from abele.tools.views.report.schema import SCHEMA


@pytest.fixture(scope="module")
def report() -> Report:
    return collect(compile_model(convolutions(), target="tiny:8"))


@pytest.fixture(scope="module")
def folder(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "report"
    write_report(report, path)
    return path


def test_the_folder_has_a_file_for_each_table(folder: Path):
    tables = [f"{each.name}.parquet" for each in SCHEMA]
    assert sorted(os.listdir(folder)) == sorted([*tables, FACTS, DATABASE, MANIFEST])


def test_no_file_names_the_host(folder: Path):
    for path in folder.iterdir():
        found = path.read_bytes()
        assert str(folder.parent).encode() not in found, path
        assert str(Path.home()).encode() + b"/" not in found, path


def test_facts_list_tables_and_operations(folder: Path, report: Report):
    facts = json.loads((folder / FACTS).read_text())
    assert (facts["format"], facts["version"]) == ("abele report", 1)
    assert facts["program"]["cycles"] == report.program["cycles"]
    for schema in SCHEMA:
        entry = facts["tables"][schema.name]
        assert entry["rows"] == length(report.tables[schema.name])
        assert [c["name"] for c in entry["columns"]] == [c.name for c in schema.columns]
    assert [row["name"] for row in facts["operations"]] == report.tables["operations"]["name"]


def test_the_database_explains_its_columns(folder: Path):
    with duckdb.connect(str(folder / DATABASE), read_only=True) as database:
        found = database.execute(
            "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
    wanted = {(t.name, c.name, c.meaning) for t in SCHEMA for c in t.columns}
    assert set(found) == wanted


def test_a_report_that_was_written_reads_back_equal(folder: Path, report: Report):
    found = read_report(folder)
    assert found.program == report.program
    for name, columns in report.tables.items():
        for column, values in columns.items():
            assert list(map(repr, found.tables[name][column])) == list(map(repr, values))


def test_loaded_tables_are_frames_and_answer_queries(folder: Path, report: Report):
    loaded = load_report(folder)
    assert loaded.program["cycles"] == report.program["cycles"]
    assert list(loaded.operations["name"]) == report.tables["operations"]["name"]
    count = loaded.sql("SELECT count(*) AS n FROM supersteps")["n"][0]
    assert count == length(report.tables["supersteps"])
    with pytest.raises(AttributeError, match="operations"):
        _ = loaded.operation
    with pytest.raises(InputError, match="no table 'nothing'"):
        loaded.table("nothing")


def test_a_folder_without_a_report_says_how_to_write_one(tmp_path: Path):
    with pytest.raises(InputError, match="abele report MODEL -o"):
        load_report(tmp_path)


def test_a_report_of_another_version_is_refused(tmp_path: Path):
    (tmp_path / FACTS).write_text('{"format": "abele report", "version": 99}')
    with pytest.raises(InputError, match="version 99"):
        load_report(tmp_path)


def test_a_folder_with_other_files_stays_as_it_is(tmp_path: Path, report: Report):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.txt, which abele did not write"):
        write_report(report, tmp_path)
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_a_full_disk_is_said_in_the_words_of_the_system(
    tmp_path: Path, report: Report, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise duckdb.IOException('Could not write file "/hidden": No space left on device')

    monkeypatch.setattr("abele.tools.views.report.folder._comment", full)
    with pytest.raises(InputError) as caught:
        write_report(report, tmp_path / "report")
    assert str(caught.value).endswith("report: cannot be written: No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_the_earlier_report(
    tmp_path: Path, report: Report, monkeypatch: pytest.MonkeyPatch
):
    place = tmp_path / "report"
    write_report(report, place)
    before = {path.name: path.read_bytes() for path in place.iterdir()}

    def full(self: Path, *args: object, **kwargs: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_report(report, place)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert os.listdir(tmp_path) == ["report"]
