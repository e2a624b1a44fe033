"""Prints the program before and after passes as mlir-opt does, to a stream or to files."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..pass_manager import Instrument
from ..printer import module_text
from ..step import RunningPass
from ..support.whole_file import whole_file
from ..text_version import with_version
from ..upstream import ModuleOp


class _Every:
    """A container of all names."""

    def __contains__(self, name: object) -> bool:
        return True


EVERY: Container[str] = _Every()
"""Selects every pass."""


@dataclass(frozen=True)
class Chosen:
    """When to print.

    Attributes:
        before, after: the names of the passes before and after which to print.
        on_change: whether to print after each pass that changed the text.
        on_failure: whether to print after a pass failed.
    """

    before: Container[str] = ()
    after: Container[str] = ()
    on_change: bool = False
    on_failure: bool = False


@dataclass(frozen=True)
class Style:
    """How to print.

    Attributes:
        generic: whether to use the generic form.
        locations: whether to print them.
    """

    generic: bool = False
    locations: bool = False

    def text(self, module: ModuleOp) -> str:
        """The text of a module, ending in a newline."""
        return module_text(module, locations=self.locations, generic=self.generic)


BEFORE, AFTER, FAILED = "Before", "After", "After failed"

Sink = Callable[[str, RunningPass, str], None]
"""Writes a text. Takes BEFORE, AFTER or FAILED, then the step, then the text."""


def into_stream(stream: TextIO) -> Sink:
    """A sink that writes the texts one after another, each under a heading."""

    def write(when: str, step: RunningPass, text: str) -> None:
        stream.write(f"// -----// IR Dump {when} {step.current.name} //----- //\n{text}\n")

    return write


def into_tree(folder: Path) -> Sink:
    """A sink that writes each text to a file, named as by mlir-opt.

    The name is FOLDER/builtin_module_NAME/INDEX_pass-name.mlir.
    """
    suffixes = {BEFORE: ".before", AFTER: "", FAILED: ".failed"}

    def write(when: str, step: RunningPass, text: str) -> None:
        name = f"{step.index}_{step.current.name}{suffixes[when]}.mlir"
        with whole_file(folder / "builtin_module_no-symbol-name" / name) as stream:
            stream.write(with_version(text).encode())

    return write


class PrintIR(Instrument):
    """Print the module before and after the chosen passes."""

    def __init__(self, chosen: Chosen, sink: Sink, style: Style | None = None) -> None:
        self._chosen = chosen
        self._sink = sink
        self._style = style or Style()
        self._previous = ""

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Print the module if chosen. Keep its text if needed to detect a change."""
        wanted = step.current.name in self._chosen.before
        self._previous = self._style.text(module) if wanted or self._chosen.on_change else ""
        if wanted:
            self._sink(BEFORE, step, self._previous)

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Print the module if chosen."""
        if not self._chosen.on_change and step.current.name not in self._chosen.after:
            return
        text = self._style.text(module)
        if step.current.name in self._chosen.after or text != self._previous:
            self._sink(AFTER, step, text)

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        """Print the module that a failed pass left, if chosen."""
        if self._chosen.on_failure or step.current.name in self._chosen.after:
            self._sink(FAILED, step, self._style.text(module))
