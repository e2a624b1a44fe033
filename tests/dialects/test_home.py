"""A home says where a state or constant has to lie, in the text of a program of nn."""

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, i64

from abele.dialects.home import Home, home_of, is_remote, keep_remote
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import VerifyException

from ..strategies import context

HALVES = "home = #abele.layout<[8 by 2, 4] (d0, d1) of [8, 4]>"


def program(attributes: str) -> str:
    """A program whose only state, and only constant, have these attributes."""
    return f"""
builtin.module {{
  nn.state @w : tensor<8x4xf32> = <zeros> {{{attributes}}}
  func.func @main() -> tensor<8x4xf32> {{
    %0 = nn.constant <zeros> {{{attributes}}} : tensor<8x4xf32>
    func.return %0 : tensor<8x4xf32>
  }}
}}
"""


def parsed(attributes: str):
    made = context()
    blob = '"' + made.blobs.add(np.zeros((8, 4), np.float32)).digest + '"'
    return made, parse_module(program(attributes).replace("zeros", blob), made)


def test_a_home_is_printed_and_read():
    made, module = parsed(f"{HALVES}, address = 64 : i64, reload = 5 : i64")
    module.verify()
    again = parse_module(print_module(module), made)
    homes = [home for op in again.walk() if (home := home_of(op)) is not None]
    assert len(homes) == 2
    assert set(homes) == {Home(homes[0].layout, 64, 5)}
    assert homes[0].layout.cells == 2


def test_remote_memory_is_a_home_of_states_alone():
    made, module = parsed("")
    state, constant = (op for op in module.walk() if op.name in ("nn.state", "nn.constant"))
    keep_remote(state)
    module.verify()
    again = parse_module(print_module(module), made)
    (state,) = (op for op in again.walk() if op.name == "nn.state")
    assert is_remote(state)
    assert home_of(state) is None
    keep_remote(constant)
    with pytest.raises(VerifyException, match='home = "remote"; need #abele.layout<...>'):
        module.verify()


def test_a_state_in_remote_memory_has_no_address():
    _, module = parsed("")
    state = next(op for op in module.walk() if op.name == "nn.state")
    keep_remote(state)
    state.attributes["address"] = IntegerAttr(64, i64)
    with pytest.raises(VerifyException, match='address with home = "remote"; need one of them'):
        module.verify()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("address = 8 : i64", r"address without home; add home = #abele.layout<...>"),
        ("home = 3 : i64", "need #abele.layout<...>"),
        (f"{HALVES}, address = 12 : i64", "address 12; need a multiple of 8"),
        (f"{HALVES}, address = -8 : i64", "need a number from 0"),
        (
            f"{HALVES}, address = 9223372036854775800 : i64",
            "need a number from 0 to 281474976710656",
        ),
        (f'{HALVES}, reload = "much"', "need a number from 0"),
        (f"{HALVES}, reload = {1 << 2000} : i2048", "need a number from 0 to 281474976710656"),
        (
            "home = #abele.layout<[8 by 2, 5] (d0, d1) of [8, 5]>",
            r"home of \[8, 5\] for a tensor of \[8, 4\]",
        ),
        (
            "home = #abele.layout<[4 by 2, 5, 4] (d0 + d1, d2) of [8, 4]>",
            "blocks overlap; need one owner per element",
        ),
    ],
)
def test_a_home_that_no_tensor_can_have_is_refused(attributes: str, message: str):
    _, module = parsed(attributes)
    with pytest.raises(VerifyException, match=message):
        module.verify()
