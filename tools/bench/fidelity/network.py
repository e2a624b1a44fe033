"""Predictions of whole networks: the cycles of compiled programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ....backends.target import Target
from ....ir.support.errors import DoesNotFit, InputError
from ...driver.compile import compile_model
from ...driver.request import Precision
from ...importers.light_networks import seeded
from .cases import Network
from .units import Unclear

PRECISIONS: Mapping[str, Precision | None] = {
    "float32": None,
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8",
}
"""The option --precision of each type of operands."""


def network(case: Network, target: Target) -> dict[str, float]:
    """The cycles of a run by phase, without data from and to the host.

    Raises Unclear if the network does not compile for the target.
    """
    figures = _figures(case, target)
    return {phase: figures[f"{phase}_cycles"] for phase in ("compute", "exchange", "sync")}


def host(case: Network, target: Target) -> dict[str, float]:
    """The cycles that data from and to the host take, if nothing else happens meanwhile.

    Raises Unclear as `network` does.
    """
    return {"host": _figures(case, target)["host_cycles"]}


def _figures(case: Network, target: Target) -> dict[str, Any]:
    # Programs do not read the counter, so fitted constants change nothing.
    return _compiled(case, target.uncalibrated())


@lru_cache(maxsize=8)
def _compiled(case: Network, target: Target) -> dict[str, Any]:
    """The profile of the compiled program."""
    if case.operand not in PRECISIONS:
        need = ", ".join(PRECISIONS)
        raise Unclear(f"dtype {case.operand}: no precision of a network; need {need}")
    try:
        exe = compile_model(
            seeded(case.name),
            replace(target, io_tiles=case.io_tiles).computing,
            batch=case.batch,
            precision=PRECISIONS[case.operand],
            partials=case.partials,
        )
    except (InputError, DoesNotFit) as error:
        raise Unclear(f"{case.name} of {case.batch}: {str(error).splitlines()[0]}") from None
    return exe.profile
