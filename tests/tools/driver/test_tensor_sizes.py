import numpy as np
import pytest
from some_models import products

from abele.backends.target import resolve_target
from abele.ir.errors import DoesNotFit
from abele.ir.text import parse_module
from abele.tools import Training, compile_model
from abele.tools.driver.context import new_context
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


def expand(size: str):
    """A tensor of 128 MiB that repeats a constant. size: of the constant's axis; "" for none."""
    kind = f"tensor<{size}xf32>" if size else "tensor<f32>"
    text = f"""
        func.func @main() -> tensor<{4 * PLANNED_ELEMENTS}x8xf32> {{
          %0 = nn.constant <"DIGEST"> : {kind}
          %1 = nn.expand %0 to [{4 * PLANNED_ELEMENTS}, 8]
            : ({kind}) -> tensor<{4 * PLANNED_ELEMENTS}x8xf32>
          func.return %1 : tensor<{4 * PLANNED_ELEMENTS}x8xf32>
        }}"""
    context = new_context()
    blob = context.blobs.add(np.zeros([int(size)] if size else [], np.float32))
    return parse_module(text.replace("DIGEST", blob.digest), context)


@pytest.mark.parametrize("size", ["1", ""])
def test_a_number_that_is_repeated_counts_as_a_constant(size: str):
    refuse_tensors_larger_than(expand(size), TINY)


def test_several_numbers_that_are_repeated_do_not():
    with pytest.raises(DoesNotFit, match="nn.expand"):
        refuse_tensors_larger_than(expand("8"), TINY)


def test_many_steps_in_a_run_may_be_too_many():
    made = Training(loss="mean_square", steps=PLANNED_ELEMENTS)
    with pytest.raises(DoesNotFit, match="fewer steps in a run, a smaller batch, or"):
        compile_model(products(), TINY, train=made, cache=False)
