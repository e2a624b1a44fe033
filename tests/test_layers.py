import ast
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import resolve_name
from pathlib import Path

import pytest
from sources import ROOMS, ROOT, files, imports_in, text_of

TOOLS = (
    *("manual", "release", "workshop", "extensions", "onnx_backend"),
    *("cli", "commands", "bench", "sweeps", "proving", "testing", "debug"),
    *("views", "advice", "quantising", "executors", "driver", "importers"),
)
"""The rooms of tools, from the top down."""

TESTING = (
    *("hostile", "onnx_tools", "mutation", "onnx_graphs", "rules"),
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
    host = [
        *("host", "op_check", "codelets", "evaluate", "machine", "prices", "reference"),
        *("stablehlo", "target"),
    ]
    for room in (*ROOMS, "ir/errors", *inner, *(f"backends/{each}" for each in host)):
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


# Imports by name: import_module and tables of "module:name"

MODULE = re.compile(r"abele(\.\w+)+(:\w+)?")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("abele", *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {module_name(path): path for path in files()}


def imports_by_name(path: Path) -> set[str]:
    """What a module imports by name. A name that is put together stands for its package."""
    text = text_of(path)
    if "import_module" not in text and "abele." not in text:
        return set()
    return names_imported(ast.parse(text), module_name(path), path.stem == "__init__")


def names_imported(tree: ast.Module, name: str, is_package: bool) -> set[str]:
    package = name if is_package else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id=function),
                args=[
                    ast.Constant(value=str(text))
                    | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]),
                    *rest,
                ],
            ) if function == "import_module" and text.startswith("."):
                inside = name if "__name__" in (ast.unparse(each) for each in rest) else package
                found.add(resolve_name(text.rstrip("."), inside))
            case ast.Constant(value=str(text)) if MODULE.fullmatch(text):
                found.add(text.partition(":")[0])
            case _:
                pass
    return found


def existing(name: str) -> str:
    """The module of a name, or the one that it is a part of; "" if there is none."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def test_imports_by_name_are_found():
    text = """
load = import_module(f".kernels.{task}", __package__)
view = import_module("..views", __name__)
PASSES = {"a": "abele.passes.a:A"}
other = import_module("numba")
"""
    assert names_imported(ast.parse(text), "abele.backends.host.load", False) == {
        "abele.backends.host.kernels",
        "abele.backends.host.views",
        "abele.passes.a",
    }


def test_imports_by_name_point_to_the_left_too(tmp_path: Path):
    """import-linter reads statements only, so each import by name is written as a statement."""
    lines = {
        name: {
            found for each in imports_by_name(path) if (found := existing(each)) not in ("", name)
        }
        for name, path in MODULES.items()
    }
    for name, path in MODULES.items():
        copy = tmp_path / "abele" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("".join(f"import {each}\n" for each in sorted(lines[name])))
    assert sum(map(len, lines.values())) > 40
    done = lint(tmp_path)
    assert done.returncode == 0, done.stdout


def test_support_imports_only_itself():
    known = {*sys.stdlib_module_names, "numpy", "ml_dtypes"}
    for path in (ROOT / "ir" / "support").glob("*.py"):
        assert not {existing(each) for each in imports_by_name(path)} - {""}, path.name
        for node in imports_in(path):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 1 or (
                    not node.level and str(node.module).split(".")[0] in known
                )
            if isinstance(node, ast.Import):
                assert {each.name.split(".")[0] for each in node.names} <= known, path.name


# Circles


def imports(name: str) -> set[str]:
    """The modules that a module imports, those for type checkers among them."""
    path = MODULES[name]
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in imports_in(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            home = resolve_name("." * node.level + (node.module or ""), package)
            found |= {existing(f"{home}.{each.name}") for each in node.names}
    return found - {name}


def in_circles(graph: dict[str, set[str]]) -> set[str]:
    """The modules in circles of imports, and those on a way from one circle to another."""
    left = {name: {each for each in to if each in graph} for name, to in graph.items()}
    while True:
        reached = set().union(*left.values())
        ends = {name for name, to in left.items() if not to or name not in reached}
        if not ends:
            return set(left)
        left = {name: to - ends for name, to in left.items() if name not in ends}


def test_modules_in_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a"}}
    assert in_circles(graph) == {"b", "c"}


def test_imports_make_no_circles_even_for_type_checkers():
    graph = {name: imports(name) for name in MODULES if MODULES[name].stem != "__init__"}
    assert in_circles(graph) == set()
