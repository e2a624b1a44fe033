"""The errors that a check of a rule raises."""

from __future__ import annotations

from pathlib import Path

from ....ir.rules.bound_rule import BoundRule
from ..generators.program import Program
from ..search.failures import Miscompiled, PassFailed, Wrong, saved_lines


class RuleWrong(Miscompiled):
    """Raised if a rule changes the meaning of a program, or does not fire exactly where it matches.

    Attributes:
        program: the smallest failing program found, before the rule.
        made: the text of the program after the rule.
    """

    def __init__(
        self,
        rule: BoundRule,
        program: Program,
        wrong: Wrong,
        made: str = "",
        folder: Path | None = None,
        command: str = "",
        examples: int = 0,
        *,
        note: str = "",
    ) -> None:
        self.rule = rule
        self.made = made
        source = str(rule.source)
        super().__init__(
            program, wrong, (rule.name,), rule.name, source, folder, command, examples, note=note
        )

    def _text(self) -> str:
        after = f", example {self.examples}" if self.examples else ""
        lines = [f"rule {self.rule.source}{after}: {self.wrong.text}", "", self.rule.text.rstrip()]
        lines += ["", self.note] if self.note else []
        lines += ["", f"The program, on {self.program.target.spelling()}:", ""]
        lines.append(self.program.text.rstrip())
        if self.made:
            lines += ["", "The program after the rule:", "", self.made.rstrip()]
        return "\n".join([*lines, *saved_lines(self.folder, self.command)])


class RuleFailed(PassFailed):
    """Raised if a rule itself fails: its Python code raises or hangs, or its right side is invalid.

    The rule's own error is the cause.
    """

    def __init__(
        self,
        rule: BoundRule,
        program: Program,
        problem: str,
        folder: Path | None = None,
        command: str = "",
        *,
        note: str = "",
    ) -> None:
        super().__init__(program, rule.name, problem, folder, command, note=note)
        self.rule = rule
        lines = [f"rule {rule.source} {problem}", "", rule.text.rstrip(), ""]
        lines += [note, ""] if note else []
        lines += [f"The program, on {program.target.spelling()}:", "", program.text.rstrip()]
        self.args = ("\n".join([*lines, *saved_lines(folder, command)]),)


class NeverFired(AssertionError):
    """Raised if a rule matches no generated program, so that nothing is tested."""
