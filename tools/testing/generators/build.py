"""Builds modules of nn from sketches. Modules are well typed by construction, for any operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from math import prod
from random import Random
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, f16, f32, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects import control, nn
from ....dialects.dtypes import ELEMENTS as EVERY_ELEMENT
from ....dialects.dtypes import STORED as ONLY_STORED
from ....dialects.dtypes import element_type, numpy_dtype
from ....dialects.home import keep_remote
from ....dialects.levels import LEVEL_DIALECTS, USERS_DIALECTS, all_users_dialects
from ....dialects.nn.elementwise import ElementwiseOp
from ....dialects.structured import (
    Composite,
    Movement,
    Reinterpretation,
    Structured,
)
from ....ir.blob import BlobStore
from ....ir.context import AbeleContext
from ....ir.provenance import named
from ....ir.rules.vocabulary import Vocabulary
from ....ir.support.number_kinds import whole_limits
from ....ir.tensor_type import tensor_type
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.well_known import ENTRY
from ...driver.arrays import Array
from ...driver.context import new_context
from .instances import Instances
from .micro_batches import USED, in_micro_batches
from .outline import outlined
from .program import Program
from .sketch import ASKED, LENGTHS, NO_LITERALS, Data, Sketch, Step, is_long
from .training import as_step
from .values import values_of

MOST_POINTS = 20_000
"""The most points that an operation's iteration space may have."""
MOST_RESULTS = 16
MOST_ELEMENTS = 512
"""The most elements of a program's first value, if no axis is long."""
SHARED = 0.6
"""How often an operand is an existing value, if there is one of its type."""
CHANGES = 8
"""How many operators `_changed` tries."""

CHAINED = 0.2
"""How often functions follow an operation in which they can be computed."""
FOLLOWERS_TRIED = 3
OUTLINED = 0.6
"""How often a program for several chips is cut into functions."""
ENDS = 0.4
"""How often a program returns only the values that no operation reads, instead of all values."""
LATEST_FIRST = 0.5
"""How often the results are reversed, so that the first result, whose gradients are taken,
depends on most operations."""
UNIFORM = 0.4
"""How often all elements of a constant are equal, as many rules need."""
STORED = 0.12
"""How often a program stores a value after an operation, and at its end."""
RUNS, MOST_OF_RUNS = 0.15, 4
"""How often a program that stores values is put into a loop of runs, and how many results it may
then have."""
VIEWED = 0.3
"""How often a program that stores into a state first loads and reshapes its old value."""
READ_AGAIN = 0.6
"""How often a program loads a state after storing a value in it."""
CONSTANT = 0.06
"""How often all operands of an operation are constants."""

REMOTE = 0.25
"""How often the home of a state is remote memory."""

TWINS = 0.2
"""How often an operation is followed by a variant on the same operands."""
REPEATED = 0.12
"""How often an operation is followed by another operation of its class that reads its result."""
CHAINS, CHAINS_OF_FEW = 0.25, 0.5
"""How often each operation of a program reads the result of the operation before it. The second
number is for programs of a few operators that a pass names, which often matches them in a row."""
NUMBERED = 0.4
"""How often a loop with a known number of iterations reads the iteration number."""
CARRIED = (1, 1, 2, 2, 3)
"""How many values a loop carries or a branch yields."""
OUTSIDE = 0.2
"""How often an iteration or a branch yields a value from outside of its body."""
ALL_OUTPUTS = 0.5
"""How often a program may use all results of a loop or branch, instead of only one."""

ANY_INDICES = 0.2
"""How often indices are arbitrary integers, which may be out of range."""

OTHER_INDICES = 0.3
"""How often indices in range have an integer type of any width instead of the drawn type."""
INDICES: tuple[Attribute, ...] = (i8, i8, i16, i64, element_type(np.dtype(np.uint8)))

PLANNED_AT_RANDOM = 0.4
"""How often check_pipeline plans a program at random, instead of by the planner."""
MAPPED, MAPPED_OTHERWISE, GENERAL = 0.6, 0.12, 0.4
"""How often an operation has something to plan: merged dimensions, or access maps of its own.
The first number is for programs with random plans or a long axis, the second for others. The
third is how often such an operation is nn.compute, which has any map, or a sum if an axis is
long."""
SUMMING = (nn.ReduceOp, nn.ReduceOp, nn.MatMulOp, nn.ComputeOp)
WHOLE_SUMS = 0.8
"""How often a program with a long axis begins with the sum of all elements along it, which random
operations seldom compute."""

ELEMENTS: tuple[Attribute, ...] = (f32, f16, i32, i1)
"""The element types of programs by default."""

RARE: tuple[Attribute, ...] = tuple(each for each in EVERY_ELEMENT if each not in ELEMENTS)
"""All other element types. A program has at most one of them."""

_RUNS = (Structured, Movement, Reinterpretation, Composite)
_NOT_MAPPED = (ElementwiseOp, nn.CastOp, nn.BitCastOp, nn.ExpandOp, nn.IotaOp, nn.ComputeOp)
"""Operations that compute each element from one element, so that plans decide little, and
nn.compute, which is drawn separately."""


def is_users(name: str) -> bool:
    """Whether an operation belongs to a dialect that an extension has added."""
    return name.partition(".")[0] in USERS_DIALECTS


class Operators:
    """The operators that programs of nn are built from: all runnable operators of a context.

    Raises ValueError if no operator is left.

    Attributes:
        only: restrict them to these classes or names. An operator of a user's dialect that is named
            here need not be runnable, because a pass may lower it.
    """

    def __init__(
        self, context: AbeleContext, only: Sequence[type[Operation] | str] | None = None
    ) -> None:
        self.context = context
        self.instances = Instances(Vocabulary(context))
        wanted = None if only is None else {o if isinstance(o, str) else o.name for o in only}
        self.classes = tuple(
            cls
            for cls in sorted(context.loaded_ops, key=lambda cls: cls.name)
            if (wanted is None or cls.name in wanted)
            and cls.name.partition(".")[0] not in LEVEL_DIALECTS
            and (issubclass(cls, _RUNS) or (wanted is not None and is_users(cls.name)))
        )
        self.functions = tuple(
            cls for cls in self.classes if issubclass(cls, ElementwiseOp | nn.CastOp)
        )
        self.mapped = tuple(
            cls
            for cls in self.classes
            if issubclass(cls, Structured) and not issubclass(cls, _NOT_MAPPED)
        )
        if wanted is not None and not self.classes:
            raise ValueError(f"operators {sorted(wanted)}: none of them is known and can be run")


def default_operators(only: tuple[str, ...] | None = None) -> Operators:
    """Abele's own operators.

    Args:
        only: restrict them to these names.
    """
    found = (op for dialect in LEVEL_DIALECTS.values() for op in dialect.operations)
    return _default_operators(only, tuple(found))


@lru_cache(maxsize=8)
def _default_operators(
    only: tuple[str, ...] | None, of_levels: Sequence[type[Operation]]
) -> Operators:
    """Abele's own operators, in a context that also has the operations of users' levels."""
    return Operators(new_context(LEVEL_DIALECTS.values()), only)


def users_operators(only: Sequence[str]) -> Operators:
    """The operators with these names, among them users'."""
    return Operators(new_context(all_users_dialects()), only)


def build(
    sketch: Sketch, operators: Operators, elements: Sequence[Attribute] = ELEMENTS
) -> Program:
    """The program that a sketch describes. The same sketch always gives the same program.

    The program returns its last 16 values outside of control flow, or only the unread values among
    them. A training step returns its loss, and sometimes these values too. Some programs for
    several chips compute micro-batches.
    """
    if elements is ELEMENTS and sketch.element >= len(ELEMENTS):
        elements = (*ELEMENTS, RARE[sketch.element % len(RARE)])
        sketch = replace(sketch, element=len(ELEMENTS))
    program = _Builder(sketch, operators, tuple(elements)).program()
    if sketch.training:
        program = as_step(program, sketch.training, sketch.data)
    elif sketch.machine.chips > 1 and USED <= {*operators.classes}:
        program = in_micro_batches(program)
    return program


@dataclass
class _Builder:
    sketch: Sketch
    operators: Operators
    elements: tuple[Attribute, ...]
    context: AbeleContext = field(default_factory=AbeleContext)
    arguments: Block = field(default_factory=Block)
    head: list[Operation] = field(default_factory=list[Operation])
    states: list[nn.StateOp] = field(default_factory=list[nn.StateOp])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    ops: list[Operation] = field(default_factory=list[Operation])
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    made: int = 0
    tried: int = 0
    is_chain: bool = False
    is_planned: bool = False

    def program(self) -> Program:
        """Build the program."""
        self.context = self.operators.context.clone()
        self.context.blobs = BlobStore()
        random = Random(f"{self.sketch.seed}")
        self.is_chain = random.random() < (CHAINS_OF_FEW if self.sketch.kinds else CHAINS)
        self.is_planned = Random(f"{self.sketch.seed} plans").random() < PLANNED_AT_RANDOM
        if random.random() < 0.5:
            self.values.append(self._first_leaf(random))
        if is_long(self.sketch):
            self._sum_of_long(Random(f"{self.sketch.seed} long"))
        for step in self.sketch.steps:
            if self.is_chain:
                step = replace(step, operand=0)
            if step.within:
                self._control(step)
            else:
                self._step(step)
            if self.values and random.random() < STORED:
                self._store(random.choice(self.values), random)
        if not self.values:
            self.values.append(self._first_leaf(random))
        return self._finished(random)

    def _finished(self, random: Random) -> Program:
        block = self.arguments
        results = self.values[-MOST_RESULTS:]
        if random.random() < ENDS:
            # An operation can be fused with its reader only if nothing else reads its result.
            results = [v for v in results if v.first_use is None] or results[-1:]
        if Random(f"{self.sketch.seed} latest first").random() < LATEST_FIRST:
            results.reverse()
        if random.random() < STORED:
            self._store(random.choice(self.values), random)
        if self._has_runs():
            results = self._in_runs(results[:MOST_OF_RUNS], random)
        end = func.ReturnOp(*results)
        functions = self._outline()
        block.add_ops([*self.head, *self.ops, end])
        types = ([a.type for a in block.args], [v.type for v in end.operands])
        main = func.FuncOp(ENTRY, types, Region(block))
        module = ModuleOp([*self.states, main, *functions])
        sketch = self.sketch
        return Program(
            module,
            self.context,
            self.inputs,
            sketch.machine,
            sketch=sketch,
            plans=sketch.seed if self.is_planned else None,
        )

    def _has_runs(self) -> bool:
        """Whether to put the program into a loop that runs it several times (`runs=True`)."""
        stores = any(isinstance(op, nn.StoreOp) for op in self.ops)
        random = Random(f"{self.sketch.seed} runs")
        may = self.sketch.loops and not self.sketch.training
        return stores and may and random.random() < RUNS

    def _in_runs(self, results: Sequence[SSAValue], random: Random) -> list[SSAValue]:
        """Move all operations into a loop whose iterations are runs of the program.

        States keep their values from run to run. Returns the results of the loop.
        """
        body = Block(arg_types=[*(v.type for v in results), control.ITERATION_NUMBER])
        inside = [op for op in self.head if not isinstance(op, nn.ConstantOp)] + self.ops
        self.head = [op for op in self.head if isinstance(op, nn.ConstantOp)]
        initial = [self._constant(v.type, random) for v in results]
        body.add_ops([*inside, control.YieldOp(*results)])
        loop = control.RepeatOp(random.choice((1, 2, 2, 3)), initial, Region(body), runs=True)
        loop.location = named("runs")
        self.ops = [loop]
        return list(loop.outputs)

    def _outline(self) -> list[func.FuncOp]:
        """Move operations into functions on chips of their own, on a machine that has several.

        What a run stores has to be in the loop of runs, so a program with such a loop has none.
        """
        random, chips = Random(f"{self.sketch.seed} functions"), self.sketch.machine.chips
        in_runs = any(isinstance(op, control.RepeatOp) and op.runs is not None for op in self.ops)
        if chips == 1 or self.sketch.training or in_runs or random.random() >= OUTLINED:
            return []
        self.ops, functions = outlined(self.ops, chips, random)
        return functions

    def _store(self, value: SSAValue, random: Random) -> None:
        """Store a value in a state, and sometimes load the state afterwards.

        The load gives the state's value from the start of the run, not the stored value.
        """
        alike = [s for s in self.states if s.elements == value.type]
        state = random.choice(alike) if alike and random.random() < 0.7 else None
        name = state.sym_name.data if state else self._state(value.type, random)
        if nn.ReshapeOp in self.operators.classes and random.random() < VIEWED:
            self._view_of(name, cast("TensorType[Attribute]", value.type), random)
        self.ops.append(nn.StoreOp(value, name))
        if random.random() < READ_AGAIN:
            load = nn.LoadOp(name, cast("TensorType[Attribute]", value.type))
            self.ops.append(load)
            self.values.append(load.result)

    def _view_of(self, state: str, type_: TensorType[Attribute], random: Random) -> None:
        """Load and reshape a state at the start of the program, for later operations to read."""
        old, shape = nn.LoadOp(state, type_), list(type_.get_shape())
        at = random.randint(0, len(shape))
        flat = [*shape[:at], prod(shape[at:])] if random.random() < 0.5 else [1, *shape]
        view = nn.ReshapeOp(old.result, flat)
        self.head += [old, view]
        self.values.append(view.result)

    # Leaves

    def _array(self, type_: Attribute, random: Random) -> Array:
        tensor = cast("TensorType[Attribute]", type_)
        seed = random.randrange(1 << 30)
        return values_of(tensor.get_shape(), numpy_dtype(tensor.element_type), seed, self.data)

    @property
    def data(self) -> Data:
        return self.sketch.data

    def _first_leaf(self, random: Random) -> SSAValue:
        element = self.elements[self.sketch.element % len(self.elements)]
        rank = random.choice((0, 1, 2, 2, 3, 3, 4))
        shape: list[int] = []
        most = max(MOST_ELEMENTS, 4 * max(self.sketch.sizes))
        for _ in range(rank):
            size = random.choice(self.sketch.sizes)
            shape.append(size if size * prod(shape) <= most else 1)
        return self._leaf(tensor_type(element, shape), random)

    def _sum_of_long(self, random: Random) -> None:
        """Often add a leaf with a long last axis, and a sum along this axis."""
        allowed = nn.ReduceOp in self.operators.classes and not self.sketch.kinds
        element = self.elements[self.sketch.element % len(self.elements)]
        if not allowed or element not in (f32, f16, i32) or random.random() >= WHOLE_SUMS:
            return
        short = [n for n in self.sketch.sizes if n < LENGTHS[0]]
        shape = [*random.sample(short, min(len(short), 1)), max(self.sketch.sizes)]
        leaf = self._leaf(tensor_type(element, shape), random)
        self._append(nn.ReduceOp(leaf, "sum", [len(shape) - 1]))

    def _leaf(self, type_: Attribute, random: Random) -> SSAValue:
        """A new leaf of the program: an argument, a state or a constant."""
        chance = random.random()
        if chance < 0.55 or not self.arguments.args:
            name = f"arg{len(self.arguments.args)}"
            self.inputs[name] = self._array(type_, random)
            return self.arguments.insert_arg(type_, len(self.arguments.args))
        if chance < 0.85:
            op = nn.LoadOp(self._state(type_, random), cast("TensorType[Attribute]", type_))
        else:
            return self._constant(type_, random)
        self.head.append(op)
        return op.results[0]

    def _constant(self, type_: Attribute, random: Random) -> SSAValue:
        array = self._array(type_, random)
        if array.size and random.random() < UNIFORM:
            array = np.full_like(array, self._number(array))
        op = nn.ConstantOp(self.context.blobs.add(array))
        self.head.append(op)
        return op.result

    def _number(self, array: Array) -> object:
        """The value of a uniform constant: the array's first element, or sometimes a literal.

        Literals come from the sketch. Only literals in the range of the dtype are used.
        """
        asked = Random(f"{self.sketch.seed} {len(self.head)} number")
        literals, dtype = self.sketch.literals, array.dtype
        some = (*literals.ints, *literals.floats) if dtype.kind == "f" else literals.ints
        fits = [n for n in some if _holds(dtype, n)]
        return asked.choice(fits) if fits and asked.random() < ASKED else array.flat[0]

    def _state(self, type_: Attribute, random: Random) -> str:
        name = f"w{len(self.states)}"
        state = nn.StateOp(name, self.context.blobs.add(self._array(type_, random)))
        # Drawn apart, so that programs do not change.
        if Random(f"{self.sketch.seed} {name} home").random() < REMOTE:
            keep_remote(state)
        self.states.append(state)
        return name

    def _value(self, type_: Attribute, random: Random) -> SSAValue:
        """A value of the given type: an existing value or a new leaf."""
        alike = [v for v in self.values if v.type == type_]
        if alike and random.random() < SHARED:
            return random.choice(alike)
        return self._leaf(type_, random)

    # Operations

    def _step(self, step: Step) -> SSAValue | None:
        """Add one operation and return its result; None if no operation can be made."""
        random = Random(f"{step.seed} {step.kind}")
        cls = self._class(step)
        if random.random() < CONSTANT:
            op = self._on_constants(cls, random)
        else:
            op = self._instance(cls, step, random)
        if op is None:
            return None
        self._append(op)
        last = self._followed(op, random) if random.random() < CHAINED else op
        chance = random.random()
        if chance < TWINS:
            twin = self._twin(random.choice((op, last)), random)
        elif chance < TWINS + REPEATED:
            twin = self._on_result(last, random)
        else:
            twin = None
        if twin is not None:
            self._append(twin)
        return last.results[0]

    def _class(self, step: Step) -> type[Operation]:
        """The class of the operation that a step adds.

        In programs with random plans, classes with many legal plans are more likely. In programs
        with a long axis, classes that sum along it are more likely.
        """
        operators = self.operators
        drawn = operators.classes[step.kind % len(operators.classes)]
        if self.sketch.kinds or not operators.mapped:
            return drawn
        random = Random(f"{step.seed} {step.kind} mapped")
        often = self.is_planned or is_long(self.sketch)
        if random.random() >= (MAPPED if often else MAPPED_OTHERWISE):
            return drawn
        if random.random() < GENERAL:
            some = SUMMING if is_long(self.sketch) else (nn.ComputeOp,)
            known = [cls for cls in some if cls in operators.classes]
            return random.choice(known or operators.mapped)
        return random.choice(operators.mapped)

    def _followed(self, op: Operation, random: Random) -> Operation:
        """Append one to three functions that can be fused with an operation. Returns the last."""
        for _ in range(random.choice((1, 1, 2, 3))):
            following = self._follow(op, random)
            if following is not None:
                # Nothing else may read a value that is computed in a group.
                self.values.remove(op.results[0])
                self._append(following)
                op = following
        return op

    def _append(self, op: Operation) -> None:
        self._add(op)
        self.values += op.results

    def _add(self, op: Operation) -> None:
        if isinstance(op, Structured) and op.structure().space.relations:
            self._name_elements(op)
        op.location = named(f"node{self.made}")
        self.made += 1
        self.ops.append(op)

    def _name_elements(self, op: Operation) -> None:
        """Replace an operation's index operands by indices in range, except for a random few."""
        assert isinstance(op, Structured)
        random = Random(f"{self.sketch.seed} {self.made} indices")
        for relation in op.structure().space.relations:
            size = relation.axis.size
            if random.random() < ANY_INDICES or not size:
                continue
            type_ = self._index_type(op, relation.operand, random)
            dtype, shape = numpy_dtype(type_.element_type), type_.get_shape()
            limits = np.iinfo(dtype)
            low, high = max(-size, limits.min), min(size, limits.max + 1)
            seed = random.randrange(1 << 30)
            held = np.random.default_rng(seed).integers(low, high, shape).astype(dtype)
            if random.random() < 0.6:
                name = f"arg{len(self.arguments.args)}"
                self.inputs[name] = held
                new = self.arguments.insert_arg(type_, len(self.arguments.args))
            else:
                constant = nn.ConstantOp(self.context.blobs.add(held))
                self.head.append(constant)
                new = constant.result
            op.operands[relation.operand] = new

    def _index_type(self, op: Operation, number: int, random: Random) -> TensorType[Attribute]:
        """The type of an index operand: its present type, or sometimes another integer width."""
        old = op.operands[number]
        type_ = cast("TensorType[Attribute]", old.type)
        if random.random() >= OTHER_INDICES:
            return type_
        other = tensor_type(random.choice(INDICES), type_.get_shape())
        op.operands[number] = Block(arg_types=[other]).args[0]
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return type_
        finally:
            op.operands[number] = old
        return other

    def _instance(self, cls: type[Operation], step: Step, random: Random) -> Operation | None:
        instances = self.operators.instances
        count = len(self.values)
        for iteration in range(min(count, 6)):
            value = self.values[-1 - (step.operand + iteration) % count]
            if not instances.takes(cls, value.type):
                continue
            first = cast("TensorType[Attribute]", value.type)
            op = self._made(cls, random, first)
            if op is not None:
                self._connect(op, value, random)
                return op
        op = self._made(cls, random)
        if op is not None:
            self._connect(op, None, random)
        return op

    def _made(
        self,
        cls: type[Operation],
        random: Random,
        first: TensorType[Attribute] | None = None,
    ) -> Operation | None:
        """A random operation of a class; None if none is found.

        Sometimes an attribute is set to a literal of the sketch.
        """
        instances, sketch = self.operators.instances, self.sketch
        op = instances.make(cls, random, sketch.sizes, first, self.elements, _is_cheap)
        if op is None or sketch.literals == NO_LITERALS:
            return op
        self.tried += 1
        asked = Random(f"{sketch.seed} {self.tried} literals")
        if asked.random() >= ASKED:
            return op
        return instances.with_literal(op, asked, sketch.literals, self.elements, _is_cheap)

    def _on_constants(self, cls: type[Operation], random: Random) -> Operation | None:
        op = self._made(cls, random)
        if op is not None:
            op.operands = [self._constant(v.type, random) for v in op.operands]
        return op

    def _twin(self, op: Operation, random: Random) -> Operation | None:
        """A variant of an operation: swapped operands or other attributes; None if none fits."""
        pairs = [
            (i, j)
            for i, j in combinations(range(len(op.operands)), 2)
            if op.operands[i].type == op.operands[j].type and op.operands[i] is not op.operands[j]
        ]
        if pairs and random.random() < 0.7:
            i, j = random.choice(pairs)
            twin = op.clone()
            twin.operands[i], twin.operands[j] = op.operands[j], op.operands[i]
            return twin
        changes = op.properties and op.operands
        return self._with_other_attributes(op, random) if changes else None

    def _with_other_attributes(self, op: Operation, random: Random) -> Operation | None:
        types = [v.type for v in op.operands]
        first = cast("TensorType[Attribute]", types[0])
        for _ in range(CHANGES):
            twin = self._made(type(op), random, first)
            if twin is None:
                return None
            fits = [v.type for v in twin.operands] == types and twin.properties != op.properties
            twin.operands = op.operands if fits else []
            if fits:
                return twin
        return None

    def _on_result(self, op: Operation, random: Random) -> Operation | None:
        """A second operation of the class that reads the first one's result; None if none fits."""
        value = op.results[0]
        if not self.operators.instances.takes(type(op), value.type):
            return None
        first = cast("TensorType[Attribute]", value.type)
        again = self._made(type(op), random, first)
        if again is not None:
            self._connect(again, value, random)
        return again

    def _connect(self, op: Operation, first: SSAValue | None, random: Random) -> None:
        """Give an operation existing values or new leaves as operands, of its operands' types.

        Args:
            first: becomes one of the operands if its type fits.
        """
        places = [i for i, v in enumerate(op.operands) if first and v.type == first.type]
        at = random.choice(places) if places else -1
        op.operands = [
            first if i == at and first is not None else self._value(v.type, random)
            for i, v in enumerate(op.operands)
        ]

    def _follow(self, op: Operation, random: Random) -> Operation | None:
        """A function of an operation's result that can be fused with the operation.

        Returns None if none is found.
        """
        value = op.results[0]
        if not nn.can_begin(op) or not self.operators.functions:
            return None
        first = cast("TensorType[Attribute]", value.type)
        for _ in range(FOLLOWERS_TRIED):
            cls = random.choice(self.operators.functions)
            made = self._made(cls, random, first)
            if made is None:
                continue
            if nn.shape_of(made.results[0]) == nn.shape_of(value):
                self._connect(made, value, random)
                return made
            made.drop_all_references()
        return None

    # Control flow

    def _control(self, step: Step) -> None:
        random = Random(f"{step.seed} {step.kind} {step.within}")
        if not self.values:
            self.values.append(self._first_leaf(random))
        _CONTROL[step.within](self, step, random)

    def _body(
        self,
        carried: Sequence[SSAValue],
        step: Step,
        wanted: Attribute,
        count: int,
        *,
        numbered: bool = False,
    ) -> tuple[Block, list[SSAValue]]:
        """A block of a few operations on the carried values, and the values that it is to yield.

        The block has no terminator.

        Args:
            wanted: the type of the yielded values.
            count: number of yielded values.
            numbered: the block has the iteration number as a further argument and computes with it.
        """
        iteration = [control.ITERATION_NUMBER] if numbered else []
        block = Block(arg_types=[*(v.type for v in carried), *iteration])
        outer_ops, outer_values = self.ops, list(self.values)
        self.ops = []
        if numbered:
            self.values += self._with_iteration(block.args[-1], block.args[0])
        # The body first reads what it carries, and may read outside values too.
        self.values.extend(block.args)
        begin = len(self.values)
        random = Random(f"{step.seed} body")
        self._step(Step(step.kind, 0, step.seed))
        for _ in range(random.choice((0, 1, 2))):
            kind, operand = self._kind(random), random.choice((0, 0, 1))
            self._step(Step(kind, operand, random.randrange(1 << 16)))
        given = [a for a in block.args if a.type == wanted] or [
            v for v in self.values[:begin] if v.type == wanted
        ]
        inner = [v for v in self.values[begin:] if v.type == wanted]
        chosen = inner[-1] if inner else self._changed(given[-1], step)
        others = [v for v in dict.fromkeys((*given[-3:], *inner)) if v is not chosen]
        random.shuffle(others)
        yielded = [chosen, *others, *[chosen] * count][:count]
        random.shuffle(yielded)
        yielded = self._with_outside(yielded, [v for v in outer_values if v.type == wanted], step)
        block.add_ops(self.ops)
        self.ops, self.values = outer_ops, outer_values
        return block, yielded

    def _with_outside(
        self, yielded: list[SSAValue], outside: Sequence[SSAValue], step: Step
    ) -> list[SSAValue]:
        """The yielded values, sometimes with one replaced by a value from outside of the body."""
        random = Random(f"{step.seed} {step.kind} outside")
        if random.random() < OUTSIDE:
            value = self._leaf(yielded[0].type, random) if not outside else random.choice(outside)
            yielded[random.randrange(len(yielded))] = value
        return yielded

    def _with_iteration(self, iteration: SSAValue, value: SSAValue) -> list[SSAValue]:
        """The iteration number, for a body to compute with: added to a value, or as it is.

        The number is not added to booleans, to stored-only types, or to values of its own type.
        """
        element = nn.element_of(value)
        if element in (i1, nn.element_of(iteration)) or element in ONLY_STORED:
            return [iteration]
        cast_iteration = nn.CastOp(iteration, element)
        added = nn.AddOp(value, cast_iteration.result)
        self.ops += [cast_iteration, added]
        return [added.result]

    def _changed(self, value: SSAValue, step: Step) -> SSAValue:
        """A value of the same type, computed from a value; the value if no operation fits.

        A body that yields its argument unchanged does nothing, and two such branches are equal.
        """
        random = Random(f"{step.seed} {step.kind} changed")
        classes, instances = self.operators.classes, self.operators.instances
        for _ in range(CHANGES):
            cls = classes[self._kind(random) % len(classes)]
            if not instances.takes(cls, value.type):
                continue
            first = cast("TensorType[Attribute]", value.type)
            op = self._made(cls, random, first)
            if op is not None and op.results[0].type == value.type:
                self._connect(op, value, random)
                self._add(op)
                self.values.append(op.results[0])
                return op.results[0]
        return value

    def _kind(self, random: Random) -> int:
        """The class number of an operation in a body, from the numbers that the sketch allows."""
        kinds = self.sketch.kinds
        return random.choice(kinds) if kinds else random.randrange(1 << 16)

    def _carried(self, step: Step, random: Random) -> list[SSAValue]:
        """One to three values of one type for a loop to carry, all different where possible."""
        value = self.values[-1 - step.operand % len(self.values)]
        count = random.choice(CARRIED)
        alike = [v for v in self.values if v.type == value.type and v is not value]
        more = random.sample(alike, min(len(alike), count - 1))
        leaves = [self._leaf(value.type, random) for _ in range(count - 1 - len(more))]
        return [value, *more, *leaves]

    def repeat(self, step: Step, random: Random) -> None:
        """Add a loop of a few iterations."""
        carried = self._carried(step, random)
        numbered = random.random() < NUMBERED
        block, yielded = self._body(carried, step, carried[0].type, len(carried), numbered=numbered)
        block.add_op(control.YieldOp(*yielded))
        op = control.RepeatOp(random.choice((0, 1, 2, 2, 3)), carried, Region(block))
        self._flow(op, op.results, random)

    def choice(self, step: Step, random: Random) -> None:
        """Add a branch on a leaf."""
        carried = self._carried(step, random)
        predicate = self._leaf(tensor_type(i1, []), random)
        branches: list[Region] = []
        for iteration in range(2):
            kind = self._kind(random) if iteration else step.kind
            inner = Step(kind, step.operand, step.seed)
            block, yielded = self._body([], inner, carried[0].type, len(carried))
            block.add_op(control.YieldOp(*yielded))
            branches.append(Region(block))
        op = control.IfOp(predicate, [v.type for v in carried], branches[0], branches[1])
        self._flow(op, op.results, random)

    def loop(self, step: Step, random: Random) -> None:
        """Add a loop that counts to a limit."""
        carried = self._carried(step, random)
        counter = tensor_type(f32, [])
        begin = nn.ConstantOp(self.context.blobs.add(np.zeros((), np.float32)))
        iterations = float(random.choice((0, 1, 2, 3)))
        limit = nn.ConstantOp(self.context.blobs.add(np.array(iterations, np.float32)))
        self.head += [begin, limit]
        test = Block(arg_types=[counter, *[v.type for v in carried]])
        less = nn.LessOp(test.args[0], limit.result)
        test.add_ops([less, control.ConditionOp(less.result)])
        body, yielded = self._body([begin.result, *carried], step, carried[0].type, len(carried))
        more = nn.ShiftOp(body.args[0], 1.0)
        body.add_ops([more, control.YieldOp(more.result, *yielded)])
        op = control.WhileOp([begin.result, *carried], Region(test), Region(body))
        self._flow(op, op.results[1:], random)

    def _flow(self, op: Operation, outputs: Sequence[SSAValue], random: Random) -> None:
        """Add a loop or a branch. The rest of the program may use all of its outputs or one."""
        self._add(op)
        self.values += outputs if random.random() < ALL_OUTPUTS else [random.choice(outputs)]


_CONTROL: dict[str, Callable[[_Builder, Step, Random], None]] = {
    "repeat": _Builder.repeat,
    "if": _Builder.choice,
    "while": _Builder.loop,
}


def _is_cheap(op: Operation) -> bool:
    if not isinstance(op, Structured):
        return True
    return prod(op.structure().space.sizes) <= MOST_POINTS


def _holds(dtype: np.dtype[Any], number: float) -> bool:
    """Whether a number is in the range of a dtype that NumPy has itself; floats may round it."""
    if dtype.kind in "iu":
        limits = whole_limits(dtype)
        return limits.min <= number <= limits.max
    return dtype.kind == "f" and abs(number) <= float(np.finfo(dtype).max)
