"""A kit that tests any pass, rule or pipeline by running generated programs before and after it.

    from abele.tools.testing import check_pass, programs

    def test_mine(check_pass):          # a fixture of the pytest plug-in
        check_pass(MyPass(), level="nn")

A `Program` is a module of any level with its context, its inputs and its target.
`programs(level)` is a Hypothesis strategy of programs, and `machines()` one of targets.
`bounded_run` returns what a program computes, with an error bound for each element; `difference`
says where another run is outside of the bound. `check_pass` and `check_pipeline` combine all of
these. They raise `Miscompiled` with a reduced program, or `PassFailed` if the pass itself fails. A
relation, such as `idempotent`, must hold in addition to the results:
`check_pass(mine, relation=idempotent)`.

A name is loaded on first use, and Hypothesis (the extra "test") only by the names that need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .generators.build import Operators, build
    from .generators.program import Program
    from .generators.sketch import Sketch, Step
    from .generators.strategies import machines, programs
    from .onnx_graphs.checks import Misread, check_import
    from .onnx_graphs.strategies import onnx_models
    from .onnx_tools.check import check_onnx_runner, check_onnx_transform, check_tool
    from .oracle.oracles import Difference, Outcome, bounded_run, difference, run
    from .oracle.relations import (
        NotApplicable,
        batch_split,
        cost_monotone,
        idempotent,
        ignores_dead_code,
        scales_by_powers_of_two,
        tile_count_invariant,
    )
    from .rules import RuleFailed, RuleWrong, check_rule, check_rules
    from .search.failures import (
        Miscompiled,
        PassFailed,
        RelationFailed,
        StrategyFailed,
        ToolFailed,
        Untested,
    )
    from .search.pass_check import check_pass, check_pipeline
    from .search.report import Report

_HOME = {
    "Operators": "generators.build",
    "build": "generators.build",
    "Report": "search.report",
    "check_pass": "search.pass_check",
    "check_pipeline": "search.pass_check",
    "Miscompiled": "search.failures",
    "PassFailed": "search.failures",
    "RelationFailed": "search.failures",
    "StrategyFailed": "search.failures",
    "Untested": "search.failures",
    "Misread": "onnx_graphs.checks",
    "check_import": "onnx_graphs.checks",
    "onnx_models": "onnx_graphs.strategies",
    "check_onnx_runner": "onnx_tools.check",
    "check_onnx_transform": "onnx_tools.check",
    "check_tool": "onnx_tools.check",
    "ToolFailed": "search.failures",
    "Difference": "oracle.oracles",
    "Outcome": "oracle.oracles",
    "bounded_run": "oracle.oracles",
    "difference": "oracle.oracles",
    "run": "oracle.oracles",
    "Program": "generators.program",
    "NotApplicable": "oracle.relations",
    "batch_split": "oracle.relations",
    "cost_monotone": "oracle.relations",
    "idempotent": "oracle.relations",
    "ignores_dead_code": "oracle.relations",
    "scales_by_powers_of_two": "oracle.relations",
    "tile_count_invariant": "oracle.relations",
    "RuleFailed": "rules",
    "RuleWrong": "rules",
    "check_rule": "rules",
    "check_rules": "rules",
    "Sketch": "generators.sketch",
    "Step": "generators.sketch",
    "machines": "generators.strategies",
    "programs": "generators.strategies",
}
"""The module of this folder that defines each name of the kit."""

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
    "ToolFailed",
    "Untested",
    "batch_split",
    "bounded_run",
    "build",
    "check_import",
    "check_onnx_runner",
    "check_onnx_transform",
    "check_pass",
    "check_pipeline",
    "check_rule",
    "check_rules",
    "check_tool",
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
    """Load a name of the kit on first use. Raises AttributeError for an unknown name."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
