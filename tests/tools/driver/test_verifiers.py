from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from some_models import model, node
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation

from abele.dialects import nn, partition
from abele.dialects.levels import EXCHANGE
from abele.dialects.steps import Input, Output, Superstep, Vertices
from abele.ir.pass_manager import PassManager, load_pass
from abele.ir.support.errors import InputError
from abele.ir.upstream import Context, ModuleOp, ModulePass, VerifyException
from abele.passes.pipelines import PASSES
from abele.tools import compile_model
from abele.tools.driver.verifiers import verifiers


def test_composites_that_are_left_are_blamed_on_decompose(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.passes.decompose.Decompose.apply", lambda *_: None)
    proto = model([node("Softmax", "x", "y")], {"x": [2, 3]}, ["y"])
    with pytest.raises(VerifyException, match=r"after pass 'decompose' .*nn.softmax is not legal"):
        compile_model(proto, "tiny")


def first(module: ModuleOp, kind: type[Operation]) -> Operation:
    """The first operation of a class."""
    return next(op for op in module.walk() if isinstance(op, kind))


def rename(kind: type[Operation], attribute: str, name: str) -> Callable[[ModuleOp], None]:
    """Damage: the first operation of a class names another symbol."""

    def damage(module: ModuleOp) -> None:
        first(module, kind).properties[attribute] = SymbolRefAttr(name)

    return damage


def move_out(module: ModuleOp) -> None:
    """Damage: vertices leave their superstep."""
    vertices = first(module, Vertices)
    step = vertices.parent_op()
    assert step is not None
    assert step.parent is not None
    vertices.detach()
    step.parent.insert_op_after(vertices, step)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("fold-constants", rename(nn.LoadOp, "state", "v"), "nn.load at .*: no nn.state @v"),
        (
            "convert-nn-to-partition",
            rename(partition.LoadOp, "state", "v"),
            "partition.load at .*: no partition.state @v",
        ),
        (
            "convert-partition-to-tile",
            rename(Input, "writes", "v"),
            "tile.input at .*: no variable @v",
        ),
        ("schedule-supersteps", rename(Output, "reads", "v"), "tile.output at .*: no varia"),
        ("convert-tile-to-exchange", move_out, "exchange.compute at .*: inside func"),
    ],
)
def test_a_pass_that_breaks_the_table_of_its_level_is_blamed(
    name: str, damage: Callable[[ModuleOp], None], message: str, monkeypatch: pytest.MonkeyPatch
):
    planted = load_pass(name, PASSES)
    apply = planted.apply

    def wrong(self: object, ctx: Context, op: ModuleOp) -> None:
        apply(self, ctx, op)
        damage(op)

    monkeypatch.setattr(planted, "apply", wrong)
    weights = {"w": np.ones((8, 4), np.float32), "b": np.ones(4, np.float32)}
    proto = model(
        [node("MatMul", "x w", "h"), node("Add", "h b", "y")], {"x": [8, 8]}, ["y"], weights
    )
    with pytest.raises(VerifyException, match=f"after pass '{name}' .*{message}"):
        compile_model(proto, "tiny", cache=False)


@dataclass(frozen=True)
class LookAtExchange(ModulePass):
    name = "look-at-exchange"
    takes = EXCHANGE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


def test_a_pass_of_exchange_takes_the_operations_of_tile_that_are_legal_there():
    proto = model([node("Relu", "x", "y")], {"x": [8]}, ["y"])
    module = compile_model(proto, "tiny").module_at("exchange")
    assert any(isinstance(op, Superstep) for op in module.walk())
    PassManager((LookAtExchange(),), verifiers(None)).run(Context(), module)


def test_a_pass_of_exchange_refuses_a_module_of_tile():
    proto = model([node("Relu", "x", "y")], {"x": [8]}, ["y"])
    module = compile_model(proto, "tiny").module_at("tile")
    with pytest.raises(InputError, match=r"tile\.variable at .*takes modules of exchange"):
        PassManager((LookAtExchange(),), verifiers(None)).run(Context(), module)
