"""Each pass on the smallest programs that show what it does, in files with RUN and CHECK lines.

A file tests/filecheck/PASS.mlir begins with

    // RUN: abele opt %s -p PASS | filecheck %s

and holds the input and, in comments, what has to be in the output. The line also works in a shell;
here it runs in this process, because starting Python takes longer than the passes.
"""

import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from typer.testing import CliRunner

from abele.passes.pipelines import PASSES
from abele.passes.rules.own import FOLDER
from abele.tools.cli import app

HERE = Path(__file__).parent / "filecheck"
FILES = sorted(HERE.glob("*.mlir"))
RUN = re.compile(r"^// RUN: abele (.*) \| filecheck (.*)$", re.MULTILINE)


def run(file: Path, scratch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run each RUN line of a file. Raises AssertionError for what does not match."""
    lines = RUN.findall(file.read_text())
    assert lines, f"{file}: no RUN line"
    for command, check in lines:
        arguments = [each.replace("%s", str(file)) for each in shlex.split(command)]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, (
            f"{file}: abele {command}\n{result.output}\n{result.exception}"
        )
        output = scratch / "output.mlir"
        output.write_text(result.stdout)
        options = [each.replace("%s", str(file)) for each in shlex.split(check)]
        matched = Matcher.from_opts(
            parse_argv_options(["filecheck", "--input-file", str(output), *options])
        ).run()
        said = capsys.readouterr()
        assert matched == 0, f"{said.out}{said.err}\nThe whole output:\n{result.stdout}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_output_matches(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    run(file, tmp_path, capsys)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_a_file(name: str):
    assert HERE / f"{name}.mlir" in FILES, f"write {HERE / name}.mlir"


def test_every_set_of_rules_is_a_pass_with_a_file():
    folder = files("abele.passes").joinpath(FOLDER)
    sets = {file.name for file in folder.iterdir() if file.name.endswith(".rw")}
    names = {name.removesuffix(".rw").replace("_", "-") for name in sets}
    passes = {name.removeprefix("convert-") for name in PASSES}
    assert sets
    assert names <= passes


@pytest.mark.parametrize(
    ("checks", "problem"),
    [("// CHECK: nn.exp %x", "nn.exp %x"), ("// CHECK-NOT: nn.relu", "nn.relu")],
)
def test_an_output_that_does_not_match_is_a_failure(
    checks: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "canonicalize.mlir"
    file.write_text(
        f"// RUN: abele opt %s -p canonicalize | filecheck %s\n{checks}\n"
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %0 : tensor<4xf32>\n}\n"
    )
    with pytest.raises(AssertionError, match=re.escape(problem)):
        run(file, tmp_path, capsys)
