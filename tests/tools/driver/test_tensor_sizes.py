import pytest

from abele.backends.target import resolve_target
from abele.ir.errors import DoesNotFit
from abele.ir.text import parse_module
from abele.tools.driver.program import new_context
from abele.tools.driver.tensor_sizes import PLANNED_ELEMENTS, refuse_tensors_larger_than

TINY = resolve_target("tiny:4")


def relu_of(elements: int):
    kind = f"tensor<{elements}xf32>"
    text = f"""
        func.func @main(%x: {kind}) -> {kind} {{
          %0 = nn.relu %x : ({kind}) -> {kind} loc("the_y")
          func.return %0 : {kind}
        }}"""
    return parse_module(text, new_context())


def test_a_tensor_that_all_tiles_together_cannot_hold_is_refused():
    with pytest.raises(DoesNotFit, match="float32.*bytes on all tiles together") as caught:
        refuse_tensors_larger_than(relu_of(PLANNED_ELEMENTS * 2), TINY)
    assert caught.value.needed == PLANNED_ELEMENTS * 2 * 4
    assert caught.value.available == TINY.usable_bytes_per_tile * TINY.tiles


def test_a_tensor_whose_plan_takes_little_memory_is_planned():
    refuse_tensors_larger_than(relu_of(PLANNED_ELEMENTS), TINY)
