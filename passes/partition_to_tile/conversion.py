"""The variables that values of partition have become at tile, and the copies between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import OpResult, SSAValue

from ...backends.target import Target
from ...dialects import control, tile
from ...dialects.blob_attr import BlobAttr
from ...dialects.partition import PartitionTensor, partition_type
from ...dialects.steps import Remote
from ...dialects.variable import Variable
from ...ir.conversion import Conversion, Patterns
from ...ir.provenance import locate, origin_names
from ...ir.support.unused_names import UnusedNames
from ..analysis.calls_in_place import CallsInPlace


@dataclass
class Signature:
    """The variables of a function that callers copy from and to.

    Attributes:
        parameters: one per argument.
        results: one per result; none for the function that a run begins in.
    """

    parameters: list[str]
    results: list[str]


@dataclass
class IoTiles:
    """The tiles that a machine keeps aside, and what lies there (see io_tiles.py).

    Attributes:
        ends: the address behind the last variable for the host, by chip.
        loaded: the variables into which states are loaded.
    """

    target: Target
    ends: dict[int, int] = field(default_factory=dict[int, int])
    loaded: set[str] = field(default_factory=set[str])


class ToTile(Conversion):
    """A program at tile, while it is made.

    Attributes:
        variables: all variables so far.
        names: the names that are taken.
        where: the variable of each value of partition.
        types: the type at partition of what a variable holds, by its name.
        functions: the signatures, by name.
        calls: what crosses calls without a copy.
        written: the variables in which values are computed, if not in ones of their own.
        before: the variables with the old values of states, by the name of the state.
        remote: the states in remote memory, by name.
        aside: the I/O tiles of the machine; None if it has none.
        target: the machine; None if the module names none.
        began: the loop of runs whose iterations begin with these old values; None if the run does.
    """

    def __init__(self, patterns: Patterns[ToTile], calls: CallsInPlace | None = None) -> None:
        super().__init__(patterns, "tile")
        self.calls = calls or CallsInPlace()
        self.variables: list[Variable] = []
        self.names = UnusedNames()
        self.where: dict[SSAValue, str] = {}
        self.types: dict[str, PartitionTensor] = {}
        self.functions: dict[str, Signature] = {}
        self.written: dict[SSAValue, str] = {}
        self.before: dict[str, str] = {}
        self.remote: dict[str, Remote] = {}
        self.aside: IoTiles | None = None
        self.target: Target | None = None
        self.began: dict[str, control.RepeatOp | None] = {}

    # Variables

    def declare(
        self,
        name: str,
        type_: PartitionTensor,
        initial: BlobAttr | None = None,
        *,
        state: bool = False,
    ) -> Variable:
        """Add a variable."""
        variable = tile.VariableOp(name, type_.tensor, type_.layout.data, initial, state)
        if self.source is not None:
            locate(variable, self.source)
        self.variables.append(variable)
        self.types[name] = type_
        return variable

    def fresh(self, type_: PartitionTensor, hint: str | None = None) -> str:
        """Add a variable, and return its name.

        Args:
            hint: what the name begins with; else it is named after the operation whose result it
                holds.
        """
        assert self.source is not None
        paths = origin_names(self.source)
        base = hint or ("+".join(paths) if paths else self.source.name.split(".")[-1])
        return self.declare(self.names.unused(base), type_).symbol

    def result(self, value: SSAValue) -> str:
        """The variable that an operation writes: the state to which its value is stored, or a new
        variable.
        """
        self.where[value] = self.written.get(value) or self.fresh(partition_type(value))
        return self.where[value]

    def variables_of(self, values: Sequence[SSAValue]) -> list[str]:
        """The variables of values."""
        return [self.where[value] for value in values]

    def parameter_of(self, value: SSAValue) -> str | None:
        """The parameter of a function in which a value lives; None if it lives in none."""
        held = self.calls.held.get(value)
        return None if held is None else self.functions[held[0]].parameters[held[1]]

    def keep_in_parameters(self) -> None:
        """Let values that live in a parameter be computed there."""
        for value, (name, index) in (*self.calls.held.items(), *self.calls.written.items()):
            if isinstance(value, OpResult):
                self.written.setdefault(value, self.functions[name].parameters[index])

    # Copies

    def copy(self, source: str, destination: str) -> None:
        """Copy a variable to another one; nothing if they are the same."""
        if source != destination:
            self.add(tile.CopyOp([source], destination))

    def copy_all(self, sources: Sequence[str], destinations: Sequence[str]) -> None:
        """Copy several variables as if at once: no copy reads a variable that another copy has
        overwritten.
        """
        overwritten = set(destinations)
        staged = list(sources)
        for i, (s, d) in enumerate(zip(sources, destinations, strict=True)):
            if s != d and s in overwritten:
                staged[i] = self.fresh(self.types[s])
                self.copy(s, staged[i])
        for s, d in zip(staged, destinations, strict=True):
            self.copy(s, d)
