"""A module's list of what others hold becomes homes of its states and constants."""

import numpy as np
import pytest

from abele.dialects import nn
from abele.dialects.home import Home, home_of
from abele.ir.errors import InputError
from abele.ir.geometry.layout import block_layout
from abele.ir.text import parse_module, print_module
from abele.passes.plans.beside import BESIDE, wish_homes, write_beside

from ...strategies import context

HOME = Home(block_layout((8, 4), (2, 1)), 64, 10)
OTHER = Home(block_layout((8, 4), (4, 1)), 128, 10)


def program():
    """A module with a state and two constants of equal value; its context; the value's digest."""
    made = context()
    digest = made.blobs.add(np.zeros((8, 4), np.float32)).digest
    module = parse_module(
        f"""
builtin.module {{
  nn.state @w : tensor<8x4xf32> = <"{digest}">
  func.func @main() -> tensor<8x4xf32> {{
    %0 = nn.constant <"{digest}"> : tensor<8x4xf32>
    %1 = nn.constant <"{digest}"> : tensor<8x4xf32>
    %2 = nn.load @w : tensor<8x4xf32>
    func.return %2 : tensor<8x4xf32>
  }}
}}
""",
        made,
    )
    return made, module, digest


def homes(module):
    kinds = nn.StateOp | nn.ConstantOp
    return [home_of(op) for op in module.walk() if isinstance(op, kinds)]


def test_states_are_found_by_name_and_constants_by_value_in_turn():
    made, module, digest = program()
    write_beside(module, {"w": [OTHER], digest: [HOME, OTHER], "unknown": [HOME]})
    module = parse_module(print_module(module), made)
    wish_homes(module)
    assert homes(module) == [OTHER, HOME, OTHER]
    assert not module.attributes[BESIDE].data


def test_a_home_that_is_there_already_stays():
    _, module, _ = program()
    state = next(op for op in module.walk() if isinstance(op, nn.StateOp))
    state.attributes |= HOME.attributes
    write_beside(module, {"w": [OTHER]})
    wish_homes(module)
    assert homes(module)[0] == HOME


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 : i64", "need a dictionary of lists of homes"),
        ("{w = 3 : i64}", "w = 3 : i64; need a list of {home = ...}"),
        ("{w = []}", r"w = \[\]; need a list"),
        ("{w = [{address = 8 : i64}]}", "need a list of {home = ...}"),
        (
            "{w = [{home = #abele.layout<[9 by 2] (d0) of [9]>}]}",
            r"w: home of \[9\] for a tensor of \[8, 4\]",
        ),
    ],
)
def test_a_list_that_is_not_well_formed_is_refused(text: str, message: str):
    made, module, _ = program()
    whole = print_module(module)
    whole = whole.replace("builtin.module", f"builtin.module attributes {{{BESIDE} = {text}}}", 1)
    with pytest.raises(InputError, match=message):
        wish_homes(parse_module(whole, made))
