"""Equivalent models: the same function of the same inputs, written in another way.

Two runs of one tool, on a model and on an equivalent one, must agree. So the tool is its own
reference. The rewrites of this file are exact: they change no bit of a result, NaN and -0 included,
in every order of evaluation that the standard allows. Rules make other equivalents: those of
equivalents.rw, which are proved, and those of the user that are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import onnx
from onnx import helper, numpy_helper

from ....ir.rules import RuleSet, Vocabulary
from ....ir.rules.rule_set import read_rule_set
from ....passes.rules import nn_library as nn_library  # registers functions for rules
from ....passes.rules import onnx_library as onnx_library
from ...driver.context import new_context
from ..onnx_graphs.graph import WEIGHTS_ARE_NO_INPUTS, ModelCase, copy_of, every_node
from ..rules.onnx_rewriting import InvalidResult, matching, rewritten

Rewrite = Callable[[ModelCase, Random], ModelCase | None]
"""An equivalent of a model; None if the rewrite does not apply to it."""

COMMUTATIVE = ("Add", "Mul", "And", "Or", "Xor", "Equal")
"""Operators of two operands whose order changes no bit of the result. (Of two NaN, either may
become the result, and which is not told.)"""

OWN_RULES = Path(__file__).with_name("equivalents.rw")
RULE = "rule "
"""How the name of an equivalent that a rule made begins."""
MOST_RULES = 3
"""So many of the rules that match a model make an equivalent of it."""


@dataclass(frozen=True)
class Equivalent:
    """A model that must give the results of another one.

    Attributes:
        name: of the rewrite or rule that made it.
    """

    name: str
    case: ModelCase

    @property
    def is_exact(self) -> bool:
        """Whether every correct run of it has the bits of a correct run of the other model."""
        return self.name in REWRITES


@cache
def own_rules() -> RuleSet:
    """The rules of equivalents.rw. A test looks whether they are proved; loading does not."""
    return read_rule_set(OWN_RULES, Vocabulary(new_context()))


def equivalents(
    graph: ModelCase, random: Random, rules: RuleSet | None = None, only: str = ""
) -> Iterator[Equivalent]:
    """Equivalents of a model by the rewrites and rules that apply to it.

    The inputs of some have other values: what was a weight may become an input, and the reverse.
    Raises InputError if a rule fails.

    Args:
        only: the name of the only rewrite or rule; all rewrites and some rules if "".
    """
    for name, rewrite in REWRITES.items():
        found = rewrite(graph, random) if only in ("", name) else None
        if found is not None:
            yield Equivalent(name, replace(found, sketch=None))
    if rules is not None and (not only or only.startswith(RULE)):
        yield from _by_rules(graph, random, rules, only)


def _by_rules(graph: ModelCase, random: Random, rules: RuleSet, only: str) -> Iterator[Equivalent]:
    plain = _plain(graph)
    counts = matching(plain, rules)
    fitting = [each for each in rules.bound if counts.get(each.name)]
    if only:
        chosen = [each for each in fitting if RULE + each.name == only]
    else:
        chosen = random.sample(fitting, min(len(fitting), MOST_RULES))
    for rule in chosen:
        for numbers in _some_places(counts[rule.name], random, each_alone=bool(only)):
            try:
                case = rewritten(plain, rule, rules.vocabulary, numbers)
            except InvalidResult:
                continue
            yield Equivalent(RULE + rule.name, case)


def _some_places(count: int, random: Random, *, each_alone: bool) -> Iterator[Collection[int]]:
    """Some of the places at which a rule matches; or all together, and then each alone."""
    if each_alone:
        yield range(count)
        if count > 1:
            yield from ([number] for number in range(count))
        return
    yield [i for i in range(count) if random.random() < 0.5] or [random.randrange(count)]


def _plain(graph: ModelCase) -> ModelCase:
    """A copy of a model, without inferred shapes, which a rewrite could make wrong."""
    proto = copy_of(graph.proto)
    del proto.graph.value_info[:]
    return replace(graph, proto=proto)


def _weights_as_inputs(graph: ModelCase, random: Random) -> ModelCase | None:
    """Each float weight is an input, so no tool can compute with it before the run.

    Integers stay, because operators may need them to know the shapes of their results.
    """
    del random
    floats = {name: array for name, array in graph.weights.items() if array.dtype.kind == "f"}
    shown = {v.name for v in graph.proto.graph.output}
    floats = {name: array for name, array in floats.items() if name not in shown}
    if not floats:
        return None
    made = _plain(graph)
    own = made.proto.graph
    kept = [each for each in own.initializer if each.name not in floats]
    del own.initializer[:]
    own.initializer.extend(kept)
    given = {each.name for each in own.input}
    for name, array in floats.items():
        if name not in given:
            code = helper.np_dtype_to_tensor_dtype(array.dtype)
            own.input.append(helper.make_tensor_value_info(name, code, array.shape))
    return replace(made, inputs={**graph.inputs, **floats})


def _inputs_as_weights(graph: ModelCase, random: Random) -> ModelCase | None:
    """Each input is a weight, so a tool may compute everything before the run."""
    del random
    shown = {v.name for v in graph.proto.graph.output}
    if not graph.inputs or (shown | graph.weights.keys()) & graph.inputs.keys():
        return None
    made = _plain(graph)
    own = made.proto.graph
    kept = [each for each in own.input if each.name not in graph.inputs]
    del own.input[:]
    own.input.extend(kept)
    for name, array in graph.inputs.items():
        own.initializer.append(numpy_helper.from_array(array, name))
    made.proto.ir_version = max(made.proto.ir_version, WEIGHTS_ARE_NO_INPUTS)
    return replace(made, inputs={})


def _weights_as_constants(graph: ModelCase, random: Random) -> ModelCase | None:
    """Each weight that is no input is the result of a Constant node."""
    del random
    given = {each.name for each in graph.proto.graph.input}
    shown = {v.name for v in graph.proto.graph.output}
    moved = [t for t in graph.proto.graph.initializer if t.name not in given | shown]
    if not moved:
        return None
    made = _plain(graph)
    own = made.proto.graph
    nodes = [helper.make_node("Constant", [], [each.name], value=each) for each in moved]
    nodes += list(own.node)
    names = {each.name for each in moved}
    kept = [each for each in own.initializer if each.name not in names]
    del own.initializer[:], own.node[:]
    own.initializer.extend(kept)
    own.node.extend(nodes)
    return made


def _identities_between(graph: ModelCase, random: Random) -> ModelCase | None:
    """Every operand of the main graph goes through an Identity of its own."""
    del random
    made = _plain(graph)
    own = made.proto.graph
    taken = _names(graph)
    nodes: list[onnx.NodeProto] = []
    for node in own.node:
        if _takes_lists(node, graph.opset):
            nodes.append(node)
            continue
        for i, name in enumerate(node.input):
            # A weight may have to be known when the model is read: an axis or a shape.
            if name and name not in graph.weights and graph.producer(name) is None:
                passed = _fresh(taken)
                nodes.append(helper.make_node("Identity", [name], [passed]))
                node.input[i] = passed
        nodes.append(node)
    if len(nodes) == len(own.node):
        return None
    del own.node[:]
    own.node.extend(nodes)
    return made


def _takes_lists(node: onnx.NodeProto, opset: int) -> bool:
    """Whether a node may read sequences or optional values, which an old Identity does not take."""
    return opset < 16 and ("Sequence" in node.op_type or "Optional" in node.op_type)


def _operands_swapped(graph: ModelCase, random: Random) -> ModelCase | None:
    """The two operands of every commutative node are swapped."""
    del random
    made = _plain(graph)
    done = False
    for node in every_node(made.proto.graph):
        if node.op_type in COMMUTATIVE and not node.domain and len(node.input) == 2:
            first, second = node.input
            node.input[0], node.input[1] = second, first
            done = done or first != second
    return made if done else None


def _nodes_doubled(graph: ModelCase, random: Random) -> ModelCase | None:
    """One node is there twice, and later nodes read one or the other at random."""
    made = _plain(graph)
    own = made.proto.graph
    plain = [i for i, node in enumerate(own.node) if all(a.type != a.GRAPH for a in node.attribute)]
    read = {name for node in own.node for name in node.input}
    plain = [i for i in plain if read & set(own.node[i].output)]
    if not plain:
        return None
    at = random.choice(plain)
    taken = _names(graph)
    double = onnx.NodeProto()
    double.CopyFrom(own.node[at])
    double.name = ""
    names = {name: _fresh(taken) for name in double.output if name}
    for i, name in enumerate(double.output):
        double.output[i] = names.get(name, "")
    nodes = list(own.node)
    for node in nodes[at + 1 :]:
        for i, name in enumerate(node.input):
            if name in names and random.random() < 0.5:
                node.input[i] = names[name]
    nodes.insert(at + 1, double)
    del own.node[:]
    own.node.extend(nodes)
    return made


def _all_results_shown(graph: ModelCase, random: Random) -> ModelCase | None:
    """Every result is an output of the model, so nothing may be fused away."""
    del random
    shown = graph.with_all_results()
    before, after = len(graph.proto.graph.output), len(shown.proto.graph.output)
    names = {v.name for v in shown.proto.graph.output}
    if after <= before or not {v.name for v in graph.proto.graph.output} <= names:
        return None
    return shown


def _names(graph: ModelCase) -> set[str]:
    """All names of values in a model, and in the graphs inside it."""
    own = graph.proto.graph
    found = {each.name for each in (*own.input, *own.initializer)}
    for node in every_node(own):
        found.update((*node.input, *node.output))
    return found


def _fresh(taken: set[str]) -> str:
    """A name that is not taken yet, which is taken from now on."""
    name = next(n for n in (f"again_{i}" for i in range(len(taken) + 1)) if n not in taken)
    taken.add(name)
    return name


REWRITES: dict[str, Rewrite] = {
    "weights as inputs": _weights_as_inputs,
    "inputs as weights": _inputs_as_weights,
    "weights as constants": _weights_as_constants,
    "identities between": _identities_between,
    "operands swapped": _operands_swapped,
    "a node twice": _nodes_doubled,
    "all results shown": _all_results_shown,
}
"""The rewrites by name."""
