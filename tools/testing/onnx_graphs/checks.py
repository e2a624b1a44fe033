"""The reader of ONNX models, tested on generated ones against onnxruntime.

A model is run by onnxruntime as it stands, and read into a program of nn. What that computes, and
how far a right run may be from it, is bounded element by element; onnxruntime's results are to lie
within twice the bound. Where they do not, onnx's own evaluator is asked who is wrong.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic

import numpy as np
import onnx

from ....backends.evaluate.host import Run
from ....backends.target import resolve_target
from ....dialects.levels import NN
from ....ir.errors import DoesNotFit, InputError
from ....ir.garbage import heap_frozen
from ....ir.upstream import VerifyException
from ....ir.verify import verify
from ...driver.arrays import Array
from ...driver.compile import compile_model
from ...driver.program import new_context
from ...importers import UnsupportedError, import_onnx
from ..generators.program import Program
from ..generators.sketch import random_sketch
from ..limits import TooLong, at_most
from ..oracle.oracles import Difference, Outcome, bounded_run, difference
from ..search.failures import Wrong
from .build import build_graph
from .deviations import Case, deviation
from .graph import Graph
from .runtimes import RefusedByRuntime, by_onnxruntime, by_reference
from .shrink import smallest

EXAMPLES = 100
LIMIT = 20.0
"""Seconds that one model may take, all in all."""
SHRINKING = 20.0
"""Seconds that a failing model is made smaller for."""
MOST_NODES = 8
EVALUATED = "tiny:1"
"""What a program is said to be for that is only evaluated."""

NOT_COMPARED = ("refused", "unsupported", "undecided", "invalid")


@dataclass
class Report:
    """What a check has looked at.

    examples: models that were compared. not_compared: how many others there were; refused, by
    onnxruntime; unsupported, by the reader, which says so; undecided, since a branch hangs on
    rounding; invalid, for onnx itself: none, if the generator is right. deviations: how many nodes
    there were of which onnxruntime is known to make something else, by operator and reason.
    exercised: how many models had an operator. reasons: what was said of models not compared.
    """

    examples: int = 0
    seconds: float = 0.0
    not_compared: Counter[str] = field(default_factory=Counter[str])
    deviations: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    exercised: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        others = ", ".join(f"{count} {why}" for why, count in sorted(self.not_compared.items()))
        return (
            f"{self.examples} models compared in {self.seconds:.1f} s; {others or 'no others'}; "
            f"{sum(self.deviations.values())} known deviations of onnxruntime"
        )


class Misread(AssertionError):
    """A model that abele reads or compiles wrongly. The message has all there is to know.

    graph: the smallest found, with inputs. wrong: what is. folder: where both were saved; command:
    what runs them again.
    """

    def __init__(
        self, graph: Graph, wrong: Wrong, folder: Path, command: str, examples: int
    ) -> None:
        self.graph = graph
        self.wrong = wrong
        self.folder = folder
        self.command = command
        super().__init__(
            f"{wrong.text} (example {examples})\n\nThe model:\n\n{graph.text.rstrip()}\n\n"
            f"saved in {folder}\nreplay: {command}"
        )


class NotCompared(Exception):
    """Nothing follows from a model. why: one of NOT_COMPARED; the message says more."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


def check_import(
    *,
    examples: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    target: str | None = None,
    operators: Collection[str] | None = None,
    folder: Path | None = None,
    limit: float = LIMIT,
) -> Report:
    """Run generated ONNX models by onnxruntime and by abele; all results must be the same.

    examples: how many models. seconds: after these no more are begun. seed: of the models; any if
    None, but 0 where the environment has CI. target: a machine to compile each model for and to
    run it on as well, as resolve_target takes it. operators: those that models are made of; all
    that the reader supports if None. folder: where a failing model is saved; a new temporary folder
    if None. limit: seconds for one model.
    Raises Misread if a result is further away than two right runs can be, or a valid model cannot
    be read, compiled or run; InputError for a bad target.
    """
    if target is not None:
        resolve_target(target)
    if seed is None:
        seed = 0 if os.environ.get("CI") else Random().randrange(1 << 32)
    count = examples or (1_000_000 if seconds is not None else EXAMPLES)
    check, begin = Check(target, limit), monotonic()
    with heap_frozen():
        for number in range(count):
            if seconds is not None and monotonic() > begin + seconds:
                break
            sketch = random_sketch(Random(f"{seed} {number}"), MOST_NODES)
            graph = build_graph(sketch, operators)
            wrong = check.counted(graph)
            if wrong is not None:
                raise check.failure(graph, wrong, folder, number)
    check.report.seconds = monotonic() - begin
    return check.report


def replayed(folder: Path) -> tuple[Graph, Wrong | None]:
    """A saved model, and what is wrong with it; None if nothing is any more. Raises InputError."""
    graph, about = Graph.load(folder)
    target = about.get("target")
    try:
        return graph, Check(None if target is None else str(target), LIMIT).wrong(graph)
    except NotCompared as reason:
        raise InputError(f"{folder}: {reason.why}: {reason}") from None


@dataclass
class Check:
    """How models are looked at, and what was seen."""

    target: str | None
    limit: float = LIMIT
    report: Report = field(default_factory=Report)

    def counted(self, graph: Graph) -> Wrong | None:
        """What is wrong with a model, which is entered in the report."""
        self.report.exercised.update({node.op_type for node in graph.proto.graph.node})
        try:
            wrong = self.wrong(graph)
        except NotCompared as reason:
            self.report.not_compared[reason.why] += 1
            self.report.reasons[f"{reason.why}: {reason}"] += 1
            return None
        self.report.examples += 1
        return wrong

    def failure(
        self, graph: Graph, wrong: Wrong, folder: Path | None = None, example: int = 0
    ) -> Misread:
        """A failing model, made small and saved."""
        small = smallest(graph, lambda candidate: self._fails_like(candidate, wrong), SHRINKING)
        if small is not graph:
            wrong = Check(self.target, self.limit).wrong(small) or wrong
        folder = folder or Path(tempfile.mkdtemp(prefix="abele-failure-"))
        small.save(folder, {"target": self.target, "kind": wrong.kind})
        command = shlex.join([sys.executable, "-m", "abele.tools.testing", str(folder)])
        return Misread(small, wrong, folder, command, example)

    def _fails_like(self, graph: Graph, wrong: Wrong) -> bool:
        try:
            found = Check(self.target, self.limit).wrong(graph)
        except NotCompared:
            return False
        return found is not None and found.kind == wrong.kind

    def wrong(self, graph: Graph) -> Wrong | None:
        """What is wrong with what abele makes of a model; None if nothing is.

        Raises NotCompared.
        """
        try:
            with at_most(self.limit):
                return self._looked_at(graph)
        except TooLong as late:
            return Wrong("hang", f"the model is not done after {self.limit:g} s ({late})")

    def _looked_at(self, graph: Graph) -> Wrong | None:
        check_valid(graph.proto)
        theirs = _theirs(graph)
        try:
            ours = bounded_run(read(graph))
        except UnsupportedError as error:
            raise NotCompared("unsupported", str(error)) from None
        except InputError as error:
            return Wrong("refused", f"a valid model is refused: {error}")
        except VerifyException as error:
            return Wrong("invalid", f"the program that is read does not verify: {error}")
        except MemoryError:
            raise
        except Exception as error:
            return Wrong("fault", f"the model cannot be read: {type(error).__name__}: {error}")
        if not ours.decided:
            raise NotCompared("undecided", "a branch hangs on rounding")
        differs = difference(ours, Run(theirs, {}))
        if differs is not None:
            return self._explained(graph, ours, theirs, differs)
        return None if self.target is None else on_machine(graph, ours, self.target)

    def _explained(
        self, graph: Graph, ours: Outcome, theirs: dict[str, Array], differs: Difference
    ) -> Wrong | None:
        """What is wrong where onnxruntime has computed something else: not what it is known for."""
        whole = graph.with_all_results()
        # What was seen counts: what nobody has written to memory is another thing in each run.
        values = {**_theirs(whole), **theirs}
        every = bounded_run(read(whole))
        first = difference(every, Run(values, {}))
        node = None if first is None else graph.maker(first.value)
        if first is None or node is None:
            return Wrong("value", f"{_words(differs, None)}; {_second_opinion(graph, ours)}")
        case = _case(graph, node, first.value, values)
        known = deviation(case)
        if known is None:
            return Wrong("value", f"{_words(first, node)}; {_second_opinion(graph, ours)}")
        self.report.deviations[node.op_type, known] += 1
        if not case.same_shape:
            return None
        rest = graph.with_inputs({name: values[name] for name in node.output if name})
        return self._looked_at(rest) if rest.proto.graph.output else None


def check_valid(model: onnx.ModelProto) -> None:
    """Raise NotCompared for a model that is not valid."""
    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise NotCompared("invalid", str(error)) from None


def read(graph: Graph) -> Program:
    """The program of nn that a model is read into. Raises InputError and VerifyException."""
    context = new_context()
    module = import_onnx(graph.proto, context)
    verify(module, NN.legal)
    return Program(module, context, graph.inputs, resolve_target(EVALUATED))


def on_machine(graph: Graph, ours: Outcome, target: str) -> Wrong | None:
    """What is wrong with a model that is compiled for a machine and runs there.

    None also where it does not fit.
    """
    try:
        found = compile_model(graph.proto, target).run(graph.inputs, strict=True)
    except DoesNotFit:
        return None
    except MemoryError:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        return Wrong("machine", f"the model cannot be compiled for {target} and run: {problem}")
    differs = difference(ours, Run(found, {}))
    return None if differs is None else Wrong("machine", f"on {target}, {differs}")


def _theirs(graph: Graph) -> dict[str, Array]:
    try:
        return by_onnxruntime(graph.proto, graph.inputs)
    except RefusedByRuntime as error:
        raise NotCompared("refused", str(error)) from None


def _case(graph: Graph, node: onnx.NodeProto, name: str, values: dict[str, Array]) -> Case:
    """What abele makes of onnxruntime's operands of a node, and what onnxruntime has made."""
    there = {**graph.inputs, **graph.weights, **values}
    operands = {each: there[each] for each in node.input if each}
    ours = bounded_run(read(graph.alone(node, operands)))
    given = [operands.get(each) for each in node.input]
    return Case(node, graph.opset, given, ours.outputs[name], values[name], ours.errors[name])


def _words(found: Difference, node: onnx.NodeProto | None) -> str:
    """How abele and onnxruntime differ, in which node."""
    place = f"{found.value!r}" + (f" of {node.op_type}" if node is not None else "")
    if not found.index and not np.isfinite(found.ratio) and not found.text.startswith("element"):
        return f"{place}: onnxruntime gives {found.text}, which abele gives"
    bound = f"{found.bound:.3g} apart at most" if found.bound else "equal"
    return (
        f"{place}: element {list(found.index)} is {found.expected:.9g} by abele and "
        f"{found.found:.9g} by onnxruntime; need them {bound}"
    )


def _second_opinion(graph: Graph, ours: Outcome) -> str:
    """What onnx's evaluator says of the matter."""
    try:
        third = by_reference(graph.proto, graph.inputs)
    except RefusedByRuntime as error:
        reason = str(error).partition("\n")[0][:100]
        return f"onnx's evaluator does not run it ({reason})"
    agrees = difference(ours, Run(third, {})) is None
    return f"onnx's evaluator {'agrees' if agrees else 'does not agree'} with abele"
