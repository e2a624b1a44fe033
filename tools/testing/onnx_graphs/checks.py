"""Tests the ONNX reader on generated models, against onnxruntime.

onnxruntime runs a model unchanged. abele reads it into an nn program and runs that with error
bounds. Each element of onnxruntime's results must be within twice its bound. If one is not, onnx's
own evaluator gives a second opinion, which the message reports.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from time import monotonic

import numpy as np
import onnx

from ....backends.evaluate.host import Run
from ....backends.target import resolve_target
from ....dialects.levels import NN
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.support.garbage import heap_frozen
from ....ir.support.whole_folder import free_folder
from ....ir.upstream import VerifyException
from ....ir.verify import verify
from ...driver.arrays import Array
from ...driver.compile import compile_model
from ...driver.context import new_context
from ...driver.program import signature
from ...importers import UnsupportedError, import_onnx
from ..generators.program import Program
from ..generators.sketch import random_sketch
from ..limits import TooLong, at_most
from ..oracle.oracles import Difference, Outcome, bounded_run, difference
from ..search.failures import Wrong
from .build import build_graph
from .deviations import Case, deviation
from .graph import KIND, ModelCase, every_node, inner_graphs, names_read
from .opened import opened, poisoned
from .runtimes import RefusedByRuntime, by_onnxruntime, by_reference
from .shrink import smallest
from .unrolled import NotWrittenOut, written_out

EXAMPLES = 100
LIMIT = 20.0
"""Seconds for one model, in total."""
SHRINKING = 20.0
"""Seconds for shrinking a failing model."""
MOST_NODES = 8
"""Nodes of a model, not counting those that compute parameters."""
OPENED = 0.3
"""How often a size of a model is one that only a run knows."""
NO_MACHINE = "tiny:1"
"""The target of a program that is evaluated and not compiled. Any target would do."""

OUT_OF_RANGE = (
    *("out of data bounds", "out of bounds", "Out of range value"),
    *("invalid index found", "invalid indice found"),
    *("max_sequence_length - sequence_length was false", "wi >= 0 was false"),
)
"""Parts of onnxruntime's messages about an index out of range."""

INDEX_KNOWN = " outside of "
"""Part of abele's message about an index out of range that is known at import."""

NOT_COMPARED = ("refused", "unsupported", "open", "undecided", "invalid")
"""Reasons for not comparing a model: onnxruntime refuses it; the reader does not support it, or not
with a size that only a run knows; a branch depends on rounding; it is not valid ONNX, which is a
bug of the generator."""


@dataclass
class Report:
    """The counts and reasons of a check.

    Attributes:
        examples: number of models compared.
        seconds: clock time.
        not_compared: number of other models, by reason (see NOT_COMPARED).
        deviations: number of nodes with a known deviation of onnxruntime, by operator and
            explanation.
        exercised: number of models that contain each operator.
        reasons: messages about models that were not compared.
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
    """Raised when abele reads or compiles a model wrongly. The message shows everything below.

    Attributes:
        graph: the smallest failing model found, with inputs.
        wrong: the failure.
        folder: where the model is saved.
        command: the command that tests it again.
    """

    def __init__(
        self, graph: ModelCase, wrong: Wrong, folder: Path, command: str, examples: int
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
    """Raised for a model that cannot be compared.

    The message gives details.

    Attributes:
        why: one of NOT_COMPARED.
    """

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
    """Run generated ONNX models with onnxruntime and abele, and compare all results.

    Raises Misread if a result is further off than two correct runs can be, or if a valid model
    cannot be read, compiled or run. Raises InputError for a bad target.

    Args:
        examples: number of models.
        seconds: start no further model after this time.
        seed: of the models; random if None, or 0 if the environment variable CI is set.
        target: also compile each model for this machine and run it there; spelled as for
            resolve_target.
        operators: names of the operators to use; all that the reader supports if None.
        folder: where to save a failing model; a new temporary folder if None.
        limit: seconds for one model.
    """
    if target is not None:
        resolve_target(target)
    if seed is None:
        seed = 0 if os.environ.get("CI") else Random().randrange(1 << 32)
    count = examples or (1_000_000 if seconds is not None else EXAMPLES)
    check = Check(target, limit)
    with heap_frozen():
        # Freezing a large heap may take longer than the time that is given.
        begin = monotonic()
        for number in range(count):
            if seconds is not None and monotonic() > begin + seconds:
                break
            sketch = random_sketch(Random(f"{seed} {number}"), MOST_NODES)
            graph = build_graph(sketch, operators)
            sizes = Random(f"{seed} {number} sizes")
            other = opened(graph, sizes) if sizes.random() < OPENED else None
            before = check.report.examples
            wrong = None if other is None else check.count(other)
            if wrong is not None and other is not None:
                raise check.failure(other, wrong, folder, number)
            # A model that is refused with such a size is compared without it.
            wrong = check.count(graph) if check.report.examples == before else None
            if wrong is not None:
                raise check.failure(graph, wrong, folder, number)
        check.report.seconds = monotonic() - begin
    return check.report


def replayed(folder: Path) -> tuple[ModelCase, Wrong | None]:
    """A saved model, and its failure; None if it passes now. Raises InputError."""
    graph, about = ModelCase.load(folder)
    target = about.get("target")
    try:
        return graph, Check(None if target is None else str(target), LIMIT).wrong(graph)
    except NotCompared as reason:
        raise InputError(f"{folder}: {reason.why}: {reason}") from None


@dataclass
class Check:
    """Checks one model after another.

    Attributes:
        target: the machine to compile models for; None to evaluate them only.
        limit: seconds for one model.
        report: the counts so far.
    """

    target: str | None
    limit: float = LIMIT
    report: Report = field(default_factory=Report)

    def count(self, graph: ModelCase) -> Wrong | None:
        """Check a model and count it in the report. Returns its failure or None."""
        self.report.exercised.update({node.op_type for node in every_node(graph.proto.graph)})
        try:
            wrong = self.wrong(graph)
        except NotCompared as reason:
            self.report.not_compared[reason.why] += 1
            self.report.reasons[f"{reason.why}: {reason}"] += 1
            return None
        self.report.examples += 1
        return wrong

    def failure(
        self, graph: ModelCase, wrong: Wrong, folder: Path | None = None, example: int = 0
    ) -> Misread:
        """The error to raise for a failing model, after shrinking and saving the model."""
        small = smallest(graph, lambda candidate: self._fails_like(candidate, wrong), SHRINKING)
        if small is not graph:
            wrong = Check(self.target, self.limit).wrong(small) or wrong
        wanted = folder or Path(tempfile.mkdtemp(prefix="abele-failure-"))
        folder = free_folder(wanted, KIND)
        small.save(folder, {"target": self.target, "kind": wrong.kind})
        command = shlex.join([sys.executable, "-m", "abele.tools.testing", str(folder)])
        return Misread(small, wrong, folder, command, example)

    def _fails_like(self, graph: ModelCase, wrong: Wrong) -> bool:
        try:
            found = Check(self.target, self.limit).wrong(graph)
        except NotCompared:
            return False
        return found is not None and found.kind == wrong.kind

    def wrong(self, graph: ModelCase) -> Wrong | None:
        """The failure of a model; None if abele's results are right. Raises NotCompared."""
        try:
            with at_most(self.limit):
                check_valid(graph.proto)
                return self._compare(graph)
        except TooLong as late:
            return Wrong("hang", f"the model takes more than {self.limit:g} s ({late})")

    def _compare(self, graph: ModelCase) -> Wrong | None:
        """Compare abele's results for a model with onnxruntime's, without a limit of time."""
        try:
            theirs = _onnxruntime_outputs(graph)
        except NotCompared as refused:
            if any(text in str(refused) for text in OUT_OF_RANGE):
                return _accepts_bad_index(graph, str(refused))
            raise
        graph = graph.without_false_shapes(theirs)
        try:
            ours = outcome_of(graph)
        except UnsupportedError as error:
            raise NotCompared("open" if graph.is_opened else "unsupported", str(error)) from None
        except InputError as error:
            if INDEX_KNOWN in str(error) and any(map(inner_graphs, graph.proto.graph.node)):
                raise NotCompared(
                    "unsupported", f"perhaps in a body that never runs: {error}"
                ) from None
            if graph.is_opened:
                # A size that only a run knows may meet one that is fixed.
                raise NotCompared("open", str(error)) from None
            return Wrong("refused", f"a valid model is refused: {error}")
        except VerifyException as error:
            return Wrong("invalid", f"the imported program does not verify: {error}")
        except MemoryError:
            raise
        except Exception as error:
            return Wrong("fault", f"the model cannot be read: {type(error).__name__}: {error}")
        if not ours.decided:
            raise NotCompared("undecided", "a branch depends on rounding")
        if ours.fault is not None:
            return Wrong("fault", f"abele refuses a model that onnxruntime runs: {ours.fault}")
        differs = difference(ours, Run(theirs, {}))
        if differs is not None:
            return self._unless_known(graph, ours, theirs, differs)
        return None if self.target is None else on_machine(graph, ours, self.target)

    def _unless_known(
        self, graph: ModelCase, ours: Outcome, theirs: dict[str, Array], differs: Difference
    ) -> Wrong | None:
        """The failure behind a difference; None if known deviations of onnxruntime explain it.

        Finds the first node whose results differ. If that is a known deviation, the nodes after it
        are compared again, with onnxruntime's results of the node as inputs.
        """
        whole = graph.with_all_results()
        # Keep the outputs already seen: uninitialized memory differs from run to run.
        values = {**_onnxruntime_outputs(whole), **theirs}
        whole = whole.without_false_shapes(values)
        every = outcome_of(whole)
        first = difference(every, Run(values, {}))
        node = None if first is None else graph.producer(first.value)
        if first is None or node is None:
            return Wrong("value", f"{_description(differs, None)}; {_second_opinion(graph, ours)}")
        if inner_graphs(node):
            return self._written_out(graph, node, values, f"{_description(first, node)}")
        case = _case(graph, node, first.value, values)
        known = None if case is None else deviation(case)
        if case is None or known is None:
            return Wrong("value", f"{_description(first, node)}; {_second_opinion(graph, ours)}")
        self.report.deviations[node.op_type, known] += 1
        if not case.same_shape:
            return None
        rest = graph.with_inputs({name: values[name] for name in node.output if name})
        return self._compare(rest) if rest.proto.graph.output else None

    def _written_out(
        self, graph: ModelCase, node: onnx.NodeProto, values: dict[str, Array], wrong: str
    ) -> Wrong | None:
        """The failure of a node with inner graphs, whose results differ.

        The model with these graphs written out is compared instead, node by node. If its nodes
        agree, the node itself is wrong.
        """
        try:
            plain = written_out(graph, node, values)
        except NotWrittenOut:
            return Wrong("value", wrong)
        before = self.report.deviations.total()
        found = self._compare(plain)
        if found is None and self.report.deviations.total() == before:
            return Wrong("value", f"{wrong}; written out, its nodes agree with abele")
        return found


def check_valid(model: onnx.ModelProto) -> None:
    """Raise NotCompared for an invalid model."""
    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise NotCompared("invalid", str(error)) from None


def imported_program(graph: ModelCase) -> Program:
    """The nn program that abele reads from a model. Raises InputError and VerifyException."""
    context = new_context()
    module = import_onnx(graph.proto, context, dims=dict(graph.bounds))
    verify(module, NN)
    inputs = poisoned(signature(module), graph.inputs)
    return Program(module, context, inputs, resolve_target(NO_MACHINE))


def outcome_of(graph: ModelCase) -> Outcome:
    """The results of a model by abele's reference, without padding, and their error bounds.

    The outcome is undecided if a size depends on rounding. Raises InputError and VerifyException.
    """
    program = imported_program(graph)
    outcome, sizes = bounded_run(program), signature(program.module).sizes
    if not sizes or outcome.fault is not None:
        return outcome
    outputs, errors = dict(outcome.outputs), dict(outcome.errors)
    for each in sizes:
        place = (*[slice(None)] * each.axis, slice(int(outcome.outputs[each.size])))
        outputs[each.result] = outputs[each.result][place]
        errors[each.result] = errors[each.result][place]
    names = {each.size for each in sizes}
    decided = outcome.decided and not any(outcome.errors[name].any() for name in names)
    for name in names:
        del outputs[name], errors[name]
    return replace(outcome, outputs=outputs, errors=errors, decided=decided, exact={})


def on_machine(graph: ModelCase, ours: Outcome, target: str) -> Wrong | None:
    """The failure of a model that is compiled for a machine and run there.

    Returns None if the results are right, or if the model does not fit on the machine.
    """
    try:
        exe = compile_model(graph.proto, target, dims=dict(graph.bounds), cache=False)
        found = exe.signature.trimmed(
            exe.runners.run(poisoned(exe.signature, graph.inputs), strict=True)
        )
    except DoesNotFit:
        return None
    except MemoryError:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        return Wrong("machine", f"the model cannot be compiled for {target} and run: {problem}")
    differs = difference(ours, Run(found, {}))
    return None if differs is None else Wrong("machine", f"on {target}, {differs}")


def _accepts_bad_index(graph: ModelCase, refused: str) -> Wrong | None:
    """The failure of a model that abele runs although onnxruntime reports an index out of range."""
    try:
        ours = bounded_run(imported_program(graph))
    except UnsupportedError as error:
        raise NotCompared("unsupported", str(error)) from None
    except InputError:
        return None
    if ours.fault is not None:
        return None
    return Wrong("fault", f"abele runs a model that onnxruntime refuses: {refused}")


def _onnxruntime_outputs(graph: ModelCase) -> dict[str, Array]:
    """The outputs of a model, as onnxruntime computes them. Raises NotCompared."""
    try:
        return by_onnxruntime(graph.proto, graph.inputs)
    except RefusedByRuntime as error:
        raise NotCompared("refused", str(error)) from None


def _case(
    graph: ModelCase, node: onnx.NodeProto, name: str, values: dict[str, Array]
) -> Case | None:
    """The results of abele and onnxruntime for one result of a node, from onnxruntime's operands.

    None if an operand is no tensor.
    """
    there = {**graph.inputs, **graph.weights, **values}
    names = names_read(node)
    if any(each not in there for each in names):
        return None
    operands = {each: there[each] for each in names}
    ours = outcome_of(graph.single_node(node, operands))
    given = [operands.get(each) for each in node.input]
    return Case(node, graph.opset, given, ours.outputs[name], values[name], ours.errors[name])


def _description(found: Difference, node: onnx.NodeProto | None) -> str:
    """A text about the difference between abele's and onnxruntime's results, with the node."""
    place = f"{found.value!r}" + (f" of {node.op_type}" if node is not None else "")
    if not found.index and not np.isfinite(found.ratio) and not found.text.startswith("element"):
        return f"{place}: onnxruntime computes {found.text}, as abele computes"
    need = f"a difference of at most {found.bound:.3g}" if found.bound else "equal values"
    return (
        f"{place}: element {list(found.index)} is {found.expected:.9g} by abele and "
        f"{found.found:.9g} by onnxruntime; need {need}"
    )


def _second_opinion(graph: ModelCase, ours: Outcome) -> str:
    """The judgement of onnx's own evaluator on the difference, in words."""
    try:
        third = by_reference(graph.proto, graph.inputs)
    except RefusedByRuntime as error:
        reason = str(error).partition("\n")[0][:100]
        return f"onnx's evaluator does not run the model ({reason})"
    agrees = difference(ours, Run(third, {})) is None
    return f"onnx's evaluator {'agrees' if agrees else 'does not agree'} with abele"
