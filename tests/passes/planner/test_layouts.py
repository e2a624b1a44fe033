"""Plans chosen together, held to all choices there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from abele.backends.target import Target, resolve_target
from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.ir.geometry.layout import Layout
from abele.passes.planner import layouts
from abele.passes.planner.arrival import relayout_cycles
from abele.passes.planner.choice import Choice
from abele.passes.planner.graph import Operator, read_graph
from abele.passes.planner.layouts import Chooser
from abele.passes.planner.limits import Limits
from abele.passes.planner.network import Network, plan_network
from abele.passes.planner.question import Question
from abele.passes.planner.serial import plans, priced

from .test_network import Net, mlp

WIDTHS = (8, 12, 24)


def chooser_of(module: ModuleOp, target: Target, byte_price: float = 0.0) -> Chooser:
    network = Network(read_graph(module, target, Limits()), target)
    return network.chooser(target.usable_bytes_per_tile, byte_price)


@dataclass
class Steadfast(Chooser):
    """Tries the same plans of an operator wherever its operands lie.

    Of others nothing can be said: what is tried for one layout only may be the fastest of all.
    """

    tried: dict[Operator, list[Plan]] = field(default_factory=dict)

    def choices(self, node: Operator, have: tuple[Layout | None, ...]) -> list[Choice]:
        if node not in self.tried:
            self.tried[node] = [choice.plan for choice in super().choices(node, have)]
        every = (
            priced(Question(node.problem, have, self.target, self.bound), plan)
            for plan in self.tried[node]
        )
        return sorted(every, key=lambda choice: choice.cycles)


def steadfast(chooser: Chooser) -> Chooser:
    """A chooser that keeps all states, and moves no weights, which brute force leaves out."""
    given_ = (chooser.graph, chooser.target, chooser.bound, chooser.byte_price, chooser.resident)
    return Steadfast(*given_, states=10_000, moves=False)


def best_of_all(chooser: Chooser) -> float:
    """The cycles of the fastest program, by trying every plan of every operator."""
    graph, target = chooser.graph, chooser.target

    def rest(nodes: Sequence[object], placed: dict) -> float:
        if not nodes:
            return 0.0
        node, *others = nodes
        if not isinstance(node, Operator):
            pair = (graph.fixed.get(s) or placed[s] for s in (node.source, node.destination))
            moved = node.times * relayout_cycles(*pair, node.dtype.itemsize, target)
            return moved + rest(others, placed)
        have = tuple(
            None if slot is None else graph.fixed.get(slot) or placed[slot]
            for slot in node.operands
        )
        return min(
            choice.cycles * node.times
            + rest(others, placed | chooser.option(node, choice, have).layouts)
            for choice in chooser.choices(node, have)
        )

    return rest(graph.nodes, {})


@st.composite
def chains(draw: st.DrawFn) -> ModuleOp:
    net = Net(draw(st.integers(1, 8)), draw(st.sampled_from(WIDTHS)))
    for _ in range(draw(st.integers(2, 4))):
        extend(net, draw)
    return net.module()


def extend(net: Net, draw: st.DrawFn) -> SSAValue:
    match draw(st.sampled_from(("matmul", "relu", "transpose"))):
        case "matmul":
            net.matmul(draw(st.sampled_from(WIDTHS)))
        case "relu":
            net.relu()
        case _:
            net.value = net.block_add(nn.TransposeOp(net.value, [1, 0]))
    return net.value


@given(chains(), st.sampled_from((1, 4, 6, 12)))
@settings(max_examples=40)
def test_with_enough_states_the_choice_along_a_chain_is_optimal(module: ModuleOp, tiles: int):
    chooser = steadfast(chooser_of(module, resolve_target(f"tiny:{tiles}")))
    assert chooser.together().cycles == pytest.approx(best_of_all(chooser))


@given(st.data(), st.sampled_from((4, 6, 12)))
@settings(max_examples=25)
def test_with_enough_states_the_choice_is_optimal_if_values_wait(data: st.DataObject, tiles: int):
    net = Net(data.draw(st.integers(1, 8)), data.draw(st.sampled_from(WIDTHS)))
    kept = extend(net, data.draw) if data.draw(st.booleans()) else net.value
    width = nn.shape_of(kept)[1]
    net.matmul(width)
    net.value = net.block_add(nn.AddOp(net.value, kept))
    chooser = steadfast(chooser_of(net.module(), resolve_target(f"tiny:{tiles}")))
    assert chooser.together().cycles == pytest.approx(best_of_all(chooser))


@given(chains(), st.sampled_from((4, 6, 16)))
@settings(max_examples=25)
def test_plans_chosen_together_are_never_slower_than_one_by_one(module: ModuleOp, tiles: int):
    target = resolve_target(f"tiny:{tiles}")
    alone = chooser_of(module, target).one_by_one()
    assert plan_network(module, target).cycles <= alone.cycles


def test_the_next_operator_decides_between_equal_plans():
    net = Net(4, 8)
    relu = net.relu()
    matmul = net.matmul(8)
    module, target = net.module(), resolve_target("tiny:12")
    alone = chooser_of(module, target).one_by_one()
    found = plan_network(module, target)
    first = {node.op: option.choice for node, option in alone.options.items()}
    assert first[matmul].exchange_cycles > 0
    assert found.choices[matmul].exchange_cycles == 0
    assert found.plans[relu].split == (4, 1)
    assert found.choices[relu].cycles == first[relu].cycles


def test_equal_layers_are_searched_once():
    target = resolve_target("tiny:32")

    def searched(layers: int) -> int:
        plans.cache_clear()
        plan_network(mlp(96, layers), target)
        return plans.cache_info().misses

    assert searched(12) == searched(6)


def test_no_more_states_are_kept_than_allowed(monkeypatch: pytest.MonkeyPatch):
    kept: list[int] = []
    own = Chooser._kept

    def counted(self: Chooser, states, node: int, most: int):
        found = own(self, states, node, most)
        kept.append(len(found))
        return found

    monkeypatch.setattr(Chooser, "_kept", counted)
    chooser_of(mlp(24, 4), resolve_target("tiny:12")).together()
    assert max(kept) <= layouts.STATES


def test_a_node_does_not_look_at_values_that_wait(monkeypatch: pytest.MonkeyPatch):
    """Where one state is kept, work grows with the nodes, however many values are still to be
    read."""
    own = Chooser._is_read
    looked: list[int] = []

    def counted(self: Chooser, slot: int, node: int) -> bool:
        looked.append(slot)
        return own(self, slot, node)

    monkeypatch.setattr(Chooser, "_is_read", counted)

    def looks(values: int) -> int:
        net = Net(16, 16)
        waiting = [net.relu() for _ in range(values)]
        for each in waiting:
            net.value = net.block_add(nn.AddOp(net.value, each))
        looked.clear()
        chooser_of(net.module(), resolve_target("tiny:8")).one_by_one()
        return len(looked)

    assert looks(24) < 2.5 * looks(12)


def test_a_higher_price_per_byte_leaves_fewer_bytes_resident():
    target = resolve_target("tiny:16")
    net = Net(16, 64)
    for _ in range(3):
        net.matmul(64)
    module = net.module()

    def resident(byte_price: float) -> int:
        decided = chooser_of(module, target, byte_price).together()
        return sum(option.choice.resident_bytes for option in decided.options.values())

    found = [resident(price) for price in (0.0, 0.1, 1e3)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_the_largest_values_of_windows_are_those_of_each_window(
    values: list[int], data: st.DataObject
):
    size = data.draw(st.integers(1, len(values)))
    windows = [values[i : i + size] for i in range(len(values) - size + 1)]
    found = layouts._windows_max(np.array(values, np.int64), size)
    assert found.tolist() == [max(window) for window in windows]
