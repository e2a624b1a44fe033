"""Conversion between attributes and the values that rules compute with."""

import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.irdl import AnyAttr, BaseAttr

from abele.ir.rules.values import attribute_of, element_type, equal_values, kind_of, plain

from .some_rules import WordsAttr

ALIKE = [
    (IntegerAttr(3, i64), 3),
    (FloatAttr(0.5, f64), 0.5),
    (StringAttr("a"), "a"),
    (UnitAttr(), True),
    (DenseArrayBase.from_list(i64, [1, 2]), (1, 2)),
]


@pytest.mark.parametrize(("attribute", "value"), ALIKE)
def test_values_of_rules_convert_back_to_the_same_attribute(attribute, value):
    assert plain(attribute) == value
    assert attribute_of(value, BaseAttr(type(attribute))) == attribute


def test_a_boolean_is_not_a_number():
    assert plain(IntegerAttr(1, i1)) is True
    assert plain(IntegerAttr(1, i64)) == 1


def test_a_list_of_anything_else_stays_an_attribute():
    mixed = ArrayAttr([f32])
    assert plain(mixed) is mixed
    assert plain(ArrayAttr([StringAttr("a"), StringAttr("b")])) == ("a", "b")


def test_a_value_that_a_definition_does_not_allow_has_no_attribute():
    assert attribute_of("a", BaseAttr(IntegerAttr)) is None
    assert attribute_of(2, FloatAttr.constr(f64)) == FloatAttr(2.0, f64)


@pytest.mark.parametrize(
    ("constraint", "kind"),
    [
        (IntegerAttr.constr(i64), "int"),
        (FloatAttr.constr(f64), "float"),
        (BaseAttr(StringAttr), "string"),
        (BaseAttr(SymbolRefAttr), "string"),
        (BaseAttr(UnitAttr), "bool"),
        (DenseArrayBase.constr(i64), "ints"),
        (AnyAttr(), "attribute"),
    ],
)
def test_the_kind_follows_from_the_definition(constraint, kind):
    assert kind_of(constraint) == kind


def test_a_word_is_an_element_type_or_a_name():
    assert element_type("f32") == f32
    assert element_type("element") is None
    assert element_type("f") is None


WORDS = BaseAttr(WordsAttr)


def test_a_class_of_attributes_may_say_which_of_them_a_list_is():
    words = attribute_of(("add", "relu"), WORDS)
    assert words == WordsAttr(("add", "relu"))
    assert equal_values(words, ("add", "relu"))
    assert equal_values(("add", "relu"), words)
    assert not equal_values(words, ("relu", "add"))
    assert not equal_values(words, ("bad",))
    for other in ((), ("relu", 1), (1, 2), "relu", None):
        assert attribute_of(other, WORDS) is None
    with pytest.raises(ValueError, match="no bad words"):
        attribute_of(("bad",), WORDS)
