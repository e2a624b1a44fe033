from collections.abc import Iterator
from math import prod

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue

from abele.dialects import nn
from abele.dialects.abele import PlanAttr
from abele.dialects.dtypes import numpy_dtype
from abele.dialects.home import home_of
from abele.dialects.partition import PartitionTensor
from abele.dialects.structured import Movement, Structured
from abele.ir.errors import InputError
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module, print_module
from abele.passes.canonicalize import Canonicalize
from abele.passes.convert_nn_to_partition import ConvertNnToPartition
from abele.passes.fold_constants import FoldConstants
from abele.passes.fuse_chains import FuseChains
from abele.passes.pipelines import PASSES, expand
from abele.passes.plan_splits import PlanSplits
from abele.passes.plans.planned import target_of

from ..strategies import Program, context
from .planner.large_programs import large_programs

NET = """
builtin.module {
  func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x4xf32> {
    %0 = "nn.matmul"(%x, %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %1 = "nn.relu"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = "nn.transpose"(%1) <{permutation = array<i64: 1, 0>}>
      : (tensor<4x8xf32>) -> tensor<8x4xf32>
    func.return %2 : tensor<8x4xf32>
  }
}
"""


SMALL = 64 * 1024
"""Bytes that may lie on one tile, even if others are free."""

UNEVEN = 4
"""How many times its even share a larger value may take of a tile."""


def _planned(target: str) -> tuple[str, Context]:
    made = context()
    module = parse_module(NET, made)
    PlanSplits(target).apply(made, module)
    module.verify()
    return print_module(module), made


def _with_homes(*homes: str) -> tuple[ModuleOp, Context]:
    """A program with a state of four elements for each home, planned for four tiles."""
    made = context()
    digest = made.blobs.add(np.ones(4, np.float32)).digest
    states = "".join(
        f'nn.state @w{i} : tensor<4xf32> = <"{digest}"> {{{home}}}\n'
        for i, home in enumerate(homes)
    )
    reads = "".join(
        f"%l{i} = nn.load @w{i} : tensor<4xf32>\n"
        f"%{i + 1} = nn.add %{i}, %l{i} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
        for i in range(len(homes))
    )
    text = f"""
builtin.module {{
  {states}
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    {reads}
    func.return %{len(homes)} : tensor<4xf32>
  }}
}}
"""
    return parse_module(text, made), made


HALVES = "home = #abele.layout<[4 by 2] (d0) of [4] at 1>"


@pytest.mark.parametrize(
    ("home", "message"),
    [
        (
            "home = #abele.layout<[4 by 2] (d0) of [4] at 3>",
            r"@w0 at .*: home on tiles up to 4; target tiny\S* has 0\.\.3",
        ),
        (
            f"{HALVES}, address = 1000000 : i64",
            r"@w0 at .*: home up to byte 1000007; target tiny\S* has 245,760 bytes per tile",
        ),
    ],
)
def test_a_home_that_the_target_does_not_have_is_refused(home: str, message: str):
    module, made = _with_homes(home)
    with pytest.raises(InputError, match=message):
        PlanSplits("tiny:4").apply(made, module)


def test_firm_homes_that_overlap_are_refused_by_name():
    module, made = _with_homes(f"{HALVES}, address = 64 : i64", f"{HALVES}, address = 64 : i64")
    pipeline = "partition,tile,schedule-supersteps,allocate"
    with pytest.raises(InputError, match="@w1 at .*: address 64 lies on @w0"):
        for each in parse_pipeline(expand(pipeline, "tiny:4"), PASSES):
            each.apply(made, module)


@pytest.mark.parametrize(("reload", "kept"), [(0, False), (10**6, True)])
def test_a_wish_is_kept_if_giving_it_up_costs_more(reload: int, kept: bool):
    module, made = _with_homes(f"{HALVES}, address = 64 : i64, reload = {reload} : i64")
    PlanSplits("tiny:4").apply(made, module)
    (state,) = (op for op in module.walk() if isinstance(op, nn.StateOp))
    assert (home_of(state) is not None) == kept


def test_all_that_computes_or_moves_has_a_plan():
    text, made = _planned("tiny:4")
    module = parse_module(text, made)
    for op in module.walk():
        assert isinstance(op.attributes.get("plan"), PlanAttr) == isinstance(
            op, Structured | Movement
        )


def test_the_target_is_spelled_as_short_as_it_can_be():
    text, made = _planned("mk2:1472,exchange.sync_cycles=118")
    assert parse_module(text, made).attributes["abele.target"] == StringAttr("mk2")


def test_planning_a_planned_program_changes_nothing():
    text, made = _planned("tiny:4")
    module = parse_module(text, made)
    PlanSplits("tiny:4").apply(made, module)
    assert print_module(module) == text


def test_work_is_split_as_finely_as_requested():
    for vertices in (None, 1, 32):
        made = context()
        module = parse_module(NET, made)
        PlanSplits("tiny:4", vertices_per_tile=vertices).apply(made, module)
        plans = {
            op.name: op.attributes["plan"].data for op in module.walk() if "plan" in op.attributes
        }
        relu = plans["nn.relu"]
        cell = [n // k for n, k in zip((4, 8), relu.split, strict=True)]
        wanted = {None: 6, 1: 1, 32: prod(cell)}[vertices]
        assert prod(relu.workers) <= wanted
        assert vertices is None or prod(relu.workers) == wanted
    with pytest.raises(InputError, match="0 vertices per tile"):
        PlanSplits("tiny:4", vertices_per_tile=0).apply(made, module)


def _unevenly_spread(module: ModuleOp) -> list[str]:
    """The values that take far more of a tile than an even share, while other tiles are free."""
    tiles, found = target_of(module).tiles, list[str]()
    for value in _values(module):
        if not isinstance(value.type, PartitionTensor):
            continue
        layout = value.type.layout.data
        itemsize = numpy_dtype(value.type.tensor.element_type).itemsize
        share = -(-prod(layout.shape) * layout.replicas * itemsize // tiles)
        block = layout.block_elements * itemsize
        if block > max(SMALL, UNEVEN * share) and layout.cells < tiles:
            found.append(f"{value}: {block} bytes of a tile, on {layout.cells} of {tiles} tiles")
    return found


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


@settings(max_examples=25)
@given(large_programs(), st.booleans())
def test_no_tile_holds_far_more_of_a_value_than_others(program: Program, fold: bool):
    before = (FoldConstants(), Canonicalize(), FuseChains()) if fold else ()
    for each in (*before, PlanSplits(f"mk2:{program.tiles}"), ConvertNnToPartition()):
        each.apply(program.context, program.module)
    assert not _unevenly_spread(program.module)
