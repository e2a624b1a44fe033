"""Runs a tool on generated models, and reduces what is found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic

from onnx import parser

from ....ir.rules import RuleSet
from ....ir.support.errors import InputError
from ....ir.support.garbage import heap_frozen
from ..generators.sketch import random_sketch
from ..onnx_graphs.build import OPSETS, build_graph, operators_of
from ..onnx_graphs.checks import NotCompared
from ..onnx_graphs.contributed import CONTRIBUTED
from ..onnx_graphs.graph import ModelCase, every_node
from ..onnx_graphs.shrink import smallest
from ..onnx_graphs.simpler import simplest
from ..rules.onnx_models import Models
from ..search.report import Report
from .culprit import culprit
from .finding import Finding
from .judge import Found, Judge
from .known import EACH, Tool
from .process import ToolProcess
from .worker import Limits

MOST_NODES = 8
"""Nodes of a model, not counting those that compute parameters."""
FEW_OPERATORS = 0.6
"""How often a model has only a few operators, so that some of them follow each other."""
COMPARED_WITH_EQUIVALENTS = 0.25
"""How often a tool that runs models is compared with itself on equivalent models."""
SAMPLED, ABOUT_A_RULE = 0.25, 0.35
"""How often a model contains the left side of a rule, and how often it has a rule's operators, if
rules make the equivalents."""
REDUCING = 60.0
"""Seconds for reducing a failing model."""
CRASHES_IN_A_ROW = 20
"""A tool that fails on so many models in a row in the same way is not tested further."""
ABOUT_A_PART = 0.4
"""How often a model is about the operators that the name of a part of the tool mentions."""
SMALL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[1] x) => (float[1] y) { y = Relu (x) }'
)
"""A model for which a tool is asked for its parts."""
SMALL_SIZES = (1, 2, 3, 4, 5, 7, 8, 9)
"""Sizes of axes of models that contain the left side of a rule."""
ALIKE = 3
"""Failures of one kind, with one message and one culprit, that are reduced."""


@dataclass
class ToolReport(Report):
    """The counts of a check of a tool.

    Attributes:
        not_judged: number of models that show nothing, by reason.
        reasons: the same with messages.
        kinds: number of failing models by kind of failure, each time that it was met.
        pairs: number of comparisons of equivalent models, by rewrite or rule, with those of
            reduction.
    """

    not_judged: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    pairs: Counter[str] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        others = ", ".join(f"{n} {why}" for why, n in self.not_judged.most_common())
        failed = ", ".join(f"{n} {kind}" for kind, n in self.kinds.most_common())
        pairs = self.pairs.total()
        compared = f" {pairs} pairs of equivalent models compared;" if pairs else ""
        return (
            f"{self.examples} models judged in {self.seconds:.1f} s, {self.changed} of them "
            f"changed;{compared} not judged: {others or 'none'}; failures: {failed or 'none'}"
        )


@dataclass
class Campaign:
    """A test of one tool, finding after finding.

    Args:
        tool: what is tested.
        limits: what the tool may use.
        python: the interpreter of the tool; abele's own if None.
        operators: the operators of the models; all that the reader supports if None.
        reduce_seconds: seconds for reducing each finding.
        rules: rules that make equivalent models. If there are some, each model is compared with
            equivalents, and with no reference.
        parts: the names of the tool's parts; None until it is asked.
        met: how often each way of failing was met, with the part of the tool that is to blame.
    """

    tool: Tool
    limits: Limits = field(default_factory=Limits)
    python: str | None = None
    operators: Collection[str] | None = None
    reduce_seconds: float = REDUCING
    rules: RuleSet | None = None
    report: ToolReport = field(default_factory=ToolReport)
    met: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    parts: Sequence[str] | None = None

    def __post_init__(self) -> None:
        tool = self.tool
        unknown = sorted(set(self.operators or ()) - set(_every_operator()))
        if unknown:
            raise InputError(
                f"operator {unknown[0]!r}: no models are made of it; need names such as Conv"
            )
        self.process = ToolProcess(
            tool.adapter, tool.option, self.limits, self.python, tool.function, tool.made
        )
        hello = self.process.hello()
        if hello.kind:
            self.process.end()
            raise InputError(f"--tool {tool.spelling}: cannot be started: {hello.text}")
        self.version = hello.version
        self.made = tool.made or hello.made

    def end(self) -> None:
        """End the tool's process."""
        self.process.end()

    def findings(self, examples: int | None, seconds: float | None, seed: int) -> Iterator[Finding]:
        """Each new failure, reduced. Failures that look alike are found once.

        Args:
            examples: number of models; no limit if None.
            seconds: start no further model after this time.
            seed: of the models.
        """
        known: set[tuple[str, ...]] = set()
        in_a_row = 0
        with heap_frozen():
            begin = monotonic()
            number = 0
            while (examples is None or number < examples) and (
                seconds is None or monotonic() < begin + seconds
            ):
                random = Random(f"{seed} {number} tool")
                judge, graph = self._drawn(Random(f"{seed} {number}"), random)
                found = self._judged(judge, graph, random)
                self.report.seconds = monotonic() - begin
                number += 1
                in_a_row = in_a_row + 1 if found is not None else 0
                if found is None:
                    continue
                finding = self._finding(judge, graph, found, seed, number - 1, known)
                if finding is not None:
                    yield finding
                if in_a_row >= CRASHES_IN_A_ROW:
                    raise InputError(
                        f"--tool {self.tool.spelling}: {in_a_row} models in a row fail: "
                        f"{found.text}"
                    )

    def _drawn(self, drawn: Random, random: Random) -> tuple[Judge, ModelCase]:
        """A model, and the judge of the tool or of the part of it that the model meets."""
        sketch = random_sketch(drawn, MOST_NODES)
        names = self._operators(random)
        every = self._parts()
        chosen = random.choice(every) if every else ""
        if self.tool.part not in ("", EACH):
            chosen = self.tool.part
        near = [name for name in names if _mentions(chosen, name)]
        if near and random.random() < ABOUT_A_PART:
            more = random.sample(names, min(3, len(names)))
            names = list(dict.fromkeys([*near, *more]))
        alone = bool(self.tool.part)
        without = [each for each in every if each != chosen] if alone else []
        judge = self.judge(without)
        return judge, self._about_a_rule(random) or build_graph(sketch, names)

    def judge(self, without: Sequence[str] = ()) -> Judge:
        """The judge of the tool without some of its parts."""
        alone = self.rules is not None
        made = Judge(self.tool, self.process, self.made, without, self.rules, alone)
        made.pairs = self.report.pairs
        return made

    def _about_a_rule(self, random: Random) -> ModelCase | None:
        """A model in which a rule may match; None for one that is about no rule."""
        way = random.random()
        if self.rules is None or way > SAMPLED + ABOUT_A_RULE:
            return None
        rule = random.choice(self.rules.bound)
        models = Models(rule, self.rules.vocabulary, random.randrange(1 << 32), SMALL_SIZES)
        return next(models.sampled() if way < SAMPLED else models.drawn(), None)

    def _parts(self) -> Sequence[str]:
        """The names of the tool's parts. Raises InputError if it has not the part that is asked."""
        if self.parts is None:
            answer = self.process.parts(SMALL)
            if answer.kind:
                raise InputError(f"--tool {self.tool.spelling}: {answer.text}")
            self.parts = answer.parts
        part = self.tool.part
        if part and part != EACH and part not in self.parts:
            known = ", ".join(self.parts) or "it has none"
            raise InputError(
                f"--tool {self.tool.spelling}: {part!r} is neither an option nor a part; "
                f"parts: {known}"
            )
        if part == EACH and not self.parts:
            raise InputError(f"--tool {self.tool.spelling}: the tool has no parts to choose from")
        return self.parts

    def _operators(self, random: Random) -> list[str]:
        """The operators of one model: all, or a few, so that some of them meet."""
        names = sorted(self.operators) if self.operators is not None else _every_operator()
        if not self.tool.contributed:
            names = [name for name in names if name not in CONTRIBUTED]
        if random.random() < FEW_OPERATORS:
            return random.sample(names, min(len(names), random.randint(3, 10)))
        return names

    def _judged(self, judge: Judge, graph: ModelCase, random: Random) -> Found | None:
        report = self.report
        chance = self.made == "run" and random.random() < COMPARED_WITH_EQUIVALENTS
        compared = judge.alone or chance
        try:
            found = judge.found(graph, equivalent=random if compared else None)
        except NotCompared as reason:
            report.not_judged[reason.why] += 1
            report.reasons[f"{reason.why}: {reason}"[:300]] += 1
            return None
        report.examples += 1
        report.changed += judge.changed
        names = {node.op_type for node in every_node(graph.proto.graph)}
        report.exercised.update((f"onnx.{name}", "onnx", "") for name in names)
        if found is not None:
            report.kinds[found.kind] += 1
        return found

    def _finding(
        self,
        judge: Judge,
        graph: ModelCase,
        found: Found,
        seed: int,
        example: int,
        known: set[tuple[str, ...]],
    ) -> Finding | None:
        """The failure, reduced; None if one like it is known already."""
        key = (*found.way, culprit(judge, graph, found))
        self.met[key] += 1
        if self.met[key] > ALIKE:
            return None

        end = monotonic() + self.reduce_seconds

        def fails(candidate: ModelCase) -> bool:
            return judge.failing(candidate, found) is not None

        def fails_in_time(candidate: ModelCase) -> bool:
            return monotonic() < end and fails(candidate)

        small = smallest(graph, fails_in_time, self.reduce_seconds)
        small = simplest(small, fails, max(end - monotonic(), self.reduce_seconds / 2))
        small = judge.shown_to_tool(small)
        found = judge.failing(small, found) or found
        blamed = culprit(judge, small, found)
        operators = tuple(sorted({node.op_type for node in every_node(small.proto.graph)}))
        whole = (*found.way, blamed, *operators)
        if whole in known:
            return None
        known.add(whole)
        return Finding(
            self.tool,
            self.version,
            self.made,
            small,
            found,
            tuple(judge.without),
            blamed,
            self.limits.seconds,
            example,
            seed,
        )


def _every_operator() -> list[str]:
    names = {name for opset in OPSETS for name in operators_of(opset)}
    return sorted(names | CONTRIBUTED.keys())


def _mentions(part: str, operator: str) -> bool:
    """Whether the name of a part of a tool contains that of an operator."""
    plain = re.sub(r"[^a-z0-9]", "", part.lower())
    own = operator.rpartition(".")[2].lower()
    short = {"batchnormalization": "bn", "layernormalization": "layernorm"}
    return len(own) > 2 and (own in plain or short.get(own, "-") in plain)
