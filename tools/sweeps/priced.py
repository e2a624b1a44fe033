"""The task of a sweep: compile one program, and price it for each target that it suits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from time import process_time
from typing import Any, cast

import onnx

from ...backends.target import Target
from ...ir.support.errors import DoesNotFit, InputError, one_line
from ...passes.train import Train
from ..driver.compile import compiled
from ..driver.executable import Executable
from ..driver.extensions.load import load_extensions
from ..driver.kept_reads import KeptReads
from ..driver.request import Request
from ..executors.task import Json, Tell, task_function
from ..importers.light_networks import seeded
from .columns import FITS, MEMORY, REFUSED, TOO_LARGE, figures_of

READS = KeptReads()
"""The models that this process has read."""


@task_function
def priced(
    tell: Tell,
    model: Mapping[str, str],
    request: Mapping[str, Any],
    program: str,
    targets: Sequence[str],
    load: Sequence[str],
) -> Json:
    """The rows of a program on some targets, in their order, and the seconds that they took.

    Args:
        model: `file`, its path, or `light`, the name of a network with seeded weights.
        request: fields of a request.
        program: the target for which the program is compiled, as TOML.
        targets: the targets for which it is priced, as TOML.
        load: extensions.
    """
    tell("compile")
    start = process_time()
    try:
        extensions = load_extensions(load)
        given = dict(request)
        training = given.pop("training", None)
        train = None if training is None else _training(training)
        asked = Request(
            _model(**model), Target.from_toml(program), load=extensions, cache=False, train=train
        )
        with READS.used():
            exe = compiled(with_fields(asked, given))
        seconds = process_time() - start
        rows = [_row(exe, Target.from_toml(each)) for each in targets]
    except DoesNotFit as error:
        seconds = process_time() - start
        rows = [_too_large(error)] * len(targets)
    except InputError as error:
        seconds = process_time() - start
        named = Target.from_toml(program).called
        if named in first_line(error) and list(targets) != [program]:
            # The reason names a target, and each row needs that of its own.
            rows = [_row_alone(tell, model, request, each, load) for each in targets]
        else:
            rows = [{"status": REFUSED, "reason": first_line(error)}] * len(targets)
    return {
        "rows": rows,
        "compile_seconds": seconds,
        "price_seconds": process_time() - start - seconds,
    }


def _row_alone(
    tell: Tell,
    model: Mapping[str, str],
    request: Mapping[str, Any],
    target: str,
    load: Sequence[str],
) -> dict[str, Json]:
    """The row of a program that is compiled for the very target for which it is priced."""
    found = cast("dict[str, Any]", priced(tell, model, request, target, [target], load))
    return found["rows"][0]


def with_fields(request: Request, given: Mapping[str, Any]) -> Request:
    """A request with other values of some fields, after a check of their kinds."""
    found = replace(request, **given)
    found.check("sweep")
    return found


def first_line(error: Exception) -> str:
    """The message of an error for a cell of a table."""
    return str(error).partition("\n")[0] or one_line(error)


def _row(exe: Executable, target: Target) -> dict[str, Json]:
    """The figures of a program on a target that differs in nothing that decides its bytes."""
    if target != exe.target:
        levels = {level: partial(exe.module_at, level) for level in exe.levels}
        exe = Executable(target, levels, exe.path)
    return {"status": FITS, "reason": "", **figures_of(exe)}


def _too_large(error: DoesNotFit) -> dict[str, Json]:
    of_tile = error.units == "bytes"
    return {
        "status": TOO_LARGE,
        "reason": first_line(error),
        "binds": MEMORY,
        "needed_bytes": error.needed if of_tile else None,
        "missing_bytes": error.needed - error.available if of_tile else None,
    }


def _training(options: Mapping[str, Any]) -> Train:
    lists = {
        name: tuple(cast("list[object]", value)) if isinstance(value, list) else value
        for name, value in options.items()
    }
    train = Train(**cast("Any", lists))
    train.check()
    return train


def _model(file: str = "", light: str = "") -> Path | onnx.ModelProto:
    return Path(file) if file else _light(light)


@lru_cache(maxsize=2)
def _light(name: str) -> onnx.ModelProto:
    """A light network. Equal calls return one object, by which it is known again."""
    return seeded(name)
