"""Run a program at its own level, and observe every value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from xdsl.ir import Operation

from ...backends.addresses.prove import prove_addresses
from ...backends.evaluate.host import Run
from ...backends.evaluate.partition import Stacked, run_partition
from ...backends.evaluate.tile import run_tile
from ...backends.evaluate.users_levels import as_own
from ...backends.machine import Machine, Observer
from ...backends.reference import run_reference
from ...backends.stablehlo import run_stablehlo
from ...backends.target import Target
from ...dialects import exchange, tile
from ...dialects.control import RepeatOp
from ...dialects.home import ADDRESS
from ...dialects.levels import EXCHANGE, NN, PARTITION, STABLEHLO, TILE
from ...dialects.partition import PartitionTensor
from ...dialects.steps import Copy, Load, Store, Vertices
from ...dialects.superstep import Conflict, conflict
from ...dialects.variable import Variable
from ...ir.geometry.layout import Layout
from ...ir.level import Level
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import Context, ModuleOp, Rewriter
from ...ir.xdsl.walk import operations
from ...passes.group_supersteps import GroupSupersteps
from ...passes.schedule_supersteps import SUPERSTEP
from ..driver.arrays import Array


@dataclass(frozen=True)
class Held:
    """The contents of a variable.

    Attributes:
        variable: the operation that declares it.
    """

    variable: Variable
    values: Array


@dataclass(frozen=True)
class ComputedValue:
    """The result of an operation.

    Attributes:
        values: the tensor, in its own shape.
        layout: of its elements; None at nn.
        variable: the name of the variable that holds it, "" for SSA values.
        operands: the contents of the variables that the operation has read, from before it wrote
            its result.
    """

    op: Operation
    values: Array
    layout: Layout | None = None
    variable: str = ""
    operands: Callable[[], Sequence[Held]] = tuple


Watch = Callable[[ComputedValue], None]
"""Called with every value, in the order of execution."""


def run_level(
    level: Level,
    module: ModuleOp,
    target: Target,
    inputs: Mapping[str, Array],
    watch: Watch | None = None,
) -> Run:
    """Run @main once, by the definition of the module's level. The module does not change.

    At tile, all operations with one superstep number must be able to share a superstep. A tile
    module with addresses runs on the bytes of the strict machine, like an exchange module, and
    its addresses are proved.
    Raises PhaseConflict, and the errors of evaluators: MachineFault, InputError, VerifyException
    and IterationLimit.
    """
    own, runnable = as_own(level, module, target)
    return OBSERVED[own](runnable, target, inputs, watch)


_Observe: TypeAlias = Callable[[Operation, Sequence[Array], Sequence[Array]], None]
"""Takes an operation, its operands and its results."""


def _seen_by(watch: Watch | None) -> _Observe | None:
    """What shows the results of each operation to a watch; None without a watch."""
    if watch is None:
        return None

    def observe(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        for values in results:
            watch(ComputedValue(op, values))

    return observe


def _run_nn(
    module: ModuleOp, target: Target, inputs: Mapping[str, Array], watch: Watch | None
) -> Run:
    done = run_reference(module, inputs, observe=_seen_by(watch))
    return Run(done.outputs, done.state)


def _run_stablehlo(
    module: ModuleOp, target: Target, inputs: Mapping[str, Array], watch: Watch | None
) -> Run:
    return run_stablehlo(module, inputs, None, _seen_by(watch))


def _run_partition(
    module: ModuleOp, target: Target, inputs: Mapping[str, Array], watch: Watch | None
) -> Run:
    def observe(op: Operation, operands: Sequence[Stacked], results: Sequence[Stacked]) -> None:
        for result, stacked in zip(op.results, results, strict=True):
            assert watch is not None
            assert isinstance(result.type, PartitionTensor)
            watch(ComputedValue(op, stacked.values, result.type.layout.data))

    return run_partition(module, inputs, observe=None if watch is None else observe)


def _run_tile(
    module: ModuleOp, target: Target, inputs: Mapping[str, Array], watch: Watch | None
) -> Run:
    _check_phases(module)
    placed = [ADDRESS in op.attributes for op in module.ops if isinstance(op, tile.VariableOp)]
    # If only some variables have addresses, the other addresses are still to be chosen.
    if placed and all(placed):
        return _run_machine(_with_bytes(_grouped(module)), target, inputs, watch)
    variables = {op.symbol: op for op in module.ops if isinstance(op, Variable)}

    def observe(op: Operation, read: Callable[[str], Array]) -> None:
        assert watch is not None
        if isinstance(op, RepeatOp):
            watch(_numbered(op, variables, read))
        elif isinstance(op, Copy | Vertices):
            for result in range(len(op.destinations)):
                watch(_written(op, variables, read, result=result))
        elif isinstance(op, Load | Store):
            watch(_carried(op, variables, read))

    return run_tile(module, inputs, observe=None if watch is None else observe)


def _written(
    op: Copy | Vertices,
    variables: Mapping[str, Variable],
    read: Callable[[str], Array],
    gone: Mapping[str, Array] | None = None,
    result: int = 0,
) -> ComputedValue:
    """The value written by an operation.

    Args:
        gone: the overwritten operands, as they were.
        result: the index of the result.
    """
    name, before = op.destinations[result], gone or {}

    def operands() -> list[Held]:
        return [
            Held(variables[each], before[each] if each in before else read(each))
            for each in op.sources
        ]

    return ComputedValue(op, read(name), variables[name].placed, name, operands)


def _carried(
    op: Load | Store, variables: Mapping[str, Variable], read: Callable[[str], Array]
) -> ComputedValue:
    """What has come from remote memory, or gone there."""
    if isinstance(op, Load):
        name = op.destination
        return ComputedValue(op, read(name), variables[name].placed, name)
    variable = variables[op.source]
    values, name = read(op.source), op.remote.string_value()
    return ComputedValue(op, values, None, name, lambda: [Held(variable, values)])


def _numbered(
    op: RepeatOp, variables: Mapping[str, Variable], read: Callable[[str], Array]
) -> ComputedValue:
    """The number of an iteration that is about to begin."""
    name = op.iteration_variable
    assert name is not None
    return ComputedValue(op, read(name), variables[name].placed, name)


class PhaseConflict(InputError):
    """Raised if an operation of a superstep needs or overwrites a result of the same superstep.

    Attributes:
        op: the later operation.
        variable: the name of the variable that both use, or "".
    """

    def __init__(self, found: Conflict) -> None:
        op = found.op
        super().__init__(f"{op.name} at {place(op)}: {found.problem}, in one superstep")
        self.op = op
        self.variable = found.variable


def _check_phases(module: ModuleOp) -> None:
    """Raise PhaseConflict unless the operations with one number can share a superstep."""
    for block in {op.parent: None for op in module.walk() if SUPERSTEP in op.attributes}:
        assert block is not None
        for number, ops in groupby(block.ops, lambda op: op.attributes.get(SUPERSTEP)):
            found = None if number is None else conflict(ops)
            if found is not None:
                raise PhaseConflict(found)


def _grouped(module: ModuleOp) -> ModuleOp:
    """A clone in which the operations with one number form a superstep."""
    clone = module.clone()
    GroupSupersteps().apply(Context(), clone)
    return clone


def _with_bytes(module: ModuleOp) -> ModuleOp:
    """A module of exchange with the behaviour of a module of tile, in place.

    It shares no code with the pass for this, because that pass may be under test.
    """
    for op in operations(module):
        if type(op) not in _WITH_BYTES:
            continue
        properties, attributes = dict(op.properties), dict(op.attributes)
        if isinstance(op, tile.VariableOp):
            properties["address"] = attributes.pop(ADDRESS)
        new = _WITH_BYTES[type(op)].create(
            operands=op.operands,
            result_types=[result.type for result in op.results],
            properties=properties,
            attributes=attributes,
            regions=[op.detach_region(region) for region in tuple(op.regions)],
        )
        new.location = op.location
        Rewriter.replace_op(op, new)
    return module


_WITH_BYTES: dict[type[Operation], type[Operation]] = {
    tile.VariableOp: exchange.VariableOp,
    tile.RemoteOp: exchange.RemoteOp,
    tile.SuperstepOp: exchange.SuperstepOp,
    tile.SyncOp: exchange.SyncOp,
    tile.CopyOp: exchange.MoveOp,
    tile.VerticesOp: exchange.ComputeOp,
    tile.InputOp: exchange.InputOp,
    tile.OutputOp: exchange.OutputOp,
    tile.LoadOp: exchange.LoadOp,
    tile.StoreOp: exchange.StoreOp,
    tile.ReadOp: exchange.ReadOp,
}
"""What each operation of tile is at exchange."""


def _run_machine(
    module: ModuleOp, target: Target, inputs: Mapping[str, Array], watch: Watch | None
) -> Run:
    observers = () if watch is None else (_Report(watch),)
    machine = Machine(module, target, strict=True, observers=observers)
    outputs = machine.run(inputs)
    # Last, because a strict machine names the operation that reads a wrong value.
    prove_addresses(module, target)
    states = [name for name, op in machine.variables.items() if op.state is not None]
    states += machine.remote_states
    return Run(outputs, {name: machine.read(name) for name in states})


class _Report(Observer):
    """Reports all moves and results of a machine."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._gone: dict[str, Array] = {}

    def before_compute(self, op: Vertices, machine: Machine) -> None:
        """Save the variables that a vertex set is about to overwrite."""
        start = machine.variables[op.destination].start
        self._gone = {
            name: machine.read(name)
            for name in op.overwritable()
            if machine.variables[name].start == start
        }

    def on_move(self, op: Copy, machine: Machine) -> None:
        """Report a move. Nothing else writes its destination in this phase."""
        self._watch(_written(op, machine.variables, machine.read))

    def on_remote(self, op: Load | Store, machine: Machine) -> None:
        """Report a load or store of remote memory."""
        self._watch(_carried(op, machine.variables, machine.read))

    def on_iteration(self, op: RepeatOp, machine: Machine) -> None:
        """Report the number of an iteration."""
        self._watch(_numbered(op, machine.variables, machine.read))

    def on_compute(self, op: Vertices, machine: Machine) -> None:
        """Report the results of a vertex set."""
        for result in range(len(op.destinations)):
            self._watch(_written(op, machine.variables, machine.read, self._gone, result))


OBSERVED: dict[Level, Callable[[ModuleOp, Target, Mapping[str, Array], Watch | None], Run]] = {
    STABLEHLO: _run_stablehlo,
    NN: _run_nn,
    PARTITION: _run_partition,
    TILE: _run_tile,
    EXCHANGE: _run_machine,
}
"""For each of abele's levels and those above, what runs a program once and shows all values to a
watch."""
