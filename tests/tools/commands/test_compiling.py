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
    assert (steps[0], *steps[-3:]) == ("read", "run at exchange", "figures", "in all")
    (allocate,) = [each for each in steps if each.startswith("allocate")]
    assert allocate.endswith(": Give variables addresses by liveness.")


def test_list_ops_prints_the_operators_instead_of_compiling(tmp_path: Path):
    path = tmp_path / "small.onnx"
    model = relu()
    model.graph.node.append(onnx.helper.make_node("Odd", [model.graph.node[0].output[0]], ["odd"]))
    onnx.save(model, path)
    result = CliRunner().invoke(app, ["run", str(path), "--list-ops"])
    assert result.exit_code == 0, result.stderr
    rows = [[cell.strip() for cell in line.split("│")] for line in result.stdout.splitlines()]
    assert [row[1:5] for row in rows if len(row) > 5 and row[1]] == [
        ["Odd", "1", "no", ""],
        ["Relu", "1", "yes", "abele"],
    ]
    assert result.stdout.endswith("1 of 2 nodes are supported\n")


def test_a_program_file_is_needed_only_to_compile(tmp_path: Path):
    path = tmp_path / "small.onnx"
    onnx.save(relu(), path)
    listed = CliRunner().invoke(app, ["compile", str(path), "--list-ops"])
    assert listed.exit_code == 0, listed.stderr
    assert listed.stdout.endswith("1 of 1 nodes are supported\n")
    result = CliRunner().invoke(app, ["compile", str(path)])
    assert result.exit_code == 2
    assert "no program file to write; need -o P.abele" in result.stderr


@pytest.mark.parametrize("command", ["fuzz", "mutate"])
def test_a_command_whose_passes_are_arguments_says_so(command: str):
    given = ["canonicalize"] if command == "mutate" else []
    result = CliRunner().invoke(app, [command, *given, "-p", "canonicalize"])
    assert result.exit_code == 2
    message = f"-p canonicalize: passes are arguments here; need abele {command} PASS"
    assert message in result.stderr


def test_list_ops_needs_a_model_of_a_framework():
    result = CliRunner().invoke(app, ["run", "x.abele", "--list-ops"])
    assert result.exit_code == 2
    assert "x.abele: --list-ops lists operators of ONNX, PyTorch" in result.stderr
    assert "; need an .onnx, .pt2" in result.stderr
