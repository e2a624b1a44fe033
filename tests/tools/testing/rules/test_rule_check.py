"""Wrong rules are found, and so is a wrong matcher. Correct rules pass."""

from __future__ import annotations

import inspect
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import pytest
import users_dialects
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
)

from abele.dialects import nn
from abele.dialects.levels import TILE
from abele.ir.errors import InputError
from abele.ir.rules import (
    RuleSet,
    Vocabulary,
    function,
    guard,
    orders,
    parse_rule_set,
    rewrite,
)
from abele.ir.rules.evaluate import expression_text
from abele.ir.rules.match import match_rule
from abele.ir.rules.matcher import Matcher
from abele.passes.canonicalize import Canonicalize
from abele.passes.rules.own import own_rules, own_vocabulary
from abele.tools.driver.context import new_context
from abele.tools.testing import Miscompiled, PassFailed
from abele.tools.testing.generators.build import Operators, build, default_operators
from abele.tools.testing.generators.rules import sources
from abele.tools.testing.generators.rules.reading import fit, guards_of
from abele.tools.testing.generators.sketch import Sketch, Step
from abele.tools.testing.rules import (
    NeverFired,
    RuleFailed,
    RuleWrong,
    check_rule,
    check_rules,
)
from abele.tools.testing.search.watch import watching_rules

pytest_plugins = ["pytester"]


def rules(text: str) -> RuleSet:
    return parse_rule_set(text, own_vocabulary(), "my.rw")


def wrong(text: str, folder: Path, **budget: Any) -> RuleWrong:
    with pytest.raises(RuleWrong) as caught:
        check_rules(rules(text), **{"seed": 1, "folder": folder, "examples": 60, **budget})
    return caught.value


# Wrong rules


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("rule r: nn.abs(nn.sub(x, y)) => nn.sub(x, y)", id="a sign is lost"),
        pytest.param("rule r: nn.reduce(nn.neg(x)) as s => nn.neg(s(x))", id="a maximum is no sum"),
        pytest.param(
            "rule r: nn.relu(nn.scale(x) {factor = f}) => nn.scale(nn.relu(x)) {factor = f}",
            id="a factor is negative",
        ),
        pytest.param(
            "rule r: nn.add(nn.sub(x, y), y) as s => x where same_type(x, s)",
            id="rounding and overflow",
        ),
        pytest.param(
            "rule r: nn.cast(nn.cast(x: f32[...]): f16[...]): f32[...] => x", id="f16 is narrow"
        ),
        pytest.param(
            "rule r: nn.sort(nn.sort(_) {axis = a, descending = _} as s) {axis = a} => s",
            id="a direction is ignored",
        ),
    ],
)
def test_a_rule_that_changes_the_meaning_is_found(text: str, tmp_path: Path):
    found = wrong(text, tmp_path, examples=200)
    assert isinstance(found, Miscompiled)
    assert found.wrong.kind == "value"
    ops = [op for op in found.program.module.walk() if op.name.startswith("nn.")]
    assert len([op for op in ops if not isinstance(op, nn.StateOp | nn.LoadOp)]) <= 3


def test_a_failure_shows_the_rule_its_line_both_programs_and_the_difference(tmp_path: Path):
    text = str(wrong("\n\nrule r: nn.abs(nn.sub(x, y)) => nn.sub(x, y)", tmp_path))
    assert "rule r (my.rw:3), example" in text
    assert "rule r: nn.abs(nn.sub(x, y)) => nn.sub(x, y)" in text
    assert "element [" in text
    before, after = text.split("The program after the rule:")
    assert "nn.abs" in before
    assert "nn.abs" not in after
    assert f"saved in {tmp_path}" in after


def test_a_saved_failure_is_replayed(tmp_path: Path):
    text = "rule r: nn.abs(nn.sub(x, y)) => nn.sub(x, y)"
    wrong(text, tmp_path)
    (rule,) = rules(text).bound
    with pytest.raises(RuleWrong, match=r"element \["):
        check_rule(rule, replay=tmp_path)
    (rule,) = rules("rule r: nn.abs(nn.neg(x)) => nn.abs(x)").bound
    assert check_rule(rule, replay=tmp_path).examples == 1


def test_a_rule_that_matches_nothing_has_never_fired(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "SEARCHED", 4)
    text = "rule r: nn.sort(x) {descending = _} => x where rank(x) > 9"
    with pytest.raises(NeverFired, match=r"rule r \(my.rw:1\) has never fired"):
        check_rules(rules(text), seed=1, examples=5)


# Rules that fail themselves


@guard
def of_no_vector(value: SSAValue) -> bool:
    """Fails on vectors."""
    return 1 // (len(nn.shape_of(value)) - 1) > -9


@guard
def after_a_while(value: SSAValue) -> bool:
    """Does not end on matrices."""
    while len(nn.shape_of(value)) == 2:
        pass
    return True


@function
def one_too_many(value: SSAValue) -> tuple[int, ...]:
    """A shape with one axis too many."""
    return (*nn.shape_of(value), 2)


@irdl_op_definition
class DarkOp(IRDLOperation):
    """An operation that cannot be evaluated."""

    T: ClassVar = VarConstraint("T", base(TensorType))
    name = "mine.dark"
    operand = operand_def(T)
    result = result_def(T)


Mine = Dialect("mine", [DarkOp], [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rule r: nn.abs(nn.abs(x) as a) => a where of_no_vector(x)", "raised ZeroDivisionError"),
        ("rule r: nn.abs(nn.abs(x) as a) => a where after_a_while(x)", r"is not done after 1 s"),
        (
            "rule r: nn.abs(x) => nn.reshape(x) {shape = one_too_many(x)}",
            "cannot be applied: .*cannot build nn.reshape",
        ),
        ("rule r: nn.relu(x) => nn.relu(nn.relu(x))", "cannot be applied: .*never end"),
    ],
)
def test_a_rule_that_fails_itself_is_reported_as_such(text: str, problem: str, tmp_path: Path):
    with pytest.raises(RuleFailed, match=problem) as caught:
        check_rules(
            rules(text),
            seed=1,
            examples=60,
            limit=2 if "while" in text else 30,
            folder=tmp_path,
            data=["normal"],
        )
    assert isinstance(caught.value, PassFailed)
    assert "nn.abs" in str(caught.value) or "nn.relu" in str(caught.value)


def test_a_rule_whose_programs_cannot_be_run_is_refused():
    context = new_context([Mine])
    rule = "rule r: mine.dark(nn.abs(x)) => mine.dark(x)"
    with pytest.raises(InputError, match=r"rule r \(.*no program could be run"):
        check_rules(
            parse_rule_set(rule, Vocabulary(context)), operators=Operators(context), examples=2
        )


# A wrong matcher


def planted(
    monkeypatch: pytest.MonkeyPatch, home: type | ModuleType, name: str, old: str, new: str
) -> None:
    """Plant a mistake in the source of a function."""
    original: FunctionType = getattr(home, name)
    text = textwrap.dedent(inspect.getsource(original))
    assert old in text
    found: dict[str, FunctionType] = {}
    exec(text.replace(old, new), original.__globals__, found)
    monkeypatch.setattr(home, name, found[name])


UNARY = "rule r: nn.abs(nn.abs(_) as a) => a"
PLANTED = [
    pytest.param(
        Matcher, "holds", "guards))", "guards[:-1]))",
        "rule r: nn.square(nn.abs(x) as a) => nn.square(x) where is_float(a), one_use(a)",
        id="a guard is dropped",
    ),
    pytest.param(Matcher, "op", "if name in op.properties:", "if False:",
                 "rule r: nn.sort(nn.sort(_) {axis = a} as s) {axis = a} => s",
                 id="an attribute that is not mentioned is ignored"),
    pytest.param(Matcher, "op", "if self.matched and", "if False and", UNARY,
                 id="any block will do"),
    pytest.param(Matcher, "_bind", "return known == value or", "return True or",
                 "rule r: nn.mul(x, x) => nn.square(x)", id="a name is two things"),
    pytest.param(Matcher, "_field", "if same_kind and equal_values(value, pattern.value):",
                 "if True:",
                 "rule r: nn.scale(x) {factor = 1.0} => x", id="an attribute is anything"),
    pytest.param(Matcher, "_element", "if wanted == element:", "if True:",
                 "rule r: nn.abs(nn.neg(x: f32[...])) => nn.abs(x)", id="elements are anything"),
    pytest.param(Matcher, "_sizes", "if each.value != size:", "if False:",
                 "rule r: nn.square(nn.neg(x: ?[1, _])) => nn.square(x)", id="a size is anything"),
    pytest.param(orders, "swaps", "return commutes and", "return",
                 "@commutative rule r: nn.add(nn.sub(nn.neg(x), y), z) as s"
                 " => s(nn.neg(nn.add(x, y)), z)",
                 id="a difference is commutative"),
    pytest.param(Matcher, "op", "if type(op) not in pattern.classes:",
                 "if not type(op).__mro__[1] in {c.__mro__[1] for c in pattern.classes}:",
                 UNARY, id="an operation is like another"),
]  # fmt: skip


@pytest.mark.parametrize(("home", "name", "old", "new", "text"), PLANTED)
def test_a_mistake_in_the_matcher_is_found(
    home: type | ModuleType,
    name: str,
    old: str,
    new: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    check_rules(rules(text), seed=1, examples=10, data=["integers"])
    planted(monkeypatch, home, name, old, new)
    found = wrong(text, tmp_path, properties=["fires_only_where_it_fits"], data=["integers"])
    assert found.wrong.kind == "fires"


def test_two_readings_of_a_rule_agree_on_any_program():
    bound = [rule for name in ("canonicalize", "fold_scales") for rule in own_rules(name).bound]
    fitting = 0
    for number in range(60):
        steps = tuple(Step(number * 7 + i, i, number + i) for i in range(5))
        program = build(Sketch(steps, (1, 2, 3), seed=number), default_operators())
        for op in program.module.walk():
            for rule in bound:
                if type(op) in rule.roots:
                    found = match_rule(rule, op, own_vocabulary())
                    again = fit(rule, op, own_vocabulary())
                    assert (found is None) == (again is None)
                    if found is not None and again is not None:
                        fitting += 1
                        assert found.env == again.names
    assert fitting > 10


# Correct rules


def test_rules_fire_often_and_guards_are_both_true_and_false():
    text = """
        rule scales: nn.scale(nn.scale(x) as p) as q => nn.scale(x) {factor = p.factor * q.factor}
          where one_use(p), is_wide(x) and rank(x) <= 2
        rule square: nn.mul(x, x) => nn.square(x)
    """
    report = check_rules(rules(textwrap.dedent(text)), seed=3, examples=30, data=["integers"])
    assert report.fired["scales"] >= 20
    assert report.fired["square"] >= 20
    for text in ("one_use(p)", "is_wide(x)", "rank(x) <= 2"):
        assert report.guards["scales", text, True] > 0
        assert report.guards["scales", text, False] > 0
    assert len(report.misses) >= 6
    assert report.examples == 120


@rewrite("nn.relu(nn.abs(x) as a)", where="rank(x) < 3")
def no_sign(x: SSAValue, a: nn.AbsOp) -> nn.AbsOp | None:
    """Declines vectors."""
    return nn.AbsOp(x) if len(nn.shape_of(x)) != 1 else None


@rewrite("nn.neg(nn.abs(x))")
def wrong_sign(x: SSAValue) -> SSAValue:
    """Loses a sign."""
    return nn.NegOp(x).result


def test_rules_in_python_are_tested_in_the_same_way(tmp_path: Path):
    report = check_rule(no_sign, seed=1, examples=30)
    assert report.fired["no_sign"] >= 5
    assert report.guards["no_sign", "rank(x) < 3", False] > 0
    with pytest.raises(RuleWrong, match="wrong_sign"):
        check_rule(wrong_sign, seed=1, folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rule r: partition.relayout(partition.relayout(x) {moves = none}) {moves = none}"
         " => partition.relayout(x)", "r"),
        ('lower variable: tile.variable() {"address" = a, initial = _, state = _} as v'
         " => exchange.variable() {address = a} like v", "variable"),
    ],
)  # fmt: skip
def test_rules_of_every_level_are_tested_on_programs_of_that_level(text: str, name: str):
    report = check_rules(rules(text), seed=0, examples=2)
    assert report.fired[name] >= 2


def test_a_rule_of_a_lower_level_that_is_wrong_is_found(tmp_path: Path):
    text = """
        lower variable: tile.variable() {"address" = _, initial = _, state = _} as v
          => exchange.variable() {address = 0} like v
    """
    found = wrong(textwrap.dedent(text), tmp_path, examples=20)
    assert found.program.level == TILE


def test_a_rule_that_breaks_supersteps_is_found(tmp_path: Path):
    text = 'rule r: tile.sync() {zone = "internal"} as s => s() {zone = "external"}'
    found = wrong(text, tmp_path, examples=20)
    assert found.program.level == TILE
    assert "the host takes no part" in str(found)


@dataclass
class Counts:
    fired: Counter[str] = field(default_factory=Counter[str])
    guards: Counter[tuple[str, str, bool]] = field(default_factory=Counter[tuple[str, str, bool]])


def test_any_caller_of_a_pass_can_count_what_its_rules_do():
    counts = Counts()
    steps = tuple(Step(i, 0, i) for i in range(60))
    program = build(Sketch(steps, (1, 2)), default_operators())
    with watching_rules(counts):
        Canonicalize().apply(program.context, program.module)
    before = Counter(counts.fired)
    Canonicalize().apply(program.context, program.module)
    assert counts.fired == before
    bound = {rule.name: rule for rule in own_rules("canonicalize").bound}
    for name, count in counts.fired.items():
        guards = guards_of(bound[name])
        held = [counts.guards[name, expression_text(each), True] for each in guards]
        assert all(each >= count for each in held)
    assert counts.guards


# The plug-in


MY_RULES = """
rule square: nn.mul(x, x) => nn.square(x)
rule no_sign: nn.abs(nn.sub(x, y)) => nn.sub(x, y) where is_small(x)
"""

MY_GUARDS = """
from abele.dialects import nn
from abele.ir.rules import guard
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
)

@guard
def is_small(value: SSAValue) -> bool:
    return len(nn.shape_of(value)) < 3
"""


def test_every_rule_of_a_file_is_tested_by_one_command(pytester: pytest.Pytester):
    pytester.makefile(".rw", my=MY_RULES)
    pytester.makepyfile(my_guards=MY_GUARDS, test_other="def test_other(): assert False")
    command = ("-p", "no:cacheprovider", "--abele-load", "my_guards.py", "--abele-examples=25")
    result = pytester.runpytest_subprocess("--rules", "my.rw", *command, "--abele-seed=1", "-v")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "my.rw::square::keeps_the_meaning PASSED*",
            "my.rw::square::fires_only_where_it_fits PASSED*",
            "rule no_sign (*my.rw:2), example *: out*: element *",
            "replay: pytest my.rw::no_sign::keeps_the_meaning --abele-load my_guards.py *",
            "*abele: rules*",
            "square: fired *",
            "  is_small(x): true *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    replay = next(line for line in result.stdout.lines if line.startswith("replay: pytest "))
    again = pytester.runpytest_subprocess(*replay.split()[2:], "-p", "no:cacheprovider")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*element [[]*"])


def test_a_bad_file_of_rules_is_refused_with_one_message(pytester: pytest.Pytester):
    pytester.makefile(".rw", my="rule r: nn.rlu(x) => x\n")
    result = pytester.runpytest_inprocess("--rules", "my.rw")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*my.rw:1:9: no operation nn.rlu; did you mean nn.relu?*"])
    result = pytester.runpytest_inprocess("--rules", "my.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_fixture_tests_rules_within_a_test_and_in_worker_processes(pytester: pytest.Pytester):
    pytester.makefile(".rw", my=MY_RULES)
    pytester.makepyfile(my_guards=MY_GUARDS)
    pytester.makepyfile("""
        def test_square(check_rules):
            assert check_rules("my.rw", load=["my_guards.py"], only=["square"]).fired["square"] > 5

        def test_no_sign(check_rules):
            check_rules("my.rw", load=["my_guards.py"], only=["no_sign"])
    """)
    result = pytester.runpytest_subprocess("--abele-examples=15", "--abele-seed=1", "-n1", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*abele: rules*", "square: fired *"])
    result.stdout.fnmatch_lines(["*RuleWrong: rule no_sign*", "*replay: pytest *::test_no_sign*"])


def rules_over_users_operations(tmp_path: Path, text: str, lowering: str, examples: int = 15):
    """The report on some rules over mine.twice, which only a lowering rule gives a meaning."""
    with users_dialects.written(tmp_path, lowering) as (_, load):
        tested = tmp_path / "tested.rw"
        tested.write_text(text)
        return check_rules(tested, load=load, examples=examples, properties=["keeps_the_meaning"])


MOVES_NEG = "rule moves_neg: mine.twice(nn.neg(x)) => nn.neg(mine.twice(x))\n"


def test_a_rule_over_operations_that_only_rules_lower_is_tested_after_the_pass_that_lowers_them(
    tmp_path: Path,
):
    report = rules_over_users_operations(tmp_path, MOVES_NEG, users_dialects.RULES)
    assert report.examples == report.changed == 15
    assert report.began_after == {"to-nn": 15}
    assert "15 compared with the program after to-nn" in str(report)


def test_a_wrong_rule_over_operations_that_only_rules_lower_is_found(tmp_path: Path):
    wrong = "rule loses_one: mine.twice(mine.twice(x)) => mine.twice(x)\n"
    with pytest.raises(RuleWrong, match=r"out\d: element .* need .*"):
        rules_over_users_operations(tmp_path, wrong, users_dialects.RULES)


def test_a_lowering_rule_of_a_users_operation_fires_and_says_what_it_is_compared_with(
    tmp_path: Path,
):
    with users_dialects.written(tmp_path) as (_, load):
        report = check_rules(load[1], load=load[:1], examples=15)
        assert report.changed == 15
        assert report.began_after == {"to_nn.rw": 15}


def test_operations_that_nothing_lowers_are_refused(tmp_path: Path):
    with users_dialects.written(tmp_path) as (_, load):
        (tmp_path / "tested.rw").write_text(MOVES_NEG)
        with pytest.raises(InputError, match=r"no rule gives a meaning to mine\.twice"):
            check_rules(tmp_path / "tested.rw", load=load[:1], examples=2)


DEFINITION = "rule twice: mine.twice(x) => nn.add(x, x)\n"
LOSES_ONE = "rule loses_one: mine.twice(mine.twice(x)) => mine.twice(x)\n"


def test_a_rule_that_is_no_lowering_gives_an_operation_its_meaning_too(tmp_path: Path):
    report = rules_over_users_operations(tmp_path, MOVES_NEG, DEFINITION)
    assert report.examples == report.changed == 15
    assert report.began_after == {"to-nn": 15}


@pytest.mark.parametrize("loaded", [DEFINITION, LOSES_ONE + DEFINITION])
def test_a_wrong_rule_is_found_even_where_the_files_that_are_loaded_have_it(
    loaded: str, tmp_path: Path
):
    with pytest.raises(RuleWrong, match=r"out\d: element .* need .*"):
        rules_over_users_operations(tmp_path, LOSES_ONE, loaded)


def test_a_rule_that_defines_its_own_root_is_refused_with_what_to_write(tmp_path: Path):
    with pytest.raises(InputError, match=r"meaning to mine\.twice; load .* write this rule with"):
        rules_over_users_operations(tmp_path, DEFINITION, DEFINITION, examples=2)
