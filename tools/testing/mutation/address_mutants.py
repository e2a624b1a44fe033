"""Mutants of programs at exchange, with changed addresses, lifetimes and supersteps.

They test the checks of addresses, not a pass: a mutant must either be refused, or behave like a
correct program, whatever the memory held before it was loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, SymbolRefAttr, i64
from xdsl.ir import Operation

from ....dialects import control
from ....dialects.exchange import SyncOp, VariableOp
from ....dialects.steps import Copy, Input, Output, Superstep, Sync, Vertices, zone_of
from ....dialects.variable import ALIGNMENT
from ....ir.upstream import ModuleOp, Rewriter
from ..generators.program import Program, invalidity

Item = TypeVar("Item")

MOST_WORDS = 64
"""How far a shift moves an address at most, in words of ALIGNMENT bytes."""

TRIES = 4
"""Number of tries per wanted mutant, because not every mutation applies."""


@dataclass(frozen=True)
class AddressClass:
    """A class of mutations.

    Attributes:
        line: a one-line description.
        moves_only: whether only addresses change, so that a correct mutant computes what the
            original computes.
        apply: changes a module at a random place; returns whether there was one.
    """

    name: str
    line: str
    moves_only: bool
    apply: Callable[[ModuleOp, Random], bool]


@dataclass(frozen=True)
class AddressMutant:
    """A program after one mutation."""

    mutation: AddressClass
    program: Program


def address_mutants(program: Program, random: Random, most: int) -> Iterator[AddressMutant]:
    """At most `most` mutants of a program at exchange, each with one mutation.

    All of them verify: a changed program that fails verification is not a mutant.
    """
    made = 0
    for _ in range(TRIES * most):
        if made == most:
            return
        mutation = random.choice(ADDRESS_CLASSES)
        module = program.module.clone()
        if not mutation.apply(module, random) or invalidity(module) is not None:
            continue
        made += 1
        yield AddressMutant(
            mutation, Program(module, program.context, program.inputs, program.target)
        )


def _some(random: Random, items: Sequence[Item], count: int) -> Sequence[Item]:
    """Randomly chosen distinct items; none if there are fewer than `count`."""
    return random.sample(items, count) if len(items) >= count else ()


# Addresses


def _variables(module: ModuleOp) -> list[VariableOp]:
    found = [op for op in module.body.block.ops if isinstance(op, VariableOp)]
    return [v for v in found if v.bytes_per_tile]


def _set_address(variable: VariableOp, address: int) -> None:
    variable.address = IntegerAttr(address, i64)


def _shift(module: ModuleOp, random: Random) -> bool:
    for v in _some(random, _variables(module), 1):
        words = random.choice((1, 2, v.bytes_per_tile // ALIGNMENT, MOST_WORDS))
        address = v.start + random.choice((-1, 1)) * words * ALIGNMENT
        _set_address(v, max(address, 0))
        return address >= 0
    return False


def _swap(module: ModuleOp, random: Random) -> bool:
    for v in _some(random, _variables(module), 1):
        for w in _some(random, [o for o in _variables(module) if o.start != v.start], 1):
            own = v.start
            _set_address(v, w.start)
            _set_address(w, own)
            return True
    return False


def _alias(module: ModuleOp, random: Random) -> bool:
    """Move a variable to addresses that overlap those of another variable."""
    pair = _some(random, _variables(module), 2)
    return bool(pair) and _put(pair[0], pair[1], random)


def _alias_state(module: ModuleOp, random: Random) -> bool:
    """Move a non-resident variable onto a state or a constant, or a state or constant onto it."""
    variables = _variables(module)
    for held in _some(random, [v for v in variables if v.is_resident], 1):
        for other in _some(random, [v for v in variables if not v.is_resident], 1):
            pair = [held, other]
            random.shuffle(pair)
            return _put(pair[0], pair[1], random)
    return False


def _put(moved: VariableOp, at: VariableOp, random: Random) -> bool:
    ends = at.start + at.bytes_per_tile
    places = (at.start, ends - ALIGNMENT, max(at.start + ALIGNMENT - moved.bytes_per_tile, 0))
    before = moved.start
    _set_address(moved, random.choice(places))
    return moved.start != before


def _pack(module: ModuleOp, random: Random) -> bool:
    """Give all non-resident variables one address."""
    moved = [v for v in _variables(module) if not v.is_resident]
    for at in _some(random, moved, 1):
        for v in moved:
            _set_address(v, at.start)
        return len(moved) > 1
    return False


def _beyond(module: ModuleOp, random: Random) -> bool:
    for v in _some(random, _variables(module), 1):
        _set_address(v, v.start + (1 << random.randrange(12, 30)))
        return True
    return False


# Lifetimes


def _steps(module: ModuleOp) -> list[Superstep]:
    return [op for op in module.walk() if isinstance(op, Superstep)]


def _accesses(
    module: ModuleOp, kinds: tuple[type[Operation], ...] = (Copy, Vertices, Input, Output)
) -> list[Operation]:
    return [op for step in _steps(module) for op in step.body.block.ops if isinstance(op, kinds)]


def _settle(step: Superstep) -> None:
    """Order the operations of a superstep and give it the sync that they need."""
    ops = [op for op in step.body.block.ops if not isinstance(op, Sync)]
    for op in tuple(step.body.block.ops):
        op.detach()
    moves = [op for op in ops if not isinstance(op, Vertices)]
    host = any(isinstance(op, Input | Output) for op in moves)
    computes = [op for op in ops if isinstance(op, Vertices)]
    step.body.block.add_ops([SyncOp(zone_of(host=host)), *moves, *computes])


def _drop_write(module: ModuleOp, random: Random) -> bool:
    for op in _some(random, _accesses(module, (Copy, Vertices, Input)), 1):
        step = op.parent_op()
        Rewriter.erase_op(op)
        assert isinstance(step, Superstep)
        _settle(step)
        return True
    return False


def _drop_value(module: ModuleOp, random: Random) -> bool:
    for v in _some(random, [v for v in _variables(module) if v.initial is not None], 1):
        v.initial = None
        return True
    return False


def _move(module: ModuleOp, random: Random) -> bool:
    """Move an operation to another superstep."""
    return _carry(module, random, keep=False)


def _again(module: ModuleOp, random: Random) -> bool:
    """Repeat an operation in another superstep, where its operands are then needed too."""
    return _carry(module, random, keep=True)


def _carry(module: ModuleOp, random: Random, keep: bool) -> bool:
    # An output that is given twice is refused before addresses matter.
    kinds = (Copy, Vertices, Input) if keep else (Copy, Vertices, Input, Output)
    for op in _some(random, _accesses(module, kinds), 1):
        step = op.parent_op()
        assert isinstance(step, Superstep)
        for other in _some(random, [o for o in _steps(module) if o is not step], 1):
            if keep:
                op = op.clone()
            else:
                op.detach()
            other.body.block.add_op(op)
            _settle(step)
            _settle(other)
            return True
    return False


def _read_other(module: ModuleOp, random: Random) -> bool:
    """Make an operation read another variable that it can also read."""
    variables = {v.symbol: v for v in _variables(module)}
    for op in _some(random, _accesses(module, (Copy, Vertices, Output)), 1):
        read = op.reads.string_value() if isinstance(op, Output) else None
        sources = [read] if read is not None else _sources(op)
        index = random.randrange(len(sources))
        own = variables.get(sources[index])
        alike = [
            name
            for name, v in variables.items()
            if own is not None and v is not own and (v.tensor, v.layout) == (own.tensor, own.layout)
        ]
        for name in _some(random, alike, 1):
            if isinstance(op, Output):
                op.reads = SymbolRefAttr(name)
            else:
                sources[index] = name
                op.properties["reads"] = ArrayAttr(map(SymbolRefAttr, sources))
            return True
    return False


def _sources(op: Operation) -> list[str]:
    assert isinstance(op, Copy | Vertices)
    return list(op.sources)


# Supersteps and the control program


def _neighbours(module: ModuleOp) -> list[tuple[Superstep, Superstep]]:
    return [(before, op) for op in _steps(module) if isinstance(before := op.prev_op, Superstep)]


def _swap_steps(module: ModuleOp, random: Random) -> bool:
    for before, step in _some(random, _neighbours(module), 1):
        block = step.parent
        assert block is not None
        step.detach()
        block.insert_op_before(step, before)
        return True
    return False


def _merge_steps(module: ModuleOp, random: Random) -> bool:
    for before, step in _some(random, _neighbours(module), 1):
        for op in tuple(before.body.block.ops):
            op.detach()
            step.body.block.add_op(op)
        _settle(step)
        Rewriter.erase_op(before)
        return True
    return False


def _drop_step(module: ModuleOp, random: Random) -> bool:
    for step in _some(random, _steps(module), 1):
        Rewriter.erase_op(step)
        return True
    return False


def _iterations(module: ModuleOp, random: Random) -> bool:
    loops = [op for op in module.walk() if isinstance(op, control.RepeatOp)]
    for loop in _some(random, loops, 1):
        iterations = random.choice([n for n in (0, 1, 2, 3) if n != loop.iterations])
        loop.count = IntegerAttr(iterations, i64)
        return True
    return False


ADDRESS_CLASSES = (
    AddressClass("shift", "an address is some words lower or higher", True, _shift),
    AddressClass("swap", "two variables swap their addresses", True, _swap),
    AddressClass("alias", "a variable lies on another one", True, _alias),
    AddressClass("alias-state", "a state and a temporary share bytes", True, _alias_state),
    AddressClass("pack", "all temporaries lie at one address", True, _pack),
    AddressClass("beyond", "an address is far behind the others", True, _beyond),
    AddressClass("drop-write", "an operation that writes is removed", False, _drop_write),
    AddressClass("drop-value", "a state or constant has no initial value", False, _drop_value),
    AddressClass("move", "an operation runs in another superstep", False, _move),
    AddressClass("again", "an operation runs in another superstep as well", False, _again),
    AddressClass("read-other", "an operation reads another variable", False, _read_other),
    AddressClass("swap-steps", "two supersteps run in the other order", False, _swap_steps),
    AddressClass("merge-steps", "two supersteps are one", False, _merge_steps),
    AddressClass("drop-step", "a superstep is removed", False, _drop_step),
    AddressClass("iterations", "a loop has another number of iterations", False, _iterations),
)
"""All classes of mutations."""
