import pytest
from xdsl.dialects.builtin import (
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    f32,
    i32,
)
from xdsl.dialects.test import TestOp, TestPureOp
from xdsl.ir import Block, Operation, Region

from abele.ir.legality import (
    Constraint,
    Kind,
    ModuleFacts,
    Table,
    contains,
    counted,
    holds,
    inside,
    names,
    results,
    row,
    values,
    without,
)
from abele.ir.level import Level
from abele.ir.provenance import named
from abele.ir.upstream import VerifyException
from abele.ir.verify import IllFormed, verify

INTEGER = Kind("an i32", lambda type_: type_ == i32, "cast it")


def problem(constraint: Constraint, op: Operation, *others: Operation) -> str:
    """What a constraint says of an operation in a module; "" if it holds."""
    outer = op if isinstance(op, ModuleOp) or op.parent else ModuleOp([*others, op])
    while outer.parent_op():
        outer = outer.parent_op()
    try:
        constraint.check(op, ModuleFacts(outer))
    except VerifyException as error:
        return str(error)
    return ""


def symbol(name: str, kind: type[Operation] = TestOp) -> Operation:
    return kind.create(properties={"sym_name": StringAttr(name)})


def naming(*listed: str) -> Operation:
    return TestOp.create(properties={"reads": SymbolRefAttr(listed[0])} if listed else {})


def test_types_of_operands_results_and_arguments_are_of_a_kind():
    source = TestOp(result_types=[i32, f32])
    block = Block(arg_types=[i32, f32])
    user = TestOp(source.results, regions=[Region(block)])
    need = "need an i32; cast it"
    assert problem(results(INTEGER), source) == f"result 1 is f32; {need}"
    source.detach()
    assert problem(results(INTEGER), user, source) == f"argument 1 is f32; {need}"
    assert problem(values(INTEGER), user) == f"operand 1 is f32; {need}"
    assert values(INTEGER).says == "values: an i32"
    assert not problem(values(INTEGER), TestOp(result_types=[i32]))


def test_an_operation_stands_inside_those_that_are_allowed():
    inner = TestPureOp()
    TestOp(regions=[Region(Block([inner]))])
    in_test = inside("test.op", "test.termop", why="I say so")
    assert in_test.says == "inside `test.op` or `test.termop`"
    assert not problem(in_test, inner)
    assert problem(inside("test.termop"), inner) == "inside test.op; need test.termop around it"
    assert problem(in_test, TestPureOp()) == (
        "inside builtin.module; need test.op or test.termop around it, as I say so"
    )


def test_a_module_contains_what_is_allowed_and_what_users_add():
    test = contains("test.op", users=lambda name: name.startswith("mine."))
    assert not problem(test, ModuleOp([TestOp()]))
    other = TestPureOp()
    other.location = named("conv1")
    assert problem(test, ModuleOp([TestOp(), other])) == (
        "test.pureop at conv1 stands at the top of the module, where only test.op may stand; move "
        "it into a function"
    )
    users = contains("test.op", users=lambda name: name.startswith("test."))
    assert not problem(users, ModuleOp([TestPureOp()]))
    nested = ModuleOp([])
    ModuleOp([nested])
    assert problem(test, nested) == "inside another module; need one module"


def test_an_attribute_is_absent():
    absent = without("turn", "an argument")
    assert not problem(absent, TestOp())
    for op in (
        TestOp(attributes={"turn": UnitAttr()}),
        TestOp.create(properties={"turn": UnitAttr()}),
    ):
        assert problem(absent, op) == "has turn, which this level does not have; need an argument"


def test_an_attribute_is_a_number_from_0_on():
    number = counted("superstep")
    for value in (None, IntegerAttr(0, i32), IntegerAttr(3, i32)):
        given = {} if value is None else {"superstep": value}
        assert not problem(number, TestOp(attributes=given))
    for value, text in ((IntegerAttr(-1, i32), "-1 : i32"), (StringAttr("3"), '"3"')):
        assert problem(number, TestOp(attributes={"superstep": value})) == (
            f"superstep = {text}; need a number from 0 on, as 3 : i64"
        )


def test_an_attribute_names_an_operation_of_a_class():
    named_one = names("reads", "variable", TestOp)
    assert not problem(named_one, naming("a"), symbol("a"))
    assert not problem(named_one, naming())
    assert problem(named_one, naming("a"), symbol("b")) == "no variable @a; there is b"
    assert problem(named_one, naming("a"), symbol("a", TestPureOp)).startswith("no variable @a")


def test_an_operation_meets_the_needs_of_all_rows_that_name_it():
    first, second = without("a", "b"), without("c", "d")
    table = Table((row("test", first), row("test.op other.op", second), row("func.func")))
    assert table.needs("test.op") == (first, second)
    assert table.needs("test.pureop") == (first,)
    assert table.needs("func.func") == ()
    assert table.needs("func.call") is None
    assert table.names == {"test", "other.op", "func.func"}


@holds("is not marked")
def unmarked(op: Operation, facts: ModuleFacts) -> None:
    if "marked" in op.attributes:
        raise VerifyException("is marked")


SOME = Level("some", (row("builtin.module"), row("test.op", unmarked)))


def marked() -> Operation:
    op = TestOp(attributes={"marked": UnitAttr()})
    op.location = named("conv1")
    return op


def test_verification_names_the_operation_and_what_it_breaks():
    verify(ModuleOp([TestOp(), TestOp()]), SOME)
    wrong = marked()
    with pytest.raises(IllFormed, match=r"^test.op at conv1: is marked$") as caught:
        verify(ModuleOp([TestOp(), wrong]), SOME)
    assert caught.value.op is wrong


def test_a_name_that_is_not_legal_is_reported_before_a_constraint():
    with pytest.raises(IllFormed, match="test.pureop is not legal here; legal: builtin.module, te"):
        verify(ModuleOp([marked(), TestPureOp()]), SOME)


def test_an_open_level_allows_what_no_row_names():
    level = Level("open", SOME.rows, open=True)
    verify(ModuleOp([TestPureOp()]), level)
    assert level.is_legal("test.pureop")
    with pytest.raises(IllFormed, match="is marked"):
        verify(ModuleOp([marked()]), level)


def test_a_fact_is_found_once():
    found: list[ModuleFacts] = []

    def count(facts: ModuleFacts) -> int:
        found.append(facts)
        return len(facts.operations)

    facts = ModuleFacts(ModuleOp([TestOp()]))
    assert (facts.get(count), facts.get(count)) == (2, 2)
    assert found == [facts]
