import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DIALECT = "irdl.dialect @{} {{\n  irdl.operation @nop {{\n  }}\n}}\n"

LIBRARY = """
try:
    import org
except ImportError:
    org = None
"""

CASES = {
    # What a library tries to import is not looked for among *.irdl.
    "library": "import abele.ir.upstream, library; assert library.org is None",
    "library first": (
        "import xdsl.dialects, abele.ir, library; import xdsl; assert library.org is None"
    ),
    # What the user's own script or module asks for is found as without abele.
    "own": (
        "import abele.ir.upstream, org, mine; assert org.Org and mine.org.Org\n"
        "from package import inner; assert inner.Inner"
    ),
    "once, and what reads a module's source asks the loader": (
        "import sys, abele.ir, abele.ir.upstream\n"
        "names = [type(f).__name__ for f in sys.meta_path]\n"
        "assert names.count('AskedDialects') == 1, names\n"
        "assert 'IRDLDialectFinder' not in names and '_Awaiting' not in names, names\n"
        "import importlib.resources, inspect, xdsl.dialects\n"
        "assert importlib.resources.files('xdsl.dialects').is_dir()\n"
        "assert 'get_all_dialects' in inspect.getsource(xdsl.dialects)"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("irdl")
    (folder / "org.irdl").write_text(DIALECT.format("org"))
    installed = folder / "deps" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "library.py").write_text(LIBRARY)
    (folder / "mine.py").write_text("import org\n")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.irdl").write_text(DIALECT.format("inner"))
    return folder


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder / "deps" / "site-packages"), str(folder)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("case", CASES)
def test_only_imports_of_the_user_read_irdl_files(folder: Path, case: str):
    done = python(folder, "-c", CASES[case])
    assert not done.returncode, done.stderr
    if "library" in case:
        assert not (folder / "org.pyi").exists()
    (folder / "org.pyi").unlink(missing_ok=True)


def test_a_deleted_working_folder_holds_no_dialect(tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        f"import os, abele.ir.upstream; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\n"
        "import importlib.util; assert importlib.util.find_spec('org') is None"
    )
    done = python(tmp_path, "-c", script)
    assert not done.returncode, done.stderr


def test_no_command_reads_or_writes_what_lies_in_the_working_folder(tmp_path: Path):
    # All names that a command looks for in vain while it starts and runs a model.
    log = "import builtins, sys, json\nseen = set()\n" + (
        "class Log:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if path is None: seen.add(name)\n"
        "sys.meta_path.append(Log())\n"
        "sys.argv = ['abele', 'plan', 'm.mlir', '--target', 'tiny']\n"
        "from abele.tools.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(json.dumps(sorted(seen)), file=sys.stderr)"
    )
    (tmp_path / "m.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %y : tensor<4xf32>\n}\n"
    )
    missing = json.loads(python(tmp_path, "-c", log).stderr.splitlines()[-1])
    for name in {"org", "yaml", *missing}:
        (tmp_path / f"{name}.irdl").write_text("garbage")
    before = sorted(each.name for each in tmp_path.iterdir())
    command = str(Path(sys.executable).with_name("abele"))
    done = subprocess.run(
        [command, "plan", "m.mlir", "--target", "tiny"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == before
