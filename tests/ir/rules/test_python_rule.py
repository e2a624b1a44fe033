from pathlib import Path

import pytest
from xdsl.ir import Block, Operation, Region

from abele.dialects import nn
from abele.ir.errors import InputError
from abele.ir.provenance import at, origin
from abele.ir.rules import PythonRule, bind_python_rules, rewrite
from abele.ir.upstream import ModuleOp

from .some_rules import VOCABULARY, CutOp, KeepOp, LoopOp, SplitOp, module_of, text_of

SUM = (
    '%0 = nn.add %a, %b : TT loc("add1")  %1 = nn.relu %0 : T1 loc("relu1") '
    '"try.keep"(%1) : (T) -> ()'
)
HALVES = '%0, %1 = "try.split"(%a) : (T) -> (T, T)  "try.keep"(%0, %1) : (T, T) -> ()'


def applied(rule: PythonRule, body: str) -> ModuleOp:
    module = module_of(body)
    bind_python_rules([rule], VOCABULARY).apply(module)
    return module


def made(module: ModuleOp, name: str) -> Operation:
    (found,) = (op for op in module.walk() if op.name == name)
    return found


@rewrite("nn.relu(nn.add(x, y) as s)", where="one_use(s)")
def fuse_add_relu(x, y, s):
    """Adds and cuts off at once."""
    return nn.MaxOp(nn.NegOp(x).result, y)


def test_operations_that_the_returned_one_depends_on_are_inserted_in_order():
    after = '%0 = nn.neg %a : T1  %1 = nn.max %0, %b : TT  "try.keep"(%1) : (T) -> ()'
    assert text_of(applied(fuse_add_relu, SUM)) == text_of(module_of(after))


def test_new_operations_get_the_origins_of_all_matched_ones():
    module = applied(fuse_add_relu, SUM)
    assert {origin(made(module, name)) for name in ("nn.neg", "nn.max")} == {"add1+relu1"}


def test_a_rule_knows_where_its_function_is_written():
    (rule,) = bind_python_rules([fuse_add_relu], VOCABULARY).bound
    assert rule.source.name == "fuse_add_relu"
    assert rule.source.file.endswith("tests/ir/rules/test_python_rule.py")
    assert rule.document == "Adds and cuts off at once."
    line = Path(__file__).read_text().split("\n")[rule.source.line - 1]
    assert (
        line
        == rule.text.split("\n")[0]
        == ('@rewrite("nn.relu(nn.add(x, y) as s)", where="one_use(s)")')
    )


def test_a_location_that_the_function_gives_stays():
    @rewrite("nn.relu(x) as r")
    def placed(x, r):
        new = nn.AbsOp(x)
        new.location = at(r, "abs")
        return new

    assert origin(made(applied(placed, SUM), "nn.abs")) == "relu1/abs"


def test_a_rule_may_return_a_value():
    @rewrite("nn.relu(x)")
    def drop(x):
        return x

    assert "nn.relu" not in text_of(applied(drop, SUM))


def test_returning_none_means_no_match_and_leaves_no_uses():
    seen: list[bool] = []

    @rewrite("nn.relu(x) as r")
    def undecided(x, r):
        nn.NegOp(nn.MulOp(x, x).result)
        LoopOp.create(operands=[], regions=[Region(Block([nn.AbsOp(x)]))], result_types=[x.type])
        seen.append(x.has_one_use())

    module = applied(undecided, SUM)
    assert text_of(module) == text_of(module_of(SUM))
    (add,) = (op for op in module.walk() if op.name == "nn.add")
    assert add.results[0].has_one_use()
    assert seen == [False]


def test_operations_that_are_not_returned_are_left_out():
    @rewrite("nn.relu(x)")
    def lavish(x):
        nn.NegOp(x)
        return nn.AbsOp(x)

    module = applied(lavish, SUM)
    assert "nn.neg" not in text_of(module)
    (add,) = (op for op in module.walk() if op.name == "nn.add")
    assert add.results[0].has_one_use()


def test_a_tuple_gives_each_result():
    @rewrite("try.split(x)")
    def halves(x):
        return nn.NegOp(x), x

    after = '%0 = nn.neg %a : T1  "try.keep"(%0, %a) : (T, T) -> ()'
    assert text_of(applied(halves, HALVES)) == text_of(module_of(after))


def test_an_operation_with_several_results_gives_all():
    @rewrite("try.split(x)")
    def cut(x):
        return CutOp(operands=[x], result_types=[x.type, x.type])

    after = '%0, %1 = "try.cut"(%a) : (T) -> (T, T)  "try.keep"(%0, %1) : (T, T) -> ()'
    assert text_of(applied(cut, HALVES)) == text_of(module_of(after))


def test_an_operation_without_results_may_be_replaced_and_erased():
    @rewrite("try.keep(nn.neg(x))")
    def keep_less(x):
        return KeepOp(operands=[[x]])

    @rewrite("try.keep(x, _)")
    def erased(x):
        return ()

    before = '%0 = nn.neg %a : T1  "try.keep"(%0) : (T) -> ()'
    assert text_of(applied(keep_less, before)) == text_of(module_of('"try.keep"(%a) : (T) -> ()'))
    assert "try.keep" not in text_of(applied(erased, '"try.keep"(%a, %b) : (T, T) -> ()'))


def test_operands_may_stand_in_any_order():
    @rewrite("nn.add(nn.neg(x), y)", commutative=True)
    def subtract(x, y):
        return nn.SubOp(y, x)

    before = '%0 = nn.neg %a : T1  %1 = nn.add %b, %0 : TT  "try.keep"(%1) : (T) -> ()'
    assert "nn.sub %b, %a" in text_of(applied(subtract, before))


def test_the_higher_priority_goes_first():
    @rewrite("nn.relu(x)")
    def low(x):
        return nn.AbsOp(x)

    @rewrite("nn.relu(x)", priority=1)
    def high(x):
        return nn.NegOp(x)

    module = module_of(SUM)
    bind_python_rules([low, high], VOCABULARY).apply(module)
    assert "nn.neg" in text_of(module)


@rewrite("nn.relu(x)")
def number(x):
    return 3


@rewrite("nn.relu(x)")
def mixed(x):
    return nn.AbsOp(x), "abs"


@rewrite("nn.relu(x) as r")
def itself(r):
    return r


@rewrite("nn.relu(x)")
def too_many(x):
    return x, x


@rewrite("nn.relu(x)")
def other_type(x):
    return nn.ReshapeOp(x, [32])


@rewrite("nn.relu(x)")
def ill_formed(x):
    return SplitOp.create(operands=[x, x], result_types=[x.type])


@rewrite("nn.relu(x) as r")
def impatient(x, r):
    r.results[0].replace_all_uses_with(x)
    r.detach()
    return x


@rewrite("nn.relu(x)", lower=True)
def not_lowered(x):
    return nn.AbsOp(x)


MISTAKES = {
    number: "returned int; need an operation, a value, a tuple of them for several results",
    mixed: r"returned \(nn.abs, str\); need an operation",
    itself: "uses a result of the operation that is replaced",
    too_many: "builds 2 values for 1 results",
    other_type: "builds tensor<32xf32> for the result, which is tensor<4x8xf32>",
    ill_formed: "built try.split, which is not well formed: .*",
    impatient: "removed the operation that it matched; return its replacement instead",
    not_lowered: "built nn.abs, which is not legal at partition",
}


@pytest.mark.parametrize("rule", MISTAKES, ids=lambda rule: rule.name)
def test_returning_something_else_is_one_error_at_the_function_s_line(rule: PythonRule):
    with pytest.raises(InputError, match=MISTAKES[rule]) as caught:
        applied(rule, SUM)
    message = str(caught.value)
    assert f"tests/ir/rules/test_python_rule.py:{rule.line}" in message
    assert f"rule {rule.name} " in message
    assert "applied to nn.relu at relu1" in message
    assert "\n" not in message or rule is ill_formed


def test_an_error_in_the_function_keeps_its_traceback_and_names_rule_and_operation():
    @rewrite("nn.relu(x)")
    def broken(x):
        return {}[x]

    with pytest.raises(KeyError) as caught:
        applied(broken, SUM)
    assert caught.traceback[-1].name == "broken"
    note = "\n".join(caught.value.__notes__)
    assert "in rule broken (" in note
    assert "applied to nn.relu at relu1" in note


def unbound() -> list[tuple[PythonRule, str]]:
    @rewrite("nn.relu(first)")
    def typo(frist):
        return None

    @rewrite("nn.rely(x)")
    def no_op(x):
        return None

    @rewrite("nn.relu(x)", where="one_use(y)")
    def no_name(x):
        return None

    @rewrite("nn." + "relu(x)", where="rank(y) == 2")
    def joined(x):
        return None

    @rewrite("nn.relu(x")
    def unclosed(x):
        return None

    return [
        (typo, "rule typo: nothing in its pattern is called frist; did you mean first?"),
        (no_op, "no operation nn.rely; did you mean nn.relu"),
        (no_name, "nothing binds y"),
        (joined, "nothing binds y"),
        (unclosed, "the end is not expected here"),
    ]


@pytest.mark.parametrize(("rule", "message"), unbound(), ids=lambda x: getattr(x, "name", ""))
def test_a_rule_that_makes_no_sense_is_refused_before_it_runs(rule: PythonRule, message: str):
    with pytest.raises(InputError) as caught:
        bind_python_rules([rule], VOCABULARY)
    assert message in str(caught.value)
    assert f"test_python_rule.py:{rule.line}" in str(caught.value)


def test_the_caret_stands_under_the_place_in_the_python_file():
    rules = dict((rule.name, rule) for rule, _ in unbound())
    with pytest.raises(InputError) as caught:
        bind_python_rules([rules["no_name"]], VOCABULARY)
    _, line, caret = str(caught.value).split("\n")
    assert line == '    @rewrite("nn.relu(x)", where="one_use(y)")'
    assert line[caret.index("^")] == "y"


def test_all_wrong_rules_are_reported_at_once():
    with pytest.raises(InputError) as caught:
        bind_python_rules([rule for rule, _ in unbound()], VOCABULARY)
    assert all(message in str(caught.value) for _, message in unbound())


def test_two_rules_with_one_name_are_refused():
    with pytest.raises(InputError, match="rule number is already defined"):
        bind_python_rules([number, number], VOCABULARY)


def test_parameters_are_names():
    with pytest.raises(InputError, match=r"test_python_rule.py:\d+: rule many: parameter \*all;"):

        @rewrite("nn.relu(x)")
        def many(*all):
            return None


def test_the_pattern_must_be_given():
    with pytest.raises(InputError, match=r"test_python_rule.py:\d+: need a pattern, as in"):

        @rewrite
        def bare(x):
            return None
