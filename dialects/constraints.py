"""Constraints that the levels' tables put on operations: on types, on variables and on states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..ir.geometry.overlap import overlap
from ..ir.geometry.tile_pairs import partners_alike
from ..ir.legality import Constraint, Kind, ModuleFacts, holds, names
from ..ir.support.deferred import deferred
from ..ir.support.suggestions import suggestion
from ..ir.symbols import symbols_in
from ..ir.upstream import VerifyException
from ..ir.well_known import ENTRY
from . import nn, partition
from .abele import LayoutAttr
from .control import ITERATION_NUMBER, RepeatOp, run_around
from .home import HOME, REMOTE, is_remote, verify_numbers
from .message_order import WIDTHS
from .partition import PartitionTensor, verify_moves, verify_result_types
from .placement import CHIPS, placement_of
from .source_types import is_complex, part_type
from .steps import Arrival, Copy, Departure, Load, Read, Remote, Store, Vertices
from .variable import ALIGNMENT, Variable

with deferred(__name__):
    from .generators import verify_generators

# Types of values


def _is_tensor(type_: Attribute) -> bool:
    try:
        nn.tensor_of(type_)
    except VerifyException:
        return False
    return True


TENSOR = Kind("a tensor of static shape, of elements that a tile can hold", _is_tensor)
SOURCE_TENSOR = Kind(
    "a tensor of static shape, of elements that a tile can hold or of complex numbers",
    lambda type_: _is_tensor(part_type(type_) if is_complex(type_) else type_),
)
LAID_OUT = Kind(
    "a `!partition.tensor`",
    lambda type_: isinstance(type_, PartitionTensor),
    "each value at partition has a layout",
)
NOTHING = Kind("none", lambda type_: False, "keep the value in a variable")

# Places


@holds(f"`address` is a multiple of {ALIGNMENT} and `reload` a number, both from 0 to 2^48")
def placed(op: Operation, facts: ModuleFacts) -> None:
    """What says where a state or constant lies is well formed."""
    verify_numbers(op)


@holds("no home but remote memory; then a layout with one owner per element")
def remote_home(op: partition.StateOp, facts: ModuleFacts) -> None:
    """A state lies in its own layout, or in remote memory. Remote memory takes the value from its
    owners, so each element needs exactly one."""
    if HOME not in op.attributes:
        return
    if not is_remote(op):
        raise VerifyException(f'{HOME} = {op.attributes[HOME]}; need "{REMOTE}", or a layout alone')
    if not op.type.layout.data.is_partition:
        raise VerifyException(f"{op.type.layout.text()}: blocks overlap; need one owner each")


# Functions


@holds("a body")
def has_body(op: FuncOp, facts: ModuleFacts) -> None:
    """A function has a body."""
    if op.is_declaration:
        raise VerifyException(f"@{op.sym_name.data} has no body; need one")


@holds(f"`{CHIPS}`, if it is there, is `[first chip, number of chips, chips apart]`")
def on_chips(op: FuncOp, facts: ModuleFacts) -> None:
    """What says on which chips a function lies is well formed."""
    placement_of(op)


@holds(f"calls another function than `@{ENTRY}`")
def calls_no_entry(op: CallOp, facts: ModuleFacts) -> None:
    """A call does not call the function that a run begins in: the host fills its arguments."""
    if op.callee.string_value() == ENTRY:
        raise VerifyException(f"calls @{ENTRY}, in which a run begins; move its body to a function")


# States

_Load = nn.LoadOp | partition.LoadOp
_Store = nn.StoreOp | partition.StoreOp


def _state(op: _Load | _Store, facts: ModuleFacts) -> nn.StateOp | partition.StateOp:
    state = facts.symbols[op.state.string_value()]
    assert isinstance(state, nn.StateOp | partition.StateOp)
    return state


@holds("the type of the state that it names, in any layout if the state is remote")
def type_of_state(op: _Load | _Store, facts: ModuleFacts) -> None:
    """A load gives, and a store takes, a value of the state's type."""
    state = _state(op, facts)
    type_ = state.elements if isinstance(state, nn.StateOp) else state.type
    value: SSAValue = op.results[0] if isinstance(op, _Load) else op.operands[0]
    own, found = type_, value.type
    if is_remote(state) and isinstance(own, PartitionTensor) and isinstance(found, PartitionTensor):
        own, found = own.tensor, found.tensor
    if found != own:
        raise VerifyException(f"{op.state} is {type_}; the operation says {value.type}")


def _loops_of_runs(facts: ModuleFacts) -> dict[str, RepeatOp]:
    """The loop of runs that stores to a state, by the name of the state."""
    return {
        op.state.string_value(): run
        for op in facts.operations
        if isinstance(op, _Store) and (run := run_around(op)) is not None
    }


@holds("if a loop of runs stores to the state: in this loop")
def in_loop_of_state(op: _Load | _Store, facts: ModuleFacts) -> None:
    """A state that a loop of runs stores to is loaded and stored to in this loop alone."""
    loops = facts.get(_loops_of_runs)
    name = op.state.string_value()
    if name in loops and run_around(op) is not loops[name]:
        what = "is loaded" if isinstance(op, _Load) else "gets a value"
        raise VerifyException(
            f"a loop of runs stores to state {name!r}, which {what} outside of it; move the "
            "operation into the loop"
        )


# Variables

Variables = Sequence[Variable]


def variable(attribute: str) -> Constraint:
    """An attribute names variables."""
    return names(attribute, "variable", Variable)


def _check_changes(written: Iterable[Variable]) -> None:
    for each in written:
        if "initial" in each.properties and "state" not in each.properties:
            raise VerifyException(
                f"writes @{each.symbol}, a constant; need a variable without a first value, or a "
                "state"
            )


@holds("`reads` and `writes` name variables, and `generators` a state of generators")
def uses_variables(op: Copy | Vertices, facts: ModuleFacts) -> None:
    """The variables that an operation names exist."""
    _ = facts.get(_Uses).of(op)


@holds("`writes` names no constant")
def changes_variables(op: Copy | Vertices | Arrival, facts: ModuleFacts) -> None:
    """A constant keeps its value for every run, so nothing writes it."""
    if isinstance(op, Arrival):
        _check_changes((_one(op, "writes", facts),))
    else:
        _check_changes(facts.get(_Uses).of(op)[1])


def _check_split(op: Vertices, sources: Variables, made: Variables) -> None:
    for each, need in zip((*sources, *made), op.layouts(), strict=True):
        if each.placed != need:
            raise VerifyException(
                f"@{each.symbol} has layout {LayoutAttr(each.placed).text()}; the split needs "
                f"{LayoutAttr(need).text()}"
            )


def _check_results(op: Vertices, sources: Variables, made: Variables) -> None:
    verify_result_types(op.body.data, [each.tensor.element_type for each in made])


def _check_moves(op: Copy, sources: Variables, made: Variables) -> None:
    verify_moves(op.moves, [each.placed.shape for each in sources], made[0].placed.shape)


def _check_own(op: Copy, sources: Variables, made: Variables) -> None:
    _ = op.routes(made[0].placed)


def _check_elements(op: Copy, sources: Variables, made: Variables) -> None:
    for each in sources:
        if each.dtype != made[0].dtype:
            raise VerifyException(f"copies {each.dtype} @{each.symbol} into {made[0].dtype}")


def _check_owners(op: Copy, sources: Variables, made: Variables) -> None:
    for each in sources:
        if not each.placed.is_partition:
            raise VerifyException(f"blocks of @{each.symbol} overlap: elements have no one owner")


def _check_order(op: Copy, sources: Variables, made: Variables) -> None:
    order = op.message_order
    if order is None:
        return
    try:
        order.check_parts(made[0].placed.parts, [each.placed.parts for each in sources])
        if order.reads_places:
            filled, spaces = op.routes(made[0].placed)
            for each, space in zip(sources, spaces or (None,) * len(sources), strict=True):
                order.check_groups(len(overlap(each.placed, filled, space).groups))
    except ValueError as error:
        raise VerifyException(str(error)) from None


def _check_width(op: Copy, sources: Variables, made: Variables) -> None:
    written = made[0].placed
    if op.lane_bits == WIDTHS[0] or partners_alike(written).all():
        return
    tile = int(written.tiles.of(np.flatnonzero(~partners_alike(written)))[0])
    raise VerifyException(
        f"width {op.lane_bits}, but tile {tile ^ 1} does not receive what tile {tile} does: both "
        f"tiles of a pair must hold the same block of @{made[0].symbol}; remove the width"
    )


_USES: dict[type[Operation], dict[str, Callable[[Any, Variables, Variables], None]]] = {
    Vertices: {
        "element types that the body gives": _check_results,
        "layouts that the split needs": _check_split,
    },
    Copy: {
        "`moves` lead from the shapes that it reads to the one that it writes": _check_moves,
        "chips that read their own entries hold the whole tensor each": _check_own,
        "one element type": _check_elements,
        "each element that it reads has one owner": _check_owners,
        "keys of its `order` name parts of the two grids, which are those that the order is for": (
            _check_order
        ),
        "with `width` 64, both tiles of each pair receive the same block": _check_width,
    },
}
"""What holds between an operation and the variables that it reads and writes."""


def uses(op_class: type[Copy | Vertices]) -> tuple[Constraint, ...]:
    """The variables that an operation names suit it and each other."""

    def constraint(says: str, suit: Callable[[Any, Variables, Variables], None]) -> Constraint:
        def check(op: Copy | Vertices, facts: ModuleFacts) -> None:
            sources, made = facts.get(_Uses).of(op)
            suit(op, sources, made)

        return Constraint(says, check)

    return tuple(constraint(says, suit) for says, suit in _USES[op_class].items())


class _Uses:
    """The variables that operations read and write, which several constraints ask for."""

    def __init__(self, facts: ModuleFacts) -> None:
        ops = facts.module.body.block.ops
        self._variables = {op.symbol: op for op in ops if isinstance(op, Variable)}
        self._last: Operation | None = None
        self._found: tuple[Variables, Variables] = (), ()

    def of(self, op: Copy | Vertices) -> tuple[Variables, Variables]:
        """The variables that an operation reads, and those that it writes."""
        if op is not self._last:
            self._last, self._found = op, _named(op, self._variables)
        return self._found


def _named(op: Copy | Vertices, known: Mapping[str, Variable]) -> tuple[Variables, Variables]:
    try:
        if isinstance(op, Vertices) and op.generators is not None:
            plan = op.plan.data
            held = known[op.generators.string_value()]
            verify_generators(held, plan.tiles.end)
        return [known[name] for name in op.sources], [known[name] for name in op.destinations]
    except KeyError as error:
        (name,) = error.args
        raise VerifyException(f"no variable @{name}{suggestion(name, known)}") from None


def verify_use(op: Copy | Vertices, variables: Mapping[str, Variable]) -> None:
    """Check an operation of a module that nobody has verified against the variables that it names.

    Raises VerifyException.
    """
    sources, made = _named(op, variables)
    for suit in _USES[Copy if isinstance(op, Copy) else Vertices].values():
        suit(op, sources, made)


def _one(op: Operation, attribute: str, facts: ModuleFacts) -> Variable:
    (name,) = symbols_in(op.properties.get(attribute))
    found = facts.symbols[name]
    assert isinstance(found, Variable)
    return found


@holds("as many elements, of the same type, outside as in the variable")
def tensor_outside(op: Arrival | Departure, facts: ModuleFacts) -> None:
    """The tensor outside of the tiles has the elements of the variable."""
    found = _one(op, "writes" if isinstance(op, Arrival) else "reads", facts)
    if (
        prod(op.tensor.get_shape()) != prod(found.placed.shape)
        or op.tensor.element_type != found.tensor.element_type
    ):
        raise VerifyException(
            f"@{found.symbol} is {found.tensor}; the tensor outside is {op.tensor}"
        )


@holds("the tensor of the remote state that it names")
def tensor_of_remote(op: Load | Store, facts: ModuleFacts) -> None:
    """A load gives, and a store takes, a tensor of the remote state's type."""
    state = facts.symbols[op.remote.string_value()]
    assert isinstance(state, Remote)
    if op.tensor != state.tensor:
        raise VerifyException(f"{op.remote} is {state.tensor}; the operation says {op.tensor}")


@holds("a variable of a single `i1`")
def single_truth(op: Read, facts: ModuleFacts) -> None:
    """The control program reads a truth value."""
    found = _one(op, "variable", facts)
    if found.dtype != np.bool_ or prod(found.placed.shape) != 1:
        raise VerifyException(f"@{found.symbol} is {found.tensor}; need a single i1")


@holds(f"`turn` is a temporary `{ITERATION_NUMBER}`")
def number_temporary(op: RepeatOp, facts: ModuleFacts) -> None:
    """The control program writes the number of an iteration to a variable that is no state."""
    if op.turn is not None:
        found = _one(op, "turn", facts)
        if found.tensor != ITERATION_NUMBER or found.is_resident:
            raise VerifyException(
                f"@{found.symbol} is {found.tensor}; need a temporary {ITERATION_NUMBER}"
            )
