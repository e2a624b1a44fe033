"""Builds the program of a model: its inputs, its weights, and the operations of its nodes.

Every front end builds with these classes. A `ProgramBuilder` holds the program so far, and a
`NodeBuilder` appends the operations of one node. Both know nothing of files:

    program = ProgramBuilder(context=reading.context, place=reading.place)
    x = program.add_input("x", (4, 8), np.float32)
    w = program.weight("w", (8, 8), np.dtype(np.float32), lambda: array)
    node = NodeBuilder("layer", program)
    with node.checked():
        y = node.add(nn.MatMulOp(x, program.emitted(w)))
    node.finish([x, w], [y])
    module = program.module([("y", y)])
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from xdsl.dialects.builtin import ArrayAttr, StringAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from ...backends.reference import KnownValues
from ...dialects import nn
from ...dialects.dtypes import element_type, numpy_dtype
from ...dialects.host import (
    ArgumentSize,
    LengthInput,
    ResultSize,
    set_argument_sizes,
    set_result_sizes,
)
from ...dialects.random_states import SEED, STEP
from ...dialects.tensor_limits import check_tensor_limits
from ...ir.context import AbeleContext
from ...ir.provenance import at, inner_location, is_known, named, note_of
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.limits import TABLE_ELEMENTS
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import LocationAttr, ModuleOp, NameLoc, VerifyException
from ...ir.well_known import FIXED
from .errors import NotConstantError, UnsupportedError, given_by
from .given_weights import GivenWeights
from .length_values import emitted_length, number_in
from .lengths import Length, as_length
from .padding import add_padded
from .program_parts import Sizes

MAX_KNOWN_ELEMENTS = 1 << 16
"""The most elements of a parameter that is computed at import."""

MAX_FILLED_BYTES = 1 << 16
"""Larger tensors that repeat one number are expanded on the machine, as fold-constants leaves
them."""


@dataclass(frozen=True)
class Known:
    """A value known at import. It becomes an operation when one is needed.

    Attributes:
        name: of the weight, or of the node that makes the constant.
        make: returns the array; called at most once.
        state: the name of a weight, None for a constant.
        is_fixed: whether the model's framework does not train the weight.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    make: Callable[[], Array]
    state: str | None = None
    is_fixed: bool = False

    @classmethod
    def of(cls, name: str, array: Array) -> Known:
        """A constant with an array's elements, or an input with a value that is known now."""
        return cls(name, array.shape, array.dtype, lambda: array)


Value = SSAValue | Known
"""A tensor of a model: the result of an operation, or an array that is known at import."""

T = TypeVar("T", bound=Operation)

Shape = tuple[int, ...]


@dataclass
class Names:
    """Names that are taken, and the next number to try for each name that is requested again."""

    taken: set[str] = field(default_factory=set[str])
    next: dict[str, int] = field(default_factory=dict[str, int])

    def unique(self, name: str) -> str:
        """The name, numbered if it is taken. Takes the name."""
        unique = name
        while unique in self.taken:
            number = self.next.get(name, 1)
            unique, self.next[name] = f"{name}_{number}", number + 1
        self.taken.add(unique)
        return unique


class NodeWatcher(Protocol):
    """What follows the values of a model from node to node, such as the samples of a batch."""

    def add_input(self, name: str, value: SSAValue) -> None:
        """Begin with an input."""
        ...

    def reshaped(self, node: NodeBuilder, shape: Shape) -> Shape | None:
        """The shape of the result of a node that only reshapes its operand 0; None if the model's
        own shape is right.

        Args:
            shape: of the operand.
        """
        ...

    def add_node(
        self, node: NodeBuilder, operands: Sequence[Value | None], results: Sequence[Value | None]
    ) -> None:
        """Go on with a node whose operations are built. The arguments are those of `finish`."""
        ...


@dataclass(kw_only=True)
class ProgramBuilder:
    """The program so far: states, and operations of @main.

    Attributes:
        context: for its operations and blobs.
        place: the model's name in messages.
        training: whether the program is to be trained, so that weights stay separate states, and
            dropout is active.
        watcher: follows the values from node to node, or None.
        weights: tensors that a user gives for weights, or None.
        main: the body of @main.
        region: the block of control flow to which nodes add operations; None for the body of @main.
        inputs: the names of the arguments of @main.
        sizes: for values with padding, the number of elements that exist along each axis that has
            some; padding follows them.
        lengths: the elements of values that are followed as lengths; None if they are not known.
        length_inputs, argument_sizes: the arguments of @main that are lengths, and those that have
            padding.
        counts: the number of true elements of masks, by the block that it is computed in.
        held_lengths: the values that hold lengths, by the block that they are in.
        fixed: the names of the states that the model's framework does not train.
    """

    context: AbeleContext
    place: str
    training: bool = False
    watcher: NodeWatcher | None = None
    weights: GivenWeights | None = None
    main: Block = field(default_factory=Block)
    region: Block | None = None
    inputs: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    sizes: dict[SSAValue, Sizes] = field(default_factory=dict[SSAValue, Sizes])
    lengths: dict[SSAValue, NDArray[np.object_] | None] = field(
        default_factory=dict[SSAValue, NDArray[np.object_] | None]
    )
    length_inputs: list[LengthInput] = field(default_factory=list[LengthInput])
    argument_sizes: list[ArgumentSize] = field(default_factory=list[ArgumentSize])
    counts: dict[tuple[Block, SSAValue], Length] = field(
        default_factory=dict[tuple[Block, SSAValue], Length]
    )
    held_lengths: dict[tuple[Block, Length], SSAValue] = field(
        default_factory=dict[tuple[Block, Length], SSAValue]
    )
    states: list[nn.StateOp] = field(default_factory=list[nn.StateOp])
    loads: list[nn.LoadOp] = field(default_factory=list[nn.LoadOp])
    fixed: list[str] = field(default_factory=list[str])
    made: dict[Known, SSAValue] = field(default_factory=dict[Known, SSAValue])
    computed: KnownValues = field(init=False)
    names: Names = field(default_factory=lambda: Names({"main", SEED, STEP}))
    random: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def __post_init__(self) -> None:
        # The functions must not refer to this program: a reference cycle would keep its weights.
        sizes, made = self.sizes, self.made
        self.computed = KnownValues(
            MAX_KNOWN_ELEMENTS,
            begins=lambda value: None if value in sizes else _array_of_weight(value, made),
            is_closed=lambda value: value not in sizes,
        )

    @property
    def body(self) -> Block:
        """The block to which nodes add operations."""
        return self.main if self.region is None else self.region

    def bad(self, message: str) -> InputError:
        """An error in the model."""
        return InputError(f"{self.place}: {message}")

    def add_input(self, name: str, shape: Sequence[int], dtype: DTypeLike) -> SSAValue:
        """A new argument of @main. Raises InputError for a tensor beyond the limits."""
        dtype = np.dtype(dtype)
        try:
            check_tensor_limits(shape, dtype.itemsize)
        except ValueError as error:
            raise self.bad(f"input {name!r}: {error}") from None
        argument = self.main.insert_arg(nn.tensor(shape, element_type(dtype)), len(self.main.args))
        argument.location = named(name)
        self.inputs[argument] = name
        if self.watcher is not None:
            self.watcher.add_input(name, argument)
        return argument

    def add_length(self, name: str, least: int, most: int) -> Length:
        """A new argument of @main that is a number of elements, an i32 without axes.

        A run with a number out of its bounds is a fault, which names the argument.
        """
        unique = Names(set(self.inputs.values())).unique(name)
        argument = self.add_input(unique, (), np.int32)
        self.length_inputs.append(LengthInput(unique, least, most))
        node = NodeBuilder(unique, self)
        length = node.length_in(argument, least, most)
        node.finish([argument], [node.ops[-1].results[0]])
        return length

    def bound_input(
        self, value: SSAValue, axis: int, offset: int, lengths: Sequence[tuple[str, Length]]
    ) -> None:
        """Let an argument of @main have padding along an axis.

        Args:
            offset, lengths: the number of elements that exist is the sum of all. A length has the
                name of its argument.
        """
        total = sum((length for _, length in lengths), as_length(offset))
        self.sizes[value] = {**self.sizes.get(value, {}), axis: total}
        names = tuple(name for name, _ in lengths)
        self.argument_sizes.append(ArgumentSize(self.inputs[value], axis, offset, names))

    def weight(
        self,
        name: str,
        shape: Sequence[int],
        dtype: np.dtype[np.generic],
        read: Callable[[], Array],
        *,
        replaceable: bool = True,
        fixed: bool = False,
    ) -> Known:
        """A weight, which becomes a state of the program if an operation reads it.

        Args:
            read: returns its array; called once, and never if nothing reads the weight. It must not
                refer to this program: a reference cycle would keep the bytes of all weights.
            replaceable: whether a tensor that the user gives for its name replaces its array.
            fixed: whether the model's framework does not train it.
        """
        made: list[Array] = []
        if self.weights is not None and replaceable:
            read = self.weights.replacing(name, shape, np.dtype(dtype), read)

        def make() -> Array:
            if not made:
                made.append(read())
            return made[0]

        return Known(name, tuple(shape), dtype, make, name, fixed)

    def emitted(self, value: Value) -> SSAValue:
        """A value as the result of an operation."""
        if isinstance(value, SSAValue):
            return value
        if value not in self.made:
            blob = self.context.blobs.add(value.make())
            if value.state is None:
                constant = nn.ConstantOp(blob)
                constant.location = named(value.name)
                # At the top of @main, outside all regions, so that every operation may use the
                # constant.
                self.main.add_op(constant)
                self.made[value] = constant.result
            else:
                symbol = self.names.unique(value.state)
                state = nn.StateOp(symbol, blob)
                load = nn.LoadOp(symbol, nn.tensor_of(state.elements))
                state.location = load.location = named(value.name)
                self.states.append(state)
                self.loads.append(load)
                if value.is_fixed:
                    self.fixed.append(symbol)
                self.made[value] = load.result
        return self.made[value]

    def store(self, weight: Known, value: Value) -> None:
        """Let the state of a weight hold a value, of the same type, from the end of each run on."""
        load = self.emitted(weight)
        assert isinstance(load, OpResult), "weights are loaded"
        assert isinstance(load.op, nn.LoadOp), f"{weight.name} is no weight"
        op = nn.StoreOp(self.emitted(value), load.op.state.string_value())
        op.location = named(weight.name)
        self.main.add_op(op)

    def random_state(self, name: str) -> SSAValue:
        """The state SEED or STEP of the program, of ui32. It is 0 in the first run."""
        if name not in self.random:
            state = nn.StateOp(name, self.context.blobs.add(np.zeros((), np.uint32)))
            load = nn.LoadOp(name, nn.tensor_of(state.elements))
            state.location = load.location = named(name)
            self.states.append(state)
            self.loads.append(load)
            self.random[name] = load.result
        return self.random[name]

    def known(self, value: Value) -> Array | None:
        """The array of a value known at import, if it is small; None for a value that depends on
        inputs.
        """
        if isinstance(value, Known):
            return value.make()
        if value in self.sizes:
            return None
        return self.computed.array(value)

    def exact(self, value: Value) -> Array | None:
        """The array of a value known at import without any rounding, if it is small.

        Floats that operations compute are left to the program, because its checks know their
        errors.
        """
        if isinstance(value, SSAValue) and dtype_of(value).kind not in "biu":
            return None
        return self.known(value)

    def inputs_behind(self, value: Value) -> tuple[str, ...]:
        """The inputs of the model that a value depends on."""
        found: dict[str, None] = {}
        seen: set[SSAValue] = set()
        pending = [value] if isinstance(value, SSAValue) else []
        while pending:
            each = pending.pop()
            if each in seen:
                continue
            seen.add(each)
            if isinstance(each, OpResult):
                inner = (op for region in each.op.regions for op in region.walk())
                pending += [v for op in (each.op, *inner) for v in op.operands]
            else:
                found.update((name, None) for v, name in self.inputs.items() if v is each)
        return tuple(found)

    def module(self, outputs: Iterable[tuple[str, Value]]) -> ModuleOp:
        """The module of the program: the states, and @main, which returns the outputs.

        An output whose size depends on values gets another output, which holds this size.
        Operations that nothing reads are left out, and so are states that nothing loads.
        """
        pairs = list(outputs)
        names = [name for name, _ in pairs]
        results = [self.emitted(value) for _, value in pairs]
        sizes = self._result_sizes(names, results)
        end = ReturnOp(*results)
        self.main.add_op(end)
        if self.loads:
            first = self.main.first_op
            assert first is not None
            self.main.insert_ops_before(self.loads, first)
        for op in reversed(tuple(self.main.ops)):
            if op.results and not any(r.first_use for r in op.results):
                self.main.erase_op(op)
        self._count_runs(end)
        used = {
            op.state.string_value()
            for op in self.main.ops
            if isinstance(op, nn.LoadOp | nn.StoreOp)
        }
        types = [a.type for a in self.main.args], [v.type for v in results]
        function = FuncOp("main", types, Region(self.main))
        inputs = [self.inputs[argument] for argument in self.main.args]
        function.attributes["arg_names"] = ArrayAttr(map(StringAttr, inputs))
        function.attributes["result_names"] = ArrayAttr(map(StringAttr, names))
        function.location = end.location = named("main")
        states = [state for state in self.states if state.sym_name.data in used]
        module = ModuleOp([*states, function])
        if fixed := [name for name in self.fixed if name in used]:
            module.attributes[FIXED] = ArrayAttr(map(StringAttr, fixed))
        set_result_sizes(module, sizes)
        set_argument_sizes(module, self.length_inputs, self.argument_sizes)
        return module

    def _result_sizes(self, names: list[str], results: list[SSAValue]) -> list[ResultSize]:
        """The outputs whose size depends on values. Appends these sizes to the results."""
        taken = Names(set(names))
        sizes: list[ResultSize] = []
        named_by: dict[Length, str] = {}
        for name, value in tuple(zip(names, results, strict=True)):
            for axis, length in self.sizes.get(value, {}).items():
                if length not in named_by:
                    named_by[length] = taken.unique(f"{name}, size of axis {axis}")
                    node = NodeBuilder(named_by[length], self)
                    results.append(emitted_length(node, length))
                    node.finish([], results[-1:])
                    names.append(named_by[length])
                sizes.append(ResultSize(name, axis, named_by[length]))
        return sizes

    def _count_runs(self, end: ReturnOp) -> None:
        """Before the end of @main, increase the number of the run, if random numbers depend on
        it.
        """
        step = self.random.get(STEP)
        if step is None or step.first_use is None:
            return
        one = nn.ConstantOp(self.context.blobs.add(np.ones((), np.uint32)))
        following = nn.AddOp(step, one.result)
        store = nn.StoreOp(following.result, STEP)
        for op in (one, following, store):
            op.location = named(STEP)
        self.main.insert_ops_before([one, following, store], end)


def _array_of_weight(value: SSAValue, made: Mapping[Known, SSAValue]) -> Array | None:
    """The array of a weight that is loaded, if it is small.

    Args:
        made: the result of each known value that was emitted.
    """
    loaded = isinstance(value, OpResult) and isinstance(value.op, nn.LoadOp)
    if not loaded or prod(nn.shape_of(value)) > MAX_KNOWN_ELEMENTS:
        return None
    origin = next((known for known, result in made.items() if result is value), None)
    return None if origin is None else origin.make()


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a value."""
    return value.shape if isinstance(value, Known) else nn.shape_of(value)


def dtype_of(value: Value) -> np.dtype[np.generic]:
    """The dtype of a value's elements."""
    return value.dtype if isinstance(value, Known) else numpy_dtype(nn.element_of(value))


class NodeBuilder:
    """Appends the operations of one node of a model to the program.

    Attributes:
        name: of the node, which is unique in the program.
        program: the program so far.
        source: what its location holds besides its name, if anything: its name in the model's file
            and its place in the user's files.
        ops: the operations that `add` has appended so far.
    """

    def __init__(self, name: str, program: ProgramBuilder, source: LocationAttr | None = None):
        self.name = name
        self.program = program
        self.source = source
        self.ops: list[Operation] = []

    # Errors

    def __str__(self) -> str:
        """The node in messages."""
        note = note_of(self.location)
        return f"node {self.name!r}{note and f' ({note})'}"

    @property
    def location(self) -> NameLoc:
        """The location of the operation that makes the node's first result."""
        return named(self.name, self.source)

    def below(self, step: str) -> LocationAttr | None:
        """The source of a node within this one.

        Args:
            step: the name of the inner node, after this node's name and a slash.
        """
        return inner_location(at(self.location, step))

    def bad(self, message: str) -> InputError:
        """Return an error that names this node, for the importer to raise."""
        return self.program.bad(f"{self}: {message}")

    @property
    def heading(self) -> str:
        """The node and its operator, in messages about what is not supported."""
        return str(self)

    def unsupported(self, what: str, supported: str) -> UnsupportedError:
        """Return an error for a valid node that cannot be compiled, for the importer to raise.

        Args:
            what: what the node uses, such as "axis -1".
            supported: what is supported instead.
        """
        return UnsupportedError(
            f"{self.program.place}: {self.heading}: {what} is not supported; {supported}"
        )

    def not_constant(
        self, what: str, values: Iterable[Value], remedy: str | None = None
    ) -> NotConstantError:
        """Return an error for what must be known at import, but depends on inputs of the model.

        Args:
            what: the parameter in messages, such as "shape 'x1'".
            values: the values that decide it.
            remedy: what to do; None if the values of the inputs help.
        """
        behind = (name for value in values for name in self.program.inputs_behind(value))
        inputs = tuple(dict.fromkeys(behind))
        if remedy is None:
            remedy = f"need a constant, or its values: {given_by(inputs)}"
        return NotConstantError(
            f"{self.program.place}: {self.heading}: {what} depends on inputs "
            f"({', '.join(inputs)}), which is not supported; {remedy}",
            inputs,
        )

    @contextmanager
    def checked(self) -> Generator[None]:
        """Turn errors of building operations inside the `with` into errors that name this node."""
        try:
            yield
        except InputError:
            raise
        except (VerifyException, ValueError, TypeError, IndexError, OverflowError) as error:
            raise self.bad(str(error)) from error

    def size_refused(self, what: str, *lengths: Length) -> NotConstantError:
        """Return an error for a size that depends on values, where the node needs a fixed one.

        Args:
            what: the size in messages.
            lengths: what it depends on.
        """
        numbers = dict.fromkeys(n for length in lengths for n in length.numbers())
        values = [cast("SSAValue", each.value) for each in numbers]
        inputs = {name for value in values for name in self.program.inputs_behind(value)}
        if inputs <= {each.name for each in self.program.length_inputs}:
            options = " ".join(f"--dim {name}=1" for name in sorted(inputs))
            return self.not_constant(what, values, f"need one size for all runs: {options}")
        return self.not_constant(what, values)

    # Building

    def add_control(self, op: Operation) -> list[SSAValue]:
        """Append a loop, a branch or the end of a region to the program; return its results."""
        self.program.body.add_op(op)
        self.ops.append(op)
        return list(op.results)

    def add(self, op: nn.PureTensorOp | nn.ConstantOp) -> SSAValue:
        """Append an operation to the program, and return its result.

        The padding of operands does not change the result; it is padding of the result, or is kept
        out. Raises NotConstantError if that is not possible.

        The operation that makes the first result gets the name of the node, and the others a name
        below it ("layer1/scale").
        """
        if self.program.sizes and isinstance(op, nn.PureTensorOp) and self.has_padding(op.operands):
            return add_padded(self, op)[0]
        return self.append(op).results[0]

    def add_several(self, op: nn.CombiningOp) -> Sequence[SSAValue]:
        """Append an operation with several results, as add does, and return them."""
        if self.program.sizes and self.has_padding(op.operands):
            return add_padded(self, op)
        return self.append(op).results

    def append(self, op: T) -> T:
        """Append an operation whose results say nothing of padding, and return it."""
        self.program.body.add_op(op)
        self.ops.append(op)
        return op

    def has_padding(self, values: Iterable[SSAValue]) -> bool:
        """Whether some of these values have padding."""
        return any(value in self.program.sizes for value in values)

    def constant(self, value: float, like: SSAValue) -> SSAValue:
        """Append a constant without axes, and return it.

        Args:
            like: a value of the same element type.
        """
        dtype = numpy_dtype(nn.element_of(like))
        return self.add(nn.ConstantOp(self.program.context.blobs.add(np.array(value, dtype))))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value in another shape: the result of a new reshape, or the value if it fits already.

        Raises VerifyException if the number of elements differs.
        """
        if nn.shape_of(value) == tuple(shape):
            return value
        return self.add(nn.ReshapeOp(value, shape))

    def bare_reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value in another shape, as `reshape` returns it, without regard to padding."""
        if nn.shape_of(value) == tuple(shape):
            return value
        return self.append(nn.ReshapeOp(value, shape)).results[0]

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value in another element type: the result of a new cast, or the value if it fits."""
        return value if nn.element_of(value) == element else self.add(nn.CastOp(value, element))

    def wide(self, value: SSAValue) -> SSAValue:
        """The value for sums and squares: cast to f32 if its elements are narrower floats."""
        return self.cast(value, nn.wide_element(nn.element_of(value)))

    def emitted(self, array: Array, like: SSAValue | None = None) -> SSAValue:
        """An array that is known at import, as a constant of the program.

        Args:
            like: a value to whose element type the array is converted.
        """
        dtype = array.dtype if like is None else numpy_dtype(nn.element_of(like))
        return self.program.emitted(self.known(np.asarray(array, dtype, order="C")))

    def known(self, array: Array) -> Known:
        """A result that is known at import, and becomes a constant if an operation needs it."""
        return Known.of(self.name, array)

    def length_in(self, value: SSAValue, least: int, most: int) -> Length:
        """The length that a value holds, an i32 without axes.

        A run with a number out of its bounds is a fault.
        """
        # The lookup of a number in a table of all numbers finds it, or is a fault.
        table = self.append(nn.IotaOp(nn.tensor((most + 1,), i32), [1])).result
        below = self.append(nn.LessOp(value, self.constant(least, value))).result
        place = nn.SelectOp(below, self.constant(most + 1, value), value)
        held = self.append(nn.GatherOp(table, self.append(place).result, 0)).result
        length = number_in(self.program, held, least, most)
        assert isinstance(length, Length), "a number that no one knows"
        return length

    def check_table(self, *shape: int) -> None:
        """Raise InputError if a table of this shape is too large to be computed at import.

        Sizes of tables come from attributes and small constants, so a file of a hundred bytes can
        request any number of elements.
        """
        if prod(shape) > TABLE_ELEMENTS.most:
            raise self.bad(TABLE_ELEMENTS.refusal(f"a table of {list(shape)}"))

    def counted(self, size: int, dtype: DTypeLike = np.int64) -> Array:
        """The numbers from 0 to size - 1. Raises InputError if there are too many."""
        self.check_table(size)
        return np.arange(size, dtype=dtype)

    def filled(self, value: Array, shape: Sequence[int]) -> Value:
        """A tensor that repeats one number.

        Returns a Known if the tensor is small. If not, appends an expand, so that the host never
        stores the tensor whole.

        Args:
            value: an array without axes.
        """
        if prod(shape) * value.itemsize <= MAX_FILLED_BYTES:
            return self.known(np.broadcast_to(value, tuple(shape)))
        one = self.add(nn.ConstantOp(self.program.context.blobs.add(value)))
        return self.add(nn.ExpandOp(one, shape))

    def axis(self, axis: int, rank: int, *, end: bool = False) -> int:
        """An axis counted from the front, for one that may be negative.

        Raises InputError for an axis out of range.

        Args:
            rank: the number of axes.
            end: allow the position after the last axis.
        """
        if not -rank <= axis <= rank - (not end):
            raise self.bad(f"axis {axis} of rank {rank}; need {-rank}..{rank - (not end)}")
        return axis + rank if axis < 0 else axis

    def reshaped(self, shape: Shape) -> Shape | None:
        """The shape of the result, if this node only reshapes its operand 0, and the model is read
        for another number of samples than its own; None if the model's own shape is right.

        Args:
            shape: of the operand.
        """
        watcher = self.program.watcher
        return None if watcher is None else watcher.reshaped(self, shape)

    def finish(self, operands: Sequence[Value | None], results: Sequence[Value | None]) -> None:
        """End the node, once all its operations are built.

        Every node must be ended, and in the order of the program.

        The operation that makes the first result gets the name of the node, and the others names
        below it. Operations that have locations keep them.

        Args:
            operands, results: the node's; None for one that is left out, or that is no tensor.
        """
        first, steps = results[0] if results else None, Names()
        for op in self.ops:
            if is_known(op.location):
                continue
            if first in op.results:
                op.location = self.location
            else:
                op.location = at(self.location, steps.unique(op.name.rpartition(".")[2]))
        if self.program.watcher is not None:
            self.program.watcher.add_node(self, operands, results)


def is_float(value: SSAValue) -> bool:
    """Whether the elements are floating-point numbers."""
    return is_floating(numpy_dtype(nn.element_of(value)))
