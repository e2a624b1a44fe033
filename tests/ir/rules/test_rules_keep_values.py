"""Rules that are mathematically true change no value of any program."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from strategies import Program, arrays, context, nn_programs
from xdsl.dialects import func
from xdsl.dialects.builtin import Float32Type, ModuleOp, TensorType
from xdsl.ir import Block, Region, SSAValue

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.provenance import named, origin_names
from abele.ir.rules import Vocabulary, parse_rule_set
from abele.ir.text import parse_module, print_module
from abele.ir.verify import verify

LAWS = """
class pointwise = nn.neg | nn.relu | nn.abs

rule neg_neg: nn.neg(nn.neg(x)) => x
rule relu_twice: nn.relu(nn.relu(x)) => nn.relu(x)
rule abs_of: nn.abs(nn.neg | nn.abs(x)) => nn.abs(x)
rule abs_relu: nn.abs(nn.relu(_) as r) => r
rule relu_abs: nn.relu(nn.abs(_) as a) => a
@commutative rule add_neg: nn.add(x, nn.neg(y)) => nn.sub(x, y)
rule sub_neg: nn.sub(x, nn.neg(y)) => nn.add(x, y)
rule neg_sub: nn.neg(nn.sub(x, y) as s) => nn.sub(y, x) where one_use(s)
rule mul_negs: nn.mul(nn.neg(x), nn.neg(y)) => nn.mul(x, y)
rule square: nn.mul(x, x) => nn.square(x)
@priority(1) rule max_same: nn.max(x, x) => x
@commutative rule distribute: nn.add(nn.mul(x, y), nn.mul(x, z)) => nn.mul(x, nn.add(y, z))
  where same_shape(y, z)
rule stay: nn.transpose(x) {permutation = p} => x where p == counted(rank(x))
rule turn_later: pointwise(nn.transpose(x) {permutation = p}) as f
  => nn.transpose(f(x)) {permutation = p}
rule shape_once: nn.reshape(nn.reshape(x) {shape = _}) {shape = s} => nn.reshape(x) {shape = s}
rule shape_later: pointwise(nn.reshape(x) {shape = s}) as f => nn.reshape(f(x)) {shape = s}
rule back: nn.transpose(nn.transpose(x) {permutation = p}) {permutation = p} => x
  where p == [1, 0]
"""

F32 = Float32Type()
UNARY = (nn.NegOp, nn.ReluOp, nn.AbsOp)
BINARY = (nn.AddOp, nn.SubOp, nn.MulOp, nn.MaxOp)


@st.composite
def dense_programs(draw: st.DrawFn) -> Program:
    """Many operations that the rules mention, on few values of one shape; all are results."""
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    block = Block(arg_types=[TensorType(F32, [rows, columns])] * 2)
    values: list[SSAValue] = list(block.args)
    for i in range(draw(st.integers(1, 12))):
        x = draw(st.sampled_from(values[-4:]))
        same = [value for value in values if value.type == x.type]
        shape = x.type.get_shape()
        op = draw(
            st.one_of(
                st.sampled_from(UNARY).map(lambda cls, x=x: lambda: cls(x)),
                st.tuples(st.sampled_from(BINARY), st.sampled_from(same)).map(
                    lambda both, x=x: lambda: both[0](x, both[1])
                ),
                st.permutations([0, 1]).map(lambda p, x=x: lambda: nn.TransposeOp(x, p)),
                st.just(lambda x=x, shape=shape: nn.ReshapeOp(x, shape[::-1])),
            )
        )()
        op.location = named(f"node{i}")
        block.add_op(op)
        values.append(op.results[0])
    kept = draw(st.sets(st.sampled_from(values[2:]), min_size=1))
    results = [value for value in values if value in kept]
    block.add_op(func.ReturnOp(*results))
    types = ([arg.type for arg in block.args], [value.type for value in results])
    module = ModuleOp([func.FuncOp("main", types, Region(block))])
    inputs = {name: arrays(draw, (rows, columns)) for name in ("arg0", "arg1")}
    return Program(module, context(), inputs, 1)


RULES = parse_rule_set(LAWS, Vocabulary(context()))


def check(program: Program) -> None:
    before = run_reference(program.module, program.inputs).outputs
    RULES.apply(program.module)
    verify(program.module)
    after = run_reference(program.module, program.inputs).outputs
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(after[name], before[name])
    text = print_module(program.module)
    assert print_module(parse_module(text, program.context)) == text
    assert not RULES.apply(program.module)
    for op in program.module.walk():
        assert op.name.partition(".")[0] != "nn" or op.name == "nn.state" or origin_names(op)


@given(dense_programs())
def test_rules_keep_every_value_of_dense_programs(program: Program):
    check(program)


@given(nn_programs())
def test_rules_keep_every_value_of_random_programs(program: Program):
    check(program)
