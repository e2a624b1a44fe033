"""Reads the text in columns of measurements: sizes, element types and rates."""

from __future__ import annotations

import re
from collections.abc import Mapping

SIZE = r"\d+(?:\.\d+)?"
KEYS = re.compile(rf"((?:[A-Za-z_]\w*\s*=\s*)+)({SIZE}(?:/{SIZE}|(?:[x*]\d+)*))\s*([kKM%]?)(?!\w)")
NAMED = re.compile(
    r"\b(stride|pad|padding|dilation|groups|batch|density|sparsity|block|block size|in|out|input"
    r"|image|kernel|filter|channels in|channels out)\s*:?\s+(?=\d)"
)
WINDOW = re.compile(r"\b(\d+x\d+(?:x\d+)?)[ -]+(?:kernel|filter|window|conv)", re.IGNORECASE)
CONVOLVED = re.compile(r"\bconv\w*\s+(?=\d+x\d+)", re.IGNORECASE)
BOX = re.compile(r"(?<![\w=.])(\d+(?:\s*[x*]\s*\d+)+)(?![\w.])")
COUNT = re.compile(rf"({SIZE})\s*([kKM]?)\s+(?:el\b|elem|values)")

SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "%": 1e-2}

TYPES: Mapping[str, str] = {
    "fp32": "float32",
    "f32": "float32",
    "float32": "float32",
    "float": "float32",
    "single": "float32",
    "float2": "float32",
    "fp16": "float16",
    "f16": "float16",
    "float16": "float16",
    "half": "float16",
    "half4": "float16",
    "half2": "float16",
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "float8": "float8_e4m3fn",
    "f8": "float8_e4m3fn",
    "quarter": "float8_e4m3fn",
    "int32": "int32",
    "i32": "int32",
    "int": "int32",
    "uint32": "uint32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "uint8",
    "bool": "bool",
}
ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "int32": 4}

NAMES = "|".join(sorted(TYPES, key=len, reverse=True))
TYPE = re.compile(rf"\b({NAMES})\b", re.IGNORECASE)
PAIR = re.compile(r"\b(?:fp|f|float)?(16|32)[.](16|32)\b", re.IGNORECASE)
PARTIALS = re.compile(
    rf"\b({NAMES})\s+(?:partials?|acc\w*|out\w*)\b|\b(?:partials?|acc\w*)\s*(?:in|of|type|[:=])?\s*({NAMES})\b",
    re.IGNORECASE,
)

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
FLOPS = re.compile(r"([KMGTP]?)FLOPS?(?:/s)?", re.IGNORECASE)
BYTES = re.compile(r"([KMGTP]?)B/s")
SAMPLES = re.compile(r"([KMGTP]?)(?:samples|images)/s")


class Unclear(ValueError):
    """A row cannot be understood or priced. The message is the reason."""


def keyed(text: str) -> str:
    """The text with `=` added where it is omitted: in `stride 2`, `3x3 kernel`, `conv 3x3`."""
    text = WINDOW.sub(r"kernel=\1 ", text)
    text = CONVOLVED.sub("kernel=", text)
    return NAMED.sub(lambda found: f"{found[1].replace(' ', '_')}=", text)


def sizes(text: str) -> dict[str, float]:
    """Values by lower-case key: `m=k=1024,n=4` has three. For `kernel=3x3`, see `boxes`.

    Raises Unclear.
    """
    found: dict[str, float] = {}
    for keys, value, unit in KEYS.findall(keyed(text)):
        if not re.search(r"[x*]", value):
            over, _, under = value.partition("/")
            if under and not float(under):
                raise Unclear(f"shape {text!r}: {value}; need a number")
            for key in re.findall(r"\w+", keys):
                found[key.lower()] = float(over) / float(under or 1) * SCALE[unit]
    return found


def boxes(text: str) -> dict[str, tuple[int, ...]]:
    """Extents by lower-case key, as in `kernel=3x3`. A key with one number has one extent."""
    found: dict[str, tuple[int, ...]] = {}
    for keys, value, _ in KEYS.findall(keyed(text)):
        if not re.search(r"[./]", value):
            for key in re.findall(r"\w+", keys):
                found[key.lower()] = tuple(int(n) for n in re.split(r"[x*]", value))
    return found


def box(text: str) -> tuple[int, ...]:
    """The first extents, such as `2200x1122x4` or `360^3`, that have no key. Raises Unclear."""
    power = re.search(r"\b(\d+)\^([1-4])\b", text)
    if power is not None:
        return (int(power[1]),) * int(power[2])
    found = BOX.search(text)
    if found is None:
        raise Unclear(f"shape {text!r}: no extents; need extents such as 2200x1122x4")
    return tuple(int(n) for n in re.split(r"\s*[x*]\s*", found[1]))


def whole(found: Mapping[str, float], *keys: str, default: int | None = None) -> int:
    """The positive integer of the first of these keys that is present. Raises Unclear."""
    for key in keys:
        if key in found:
            value = found[key]
            if value < 1 or value != int(value):
                raise Unclear(f"shape: {key}={value:g}; need a positive integer")
            return int(value)
    if default is None:
        raise Unclear(f"shape: no {keys[0]}; need {keys[0]}=, a positive integer")
    return default


def elements(text: str) -> int:
    """The number of elements in a text such as `66.24M elements` or `N=64`. Raises Unclear."""
    found = COUNT.search(text)
    if found is not None:
        count = float(found[1]) * SCALE[found[2]]
    else:
        keyed = sizes(text)
        named = next((k for k in ("n", "elements", "size") if k in keyed), None)
        if named is None:
            raise Unclear(f"shape {text!r}: no count; need one such as '64 elements'")
        count = keyed[named]
    if count < 1:
        raise Unclear(f"shape {text!r}: {count:g} elements; need one or more")
    return round(count)


def dtypes(text: str) -> tuple[str, str]:
    """The types of operands and of partial sums; the latter "" if not named. Raises Unclear.

    `fp16.32` means operands of 16 bits and partials of 32.
    """
    pair = PAIR.search(text)
    if pair is not None:
        return f"float{pair[1]}", f"float{pair[2]}"
    named = [TYPES[name.lower()] for name in TYPE.findall(text)]
    if not named:
        raise Unclear(f"dtype {text!r}; need one of {', '.join(sorted(TYPES))}")
    found = PARTIALS.search(text)
    if found is None:
        return named[0], ""
    return named[0], TYPES[(found[1] or found[2]).lower()]


def element_bytes(dtype: str) -> int:
    """The bytes of one element."""
    return ELEMENT_BYTES.get(dtype, 4)


def cycles(
    value: float,
    unit: str,
    quantity: str,
    clock_hz: float,
    operations: float,
    moved: float,
    samples: int = 0,
) -> float:
    """A measured value, converted to cycles of one step. Raises Unclear.

    Args:
        operations, moved, samples: the additions and multiplications, the bytes, and the samples,
            that a rate counts.
    """
    per = re.search(r"per (\d+) (?:steps|iterations|repeats|runs)", quantity)
    steps = int(per[1]) if per else 1
    name = unit.strip()
    if name.lower() in ("cycles", "cycle", "cyc"):
        return value / steps
    if name in SECONDS:
        return value * SECONDS[name] * clock_hz / steps
    rates = ((FLOPS, operations), (BYTES, moved), (SAMPLES, samples))
    found = ((rate.fullmatch(name), work) for rate, work in rates)
    prefix, work = next(((prefix, work) for prefix, work in found if prefix and work), (None, 0.0))
    if prefix is None:
        known = "a rate such as TFLOP/s, TB/s of a triad, or samples/s of a network"
        raise Unclear(f"unit {unit!r}; need cycles, s, ms, us, ns, {known}")
    if value <= 0:
        raise Unclear(f"value {value:g} {unit}; need a positive rate")
    return work / (value * PREFIX[prefix[1].upper()]) * clock_hz
