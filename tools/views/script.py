"""Modules of abele that are programs of their own: python -m abele.tools.workshop.planning."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NoReturn

import typer

from .application import STYLE, run_application
from .user_errors import user_errors


def script(function: Callable[..., None]) -> typer.Typer:
    """The application whose options are the parameters of a function.

    Reports errors in the same form as commands.
    """

    @wraps(function)
    def reported(*args: object, **given: object) -> None:
        with user_errors():
            function(*args, **given)

    application = typer.Typer(**STYLE)
    application.command()(reported)
    return application


def run_script(function: Callable[..., None]) -> NoReturn:
    """Run a function as the program of this process, and end the process."""
    run_application(script(function))
