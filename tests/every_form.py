"""What a program leaves behind in each form of kernels, and with NumPy alone."""

from collections.abc import Mapping

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from abele.backends.host.binders import best_binder
from abele.backends.host.switch import FORMS, PLAIN, VARIABLE
from abele.backends.machine import Machine
from abele.backends.target import Target

TURNS = 2
"""Runs of a program: what is kept between runs counts too."""


def left_behind(
    module: ModuleOp, target: Target, inputs: Mapping[str, np.ndarray], form: str
) -> dict[str, bytes]:
    """The outputs of each run, and the states after the last one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, form)
        machine = Machine(module, target, binder=best_binder())
        found: dict[str, np.ndarray] = {}
        for turn in range(TURNS):
            results = machine.run(dict(inputs))
            found |= {f"{name} of run {turn}": array.copy() for name, array in results.items()}
        states = (name for name, v in machine.variables.items() if v.initial is not None)
        found |= {name: machine.read(name) for name in states}
    return {name: array.tobytes() for name, array in found.items()}


def different(
    module: ModuleOp, target: Target, inputs: Mapping[str, np.ndarray]
) -> list[tuple[str, str]]:
    """The forms whose bytes are not those of NumPy, and where. Raises what a run with NumPy
    raises."""
    plain = left_behind(module, target, inputs, PLAIN)
    return [
        (form, name)
        for form in FORMS
        for name, data in left_behind(module, target, inputs, form).items()
        if data != plain[name]
    ]
