"""Rules about operations of ONNX, applied to a model with its inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from xdsl.ir import Operation

from ....dialects.onnx_level import ONNX_LEVEL
from ....ir.provenance import LocatingWalker
from ....ir.rules import RuleSet
from ....ir.rules.bound_rule import BoundRule
from ....ir.rules.library import one_application
from ....ir.rules.match import match_rule
from ....ir.rules.rule_set import RulePattern
from ....ir.rules.vocabulary import Vocabulary
from ....ir.support.errors import InputError, one_line
from ....ir.upstream import ModuleOp, PatternRewriter, VerifyException
from ....ir.verify import verify
from ...driver.context import new_context
from ...importers.onnx_models.reader import module_of
from ...importers.onnx_models.writer import model_of
from ..onnx_graphs.checks import NotCompared, check_valid
from ..onnx_graphs.graph import ModelCase


class InvalidResult(Exception):
    """Raised if the model behind a rule is not valid. The message says why."""


def module_of_case(case: ModelCase) -> ModuleOp:
    """A model as a module of the dialect onnx."""
    return module_of(case.proto, new_context(), "model")


def case_of_module(case: ModelCase, module: ModuleOp) -> ModelCase:
    """The model of a rewritten module, with the inputs of before. Raises InvalidResult."""
    try:
        verify(module, ONNX_LEVEL)
        after = replace(case, proto=model_of(module, "model"), sketch=None)
        check_valid(after.proto)
    except (VerifyException, InputError, NotCompared) as error:
        why = str(error) if isinstance(error, NotCompared) else one_line(error)
        raise InvalidResult(f"the model after the rule is not valid: {why}") from None
    return after


def matching(case: ModelCase, rules: RuleSet) -> dict[str, int]:
    """The number of places at which each rule matches a model, by the name of the rule."""
    ops = tuple(module_of_case(case).walk())
    counts = {rule.name: len(_places(ops, rule, rules.vocabulary)) for rule in rules.bound}
    return {name: count for name, count in counts.items() if count}


def rewritten(
    case: ModelCase,
    rule: BoundRule,
    vocabulary: Vocabulary,
    numbers: Collection[int] | None = None,
) -> ModelCase:
    """The model after a rule. What the rule builds is not rewritten again.

    Raises InvalidResult, and InputError if the rule fails.

    Args:
        numbers: of the places, in the order of the module; all if None.
    """
    module = module_of_case(case)
    places = _places(tuple(module.walk()), rule, vocabulary)
    chosen = {op for i, op in enumerate(places) if numbers is None or i in numbers}
    with one_application():
        LocatingWalker(_AtSome(RuleSet((rule,), vocabulary), chosen)).rewrite_module(module)
    return case_of_module(case, module)


def _places(ops: Sequence[Operation], rule: BoundRule, vocabulary: Vocabulary) -> list[Operation]:
    """The operations at which a rule matches."""
    return [op for op in ops if type(op) in rule.roots and match_rule(rule, op, vocabulary)]


class _AtSome(RulePattern):
    """Rules that are applied at some operations only."""

    def __init__(self, rules: RuleSet, chosen: Collection[Operation]) -> None:
        super().__init__(rules)
        self._chosen = chosen

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Apply the first rule that matches, at a chosen operation."""
        if op in self._chosen:
            super().match_and_rewrite(op, rewriter)
