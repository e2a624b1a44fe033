"""The operation of the framework that each part of a program belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation

from ....dialects.levels import LEVELS
from ....ir.phases import FORWARD, PHASES, Phases, several
from ....ir.provenance import line_of, origin, origin_names
from ....ir.upstream import LocationAttr, ModuleOp
from ...driver.dump.nodes import node_names, nodes_of
from ...driver.shown_text import shown
from ..layer_names import layer_name


@dataclass
class Nodes:
    """The operations of a program: the framework's nodes, with one number for each group of fused
    nodes.

    Operations that training adds to a node are an operation of their own.

    Attributes:
        known: names of the framework's nodes.
        telling: other names for some of them.
        phases: of a step of training.
        of_node: the operation of each phase and node.
        groups: the phase and nodes of each operation.
        lines: the line of each node in its file.
    """

    known: frozenset[str]
    telling: Mapping[str, str]
    phases: Phases
    of_node: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    groups: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])
    lines: dict[str, str] = field(default_factory=dict[str, str])
    _found: dict[LocationAttr, int] = field(default_factory=dict[LocationAttr, int])
    _exact: dict[tuple[str, tuple[str, ...]], int] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], int]
    )

    @staticmethod
    def in_modules(modules: Iterable[ModuleOp], telling: Mapping[str, str]) -> Nodes:
        """The nodes of a program.

        Args:
            modules: at its levels, the highest first.
        """
        every = list(modules)
        known = node_names(op.location for op in every[0].walk())
        nodes = Nodes(known, telling, Phases.of(every[-1]))
        for module in every[:1]:
            for op in module.walk():
                line = line_of(op)
                for node in nodes_of(op.location, nodes.known) if line else ():
                    nodes.lines.setdefault(node, line)
        return nodes

    def operation(self, source: Operation | LocationAttr) -> int:
        """The number of the operation that an IR operation or location belongs to; -1 if no node is
        known.
        """
        location = source.location if isinstance(source, Operation) else source
        number = self._found.get(location)
        if number is None:
            phase = self.phases.phase(origin(location))
            number = self._found[location] = self._joined(phase, nodes_of(location, self.known))
        return number

    def known_operation(self, source: Operation | LocationAttr) -> int:
        """Like `operation`, but without a new number for nodes that have none: -1."""
        location = source.location if isinstance(source, Operation) else source
        phase = self.phases.phase(origin(location))
        keys = [(phase, node) for node in nodes_of(location, self.known)]
        return next((self.of_node[key] for key in keys if key in self.of_node), -1)

    def of(self, node: str) -> int:
        """The first operation that a node belongs to, preferably in the forward phase; -1 if
        none."""
        keys = ((phase, node) for phase in PHASES)
        return next((self.of_node[key] for key in keys if key in self.of_node), -1)

    def add(self, source: Operation) -> int:
        """The number of an operator with a plan of its own; its nodes are its own, too.

        Several operators with the same nodes are one operation. Call this method before
        `operation`.
        """
        nodes = nodes_of(source.location, self.known)
        phase = self.phases.phase(origin(source))
        if nodes:
            self._exact.setdefault((phase, nodes), len(self.groups))
        return self.operation(source)

    def _joined(self, phase: str, nodes: Sequence[str]) -> int:
        """The number of the operation of some nodes, a new operation if none of them has one; -1
        for [].

        The other nodes join it, unless they belong to other operations already.
        """
        if not nodes:
            return -1
        keys = [(phase, node) for node in nodes]
        known = next((self.of_node[k] for k in keys if k in self.of_node), len(self.groups))
        number = self._exact.setdefault((phase, tuple(nodes)), known)
        if number == len(self.groups):
            self.groups.append((phase, []))
        for key in keys:
            if key not in self.of_node:
                self.of_node[key] = number
                self.groups[number][1].append(key[1])
        return number

    def names(self) -> list[str]:
        """The displayed name of each operation."""
        return [
            shown(layer_name(group, self.telling) + _told(phase, group))
            for phase, group in self.groups
        ]

    def layers(self) -> list[str]:
        """The layer of each operation: the name of its first node without its last part."""
        return [
            shown(_without_last(layer_name(group[:1], self.telling))) for _, group in self.groups
        ]

    def phase_names(self) -> list[str]:
        """The phase of each operation; "" for all if the program has no phases."""
        found = [phase for phase, _ in self.groups]
        return found if several(found) else [""] * len(found)

    def texts(self) -> list[str]:
        """The nodes of each operation, joined."""
        return [shown("+".join(group)) for _, group in self.groups]

    def line(self, number: int) -> str:
        """The first known line of an operation's nodes."""
        found = (self.lines[n] for n in self.groups[number][1] if n in self.lines)
        return shown(next(found, ""))


def counted(nodes: Nodes, modules: Mapping[str, ModuleOp]) -> dict[str, dict[str, int]]:
    """For each level of a program, the number of operations that came from each node."""
    found: dict[str, dict[str, int]] = {}
    for level in (level.name for level in LEVELS if level.name in modules):
        counts = found[level] = {}
        memo: dict[LocationAttr, tuple[str, ...]] = {}
        for op in modules[level].walk():
            if op.location not in memo:
                memo[op.location] = nodes_of(op.location, nodes.known)
            for node in memo[op.location]:
                counts[node] = counts.get(node, 0) + 1
    return found


def origin_text(op: Operation) -> str:
    """The origin of an operation as text for people."""
    return shown("+".join(origin_names(op)))


def _told(phase: str, group: Sequence[str]) -> str:
    """The phase in a name, unless the nodes tell it already: then ""."""
    known = phase == FORWARD or any(phase in node.split("/") for node in group)
    return "" if known else f"/{phase}"


def _without_last(name: str) -> str:
    """A name without its last part: after a slash, else a dot, else an underscore."""
    for separator in "/._":
        head, _, tail = name.rpartition(separator)
        if head.strip(separator) and tail:
            return head
    return name
