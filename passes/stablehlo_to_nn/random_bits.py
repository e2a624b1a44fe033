"""Random bits by the generators of StableHLO, the same as XLA's to the last bit.

Both generators are functions of a key and a counter, which increases by one for each block of words
(Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, 2011). Which element gets
which word follows XLA; the specification leaves it open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import bit_width
from .conversion import ToNn
from .integers import bits_as, unsigned

WORD, DOUBLE = unsigned(32), unsigned(64)

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
"""The places by which Threefry-2x32 rotates, in groups of four rounds."""

PARITY = 0x1BD11BDA
"""What Threefry's third word of the key is made with."""

THREEFRY_GROUPS, PHILOX_ROUNDS = 5, 10

MULTIPLIERS, KEY_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
"""The constants of Philox-4x32."""

Pair = tuple[SSAValue, SSAValue]
"""Two words of 32 bits, of which the first one is the lower."""


@dataclass(frozen=True)
class Drawn:
    """Random bits, and the state that follows.

    Attributes:
        state: of as many words of 64 bits as the state before.
        bits: the elements.
    """

    state: SSAValue
    bits: SSAValue


def threefry(new: ToNn, state: SSAValue, shape: Sequence[int], element: Attribute) -> Drawn:
    """Elements drawn by Threefry-2x32 with 20 rounds.

    Args:
        state: two words of 64 bits, the key and the counter.
        element: unsigned integers, or the type of as many bits that holds them.
    """
    key, counter = _word(new, state, 0), _word(new, state, 1)
    words = _halves(new, key)
    wide = bit_width(numpy_dtype(element)) == 64
    half, joined, axis = ((*shape,), None, 0) if wide else _split(shape)
    numbers = new.add(nn.AddOp(counter, new.constant(_counted(half))))
    low, high = _threefry_rounds(new, _halves(new, numbers), words)
    if joined is None:
        drawn = _joined(new, low, high)
    else:
        pair = [
            new.reshape(each, (*half[: axis + 1], 1, *half[axis + 1 :])) for each in (low, high)
        ]
        drawn = new.reshape(new.add(nn.ConcatOp(pair, axis + 1)), joined)
        drawn = new.box(drawn, [0] * len(joined), shape or (1,))
        drawn = new.reshape(drawn, shape)
    following = new.add(nn.AddOp(counter, new.number(prod(half), counter)))
    return Drawn(_state(new, state, [key, following]), _of_width(new, drawn, element))


def philox(new: ToNn, state: SSAValue, shape: Sequence[int], element: Attribute) -> Drawn:
    """Elements drawn by Philox-4x32 with 10 rounds.

    Args:
        state: two or three words of 64 bits: the key, and a counter. The upper word of a counter of
            one word is the key.
        element: unsigned integers, or the type of as many bits that holds them.
    """
    (length,) = nn.shape_of(state)
    key, counter = _word(new, state, 0), _word(new, state, 1)
    upper = _word(new, state, 2) if length > 2 else key
    wide = bit_width(numpy_dtype(element)) == 64
    count = prod(shape)
    blocks = ceil(count / (2 if wide else 4))
    numbers = _counted((blocks,))
    low, high = _increased(new, counter, upper, new.constant(numbers))
    high = new.expand(high, (blocks,))
    words = [*_halves(new, low), *_halves(new, high)]
    made = _philox_rounds(new, words, _halves(new, key))
    if wide:
        made = [_joined(new, made[0], made[1]), _joined(new, made[2], made[3])]
    rows = new.add(nn.ConcatOp([new.reshape(each, (blocks, 1)) for each in made], 1))
    flat = new.reshape(rows, (blocks * len(made),))
    drawn = new.reshape(new.box(flat, [0], [count]), shape)
    after = _increased(new, counter, upper, new.constant(np.array(blocks, np.uint64)))
    kept = [key, *after[: length - 1]]
    return Drawn(_state(new, state, kept), _of_width(new, drawn, element))


def _word(new: ToNn, state: SSAValue, index: int) -> SSAValue:
    """A word of the state, without axes."""
    return new.reshape(new.box(state, [index], [1]), ())


def _state(new: ToNn, like: SSAValue, words: Sequence[SSAValue]) -> SSAValue:
    return new.add(nn.ConcatOp([new.reshape(each, (1,)) for each in words], 0))


def _counted(shape: Sequence[int]) -> np.ndarray:
    return np.arange(prod(shape), dtype=np.uint64).reshape(tuple(shape))


def _halves(new: ToNn, value: SSAValue) -> Pair:
    """The lower and the upper half of words of 64 bits."""
    upper = new.add(nn.ShiftRightOp(value, new.number(32, value)))
    return new.cast(value, WORD), new.cast(upper, WORD)


def _joined(new: ToNn, low: SSAValue, high: SSAValue) -> SSAValue:
    """Words of 64 bits from their halves."""
    upper = new.cast(high, DOUBLE)
    moved = new.add(nn.ShiftLeftOp(upper, new.number(32, upper)))
    return new.add(nn.BitwiseOrOp(new.cast(low, DOUBLE), moved))


def _of_width(new: ToNn, drawn: SSAValue, element: Attribute) -> SSAValue:
    """The lowest bits of words, as elements of a type."""
    width = bit_width(numpy_dtype(element))
    return bits_as(new, new.cast(drawn, unsigned(width)), element)


def _increased(new: ToNn, low: SSAValue, high: SSAValue, by: SSAValue) -> Pair:
    """A counter of two words of 64 bits plus a number of one word."""
    total = new.add(nn.AddOp(low, by))
    carry = new.cast(new.add(nn.LessOp(total, by)), DOUBLE)
    return total, new.add(nn.AddOp(high, carry))


def _split(shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Where the two words of a block of Threefry go: the shape of all blocks, the shape of all
    words, and the axis along which the words of a block follow one another.

    It is the first axis of even size, or else the longest one. Words beyond its end are left out.
    """
    whole = tuple(shape) or (1,)
    even = [a for a, n in enumerate(whole) if n % 2 == 0]
    axis = even[0] if even else max(range(len(whole)), key=lambda a: (whole[a], -a))
    blocks = tuple(ceil(n / 2) if a == axis else n for a, n in enumerate(whole))
    words = tuple(2 * n if a == axis else n for a, n in enumerate(blocks))
    return blocks, words, axis


def _threefry_rounds(new: ToNn, counter: Pair, key: Pair) -> Pair:
    """A block of two words."""
    both = new.add(nn.BitwiseXorOp(*key))
    keys = [*key, new.add(nn.BitwiseXorOp(both, new.number(PARITY, both)))]
    x, y = (new.add(nn.AddOp(c, k)) for c, k in zip(counter, key, strict=True))
    for group in range(THREEFRY_GROUPS):
        for places in ROTATIONS[group % 2]:
            x = new.add(nn.AddOp(x, y))
            y = new.add(nn.BitwiseXorOp(x, _rotated(new, y, places)))
        x = new.add(nn.AddOp(x, keys[(group + 1) % 3]))
        more = keys[(group + 2) % 3]
        y = new.add(nn.AddOp(y, new.add(nn.AddOp(more, new.number(group + 1, more)))))
    return x, y


def _rotated(new: ToNn, value: SSAValue, places: int) -> SSAValue:
    """Words of 32 bits, rotated towards the highest bit."""
    up = new.add(nn.ShiftLeftOp(value, new.number(places, value)))
    down = new.add(nn.ShiftRightOp(value, new.number(32 - places, value)))
    return new.add(nn.BitwiseOrOp(up, down))


def _philox_rounds(new: ToNn, counter: Sequence[SSAValue], key: Pair) -> list[SSAValue]:
    """A block of four words."""
    a, b, c, d = counter
    keys = list(key)
    for number in range(PHILOX_ROUNDS):
        if number:
            keys = [
                new.add(nn.AddOp(each, new.number(step, each)))
                for each, step in zip(keys, KEY_STEPS, strict=True)
            ]
        first = _product(new, a, MULTIPLIERS[0])
        second = _product(new, c, MULTIPLIERS[1])
        a = _mixed(new, second[1], b, keys[0])
        c = _mixed(new, first[1], d, keys[1])
        b, d = second[0], first[0]
    return [a, b, c, d]


def _mixed(new: ToNn, *words: SSAValue) -> SSAValue:
    first, second, third = words
    return new.add(nn.BitwiseXorOp(new.add(nn.BitwiseXorOp(first, second)), third))


def _product(new: ToNn, value: SSAValue, factor: int) -> Pair:
    """Both halves of the products of words and a constant."""
    wide = new.cast(value, DOUBLE)
    return _halves(new, new.add(nn.MulOp(wide, new.number(factor, wide))))


Generator = Callable[[ToNn, SSAValue, Sequence[int], Attribute], Drawn]

GENERATORS: dict[str, Generator] = {
    "DEFAULT": philox,
    "THREE_FRY": threefry,
    "PHILOX": philox,
}
"""The generators by StableHLO's names. The default is XLA's on a host."""
