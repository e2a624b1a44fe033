"""Nodes of onnxruntime's own operators, of the domain com.microsoft. They have no schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
from onnx import helper

from .draw import Shape
from .pool import INTEGERS, Pool, PoolValue

DOMAIN = "com.microsoft"
FLOAT, BYTE = "tensor(float)", "tensor(uint8)"

Builder = Callable[[Pool, Random], None]
"""Appends one node, and the values that it needs, to a pool."""


def _append(
    pool: Pool,
    random: Random,
    operator: str,
    operands: Sequence[str],
    results: Sequence[tuple[str, Shape]],
    **attributes: Any,
) -> None:
    values = [PoolValue(pool.name(random), type_, shape) for type_, shape in results]
    names = [v.name for v in values]
    pool.append(helper.make_node(operator, operands, names, domain=DOMAIN, **attributes), values)
    pool.told += [v.info for v in values]


def _first(pool: Pool, random: Random, least: int = 1, most: int = 4) -> PoolValue:
    """An existing or a new value of float32."""
    there = [v for v in pool.shared if v.type == FLOAT and least <= len(v.shape) <= most]
    there = [v for v in there if 0 not in v.shape]
    if there and random.random() < 0.8:
        return random.choice(there)
    rank = random.randint(least, most)
    shape = [max(1, random.choice(pool.sketch.sizes)) for _ in range(rank)]
    while np.prod(shape) > 512:
        shape[shape.index(max(shape))] = 1
    return pool.leaf(FLOAT, tuple(shape), random)


def _leaf(pool: Pool, random: Random, shape: Shape, what: str = "") -> str:
    there = [] if what else pool.of_shape(FLOAT, shape)
    if there and random.random() < 0.5:
        return random.choice(there).name
    return pool.leaf(FLOAT, shape, random, what).name


def _some(random: Random, name: str, *values: float) -> dict[str, Any]:
    """A dictionary with an attribute set to one of these values, or an empty one."""
    return {name: random.choice(values)} if random.random() < 0.5 else {}


def _unary(operator: str) -> Builder:
    def build(pool: Pool, random: Random) -> None:
        value = _first(pool, random)
        more = _some(random, "alpha", 1.0, 1.702, 0.5) if operator == "QuickGelu" else {}
        _append(pool, random, operator, [value.name], [(FLOAT, value.shape)], **more)

    return build


def _biased(operator: str) -> Builder:
    def build(pool: Pool, random: Random) -> None:
        value = _first(pool, random)
        operands = [value.name]
        if operator == "BiasGelu" or random.random() < 0.6:
            operands.append(_leaf(pool, random, value.shape[-1:]))
        _append(pool, random, operator, operands, [(FLOAT, value.shape)])

    return build


def _skip_norm(operator: str) -> Builder:
    def build(pool: Pool, random: Random) -> None:
        value = _first(pool, random, 3, 3)
        width = value.shape[-1:]
        operands = [value.name, _leaf(pool, random, value.shape), _leaf(pool, random, width)]
        if operator == "SkipLayerNormalization":
            operands.append(_leaf(pool, random, width) if random.random() < 0.6 else "")
        operands.append(_leaf(pool, random, width) if random.random() < 0.6 else "")
        while not operands[-1]:
            operands.pop()
        epsilon = _some(random, "epsilon", 1e-5, 1e-3)
        _append(pool, random, operator, operands, [(FLOAT, value.shape)], **epsilon)

    return build


def _fused_matmul(pool: Pool, random: Random) -> None:
    value = _first(pool, random, 2, 4)
    *batch, rows, terms = value.shape
    turned, other = random.random() < 0.4, random.random() < 0.4
    if turned:
        rows, terms = terms, rows
    columns = random.randint(1, 5)
    batch_of = batch if random.random() < 0.5 else []
    right = (*batch_of, *((columns, terms) if other else (terms, columns)))
    flags = {"transA": int(turned), "transB": int(other), **_some(random, "alpha", 0.5, -2.0)}
    operands = [value.name, _leaf(pool, random, right)]
    _append(pool, random, "FusedMatMul", operands, [(FLOAT, (*batch, rows, columns))], **flags)


def _fused_gemm(pool: Pool, random: Random) -> None:
    value = _first(pool, random, 2, 2)
    turned, other = random.random() < 0.4, random.random() < 0.4
    rows, terms = value.shape[::-1] if turned else value.shape
    columns = random.randint(1, 5)
    right = (columns, terms) if other else (terms, columns)
    operands = [value.name, _leaf(pool, random, right)]
    operands.append(_leaf(pool, random, random.choice(((columns,), (rows, columns), (1,)))))
    numbers = {**_some(random, "alpha", 0.5, 2.0), **_some(random, "beta", 0.5, 2.0)}
    numbers["activation"] = random.choice(("Relu", "Tanh", "Sigmoid"))
    numbers |= {"transA": int(turned), "transB": int(other)}
    _append(pool, random, "FusedGemm", operands, [(FLOAT, (rows, columns))], **numbers)


def _rotary(pool: Pool, random: Random) -> None:
    batch, tokens, heads = random.choice((1, 2)), random.choice((1, 2, 5)), random.choice((1, 2, 3))
    half, most = random.choice((1, 2, 4)), 7
    shape = (batch, tokens, heads * 2 * half)
    if random.random() < 0.5:
        shape = (batch, heads, tokens, 2 * half)
    one = random.random() < 0.5
    places = np.array([random.randint(0, most - tokens)])
    if not one:
        some = [random.randrange(most) for _ in range(batch * tokens)]
        places = np.reshape(some, (batch, tokens))
    positions = pool.given(places.astype(np.int64), "tensor(int64)", random).name
    tables = [_leaf(pool, random, (most, half)) for _ in range(2)]
    flag = _some(random, "interleaved", 0, 1)
    operands = [_leaf(pool, random, shape), positions, *tables]
    _append(pool, random, "RotaryEmbedding", operands, [(FLOAT, shape)], **flag)


def _multi_head_attention(pool: Pool, random: Random) -> None:
    """Attention of a few heads, sometimes with a bias, a mask of keys, or earlier keys."""
    batch, heads, size = random.choice((1, 2)), random.choice((1, 2, 3)), random.choice((1, 2, 4))
    queries, keys, width = random.choice((1, 3)), random.choice((2, 5)), heads * size
    operands = [
        _leaf(pool, random, (batch, queries, width)),
        _leaf(pool, random, (batch, keys, width)),
        _leaf(pool, random, (batch, keys, width)),
        _leaf(pool, random, (3 * width,)) if random.random() < 0.5 else "",
    ]
    if random.random() < 0.4:
        # onnxruntime needs a key for each query.
        mask = [[1] + [random.choice((0, 1)) for _ in range(keys - 1)] for _ in range(batch)]
        operands.append(pool.given(np.array(mask, np.int32), "tensor(int32)", random).name)
    while not operands[-1]:
        operands.pop()
    more = {"num_heads": heads, **_some(random, "scale", 0.5, 1.0)}
    result = [(FLOAT, (batch, queries, width))]
    _append(pool, random, "MultiHeadAttention", operands, result, **more)


def _scale(pool: Pool, random: Random) -> list[str]:
    """The names of a scale and of a zero point."""
    scale = np.array(random.choice((0.5, 0.1, 0.02)), np.float32)
    zero = np.array(random.choice((0, 128, 3)), np.uint8)
    given = ((scale, FLOAT), (zero, BYTE))
    return [pool.given(array, type_, random, known=True).name for array, type_ in given]


def _bytes(pool: Pool, random: Random) -> PoolValue:
    there = [v for v in pool.shared if v.type == BYTE and v.shape and 0 not in v.shape]
    if there and random.random() < 0.6:
        return random.choice(there)
    size = max(1, random.choice(pool.sketch.sizes))
    elements = [random.randrange(256) for _ in range(2 * size)]
    array = np.reshape(np.array(elements, np.uint8), (2, size))
    return pool.given(array, BYTE, random)


def _of_two_bytes(operator: str) -> Builder:
    def build(pool: Pool, random: Random) -> None:
        one = _bytes(pool, random)
        same = pool.of_shape(BYTE, one.shape)
        operands = [one.name, *_scale(pool, random)]
        operands += [random.choice(same).name, *_scale(pool, random), *_scale(pool, random)]
        _append(pool, random, operator, operands, [(BYTE, one.shape)])

    return build


def _of_bytes(operator: str) -> Builder:
    def build(pool: Pool, random: Random) -> None:
        value = _bytes(pool, random)
        operands = [value.name, *_scale(pool, random), *_scale(pool, random)]
        more = _some(random, "alpha", 0.1, 0.5) if operator == "QLinearLeakyRelu" else {}
        _append(pool, random, operator, operands, [(BYTE, value.shape)], **more)

    return build


def _matmul_bits(pool: Pool, random: Random) -> None:
    """A product with a matrix of 4-bit numbers in blocks of 16 or 32 terms."""
    size = random.choice((16, 32))
    terms, columns = size * random.choice((1, 2)), random.choice((1, 3, 8))
    blocks = terms // size
    packed = [random.randrange(256) for _ in range(columns * blocks * size // 2)]
    weights = np.array(packed, np.uint8).reshape(columns, blocks, size // 2)
    rows = random.choice((1, 2, 5))
    scales = [random.choice((0.5, 0.1, -0.25)) for _ in range(columns * blocks)]
    operands = [
        _leaf(pool, random, (rows, terms)),
        pool.given(weights, BYTE, random, known=True).name,
        pool.given(np.array(scales, np.float32), FLOAT, random, known=True).name,
    ]
    more = {"K": terms, "N": columns, "block_size": size, "bits": 4}
    _append(pool, random, "MatMulNBits", operands, [(FLOAT, (rows, columns))], **more)


def _gather_bits(pool: Pool, random: Random) -> None:
    """Rows of a table of 4-bit numbers in blocks of 16 or 32."""
    size, rows = random.choice((16, 32)), random.choice((1, 3, 8))
    blocks = random.choice((1, 2))
    packed = [random.randrange(256) for _ in range(rows * blocks * size // 2)]
    scales = [random.choice((0.5, 0.1, -0.25)) for _ in range(rows * blocks)]
    indices = [random.randrange(-rows, rows) for _ in range(random.choice((1, 4)))]
    arrays = (
        (np.array(packed, np.uint8).reshape(rows, -1), BYTE, True),
        (np.array(indices, np.int64), INTEGERS, False),
        (np.array(scales, np.float32).reshape(rows, blocks), FLOAT, True),
    )
    operands = [pool.given(a, kind, random, known=known).name for a, kind, known in arrays]
    shape = (len(indices), blocks * size)
    more = {"block_size": size, "bits": 4}
    _append(pool, random, "GatherBlockQuantized", operands, [(FLOAT, shape)], **more)


CONTRIBUTED: dict[str, Builder] = {
    f"{DOMAIN}.{name}": build
    for name, build in {
        "Gelu": _unary("Gelu"),
        "QuickGelu": _unary("QuickGelu"),
        "BiasGelu": _biased("BiasGelu"),
        "FastGelu": _biased("FastGelu"),
        "SkipLayerNormalization": _skip_norm("SkipLayerNormalization"),
        "SkipSimplifiedLayerNormalization": _skip_norm("SkipSimplifiedLayerNormalization"),
        "FusedMatMul": _fused_matmul,
        "FusedGemm": _fused_gemm,
        "RotaryEmbedding": _rotary,
        "MultiHeadAttention": _multi_head_attention,
        "QLinearAdd": _of_two_bytes("QLinearAdd"),
        "QLinearMul": _of_two_bytes("QLinearMul"),
        "QLinearSigmoid": _of_bytes("QLinearSigmoid"),
        "QLinearLeakyRelu": _of_bytes("QLinearLeakyRelu"),
        "MatMulNBits": _matmul_bits,
        "GatherBlockQuantized": _gather_bits,
    }.items()
}
"""Builders of nodes, by domain and operator."""
