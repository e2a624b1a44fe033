from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.tools.release import __main__ as command
from abele.tools.release.packages import Failed
from abele.tools.views.script import script

PROJECT = """
[project]
version = "{version}"
classifiers = ["Programming Language :: Python :: 3", "Programming Language :: Python :: 3.11"]
"""


def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    version: str = "1.2.0",
    found: tuple[str, ...] = ("3.11", "3.12"),
    fails: tuple[str, ...] = (),
) -> tuple[int, str]:
    """Exit code and output on a checkout whose packages and Pythons are made up."""
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(version=version))
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.0 (2026-11-28)\n\n- One.\n")
    made = tmp_path / "a.tar.gz", tmp_path / "a.whl"
    for each in made:
        each.write_bytes(bytes(12345))

    def tried(python: Path, wheel: Path, version: str) -> None:
        if str(python) in fails:
            raise Failed("abele doctor: exit code 1")

    monkeypatch.setattr(command, "build", lambda root, folder: made)
    monkeypatch.setattr(command, "find_python", lambda v: Path(v) if v in found else None)
    monkeypatch.setattr(command, "try_wheel", tried)
    done = CliRunner().invoke(script(command.release), [str(tmp_path)])
    return done.exit_code, done.output


def test_a_release_that_lacks_nothing_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code, said = run(tmp_path, monkeypatch)
    assert code == 0
    assert f"{tmp_path / 'a.whl'}: 12,345 bytes\n" in said
    unpromised = "which pyproject.toml does not promise"
    assert said.splitlines()[-1] == (
        f"abele 1.2.0: READY (Python 3.11 passed; 3.12 passed, {unpromised}; "
        f"3.13 was not found, {unpromised}; 3.14 was not found, {unpromised})"
    )


@pytest.mark.parametrize(
    ("given", "lacks"),
    [
        ({"version": "1.3.0"}, "CHANGELOG.md: no section 1.3.0; need '## 1.3.0 (date)'"),
        ({"fails": ("3.11",)}, "Python 3.11 is promised, and failed"),
        ({"found": ("3.12",)}, "Python 3.11 is promised, and was not found"),
    ],
)
def test_what_is_missing_is_in_the_last_line(
    given: dict[str, object], lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    version = given.get("version", "1.2.0")
    code, said = run(tmp_path, monkeypatch, **given)
    assert code == 1
    assert said.splitlines()[-1].startswith(f"abele {version}: NOT READY: {lacks}")


def test_a_python_that_is_not_promised_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code, said = run(tmp_path, monkeypatch, fails=("3.12",))
    assert code == 0
    assert "Python 3.12: abele doctor: exit code 1" in said
    assert "1.2.0: READY (Python 3.11 passed; 3.12 failed, which" in said
