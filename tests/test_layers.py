import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("ir", "dialects", "backends", "passes", "tools")
TOOLS = (
    *("manual", "extensions", "onnx_backend", "cli", "commands", "bench", "testing", "debug"),
    *("views", "advice", "driver", "importers"),
)
"""The rooms of tools, from the top down."""

TESTING = (
    *("hostile", "mutation", "onnx_graphs", "rules"),
    *("search", "oracle", "generators", "limits"),
)
"""The rooms of tools/testing, from the top down."""


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
    inner = [*(f"tools/{each}" for each in TOOLS), *(f"tools/testing/{each}" for each in TESTING)]
    host = ["host", "check", "codelets", "evaluate", "machine", "reference"]
    for room in (*ROOMS, *inner, *(f"backends/{each}" for each in host)):
        (tmp_path / "abele" / room).mkdir(parents=True)
        (tmp_path / "abele" / room / "__init__.py").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_to_the_left_are_accepted(project: Path):
    (project / "abele/tools/cli/a.py").write_text("from ...passes import b\n")
    (project / "abele/passes/b.py").write_text("from ..ir import c\n")
    (project / "abele/ir/c.py").touch()
    done = lint(project)
    assert done.returncode == 0, done.stdout
    assert "2 dependencies" in done.stdout


@pytest.mark.parametrize("importer", ["from ..passes import b", "import abele.passes.b"])
def test_an_import_to_the_right_is_reported(project: Path, importer: str):
    (project / "abele/dialects/a.py").write_text(f"def hidden():\n    {importer}\n")
    (project / "abele/passes/b.py").touch()
    done = lint(project)
    assert done.returncode == 1
    assert "abele.dialects.a -> abele.passes.b" in done.stdout


def import_between(project: Path, importer: str, imported: str) -> subprocess.CompletedProcess[str]:
    """import-linter's verdict where a module of one room of tools imports one of another."""
    (project / f"abele/tools/{importer}/a.py").write_text(f"from ..{imported} import b\n")
    (project / f"abele/tools/{imported}/b.py").touch()
    return lint(project)


@pytest.mark.parametrize(
    ("upper", "lower"),
    [("commands", "bench"), ("bench", "testing"), ("debug", "views"), ("driver", "importers")],
)
def test_a_room_of_tools_imports_from_rooms_below_it_only(project: Path, upper: str, lower: str):
    found = import_between(project, lower, upper)
    assert found.returncode == 1
    assert f"abele.tools.{lower}.a -> abele.tools.{upper}.b" in found.stdout
    (project / f"abele/tools/{lower}/a.py").unlink()
    kept = import_between(project, upper, lower)
    assert kept.returncode == 0, kept.stdout


@pytest.mark.parametrize(("one", "other"), [("views", "advice"), ("advice", "views")])
def test_views_and_advice_do_not_import_each_other(project: Path, one: str, other: str):
    assert (
        f"abele.tools.{one}.a -> abele.tools.{other}.b"
        in import_between(project, one, other).stdout
    )


def test_a_new_room_of_tools_must_have_a_layer(project: Path):
    (project / "abele/tools/attic.py").touch()
    done = lint(project)
    assert done.returncode == 1
    assert "attic" in done.stdout


def test_a_room_of_the_kit_imports_from_rooms_below_it_only(project: Path):
    (project / "abele/tools/testing/oracle/a.py").write_text("from ..search import b\n")
    (project / "abele/tools/testing/search/b.py").touch()
    done = lint(project)
    assert done.returncode == 1
    assert "abele.tools.testing.oracle.a -> abele.tools.testing.search.b" in done.stdout
