import numpy as np
import pytest

from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.passes.convert_tile_to_exchange import ConvertTileToExchange

from ..strategies import context
from .programs import BIAS, TO_EXCHANGE, WEIGHT, after


def test_the_converted_program_computes_the_same():
    machine = Machine(after(TO_EXCHANGE), resolve_target("tiny:8"), strict=True)
    machine.load()
    image = np.arange(144, dtype=np.float32).reshape(1, 4, 6, 6)
    padded = np.pad(image, ((0, 0), (0, 0), (1, 0), (1, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    expected = np.einsum("ncyxij,ocij->nyxo", windows, WEIGHT) + BIAS.ravel()
    result = machine.run({"image": image})
    assert np.array_equal(result["out"], expected.reshape(2, 9))


def test_a_variable_without_an_address_is_named():
    made = context()
    module = parse_module("tile.variable @a : tensor<4xf32> layout <[4] (d0) of [4]>", made)
    with pytest.raises(InputError, match=r"@a at .*: no address; run allocate"):
        ConvertTileToExchange().apply(made, module)


def test_an_operation_outside_of_supersteps_is_named_with_the_remedy():
    made = context()
    module = parse_module(
        "tile.variable @a : tensor<4xf32> layout <[4] (d0) of [4]> {address = 0 : i64}\n"
        "tile.variable @b : tensor<4xf32> layout <[4] (d0) of [4]> {address = 16 : i64}\n"
        "func.func @main() { tile.copy [@a] -> @b func.return }",
        made,
    )
    with pytest.raises(InputError, match=r"tile.copy at .*: in no superstep; run schedule"):
        ConvertTileToExchange().apply(made, module)
