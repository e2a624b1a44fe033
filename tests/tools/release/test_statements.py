from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.tools.release.statements import Statements, problems, read_statements

ROOT = Path(__file__).parents[3]
DATED = "# Changelog\n\n## Unreleased\n\n## 1.2.0 (2026-11-28)\n\n- A change.\n\n## 1.1.0\n"


def found(version: str, changes: str) -> list[str]:
    return list(problems(Statements(version, ("3.11",), changes)))


def test_a_version_with_a_dated_section_lacks_nothing():
    assert not found("1.2.0", DATED)
    assert not found("1.2.0rc1", DATED.replace("1.2.0 ", "1.2.0rc1 "))


@pytest.mark.parametrize(
    "version", ["", "1.2", "v1.2.0", "1.2.0.dev0", "01.2.0", "1.2.0 ", "1.2.٣"]
)
def test_what_is_no_version_is_named(version: str):
    message = f"pyproject.toml: version {version!r}; need one such as 1.2.3 or 1.2.3rc1"
    assert message in found(version, DATED)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("", "CHANGELOG.md: no section 1.2.0; need '## 1.2.0 (date)'"),
        (DATED.replace("1.2.0", "1.2.01"), "CHANGELOG.md: no section 1.2.0; need"),
        (DATED.replace("2026-11-28", "unreleased"), "section '1.2.0 (unreleased)' has no date"),
        (DATED.replace(" (2026-11-28)", ""), "section '1.2.0' has no date"),
        (DATED.replace("- A change.", ""), "section '1.2.0 (2026-11-28)' names no change"),
        (
            DATED.replace("Unreleased\n", "Unreleased\n\n- One.\n  More.\n- Two.\n"),
            "CHANGELOG.md: 2 changes under Unreleased; move them to 1.2.0",
        ),
    ],
)
def test_each_thing_that_changes_lack_is_named(changes: str, message: str):
    (problem,) = found("1.2.0", changes)
    assert message in problem


def test_a_checkout_says_its_version_and_pythons():
    said = read_statements(ROOT)
    assert said.version.count(".") == 2
    assert said.pythons[0] == "3.11"
    assert "## Unreleased" in said.changes or said.version in said.changes


def test_the_promised_pythons_are_named_alike_everywhere():
    """Those of pyproject.toml, in the words of the pages that name them."""
    *first, last = read_statements(ROOT).pythons
    words = f"Python {', '.join(first)} or {last}"
    for page in ("README.md", "CONTRIBUTING.md", "docs/public.md", "Makefile"):
        assert words in (ROOT / page).read_text(encoding="utf-8"), page


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("[project", "need a project's version"),
        ("[project]\nversion = '1'", "'classifiers'"),
    ],
)
def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path, text: str | None, says: str):
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "CHANGELOG.md").touch()
    with pytest.raises(InputError, match=says):
        read_statements(tmp_path)
