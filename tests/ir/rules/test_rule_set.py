import pytest
from xdsl.ir import Operation, SSAValue

from abele.ir.errors import InputError
from abele.ir.pass_manager import parse_pipeline, pipeline_spec
from abele.ir.provenance import origin_names
from abele.ir.rewriting import Source, Watcher, limited, watched
from abele.ir.rules import function, guard, rules_pass

from .some_rules import CONTEXT, module_of, rewritten, rules_of, text_of

FEATURES = {
    "a value takes the place of an operation": (
        "rule r: nn.neg(nn.neg(x)) => x",
        '%0 = nn.neg %a : T1  %1 = nn.neg %0 : T1  "try.keep"(%1) : (T) -> ()',
        '"try.keep"(%a) : (T) -> ()',
    ),
    "one name is one value": (
        "rule r: nn.sub(x, x) => nn.abs(x)",
        '%0 = nn.sub %a, %a : TT  %1 = nn.sub %a, %b : TT  "try.keep"(%0, %1) : (T, T) -> ()',
        '%0 = nn.abs %a : T1  %1 = nn.sub %a, %b : TT  "try.keep"(%0, %1) : (T, T) -> ()',
    ),
    "any number of operands": (
        "rule r: try.loop(x, ...rest) as l => try.block(...rest, x) like l",
        '%0 = "try.loop"(%a, %b, %b) ({ "try.keep"(%b) : (T) -> () }) : (T, T, T) -> T '
        '"try.keep"(%0) : (T) -> ()',
        '%0 = "try.block"(%b, %b, %a) ({ "try.keep"(%b) : (T) -> () }) : (T, T, T) -> T '
        '"try.keep"(%0) : (T) -> ()',
    ),
    "several results": (
        "rule r: try.split(x) => try.cut(nn.neg(x))",
        '%0, %1 = "try.split"(%a) : (T) -> (T, T)  "try.keep"(%1, %0) : (T, T) -> ()',
        '%0 = nn.neg %a : T1  %1, %2 = "try.cut"(%0) : (T) -> (T, T) '
        '"try.keep"(%2, %1) : (T, T) -> ()',
    ),
    "results one by one": (
        "rule r: try.split(x) => (nn.neg(x), x)",
        '%0, %1 = "try.split"(%a) : (T) -> (T, T)  "try.keep"(%1, %0) : (T, T) -> ()',
        '%0 = nn.neg %a : T1  "try.keep"(%a, %0) : (T, T) -> ()',
    ),
    "a result by its number": (
        "rule r: nn.neg(try.split(_) as s #1) => nn.abs(s#0)",
        '%0, %1 = "try.split"(%a) : (T) -> (T, T)  %2 = nn.neg %0 : T1  %3 = nn.neg %1 : T1 '
        '"try.keep"(%2, %3) : (T, T) -> ()',
        '%0, %1 = "try.split"(%a) : (T) -> (T, T)  %2 = nn.neg %0 : T1  %3 = nn.abs %0 : T1 '
        '"try.keep"(%2, %3) : (T, T) -> ()',
    ),
    "let names what is used twice": (
        "rule r: nn.square(nn.neg(x)) => let n = nn.abs(x); nn.mul(n, n)",
        '%0 = nn.neg %a : T1  %1 = nn.square %0 : T1  "try.keep"(%1) : (T) -> ()',
        '%0 = nn.abs %a : T1  %1 = nn.mul %0, %0 : TT  "try.keep"(%1) : (T) -> ()',
    ),
    "the higher priority goes first": (
        "rule low: nn.neg(x) => nn.abs(x) @priority(2) rule high: nn.neg(x) => nn.relu(x)",
        '%0 = nn.neg %a : T1  "try.keep"(%0) : (T) -> ()',
        '%0 = nn.relu %a : T1  "try.keep"(%0) : (T) -> ()',
    ),
    "operands in any order": (
        "@commutative rule r: nn.add(nn.neg(x), y) => nn.sub(y, x)",
        '%0 = nn.neg %a : T1  %1 = nn.add %b, %0 : TT  "try.keep"(%1) : (T) -> ()',
        '%0 = nn.sub %b, %a : TT  "try.keep"(%0) : (T) -> ()',
    ),
    "sizes are numbers": (
        "rule r: nn.neg(x: e[m, k]) => let t = try.tuned(x) : e[k / 4, m * 4]; "
        "try.tuned(t) : type(x) where k % 4 == 0, m * k == 32",
        '%0 = nn.neg %a : T1  "try.keep"(%0) : (T) -> ()',
        '%0 = "try.tuned"(%a) <{rate = 0.5 : f64}> : (T) -> tensor<2x16xf32> '
        '%1 = "try.tuned"(%0) <{rate = 0.5 : f64}> : (tensor<2x16xf32>) -> T '
        '"try.keep"(%1) : (T) -> ()',
    ),
    "a discardable attribute in quotes": (
        'rule r: nn.neg(x) {"hint" = h} => try.other(x) {count = h} where h != none',
        "%0 = nn.neg %a {hint = 3 : i64} : T1  %1 = nn.neg %a : T1 "
        '"try.keep"(%0, %1) : (T, T) -> ()',
        '%0 = "try.other"(%a) <{count = 3 : i64}> : T1  %1 = nn.neg %a : T1 '
        '"try.keep"(%0, %1) : (T, T) -> ()',
    ),
    "a literal": (
        'rule r: try.tuned(x) {mode = "fast", rate = 0.25} => nn.neg(x)',
        '%0 = "try.tuned"(%a) <{mode = "fast", rate = 0.25 : f64}> : T1 '
        '%1 = "try.tuned"(%a) <{mode = "slow", rate = 0.25 : f64}> : T1 '
        '"try.keep"(%0, %1) : (T, T) -> ()',
        "%0 = nn.neg %a : T1 "
        '%1 = "try.tuned"(%a) <{mode = "slow", rate = 0.25 : f64}> : T1 '
        '"try.keep"(%0, %1) : (T, T) -> ()',
    ),
    "what is not mentioned must be absent": (
        "rule r: try.tuned(x) {count = c} => nn.neg(x) where c == none",
        '%0 = "try.tuned"(%a) : T1  %1 = "try.tuned"(%a) <{count = 1 : i64}> : T1 '
        '%2 = "try.tuned"(%a) <{quick}> : T1  "try.keep"(%0, %1, %2) : (T, T, T) -> ()',
        '%0 = nn.neg %a : T1  %1 = "try.tuned"(%a) <{count = 1 : i64}> : T1 '
        '%2 = "try.tuned"(%a) <{quick}> : T1  "try.keep"(%0, %1, %2) : (T, T, T) -> ()',
    ),
    "_ does not care": (
        "rule r: try.tuned(x) {count = _, quick = _} => nn.neg(x)",
        '%0 = "try.tuned"(%a) <{count = 1 : i64}> : T1  %1 = "try.tuned"(%a) <{quick}> : T1 '
        '"try.keep"(%0, %1) : (T, T) -> ()',
        '%0 = nn.neg %a : T1  %1 = nn.neg %a : T1  "try.keep"(%0, %1) : (T, T) -> ()',
    ),
    "a flag is set, or not": (
        "rule r: try.tuned(x) {quick = q, count = 1} as t => t(x) {quick = not q, count = 2}",
        '%0 = "try.tuned"(%a) <{count = 1 : i64, quick}> : T1 '
        '%1 = "try.tuned"(%a) <{count = 1 : i64}> : T1  "try.keep"(%0, %1) : (T, T) -> ()',
        '%0 = "try.tuned"(%a) <{rate = 0.5 : f64, count = 2 : i64}> : T1 '
        '%1 = "try.tuned"(%a) <{rate = 0.5 : f64, quick, count = 2 : i64}> : T1 '
        '"try.keep"(%0, %1) : (T, T) -> ()',
    ),
    "numbers are computed, and compared by and, or, not": (
        "rule r: try.tuned(x) {count = c} => try.other(x) {count = c * 2 + 1} "
        "where c != none, c >= 2 and c < 9, c == 3 or not c == 4",
        '%0 = "try.tuned"(%a) <{count = 3 : i64}> : T1  %1 = "try.tuned"(%a) <{count = 4 : i64}> '
        ': T1  %2 = "try.tuned"(%a) <{count = 1 : i64}> : T1 '
        '"try.keep"(%0, %1, %2) : (T, T, T) -> ()',
        '%0 = "try.other"(%a) <{count = 7 : i64}> : T1  %1 = "try.tuned"(%a) <{count = 4 : i64}> '
        ': T1  %2 = "try.tuned"(%a) <{count = 1 : i64}> : T1 '
        '"try.keep"(%0, %1, %2) : (T, T, T) -> ()',
    ),
    "like takes over what the new operation has too, an empty list as well": (
        "rule r: try.tuned(x) {count = _, names = _, mode = _} as t => try.other(x) like t",
        '%0 = "try.tuned"(%a) <{count = 3 : i64, mode = "fast", names = []}> : T1 '
        '"try.keep"(%0) : (T) -> ()',
        '%0 = "try.other"(%a) <{count = 3 : i64, names = []}> : T1  "try.keep"(%0) : (T) -> ()',
    ),
    "a class of operations, made again": (
        "class odd = nn.neg | nn.abs rule r: odd(nn.relu(x)) as p => nn.relu(p(x))",
        '%0 = nn.relu %a : T1  %1 = nn.abs %0 : T1  "try.keep"(%1) : (T) -> ()',
        '%0 = nn.abs %a : T1  %1 = nn.relu %0 : T1  "try.keep"(%1) : (T) -> ()',
    ),
    "several operations on the spot": (
        "rule r: nn.neg | nn.abs(nn.relu(x)) => nn.relu(x)",
        '%0 = nn.relu %a : T1  %1 = nn.abs %0 : T1  "try.keep"(%1) : (T) -> ()',
        '%0 = nn.relu %a : T1  "try.keep"(%0) : (T) -> ()',
    ),
    "regions move to what is like the root": (
        "rule r: try.loop(x) as l => try.block(nn.neg(x)) like l",
        '%0 = "try.loop"(%a) ({ %1 = nn.abs %b : T1  "try.keep"(%1) : (T) -> () }) : T1 '
        '"try.keep"(%0) : (T) -> ()',
        "%2 = nn.neg %a : T1 "
        '%0 = "try.block"(%2) ({ %1 = nn.abs %b : T1  "try.keep"(%1) : (T) -> () }) : T1 '
        '"try.keep"(%0) : (T) -> ()',
    ),
    "an operation that stays keeps its region": (
        "rule r: nn.neg(try.loop(x) as l) => try.block(x) like l",
        '%0 = "try.loop"(%a) ({ "try.keep"(%b) : (T) -> () }) : T1  %1 = nn.neg %0 : T1 '
        '"try.keep"(%0, %1) : (T, T) -> ()',
        '%0 = "try.loop"(%a) ({ "try.keep"(%b) : (T) -> () }) : T1 '
        '%1 = "try.block"(%a) ({ "try.keep"(%b) : (T) -> () }) : T1 '
        '"try.keep"(%0, %1) : (T, T) -> ()',
    ),
    "an operation is erased": (
        "rule r: try.keep(nn.neg(_)) => erase",
        '%0 = nn.neg %a : T1  "try.keep"(%0) : (T) -> ()  "try.keep"(%a) : (T) -> ()',
        '"try.keep"(%a) : (T) -> ()',
    ),
    "what others use stays": (
        "rule r: nn.relu(nn.add(x, y)) => nn.max(x, y)",
        '%0 = nn.add %a, %b : TT  %1 = nn.relu %0 : T1  "try.keep"(%0, %1) : (T, T) -> ()',
        '%0 = nn.add %a, %b : TT  %1 = nn.max %a, %b : TT  "try.keep"(%0, %1) : (T, T) -> ()',
    ),
    "what is computed before a loop stays before it": (
        "rule r: nn.relu(nn.add(x, y)) => nn.max(x, y)",
        "%0 = nn.add %a, %b : TT "
        '%2 = "try.loop"() ({ %1 = nn.relu %0 : T1  "try.keep"(%1) : (T) -> () }) : () -> T',
        "%0 = nn.add %a, %b : TT "
        '%2 = "try.loop"() ({ %1 = nn.relu %0 : T1  "try.keep"(%1) : (T) -> () }) : () -> T',
    ),
    "what one rule makes another finds": (
        "rule a: nn.neg(x) => nn.abs(x) rule b: nn.abs(nn.abs(x)) => nn.abs(x)",
        '%0 = nn.neg %a : T1  %1 = nn.neg %0 : T1  %2 = nn.neg %1 : T1 "try.keep"(%2) : (T) -> ()',
        '%0 = nn.abs %a : T1  "try.keep"(%0) : (T) -> ()',
    ),
}
"""By what it shows: rules, a program, and what the rules make of it."""


@pytest.mark.parametrize("feature", FEATURES)
def test_rules_rewrite(feature: str):
    rules, before, after = FEATURES[feature]
    assert rewritten(rules, before) == text_of(module_of(after))


def test_the_new_operation_gets_the_origins_of_all_matched_ones_and_keeps_the_name():
    module = module_of(
        '%s = nn.add %a, %b : TT loc("add1")  %r = nn.relu %s : T1 loc("relu1") '
        '"try.keep"(%r) : (T) -> ()'
    )
    rules_of("rule r: nn.relu(nn.add(x, y)) => nn.max(x, y)").apply(module)
    (made,) = (op for op in module.walk() if op.name == "nn.max")
    assert origin_names(made) == ("add1", "relu1")
    assert made.results[0].name_hint == "r"


LOWERS = """lower neg: nn.neg(x) {"home" = h} => partition.relayout(x) : type(x) where h != none"""


def test_a_lower_may_change_the_type_and_regions_are_lowered_too():
    rule = "lower tuned: try.tuned(x) => nn.reshape(x) {shape = [32]} : f32[32]"
    before = """%0 = "try.tuned"(%a) {rate = 0.5} : T1
      %2 = "try.loop"(%0) ({ %1 = "try.tuned"(%b) {rate = 0.5} : T1
        "try.keep"(%1) : (T) -> () }) : T1
      "try.keep"(%0) : (T) -> ()"""
    text = rewritten(rule, before)
    assert "try.tuned" not in text
    assert text.count("nn.reshape") == 2
    assert '"try.keep"(%0) : (tensor<32xf32>) -> ()' in text


def test_an_operation_that_no_lowering_rule_matches_is_an_error_with_the_reason():
    module = module_of('%0 = nn.neg %a : T1 loc("neg1")  "try.keep"(%0) : (T) -> ()')
    with pytest.raises(InputError) as caught:
        rules_of(LOWERS).apply(module)
    assert str(caught.value) == (
        "nn.neg at neg1: no rule lowers it: neg: h != none does not hold: none != none (my.rw:1:76)"
    )


WRONG = {
    "the definition of what is made is not met": (
        "rule r: nn.neg(x) => nn.reshape(x) {shape = [7]}",
        "my.rw:1:22: rule r: cannot build nn.reshape: .*applied to nn.neg at neg1",
    ),
    "the result is of another type": (
        "rule r: nn.neg(x) => nn.reshape(x) {shape = [32]}",
        "rule r builds tensor<32xf32> for the result, which is tensor<4x8xf32>; add a guard such "
        "as same_type; it was applied to nn.neg at neg1",
    ),
    "a division by nothing": (
        "rule r: nn.neg(x) => try.other(x) {count = 4 % (size(x) - 32)}",
        "my.rw:1:44: rule r: 4 % 0 is not a number; it was applied to nn.neg at neg1",
    ),
    "a size below nothing": (
        "rule r: nn.neg(x: ?[m, _]) => let t = try.other(x) : f32[m - 9]; nn.neg(t)",
        "rule r: a size of -5; need a whole number; it was applied to nn.neg at neg1",
    ),
    "what takes the place uses what goes": (
        "rule r: nn.neg(_) as n => nn.abs(n)",
        "rule r uses a result of the operation that is replaced; it was applied to nn.neg at neg1",
    ),
    "a function refuses what it is given": (
        "rule r: nn.neg(x) => try.other(x) {count = a_number_of(x)}",
        "my.rw:1:44: rule r: need another; it was applied to nn.neg at neg1",
    ),
}


@function
def a_number_of(value: SSAValue) -> int:
    raise InputError("need another")


@pytest.mark.parametrize("mistake", WRONG)
def test_a_rule_that_cannot_be_applied_is_one_error_that_says_where(mistake: str):
    rules, message = WRONG[mistake]
    module = module_of('%0 = nn.neg %a : T1 loc("neg1")  "try.keep"(%0) : (T) -> ()')
    with pytest.raises(InputError, match=message.replace("(", "\\(")):
        rules_of(rules).apply(module)


@guard
def breaks(value: SSAValue) -> bool:
    raise KeyError("lost")


def test_an_error_in_a_guard_keeps_its_traceback_and_names_the_rule():
    module = module_of('%0 = nn.neg %a : T1  "try.keep"(%0) : (T) -> ()')
    with pytest.raises(KeyError, match="lost") as caught:
        rules_of("rule r: nn.neg(x) => nn.abs(x) where breaks(x)").apply(module)
    assert caught.traceback[-1].name == "breaks"
    assert "in rule r (my.rw:1), called at my.rw:1:38" in caught.value.__notes__


def test_a_guard_that_refuses_a_type_does_not_hold():
    assert "nn.neg" in rewritten(
        "rule r: nn.neg(x) => nn.abs(x) where a_number_of(x) == 1",
        '%0 = nn.neg %a : T1  "try.keep"(%0) : (T) -> ()',
    )


ENDLESS = {
    "a cycle": (
        "rule there: nn.neg(x) => nn.abs(x) rule back: nn.abs(x) => nn.neg(x)",
        ("there (my.rw:1)", "back (my.rw:1)"),
    ),
    "growth": ("rule grow: nn.neg(x) => nn.neg(nn.neg(x))", ("grow (my.rw:1)",)),
    "a rule that makes what it found": (
        "@commutative rule swap: nn.add(x, y) => nn.add(y, x)",
        ("swap (my.rw:1)",),
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_rules_are_stopped_and_named(name: str):
    rules, cycle = ENDLESS[name]
    module = module_of(
        '%0 = nn.neg %a : T1 loc("neg1")  %1 = nn.add %0, %b : TT loc("add1") '
        '"try.keep"(%1) : (T) -> ()'
    )
    with pytest.raises(InputError) as caught:
        rules_of(rules).apply(module)
    message = str(caught.value)
    assert "never end" in message
    assert "add a guard to one of them" in message
    shown = message.partition("1: ")[2].partition("; add a guard")[0]
    assert sorted(shown.split(" -> ")) == sorted(cycle)


class Sources(Watcher):
    def __init__(self) -> None:
        self.seen: list[Source] = []

    def begin(self, source: Source, root: Operation) -> None:
        self.seen.append(source)


TWO = "rule one: nn.neg(x) => nn.abs(x)\nrule two: nn.abs(x) => nn.square(x)"
BODY = '%0 = nn.neg %a : T1  "try.keep"(%0) : (T) -> ()'


def test_each_rewrite_is_known_by_its_rule():
    watcher = Sources()
    with watched(watcher):
        rewritten(TWO, BODY)
    assert watcher.seen == [Source("one", "my.rw", 1), Source("two", "my.rw", 2)]


def test_rules_stop_at_the_limit_of_rewrites():
    with limited(1):
        assert "nn.abs" in rewritten(TWO, BODY)


def test_a_pass_of_rules_can_select_rules():
    cls = rules_pass("tidy-up", rules_of(TWO))
    registry = {"tidy-up": cls}
    assert cls.__name__ == "TidyUp"
    for spec, left in (
        ("tidy-up", "nn.square"),
        ('tidy-up{only="one"}', "nn.abs"),
        ('tidy-up{skip="one"}', "nn.neg"),
        ('tidy-up{only="one","two" skip="one"}', "nn.neg"),
    ):
        passes = parse_pipeline(spec, registry)
        assert parse_pipeline(pipeline_spec(passes), registry) == passes
        module = module_of(BODY)
        passes[0].apply(CONTEXT, module)
        assert left in text_of(module)


def test_a_pass_of_rules_refuses_a_rule_it_does_not_have():
    registry = {"tidy-up": rules_pass("tidy-up", rules_of(TWO))}
    with pytest.raises(InputError, match="no rule tow; did you mean two"):
        parse_pipeline('tidy-up{only="tow"}', registry)


def test_sets_of_rules_add_up():
    rules = rules_of(TWO)
    both = rules.chosen(only=["one"]) + rules.chosen(only=["two"])
    assert both == rules


def test_a_lower_of_a_users_operation_ends_in_the_highest_level():
    rules = rules_of("lower r: try.tuned(x) => nn.neg(x)")
    assert rules.lowered
    with pytest.raises(InputError, match="partition.relayout is not legal at nn"):
        rules_of("lower r: try.tuned(x) => partition.relayout(x) : type(x)")
    with pytest.raises(InputError, match="is not on a level .*; write rule instead of lower"):
        rules_of("lower r: builtin.unrealized_conversion_cast(x) => nn.neg(x)")
    with pytest.raises(InputError, match="is already on the lowest level"):
        rules_of("lower r: partition.relayout(x) => nn.neg(x)")
