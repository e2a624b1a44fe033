"""Draws complex numbers: made of parts, changed, and taken apart. Other operations read parts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from .....dialects import nn, stablehlo
from .....dialects.source_types import element_of, part_type, shape_of, tensor
from .....dialects.stablehlo.complex_numbers import complex_type
from .draft import CLASSES, Draft, Draw, Kinds, integers

PARTS: Kinds = (*[f32] * 8, f64)

FUNCTIONS = (
    *("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.negate"),
    *("stablehlo.exponential", "stablehlo.tanh", "stablehlo.cosine", "stablehlo.sine"),
    *("chlo.conj", "chlo.square"),
)
"""The functions that numbers go through before they are taken apart."""

FARTHEST = 4
"""The most that a part is away from 0 if special values are drawn. NumPy has others of some."""


def _part(draft: Draft, value: SSAValue) -> SSAValue:
    """A value without NaN and infinities."""
    if draft.shared.data != "special":
        return value
    value = draft.numbers(value)
    ends = [draft.constant(np.array(end), nn.element_of(value)) for end in (-FARTHEST, FARTHEST)]
    return draft.add("stablehlo.clamp", [ends[0], value, ends[1]], [value.type])[0]


def _made(draft: Draft, least: int = 0) -> SSAValue:
    """Complex numbers of two existing values."""
    return _with_imaginary(draft, _part(draft, draft.value(PARTS, least)))


def _with_imaginary(draft: Draft, real: SSAValue) -> SSAValue:
    """Complex numbers with these real parts."""
    imag = _part(draft, draft.another(real))
    return draft.put(stablehlo.ComplexOp(real, imag))[0]


def _changed(draft: Draft, value: SSAValue) -> SSAValue:
    """Numbers after a function."""
    cls, operands = CLASSES[draft.choice(FUNCTIONS)], [value]
    if cls in stablehlo.BINARY:
        real = draft.of(shape_of(value), element_of(part_type(value)))
        operands.append(_with_imaginary(draft, _part(draft, real)))
    op = cls.create(operands=operands, result_types=[value.type])
    return draft.put(op)[0]


def _taken_apart(draft: Draft, value: SSAValue) -> None:
    for _ in range(draft.random.randint(0, 1)):
        value = _changed(draft, value)
    for name in ("stablehlo.real", "stablehlo.imag"):
        draft.add(name, [value], [part_type(value)])


def _complex(draft: Draft, name: str) -> None:
    if name != "stablehlo.complex" and draft.chance(0.2):
        value = draft.value(PARTS)
        draft.add(name, [value], [value.type])
        return
    value = _made(draft)
    if name == "chlo.conj":
        op = CLASSES[name].create(operands=[value], result_types=[value.type])
        value = draft.put(op)[0]
    _taken_apart(draft, value)


def _fft(draft: Draft, name: str) -> None:
    kind = draft.choice(stablehlo.FftTypeAttr.WORDS)
    floats = kind == "RFFT"
    value = _part(draft, draft.value(PARTS, 1)) if floats else _made(draft, 1)
    shape = shape_of(value)
    lengths = list(shape[-draft.random.randint(1, len(shape)) :])
    made = value.type
    if kind == "IRFFT":
        lengths[-1] = max(2 * shape[-1] - draft.random.randint(1, 2), min(shape[-1], 1))
        made = tensor((*shape[:-1], lengths[-1]), element_of(part_type(value)))
    elif floats:
        made = tensor((*shape[:-1], lengths[-1] // 2 + 1), element_of(complex_type(value)))
    how = {"fft_type": stablehlo.FftTypeAttr(kind), "fft_length": integers(lengths)}
    op = CLASSES[name].create(operands=[value], result_types=[made], properties=how)
    if kind == "IRFFT":
        draft.values += draft.put(op)
    else:
        _taken_apart(draft, draft.put(op)[0])


TABLE: Mapping[str, Draw] = {
    "chlo.conj": _complex,
    "stablehlo.complex": _complex,
    "stablehlo.fft": _fft,
    "stablehlo.imag": _complex,
    "stablehlo.real": _complex,
}
"""What draws each operation, by name."""
