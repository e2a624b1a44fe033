"""The verdict of bisection: the wrong pass, rewrite and value, as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ....ir.rewriting import Source
from ....passes.pipelines import PASSES

Kind = Literal["value", "fault", "invalid", "crash"]
"""The kinds of problems: of a value, of the run, of the module, or of the pass itself."""

UNSEEN = (
    "  rewrites under xDSL's own walker are not recorded: run the patterns under "
    "abele.ir.provenance.LocatingWalker"
)
"""A possible reason why a pass from outside of abele has no rewrites."""

_LINE = re.compile(r":\d+(:\d+)?$")
"""Ends the name of a node that has none but its line."""


@dataclass(frozen=True)
class BlamedRewrite:
    """The rewrite that made a program wrong.

    Attributes:
        number: counts the rewrites of the pass from 1.
        root, node: the matched operation, and the framework's node that it came from.
        searched: whether the program is right without this rewrite and wrong with it; otherwise,
            this rewrite made the operation whose value is wrong.
    """

    number: int
    of: int
    source: Source
    root: str
    node: str | None
    searched: bool = True

    def __str__(self) -> str:
        where = f' at "{self.node}"' if self.node else ""
        likely = "" if self.searched else ", which made that operation"
        return f"{self.number} of {self.of}: {self.source} on {self.root}{where}{likely}"


@dataclass(frozen=True)
class WrongValue:
    """The first value, in program order, that differs from its value before the pass.

    Attributes:
        node: the framework's node.
        variable: the variable that holds the value, "" above tile.
        index: of the worst element, in the tensor's shape.
        tile: the first tile that holds it; None at nn.
        addresses: the bytes on that tile in the machine's fault, end exclusive; a fault has no
            index and no numbers.
        error: relative to the largest expected value.
        line: of a framework's file that the node comes from, besides its name; "" if not known.
    """

    op: str
    node: str | None
    variable: str = ""
    index: tuple[int, ...] | None = None
    found: float | None = None
    expected: float | None = None
    error: float | None = None
    tile: int | None = None
    addresses: tuple[int, int] | None = None
    line: str = ""

    def __str__(self) -> str:
        words = [self.op]
        words += [f'"{self.node}"'] if self.node else []
        words += [f"({self.line})"] if self.line and not _LINE.search(self.node or "") else []
        words += [f"@{self.variable}"] if self.variable else []
        text = " ".join(words)
        if self.index is not None:
            text += f": element {list(self.index)} is {self.found:.9g}; need {self.expected:.9g}"
        if self.addresses is not None:
            text += f": bytes {self.addresses[0]}..{self.addresses[1] - 1}"
        return text if self.tile is None else f"{text}; tile {self.tile}"


@dataclass(frozen=True)
class Verdict:
    """The result of bisection.

    Attributes:
        passes: names, in order.
        index: the first pass after which the program is wrong; None if there is none.
        since: the first pass that may be to blame, if the program could not run in between.
        worst: the largest error of any output before that, relative to its largest value.
        not_run: passes that left the program on several levels at once, so that it could not run.
        started: the number of passes before the program that defines the right results. These
            passes lower operations without a meaning of their own.
        kernel: a wrong compiled kernel, in words, if all passes are right; else "".
    """

    passes: tuple[str, ...]
    worst: float
    index: int | None = None
    since: int | None = None
    kind: Kind | None = None
    problem: str = ""
    rewrite: BlamedRewrite | None = None
    rewrites: int = 0
    value: WrongValue | None = None
    not_run: tuple[str, ...] = ()
    started: int = 0
    kernel: str = ""

    @property
    def after(self) -> str:
        """The pass whose result defines the right results; "" if no pass runs before."""
        return self.passes[self.started - 1] if self.started else ""

    @property
    def name(self) -> str | None:
        """The name of the wrong pass; None if nothing is wrong."""
        return None if self.index is None else self.passes[self.index]

    @property
    def passed(self) -> bool:
        """Whether everything is right."""
        return self.index is None and not self.kernel

    @property
    def text(self) -> str:
        """A description for users."""
        return f"{self.kernel}\n{self._of_passes}" if self.kernel else self._of_passes

    @property
    def _of_passes(self) -> str:
        """The wrong pass and its problem."""
        count = len(self.passes)
        if self.index is None and self.started == count:
            problem = f"the program can run only after '{self.after}', the last pass"
            return f"nothing to compare: {problem}"
        if self.index is None:
            which = "the pass" if count == 1 else f"any of {count} passes"
            runs = " in runs without kernels" if self.kernel else ""
            text = f"nothing is wrong after {which}{runs}: outputs are within "
            text += f"{self.worst:.1e} of their largest value"
            if self.after:
                text += f"\ncompared with the program after '{self.after}'"
            return text + "".join(f"\nnot run: after '{name}'" for name in self.not_run)
        place = f"({self.index + 1} of {count})"
        lines = [f"pass '{self.name}' {place}: {self.problem}"]
        if self.since is not None and self.since != self.index:
            lines.append(f"  or a pass since '{self.passes[self.since]}': no run in between")
        if self.rewrite is not None:
            lines.append(f"  rewrite {self.rewrite}")
        elif self.rewrites:
            lines.append(f"  rewrite: no single one of the {self.rewrites} makes the difference")
        else:
            lines.append("  rewrite: the pass records none")
            if self.name not in PASSES:
                lines.append(UNSEEN)
        if self.value is not None:
            lines.append(f"  value: {self.value}")
        if self.after:
            lines.append(f"  compared with the program after '{self.after}'")
        return "\n".join(lines)
