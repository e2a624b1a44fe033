"""ONNX models whose nodes have hostile properties, where PyTorch writes modules and stacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import onnx

from ...importers.onnx.origins import MODULES, NAMESPACE, STACK
from .case import Case, Damaged
from .models import READERS, model_case
from .onnx_models import NAMES, undamaged

Item = TypeVar("Item")

REPORTS: tuple[tuple[str, ...], ...] = (
    ("report", "MODEL", "-o", "report"),
    ("report", "MODEL", "-o", "report", "--passes"),
    ("scan", "MODEL", "-o", "scan.png", "--size", "256"),
)
"""Commands that write the text of properties into pages and tables."""

MOST_DAMAGED = 3
"""The most properties that are damaged in a model."""

LARGE = 4_000_000
"""Characters of the largest properties."""

PATHS = (
    *("net.py", "/home/me/net.py", "..\\net.py", "/etc/passwd", "../../x", "<string>", "", " "),
    *("a b(c).py", "net.py:3:4", "\x1b[2J.py", "</script><img src=x onerror=alert(1)>.py"),
    *("\u202eyp.ten", "/x/site-packages/torch/nn/modules/linear.py", "n" * 5000, "é" * 3000),
)
"""Files in stacks of calls."""

LINES = ("0", "1", "12", "-1", "9" * 9, "9" * 4300, "١٢", "1e3", "", "0x1f")
"""Numbers of lines, as texts."""

CODE = (
    *("x = self.conv(x)", "", "</script><script>alert(1)</script>", "\x1b]0;title\x07", "\t" * 500),
    *("{{DATA}}", "'\"&<>", "\u2028x\u202e", "y" * 100_000),
)
"""Texts of lines."""

SCOPES = (
    *("blocks.0", "blocks.0.attn", "", ".", "a..b", "0", "a+b", "a/b", "main", "x" * 300, "é"),
    *("a" * 199 + ".b", ".".join("a" * 99), "<b>", "]", "a\nb", "a'b", "@1", "blocks.0/blocks.1"),
)
"""Names of modules."""

FILLINGS = (
    "[",
    "'",
    "(",
    "\n",
    " ",
    "/",
    ": ",
    "['', ",
    'File "',
    'File "a", line 1\n',
    "\\",
    "a.",
)
"""Texts that are repeated up to LARGE characters."""


def hostile_metadata(random: np.random.Generator) -> Case:
    """A command that reads a model with hostile properties."""
    model = onnx.ModelProto()
    model.CopyFrom(undamaged(int(random.integers(50))))
    model.producer_name = _one(("pytorch", "pytorch", "", "keras"), random)
    for index, node in enumerate(model.graph.node):
        _describe(node, index)
    done: list[str] = []
    nodes = model.graph.node
    while nodes and len(done) < int(random.integers(1, MOST_DAMAGED + 1)):
        done.append(_one(DAMAGE, random)(_one(nodes, random), random))
    made = Damaged(model.SerializeToString(), "; ".join(done))
    readers = READERS if random.random() < 0.75 else REPORTS
    return model_case("model.onnx", made, random, is_source=True, readers=readers)


def _one(items: Sequence[Item], random: np.random.Generator) -> Item:
    return items[int(random.integers(len(items)))]


def _describe(node: onnx.NodeProto, index: int) -> None:
    """Give a node the properties that PyTorch writes."""
    module = f"blocks.{index % 3}"
    call = node.op_type.lower()
    _set(node, MODULES, str(["", module, call]))
    _set(node, NAMESPACE, f": net.Net/{module}: net.Block/{call}: aten.{call}.default")
    _set(node, STACK, _frame("/home/me/net.py", str(index + 1), f"x = {call}(x)"))


def _set(node: onnx.NodeProto, key: str, text: str) -> None:
    found = next((each for each in node.metadata_props if each.key == key), None)
    entry = node.metadata_props.add(key=key) if found is None else found
    entry.value = text


def _frame(file: str, line: str, code: str) -> str:
    return f'File "{file}", line {line}, in forward\n    {code}\n'


def _stack(node: onnx.NodeProto, random: np.random.Generator) -> str:
    frames = [
        _frame(_one(PATHS, random), _one(LINES, random), _one(CODE, random))
        for _ in range(int(random.integers(1, 4)))
    ]
    _set(node, STACK, "".join(frames))
    return "hostile calls"


def _scopes(node: onnx.NodeProto, random: np.random.Generator) -> str:
    scopes = [_one(SCOPES, random) for _ in range(int(random.integers(1, 5)))]
    _set(node, MODULES, str(["", *scopes, "call"]))
    _set(node, NAMESPACE, "/".join(f"{each}: net.Net" for each in ["", *scopes, "call"]))
    return f"in modules {[each[:20] for each in scopes]}"


def _no_list(node: onnx.NodeProto, random: np.random.Generator) -> str:
    text = _one(
        (
            *("", "[]", "{}", "['a'", "__import__('os').abort()", "[''] * 10**9", "['a', 1]"),
            *("['', '\\x00', 'a']", "['', 'a'], 'b'", "None", "[['a']]", "['', 'a' 'b', 'c']"),
        ),
        random,
    )
    _set(node, MODULES, text)
    return f"modules {text!r}"


def _megabytes(node: onnx.NodeProto, random: np.random.Generator) -> str:
    key, part = _one((MODULES, NAMESPACE, STACK, "other"), random), _one(FILLINGS, random)
    size = LARGE // int(random.integers(1, 100))
    _set(node, key, (part * (size // len(part) + 1))[:size])
    return f"{size} characters of {part!r} as {key}"


def _many(node: onnx.NodeProto, random: np.random.Generator) -> str:
    key, count = _one((MODULES, STACK, "", "other"), random), int(random.integers(2, 20_000))
    for number in range(count):
        node.metadata_props.add(key=key, value=str(number))
    return f"{count} properties {key!r}"


def _name(node: onnx.NodeProto, random: np.random.Generator) -> str:
    parts = [_one((*SCOPES, *NAMES), random) for _ in range(int(random.integers(1, 4)))]
    node.name = "/" + "/".join(parts)
    return f"a node called {node.name[:40]!r}"


def _not_text(node: onnx.NodeProto, random: np.random.Generator) -> str:
    """Bytes that are not UTF-8. protobuf writes them if they come from a file."""
    key = _one((MODULES, NAMESPACE, STACK), random).encode()
    raw = b"\xff\xfe['', 'a', 'b']"
    node.MergeFromString(_field(9, _field(1, key) + _field(2, raw)))
    return f"no text as {key.decode()}"


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes in the format of protobuf, shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


def _without(node: onnx.NodeProto, random: np.random.Generator) -> str:
    del node.metadata_props[int(random.integers(len(node.metadata_props) + 1)) :]
    return "without properties"


DAMAGE: tuple[Callable[[onnx.NodeProto, np.random.Generator], str], ...] = (
    *(_stack, _scopes, _no_list, _megabytes, _many, _name, _not_text, _without),
)
"""The changes, each of which returns its description."""
