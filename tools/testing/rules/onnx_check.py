"""Tests rules about operations of ONNX on models of ONNX.

A model runs before and after the rule. Its results must stay within abele's bound: twice the error
of a correct run, by abele's reference and, where it runs the model, by onnxruntime or onnx's own
evaluator. An operator that abele does not import has no bound; its integers must stay equal, and a
float that differs in its bits is counted as undecided.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from time import monotonic

import numpy as np

from ....dialects.onnx_level import NAME
from ....ir.provenance import place
from ....ir.rewriting import Source, Watcher, watched
from ....ir.rules import RuleSet
from ....ir.rules.bound_rule import BoundRule
from ....ir.rules.match import match_rule
from ....ir.support.errors import InputError
from ....ir.support.whole_folder import free_folder
from ....ir.text import print_module
from ....ir.upstream import VerifyException
from ...driver.arrays import Array
from ..generators.rules.reading import fit, misfit
from ..limits import TooLong, at_most
from ..onnx_graphs.checks import NotCompared, check_valid
from ..onnx_graphs.graph import KIND, ModelCase
from ..onnx_graphs.opinions import Expected, difference_of_models, evaluated, firm_difference
from ..onnx_graphs.runtimes import RefusedByRuntime, by_onnxruntime, by_reference
from ..onnx_graphs.shrink import smallest
from ..onnx_graphs.simpler import simplest
from ..oracle.oracles import with_both_errors
from ..search.failures import Wrong
from ..search.run import Refused
from .failures import NeverFired, RuleWrong
from .onnx_models import Models
from .onnx_rewriting import InvalidResult, case_of_module, module_of_case
from .settings import Property, RuleReport, RuleSettings

TRIES = 6
"""At most this many models are made for each one that can be compared."""
NEAR = 3
"""Near-misses for each drawn model, where a rule must not fire."""
SEARCHED = 200
"""Drawn models that are searched for a match, if no sample is one."""
UNREAD = ("unsupported", "faulty")
"""Why abele has no results of a model, so that only other evaluators compare them."""
SHRINKING = 20.0
"""CPU seconds for shrinking a failing model, if the settings do not say."""


class OnnxRuleWrong(RuleWrong):
    """Raised if a rule changes the meaning of a model of ONNX, or does not fire where it matches.

    Attributes:
        case: the smallest failing model found, before the rule, with its inputs.
    """

    def __init__(
        self,
        rule: BoundRule,
        case: ModelCase,
        wrong: Wrong,
        after: str,
        folder: Path | None,
        command: str,
        examples: int,
    ) -> None:
        self.rule, self.case, self.wrong, self.made = rule, case, wrong, after
        self.folder, self.command, self.examples = folder, command, examples
        lines = [f"rule {rule.source}, example {examples}: {wrong.text}", "", rule.text.rstrip()]
        lines += ["", "The model:", "", case.text.rstrip()]
        lines += ["", "The model after the rule:", "", after.rstrip()] if after else []
        lines += ["", f"saved in {folder}"] if folder else []
        lines += [f"replay: {command}"] if command else []
        AssertionError.__init__(self, "\n".join(lines))


@dataclass
class OnnxCheck:
    """A search for a model on which a rule is wrong."""

    rule: BoundRule
    rules: RuleSet
    settings: RuleSettings
    report: RuleReport
    end: float

    def run(self, what: Property, count: int) -> None:
        """Judge models until the budget is used. Raises OnnxRuleWrong, NeverFired and InputError.

        Args:
            count: of models.
        """
        must = what == "keeps_the_meaning"
        judged = made = 0
        refusal = ""
        for case in self._cases(must):
            if judged >= count or made >= TRIES * count or monotonic() > self.end:
                break
            made += 1
            try:
                wrong = self.wrong(case)
            except Refused as refused:
                self.report.refused += must
                refusal = str(refused)
                continue
            judged += 1
            self.report.examples += 1
            self.report.exercised += Counter({(name, NAME, ""): 1 for name in _operators(case)})
            if wrong is not None:
                raise self._failure(case, wrong)
        if must and not made:
            raise NeverFired(
                f"rule {self.rule.source} has never fired: it matches none of the models made from "
                f"its left side, and none of {SEARCHED} others\n\n{self.rule.text}"
            )
        if made and not judged and refusal:
            raise InputError(f"rule {self.rule.source}: no model could be compared: {refusal}")

    def replay(self, folder: Path) -> None:
        """Judge the model that is saved in a folder. Raises the errors of run."""
        case, _ = ModelCase.load(folder)
        try:
            wrong = self.wrong(case)
        except Refused as refused:
            raise InputError(f"{folder}: {refused}") from None
        self.report.examples += 1
        if wrong is not None:
            raise OnnxRuleWrong(self.rule, case, wrong, self._after(case), folder, "", 1)

    def _cases(self, must: bool) -> Iterator[ModelCase]:
        models = Models(self.rule, self.rules.vocabulary, self.settings.any_seed())
        if not must:
            near = models.near_misses()
            for case in models.drawn():
                for name, miss in islice(near, NEAR):
                    self.report.misses[name] += 1
                    yield miss
                yield case
            return
        sampled, searched = models.sampled(), 0
        first = next(sampled, None)
        if first is not None:
            # One model in four is a drawn one in which the rule happens to match.
            for number, case in enumerate(chain([first], sampled)):
                yield case
                if number % 4 == 3:
                    yield from self._next_match(models, number)
            return
        for case in models.drawn():
            searched += 1
            if self._matches(case):
                yield case
            if searched >= SEARCHED and not self.report.examples:
                return

    def _next_match(self, models: Models, number: int) -> Iterator[ModelCase]:
        """A drawn model with a match, if one of a few has one."""
        other = Models(self.rule, self.rules.vocabulary, models.seed + 1000 * (number + 1))
        for _, case in zip(range(4), other.drawn(), strict=False):
            if self._matches(case):
                yield case
                return

    def _matches(self, case: ModelCase) -> bool:
        return any(
            type(op) in self.rule.roots and match_rule(self.rule, op, self.rules.vocabulary)
            for op in module_of_case(case).walk()
        )

    # One model

    def wrong(self, case: ModelCase) -> Wrong | None:
        """The failure of the rule on a model; None if there is none.

        Raises Refused if nothing can be compared.
        """
        try:
            with at_most(self.settings.limit):
                return self._wrong(case)
        except TooLong as late:
            return Wrong("hang", f"the model takes more than {self.settings.limit:g} s ({late})")

    def _wrong(self, case: ModelCase) -> Wrong | None:
        module, vocabulary = module_of_case(case), self.rules.vocabulary
        fitting = 0
        for op in tuple(module.walk()):
            if type(op) not in self.rule.roots:
                continue
            found = match_rule(self.rule, op, vocabulary) is not None
            fits = fit(self.rule, op, vocabulary) is not None
            fitting += fits
            if found and not fits:
                why = misfit(self.rule, op, vocabulary)
                return Wrong("fires", f"the matcher accepts {op.name} at {place(op)}, but {why}")
            if fits and not found:
                return Wrong("unfired", f"the matcher rejects {op.name} at {place(op)}")
        firing = _Firing(self.rule.name)
        try:
            with watched(firing):
                RuleSet((self.rule,), vocabulary).apply(module)
        except InputError as error:
            return Wrong("rule", f"the rule cannot be applied: {error}")
        self.report.fired[self.rule.name] += firing.count
        if not firing.count:
            if fitting:
                return Wrong("unfired", "it matches, but does not fire")
            return None
        self.report.changed += 1
        try:
            after = case_of_module(case, module)
        except InvalidResult as error:
            return Wrong("invalid", str(error))
        return self._differs(case, after)

    def _differs(self, before: ModelCase, after: ModelCase) -> Wrong | None:
        theirs, changed, by = _both(before, after)
        try:
            right = Expected(before, evaluated(before))
            differs, made = difference_of_models(right, after)
            if differs.kind:
                return Wrong("value", differs.text)
            if theirs is None or changed is None:
                return None
            both = with_both_errors(right.outcome, made)
            if firm_difference([before], both, theirs).kind:
                # The evaluator computes this operator otherwise than abele does.
                return None
            differs = firm_difference([before], both, changed)
        except NotCompared as reason:
            if reason.why not in UNREAD:
                self.report.undecided += 1
                return None
            if theirs is None or changed is None:
                raise Refused("neither abele nor another evaluator runs the model") from None
            return self._unbounded(theirs, changed, by)
        return Wrong("value", f"{differs.text}, {by}") if differs.kind else None

    def _unbounded(
        self, theirs: dict[str, Array], changed: dict[str, Array], by: str
    ) -> Wrong | None:
        """The difference of results for which there is no bound."""
        for name, right in theirs.items():
            other = changed[name]
            if (right.shape, right.dtype) != (other.shape, other.dtype):
                kinds = f"{other.dtype}{list(other.shape)}; need {right.dtype}{list(right.shape)}"
                return Wrong("value", f"{name}: {kinds}, {by}")
            is_equal = bool(np.array_equal(right, other, equal_nan=right.dtype.kind in "fc"))
            if not is_equal and right.dtype.kind not in "biuO":
                self.report.undecided += 1
            elif not is_equal:
                return Wrong("value", f"{name} differs, {by}")
        return None

    # Failures

    def _failure(self, case: ModelCase, wrong: Wrong) -> OnnxRuleWrong:
        judge = replace(self, report=RuleReport())

        def alike(candidate: ModelCase) -> bool:
            try:
                # A model that is not valid before the rule is not valid after it either.
                check_valid(candidate.proto)
                found = judge.wrong(candidate)
            except (NotCompared, Refused, InputError, VerifyException):
                return False
            return found is not None and found.way == wrong.way

        seconds = self.settings.reduce_seconds
        seconds = SHRINKING if seconds is None else seconds
        small = simplest(smallest(case, alike, seconds), alike, seconds / 2)
        found = judge.wrong(small) or wrong
        wanted = self.settings.folder or Path(tempfile.mkdtemp(prefix="abele-failure-"))
        folder = free_folder(wanted, KIND)
        source = self.rule.source
        small.save(folder, {"rule": source.name, "rules": source.file, "kind": found.kind})
        command = self.settings.command.replace("FOLDER", str(folder))
        after = self._after(small)
        return OnnxRuleWrong(self.rule, small, found, after, folder, command, self.report.examples)

    def _after(self, case: ModelCase) -> str:
        """The module after the rule; "" if the rule fails."""
        module = module_of_case(case)
        try:
            RuleSet((self.rule,), self.rules.vocabulary).apply(module)
        except InputError:
            return ""
        return print_module(module, locations=False)


@dataclass
class _Firing(Watcher):
    """Counts the rewrites of one rule."""

    name: str
    count: int = 0

    def begin(self, source: Source, root: object) -> None:
        self.count += source.name == self.name


def _operators(case: ModelCase) -> set[str]:
    return {f"{NAME}.{node.op_type}" for node in case.proto.graph.node}


def _both(
    before: ModelCase, after: ModelCase
) -> tuple[dict[str, Array] | None, dict[str, Array] | None, str]:
    """The results of both models by the first evaluator that runs both."""
    for evaluate, name in ((by_onnxruntime, "onnxruntime"), (by_reference, "onnx's evaluator")):
        try:
            return (
                evaluate(before.proto, before.inputs),
                evaluate(after.proto, after.inputs),
                f"by {name}",
            )
        except RefusedByRuntime:
            continue
    return None, None, ""
