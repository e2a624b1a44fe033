"""Reads the model of a case without running the command: what front ends do, and nothing after."""

from __future__ import annotations

import sys
from dataclasses import replace
from zlib import crc32

import typer

from ....passes.train import Train
from ...driver.compile_anew import read_model
from ...driver.request import Request
from ...views.user_errors import text_in, user_errors
from .case import Case


def read_model_of(case: Case) -> None:
    """Read the model of a case and lead it to nn, for inference or for training.

    Exits as a command would.
    """
    # Some front ends read more for training, such as data layers and losses.
    trains = crc32(case.files[case.damaged]) & 1 == 1
    request = Request(case.model, case.target, train=Train() if trains else None)
    try:
        with user_errors(text_in(case.model), case.model):
            settled = request.settled()
            read_model(settled, settled.extensions.context())
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def reading(case: Case) -> Case:
    """The case, of which only the model is read."""
    return replace(case, reads_only=True)
