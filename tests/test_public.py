"""docs/public.md lists exactly what abele promises, and the other documents use nothing else."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from abele.backends.executable import PROGRAM
from abele.ir.support.file_format import FileFormat
from abele.ir.text_version import TEXT
from abele.tools.views.report.schema import REPORT

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "public.md").read_text()
ROW = re.compile(r"^\| `(abele[\w.]+)` \| (.+) \|$", re.MULTILINE)
IMPORT = re.compile(r"^from (abele[\w.]*) import ([\w, ]+)$", re.MULTILINE)

OPERATIONS = "abele.dialects.nn"
"""The classes of its operations are public without being listed."""


def listed(text: str) -> dict[str, list[str]]:
    """The names of each module in a part of the page."""
    return {module: re.findall(r"`(\w+)`", names) for module, names in ROW.findall(text)}


COMPLETE = listed(PAGE.partition("\n## Building blocks")[0])
PUBLIC = listed(PAGE)
TEXTS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("tutorial/*.md")]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_can_be_imported(module: str):
    loaded = import_module(module)
    missing = [name for name in PUBLIC[module] if not hasattr(loaded, name)]
    assert PUBLIC[module]
    assert not missing


@pytest.mark.parametrize("module", COMPLETE)
def test_the_page_lists_every_export_of_a_module(module: str):
    exported = sorted(import_module(module).__all__)
    assert sorted(COMPLETE[module]) == exported


def test_names_are_sorted_and_listed_once():
    rows = ROW.findall(PAGE)
    assert len(rows) == len(PUBLIC)
    for names in COMPLETE.values():
        assert names == sorted(set(names))


def test_every_module_that_tools_exports_from_is_public():
    doors = {"extensions", "onnx_backend"}
    modules = {path.stem for path in (ROOT / "tools").glob("*.py")} - {"__init__", "cli"}
    assert modules == doors
    assert {f"abele.tools.{door}" for door in doors} <= set(COMPLETE)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("program (`.abele`)", PROGRAM),
        ("text of any level (`.mlir`)", TEXT),
        ("report (`report.json`)", REPORT),
    ],
)
def test_the_page_says_the_versions_of_files(kind: str, form: FileFormat):
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {kind} |"))
    written, read = (cell.strip() for cell in row.split("|")[-3:-1])
    assert written == str(form.version)
    oldest = "" if form.oldest == form.version else f"{form.oldest} to "
    assert read == f"{oldest}{form.version}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_documents_import_public_names_only(path: Path):
    for module, names in IMPORT.findall(path.read_text()):
        if (module, names) == ("abele.dialects", "nn"):
            continue
        for name in re.split(r", *", names.strip()):
            public = PUBLIC.get(module, [])
            is_operation = module == OPERATIONS and name.endswith("Op")
            assert name in public or is_operation, f"{module}.{name}"
