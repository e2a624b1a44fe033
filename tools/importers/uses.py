"""The operators that a model uses, and why some of them cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...ir.support.errors import InputError
from ...ir.support.suggestions import similar_names
from .building import NodeBuilder
from .errors import UnsupportedError

LISTED = 12
"""The most operators that a message lists."""


@dataclass
class Use:
    """What a model uses of one operator.

    Attributes:
        operator: its name in tables.
        how: where its meaning comes from; "" if it has none.
        nodes: their names; those in functions and in graphs of nodes count once.
        reasons: why nodes cannot be imported, with their number.
    """

    operator: str
    how: str
    nodes: list[str] = field(default_factory=list[str])
    reasons: Counter[str] = field(default_factory=Counter[str])

    @property
    def supported(self) -> str:
        """Whether nodes can be imported: "yes", "no", or for how many."""
        refused, every = self.reasons.total(), len(self.nodes)
        return "yes" if not refused else "no" if refused == every else f"{every - refused}"


class Used(NamedTuple):
    """A node and its operator.

    Attributes:
        reason: why it cannot be read; "" if it can.
    """

    operator: str
    how: str
    node: str
    reason: str = ""


def gathered(nodes: Iterable[Used]) -> list[Use]:
    """The operators of nodes, by name."""
    uses: dict[str, Use] = {}
    for each in nodes:
        use = uses.setdefault(each.operator, Use(each.operator, each.how))
        use.nodes.append(each.node)
        if each.reason:
            use.reasons[each.reason] += 1
    return [uses[name] for name in sorted(uses)]


def reason_of(node: NodeBuilder, error: InputError) -> str:
    """The message of an error about a node, without the names of the model and of the node."""
    text = str(error).removeprefix(f"{node.program.place}: ")
    for known in (f"{node.heading}: ", f"{node}: "):
        text = text.removeprefix(known)
    return text


def others_are(operator: str, known: Sequence[str], page: str) -> str:
    """What is supported instead of an operator, in messages: how many, and which are like it.

    Args:
        page: of the reference, which lists those that are known.
    """
    near = similar_names(operator, known)
    guess = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{len(known)} others are (docs/reference/{page}.md){guess}"


def several_refused(
    place: str, refused: Sequence[tuple[str, str]], advice: str
) -> UnsupportedError | None:
    """An error that lists the operators that nobody reads; None if it is only one.

    Args:
        place: the model's name.
        refused: the operator and the name of each such node.
        advice: what to do about it.
    """
    count = Counter(operator for operator, _ in refused)
    if len(count) < 2:
        return None
    first = {operator: node for operator, node in reversed(refused)}
    shown = [_in_words(operator, n, first[operator]) for operator, n in count.most_common(LISTED)]
    if len(count) > LISTED:
        shown.append(f"and {len(count) - LISTED} others")
    return UnsupportedError(
        f"{place}: {len(count)} operators are not supported: {', '.join(shown)}; {advice}"
    )


def _in_words(operator: str, count: int, first: str) -> str:
    nodes = f"node {first!r}" if count == 1 else f"{count} nodes, the first is {first!r}"
    return f"{operator} ({nodes})"
