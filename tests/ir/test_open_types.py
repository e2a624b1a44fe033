"""Two types of a value agree unless one says what the other denies."""

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, StringAttr, TensorType, f16, f32

from abele.dialects.onnx.types import UNKNOWN, DimsAttr, RanklessType, SequenceType, merged
from abele.ir.open_types import agree, is_certain

NAMED = TensorType(f32, [DYNAMIC_INDEX, 3], DimsAttr(ArrayAttr([StringAttr("N"), StringAttr("")])))
NAMELESS = TensorType(
    f32, [DYNAMIC_INDEX, 3], DimsAttr(ArrayAttr([StringAttr(""), StringAttr("")]))
)
STATIC = TensorType(f32, [2, 3])


def test_a_size_that_is_not_known_agrees_with_any():
    assert agree(NAMED, STATIC)
    assert agree(STATIC, NAMELESS)
    assert not agree(NAMED, TensorType(f32, [2, 4]))
    assert not agree(NAMED, TensorType(f32, [2, 3, 1]))
    assert not agree(NAMED, TensorType(f16, [2, 3]))


def test_static_types_agree_only_if_they_are_equal():
    assert agree(STATIC, TensorType(f32, [2, 3]))
    assert not agree(STATIC, TensorType(f32, [3, 2]))
    assert not agree(TensorType(f32, [DYNAMIC_INDEX]), TensorType(f32, [3]))


def test_what_is_not_known_at_all_agrees_with_everything():
    assert agree(UNKNOWN, SequenceType(STATIC))
    assert agree(RanklessType(f32), STATIC)
    assert not agree(RanklessType(f16), STATIC)
    assert agree(SequenceType(NAMED), SequenceType(STATIC))
    assert not agree(SequenceType(STATIC), SequenceType(TensorType(f32, [3, 2])))


def test_a_name_stands_for_one_size():
    assert is_certain(STATIC)
    assert is_certain(NAMED)
    assert not is_certain(NAMELESS)
    assert not is_certain(UNKNOWN)


def test_two_types_say_together_what_each_says():
    assert merged(NAMELESS, NAMED) == NAMED
    assert merged(NAMED, STATIC) == STATIC
    assert merged(UNKNOWN, STATIC) == STATIC
