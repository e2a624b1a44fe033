"""Judges what a tool makes of a model: which kind of failure it is, if it is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import onnx

from ....ir.rules import RuleSet
from ...driver.arrays import Array
from ..limits import TooLong, at_most
from ..onnx_graphs.checks import NotCompared, check_valid
from ..onnx_graphs.graph import ModelCase
from ..onnx_graphs.opinions import (
    Expected,
    Judged,
    computed,
    difference_of_models,
    expected,
    firm_difference,
    judged,
    reference_of,
    scale_of,
    with_true_shapes,
)
from ..onnx_graphs.runtimes import RefusedByRuntime, by_onnxruntime
from ..oracle.oracles import Outcome, with_both_errors
from .equivalents import Equivalent, equivalents
from .known import Tool
from .process import Answer, ToolProcess

KINDS = {
    "crash": "the tool's process ends",
    "hang": "the tool does not end",
    "memory": "the tool wants more memory than it may have",
    "printed": "the tool prints more than it may",
    "elsewhere": "the tool writes files outside of its folder",
    "refused": "the tool refuses a valid model",
    "malformed": "the tool's result cannot be read",
    "invalid": "the transformed model is not valid",
    "type": "a result has another name, type or shape",
    "value": "a result has a wrong value",
    "special": "a result is NaN or infinite where it must not be, or the reverse",
    "disagrees": "equivalent models give different results",
}
"""The kinds of findings, in words."""

NOT_JUDGED = {
    "invalid model": "the generator made a model that is not valid",
    "refused model": "neither unoptimised onnxruntime nor onnx's evaluator runs the model",
    "unsupported": "the tool says that it does not support the model, or abele does not",
    "undecided": "a branch depends on rounding",
    "faulty": "the model has an index out of range",
    "open": "the standard leaves the result open",
    "inexact": "the result is less exact than a correct rounding, but near",
    "disputed": "onnx's own evaluator does not say that the tool is wrong",
    "contradicted": "abele's own results of the equivalent model differ, such as in an overflow",
}
"""Reasons for which a model shows nothing about a tool, in words."""

_RENAMED = {"invalid": "invalid model", "refused": "refused model"}

CONTRADICTED = "contradicted"
LIMIT = 60.0
"""Processor seconds for the judgement of one model, without the tool's own."""


@dataclass(frozen=True)
class Found:
    """A failure of a tool.

    Attributes:
        kind: of KINDS.
        text: what is wrong, in words.
        after: the transformed model, if there is one.
        rewrite: the rewrite that made the equivalent model, for "disagrees".
        other: the equivalent model.
        results: the results of the tool, or of the transformed model.
    """

    kind: str
    text: str
    after: onnx.ModelProto | None = None
    rewrite: str = ""
    other: ModelCase | None = None
    results: Mapping[str, Array] | None = None

    @property
    def way(self) -> tuple[str, str, str]:
        """What two failures share if a tool fails in the same way: kind, rewrite, kind of error.

        Numbers and quoted names in an error's text may differ.
        """
        first = self.text.partition("\n")[0]
        told = "" if self.kind in ("value", "special", "disagrees", "type") else first
        return self.kind, self.rewrite, re.sub(r"'[^']*'|\"[^\"]*\"|\(.*\)|\d+", "_", told)[:60]


@dataclass
class Judge:
    """Judges one tool on one model after another.

    Attributes:
        process: runs the tool.
        made: "transform" or "run".
        without: the parts of the tool that are left out.
        rules: rules that make equivalent models, besides the rewrites of equivalents.py.
        alone: whether the tool is compared with itself only, and with no reference.
        changed: whether the tool changed the last model.
        pairs: how often the tool was compared with itself, by rewrite or rule.
    """

    tool: Tool
    process: ToolProcess
    made: str
    without: Sequence[str] = ()
    rules: RuleSet | None = None
    alone: bool = False
    changed: bool = False
    pairs: Counter[str] = field(default_factory=Counter[str])

    def found(
        self, graph: ModelCase, *, equivalent: Random | Equivalent | None = None, only: str = ""
    ) -> Found | None:
        """The failure of the tool on a model; None if it does right. Raises NotCompared.

        Args:
            equivalent: also compare with equivalent models, with these random choices, or with this
                one.
            only: the name of the only rewrite or rule to make equivalents by.
        """
        try:
            with at_most(LIMIT):
                return self._found(graph, equivalent, only)
        except TooLong:
            raise NotCompared("undecided", "judging the model takes too long") from None

    def shown_to_tool(self, graph: ModelCase) -> ModelCase:
        """The model as the tool gets it: without declared shapes that are wrong."""
        try:
            return expected(graph).graph
        except NotCompared:
            return graph

    def failing(self, graph: ModelCase, like: Found) -> Found | None:
        """The failure of the tool on a model if it is like another one. Raises NotCompared."""
        try:
            random = Random(0) if like.rewrite else None
            again = self.found(graph, equivalent=random, only=like.rewrite)
        except NotCompared:
            return None
        return again if again is not None and again.way == like.way else None

    def _found(
        self, graph: ModelCase, equivalent: Random | Equivalent | None, only: str
    ) -> Found | None:
        try:
            right = expected(graph)
        except NotCompared as reason:
            raise NotCompared(_RENAMED.get(reason.why, reason.why), str(reason)) from None
        answer = self.applied(right.graph)
        failure = self._of_process(answer)
        if failure is None and self.made == "transform":
            failure = self._of_form(right, answer)
        if failure is None and not self.alone:
            judge = self._of_transformed if self.made == "transform" else self._of_results
            failure = judge(right, answer)
        if failure is None and equivalent is not None:
            return self._of_equivalents(right, answer, equivalent, only)
        return failure

    def applied(self, graph: ModelCase) -> Answer:
        """What the tool makes of a model."""
        if self.made == "transform":
            return self.process.transform(graph.proto, self.without)
        return self.process.run(graph.proto, graph.inputs, self.without)

    def _of_process(self, answer: Answer) -> Found | None:
        """The failure of the tool's process. Raises NotCompared for an unsupported model."""
        if answer.escapes:
            listed = ", ".join(answer.escapes[:3])
            return Found("elsewhere", f"it writes outside of its folder: {listed}")
        if answer.kind == "refused" and self.tool.is_unsupported(answer.text):
            raise NotCompared("unsupported", answer.text)
        return Found(answer.kind, answer.text) if answer.kind else None

    # onnx -> tool -> onnx

    def _of_form(self, right: Expected, answer: Answer) -> Found | None:
        """The failure of a transformed model that is not valid, or has other inputs or outputs."""
        after = answer.model
        assert after is not None
        self.changed = after.graph != right.graph.proto.graph
        problem = interface_problem(right.graph.proto, after)
        if problem:
            return Found("type", problem, after)
        newer = _newer_opset(after)
        if newer:
            return Found("invalid", newer, after)
        try:
            onnx.checker.check_model(after, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            return Found("invalid", f"onnx's checker refuses the result: {error}", after)
        return None

    def _of_transformed(self, right: Expected, answer: Answer) -> Found | None:
        other = _transformed(right.graph, answer)
        try:
            theirs = by_onnxruntime(other.proto, other.inputs)
        except RefusedByRuntime as error:
            if reference_of(other) is None:
                return Found("invalid", f"no runtime runs the result: {error}", answer.model)
            raise NotCompared("disputed", str(error)) from None
        differs, made = difference_of_models(right, with_true_shapes(other, theirs))
        if not _is_wrong(differs):
            return None
        self._confirm(right, reference_of(other), differs)
        return Found(differs.kind, differs.text, answer.model, results=made.outputs)

    # onnx -> run

    def _of_results(self, right: Expected, answer: Answer) -> Found | None:
        differs = firm_difference([right.graph], right.outcome, answer.outputs)
        if not _is_wrong(differs):
            return None
        if not _agree(right, right.reference):
            raise NotCompared("disputed", differs.text)
        return Found(differs.kind, differs.text, results=answer.outputs)

    def _confirm(self, right: Expected, after: Mapping[str, Array] | None, differs: Judged) -> None:
        """Raise NotCompared unless onnx's evaluator agrees about both models."""
        if after is None or not _agree(right, right.reference):
            raise NotCompared("disputed", differs.text)
        if _agree(right, after):
            raise NotCompared("disputed", f"onnx's evaluator finds no difference: {differs.text}")

    # Equivalent models

    def _of_equivalents(
        self, right: Expected, answer: Answer, chosen: Random | Equivalent, only: str
    ) -> Found | None:
        """The failure in which the tool's results for an equivalent model differ."""
        outputs = self._outputs(right.graph, answer)
        made = (
            equivalents(right.graph, chosen, self.rules, only)
            if isinstance(chosen, Random)
            else [chosen]
        )
        for other in made:
            found = self._of_equivalent(right, outputs, other)
            if found is not None:
                return found
        return None

    def _of_equivalent(
        self, right: Expected, outputs: Mapping[str, Array], other: Equivalent
    ) -> Found | None:
        name, case = other.name, other.case
        try:
            # The checker may refuse a value that it sees only now, such as an index.
            check_valid(case.proto)
            bounds = _bounds(right, other)
            again = self.applied(case)
            problem = self._of_process(again)
            if problem is not None:
                text = f"the model is run, and an equivalent one ({name}) is not: {again.text}"
                if problem.kind == "refused":
                    return Found("disagrees", text, rewrite=name, other=case)
                return replace(
                    problem, text=f"with {name}: {problem.text}", rewrite=name, other=case
                )
            results = self._outputs(case, again)
            there = {n: a for n, a in results.items() if n in outputs}
            self.pairs[name] += 1
            base = replace(bounds, outputs=dict(outputs))
            if not _is_wrong(differs := firm_difference([right.graph, case], base, there)):
                return None
        except NotCompared as reason:
            if reason.why == CONTRADICTED:
                raise
            return None
        text = f"an equivalent model ({name}) gives another result: {differs.text}"
        return Found("disagrees", text, again.model, name, case, outputs)

    def _outputs(self, graph: ModelCase, answer: Answer) -> Mapping[str, Array]:
        """The tool's results of a model, or those of the transformed model by a runtime.

        Raises NotCompared if no runtime runs it.
        """
        if self.made == "run":
            return answer.outputs
        try:
            return computed(_transformed(graph, answer))
        except RefusedByRuntime as error:
            raise NotCompared("disputed", str(error)) from None


def _transformed(graph: ModelCase, answer: Answer) -> ModelCase:
    """The transformed model, with the inputs that it still has."""
    after = answer.model
    assert after is not None
    held = {each.name for each in after.graph.initializer}
    kept = {v.name for v in after.graph.input}
    inputs = {n: a for n, a in graph.inputs.items() if n in kept or n not in held}
    return replace(graph, proto=after, inputs=inputs, sketch=None)


def _newer_opset(model: onnx.ModelProto) -> str:
    """Which opset of ONNX a model imports that the installed onnx does not define; "" if none."""
    known = onnx.defs.onnx_opset_version()
    for each in model.opset_import:
        if each.domain in ("", "ai.onnx") and each.version > known:
            return (
                f"the result imports opset {each.version} of ai.onnx; "
                f"onnx {onnx.__version__} defines {known} at most"
            )
    return ""


def _is_wrong(differs: Judged) -> bool:
    """Whether a difference is one. Raises NotCompared for a result that is only less exact."""
    if differs.kind == "inexact":
        raise NotCompared("inexact", differs.text)
    return bool(differs.kind)


def _agree(right: Expected, found: Mapping[str, Array] | None) -> bool:
    """Whether results are the expected ones, or nearly so."""
    if found is None:
        return False
    return judged(right.outcome, found, scale_of(right.graph)).kind in ("", "inexact")


def _bounds(right: Expected, other: Equivalent) -> Outcome:
    """The outcome of a model, with bounds for the distance of a run of an equivalent one.

    Raises NotCompared, with CONTRADICTED if the equivalent is none.
    """
    if other.is_exact:
        return right.outcome
    differs, made = difference_of_models(right, other.case)
    if differs.kind:
        raise NotCompared(CONTRADICTED, f"{other.name}: {differs.text}")
    return with_both_errors(right.outcome, made)


def interface_problem(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """How the inputs and outputs of a transformed model differ from the model's; "" if not.

    An input may be gone if the model has a default for it or nothing reads it. Shapes that are
    declared may become known or unknown, but may not change.
    """
    held = {each.name for each in (*before.graph.initializer, *after.graph.initializer)}
    read = {name for node in after.graph.node for name in node.input}
    for what, old, new in (
        ("input", before.graph.input, after.graph.input),
        ("output", before.graph.output, after.graph.output),
    ):
        there = {each.name: each.type.tensor_type for each in new}
        for each in old:
            name, type_ = each.name, each.type.tensor_type
            if name not in there:
                if what == "input" and (name in held or name not in read):
                    continue
                return f"the {what} {name!r} is gone"
            if there[name].elem_type != type_.elem_type:
                kinds = [onnx.TensorProto.DataType.Name(t.elem_type) for t in (there[name], type_)]
                return f"the {what} {name!r} is declared as {kinds[0]}; need {kinds[1]}"
            sizes = (_sizes(there[name]), _sizes(type_))
            if None not in sizes and sizes[0] != sizes[1]:
                return f"the {what} {name!r} is declared with sizes {sizes[0]}; need {sizes[1]}"
        names = {each.name for each in old}
        more = [name for name in there if name not in names and name not in held]
        if more:
            return f"the {what} {more[0]!r} is new"
    return ""


def _sizes(type_: onnx.TypeProto.Tensor) -> tuple[int, ...] | None:
    """The declared sizes; None if one is not known."""
    if not type_.HasField("shape"):
        return None
    dims = list(type_.shape.dim)
    known = all(each.HasField("dim_value") for each in dims)
    return tuple(each.dim_value for each in dims) if known else None
