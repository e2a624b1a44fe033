import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("ir", "dialects", "backends", "passes", "tools")


def lint(project: Path) -> subprocess.CompletedProcess[str]:
    """import-linter's verdict on a project, whose rooms stand in a folder abele/."""
    command = Path(sysconfig.get_path("scripts")) / "lint-imports"
    return subprocess.run(
        [sys.executable, command, "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=project,
        env={"PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for room in ROOMS:
        (tmp_path / "abele" / room).mkdir(parents=True)
        (tmp_path / "abele" / room / "__init__.py").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_arrows_to_the_left_are_kept(project: Path):
    (project / "abele/tools/a.py").write_text("from ..passes import b\n")
    (project / "abele/passes/b.py").write_text("from ..ir import c\n")
    (project / "abele/ir/c.py").touch()
    done = lint(project)
    assert done.returncode == 0, done.stdout
    assert "2 dependencies" in done.stdout


@pytest.mark.parametrize("importer", ["from ..passes import b", "import abele.passes.b"])
def test_an_arrow_to_the_right_is_found(project: Path, importer: str):
    (project / "abele/dialects/a.py").write_text(f"def hidden():\n    {importer}\n")
    (project / "abele/passes/b.py").touch()
    done = lint(project)
    assert done.returncode == 1
    assert "abele.dialects.a -> abele.passes.b" in done.stdout
