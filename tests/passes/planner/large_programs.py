"""Programs of nn whose tensors are too large for one tile, many of them cheap to make."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import hypothesis.strategies as st
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block, Operation, Region, SSAValue

from abele.dialects import nn
from abele.dialects.nn.base import shape_of

from ...strategies import Program, context

MOST_ELEMENTS = 4_000_000

SIZES = (1, 3, 7, 64, 100, 300, 512, 1000, 1024, 2048, 4096, 60_000)


@dataclass
class _Maker:
    """A program that is made operation by operation. values: what further operations may read."""

    draw: st.DrawFn
    block: Block
    values: list[SSAValue]

    def size(self) -> int:
        return self.draw(st.sampled_from(SIZES))

    def input(self, *shape: int) -> SSAValue:
        return self.block.insert_arg(TensorType(f32, shape), len(self.block.args))

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        self.values.append(op.results[0])
        return op.results[0]

    def recent(self) -> SSAValue:
        """One of the last tensors that has axes."""
        return self.draw(st.sampled_from([v for v in self.values if shape_of(v)][-3:]))


def _small(m: _Maker) -> SSAValue:
    kind = m.draw(st.sampled_from(("constant", "one", "column", "row")))
    if kind == "constant":
        return m.add(nn.ConstantOp(np.asarray(1.5, np.float32)))
    if kind == "one":
        return m.input(*(1,) * m.draw(st.integers(0, 3)))
    return m.input(m.size(), 1) if kind == "column" else m.input(m.size())


def _expand(m: _Maker) -> None:
    value = _small(m)
    shape = [n if n > 1 else m.size() for n in shape_of(value)]
    while len(shape) < m.draw(st.integers(1, 3)):
        shape.insert(0, m.size())
    if prod(shape) <= MOST_ELEMENTS:
        m.add(nn.ExpandOp(value, shape))


def _add(m: _Maker) -> None:
    a = m.recent()
    same = [v for v in m.values if shape_of(v) == shape_of(a)]
    m.add(nn.AddOp(a, m.draw(st.sampled_from(same))))


def _relu(m: _Maker) -> None:
    m.add(nn.ReluOp(m.recent()))


def _matmul(m: _Maker) -> None:
    a = m.recent()
    columns = m.size()
    if len(shape_of(a)) != 2 or shape_of(a)[0] * columns > MOST_ELEMENTS:
        return
    weights = [shape_of(a)[1], columns]
    if prod(weights) <= MOST_ELEMENTS:
        m.add(nn.MatMulOp(a, m.add(nn.ExpandOp(m.input(1, 1), weights))))


def _reduce(m: _Maker) -> None:
    a = m.recent()
    m.add(nn.ReduceOp(a, "sum", [m.draw(st.integers(0, len(shape_of(a)) - 1))]))


def _transpose(m: _Maker) -> None:
    a = m.recent()
    m.add(nn.TransposeOp(a, m.draw(st.permutations(range(len(shape_of(a)))))))


def _concat(m: _Maker) -> None:
    a, times = m.recent(), m.draw(st.sampled_from((2, 4, 16)))
    if prod(shape_of(a)) * times <= MOST_ELEMENTS:
        m.add(nn.ConcatOp([a] * times, m.draw(st.integers(0, len(shape_of(a)) - 1))))


def _pad(m: _Maker) -> None:
    a = m.recent()
    high = [m.draw(st.sampled_from((0, 5, 300))) for _ in shape_of(a)]
    if prod(n + more for n, more in zip(shape_of(a), high, strict=True)) <= MOST_ELEMENTS:
        m.add(nn.PadOp(a, [0] * len(high), high))


def _slice(m: _Maker) -> None:
    a = m.recent()
    rank = len(shape_of(a))
    m.add(nn.SliceOp(a, [0] * rank, [1] * rank, [max(n // 2, 1) for n in shape_of(a)]))


def _reshape(m: _Maker) -> None:
    a = m.recent()
    m.add(nn.ReshapeOp(a, [prod(shape_of(a))]))


_OPERATIONS = (
    *(_expand, _expand, _expand),
    *(_add, _relu, _matmul, _reduce, _transpose, _concat, _pad, _slice, _reshape),
)


@st.composite
def large_programs(draw: st.DrawFn) -> Program:
    """A chain of operations on tensors of up to 16 MB, about half of which are repeated numbers."""
    m = _Maker(draw, Block(), [])
    m.values.append(m.input(draw(st.sampled_from((1, 8, 128, 512, 1000))), m.size()))
    for make in draw(st.lists(st.sampled_from(_OPERATIONS), min_size=1, max_size=5)):
        make(m)
    last = m.values[-1]
    m.block.add_op(func.ReturnOp(last))
    types = [a.type for a in m.block.args], [last.type]
    module = ModuleOp([func.FuncOp("main", types, Region(m.block))])
    module.verify()
    return Program(module, context(), {}, draw(st.sampled_from((16, 64, 256, 1472))))
