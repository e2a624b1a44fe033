"""A kit that tests any pass, rule or pipeline by running generated programs before and after it.

    from abele.tools.testing import check_pass, programs

    def test_mine(check_pass):          # a fixture of the pytest plug-in
        check_pass(MyPass(), level="nn")

Contracts. A `Program` is a module of any level with its context, its inputs and its target.
`programs(level)` is a Hypothesis strategy of them; `machines()` one of targets. `bounded_run`
gives what a program computes with an error bound for each element; `difference` says where another
run is outside of it. `check_pass` and `check_pipeline` put all of it together, and raise
`Miscompiled` with a reduced program, or `PassFailed` where the pass itself is at fault. A relation
(`idempotent`, ...) is what must hold beside the results: `check_pass(mine, relation=idempotent)`.

Names are loaded when they are asked for: Hypothesis (the extra "test") only by what needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .build import Operators, build
    from .checks import Report, check_pass, check_pipeline
    from .failures import Miscompiled, PassFailed, RelationFailed, StrategyFailed
    from .onnx_graphs.checks import Misread, check_import
    from .onnx_graphs.strategies import onnx_models
    from .oracles import Difference, Outcome, bounded_run, difference, run
    from .program import Program
    from .relations import (
        NotApplicable,
        batch_split,
        cost_monotone,
        idempotent,
        ignores_dead_code,
        scales_by_powers_of_two,
        tile_count_invariant,
    )
    from .rules import RuleFailed, RuleWrong, check_rule, check_rules
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
    "RelationFailed": "failures",
    "StrategyFailed": "failures",
    "Misread": "onnx_graphs.checks",
    "check_import": "onnx_graphs.checks",
    "onnx_models": "onnx_graphs.strategies",
    "Difference": "oracles",
    "Outcome": "oracles",
    "bounded_run": "oracles",
    "difference": "oracles",
    "run": "oracles",
    "Program": "program",
    "NotApplicable": "relations",
    "batch_split": "relations",
    "cost_monotone": "relations",
    "idempotent": "relations",
    "ignores_dead_code": "relations",
    "scales_by_powers_of_two": "relations",
    "tile_count_invariant": "relations",
    "RuleFailed": "rules",
    "RuleWrong": "rules",
    "check_rule": "rules",
    "check_rules": "rules",
    "Sketch": "sketch",
    "Step": "sketch",
    "machines": "strategies",
    "programs": "strategies",
}
"""The file of this folder that each name is defined in."""

__all__ = [
    "Difference",
    "Miscompiled",
    "Misread",
    "NotApplicable",
    "Operators",
    "Outcome",
    "PassFailed",
    "Program",
    "RelationFailed",
    "Report",
    "RuleFailed",
    "RuleWrong",
    "Sketch",
    "Step",
    "StrategyFailed",
    "batch_split",
    "bounded_run",
    "build",
    "check_import",
    "check_pass",
    "check_pipeline",
    "check_rule",
    "check_rules",
    "cost_monotone",
    "difference",
    "idempotent",
    "ignores_dead_code",
    "machines",
    "onnx_models",
    "programs",
    "run",
    "scales_by_powers_of_two",
    "tile_count_invariant",
]


def __getattr__(name: str) -> object:
    """A name of the kit, loaded now."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
