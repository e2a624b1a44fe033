"""Damaged files of weights, .safetensors, beside a whole program: bytes, entries and offsets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ...importers.safetensors import LENGTH_BYTES, MOST_HEADER_BYTES, file_parts
from .binary import damage_bytes
from .case import Case, Damaged
from .models import TARGET
from .trees import damage_tree, json_text

MODULE, WEIGHTS = "module.mlir", "w.safetensors"

TEXT = """
nn.state @fc.weight : tensor<4x3xf32> = <[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] : tensor<4x3xf32>>
nn.state @fc.bias : tensor<3xf32> = <[0.0, 1.0, 2.0] : tensor<3xf32>>
nn.state @count : tensor<i32> = <[7] : tensor<i32>>
func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<i32>)
    attributes {arg_names = ["x"], result_names = ["y", "n"]} {
  %w = nn.load @fc.weight : tensor<4x3xf32>
  %b = nn.load @fc.bias : tensor<3xf32>
  %n = nn.load @count : tensor<i32>
  %y = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z = nn.add %y, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %z, %n : tensor<2x3xf32>, tensor<i32>
}
"""
"""A program with three states."""

Header = dict[str, Any]


def weights(random: np.random.Generator) -> Case:
    """A whole program, and a damaged file of weights for it."""
    arrays = {
        "fc.weight": random.normal(size=(4, 3)).astype(np.float32),
        "fc.bias": random.normal(size=3).astype(np.float32),
        "count": np.array(3, np.int32),
    }
    whole = b"".join(file_parts({"format": "pt"}, arrays))
    made = DAMAGES[int(random.integers(len(DAMAGES)))](whole, random)
    partial = ("--partial-weights",) * int(random.integers(2))
    return Case(
        made.description,
        ("run", MODULE, "--weights", WEIGHTS, *partial, "--target", TARGET, "--check"),
        {MODULE: TEXT.encode(), WEIGHTS: made.data},
        damaged=WEIGHTS,
        is_source=True,
    )


def _parts(data: bytes) -> tuple[Header, bytes]:
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    return json.loads(data[LENGTH_BYTES:end]), data[end:]


def _file(text: bytes, elements: bytes) -> bytes:
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + elements


def _tree(data: bytes, random: np.random.Generator) -> Damaged:
    header, elements = _parts(data)
    tree, done = damage_tree(header, random)
    return Damaged(_file(json_text(tree), elements), done)


def _length(data: bytes, random: np.random.Generator) -> Damaged:
    lengths = (
        0,
        1,
        len(data),
        len(data) - LENGTH_BYTES,
        MOST_HEADER_BYTES,
        2**31,
        2**63,
        2**64 - 1,
    )
    length = lengths[int(random.integers(len(lengths)))]
    made = length.to_bytes(LENGTH_BYTES, "little") + data[LENGTH_BYTES:]
    return Damaged(made, f"a header of {length} bytes")


def _offsets(data: bytes, random: np.random.Generator) -> Damaged:
    """Tensors that overlap, leave gaps, or lie outside the file."""
    header, elements = _parts(data)
    names = [name for name in header if not name.startswith("__")]
    one, other = (names[int(i)] for i in random.choice(len(names), 2, replace=False))
    shift = int(random.choice([-4, -1, 1, 4, 2**40]))
    if random.random() < 0.3:
        header[one]["data_offsets"] = header[other]["data_offsets"]
        done = f"{one} where {other} is"
    else:
        header[one]["data_offsets"] = [n + shift for n in header[one]["data_offsets"]]
        done = f"{one} moved by {shift}"
    return Damaged(_file(json_text(header), elements), done)


def _twice(data: bytes, random: np.random.Generator) -> Damaged:
    header, elements = _parts(data)
    names = list(header)
    name = names[int(random.integers(len(names)))]
    again = json_text({name: header[name]})[1:-1]
    text = json_text(header)
    return Damaged(_file(text[:-1] + b"," + again + b"}", elements), f"{name} twice")


def _huge(data: bytes, random: np.random.Generator) -> Damaged:
    """A header of megabytes, in one of the forms that cost most to read."""
    header, elements = _parts(data)
    count = int(random.choice([10_000, 300_000]))
    texts = (
        b"[" * count,
        b" " * (count * 10),
        json_text(header) + b" " * (count * 10),
        json_text({**header, "__metadata__": {str(i): "x" for i in range(count)}}),
        json_text({**header, **{f"t{i}": header["count"] for i in range(count // 30)}}),
        b'{"' + b"x" * (count * 10) + b'": {}}',
    )
    which = int(random.integers(len(texts)))
    return Damaged(_file(texts[which], elements), f"header {which} of {len(texts[which])} bytes")


def _values(data: bytes, random: np.random.Generator) -> Damaged:
    """Another element type of the same width, or elements that are not finite."""
    header, elements = _parts(data)
    kinds = ("F32", "I32", "U32", "F8_E4M3", "BOOL", "F4", "f32", "C64")
    names = [name for name in header if not name.startswith("__")]
    name = names[int(random.integers(len(names)))]
    kind = kinds[int(random.integers(len(kinds)))]
    header[name]["dtype"] = kind
    if random.random() < 0.5:
        elements = b"\xff" * len(elements)
    return Damaged(_file(json_text(header), elements), f"{name} is {kind}")


DAMAGES: tuple[Callable[[bytes, np.random.Generator], Damaged], ...] = (
    *(damage_bytes, _tree, _tree, _length, _offsets, _twice, _huge, _values),
)
"""The ways to damage a file."""
