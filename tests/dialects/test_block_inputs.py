import pytest
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, i16, i64

from abele.dialects.block_inputs import BLOCK_INPUTS, BlockInput, block_inputs, set_block_inputs
from abele.ir.geometry.block_lists import BlockLists
from abele.ir.support.errors import InputError

INPUT = BlockInput(("v", "r", "c"), i64, BlockLists((8, 4), 4, 2, 3, 5, 0.5))


def test_what_is_written_is_read():
    module = ModuleOp([])
    assert block_inputs(module) == ()
    set_block_inputs(module, [INPUT])
    assert block_inputs(module) == (INPUT,)
    set_block_inputs(module, [])
    assert BLOCK_INPUTS not in module.attributes


def test_spilled_blocks_are_inputs_of_their_own():
    assert INPUT.tier_names == (INPUT.names, ("v.spilled", "r.spilled", "c.spilled"))
    lists = BlockLists((8, 4), 1, 1, 3, 0)
    assert BlockInput(INPUT.names, i16, lists).tier_names == (INPUT.names,)


@pytest.mark.parametrize(
    "lists",
    [
        BlockLists((8, 4), 3, 2, 3, 5),
        BlockLists((8, 4), 4, 0, 3, 5),
        BlockLists((8, 4), 4, 2, -1, 5),
        BlockLists((8, 4), 4, 2, 1, 5, -0.1),
    ],
)
def test_buckets_that_cannot_be_are_refused(lists):
    module = ModuleOp([])
    set_block_inputs(module, [BlockInput(INPUT.names, i64, lists)])
    with pytest.raises(InputError, match="abele.block_inputs: .*need names of values"):
        block_inputs(module)


@pytest.mark.parametrize("given", [StringAttr("v"), ArrayAttr([ArrayAttr([StringAttr("v")])])])
def test_another_attribute_is_refused(given):
    module = ModuleOp([])
    module.attributes[BLOCK_INPUTS] = given
    with pytest.raises(InputError, match="abele.block_inputs: "):
        block_inputs(module)
