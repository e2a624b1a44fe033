from abele.dialects import tile
from abele.dialects.levels import TILE
from abele.ir.text import parse_module, print_module
from abele.ir.verify import verify
from abele.passes.convert_partition_to_tile import ConvertPartitionToTile

from ..strategies import context
from .programs import TO_TILE, after

SWAP = """
builtin.module attributes {abele.target = "tiny:2"} {
  func.func @main(%a: !T, %b: !T) -> (!T, !T) {
    %0, %1 = control.repeat 3 (%a, %b) : (!T, !T) -> (!T, !T) {
    ^bb0(%x: !T, %y: !T):
      control.yield %y, %x : !T, !T
    }
    func.return %0, %1 : !T, !T
  }
}
""".replace("!T", "!partition.tensor<4xf32, [4 by 2] (d0) of [4]>")


def test_values_become_variables_and_relayouts_copies(golden):
    golden(print_module(after(TO_TILE)))


def test_a_loop_that_swaps_reads_before_it_overwrites(golden):
    made = context()
    module = parse_module(SWAP, made)
    ConvertPartitionToTile().apply(made, module)
    verify(module, TILE)
    golden(print_module(module, locations=False))


def test_a_constant_is_a_resident_variable():
    module = after(TO_TILE)
    resident = [v for v in module.walk() if isinstance(v, tile.VariableOp) and v.is_resident]
    assert {v.symbol for v in resident} == {"w", "b"}
