"""What a program leaves behind in each form of kernels, and with NumPy alone."""

from collections.abc import Mapping

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from abele.backends.host.binders import best_binder
from abele.backends.host.switch import FORMS, PLAIN, VARIABLE
from abele.backends.machine import Machine
from abele.backends.target import Target
from abele.tools.debug.machine_results import Results, difference, states_of

RUNS = 2
"""Runs of a program: what is kept between runs counts too."""


def left_behind(
    module: ModuleOp, target: Target, inputs: Mapping[str, np.ndarray], form: str
) -> Results:
    """The outputs of each run, and the states after the last one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, form)
        machine = Machine(module, target, binder=best_binder())
        outputs: dict[str, np.ndarray] = {}
        for number in range(RUNS):
            results = machine.run(dict(inputs))
            outputs |= {f"{name} of run {number}": array.copy() for name, array in results.items()}
        return Results(outputs, states_of(machine))


def different(
    module: ModuleOp, target: Target, inputs: Mapping[str, np.ndarray]
) -> list[tuple[str, str]]:
    """The forms whose bytes are not those of NumPy, and where. Raises what a run with NumPy raises.

    Of two NaN that meet, a processor keeps either.
    """
    plain = left_behind(module, target, inputs, PLAIN)
    found = ((form, difference(left_behind(module, target, inputs, form), plain)) for form in FORMS)
    return [(form, differs.words(form, PLAIN)) for form, differs in found if differs is not None]
