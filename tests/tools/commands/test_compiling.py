"""The options of compiling, which every command that compiles a model has."""

from dataclasses import fields
from pathlib import Path

import onnx
import pytest
import typer.main
from some_models import relu
from typer.testing import CliRunner

from abele.tools.cli import COMMANDS, app
from abele.tools.commands.compiling import Compilation


@pytest.mark.parametrize("name", ["run", "compile", "graph", "scan", "memory"])
def test_every_command_that_compiles_has_all_options(name: str):
    command = typer.main.get_command(app).commands[name]
    assert name in COMMANDS
    assert {field.name for field in fields(Compilation)} < {each.name for each in command.params}
    assert len({each.name for each in command.params}) == len(command.params)


def test_verbose_says_what_each_pass_does(tmp_path: Path):
    path = tmp_path / "small.onnx"
    onnx.save(relu(), path)
    result = CliRunner().invoke(app, ["run", str(path), "--target", "tiny", "--verbose"])
    assert result.exit_code == 0, result.stderr
    steps = [line.split("s  ")[1] for line in result.stderr.splitlines() if " s  " in line]
    assert (steps[0], *steps[-2:]) == ("read", "run at exchange", "in all")
    (allocate,) = [each for each in steps if each.startswith("allocate")]
    assert allocate.endswith(": Give variables addresses by liveness.")
