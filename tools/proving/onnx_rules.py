"""Proves rules about operations of ONNX, by what abele reads in a model before and after.

The testing kit makes models that contain a rule's left side. abele reads the model before the rule
and the one behind it as programs of nn, and programs.py proves that both compute the same. So a
rule is proved for all values, at the opsets, types, attributes and sizes of its models. What an
operator of ONNX computes is what abele's importer says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from time import process_time
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ...dialects.onnx import Operator
from ...dialects.structured import Structured
from ...ir.rules import RuleSet
from ...ir.rules.bound_rule import BoundRule
from ...ir.support.errors import InputError, one_line
from ...ir.upstream import VerifyException
from ..driver.program import signature
from ..testing.generators.program import Program
from ..testing.onnx_graphs.checks import imported_program
from ..testing.onnx_graphs.graph import ModelCase
from ..testing.rules.onnx_models import Models
from ..testing.rules.onnx_rewriting import InvalidResult, matching, rewritten
from .outcomes import Outcome, worst
from .programs import Validation, validate
from .proof import SECONDS, SMALL, TESTING
from .reach import NAMED
from .refuting import tested
from .verdicts import Grid, Verdict

FORMS = 100
"""At most so many forms are looked at: other types, ranks, attributes or versions of operators."""
SHAPES = 3
"""Each form is proved at so many different shapes, if models of them are found."""
PROVING = 0.6
"""The share of the time in which forms are begun."""
MOST_ALIKE = 4
"""So many models in a row that show no new form end the search."""
MOST_POINTS = 3000
"""Models with more elements, or with longer sums, are left out; smaller ones have the same form."""
WHY_NOT_ALL = "models of ONNX are proved at their own sizes"


def prove_onnx_rule(rule: BoundRule, rules: RuleSet, seconds: float = SECONDS) -> Verdict:
    """The verdict on a rule about operations of ONNX, within some seconds of processor time.

    Args:
        rules: the set that the rule belongs to.
    """
    begin = process_time()
    made = _Proof(rule, rules, begin, seconds).verdict()
    return replace(made, seconds=process_time() - begin)


@dataclass(frozen=True)
class _Form:
    """A model, and what is proved about it."""

    program: Program
    outcome: Outcome


@dataclass
class _Proof:
    rule: BoundRule
    rules: RuleSet
    begin: float
    seconds: float

    def verdict(self) -> Verdict:
        found: dict[tuple[str, str], _Form] = {}
        forms: Counter[str] = Counter()
        alike, refused = 0, ""
        models = Models(self.rule, self.rules.vocabulary, 0, SMALL)
        for case in models.sampled():
            late = process_time() > self.begin + PROVING * self.seconds
            if late or len(forms) == FORMS or (found and alike >= MOST_ALIKE * len(found)):
                break
            if not matching(case, self.rules.chosen(only=[self.rule.name])):
                # A guard may ask for an opset that the model does not have.
                continue
            try:
                before = imported_program(case)
            except (InputError, VerifyException) as reason:
                # Samples may have attributes that no operator takes.
                refused = one_line(reason)
                continue
            form = f"{self._versions(case.opset)} {_form(before, case)}"
            shapes = str(sorted(map(str, _shapes(before))))
            known = (form, shapes) in found or forms[form] == SHAPES
            alike += known
            if known or _largest(before) > MOST_POINTS:
                continue
            alike = 0
            outcome = self._model(case, before)
            if isinstance(outcome, Verdict):
                return outcome
            found[form, shapes] = _Form(before, outcome)
            forms[form] += 1
        if not found:
            return self._not_decided(refused or "no model was found that the rule matches")
        return Verdict(
            self.rule.name,
            "listed shapes",
            worst(each.outcome for each in found.values()).text,
            WHY_NOT_ALL,
            self._grid([each.program for each in found.values()]),
        )

    def _versions(self, opset: int) -> list[tuple[str, int]]:
        """The versions of the rule's operators that hold in an opset; 0 where it has none."""
        known = self.rules.vocabulary.ops
        named = {known[name] for name in NAMED.findall(self.rule.text) if name in known}
        schemas = [
            (cls.name, cls.DEFINITION.at(opset))
            for cls in named
            if issubclass(cls, Operator) and not cls.DEFINITION.domain
        ]
        return sorted((name, schema.since_version if schema else 0) for name, schema in schemas)

    def _model(self, case: ModelCase, before: Program) -> Outcome | Verdict:
        """How equal a model and the one behind the rule are; the verdict if that is not proved."""
        try:
            after = rewritten(case, self.rule, self.rules.vocabulary)
            found = validate(
                before.module,
                imported_program(after).module,
                before.context,
                seconds=self.seconds * PROVING,
            )
        except InvalidResult as wrong:
            return self._refuted(case, None, str(wrong))
        except (InputError, VerifyException) as reason:
            return self._not_decided(one_line(reason))
        if not found.passed:
            return self._refuted(case, after, found.reason, found)
        return found.outcome if found.kind == "proved" else self._not_decided(found.reason)

    def _refuted(
        self, case: ModelCase, after: ModelCase | None, reason: str, found: Validation | None = None
    ) -> Verdict:
        lines = ["The model:", "", case.text.rstrip()]
        lines += ["", "The model after the rule:", "", after.text.rstrip()] if after else []
        if found is not None and found.example:
            lines += ["", "The inputs:", "", *found.shown]
        return Verdict(self.rule.name, "refuted", reason=reason, example="\n".join(lines))

    def _not_decided(self, reason: str) -> Verdict:
        left = max(self.begin + self.seconds - process_time(), TESTING * self.seconds)
        count, wrong = tested(self.rule, self.rules, left)
        if wrong is not None:
            return Verdict(self.rule.name, "refuted", reason=wrong.reason, example=wrong.text)
        return Verdict(self.rule.name, "not decided", reason=reason, tested=count)

    def _grid(self, programs: Sequence[Program]) -> Grid:
        results = [each for program in programs for each in signature(program.module).outputs]
        patterns = self.rule.variants[0].walk()
        classes: set[type[Operation]] = {cls for each in patterns for cls in each.classes}
        return Grid(
            len(programs),
            tuple(sorted(each.name for each in classes)),
            tuple(sorted({each.dtype.name for each in results})),
            tuple(sorted({len(each.shape) for each in results})),
        )


def _largest(program: Program) -> int:
    """The number of elements of a program's largest tensor, or of points of its largest space."""
    ops = program.module.walk()
    points = (op.structure().space.points for op in ops if isinstance(op, Structured))
    return max([*map(prod, _shapes(program)), *points], default=0)


def _shapes(program: Program) -> list[tuple[int, ...]]:
    """The shapes of all results of operations in a program."""
    return [
        cast("TensorType[Attribute]", value.type).get_shape()
        for op in program.module.walk()
        for value in op.results
        if isinstance(value.type, TensorType)
    ]


def _form(program: Program, case: ModelCase) -> str:
    """What tells models of a rule apart besides sizes: operations, types, ranks and attributes."""
    inputs = [(each.dtype.name, len(each.shape)) for each in signature(program.module).inputs]
    nodes = [
        (each.op_type, len(each.input), sorted((a.name, a.type) for a in each.attribute))
        for each in case.proto.graph.node
    ]
    read = [op.name for op in program.module.walk()]
    return f"{inputs} {nodes} {read}"
