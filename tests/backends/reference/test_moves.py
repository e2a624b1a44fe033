import numpy as np
import pytest
from some_tensors import counting, values_like

from abele.backends.reference import evaluate_moves, operation_value
from abele.dialects import nn
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space

X = counting((3, 4, 5))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
def test_moves_write_the_same_as_numpy(dtype: str):
    x = X.astype(dtype)
    (value,) = values_like(x)
    cases = [
        (nn.TransposeOp(value, [2, 0, 1]), x.transpose(2, 0, 1)),
        (nn.SliceOp(value, [0, 3, 1], [2, -1, 3], [2, 3, 2]), x[0:3:2, 3:0:-1, 1:5:3]),
        (nn.ExpandOp(value, [2, 3, 4, 5]), np.broadcast_to(x, (2, 3, 4, 5))),
        (nn.ReshapeOp(value, [12, 5]), x.reshape(12, 5)),
    ]
    for op, need in cases:
        got = operation_value(op, [x])
        assert got.dtype == need.dtype
        np.testing.assert_array_equal(got, need)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenation_puts_operands_side_by_side(axis: int):
    parts = [X, np.take(X, [0], axis) + 100, np.take(X, [], axis)]
    op = nn.ConcatOp(values_like(*parts), axis)
    np.testing.assert_array_equal(operation_value(op, parts), np.concatenate(parts, axis))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_padding_equals_that_of_numpy(mode: str):
    (value,) = values_like(X)
    op = nn.PadOp(value, [1, 0, 2], [2, 1, 3], mode=mode, value=-1.5 if mode == "constant" else 0.0)
    extra = {"constant_values": -1.5} if mode == "constant" else {}
    need = np.pad(X, [(1, 2), (0, 1), (2, 3)], mode=mode, **extra)
    np.testing.assert_array_equal(operation_value(op, [X]), need)


def move(source: AxisMap, target: AxisMap, points: int) -> Space:
    return Space((Dim("i", points),), (AccessMap((source,)),), (AccessMap((target,)),))


def test_elements_that_no_move_writes_are_zero():
    space = move(AxisMap(3, ((0, 1),)), AxisMap(7, ((0, 2),), 1, outside="fill"), 3)
    got = evaluate_moves([space], [np.array([1.0, 2.0, 3.0])], (7,), np.dtype(np.float32))
    assert got.tolist() == [0, 1, 0, 2, 0, 3, 0]


def test_operands_that_do_not_fit_their_moves_are_refused():
    space = move(AxisMap(3, ((0, 1),)), AxisMap(3, ((0, 1),)), 3)
    with pytest.raises(ValueError, match=r"operand 0: shape \(4,\) to \(3,\); its move is from"):
        evaluate_moves([space], [np.ones(4)], (3,), np.dtype(float))
    with pytest.raises(ValueError, match="2 operands through 1 moves"):
        evaluate_moves([space], [np.ones(3)] * 2, (3,), np.dtype(float))
    beyond = move(AxisMap(3, ((0, 1),)), AxisMap(3, ((0, 1),), 1, outside="fill"), 3)
    with pytest.raises(ValueError, match="writes outside 3 elements"):
        evaluate_moves([beyond], [np.ones(3)], (3,), np.dtype(float))
