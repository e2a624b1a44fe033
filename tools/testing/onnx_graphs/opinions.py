"""What is right for a model: abele's results with bounds, onnx's evaluator, and what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from ....backends.evaluate.host import Run
from ....ir.support.errors import InputError
from ....ir.upstream import VerifyException
from ...driver.arrays import Array
from ..oracle.oracles import Difference, Outcome, difference, ratios, with_both_errors
from .checks import NotCompared, check_valid, outcome_of
from .freedom import FREEDOMS, OpenNode, freedom
from .graph import ModelCase, copy_of, inner_graphs, names_read
from .runtimes import RefusedByRuntime, by_onnxruntime, by_reference
from .unrolled import NotWrittenOut, written_out

MOST_WRITTEN_OUT = 8
"""Nodes with inner graphs that are written out, at most, to see what is open inside them."""

COARSE = {2: 2.0**-6, 4: 2.0**-12, 8: 2.0**-12}
"""Errors of this size, relative to the largest value of a model, are inexact and not wrong, by the
bytes of a float. The standard says nothing about exactness."""


@dataclass(frozen=True)
class Expected:
    """The right results of a model.

    Attributes:
        graph: the model, without declared shapes that are wrong.
        outcome: abele's results, with the bound of each error.
        reference: the results of onnx's evaluator; None if it does not run the model.
    """

    graph: ModelCase
    outcome: Outcome

    @property
    def reference(self) -> dict[str, Array] | None:
        """The results of onnx's evaluator; None if it does not run the model."""
        return reference_of(self.graph)


def reference_of(graph: ModelCase) -> dict[str, Array] | None:
    """The results of a model by onnx's evaluator; None if it does not run it."""
    try:
        return by_reference(graph.proto, graph.inputs)
    except RefusedByRuntime:
        return None


def expected(graph: ModelCase) -> Expected:
    """What is right for a model. Raises NotCompared, with "faulty" for a model that cannot run."""
    check_valid(graph.proto)
    try:
        found = computed(graph)
    except RefusedByRuntime as error:
        raise NotCompared("refused", str(error)) from None
    graph = with_true_shapes(graph, found)
    # Where onnx infers a wrong rank, it accepts no right one.
    check_valid(graph.proto)
    outcome = evaluated(graph)
    return Expected(graph, outcome)


def with_true_shapes(graph: ModelCase, found: Mapping[str, Array]) -> ModelCase:
    """The model with unknown sizes in the place of declared ones that are not those computed.

    onnx infers a wrong shape for some nodes, such as windows with ceil_mode.
    """
    proto = copy_of(graph.proto)
    for value in proto.graph.value_info:
        value.type.tensor_type.ClearField("shape")
    for output in proto.graph.output:
        shape, sizes = output.type.tensor_type.shape, found[output.name].shape
        if len(shape.dim) != len(sizes):
            shape.Clear()
            for _ in sizes:
                shape.dim.add()
        for dim, size in zip(shape.dim, sizes, strict=True):
            if dim.HasField("dim_value") and dim.dim_value != size:
                dim.Clear()
        # A scalar's shape has no sizes, and must be there all the same.
        shape.SetInParent()
    return replace(graph, proto=proto)


def computed(graph: ModelCase) -> dict[str, Array]:
    """The outputs of a model by onnxruntime without optimisations, or by onnx's evaluator.

    Raises RefusedByRuntime if neither runs the model.
    """
    try:
        return by_onnxruntime(graph.proto, graph.inputs)
    except RefusedByRuntime:
        return by_reference(graph.proto, graph.inputs)


def evaluated(graph: ModelCase) -> Outcome:
    """A model's results by abele, with bounds. Raises NotCompared."""
    try:
        outcome = outcome_of(graph)
    except (InputError, VerifyException) as error:
        raise NotCompared("unsupported", str(error)) from None
    if not outcome.decided:
        raise NotCompared("undecided", "a branch depends on rounding")
    if outcome.fault is not None:
        raise NotCompared("faulty", str(outcome.fault))
    return outcome


def open_outputs(graph: ModelCase) -> dict[str, str]:
    """The outputs that the standard leaves open, each with what is open about it."""
    for _ in range(MOST_WRITTEN_OUT):
        node = next((n for n in graph.proto.graph.node if inner_graphs(n)), None)
        if node is None:
            break
        try:
            graph = written_out(graph, node, _values(graph))
        except (NotWrittenOut, RefusedByRuntime):
            break
    try:
        values = _values(graph)
    except RefusedByRuntime:
        return {v.name: "a value that no evaluator computes" for v in graph.proto.graph.output}
    return _tainted(graph, values)


def _values(graph: ModelCase) -> dict[str, Array]:
    """All values of a model that are tensors. Raises RefusedByRuntime."""
    whole = graph.with_all_results()
    found = computed(whole)
    return {**graph.inputs, **graph.weights, **found}


def _tainted(graph: ModelCase, values: Mapping[str, Array]) -> dict[str, str]:
    """The outputs that depend on a node that is open."""
    open_names: dict[str, str] = {}
    for node in graph.proto.graph.node:
        read = names_read(node)
        why = next((open_names[name] for name in read if name in open_names), "")
        why = why or _open(graph, node, values)
        if why:
            open_names.update((name, why) for name in node.output if name)
    names = [v.name for v in graph.proto.graph.output]
    return {name: open_names[name] for name in names if name in open_names}


_NAMED = frozenset(name for each in FREEDOMS for name in each.operators)


def _open(graph: ModelCase, node: onnx.NodeProto, values: Mapping[str, Array]) -> str:
    inner = [each.op_type for part in inner_graphs(node) for each in part.node]
    if inner:
        risky = next((name for name in inner if name in _NAMED), "")
        return f"{risky} in a loop or branch that is not written out" if risky else ""
    given = [values.get(name) if name else None for name in node.input]
    made = [values.get(name) if name else None for name in node.output]
    if any(name and name not in values for name in node.input) and node.op_type in _NAMED:
        return f"operands of {node.op_type} that are no tensors"
    with np.errstate(all="ignore"):
        return freedom(OpenNode(node, graph.opset, given, made))


# Differences


@dataclass(frozen=True)
class Judged:
    """How found results differ from the expected ones.

    Attributes:
        kind: "" if they do not; else "type", "value", "special" (an element is NaN or infinite on
            one side alone) or "inexact".
        output: the name of the first output that differs.
        text: the same in words.
    """

    kind: str = ""
    output: str = ""
    text: str = ""


def firm_difference(
    graphs: Sequence[ModelCase], right: Outcome, found: Mapping[str, Array]
) -> Judged:
    """How results differ from the expected ones, where the standard leaves nothing open.

    Raises NotCompared, with "open", if they differ elsewhere only.

    Args:
        graphs: the models that give the results, all of the same outputs.
    """
    if first_difference(right, found) is None:
        return Judged()
    scale = scale_of(graphs[0])
    differs = judged(right, found, scale)
    free = {name: why for graph in graphs for name, why in open_outputs(graph).items()}
    if not free:
        return differs
    firm = {name: array for name, array in right.outputs.items() if name not in free}
    held = judged(replace(right, outputs=firm), found, scale)
    if not held.kind:
        raise NotCompared("open", free.get(differs.output, "an output that does not matter"))
    return held


def difference_of_models(before: Expected, after: ModelCase) -> tuple[Judged, Outcome]:
    """How the results of another model differ from those of a model, and its results, by abele.

    Both must agree within the sum of their bounds. Raises NotCompared.
    """
    made = evaluated(after)
    both = with_both_errors(before.outcome, made)
    return firm_difference([before.graph], both, made.outputs), made


def judged(right: Outcome, found: Mapping[str, Array], scale: float) -> Judged:
    """How results differ from the expected ones.

    Args:
        scale: the largest finite value of the model, to which coarse errors are relative.
    """
    differs = first_difference(right, found)
    if differs is None:
        return Judged()
    name = differs.value
    if name not in found:
        return Judged("type", name, f"output {name!r} is missing")
    wanted, there = right.outputs[name], found[name]
    if wanted.shape != there.shape or wanted.dtype != there.dtype:
        return Judged("type", name, f"output {name!r}: {differs.text}")
    every = [(each, _kind(right, each, found, scale)) for each in right.outputs]
    worst = next((each for each in every if each[1] == "value"), None)
    worst = worst or next((each for each in every if each[1] == "special"), None)
    if worst is None:
        return Judged("inexact", name, f"output {name!r}: {differs.text}")
    single = replace(right, outputs={worst[0]: right.outputs[worst[0]]})
    told = first_difference(single, found) or differs
    return Judged(worst[1], worst[0], f"output {worst[0]!r}: {told.text}")


def first_difference(right: Outcome, found: Mapping[str, Array]) -> Difference | None:
    """The first output that is further off than two correct runs can be."""
    return difference(right, Run(dict(found), {}))


def _kind(right: Outcome, name: str, found: Mapping[str, Array], scale: float) -> str:
    """How one output differs: "", "value", "special" or "inexact"."""
    wanted, there = right.outputs[name], found.get(name)
    if there is None or wanted.shape != there.shape or wanted.dtype != there.dtype:
        return "value"
    if not wanted.size:
        return ""
    wrong = ratios(wanted, there, right.errors[name]) > 1
    if not wrong.any():
        return ""
    if wanted.dtype.kind not in "f":
        return "value"
    a, b = wanted.astype(np.float64)[wrong], there.astype(np.float64)[wrong]
    finite = np.isfinite(a) & np.isfinite(b)
    room = COARSE.get(wanted.dtype.itemsize, 2.0**-6) * max(scale, 1e-30)
    with np.errstate(all="ignore"):
        if (finite & (np.abs(a - b) > room)).any():
            return "value"
    return "inexact" if finite.all() else "special"


def scale_of(graph: ModelCase) -> float:
    """The largest finite number among all values of a model."""
    try:
        values = _values(graph)
    except RefusedByRuntime:
        values = {**graph.inputs, **graph.weights}
    sizes = [1.0]
    for each in values.values():
        wide = np.abs(each.astype(np.float64)) if each.dtype.kind in "fiu" else np.zeros(0)
        wide = wide[np.isfinite(wide)]
        sizes.append(float(wide.max(initial=0.0)))
    return max(sizes)
