"""The phase of an operation is read from its location."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from abele.ir.context import AbeleContext
from abele.ir.phases import BACKWARD, FORWARD, UPDATE, Phases, keep_forward_names, several
from abele.ir.text import parse_module
from abele.passes.differentiate import Differentiate
from abele.passes.train import Train
from abele.tools.driver.context import new_context

TEXT = """
builtin.module {
  nn.state @w : tensor<3x2xf32> = <"{w}">
  func.func @main(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {
    %w = nn.load @w : tensor<3x2xf32> loc("w")
    %0 = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32> loc("PRODUCT")
    %1 = nn.tanh %0 : (tensor<4x2xf32>) -> tensor<4x2xf32> loc("tanh")
    func.return %1 : tensor<4x2xf32>
  }
}
"""


def network(node: str = "product") -> tuple[ModuleOp, AbeleContext]:
    """A product with a weight, by the name of its node, and tanh."""
    context = new_context()
    weight = context.blobs.add(np.full((3, 2), 0.5, np.float32)).digest
    return parse_module(TEXT.replace("{w}", weight).replace("PRODUCT", node), context), context


@pytest.mark.parametrize(
    ("origin", "phase"),
    [
        (None, FORWARD),
        ("conv1", FORWARD),
        ("conv1/backward", BACKWARD),
        ("conv1/backward/partials", BACKWARD),
        ("conv1/backwards", FORWARD),
        ("conv1+relu1/backward", BACKWARD),
        ("conv1/backward+conv1/w/update/partials", UPDATE),
        ("clip", UPDATE),
    ],
)
def test_the_latest_phase_of_all_nodes_is_that_of_the_operation(origin: str | None, phase: str):
    assert Phases(()).phase(origin) == phase


@pytest.mark.parametrize(
    ("path", "node"),
    [
        ("conv1", "conv1"),
        ("conv1/backward/partials", "conv1"),
        ("cell/conv1/backward", "cell/conv1"),
        ("cell/update/MatMul/backward", "cell/update/MatMul"),
        ("cell/update", "cell"),
        ("clip", ""),
    ],
)
def test_the_node_of_a_path_is_what_comes_before_the_steps_of_training(path: str, node: str):
    assert Phases(("cell/update/MatMul",)).node_of(path) == node


def test_phases_are_told_apart_only_if_some_are_not_forward():
    assert several([FORWARD, FORWARD]) == ()
    assert several([UPDATE, FORWARD, UPDATE]) == (FORWARD, UPDATE)


@pytest.mark.parametrize("node", ["product", "cell/update/MatMul", "update"])
def test_operations_of_a_step_have_the_phase_that_made_them_whatever_nodes_are_called(node: str):
    module, context = network(node)
    forward = len(list(module.walk()))
    Train(loss="mean_square").apply(context, module)
    phases = Phases.of(module)
    by_name = {
        (op.name, phases.phase(op)) for op in module.walk() if op.name in ("nn.matmul", "nn.store")
    }
    assert by_name == {
        ("nn.matmul", FORWARD), ("nn.matmul", BACKWARD), ("nn.store", UPDATE)
    }  # fmt: skip
    assert sum(phases.phase(op) == FORWARD for op in module.walk()) > forward


def test_a_gradient_that_is_differentiated_again_is_part_of_the_forward_program():
    module, context = network()
    Differentiate(of=("arg0",)).apply(context, module)
    found = {op for op in module.walk() if Phases.of(module).phase(op) == BACKWARD}
    assert found
    Differentiate(loss="grad.arg0", of=("w",)).apply(context, module)
    phases = Phases.of(module)
    assert {phases.phase(op) for op in found if op.parent is not None} == {FORWARD}
    assert BACKWARD in {phases.phase(op) for op in module.walk()}


def test_a_program_without_gradients_is_forward_whatever_its_nodes_are_called():
    module, _ = network("cell/update/MatMul")
    phases = Phases.of(module)
    assert several(map(phases.phase, module.walk())) == ()
    keep_forward_names(module)
    assert Phases.of(module).nodes == ("cell/update/MatMul",)
