"""Where inputs, states and constants lie, given the plans of their readers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from some_tensors import module_of
from xdsl.dialects.func import FuncOp

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.home import Home
from abele.dialects.levels import NN
from abele.dialects.structured import Structured
from abele.ir.geometry.layout import Layout, block_layout, linear_layout
from abele.ir.geometry.spread import spread
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.plans import homes as homes_module
from abele.passes.plans.derive import home_of_free, operand_layouts
from abele.passes.plans.homes import Homes
from abele.passes.plans.planned import plan_of
from abele.tools.testing import check_pipeline, programs

from ...strategies import context

TINY = resolve_target("tiny:8")
ROWS, COLUMNS, SHARED = "[4, 1]", "[1, 6]", "[2, 3]"

TEXT = """
nn.state @w : tensor<4x6xf32> = {w}
func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %w = nn.load @w : tensor<4x6xf32>
  %c = nn.constant {w} : tensor<4x6xf32>
  %0 = nn.add %x, %w {plan = #abele.plan<split FIRST>}
    : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.mul %w, %c {plan = #abele.plan<split SECOND>}
    : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  STORE
  func.return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}"""


def homes_of(first: str, second: str, store: str = "") -> tuple[Homes, list[Layout]]:
    """The homes of a program, and the layout that each of its two operators reads @w in."""
    text = TEXT.replace("FIRST", first).replace("SECOND", second).replace("STORE", store)
    module = module_of(text, context(), w=np.ones((4, 6), np.float32))
    readers = [op for op in module.walk() if isinstance(op, Structured)]
    wanted = [operand_layouts(op.structure(), plan_of(op))[0] for op in readers]
    return Homes(module, TINY), wanted


def test_a_state_lies_where_all_its_readers_want_it():
    homes, (wanted, _) = homes_of(ROWS, ROWS)
    assert homes.states == {"w": wanted}


def test_a_state_lies_where_the_first_of_several_readers_wants_it():
    homes, (first, second) = homes_of(SHARED, COLUMNS)
    assert homes.states == {"w": first}
    assert first != second


def test_a_constant_lies_where_its_reader_wants_it():
    homes, (_, wanted) = homes_of(ROWS, COLUMNS)
    (constant,) = [op for op in homes.module.walk() if isinstance(op, nn.ConstantOp)]
    assert homes.constant(constant) == wanted


def test_an_input_lies_near_where_its_first_reader_wants_it():
    homes, (wanted, _) = homes_of(ROWS, COLUMNS)
    (main,) = [op for op in homes.module.walk() if isinstance(op, FuncOp)]
    (x,) = main.body.block.args
    assert homes.argument(x, nn.tensor((4, 6), nn.element_of(x))) == spread(wanted)


def test_a_value_without_a_reader_that_computes_lies_in_linear_order():
    module = module_of(
        "func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> "
        "{ func.return %x : tensor<4x6xf32> }",
        context(),
    )
    homes = Homes(module, TINY)
    (main,) = [op for op in homes.module.walk() if isinstance(op, FuncOp)]
    (x,) = main.body.block.args
    tensor = nn.tensor((4, 6), nn.element_of(x))
    assert homes.argument(x, tensor) == linear_layout((4, 6), 4, TINY.tiles)


def chain_of_calls(length: int) -> ModuleOp:
    """Functions of which each calls the one before it twice; the first one computes."""
    kind = "tensor<4x6xf32>"
    call = f"func.call @f{{}}(%x) : ({kind}) -> {kind}"
    add = f"({kind}, {kind}) -> {kind} func.return %2 : {kind}"
    text = f"%2 = nn.add %x, %x {{plan = #abele.plan<split {ROWS}>}} : {add}"
    functions = ""
    for i in range(length):
        name = "main" if i == length - 1 else f"f{i}"
        functions += f"func.func @{name}(%x: {kind}) -> {kind} {{ {text} }}\n"
        plan = f"{{plan = #abele.plan<split {COLUMNS}>}}"
        text = f"%0 = {call.format(i)} %1 = {call.format(i)} %2 = nn.add %0, %1 {plan} : {add}"
    return module_of(functions, context())


def test_functions_that_call_each_other_twice_are_asked_once(monkeypatch: pytest.MonkeyPatch):
    asked: list[Layout] = []

    def counted(wish: Layout, itemsize: int, tiles: int, chips: int) -> Layout:
        asked.append(wish)
        return home_of_free(wish, itemsize, tiles, chips)

    monkeypatch.setattr(homes_module, "home_of_free", counted)
    module = chain_of_calls(8)
    (add, *_) = [op for op in module.walk() if isinstance(op, Structured)]
    (*_, main) = [op for op in module.walk() if isinstance(op, FuncOp)]
    (x,) = main.body.block.args
    wanted = operand_layouts(add.structure(), plan_of(add))[0]
    tensor = nn.tensor((4, 6), nn.element_of(x))
    assert Homes(module, TINY).argument(x, tensor) == spread(wanted)
    assert len(asked) == 8


HALO = """
nn.state @w : tensor<1x1x6x6xf32> = {w}
func.func @main(%k: tensor<1x1x3x3xf32>) -> tensor<1x1x4x4xf32> {
  %w = nn.load @w : tensor<1x1x6x6xf32>
  %0 = "nn.conv"(%w, %k) <{stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>,
    pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64}>
    {plan = #abele.plan<split [1, 1, 4, 1, 1, 1, 1]>}
    : (tensor<1x1x6x6xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x4x4xf32>
  STORE
  func.return %0 : tensor<1x1x4x4xf32>
}"""


@pytest.mark.parametrize("store", ["", "nn.store %w, @w : tensor<1x1x6x6xf32>"])
def test_a_state_that_is_stored_to_lies_in_no_overlapping_blocks(store: str):
    text = HALO.replace("STORE", store)
    module = module_of(text, context(), w=np.ones((1, 1, 6, 6), np.float32))
    (conv,) = [op for op in module.walk() if isinstance(op, nn.ConvOp)]
    wanted = operand_layouts(conv.structure(), plan_of(conv))[0]
    assert not wanted.is_partition
    home = linear_layout((1, 1, 6, 6), 4, TINY.tiles) if store else wanted
    assert Homes(module, TINY).states == {"w": home}


@dataclass(frozen=True)
class SayWhereThingsLie(ModulePass):
    """Give states and constants homes that no reader asked for, on one tile or two. nn -> nn.

    Every third one has a wish instead of a firm home.
    """

    name = "say-where-things-lie"
    takes = NN

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        kinds = nn.StateOp | nn.ConstantOp
        for i, each in enumerate(held for held in op.walk() if isinstance(held, kinds)):
            shape = each.value.array.shape
            if 0 in shape:
                continue
            cut = next((k for k, n in enumerate(shape) if n > 1 and (k + i) % 2), None)
            parts = tuple(2 if k == cut else 1 for k in range(len(shape)))
            home = Home(block_layout(shape, parts), None, 50 * i if i % 3 == 2 else None)
            each.attributes |= home.attributes


@pytest.mark.slow
def test_programs_mean_the_same_wherever_their_states_and_constants_lie():
    stages = ("nn", SayWhereThingsLie(), "partition", "tile", "exchange")
    several = programs(target="tiny:3")
    report = check_pipeline(stages, programs=several, examples=15, seed=2)
    assert report.changed_by[SayWhereThingsLie.name] > 5
