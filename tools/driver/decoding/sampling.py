"""Which token follows: the one with the highest score, or one drawn by scores.

A draw takes random bits that depend on a seed, the position of the token and the token alone. So
the same run draws the same tokens, however its tokens are divided into runs of the device.

Nothing is sorted. The scores that a draw may choose are those from a bound on: the highest one
that, with all higher ones, reaches a number of tokens, or a sum of their chances. A search finds
the 32 bits of the bound, 4 at a time, so that the vocabulary stays cut over all tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32
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

MOST_WORDS = 1 << BITS
"""The most tokens of a vocabulary: float32 counts them exactly."""


@dataclass(frozen=True)
class Choice:
    """How a token is drawn. All are values without axes.

    Attributes:
        temperature: a positive f32 that scores are divided by.
        seed: a ui32.
        top_k: an f32: so many tokens with the highest scores may be drawn, and those that equal
            the last of them.
        top_p: an f32: the fewest of these tokens whose chances together reach it may be drawn, and
            those that equal the last of them. All of them if it is 1 or more.
    """

    temperature: SSAValue
    seed: SSAValue
    top_k: SSAValue | None = None
    top_p: SSAValue | None = None


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
    zero, one = (emit.constant(each, np.float32) for each in (0, 1))
    lowest = None
    weights = emit(nn.ExpandOp(one, nn.shape_of(scores)))
    if choice.top_k is not None:
        lowest = lower_bound(emit, scores, weights, choice.top_k)
    if choice.top_p is not None:
        _, best = emit.insert(nn.SummarizeOp(scores, "argmax", [0], keep_dims=True)).results
        highest = emit(nn.GatherOp(scores, best, 0))
        chances = emit(nn.ExpOp(emit(nn.SubOp(scores, highest))))
        if lowest is not None:
            allowed = emit(nn.GreaterEqualOp(scores, lowest))
            chances = emit(nn.SelectOp(allowed, chances, zero))
        # Rounded sums may miss the total, so that all are left, as they are to be.
        limit = emit(nn.MulOp(emit(nn.ReduceOp(chances, "sum", [0])), choice.top_p))
        every = emit(nn.GreaterEqualOp(choice.top_p, one))
        limit = emit(nn.SelectOp(every, emit.constant(np.inf, np.float32), limit))
        bound = lower_bound(emit, scores, chances, limit)
        lowest = bound if lowest is None else emit(nn.MaxOp(lowest, bound))
    noisy = emit(nn.AddOp(scores, _noise(emit, nn.shape_of(scores)[0], choice.seed, position)))
    if lowest is not None:
        allowed = emit(nn.GreaterEqualOp(scores, lowest))
        noisy = emit(nn.SelectOp(allowed, noisy, emit.constant(-np.inf, np.float32)))
    return best_token(emit, noisy)


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
    """The highest number for which the weights of scores from it on sum up to a limit.

    It is minus infinity if all weights are less than that. Codes are whole numbers in the order of
    the floats that they stand for. A step sums up the weights from each code on that begins as the
    bound does and has another next digit.

    Returns an f32 of one element.

    Args:
        scores, weights: f32, by token; no weight is negative.
        limit: an f32 without axes, above 0.
    """
    words, steps, size = nn.shape_of(scores)[0], 32 // DIGIT_BITS, 1 << DIGIT_BITS
    digits = np.arange(1, size, dtype=np.uint32)
    places = np.uint32(32 - DIGIT_BITS) - DIGIT_BITS * np.arange(steps, dtype=np.uint32)
    table = emit.constant((digits << places[:, None]).view(np.int32), np.int32)
    base, zero = emit.constant([-(2**31)], np.int32), emit.constant(0, np.float32)
    row, weights = emit.shaped(scores, (1, words)), emit.shaped(weights, (1, words))
    block = Block(arg_types=(base.type, control.ITERATION_NUMBER))
    own, number = block.args
    inner = Emit(Builder(InsertPoint.at_end(block)), emit.place)
    tried = inner(nn.AddOp(own, inner(nn.GatherOp(table, number, 0))))
    # Vertices compare floats in a third of the cycles that whole numbers take.
    higher = inner(nn.GreaterEqualOp(row, inner.shaped(_float_of(inner, tried), (size - 1, 1))))
    sums = inner(nn.ReduceOp(inner(nn.SelectOp(higher, weights, zero)), "sum", [1]))
    found = inner(nn.SelectOp(inner(nn.GreaterEqualOp(sums, limit)), tried, own))
    block.add_op(control.YieldOp(inner(nn.ReduceOp(found, "max", [0], keep_dims=True))))
    loop = emit.insert(control.RepeatOp(steps, [base], Region(block)))
    bound = _float_of(emit, loop.results[0])
    # Codes below that of minus infinity stand for NaN.
    return emit(nn.SelectOp(emit(nn.IsNaNOp(bound)), emit.constant(-np.inf, np.float32), bound))


def _float_of(emit: Emit, codes: SSAValue) -> SSAValue:
    """The floats with these codes, which are i32."""
    # All bits but the sign of negative floats grow as the floats fall.
    turned = emit(nn.BitwiseXorOp(codes, emit.constant(2**31 - 1, np.int32)))
    negative = emit(nn.LessOp(codes, emit.constant(0, np.int32)))
    return emit(nn.BitCastOp(emit(nn.SelectOp(negative, turned, codes)), f32))
