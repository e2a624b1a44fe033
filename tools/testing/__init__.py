"""A kit that tests any pass, rule or pipeline by running generated programs before and after it.

    from abele.tools.testing import check_pass, programs

    def test_mine(check_pass):          # a fixture of the pytest plug-in
        check_pass(MyPass(), level="nn")

Contracts. A `Program` is a module of any level with its context, its inputs and its target.
`programs(level)` is a Hypothesis strategy of them; `machines()` one of targets. `bounded_run`
gives what a program computes with an error bound for each element; `difference` says where another
run is outside of it. `check_pass` and `check_pipeline` put all of it together, and raise
`Miscompiled` with a reduced program, or `PassFailed` where the pass itself is at fault.

Names are loaded when they are asked for: Hypothesis (the extra "test") only by what needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .build import Operators, build
    from .checks import Report, check_pass, check_pipeline
    from .failures import Miscompiled, PassFailed
    from .oracles import Difference, Outcome, bounded_run, difference, run
    from .program import Program
    from .sketch import Sketch, Step
    from .strategies import machines, programs

_HOME = {
    "Operators": "build",
    "build": "build",
    "Report": "checks",
    "check_pass": "checks",
    "check_pipeline": "checks",
    "Miscompiled": "failures",
    "PassFailed": "failures",
    "Difference": "oracles",
    "Outcome": "oracles",
    "bounded_run": "oracles",
    "difference": "oracles",
    "run": "oracles",
    "Program": "program",
    "Sketch": "sketch",
    "Step": "sketch",
    "machines": "strategies",
    "programs": "strategies",
}
"""The file of this folder that each name is defined in."""

__all__ = [
    "Difference",
    "Miscompiled",
    "Operators",
    "Outcome",
    "PassFailed",
    "Program",
    "Report",
    "Sketch",
    "Step",
    "bounded_run",
    "build",
    "check_pass",
    "check_pipeline",
    "difference",
    "machines",
    "programs",
    "run",
]


def __getattr__(name: str) -> object:
    """A name of the kit, loaded now."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
