import numpy as np
import pytest
from some_tensors import context, module_of

from abele.dialects import control, nn
from abele.passes.replicas.following import Following, Samples, batch_dim, in_shape


@pytest.mark.parametrize(
    ("count", "shape", "other", "found"),
    [
        (4, (4, 6), (4, 2, 3), [(0, 4)]),
        (4, (4, 6), (24,), [(0, 4)]),
        (4, (4, 6), (2, 12), [(0, 2), (1, 2)]),
        (4, (4, 6), (2, 2, 6), [(0, 2), (1, 2)]),
        (24, (24,), (4, 6), [(0, 4), (1, 6)]),
        (4, (24,), (4, 6), [(0, 4)]),
        (4, (24,), (1, 4, 6), [(1, 4)]),
        (3, (3, 4), (4, 3), []),
        (4, (4, 6), (8, 3), [(0, 4)]),
        (1, (1, 6), (6,), []),
    ],
)
def test_samples_are_followed_through_reshapes(
    count: int, shape: tuple[int, ...], other: tuple[int, ...], found: list[tuple[int, int]]
):
    assert [(s.along, s.count) for s in in_shape((Samples(0, count),), shape, other)] == found


def test_an_axis_behind_others_that_it_is_merged_with_is_lost():
    assert in_shape((Samples(1, 4),), (6, 4), (24,)) == ()
    assert in_shape((Samples(1, 4),), (1, 4), (4,)) == (Samples(0, 4),)


LAYER = """
func.func @main(%x: tensor<8x3xf32>, %dy: tensor<8x5xf32>, %w: tensor<3x5xf32>)
    -> (tensor<8x5xf32>, tensor<3x5xf32>, tensor<5x8xf32>) {
  %zero = nn.constant {z} : tensor<f32>
  %y = nn.matmul %x, %w : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
  %mask = nn.expand %zero to [8, 5] : (tensor<f32>) -> tensor<8x5xf32>
  %m = nn.mul %y, %mask : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %g = nn.matmul %x, %dy transpose_lhs : (tensor<8x3xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  %t = nn.transpose %m [1, 0] : (tensor<8x5xf32>) -> tensor<5x8xf32>
  func.return %m, %g, %t : tensor<8x5xf32>, tensor<3x5xf32>, tensor<5x8xf32>
}"""


def test_operations_know_which_of_their_dimensions_spans_samples():
    module = module_of(LAYER, context(), z=np.zeros((), np.float32))
    found = Following(module).follow({0: (0,), 1: (0,)})
    spans = {
        op.name: [op.structure().space.dims[each.along].name for each in found.dims.get(op, ())]
        for op in module.walk()
        if isinstance(op, nn.MatMulOp | nn.MulOp | nn.ExpandOp)
    }
    assert spans["nn.matmul"] == ["k"]
    assert spans["nn.mul"] == ["d0"]
    # The mask is computed from no input. What reads it says that it has samples.
    assert spans["nn.expand"] == ["d0"]
    transposed = next(op for op in module.walk() if isinstance(op, nn.TransposeOp))
    assert found.dims[transposed] == (Samples(1, 8),)


def test_replicas_cut_a_parallel_dimension_before_one_that_is_merged():
    module = module_of(LAYER, context(), z=np.zeros((), np.float32))
    product = next(op for op in module.walk() if isinstance(op, nn.MatMulOp))
    space = product.structure().space
    both = (Samples(2, 12), Samples(0, 12))
    assert batch_dim(space, both, 3) == Samples(0, 12)
    assert batch_dim(space, both[:1], 3) == Samples(2, 12)
    assert batch_dim(space, both, 5) is None


WINDOWS = """
func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  %y = nn.compute(%x) space <[k = 2, d = 3 reduction] (d + k) of [4] -> (k) of [2]>
      body <identity sum> : (tensor<4xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}"""


def test_a_dimension_that_replicas_cannot_halve_is_not_cut():
    module = module_of(WINDOWS, context())
    (op,) = Following(module).follow({0: (0,)}).dims
    assert isinstance(op, nn.ComputeOp)
    # Windows of 3 of 4 samples.
    assert batch_dim(op.structure().space, (Samples(1, 4),), 2) is None


def test_a_tensor_without_elements_has_no_samples():
    assert in_shape((Samples(0, 4),), (4, 0), (0, 4)) == ()


def test_a_function_is_followed_again_only_for_calls_that_say_more():
    kind = "tensor<4x3xf32>"
    types = f"({kind}, {kind}) -> {kind}"
    text, depth = "", 40
    for i in range(depth):
        text += f"""
        func.func @f{i}(%x: {kind}, %y: {kind}) -> {kind} {{
          %a = func.call @f{i + 1}(%y, %y) : {types}
          %b = func.call @f{i + 1}(%x, %a) : {types}
          func.return %b : {kind}
        }}"""
    text += f"""
    func.func @f{depth}(%x: {kind}, %y: {kind}) -> {kind} {{
      %a = nn.tanh %x : ({kind}) -> {kind}
      func.return %a : {kind}
    }}
    func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
      %a = func.call @f0(%x, %y) : {types}
      func.return %a : {kind}
    }}"""
    module = module_of(text, context())
    found = Following(module).follow({0: (0,)})
    (tanh,) = (op for op in module.walk() if isinstance(op, nn.TanhOp))
    # The first call hands on what has no samples, and the second one what has.
    assert found.dims[tanh] == (Samples(0, 4),)


LOOP = """
func.func @main(%x: tensor<8x3xf32>) -> tensor<4x3xf32> {
  %zero = nn.constant {z} : tensor<f32>
  %first = nn.expand %zero to [4, 3] : (tensor<f32>) -> tensor<4x3xf32>
  %parts = nn.reshape %x to [2, 4, 3] : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  %last = control.repeat 2 (%first) : (tensor<4x3xf32>) -> (tensor<4x3xf32>) {
  ^bb0(%carried: tensor<4x3xf32>, %i: tensor<i32>):
    %index = nn.reshape %i to [1] : (tensor<i32>) -> tensor<1xi32>
    %row = nn.gather %parts, %index axis 0
        : (tensor<2x4x3xf32>, tensor<1xi32>) -> tensor<1x4x3xf32>
    %part = nn.reshape %row to [4, 3] : (tensor<1x4x3xf32>) -> tensor<4x3xf32>
    %sum = nn.add %carried, %part : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    control.yield %sum : tensor<4x3xf32>
  }
  func.return %last : tensor<4x3xf32>
}"""


def test_a_loop_takes_a_micro_batch_whose_samples_are_those_of_the_batch():
    module = module_of(LOOP, context(), z=np.zeros((), np.float32))
    found = Following(module).follow({0: (0,)})
    loop = next(op for op in module.walk() if isinstance(op, control.RepeatOp))
    assert found.values[loop.body.block.args[0]] == (Samples(0, 4),)
    assert found.values[loop.outputs[0]] == (Samples(0, 4),)
    # So are the zeros that the loop begins with.
    assert found.values[loop.initial[0]] == (Samples(0, 4),)
    gather = next(op for op in module.walk() if isinstance(op, nn.GatherOp))
    (batch,) = found.dims[gather]
    assert gather.structure().space.dims[batch.along].size == 4
