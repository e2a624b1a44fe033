"""Valid shapes and parameters of attention."""

from __future__ import annotations

import numpy as np

from .draw import Draw, Form, Parameter, Shape

WITH_WINDOWS = 25
"""The first opset whose Attention has windows, which onnxruntime does not support."""


def _attention(draw: Draw) -> Form:
    """Attention of a few heads, sometimes with a past, a mask, or keys shared between heads."""
    if 0 in draw.shape or draw.opset >= WITH_WINDOWS:
        raise ValueError("attention without elements, or of a version that onnxruntime has not")
    flat = draw.rank == 3
    if flat:
        batch, queries, width = draw.shape
        heads = draw.one_of(*(n for n in range(1, width + 1) if not width % n))
        size = width // heads
    else:
        batch, heads, queries, size = draw.shape
    few = draw.one_of(*(n for n in range(1, heads + 1) if not heads % n))
    causal = draw.chance(0.4)
    old = draw.one_of(0, 0, 1, 3)
    # Where keys come before the past, or outnumber the queries, versions of onnx disagree.
    keys = queries if causal else draw.one_of(queries, 1, 2, 5)

    def shape(tokens: int, width: int) -> Shape:
        return (batch, tokens, few * width) if flat else (batch, few, tokens, width)

    value_size = draw.one_of(size, 1, 3)
    random = np.random.default_rng(draw.random.randrange(1 << 32))
    parameters: dict[str, Parameter] = {
        "attn_mask": _mask(draw, random, queries, keys + old),
        "past_key": random.uniform(-1, 1, (batch, few, old, size)) if old else None,
        "past_value": random.uniform(-1, 1, (batch, few, old, value_size)) if old else None,
        "nonpad_kv_seqlen": None,
        "q_num_heads": heads if flat else None,
        "kv_num_heads": few if flat else None,
        "is_causal": 1 if causal else None,
        "scale": draw.one_of(None, 0.5, 1.0),
        "softcap": draw.one_of(None, None, 2.0),
        "softmax_precision": None,
        "qk_matmul_output_mode": None,
    }
    return Form([shape(keys, size), shape(keys, value_size)], parameters, results=3 if old else 1)


def _mask(draw: Draw, random: np.random.Generator, queries: int, keys: int) -> Parameter:
    """A mask: numbers to add to the scores, or booleans that keep the first key of each query."""
    if draw.chance(0.5):
        return None
    mask = random.integers(0, 2, (queries, keys))
    mask[:, 0] = 1
    return mask


ATTENTION = {"Attention": _attention}

ATTENTION_RANKS: dict[str, tuple[int, int]] = {"Attention": (3, 4)}
"""The axes that the first operand may have."""
