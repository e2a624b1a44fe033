"""The modules and lines of Python that nodes of PyTorch's models come from, and names after them.

PyTorch's exporters write, for each node, the modules that it was called in, and the stack of calls.
Both come from files that anybody may have written: text of another form is ignored, and so is text
beyond the limits below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MOST_PATH = 200
"""The most characters of the path of a module. Assumed: longer ones were not written by people."""

MOST_FILE = 100
"""The most characters of the name of a file; of longer ones, the end is kept."""

MOST_TEXT = 200
"""The most characters of a line of Python; of longer ones, the beginning is kept."""

MOST_TRACE = 1 << 16
"""The most characters of a stack that are searched, from its innermost call on."""

_OTHER = re.compile(r"[^\w@-]+")

_CONSTANT = re.compile(r"Constant(_\d+)?")

_FRAME = re.compile(
    r'^[ \t]{0,8}File "([^"\n]{1,4096})", line ([0-9]{1,9})\b[^\n]*'
    r'(?:\n(?![ \t]{0,8}File ")[ \t]{0,256}([^\n]*))?',
    re.MULTILINE,
)
"""A call in a stack: its file, its line, and the text of the line, if the stack has it."""

_TRACED = re.compile(r"^(\S[^\n]{0,4092}\.py)\(([0-9]{1,9})\): [^\n]*$", re.MULTILINE)
"""A call in a stack as the tracer of TorchScript writes it: net.py(12): forward."""

_OF_TORCH = re.compile(
    r"(?:^|/)(?:site|dist)-packages/torch/|"
    r"/torch/(?:(?:_\w+|nn|fx|export|onnx|utils|ao|jit)/|(?:_\w+|functional)\.py$)"
)
"""What is in the path of each file of PyTorch: installed, or built from source."""

_GENERATED = re.compile(r"<(?!ipython)")
"""The name of a text that is no file. Cells of notebooks have such names too."""


@dataclass(frozen=True)
class SourceLine:
    """A line of Python.

    Attributes:
        file: its name, without its folder.
        line: counted from 1.
        text: what it says; "" if that is not known.
    """

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def module_path(text: str) -> str | None:
    """The path of a module, such as blocks.0.attn; None if the text is too long for one.

    Modules may be called anything. What is no letter, digit or dash becomes "_". A module's second
    call may be called attn@1.
    """
    if len(text) > MOST_PATH:
        return None
    return ".".join(_OTHER.sub("_", part) for part in text.split(".") if part)


def names_by_module(nodes: Sequence[tuple[str, str]]) -> list[str]:
    """A name for each node: its module, followed by its operator, as in blocks.0.attn.MatMul.

    A module that calls no other module and has one node gives that node its name, unless it is only
    a number. Constants have no such name, and do not count. Names may repeat.

    Args:
        nodes: the path of the module of each node, "" for the model itself; and the operator of
            the node, or its name within the module.
    """
    own = Counter(module for module, operator in nodes if not _CONSTANT.fullmatch(operator))
    outer = {around for module in own for around in _around(module)}
    names: list[str] = []
    for module, operator in nodes:
        alone = own[module] == 1 and module not in outer and not module.isdecimal() and module
        if alone and not _CONSTANT.fullmatch(operator):
            names.append(module)
        else:
            step = _OTHER.sub("_", operator[:MOST_PATH])
            names.append(f"{module}.{step}" if module else step)
    return names


def _around(module: str) -> list[str]:
    """The paths of the modules around a module."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def users_line(stack: str) -> SourceLine | None:
    """The innermost line of a stack of calls that is not PyTorch's own; None if there is none.

    Args:
        stack: as Python prints it, the outermost call first.
    """
    every = (_users(*call) for call in _FRAME.findall(stack[-MOST_TRACE:]))
    return next((each for each in list(every)[::-1] if each is not None), None)


def users_traced_line(stack: str) -> SourceLine | None:
    """The innermost line of a traced stack that is not PyTorch's own; None if there is none.

    Args:
        stack: as the tracer of TorchScript writes it, the innermost call first.
    """
    every = (_users(*call) for call in _TRACED.findall(stack[:MOST_TRACE]))
    return next((each for each in every if each is not None), None)


def _users(file: str, line: str, text: str = "") -> SourceLine | None:
    """A line of a file; None if it is PyTorch's own, or of what is no file."""
    path = file.replace("\\", "/")
    if not int(line) or _GENERATED.match(path) or _OF_TORCH.search(path):
        return None
    name = re.sub(r"[^\w.@+=~<> -]+", "_", path.rpartition("/")[2][-MOST_FILE:])
    return SourceLine(name, int(line), _plain(text))


def _plain(text: str) -> str:
    """A line of Python without indentation, with one space for each control character."""
    return "".join(c if c.isprintable() else " " for c in text[:MOST_TEXT]).strip()
