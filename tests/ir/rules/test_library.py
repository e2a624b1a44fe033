"""Guards, functions and classes written in Python."""

import pytest
from xdsl.ir import Operation, SSAValue

from abele.ir.errors import InputError
from abele.ir.rules.library import CLASSES, FUNCTIONS, forget, function, guard, op_class

from .some_rules import rules_of


@pytest.fixture(autouse=True)
def own_entries():
    """What a test registers is gone after it."""
    functions, classes = dict(FUNCTIONS), dict(CLASSES)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(functions)
    CLASSES.clear()
    CLASSES.update(classes)


def test_kinds_follow_from_annotations():
    @function
    def first_of(values: list[int], other: float | None, op: Operation) -> int:
        return values[0]

    found = FUNCTIONS["first_of"]
    assert found.kinds == ("ints", "float", "op")
    assert found.optional == (False, True, False)
    assert found.result == "int"
    assert first_of([3], None, None) == 3


def test_a_guard_returns_true_or_false():
    with pytest.raises(InputError, match="guard how_many returns int; need bool"):

        @guard
        def how_many(value: SSAValue) -> int:
            return 1


def test_an_unknown_annotation_is_refused():
    with pytest.raises(InputError, match="odd: parameter x is annotated .*; need a kind"):

        @function
        def odd(x: set[int]) -> int:
            return 1


def test_a_name_can_be_registered_once():
    def other(value: SSAValue) -> bool:
        return True

    other.__name__ = "one_use"
    with pytest.raises(InputError, match="has one already; need another name"):
        guard(other)


def test_a_file_that_is_loaded_again_replaces_the_functions_it_registered():
    for answer in (True, False):

        @guard
        def mine(value: SSAValue, answer: bool = answer) -> bool:
            return answer

        assert FUNCTIONS["mine"].call is mine


def test_a_class_stands_for_all_operations_that_its_predicate_takes():
    @op_class
    def splitting(cls: type[Operation]) -> bool:
        return cls.name in ("try.split", "try.cut")

    (rule,) = rules_of("rule r: splitting(splitting(x)#1) as s => s(x): (type(x), type(x))").bound
    assert {cls.name for cls in rule.roots} == {"try.split", "try.cut"}


def test_the_entries_of_a_module_can_be_removed():
    @guard
    def mine(value: SSAValue) -> bool:
        return True

    @op_class
    def ours(cls: type[Operation]) -> bool:
        return True

    forget(mine.__module__)
    assert "mine" not in FUNCTIONS
    assert "ours" not in CLASSES
    assert "one_use" in FUNCTIONS
