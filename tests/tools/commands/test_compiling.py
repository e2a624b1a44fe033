"""The options of compiling, which every command that compiles a model has."""

from dataclasses import fields

import pytest
import typer.main

from abele.tools.cli import COMMANDS, app
from abele.tools.commands.compiling import Compilation


@pytest.mark.parametrize("name", ["run", "compile", "graph", "scan", "memory"])
def test_every_command_that_compiles_has_all_options(name: str):
    command = typer.main.get_command(app).commands[name]
    assert name in COMMANDS
    assert {field.name for field in fields(Compilation)} < {each.name for each in command.params}
    assert len({each.name for each in command.params}) == len(command.params)
