"""Lowers programs by random legal decisions, including decisions that the planner never makes.

The planner chooses the same few splits, homes and orders again and again, but a conversion must
handle every legal decision. This module draws splits (of reductions too, with any plan for
combining partials), orders, first tiles, methods, workers, homes, supersteps, addresses, and orders
of messages.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod
from random import Random
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....backends.prices.codelets import compute_cycles
from ....backends.prices.contractions.methods import methods_of
from ....backends.prices.workload import Workload, number_dtype, roles
from ....backends.target import Target, named_target, resolve_target
from ....dialects import control, partition, tile
from ....dialects.abele import Plan, PlanAttr
from ....dialects.dtypes import numpy_dtype
from ....dialects.home import ADDRESS, is_remote, number_of
from ....dialects.levels import NN, PLANNED, STAGED, TILE_DECISIONS
from ....dialects.nn import StoreOp, element_of, free_number, is_group, join
from ....dialects.partition import PartitionTensor, laid_out, partition_type
from ....dialects.placement import placement_of
from ....dialects.structured import Movement, Structure, Structured
from ....dialects.variable import ALIGNMENT
from ....ir.context import AbeleContext
from ....ir.geometry.grid import Cut
from ....ir.geometry.layout import Layout, canonical
from ....ir.geometry.space import Dim, identity_map
from ....ir.provenance import locate, named, origin, origin_names
from ....ir.support.errors import InputError
from ....ir.text import print_inline
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....ir.well_known import ENTRY
from ....passes.allocate import Allocate
from ....passes.analysis.lifetimes import lifetimes
from ....passes.analysis.packing import Boxes, pack
from ....passes.convert_nn_to_partition import ConvertNnToPartition
from ....passes.convert_partition_to_tile import ConvertPartitionToTile
from ....passes.convert_tile_to_exchange import ConvertTileToExchange
from ....passes.decompose import Decompose
from ....passes.gradients.program import entry_of
from ....passes.group_supersteps import GroupSupersteps
from ....passes.pipelining.scope import Scope
from ....passes.pipelining.stages import STAGE, STAGES, numbers, set_stage
from ....passes.pipelining.work import makers
from ....passes.plans.derive import combine_structure, is_legal_in_steps
from ....passes.plans.fused import FusedGroups
from ....passes.plans.padding import can_pad
from ....passes.plans.parts import Part, Parts
from ....passes.plans.planned import TARGET
from ....passes.plans.steps import passes_of, takes_steps
from ....passes.schedule_supersteps import SUPERSTEP, ScheduleSupersteps
from ...driver.extensions.added_level import ADDED, enter, wanted_by
from .messages import decide_messages

GATHERED = 0.3
"""How often an operand on several chips is shared among them, and gathered in rounds."""

REHOMED = 0.3
"""How often a state, an argument or a result gets a random home."""

STEPPED = 0.25
"""How often a plan computes in several steps, where that is legal."""

RINGED = 0.3
"""How often a plan passes operands round a ring of tiles, where that is legal."""

ROUNDS = 0.7
"""How often such a ring has several rounds: the number of parts is a multiple of the steps."""
RINGS_TRIED = 4

PADDED = 0.4
"""How often a reduction is cut into parts with a padded last part, where that is legal."""

MOST_STEPS = 6

GROUPED = 0.7
"""How often an operation is grouped with an operation that it reads, where that is legal."""

MOST_STAGES = 6

WHOLE = 0.4
"""How often all of @main has stages, and not a loop in it."""

STAGED_OPERATIONS = 0.8
"""The share of operations that get a stage; those of the others follow from what they read."""

LATE = 0.2
"""How often an operation waits for a later stage."""

ADDRESSED = 0.3
"""How often a variable gets a random address before the others are packed."""


def decide_groups(module: ModuleOp, random: Random) -> None:
    """Group random operations with the operations that they read, where that is legal."""
    number = free_number(module.walk())
    order = {op: i for i, op in enumerate(module.walk())}
    members: dict[Operation, tuple[Operation, ...]] = {}
    for op in module.walk():
        for before in dict.fromkeys(value.owner for value in op.operands):
            if not isinstance(before, Operation) or random.random() >= GROUPED:
                continue
            joined = {*members.get(before, (before,)), *members.get(op, (op,))}
            ordered = tuple(sorted(joined, key=lambda each: order[each]))
            if is_group(ordered):
                join(number, ordered)
                number += 1
                members.update((each, ordered) for each in ordered)


def decide_plans(module: ModuleOp, target: Target, random: Random) -> None:
    """Write a random legal plan on each operation that can have one, and the target on the module.

    Some operations are grouped and planned together.
    """
    decide_groups(module, random)
    with FusedGroups(module):
        parts = Parts(module, target, Part.of(target))
        for op in module.walk():
            _decide_plan(op, parts.around(op), random)
    module.attributes[TARGET] = StringAttr(target.spelling())


def _decide_plan(op: Operation, part: Part, random: Random) -> None:
    """Give an operation a random plan on the chips of its function."""
    if not isinstance(op, Structured | Movement):
        return
    plan = _plan_on(op, part.target, random)
    try:
        plan = part.moved(plan)
    except ValueError:
        # Its cells lie in a row on chips that are not neighbours.
        one = replace(part, target=part.target.one_chip)
        plan = one.moved(_plan_on(op, one.target, random))
    op.attributes["plan"] = PlanAttr(plan)


def _plan_on(op: Operation, target: Target, random: Random) -> Plan:
    if isinstance(op, Movement):
        return _movement_plan(op, target, random)
    assert isinstance(op, Structured)
    operand = number_dtype([_element(value) for value in op.operands])
    return random_plan(op.structure(), operand, _element(op.results[0]), target, random)


def _element(value: SSAValue) -> np.dtype[Any]:
    return numpy_dtype(element_of(value))


def random_plan(
    structure: Structure,
    operand: np.dtype[Any],
    element: np.dtype[Any],
    target: Target,
    random: Random,
    *,
    in_one_step: bool = False,
) -> Plan:
    """A random legal plan of a structure.

    Args:
        operand: the dtype of the computation.
        element: the dtype of the result.
        in_one_step: whether the plan, and each plan that combines its partials, has a single step.
    """
    dims = structure.space.dims
    if not in_one_step and random.random() < RINGED:
        ringed = _in_a_ring(structure, element, target, random)
        if ringed is not None:
            return _with_combine(structure, ringed, element, target, random, in_one_step)
    split = _split(dims, target.tiles, structure, random)
    order, first = _order(len(dims), random), _first_tile(split, target, random)
    method = ""
    if random.random() < 0.5 and roles(structure) is not None:
        work = Workload(structure.unchained, operand, element, target)
        method = random.choice(_methods(work, split))
    workers: tuple[int, ...] = ()
    if random.random() < 0.5:
        workers = _workers(dims, split, target, random)
    plan = _spread(Plan(split, order, first, method, workers), target)
    if not in_one_step:
        plan = _in_steps(structure, plan, element, random)
    return _with_combine(structure, plan, element, target, random, in_one_step)


def _methods(work: Workload, split: tuple[int, ...]) -> list[str]:
    """The target's methods for the cells of a contraction; [""] if it has none."""
    dims = work.structure.space.dims
    cells = np.array([[-(-d.size // n) for d, n in zip(dims, split, strict=True)]])
    methods = tuple(methods_of(work.target))
    cycles = (compute_cycles(work, cells, method)[0] for method in methods)
    fit = [m for m, each in zip(methods, cycles, strict=True) if np.isfinite(each).all()]
    return fit or [""]


def _with_combine(
    structure: Structure,
    plan: Plan,
    element: np.dtype[Any],
    target: Target,
    random: Random,
    in_one_step: bool,
) -> Plan:
    # The plan that combines the partials of a step has a single step. Steps are decided before
    # the combine is drawn, because a ring gives a step further dimensions.
    stepped = takes_steps(plan)
    if stepped:
        step = next(passes_of(structure, plan))[0]
        combine = combine_structure(step.structure, step.plan)
    else:
        combine = combine_structure(structure, plan)
    if combine is None:
        return plan
    further = random_plan(
        combine, element, element, target, random, in_one_step=in_one_step or stepped
    )
    return replace(plan, combine=further)


def _in_steps(structure: Structure, plan: Plan, element: np.dtype[Any], random: Random) -> Plan:
    """The plan, sometimes divided into steps. Some steps pass operands round a ring of tiles."""
    if random.random() >= STEPPED:
        return plan
    dims = structure.space.dims
    one, none = (1,) * len(dims), (-1,) * len(dims)
    rotating = [
        replace(plan, steps=_with(one, d, n), ring=_with(none, d, r))
        for n in range(2, MOST_STEPS + 1)
        for d, r in permutations(range(len(dims)), 2)
        if dims[d].kind == "reduction" and plan.split[r] % n == 0
    ]
    found = [each for each in rotating if is_legal_in_steps(structure, each, element)]
    plan = random.choice(found) if found and random.random() < 0.5 else replace(plan, steps=one)
    for d in random.sample(range(len(dims)), len(dims)):
        room = MOST_STEPS // prod(plan.steps)
        more = [replace(plan, steps=_with(plan.steps, d, n)) for n in range(2, room + 1)]
        legal = [each for each in more if is_legal_in_steps(structure, each, element)]
        if plan.steps[d] == 1 and legal and random.random() < 0.7:
            plan = random.choice(legal)
    return plan


def _in_a_ring(
    structure: Structure, element: np.dtype[Any], target: Target, random: Random
) -> Plan | None:
    """A plan whose operands go round a ring of tiles, often several times; None if none is found.

    Random splits seldom find such a plan, because the number of parts must be a multiple of the
    number of steps.
    """
    dims = structure.space.dims
    one, none = (1,) * len(dims), (-1,) * len(dims)
    ways = [
        (d, r, steps, parts)
        for d, r in permutations(range(len(dims)), 2)
        if dims[d].kind == "reduction" and dims[r].kind == "parallel"
        for steps in range(2, MOST_STEPS + 1)
        if dims[d].size % steps == 0
        for parts in range(steps, min(target.tiles, dims[r].size) + 1, steps)
        if dims[r].size % parts == 0
    ]
    several = [way for way in ways if way[3] > way[2]]
    ways = several if several and random.random() < ROUNDS else ways
    for d, r, steps, parts in random.sample(ways, min(len(ways), RINGS_TRIED)):
        split = _with(one, r, parts)
        plan = Plan(split, _order(len(dims), random), _first_tile(split, target, random))
        plan = _spread(plan, target)
        plan = replace(plan, steps=_with(one, d, steps), ring=_with(none, d, r))
        if is_legal_in_steps(structure, plan, element):
            return plan
    return None


def _with(numbers: tuple[int, ...], at: int, number: int) -> tuple[int, ...]:
    return (*numbers[:at], number, *numbers[at + 1 :])


def _movement_plan(op: Operation, target: Target, random: Random) -> Plan:
    shape = cast("TensorType[Attribute]", op.results[0].type).get_shape()
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
    split = _split(dims, target.tiles, None, random)
    return _spread(
        Plan(split, _order(len(dims), random), _first_tile(split, target, random)), target
    )


def _split(
    dims: Sequence[Dim], tiles: int, structure: Structure | None, random: Random
) -> tuple[int, ...]:
    split = [1] * len(dims)
    order = list(range(len(dims)))
    random.shuffle(order)
    for d in order:
        dim, room = dims[d], tiles // prod(split)
        parts = [p for p in range(1, min(room, dim.size) + 1) if _may_cut(dim, d, p, structure)]
        padded = [p for p in parts if dim.kind == "reduction" and dim.size % p]
        if padded and random.random() < PADDED:
            split[d] = random.choice(padded)
        elif parts:
            # The largest number of parts is as likely as one part.
            split[d] = random.choice((1, parts[-1], random.choice(parts)))
    return tuple(split)


def _may_cut(dim: Dim, d: int, parts: int, structure: Structure | None) -> bool:
    if dim.kind == "parallel" or parts == 1:
        return True
    if structure is None or structure.is_never_cut(d):
        return False
    even = dim.size % parts == 0 or can_pad(structure, d)
    return even and (parts - 1) * -(-dim.size // parts) < dim.size


def _order(rank: int, random: Random) -> tuple[int, ...]:
    order = list(range(rank))
    random.shuffle(order)
    return tuple(order[: random.randint(0, rank)])


def _first_tile(split: Sequence[int], target: Target, random: Random) -> int:
    free = target.tiles - prod(split)
    return random.choice((0, random.randint(0, free), free))


def _spread(plan: Plan, target: Target) -> Plan:
    """The plan, often spread over several chips of a machine that has them.

    Without a spread, its cells lie on neighbouring tiles, wherever chips begin. The choice follows
    from the plan, so that a machine of one chip draws the same plans as ever.
    """
    if target.chips == 1:
        return plan
    random, left = Random(repr(plan)), target.chips
    across: list[int] = []
    for parts in plan.split:
        across.append(random.choice([k for k in range(1, left + 1) if parts % k == 0]))
        left //= across[-1]
    cells, chips = prod(plan.split) // prod(across), prod(across)
    room = target.tiles_per_chip - cells
    if chips == 1 or room < 0:
        return plan
    chip = random.randint(0, target.chips - chips)
    first = chip * target.tiles_per_chip + random.choice((0, random.randint(0, room), room))
    return replace(plan, first_tile=first, across=tuple(across), apart=target.tiles_per_chip)


def _workers(
    dims: Sequence[Dim], split: Sequence[int], target: Target, random: Random
) -> tuple[int, ...]:
    workers = [1] * len(dims)
    room = target.workers
    for d in random.sample(range(len(dims)), len(dims)):
        if dims[d].kind == "parallel":
            most = min(room, max(1, -(-dims[d].size // split[d])))
            workers[d] = random.randint(1, most)
            room //= workers[d]
    return tuple(workers)


# Homes


def rehome(module: ModuleOp, target: Target, random: Random) -> None:
    """Give random homes to some states, arguments and results, and add relayouts for their uses."""
    for op in tuple(module.body.block.ops):
        if isinstance(op, partition.StateOp) and random.random() < REHOMED:
            _rehome_state(module, op, target, random)
    main = next(
        op
        for op in module.body.block.ops
        if isinstance(op, func.FuncOp) and op.sym_name.data == ENTRY
    )
    block = main.body.block
    for argument in block.args:
        if random.random() < REHOMED:
            old = partition_type(argument)
            argument._type = _home(old, target, random)  # pyright: ignore[reportPrivateUsage]
            back = partition.RelayoutOp([argument], None, old)
            argument.replace_uses_with_if(
                back.result, lambda use, back=back: use.operation is not back
            )
            _insert(back, block, block.first_op)
    last = block.last_op
    assert last is not None
    for i, value in enumerate(last.operands):
        if random.random() < REHOMED:
            there = partition.RelayoutOp(
                [value], None, _home(partition_type(value), target, random)
            )
            _insert(there, block, last)
            last.operands[i] = there.result
    main.update_function_type()


def _rehome_state(
    module: ModuleOp, state: partition.StateOp, target: Target, random: Random
) -> None:
    """Give a state a random home. Loads and stores of a remote one get a random layout each."""
    name = state.sym_name.data
    state.properties["type"] = home = _home(state.type, target, random)
    for op in tuple(module.walk()):
        block = op.parent
        if isinstance(op, partition.LoadOp) and op.state.string_value() == name:
            assert block is not None
            old = partition_type(op.result)
            there = _home(old, target, random) if is_remote(state) else home
            op.result._type = there  # pyright: ignore[reportPrivateUsage]
            back = partition.RelayoutOp([op.result], None, old)
            op.result.replace_uses_with_if(
                back.result, lambda use, back=back: use.operation is not back
            )
            _insert(back, block, op.next_op, like=op)
        elif isinstance(op, partition.StoreOp) and op.state.string_value() == name:
            assert block is not None
            wanted = _home(state.type, target, random) if is_remote(state) else home
            moved = partition.RelayoutOp([op.value], None, wanted)
            _insert(moved, block, op, like=op)
            op.operands[0] = moved.result


def _insert(
    op: Operation, block: Block, before: Operation | None, like: Operation | None = None
) -> None:
    assert before is not None
    paths = origin_names(like) if like is not None else ()
    if like is not None and paths:
        locate(op, like.location)
    else:
        op.location = named("home")
    block.insert_op_before(op, before)


def _home(type_: PartitionTensor, target: Target, random: Random) -> PartitionTensor:
    """The tensor type with a random layout in which each element has one owner."""
    return laid_out(type_.tensor, random_layout(type_.tensor.get_shape(), target, random))


def random_layout(shape: Sequence[int], target: Target, random: Random) -> Layout:
    """A random layout of a tensor, split along its axes. Each element has one owner.

    It leaves out I/O tiles.
    """
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
    access = identity_map(tuple(range(len(dims))), tuple(shape))
    whole = Part.of(target)
    one = replace(whole, target=whole.target.one_chip)
    for part in (whole, one):
        own = part.target
        split = _split(dims, own.tiles, None, random)
        plan = Plan(split, _order(len(dims), random), _first_tile(split, own, random))
        try:
            return canonical(part.moved(_spread(plan, own).layout(dims, access)))
        except ValueError:
            # Its cells lie in a row that goes on from a chip to the next.
            continue
    raise AssertionError("a layout of one chip can be moved")


# Supersteps and addresses


def decide_supersteps(module: ModuleOp, random: Random) -> None:
    """Number the supersteps. Random supersteps are split in two, and random numbers are skipped."""
    ScheduleSupersteps().apply(AbeleContext(), module)
    for block in {op.parent: None for op in module.walk() if SUPERSTEP in op.attributes}:
        assert block is not None
        more = random.choice((0, 0, 5))
        for op in block.ops:
            number = op.attributes.get(SUPERSTEP)
            if isinstance(number, IntegerAttr):
                more += random.choice((0, 0, 0, 1, 2))
                op.attributes[SUPERSTEP] = IntegerAttr(number.value.data + more, i64)


def decide_some_addresses(module: ModuleOp, target: Target, random: Random) -> None:
    """Give random addresses without overlaps to random variables.

    Assigns no address at all if the other variables would then not fit.
    """
    variables = [op for op in module.body.block.ops if isinstance(op, tile.VariableOp)]
    lives = lifetimes(module, variables)
    boxes = Boxes(variables, lives)
    # The conversion has placed what lies on I/O tiles.
    own = [number_of(v, ADDRESS) for v in variables]
    address = np.array([at or 0 for at in own], np.int64)
    is_given = np.array([at is not None for at in own], np.bool_)
    room = target.usable_bytes_per_tile
    for i in range(len(variables)):
        top = min(room - int(boxes.size[i]), 4096)
        # What has an address on I/O tiles keeps it between runs, so none is drawn there.
        on_io_tiles = target.is_aside(variables[i].placed.first_tile)
        if top < 0 or random.random() >= ADDRESSED or is_given[i] or on_io_tiles:
            continue
        address[i] = random.choice((0, random.randrange(0, top + 1, ALIGNMENT)))
        is_given[i] = not len(boxes.hit(i, np.flatnonzero(is_given), address))
    given = [int(a) if g else None for a, g in zip(address, is_given, strict=True)]
    packed = pack(variables, lives, given)
    ends = packed + boxes.size
    if len(variables) and int(ends.max()) <= room:
        for variable, chosen in zip(variables, given, strict=True):
            if chosen is not None:
                variable.attributes[ADDRESS] = IntegerAttr(chosen, i64)


# The way down


def lower(module: ModuleOp, level: str, target: Target, random: Random) -> None:
    """Lower a module of nn to a level, in place, by random decisions.

    Raises DoesNotFit if a program of tile or exchange does not fit the target's memory.

    Args:
        level: a level, or a stage in which only some of its decisions are made. "tile" picks a
            random stage of tile. A user's level is reached from the level above it.
    """
    Decompose().apply(AbeleContext(), module)
    if level == STAGED:
        decide_stages(module, max(target.chips, 2), random)
        return
    if _first_above(level) == NN.name:
        _descend(module, level, target, random)
        return
    decide_plans(module, target, random)
    if level != PLANNED:
        _descend(module, level, target, random)


def decide_stages(module: ModuleOp, chips: int, random: Random) -> None:
    """Put the operations of @main, or those of a loop in it, into random stages on random chips.

    Args:
        chips: how many there are.
    """
    main = entry_of(module)
    assert main is not None
    loops = [op for op in main.body.block.ops if isinstance(op, control.RepeatOp)]
    scopes = [
        (Scope.of_loop(op), min(op.iterations, MOST_STAGES))
        for op in loops
        if op.iterations
        and op.runs is None
        and not any(isinstance(each, StoreOp) for each in op.walk())
    ]
    if not scopes or random.random() < WHOLE:
        scopes = [(Scope(main.body.block), MOST_STAGES)]
    scope, most = random.choice(scopes)
    few = random.randint(1, most)
    for stages, late in (
        (random.choice((most, most, few)), LATE),
        (few, LATE),
        (few, 0.0),
        (1, 0.0),
    ):
        _cut_into_stages(scope, stages, late, random)
        try:
            scope.complete()
            break
        except InputError:
            # A loop carries a value back to an earlier stage.
            continue
    own = [random.randrange(chips) for _ in range(MOST_STAGES)]
    module.attributes[STAGES] = numbers(own)


def _cut_into_stages(scope: Scope, stages: int, late: float, random: Random) -> None:
    """Give operations random stages, in which values flow to later stages only.

    Args:
        late: how often an operation waits for a later stage, so that what it reads is kept for
            several micro-batches.
    """
    for op in scope.ops:
        op.attributes.pop(STAGE, None)
    ops = [op for op in scope.ops if random.random() < STAGED_OPERATIONS]
    cuts = [random.random() for _ in range(stages - 1)]
    own: dict[Operation, int] = {}
    for i, op in enumerate(ops):
        least = max((own[maker] for maker in makers(op) if maker in own), default=0)
        own[op] = max(least, sum(i >= cut * len(ops) for cut in cuts))
        if random.random() < late:
            own[op] = random.randint(own[op], stages - 1)
        set_stage(op, own[op])


def _first_above(level: str) -> str:
    """The stage of abele's levels from which a user's level is reached.

    A stage of abele's is reached from itself.
    """
    added = ADDED.get(level)
    while added is not None and added.after.name in ADDED:
        added = ADDED[added.after.name]
    return level if added is None else wanted_by(added)


def _descend(module: ModuleOp, level: str, target: Target, random: Random) -> None:
    added = ADDED.get(level)
    if added is None:
        _descend_to_own(module, level, target, random)
        return
    above = added.after.name if added.after.name in ADDED else wanted_by(added)
    if above not in (NN.name, PLANNED):
        _descend(module, above, target, random)
    enter(added, module, target, random)


def gather_in_rounds(module: ModuleOp, target: Target, random: Random) -> None:
    """Share some operands among all chips, gather them in rounds, and bring them back.

    Nothing is drawn for machines of one chip.
    """
    if target.chips == 1:
        return
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    on_all_chips = [each for each in functions if placement_of(each) is None]
    for op in [op for each in on_all_chips for op in each.walk()]:
        block = op.parent
        if not isinstance(op, partition.ComputeOp) or block is None:
            continue
        for i, value in enumerate(op.inputs):
            type_ = partition_type(value)
            shape, chips = type_.layout.data.shape, target.chips
            axes = [d for d, n in enumerate(shape) if n % chips == 0]
            # Blocks with halos can be filled, but not be read from.
            if not (axes and all(shape) and type_.layout.data.is_partition):
                continue
            if random.random() >= GATHERED:
                continue
            shared, gathered = _shared_and_gathered(shape, random.choice(axes), target, random)
            back = type_.layout.data
            for layout, rounds in ((shared, False), (gathered, True), (back, False)):
                value = partition.RelayoutOp(
                    [value], None, laid_out(type_.tensor, layout), rounds=rounds
                ).result
                _insert(value.op, block, op, like=op)
            op.operands[i] = value


def _shared_and_gathered(
    shape: tuple[int, ...], axis: int, target: Target, random: Random
) -> tuple[Layout, Layout]:
    """A layout in which chips have equal parts of an axis, and one in which each has all of it."""
    chips, apart, tiles = target.chips, target.tiles_per_chip, target.computing.tiles_per_chip

    def cuts(across: int | None) -> list[Cut]:
        left, found = tiles, list[Cut]()
        for d, n in enumerate(shape):
            if d == across:
                found.append(Cut(n, chips, 1, chips))
                continue
            parts = random.randint(1, max(1, min(n, left)))
            left //= parts
            found.append(Cut(n, parts))
        return found

    access = identity_map(tuple(range(1, len(shape) + 1)), shape)
    every = Cut(chips, chips, 1, chips)
    return (
        canonical(Layout((Cut(1), *cuts(axis)), access, apart=apart)),
        canonical(Layout((every, *cuts(None)), access, apart=apart)),
    )


def _descend_to_own(module: ModuleOp, level: str, target: Target, random: Random) -> None:
    context = AbeleContext()
    ConvertNnToPartition().apply(context, module)
    rehome(module, target, random)
    gather_in_rounds(module, target, random)
    if level == "partition":
        return
    ConvertPartitionToTile().apply(context, module)
    decided = "grouped" if level == "exchange" else level
    decided = decided if decided in TILE_DECISIONS else random.choice(TILE_DECISIONS)
    steps: tuple[Callable[[], None], ...] = (
        lambda: decide_supersteps(module, random),
        lambda: decide_some_addresses(module, target, random),
        lambda: Allocate().apply(context, module),
        lambda: _group(module, context, random),
    )
    for step in steps[: TILE_DECISIONS.index(decided)]:
        step()
    if level == "exchange":
        ConvertTileToExchange().apply(context, module)


def _group(module: ModuleOp, context: AbeleContext, random: Random) -> None:
    GroupSupersteps().apply(context, module)
    decide_messages(module, random)


@dataclass(frozen=True)
class PlanAtRandom(ModulePass):
    """Write random groups, and a random legal plan on every operation that computes or moves data.

    nn -> nn, in place of plan-splits.

    Attributes:
        target: a spelling of the target.
        seed: determines the plan of an operation together with the name of its node, so other
            operations do not affect the plan.
    """

    name = "plan-at-random"
    takes = NN

    target: str
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan a module in place."""
        target = resolve_target(self.target)
        decide_groups(op, Random(f"{self.seed} groups"))
        with FusedGroups(op):
            parts = Parts(op, target, Part.of(target))
            for each in op.walk():
                random = Random(f"{self.seed} {each.name} {origin(each)}")
                _decide_plan(each, parts.around(each), random)
        op.attributes[TARGET] = StringAttr(target.spelling())


@dataclass(frozen=True)
class LowerAtRandom(ModulePass):
    """Lower a planned module of nn by random decisions.

    The same module and seed give the same decisions.

    Attributes:
        to: the level, in the form that `lower` takes.
    """

    name = "lower-at-random"

    to: str = "exchange"
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower a module in place. Raises InputError for a module without plans, and DoesNotFit."""
        target = op.attributes.get(TARGET)
        if not isinstance(target, StringAttr):
            raise InputError(f"the module has no {TARGET}; plan it first")
        random = Random(f"{self.seed} {zlib.crc32(print_inline(op).encode())}")
        _descend(op, self.to, named_target(target.data), random)


AT_RANDOM = {
    each.name: f"{each.__module__}:{each.__name__}" for each in (PlanAtRandom, LowerAtRandom)
}
"""The passes of this file as "module:Class", which replaying a failure looks up by name."""
