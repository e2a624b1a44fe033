"""Compares the runs of an accepted model at all levels and on the strict machine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....backends.faults import MachineFault
from ....ir.support.errors import DoesNotFit, InputError
from ...debug.run_check import check_run, relative_error, tolerance
from ...driver.arrays import Array, seeded
from ...driver.compile import compile_model
from ...driver.executable import MACHINE

NOTHING = "nothing to compare"
"""The message of a check whose results cannot be compared, because they overflow."""


def disagreement(model: str, target: str | None) -> str:
    """The difference between the runs of a model, in words; "" if all agree.

    Raises any error that running the model raises.
    """
    exe = compile_model(model, target, cache=False)
    inputs = seeded(exe.inputs)
    results = exe.run(inputs)
    try:
        strict = exe.run(inputs, strict=True)
    except MachineFault as fault:
        return f"runs, but the strict machine finds: {fault}"
    if not _finite(results) or not _finite(strict):
        return ""
    allowed = max(tolerance(exe.module_at(level)) for level in exe.levels)
    difference = _difference(results, strict, allowed)
    if difference:
        return f"the strict machine differs: {difference}"
    verdict = check_run(exe, inputs, results, MACHINE)
    if not verdict.passed and NOTHING not in verdict.problem:
        return f"check: {verdict.problem}"
    for level in exe.levels:
        if level == MACHINE:
            continue
        try:
            there = exe.run(inputs, at=level)
        except (InputError, DoesNotFit) as error:
            return f"{level} does not run: {error}"
        difference = _difference(results, there, allowed) if _finite(there) else ""
        if difference:
            return f"{level} differs: {difference}"
    return ""


def _finite(arrays: Mapping[str, Array]) -> bool:
    return all(bool(np.isfinite(each.astype(np.float64)).all()) for each in arrays.values())


def _difference(some: Mapping[str, Array], others: Mapping[str, Array], allowed: float) -> str:
    for name, array in some.items():
        error = relative_error(others[name], array)
        if not error <= allowed:
            return f"output {name!r} by {error:.2g} of its largest value"
    return ""
