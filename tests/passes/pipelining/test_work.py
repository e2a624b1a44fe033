"""What the operations of a network hold, compared with sizes that are counted by hand."""

import numpy as np
from some_tensors import context, counting, module_of
from xdsl.dialects.func import FuncOp

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.passes.pipelining.work import work_of

T = "tensor<4x4xf32>"

PROGRAM = f"""
nn.state @w : {T} = {{w}}
nn.state @v : tensor<4x2xf32> = {{v}}
func.func @main(%x: {T}) -> tensor<4x2xf32> {{
  %w = nn.load @w : {T}
  %v = nn.load @v : tensor<4x2xf32>
  %1 = control.repeat 3 (%x) : ({T}) -> ({T}) {{
  ^bb0(%s: {T}):
    %a = nn.tanh %s : ({T}) -> {T}
    %t = nn.transpose %w [1, 0] : ({T}) -> {T}
    %b = nn.matmul %a, %t : ({T}, {T}) -> {T}
    %c = nn.mul %b, %w : ({T}, {T}) -> {T}
    control.yield %c : {T}
  }}
  %2 = nn.matmul %1, %v : ({T}, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %2 : tensor<4x2xf32>
}}
"""


def test_a_weight_is_held_by_its_first_reader_also_if_that_reads_it_transposed():
    module = module_of(PROGRAM, context(), w=counting((4, 4)), v=counting((4, 2)))
    (main,) = (op for op in module.walk() if isinstance(op, FuncOp))
    kinds = (nn.TanhOp, nn.MatMulOp, nn.MulOp)
    forward = [op for op in main.walk() if isinstance(op, kinds) and op.parent_op() is not main]
    work = work_of(
        *(main, forward, {}, resolve_target("mk1x2")), is_trained=False, with_cycles=False
    )
    # What nobody in the loop reads is shared out.
    assert np.array_equal(work.held, [0, 64 + 32, 0])


def test_a_trained_weight_of_16_bits_has_a_sum_of_gradients_of_32():
    text = PROGRAM.replace("xf32", "xf16")
    weights = {"w": counting((4, 4)), "v": counting((4, 2))}
    arrays = {name: each.astype(np.float16) for name, each in weights.items()}
    module = module_of(text, context(), **arrays)
    (main,) = (op for op in module.walk() if isinstance(op, FuncOp))
    forward = [op for op in main.walk() if isinstance(op, nn.MatMulOp)]
    work = work_of(
        *(main, forward, {}, resolve_target("mk1x2")), is_trained=True, with_cycles=False
    )
    assert np.array_equal(work.held, [16 * (2 + 4), 8 * (2 + 4)])


def test_an_operation_needs_its_operands_and_its_result_while_it_computes():
    module = module_of(PROGRAM, context(), w=counting((4, 4)), v=counting((4, 2)))
    (main,) = (op for op in module.walk() if isinstance(op, FuncOp))
    kinds = (nn.TanhOp, nn.MatMulOp, nn.MulOp)
    forward = [op for op in main.walk() if isinstance(op, kinds) and op.parent_op() is not main]
    work = work_of(*(main, forward, {}, resolve_target("mk1x2")), is_trained=False)
    # A function of elements is computed with the operation that it reads.
    tanh, product, scaled = work.working
    assert (tanh, scaled) == (64, 0)
    assert product >= 2 * 64
