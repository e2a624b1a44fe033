import numpy as np
import pytest
from some_tensors import context, module_of

from abele.backends.reference import run_reference
from abele.ir.errors import InputError
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.cut_batch import CutBatch

T = "tensor<2x3xf32>"

PROGRAM = f"""
nn.state @count : tensor<2x3xf32> = {{zeros}}
func.func @main(%x: {T}, %b: tensor<3xf32>) -> {T} {{
  %c = nn.load @count : {T}
  %1 = nn.add %x, %c : ({T}, {T}) -> {T}
  %2 = nn.mul %1, %b : ({T}, tensor<3xf32>) -> {T}
  nn.store %1, @count : {T}
  func.return %2 : {T}
}}
"""


def cut(text: str, count: int) -> ModuleOp:
    module = module_of(text, context(), zeros=np.zeros((2, 3), np.float32))
    CutBatch(count).apply(context(), module)
    verify(module)
    return module


def test_a_run_gives_what_the_program_gives_for_one_micro_batch_after_the_other():
    whole, part = cut(PROGRAM, 4), cut(PROGRAM, 1)
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    b = np.array([1, -2, 0.5], np.float32)
    outputs, state = list[np.ndarray](), None
    for rows in np.split(x, 4):
        run = run_reference(part, {"arg0": rows, "arg1": b}, state)
        outputs.append(run.outputs["out0"])
        state = run.state
    run = run_reference(whole, {"arg0": x, "arg1": b})
    assert np.array_equal(run.outputs["out0"], np.concatenate(outputs))
    assert state is not None
    assert np.array_equal(run.state["count"], state["count"])


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        (PROGRAM, 0, "micro_batches 0; need 1 or more"),
        (PROGRAM, 5_000_000_000, "micro_batches 5000000000; need at most 2147483648"),
        (
            "func.func @main(%x: tensor<f32>) -> tensor<f32> { func.return %x : tensor<f32> }",
            2,
            "need results with as many samples",
        ),
    ],
)
def test_what_has_no_micro_batches_is_refused(text: str, count: int, message: str):
    with pytest.raises(InputError, match=message):
        cut(text, count)
