import pytest

from abele.dialects.levels import EXCHANGE, LEVELS, NN, PARTITION, TILE, level_named, level_of
from abele.ir.level import Level
from abele.ir.text import parse_module

from ..strategies import context

BYTES = "exchange.variable @y at 0 : tensor<4xf32> layout <[4] (d0) of [4]>"


def test_a_level_is_found_by_its_name():
    assert [level_named(level.name) for level in LEVELS] == [NN, PARTITION, TILE, EXCHANGE]
    with pytest.raises(ValueError, match="level 'nn-core'; need one of nn, partition, tile, exch"):
        level_named("nn-core")


@pytest.mark.parametrize(
    ("operation", "type_", "level"),
    [
        ("", "tensor<4xf32>", NN),
        ("%0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>", "tensor<4xf32>", NN),
        ("", "!partition.tensor<4xf32, [4] (d0) of [4]>", PARTITION),
        ('tile.sync "internal"', "tensor<4xf32>", TILE),
        (f'tile.sync "internal" {BYTES}', "tensor<4xf32>", EXCHANGE),
    ],
)
def test_a_module_is_on_the_lowest_level_that_it_has_an_operation_or_a_type_of(
    operation: str, type_: str, level: Level
):
    text = f"func.func @main(%x: {type_}) {{ {operation} func.return }}"
    assert level_of(parse_module(text, context())) == level
