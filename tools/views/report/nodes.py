"""Which operation of the framework each part of a program belongs to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation

from ....dialects.levels import LEVELS
from ....ir.phases import FORWARD, PHASES, Phases, several
from ....ir.provenance import is_known, origin, origin_names, place
from ....ir.upstream import LocationAttr, ModuleOp
from ...driver.dump.nodes import PLACE, node_names, nodes_of
from ...driver.shown_text import shown
from ..layer_names import layer_name


@dataclass
class Nodes:
    """The operations of a program: framework nodes, of which fused ones share a number.

    What training adds to a node is an operation of its own. known: names of the framework's nodes.
    telling: other names for some of them. phases: of a step of training. of_node: the operation of
    each phase and node. groups: the phase and nodes of each operation. lines: where nodes are
    written.
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
        """The nodes of a program. modules: at its levels, the highest first."""
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
        """The number of the operation that something belongs to; -1 if no node is known."""
        location = source.location if isinstance(source, Operation) else source
        number = self._found.get(location)
        if number is None:
            phase = self.phases.phase(origin(location))
            number = self._found[location] = self._joined(phase, nodes_of(location, self.known))
        return number

    def known_operation(self, source: Operation | LocationAttr) -> int:
        """The same, but nodes that have no operation yet get none: -1."""
        location = source.location if isinstance(source, Operation) else source
        phase = self.phases.phase(origin(location))
        keys = [(phase, node) for node in nodes_of(location, self.known)]
        return next((self.of_node[key] for key in keys if key in self.of_node), -1)

    def of(self, node: str) -> int:
        """The first operation that a node belongs to, forward if it can be; -1 if there is none."""
        keys = ((phase, node) for phase in PHASES)
        return next((self.of_node[key] for key in keys if key in self.of_node), -1)

    def add(self, source: Operation) -> int:
        """The number of an operator that is planned by itself, with its own nodes.

        Several operators with the same nodes are one operation. Call it before `operation`.
        """
        nodes = nodes_of(source.location, self.known)
        phase = self.phases.phase(origin(source))
        if nodes:
            self._exact.setdefault((phase, nodes), len(self.groups))
        return self.operation(source)

    def _joined(self, phase: str, nodes: Sequence[str]) -> int:
        """The operation of some nodes, which its other nodes then belong to as well; -1 for none.

        Nodes that belong to other operations already stay there.
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
        """What people call each operation."""
        return [
            shown(layer_name(group, self.telling) + _told(phase, group))
            for phase, group in self.groups
        ]

    def layers(self) -> list[str]:
        """What each operation is grouped by: the name of its first node without its last part."""
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
        """The line of the first node of an operation that has one."""
        found = (self.lines[n] for n in self.groups[number][1] if n in self.lines)
        return shown(next(found, ""))


def line_of(op: Operation) -> str:
    """FILE:LINE:COLUMN of an operation, without the file's folder; "" if it is not known."""
    found = PLACE.search(place(op)) if is_known(op.location) else None
    return f"{os.path.basename(found[1])}:{found[2]}:{found[3]}" if found else ""


def counted(nodes: Nodes, modules: Mapping[str, ModuleOp]) -> dict[str, dict[str, int]]:
    """For each level that a program has, how many operations came from each node."""
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
    """The origin of an operation as text that may be shown."""
    return shown("+".join(origin_names(op)))


def _told(phase: str, group: Sequence[str]) -> str:
    """What a name adds to tell its phase; "" if its nodes do already."""
    known = phase == FORWARD or any(phase in node.split("/") for node in group)
    return "" if known else f"/{phase}"


def _without_last(name: str) -> str:
    """A name without its last part: after a slash, else a dot, else an underscore."""
    for separator in "/._":
        head, _, tail = name.rpartition(separator)
        if head.strip(separator) and tail:
            return head
    return name
