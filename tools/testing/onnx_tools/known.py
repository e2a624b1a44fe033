"""The tools that abele knows by name, and how the text of `--tool` names a tool."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which

from ....ir.support.errors import InputError

EACH = "each"
"""The option by which every model meets one part of the tool alone, chosen at random."""


@dataclass(frozen=True)
class Tool:
    """A tool under test.

    Attributes:
        name: as --tool spells it, without an option.
        adapter: the file in the folder adapters that calls it.
        package: what pip installs; "" for a command or a function.
        module: what the installation makes importable.
        options: what may follow the name and a colon, besides the names of its parts and EACH.
        option: the option that is given to the adapter.
        part: the only part that runs; "" for all, EACH for one per model.
        unsupported: a pattern of refusals by which the tool says that it does not support a model.
        contributed: whether it takes onnxruntime's own operators.
        function: the function to call; None for other tools.
        made: "transform" or "run" where the caller knows it, else "".
    """

    name: str
    adapter: str
    package: str = ""
    module: str = ""
    options: tuple[str, ...] = ()
    option: str = ""
    part: str = ""
    unsupported: str = ""
    contributed: bool = False
    function: Callable[..., object] | None = None
    made: str = ""

    @property
    def spelling(self) -> str:
        """The text for --tool."""
        if self.adapter in ("command", "function"):
            return self.option or self.name
        return ":".join(each for each in (self.name, self.option, self.part) if each)

    def is_unsupported(self, refusal: str) -> bool:
        """Whether a refusal says that the tool does not support the model."""
        return bool(self.unsupported and re.search(self.unsupported, refusal))


NOT_SUPPORTED = (
    r"(?i)not (yet )?(implemented|supported)|unsupported|NotImplemented|no op registered"
)
"""What most tools say about an operator, a type or a form that they do not support."""

KNOWN: dict[str, Tool] = {
    each.name: each
    for each in (
        Tool(
            "onnxruntime",
            "onnxruntime",
            "onnxruntime",
            "onnxruntime",
            ("none", "basic", "extended", "all"),
            unsupported="NOT_IMPLEMENTED",
            contributed=True,
        ),
        Tool("onnxsim", "onnxsim", "onnxsim", "onnxsim", ("subgraphs",)),
        Tool("onnxoptimizer", "onnxoptimizer", "onnxoptimizer", "onnxoptimizer", ("all",)),
        Tool("onnxscript", "onnxscript", "onnxscript", "onnxscript", ("rewriter",)),
        Tool("tinygrad", "tinygrad", "tinygrad", "tinygrad", unsupported=NOT_SUPPORTED),
        Tool("tvm", "tvm", "apache-tvm", "tvm", unsupported=NOT_SUPPORTED),
        Tool(
            "iree",
            "iree",
            "iree-base-compiler iree-base-runtime",
            "iree.compiler",
            unsupported=NOT_SUPPORTED + "|failed to legalize",
        ),
    )
}


def tool_of(text: str, python: str | None = None) -> Tool:
    """The tool that a text names. Raises InputError.

    A text is `NAME`, `NAME:OPTION`, `module:function`, or a command with `{in}`.

    Args:
        python: the interpreter that runs the tool, whose packages are not looked at; abele's own if
            None.
    """
    if python is not None and which(python) is None:
        raise InputError(f"--tool-python {python}: there is no such command")
    name, _, option = text.partition(":")
    if name in KNOWN:
        return _with_option(_installed(KNOWN[name], python), option)
    if "{in}" in text:
        return _command(text)
    if re.fullmatch(r"[\w.]+:[\w.]+", text):
        return _function(text, python)
    known = ", ".join(KNOWN)
    raise InputError(
        f"--tool {text}: no such tool; need one of {known} (with :OPTION), module:function, or a "
        "command such as 'optimise {in} {out}'"
    )


def _installed(tool: Tool, python: str | None) -> Tool:
    """The tool. Raises InputError if its package is not there."""
    if python is None and not _is_there(tool.module):
        raise InputError(
            f"--tool {tool.name}: its package is not installed: pip install {tool.package}; or "
            "name another Python that has it: --tool-python PATH"
        )
    return tool


def _is_there(module: str) -> bool:
    # The tool runs in a process of its own: what this one has loaded under the name says nothing.
    importlib.invalidate_caches()
    first = module.partition(".")[0]
    try:
        if not any(finder.find_spec(first, None) for finder in sys.meta_path):
            return False
        return first == module or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _with_option(tool: Tool, option: str) -> Tool:
    """The tool with an option: one of its own, the name of a part, or both with a colon."""
    first, _, rest = option.partition(":")
    if first in tool.options:
        return replace(tool, option=first, part=rest)
    if rest:
        need = ", ".join(tool.options) or "no option"
        raise InputError(f"--tool {tool.name}:{option}: {first!r} is no option; need {need}")
    return replace(tool, part=first)


def _command(text: str) -> Tool:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--tool {text}: cannot be split into words: {error}") from None
    if "{out}" not in text and "{data}" not in text:
        raise InputError(
            f"--tool {text}: need {{out}}, where the command writes a model, or {{data}}, the "
            "folder with its inputs where it writes outputs"
        )
    if not words or which(words[0]) is None:
        raise InputError(f"--tool {text}: there is no command {words[0] if words else ''!r}")
    # The command runs in a folder of its own.
    words = [str(Path(word).absolute()) if _is_file(word) else word for word in words]
    made = "run" if "{data}" in text else "transform"
    return Tool("command", "command", option=shlex.join(words), made=made)


def _is_file(word: str) -> bool:
    return "{" not in word and Path(word).is_file()


def _function(text: str, python: str | None) -> Tool:
    module = text.partition(":")[0]
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    if python is None and not _is_there(module):
        raise InputError(f"--tool {text}: there is no module {module}")
    return Tool("function", "function", option=text)
