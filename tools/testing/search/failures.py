"""What a check has to say where it fails: the compiler is wrong, or what was given is at fault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..generators.program import Program


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a program after passes.

    kind: "value", other results; "invalid", it does not verify; "fault", it cannot be run; "text",
    it cannot be printed and read again; "random", two runs differ; "hang", it does not end;
    "narrow", its results are coarser than their types; "relation", a relation does not hold. text:
    in words. relation: the name of the one that does not hold.
    """

    kind: str
    text: str
    relation: str = ""


def told(program: Program, folder: Path | None, command: str) -> list[str]:
    """What every message ends with: the program, where it was saved, what runs it again."""
    lines = [program.text.rstrip()]
    if folder is not None:
        lines += ["", f"saved in {folder}"]
    if command:
        lines.append(f"replay: {command}")
    return lines


class Miscompiled(AssertionError):
    """A program that means something else after a pass. The message has all there is to know.

    program: the smallest found, before the pass. passes: their names; blamed: the one. rewrite: the
    one of its rewrites without which nothing is wrong, "" if that cannot be told. folder: where the
    program was saved; command: what runs it again.
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
        return "\n".join((*lines, *told(self.program, self.folder, self.command)))


class AtFault(Exception):
    """Something that was given has failed itself, whatever the program means.

    program: the one that it was given. name: of what is at fault. rewrite: the one that it was at,
    if it is a pass and reports them; or "". Its own error is the cause.
    """

    what: ClassVar[str] = ""

    def __init__(
        self,
        program: Program,
        name: str,
        problem: str,
        folder: Path | None = None,
        command: str = "",
        rewrite: str = "",
    ) -> None:
        self.program = program
        self.name = name
        self.problem = problem
        self.folder = folder
        self.command = command
        self.rewrite = rewrite
        lines = [f"{self.what} '{name}' {problem}, on {program.target.spelling()}:"]
        lines += [f"in rewrite {rewrite}", ""] if rewrite else [""]
        super().__init__("\n".join((*lines, *told(program, folder, command))))


class PassFailed(AtFault):
    """A pass raised, or did not end."""

    what = "pass"


class RelationFailed(AtFault):
    """A relation raised: nothing is known of the passes."""

    what = "relation"


class StrategyFailed(Exception):
    """What makes the programs has failed: it raised, or made one that is none.

    program: that one, or None. The strategy's own error is the cause.
    """

    def __init__(self, problem: str, program: Program | None = None) -> None:
        self.problem = problem
        self.program = program
        shown = (
            [] if program is None else [", on " + program.target.spelling() + ":\n", program.text]
        )
        super().__init__(f"the strategy {problem}" + "\n".join(shown))


def said(error: BaseException) -> str:
    """An error in one line, with what was noted on its way: the rule that it was raised in."""
    first = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return "; ".join([first, *(str(note) for note in getattr(error, "__notes__", ()))])
