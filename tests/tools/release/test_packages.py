import os
from pathlib import Path

import pytest

from abele.tools.release.packages import Failed, build, find_python, try_wheel


def python(path: Path, version: str) -> None:
    """A program that says a version, as a Python does; "" for one that cannot run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n" if version else "#!/bin/sh\nexit 1\n")
    path.chmod(0o755)


@pytest.fixture
def pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def test_a_python_on_the_path_is_taken_first(pythons: Path):
    python(pythons / "bin" / "python3.98", "3.98")
    python(pythons / "pyenv/versions/3.98.1/bin/python", "3.98")
    assert find_python("3.98") == pythons / "bin" / "python3.98"


def test_a_shim_that_does_not_run_gives_way_to_the_newest_of_pyenv(pythons: Path):
    python(pythons / "bin" / "python3.98", "")
    for patch in ("9", "10", "11-dev"):
        python(pythons / f"pyenv/versions/3.98.{patch}/bin/python", "3.98")
    assert find_python("3.98") == pythons / "pyenv/versions/3.98.10/bin/python"


def test_a_python_of_another_version_is_not_taken(pythons: Path):
    python(pythons / "bin" / "python3.98", "3.9")
    assert find_python("3.98") is None


def test_a_folder_without_git_cannot_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(Failed, match="git ls-files -z: exit code 128"):
        build(tmp_path, tmp_path / "dist")


def test_a_step_that_fails_is_named_with_what_it_said(tmp_path: Path):
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no room >&2\nexit 3\n")
    failing.chmod(0o755)
    with pytest.raises(Failed, match=r"(?s)^python -m venv env: exit code 3\nno room$"):
        try_wheel(failing, tmp_path / "a.whl", "1.0.0")
