from some_tensors import context, module_of
from xdsl.dialects.func import FuncOp

from abele.dialects import control, nn
from abele.ir.xdsl.around import function_around, in_block, nearest

T = "tensor<4xf32>"

PROGRAM = f"""
func.func @main(%x: {T}) -> {T} {{
  %1 = control.repeat 3 (%x) : ({T}) -> ({T}) {{
  ^bb0(%s: {T}):
    %a = nn.tanh %s : ({T}) -> {T}
    control.yield %a : {T}
  }}
  func.return %1 : {T}
}}
"""


def test_the_nearest_known_operation_is_the_operation_itself_or_one_around_it():
    module = module_of(PROGRAM, context())
    tanh, loop, main = (
        next(op for op in module.walk() if isinstance(op, kind))
        for kind in (nn.TanhOp, control.RepeatOp, FuncOp)
    )
    assert nearest(tanh, {tanh, loop}) is tanh
    assert nearest(tanh, {loop, main}) is loop
    assert nearest(loop, {tanh}) is None


def test_an_operation_in_a_loop_stands_in_a_block_as_the_loop():
    module = module_of(PROGRAM, context())
    tanh, loop, main = (
        next(op for op in module.walk() if isinstance(op, kind))
        for kind in (nn.TanhOp, control.RepeatOp, FuncOp)
    )
    assert in_block(tanh, main.body.block) is loop
    assert in_block(tanh, loop.body.block) is tanh
    assert in_block(main, loop.body.block) is None


def test_an_operation_in_a_loop_is_in_the_function_around_the_loop():
    module = module_of(PROGRAM, context())
    (main,) = (op for op in module.walk() if isinstance(op, FuncOp))
    for op in main.walk():
        assert function_around(op) is main
    assert function_around(module) is None
