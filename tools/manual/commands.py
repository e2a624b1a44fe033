"""The page of the command line: arguments and options of each command, and the exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from ..cli import COMMANDS, app
from ..views.user_errors import BAD_INPUT, CHECK_FAILED, TOO_LARGE, TRACEBACK
from .markdown import code, page, plain, prose, table

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    CHECK_FAILED: "a check failed: `--check`, `--strict`, a verifier, an expected diagnostic",
    BAD_INPUT: "the input or an option is wrong; the message says how to correct it",
    TOO_LARGE: "the program does not fit on the target",
}


def commands_page() -> str:
    """The text of the page."""
    group = cast(TyperGroup, typer.main.get_command(app))
    commands = cast("Mapping[str, Any]", group.commands)
    return page(
        "Commands",
        plain(group.help or ""),
        table(
            ("option of `abele`", "meaning"),
            ((_spelling(each), plain(each.help or "")) for each in _options(group)),
        ),
        table(
            ("command", "meaning"),
            (
                (f"[`abele {name}`](#abele-{name})", plain(each.summary))
                for name, each in COMMANDS.items()
            ),
        ),
        "## Exit codes",
        table(("code", "meaning"), ((str(n), says) for n, says in EXIT_CODES.items())),
        f"A message is one line on standard error. Set {code(f'{TRACEBACK}=1')} in the environment "
        "to get a traceback instead.",
        *(_command(name, each) for name, each in commands.items()),
    )


def _command(name: str, command: Any) -> str:
    arguments = [each for each in _shown(command) if isinstance(each, TyperArgument)]
    options = _options(command)
    rows = [(code(_argument(each)), _default(each), plain(each.help or "")) for each in arguments]
    rows += [(_spelling(each), _default(each), plain(each.help or "")) for each in options]
    also = [code(names[0]) for each in options if (names := _names(each)) != tuple(each.opts)]
    mlir = f"Also with `{MLIR}` before the name, as in mlir-opt: {', '.join(also)}."
    every = table(("argument or option", "default", "meaning"), rows)
    # In a terminal, \b keeps the lines of a list apart.
    help_text = str(command.help or "").replace("\b\n", "")
    blocks = (f"## abele {name}", prose(help_text), every, mlir if also else "")
    return "\n\n".join(block for block in blocks if block)


def _shown(command: Any) -> list[Any]:
    return [each for each in command.params if not getattr(each, "hidden", False)]


def _options(command: Any) -> list[TyperOption]:
    return [each for each in _shown(command) if isinstance(each, TyperOption)]


MLIR = "--mlir-"


def _names(option: TyperOption) -> tuple[str, ...]:
    """The names of an option, without names that only add mlir- to another name."""
    return tuple(
        name
        for name in option.opts
        if not (name.startswith(MLIR) and f"--{name.removeprefix(MLIR)}" in option.opts)
    )


def _argument(argument: TyperArgument) -> str:
    name = argument.metavar or str(argument.name).upper()
    return name if argument.required else f"[{name}]"


def _spelling(option: TyperOption) -> str:
    """Every name of an option, and its argument."""
    takes = "" if option.is_flag else f" {option.metavar or str(option.name).upper()}"
    return ", ".join(code(f"{name}{takes}") for name in (*_names(option), *option.secondary_opts))


def _default(option: TyperArgument | TyperOption) -> str:
    if option.required:
        return "needed"
    if isinstance(option, TyperOption) and option.is_flag:
        return "on" if option.default else ""
    return "" if option.default in (None, "") else code(str(option.default))
