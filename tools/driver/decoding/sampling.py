"""Which token follows: the one with the highest score, or one drawn by scores.

A draw takes random bits that depend on a seed, the position of the token and the token alone. So
the same run draws the same tokens, however its tokens are divided into runs of the device.

Nothing is sorted. The scores that a draw may choose are those from a bound on: the lowest number
for which what lies above it, as a count of tokens or as a sum of their chances, stays below a
limit. A search finds the bound among all numbers of 32 bits, 4 bits at a time. So a vocabulary is
cut over all tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Block, Region, SSAValue

from ....dialects import control, nn
from ....dialects.dtypes import element_type
from ....ir.upstream import Builder, InsertPoint
from .emit import Emit

UINT32 = element_type(np.dtype(np.uint32))

BITS, UNIT = 24, 2.0**-24
"""The number of random bits that become a float32, and the distance between two such numbers."""

DIGIT_BITS = 4
"""Bits of the bound that a step of the search finds."""

FIRST_POSITIVE = 1 << 31
"""The code of 0.0: codes count floats from the lowest one up."""

MOST_WORDS = 1 << BITS
"""The most tokens of a vocabulary: float32 counts them exactly."""


@dataclass(frozen=True)
class Choice:
    """How a token is drawn. All are values without axes.

    Attributes:
        temperature: a positive f32 that scores are divided by.
        top_k: an f32: so many tokens with the highest scores may be drawn, and those that equal
            the last of them.
        top_p: an f32: the fewest of these tokens whose chances together reach it may be drawn, and
            those that equal the last of them. All of them if it is 1 or more.
        seed: a ui32.
    """

    temperature: SSAValue
    top_k: SSAValue
    top_p: SSAValue
    seed: SSAValue


def best_token(emit: Emit, scores: SSAValue) -> SSAValue:
    """The first token with the highest score, an i32 without axes.

    Args:
        scores: by token.
    """
    return emit.insert(nn.SummarizeOp(scores, "argmax", [0])).results[1]


def drawn_token(emit: Emit, scores: SSAValue, choice: Choice, position: SSAValue) -> SSAValue:
    """A token drawn by scores, an i32 without axes.

    It has the highest sum of its score and Gumbel noise.

    Args:
        scores: by token.
        position: of the token, an i32 without axes.
    """
    scores = emit(nn.DivOp(emit.cast(scores, f32), choice.temperature))
    one = emit.constant(1, np.float32)
    weights = emit(nn.ExpandOp(one, nn.shape_of(scores)))
    first = emit(nn.GreaterEqualOp(scores, lower_bound(emit, scores, weights, choice.top_k)))
    _, best = emit.insert(nn.SummarizeOp(scores, "argmax", [0], keep_dims=True)).results
    highest = emit(nn.GatherOp(scores, best, 0))
    chances = emit(nn.ExpOp(emit(nn.SubOp(scores, highest))))
    chances = emit(nn.SelectOp(first, chances, emit.constant(0, np.float32)))
    total = emit(nn.ReduceOp(chances, "sum", [0]))
    # Rounded sums may reach the total before the last token.
    every = emit(nn.GreaterEqualOp(choice.top_p, one))
    limit = emit(nn.MulOp(total, choice.top_p))
    limit = emit(nn.SelectOp(every, emit.constant(np.inf, np.float32), limit))
    second = emit(nn.GreaterEqualOp(scores, lower_bound(emit, scores, chances, limit)))
    allowed = emit(nn.LogicalAndOp(first, second))
    noisy = emit(nn.AddOp(scores, _noise(emit, nn.shape_of(scores)[0], choice.seed, position)))
    return best_token(emit, emit(nn.SelectOp(allowed, noisy, emit.constant(-np.inf, np.float32))))


def _noise(emit: Emit, count: int, seed: SSAValue, position: SSAValue) -> SSAValue:
    """Gumbel noise for each token: -log(-log(u)) of uniform numbers between 0 and 1."""
    step = emit.cast(position, UINT32)
    bits = emit(nn.RandomBitsOp(emit.counted(count, np.uint32), step, seed, 0.0))
    number = emit.cast(emit(nn.ShiftRightOp(bits, emit.alike(32 - BITS, bits))), f32)
    # Neither 0 nor 1, whose noise is infinite.
    uniform = emit(nn.ScaleOp(emit(nn.ShiftOp(number, 0.5)), UNIT))
    uniform = emit(nn.ClipOp(uniform, 0.0, 1.0 - UNIT))
    rate = emit(nn.ScaleOp(emit(nn.LogOp(uniform)), -1.0))
    return emit(nn.ScaleOp(emit(nn.LogOp(rate)), -1.0))


def lower_bound(emit: Emit, scores: SSAValue, weights: SSAValue, limit: SSAValue) -> SSAValue:
    """The lowest number for which the weights of all higher scores sum up to less than a limit.

    Args:
        scores, weights: f32, by token; no weight is negative.
        limit: an f32 without axes, above 0.
    """
    words, digits = nn.shape_of(scores)[0], 32 // DIGIT_BITS
    most = (1 << DIGIT_BITS) - 1
    row, weights = emit.shaped(scores, (1, words)), emit.shaped(weights, (1, words))
    zero = emit.constant(0, np.float32)
    steps = emit.constant([1 << (32 - DIGIT_BITS * (i + 1)) for i in range(digits)], np.uint32)
    factors = emit.counted(most, np.uint32, 1)
    block = Block(arg_types=(nn.tensor((1,), UINT32), control.ITERATION_NUMBER))
    base, number = block.args
    inner = Emit(Builder(InsertPoint.at_end(block)), emit.place)
    step = inner(nn.GatherOp(steps, inner.shaped(number, (1,)), 0))
    # The number of codes that fail is at least base + j * step if the code below fails.
    below = inner(nn.SubOp(base, inner.alike(1, base)))
    codes = inner(nn.AddOp(below, inner(nn.MulOp(factors, step))))
    tried = inner.shaped(_float_of(inner, codes), (most, 1))
    higher = inner(nn.GreaterOp(row, tried))
    sums = inner(nn.ReduceOp(inner(nn.SelectOp(higher, weights, zero)), "sum", [1]))
    fails = inner.cast(inner(nn.GreaterEqualOp(sums, limit)), i32)
    digit = inner.cast(inner(nn.ReduceOp(fails, "sum", [0], keep_dims=True)), UINT32)
    found = inner(nn.AddOp(base, inner(nn.MulOp(digit, step))))
    block.add_op(control.YieldOp(found))
    begin = emit.constant([0], np.uint32)
    loop = emit.insert(control.RepeatOp(digits, [begin], Region(block)))
    return _float_of(emit, loop.results[0])


def _float_of(emit: Emit, codes: SSAValue) -> SSAValue:
    """The floats with these codes, where codes of NaN stand for the infinity beside them."""
    half = emit.alike(FIRST_POSITIVE, codes)
    positive = emit(nn.GreaterEqualOp(codes, half))
    bits = emit(nn.BitwiseNotOp(codes))
    bits = emit(nn.SelectOp(positive, emit(nn.SubOp(codes, half)), bits))
    found = emit(nn.BitCastOp(bits, f32))
    ends = [emit.constant(sign * np.inf, np.float32) for sign in (1, -1)]
    return emit(nn.SelectOp(emit(nn.IsNaNOp(found)), emit(nn.SelectOp(positive, *ends)), found))
