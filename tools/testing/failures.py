"""What a check has to say where it fails: the compiler is wrong, or the pass itself is at fault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .program import Program


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a program after passes.

    kind: "value", other results; "invalid", it does not verify; "fault", it cannot be run; "text",
    it cannot be printed and read again; "random", two runs differ; "hang", it does not end;
    "relation", a relation of the user's does not hold. text: in words.
    """

    kind: str
    text: str


class Miscompiled(AssertionError):
    """A program that means something else after a pass. The message has all there is to know.

    program: the smallest found, before the pass. passes: their names; blamed: the one. folder:
    where the program was saved; command: what runs it again.
    """

    def __init__(
        self,
        program: Program,
        wrong: Wrong,
        passes: tuple[str, ...],
        blamed: str,
        rewrite: str = "",
        folder: Path | None = None,
        command: str = "",
        examples: int = 0,
    ) -> None:
        self.program = program
        self.wrong = wrong
        self.passes = passes
        self.blamed = blamed
        self.rewrite = rewrite
        self.folder = folder
        self.command = command
        self.examples = examples
        super().__init__(self._text())

    def _text(self) -> str:
        place = "" if len(self.passes) == 1 else f", of {', '.join(self.passes)}"
        after = f" (example {self.examples})" if self.examples else ""
        lines = [f"after pass '{self.blamed}'{place}{after}: {self.wrong.text}"]
        if self.rewrite:
            lines.append(f"rewrite {self.rewrite}")
        lines += ["", f"The program before it, on {self.program.target.spelling()}:", ""]
        lines.append(self.program.text.rstrip())
        if self.folder is not None:
            lines += ["", f"saved in {self.folder}"]
        if self.command:
            lines.append(f"replay: {self.command}")
        return "\n".join(lines)


class PassFailed(Exception):
    """A pass raised, or did not end: it is at fault itself, whatever the program means.

    program: the one that it was given. The pass's own error is the cause.
    """

    def __init__(
        self,
        program: Program,
        name: str,
        problem: str,
        folder: Path | None = None,
        command: str = "",
    ) -> None:
        self.program = program
        self.name = name
        self.problem = problem
        self.folder = folder
        self.command = command
        lines = [f"pass '{name}' {problem}, on {program.target.spelling()}:", ""]
        lines.append(program.text.rstrip())
        if folder is not None:
            lines += ["", f"saved in {folder}"]
        if command:
            lines.append(f"replay: {command}")
        super().__init__("\n".join(lines))
