"""Sample programs that a rule matches."""

from itertools import islice

import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from abele.dialects import nn
from abele.ir.rules.bind import bind_pattern
from abele.ir.rules.bound_rule import BoundPattern
from abele.ir.rules.match import match_rule
from abele.ir.rules.parse import parse_pattern
from abele.ir.rules.samples import TRIES, Sample, Sampler, samples

from .some_rules import VOCABULARY, rules_of

LEFT_OUT = {
    *(nn.StateOp, nn.LoadOp, nn.StoreOp, nn.ComputeOp),
    *(nn.BlockMatMulOp, nn.CtcLossOp, nn.CtcLossGradOp, nn.CtcGreedyOp, nn.CtcBeamOp),
    nn.PackedMatMulOp,
}
"""Operations that need a symbol which a module defines, and those whose operands and attributes fit
each other only if they are drawn together, which their `sample` does."""

MADE = sorted({*nn.NN.operations} - LEFT_OUT, key=lambda cls: cls.name)


def pattern(text: str) -> BoundPattern:
    return bind_pattern(parse_pattern(text), (), text, 1, VOCABULARY)[0][0]


def of(text: str, count: int = 12, seed: int = 0) -> list[Sample]:
    return list(samples(rules_of(text).bound[0], VOCABULARY, count, seed))


def shape(sample: Sample, name: str) -> tuple[int, ...]:
    type_ = sample.match.env[name].type
    assert isinstance(type_, TensorType)
    return tuple(type_.get_shape())


@pytest.mark.parametrize("cls", MADE, ids=lambda cls: cls.name)
def test_every_operation_is_made_from_its_definition_alone(cls: type[Operation]):
    least = VOCABULARY.info(cls).least or (cls is nn.ConcatOp)
    wanted = pattern(f"{cls.name}({', '.join('_' for _ in range(least))})")
    made = list(islice(Sampler(VOCABULARY).programs(cls.name, [wanted]), 3))
    assert made
    for op in made:
        assert type(op) is cls
        op.verify()


def test_operands_that_suit_no_choice_are_soon_replaced():
    """A condition is of truth values: few of the expands that are made first can be one."""
    rule = rules_of("rule r: nn.select(nn.expand(c), x, y) => nn.select(c, x, y)").bound[0]
    for seed in range(3):
        sampler = Sampler(VOCABULARY, seed)
        assert len(list(sampler.samples(rule, 4))) == 4
        assert sampler._left > TRIES / 3


def test_samples_match_the_rule_and_its_guards():
    text = """rule r: nn.matmul(a: f16[m, k], b: f16[k, _]) => nn.matmul(a, b)
              where k % 16 == 0, m != 1"""
    rule = rules_of(text).bound[0]
    found = of(text)
    assert len(found) == 12
    for sample in found:
        assert match_rule(rule, sample.root, VOCABULARY) is not None
        assert shape(sample, "a")[1] % 16 == 0
        assert shape(sample, "a")[0] != 1


def test_samples_differ_in_rank_and_broadcast():
    found = of("rule r: nn.add(x, y) => nn.sub(x, y)", 40)
    assert len({len(shape(each, "x")) for each in found}) > 2
    assert any(shape(each, "x") != shape(each, "y") for each in found)


def test_one_seed_gives_the_same_samples():
    text = """rule r: nn.reshape(nn.transpose(x) {permutation = p}) {shape = s}
              => nn.reshape(x) {shape = s} where rank(x) == length(p)"""
    first, again, other = ([each.described() for each in of(text, 6, seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_a_name_stands_for_one_value():
    for sample in of("rule r: nn.mul(nn.exp(x), x) => nn.exp(x)"):
        assert sample.root.operands[1] is sample.root.operands[0].owner.operands[0]


def test_operands_that_come_with_an_attribute_exist_only_with_it():
    rule = "rule r: nn.neg(try.followed(x, ...more) {then = t} as c) => c(x, ...more) {then = t}"
    found = [each.match.env for each in of(rule, 24)]
    assert {len(env["more"]) for env in found} >= {0, 1}
    assert {env["t"] is None for env in found} == {False, True}
    assert not any(env["more"] for env in found if env["t"] is None)


def test_an_optional_operand_is_there_or_not():
    rule = "rule r: nn.gemm(x, y, ...more) as g => g(x, y, ...more)"
    assert {len(each.match.env["more"]) for each in of(rule, 24)} == {0, 1}


def test_constants_are_made():
    found = of("rule r: nn.mul(x, nn.constant() {value = _}) => nn.mul(x, x)")
    assert {each.root.operands[1].owner.name for each in found} == {"nn.constant"}


def test_the_leaves_are_the_arguments_of_a_block_whose_last_operation_is_the_root():
    for sample in of("rule r: nn.sub(nn.add(x, y), y) => x where same_shape(x, y)"):
        assert sample.block.last_op is sample.root
        assert {arg.name_hint for arg in sample.block.args} in ({"x", "y"}, set())
        assert "x: tensor<" in sample.described()


def test_rules_on_states_and_regions_have_no_samples():
    assert of('rule r: nn.neg(nn.load() {state = _}) => nn.load() {state = "w"}') == []
    assert of("rule r: try.loop(...xs) as l => l(...xs)") == []
