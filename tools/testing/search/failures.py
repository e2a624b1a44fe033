"""The failures of a check: a miscompiled program, or a pass, relation or strategy that fails."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..generators.program import Program


@dataclass(frozen=True)
class Wrong:
    """A failure of a program after passes.

    Attributes:
        kind: "value", its results differ; "invalid", it does not verify; "fault", it cannot be run;
            "text", it cannot be printed and read again; "random", two runs differ; "hang", it does
            not end; "narrow", its results are less exact than their types allow; "relation", a
            relation does not hold; "refused", a later pass refuses it; "kernel", compiled kernels
            give other bytes than NumPy does; "gradient", gradients that a pass adds differ from
            differences; "promise", a pass does not do what it declares.
        text: the same in words.
        relation: the name of the relation that does not hold.
        error: the type of the error that was raised, for a fault.
        blamed: the pass or kernels to blame, "" if not known.
    """

    kind: str
    text: str
    relation: str = ""
    error: str = ""
    blamed: str = ""

    @property
    def way(self) -> tuple[str, str, str, str]:
        """The features that two failures share if they fail in the same way."""
        return self.kind, self.relation, self.error, self.blamed


def ending(program: Program, folder: Path | None, command: str) -> list[str]:
    """The last lines of every message: the program, its folder, and the command to run it again."""
    return [program.text.rstrip(), *saved_lines(folder, command)]


def saved_lines(folder: Path | None, command: str) -> list[str]:
    """The lines of a message with a failing program's folder and the command to run it again."""
    lines = ["", f"saved in {folder}"] if folder is not None else []
    return [*lines, f"replay: {command}"] if command else lines


class Miscompiled(AssertionError):
    """Raised if a pass changes the meaning of a program. The message shows everything below.

    Attributes:
        program: the smallest failing program found, before the pass.
        passes: the names of the passes that ran.
        blamed: the name of the wrong pass.
        rewrite: the rewrite that makes the program wrong, "" if it is not known.
        folder: where the program is saved.
        command: the command that runs it again.
        examples: the number of programs up to this one.
        note: a remark that the program is not fully reduced, or "".
        culprit: the codelet or layout that is to blame instead of the pass, "" if the pass is.
        after: the text of the program after the passes, "" if there is none.
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
        *,
        note: str = "",
        culprit: str = "",
        after: str = "",
    ) -> None:
        self.after = after
        self.program = program
        self.wrong = wrong
        self.passes = passes
        self.blamed = blamed
        self.rewrite = rewrite
        self.folder = folder
        self.command = command
        self.examples = examples
        self.note = note
        self.culprit = culprit
        super().__init__(self._text())

    def _text(self) -> str:
        place = "" if len(self.passes) == 1 else f", of {', '.join(self.passes)}"
        after = f" (example {self.examples})" if self.examples else ""
        if self.wrong.kind == "kernel":
            lines = [f"{self.wrong.text}{after}"]
        else:
            lines = [f"after pass '{self.blamed}'{place}{after}: {self.wrong.text}"]
        if self.rewrite:
            lines.append(f"rewrite {self.rewrite}")
        if self.culprit:
            lines += [
                f"The output of pass '{self.blamed}' is right: on whole tensors, without layouts "
                "and codelets, it gives the expected results.",
                f"To blame is {self.culprit}",
            ]
        lines += [self.note] if self.note else []
        lines += ["", f"The program before it, on {self.program.target.spelling()}:", ""]
        if self.after:
            lines += [self.program.text.rstrip(), "", "The program after it:", ""]
            return "\n".join((*lines, self.after, *saved_lines(self.folder, self.command)))
        return "\n".join((*lines, *ending(self.program, self.folder, self.command)))


class AtFault(Exception):
    """Raised if a pass or a relation itself fails, regardless of results.

    Its own error is the cause.

    Attributes:
        program: the program on which it failed.
        name: the pass or relation.
        problem: the kind of failure.
        rewrite: the rewrite that a pass was making, "" if it is not known.
        note: a remark that the program is not fully reduced, or "".
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
        *,
        note: str = "",
    ) -> None:
        self.program = program
        self.name = name
        self.note = note
        self.problem = problem
        self.folder = folder
        self.command = command
        self.rewrite = rewrite
        lines = [f"{self.what} '{name}' {problem}, on {program.target.spelling()}:"]
        lines += [f"in rewrite {rewrite}"] if rewrite else []
        lines += [note, ""] if note else [""]
        super().__init__("\n".join((*lines, *ending(program, folder, command))))


class PassFailed(AtFault):
    """Raised if a pass raises or does not end."""

    what = "pass"


class RelationFailed(AtFault):
    """Raised if a relation raises, so that nothing is known about the passes."""

    what = "relation"


class ToolFailed(AssertionError):
    """Raised if a tool of ONNX models fails on a model. The message shows the reduced model.

    Attributes:
        kind: the kind of the failure, such as "crash" or "value".
        folder: where it is saved, with a script that shows it without abele.
    """

    def __init__(self, kind: str, text: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        script = f"shown without abele by: python {folder / 'reproduce.py'}"
        super().__init__(f"{text}\n\nsaved in {folder}\n{script}")


class Untested(AssertionError):
    """Raised if passes changed hardly any program, so that the check shows nothing about them.

    Attributes:
        problem: what happened, and how the level was found.
        advice: what to pass to the check.
    """

    def __init__(self, problem: str, advice: str) -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(f"{problem}\n{advice}")


class StrategyFailed(Exception):
    """Raised if a strategy of programs raises or does not give a valid program.

    The strategy's own error is the cause.

    Attributes:
        program: the strategy's result, or None.
    """

    def __init__(self, problem: str, program: Program | None = None) -> None:
        self.problem = problem
        self.program = program
        shown = (
            [] if program is None else [", on " + program.target.spelling() + ":\n", program.text]
        )
        super().__init__(f"the strategy {problem}" + "\n".join(shown))
