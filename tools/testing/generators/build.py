"""Building a module of nn from a sketch: well-typed by construction, for any set of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from random import Random
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f16, f32, i1, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects import control, nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.scalar_functions import FUNCTIONS, chainable
from ....dialects.structured import (
    Composite,
    Movement,
    Reinterpretation,
    Stage,
    Structured,
    extras_of,
)
from ....ir.blob import BlobStore
from ....ir.context import AbeleContext
from ....ir.instances import Instances
from ....ir.provenance import named
from ....ir.rules.vocabulary import Vocabulary
from ....ir.tensor_type import tensor_type
from ....ir.upstream import VerifyException
from ...driver.context import new_context
from .program import Program
from .sketch import Data, Sketch, Step

Array = NDArray[Any]

MOST_POINTS = 20_000
"""The most points that an operation's iteration space may have."""
MOST_RESULTS = 16
SHARED = 0.6
"""How often an operand is an existing value, if there is one of its type."""
CHANGES = 8
"""How many operators `_changed` tries."""

CHAINED = 0.2
"""How often an operation that can have a chain gets one."""
ENDS = 0.4
"""How often a program returns only the values that no operation reads, instead of all values."""
UNIFORM = 0.4
"""How often all elements of a constant are one number, as many rules need it."""
STORED = 0.2
"""How often a program stores one of its values."""

ELEMENTS: tuple[Attribute, ...] = (f32, f16, i32, i1)
"""The element types of programs by default."""

_RUNS = (Structured, Movement, Reinterpretation, Composite)


class Operators:
    """The operators that programs of nn are built from: all of a context that can be run.

    only: restrict them to these classes or names. Raises ValueError if none of those can be run.
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
            if issubclass(cls, _RUNS) and (wanted is None or cls.name in wanted)
        )
        if wanted is not None and not self.classes:
            raise ValueError(f"operators {sorted(wanted)}: none of them is known and can be run")


@lru_cache(maxsize=8)
def default_operators(only: tuple[str, ...] | None = None) -> Operators:
    """Abele's own operators, or those with these names."""
    return Operators(new_context(), only)


def build(
    sketch: Sketch, operators: Operators, elements: Sequence[Attribute] = ELEMENTS
) -> Program:
    """The program of a sketch; the same sketch always gives the same program.

    Its results are the last 16 values outside of control flow, or only those of them that no
    operation reads.
    """
    return _Builder(sketch, operators, tuple(elements)).program()


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

    def program(self) -> Program:
        """Build the program."""
        self.context = self.operators.context.clone()
        self.context.blobs = BlobStore()
        random = Random(f"{self.sketch.seed}")
        if random.random() < 0.5:
            self.values.append(self._first_leaf(random))
        for step in self.sketch.steps:
            if step.within:
                self._control(step)
            else:
                self._step(step)
        if not self.values:
            self.values.append(self._first_leaf(random))
        return self._finished(random)

    def _finished(self, random: Random) -> Program:
        block = self.arguments
        results = self.values[-MOST_RESULTS:]
        if random.random() < ENDS:
            # An operation can be fused with its reader only if nothing else reads its result.
            results = [v for v in results if v.first_use is None] or results[-1:]
        stored = [v for v in self.values if random.random() < STORED][:1]
        for value in stored:
            alike = [s for s in self.states if s.elements == value.type]
            state = random.choice(alike) if alike and random.random() < 0.7 else None
            name = state.sym_name.data if state else self._state(value.type, random)
            self.ops.append(nn.StoreOp(value, name))
        block.add_ops([*self.head, *self.ops])
        block.add_op(func.ReturnOp(*results))
        types = ([a.type for a in block.args], [v.type for v in results])
        main = func.FuncOp("main", types, Region(block))
        module = ModuleOp([*self.states, main])
        machine = self.sketch.machine
        return Program(module, self.context, self.inputs, machine, sketch=self.sketch)

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
        for _ in range(rank):
            size = random.choice(self.sketch.sizes)
            shape.append(size if size * prod(shape) <= 512 else 1)
        return self._leaf(tensor_type(element, shape), random)

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
            array = self._array(type_, random)
            if array.size and random.random() < UNIFORM:
                array = np.full_like(array, array.flat[0])
            op = nn.ConstantOp(self.context.blobs.add(array))
        self.head.append(op)
        return op.results[0]

    def _state(self, type_: Attribute, random: Random) -> str:
        name = f"w{len(self.states)}"
        self.states.append(nn.StateOp(name, self.context.blobs.add(self._array(type_, random))))
        return name

    def _value(self, type_: Attribute, random: Random) -> SSAValue:
        """A value of a type: an existing one, or a new leaf."""
        alike = [v for v in self.values if v.type == type_]
        if alike and random.random() < SHARED:
            return random.choice(alike)
        return self._leaf(type_, random)

    # Operations

    def _step(self, step: Step) -> SSAValue | None:
        """Add one operation and return its result; None if no operation can be made."""
        random = Random(f"{step.seed} {step.kind}")
        classes = self.operators.classes
        cls = classes[step.kind % len(classes)]
        op = self._instance(cls, step, random)
        if op is None:
            return None
        if random.random() < CHAINED:
            op = self._with_chain(op, random)
        self._add(op)
        self.values.append(op.results[0])
        return op.results[0]

    def _add(self, op: Operation) -> None:
        op.location = named(f"node{self.made}")
        self.made += 1
        self.ops.append(op)

    def _instance(self, cls: type[Operation], step: Step, random: Random) -> Operation | None:
        instances = self.operators.instances
        count = len(self.values)
        for turn in range(min(count, 6)):
            value = self.values[-1 - (step.operand + turn) % count]
            if not instances.takes(cls, value.type):
                continue
            first = cast("TensorType[Attribute]", value.type)
            op = instances.make(cls, random, self.sketch.sizes, first, self.elements, _is_cheap)
            if op is not None:
                self._connect(op, value, random)
                return op
        op = instances.make(cls, random, self.sketch.sizes, None, self.elements, _is_cheap)
        if op is not None:
            self._connect(op, None, random)
        return op

    def _connect(self, op: Operation, first: SSAValue | None, random: Random) -> None:
        """Give an operation operands of its types, among them `first` if its type fits."""
        places = [i for i, v in enumerate(op.operands) if first and v.type == first.type]
        at = random.choice(places) if places else -1
        op.operands = [
            first if i == at and first is not None else self._value(v.type, random)
            for i, v in enumerate(op.operands)
        ]

    def _with_chain(self, op: Operation, random: Random) -> Operation:
        if not nn.can_chain(op):
            return op
        result = cast("TensorType[Attribute]", op.results[0].type)
        shape = tuple(result.get_shape())
        stages = tuple(_stage(random) for _ in range(random.choice((1, 1, 2, 3))))
        extras: list[SSAValue] = []
        for _ in range(extras_of(stages)):
            narrow = [n if random.random() < 0.6 else 1 for n in shape]
            narrow = narrow[random.choice((0, 0, random.randint(0, len(narrow)))) :]
            extras.append(self._value(tensor_type(result.element_type, narrow), random))
        try:
            chained = nn.chained(op, stages, extras)
        except VerifyException:
            return op
        op.drop_all_references()
        return chained

    # Control flow

    def _control(self, step: Step) -> None:
        random = Random(f"{step.seed} {step.kind} {step.within}")
        if not self.values:
            self.values.append(self._first_leaf(random))
        _CONTROL[step.within](self, step, random)

    def _body(self, carried: Sequence[SSAValue], step: Step, wanted: Attribute) -> Block:
        """A block of a few operations that takes the carried values, still without its terminator.

        wanted: the type of the value that the block ends with, which is left in self.chosen.
        """
        block = Block(arg_types=[v.type for v in carried])
        outer_ops, outer_values = self.ops, list(self.values)
        self.ops = []
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
        block.add_ops(self.ops)
        self.ops, self.values = outer_ops, outer_values
        self.chosen = chosen
        return block

    chosen: SSAValue | None = None

    def _changed(self, value: SSAValue, step: Step) -> SSAValue:
        """The result of some operation on a value, of the same type; the value if none is found.

        A body that passes its value on unchanged does nothing, and two such branches are equal.
        """
        random = Random(f"{step.seed} {step.kind} changed")
        classes, instances = self.operators.classes, self.operators.instances
        for _ in range(CHANGES):
            cls = classes[self._kind(random) % len(classes)]
            if not instances.takes(cls, value.type):
                continue
            first = cast("TensorType[Attribute]", value.type)
            op = instances.make(cls, random, self.sketch.sizes, first, self.elements, _is_cheap)
            if op is not None and op.results[0].type == value.type:
                self._connect(op, value, random)
                self._add(op)
                self.values.append(op.results[0])
                return op.results[0]
        return value

    def _kind(self, random: Random) -> int:
        """The kind of an operation that the sketch does not determine."""
        kinds = self.sketch.kinds
        return random.choice(kinds) if kinds else random.randrange(1 << 16)

    def _carried(self, step: Step) -> SSAValue:
        return self.values[-1 - step.operand % len(self.values)]

    def repeat(self, step: Step, random: Random) -> None:
        """Add a loop of a few iterations."""
        value = self._carried(step)
        block = self._body([value], step, value.type)
        assert self.chosen is not None
        block.add_op(control.YieldOp(self.chosen))
        self._flow(control.RepeatOp(random.choice((0, 1, 2, 2, 3)), [value], Region(block)))

    def choice(self, step: Step, random: Random) -> None:
        """Add a branch on a leaf."""
        value = self._carried(step)
        predicate = self._leaf(tensor_type(i1, []), random)
        branches: list[Region] = []
        for turn in range(2):
            kind = self._kind(random) if turn else step.kind
            block = self._body([], Step(kind, step.operand, step.seed), value.type)
            assert self.chosen is not None
            block.add_op(control.YieldOp(self.chosen))
            branches.append(Region(block))
        self._flow(control.IfOp(predicate, [value.type], branches[0], branches[1]))

    def loop(self, step: Step, random: Random) -> None:
        """Add a loop that counts to a limit."""
        value = self._carried(step)
        counter = tensor_type(f32, [])
        begin = nn.ConstantOp(self.context.blobs.add(np.zeros((), np.float32)))
        turns = float(random.choice((0, 1, 2, 3)))
        limit = nn.ConstantOp(self.context.blobs.add(np.array(turns, np.float32)))
        self.head += [begin, limit]
        test = Block(arg_types=[counter, value.type])
        less = nn.LessOp(test.args[0], limit.result)
        test.add_ops([less, control.ConditionOp(less.result)])
        body = self._body([begin.result, value], step, value.type)
        assert self.chosen is not None
        more = nn.ShiftOp(body.args[0], 1.0)
        body.add_ops([more, control.YieldOp(more.result, self.chosen)])
        self._flow(control.WhileOp([begin.result, value], Region(test), Region(body)))

    def _flow(self, op: Operation) -> None:
        self._add(op)
        self.values.append(op.results[-1])


_CONTROL: dict[str, Callable[[_Builder, Step, Random], None]] = {
    "repeat": _Builder.repeat,
    "if": _Builder.choice,
    "while": _Builder.loop,
}


def _is_cheap(op: Operation) -> bool:
    if not isinstance(op, Structured):
        return True
    return prod(op.structure().space.sizes) <= MOST_POINTS


def _stage(random: Random) -> Stage:
    stages = [(name, at) for name, places in chainable().items() for at in places]
    name, at = random.choice(stages)
    function = FUNCTIONS[name]
    some = tuple(random.choice((2.0, -1.0, 0.5)) for _ in range(function.parameters))
    return Stage(name, random.choice(function.samples or (some,)), at)


# Values


def values_of(shape: Sequence[int], dtype: np.dtype[Any], seed: int, data: Data) -> Array:
    """The values of a tensor, determined by the arguments alone."""
    random = np.random.default_rng(seed)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -3
        return random.integers(low, 4, shape).astype(dtype)
    if data == "integers":
        return random.integers(-3, 4, shape).astype(dtype)
    normal = random.standard_normal(shape)
    if data == "normal":
        # Tensors differ in magnitude, so that mixing them up shows in a sum.
        scale = 2.0 ** random.integers(-4, 5) * (1.0 if seed % 3 else 1.7)
        return (normal * scale).astype(dtype)
    special = _special(dtype)
    picked = special[random.integers(0, len(special), shape)]
    return np.where(random.random(shape) < 0.25, picked, normal.astype(dtype)).astype(dtype)


def _special(dtype: np.dtype[Any]) -> Array:
    info = cast(Any, ml_dtypes.finfo(dtype))
    largest, tiny = float(info.max), float(info.smallest_subnormal)
    some = (np.inf, -np.inf, np.nan, -0.0, 0.0, tiny, -3 * tiny, largest, -largest, 1.0)
    return np.array(some, np.float64).astype(dtype)
