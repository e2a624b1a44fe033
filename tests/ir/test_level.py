from abele.ir.legality import Row, row
from abele.ir.level import Level

ADDED: list[Row] = []
HIGH = Level("high", (row("high func.func"),), lambda: tuple(ADDED))


def test_dialects_and_single_operations_are_legal():
    assert HIGH.is_legal("high.add")
    assert HIGH.is_legal("func.func")
    assert not HIGH.is_legal("func.call")
    assert not HIGH.is_legal("low.add")


def test_an_operation_that_a_user_adds_to_a_level_is_legal_from_then_on():
    assert not HIGH.is_legal("mine.add")
    ADDED.append(row("mine"))
    assert HIGH.is_legal("mine.add")
    assert HIGH.legal == {"high", "func.func", "mine"}


def test_a_level_is_a_value_and_prints_as_its_name():
    assert HIGH == Level("high", ())
    assert f"{HIGH}" == "high"
