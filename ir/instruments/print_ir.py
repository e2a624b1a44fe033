"""The program around passes, under mlir-opt's headings: into a stream, or as files of a tree."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..pass_manager import Instrument, Step
from ..printer import module_text
from ..upstream import ModuleOp
from ..whole_file import whole_file


class _Every:
    """All names."""

    def __contains__(self, name: object) -> bool:
        return True


EVERY: Container[str] = _Every()
"""Every pass, as a choice of passes."""


@dataclass(frozen=True)
class Chosen:
    """When to print: before and after these passes, after those that changed or failed."""

    before: Container[str] = ()
    after: Container[str] = ()
    on_change: bool = False
    on_failure: bool = False


@dataclass(frozen=True)
class Style:
    """How to print. generic: every operation in the generic form. locations: with loc(...)."""

    generic: bool = False
    locations: bool = False

    def text(self, module: ModuleOp) -> str:
        """The text of a module, ending in a newline."""
        return module_text(module, locations=self.locations, generic=self.generic)


BEFORE, AFTER, FAILED = "Before", "After", "After failed"

Sink = Callable[[str, Step, str], None]
"""Takes BEFORE, AFTER or FAILED, the step, and a text."""


def into_stream(stream: TextIO) -> Sink:
    """Texts one after the other, each under a heading."""

    def write(when: str, step: Step, text: str) -> None:
        stream.write(f"// -----// IR Dump {when} {step.current.name} //----- //\n{text}\n")

    return write


def into_tree(folder: Path) -> Sink:
    """A file each: FOLDER/builtin_module_NAME/INDEX_pass-name.mlir, as mlir-opt calls them."""
    suffixes = {BEFORE: ".before", AFTER: "", FAILED: ".failed"}

    def write(when: str, step: Step, text: str) -> None:
        name = f"{step.index}_{step.current.name}{suffixes[when]}.mlir"
        with whole_file(folder / "builtin_module_no-symbol-name" / name) as stream:
            stream.write(text.encode())

    return write


class PrintIR(Instrument):
    """Print the module around the passes that are chosen."""

    def __init__(self, chosen: Chosen, sink: Sink, style: Style | None = None) -> None:
        self._chosen = chosen
        self._sink = sink
        self._style = style or Style()
        self._previous = ""

    def before(self, step: Step, module: ModuleOp) -> None:
        """Print it if it is wanted; remember the text, to see what changes."""
        wanted = step.current.name in self._chosen.before
        self._previous = self._style.text(module) if wanted or self._chosen.on_change else ""
        if wanted:
            self._sink(BEFORE, step, self._previous)

    def after(self, step: Step, module: ModuleOp) -> None:
        """Print it if it is wanted."""
        if not self._chosen.on_change and step.current.name not in self._chosen.after:
            return
        text = self._style.text(module)
        if step.current.name in self._chosen.after or text != self._previous:
            self._sink(AFTER, step, text)

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Print what a failing pass has left, as far as it can be printed."""
        if self._chosen.on_failure or step.current.name in self._chosen.after:
            self._sink(FAILED, step, self._style.text(module))
