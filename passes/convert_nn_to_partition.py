"""Convert nn to partition: from operators on whole tensors to computes on blocks with layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..backends.prices.workload import left_dtypes
from ..backends.reference.operation import Meaningless
from ..dialects import control, nn, partition
from ..dialects.abele import Plan
from ..dialects.dtypes import element_type, numpy_dtype
from ..dialects.home import handed_down
from ..dialects.levels import NN, PARTITION
from ..dialects.partition import PartitionTensor, laid_out, partition_type
from ..dialects.structured import Composite, Movement, Reinterpretation, Structure, Structured
from ..ir.geometry.layout import Layout
from ..ir.provenance import at, locate, place
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from ..ir.well_known import ENTRY
from .plans.derive import (
    combining,
    compute_layouts,
    final_layout,
    leaves_partials,
    movement_result_layout,
    refined,
)
from .plans.fused import FusedGroups, operator_name
from .plans.homes import Homes
from .plans.planned import plan_of, target_of
from .plans.steps import PlanStep, adding, move_into, part_shape, passes_of, takes_steps

Values: TypeAlias = "Sequence[tuple[str, SSAValue]]"
"""Operands, each with the name for a relayout of it."""

Tensors: TypeAlias = "Sequence[TensorType[Attribute]]"
"""The types of the results, at nn."""


def tensor_of(value: SSAValue) -> TensorType[Attribute]:
    """The type of a value at nn. Raises InputError if it is not a tensor."""
    if not isinstance(value.type, TensorType):
        raise InputError(f"value of type {value.type} at nn; need a tensor")
    return cast(TensorType[Attribute], value.type)


def _function_tensor(type_: Attribute) -> TensorType[Attribute]:
    if not isinstance(type_, TensorType):
        raise InputError(f"function value of type {type_}; need a tensor")
    return cast(TensorType[Attribute], type_)


@dataclass(frozen=True)
class ConvertNnToPartition(ModulePass):
    """Apply the plans: make computes, combine partials, and relayout operands. nn -> partition."""

    name = "convert-nn-to-partition"
    takes = NN
    decided = "planned"
    leaves = PARTITION

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        with FusedGroups(op):
            _Conversion(op, Homes(op, target_of(op))).run()


@dataclass
class _Scope:
    """A region under conversion.

    Attributes:
        repeats: whether it is part of a loop.
        relayouts: the relayouts made in it, by value and layout.
    """

    block: Block
    repeats: bool
    relayouts: dict[tuple[SSAValue, Layout], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Layout], SSAValue]
    )


@dataclass
class _Conversion:
    module: ModuleOp
    homes: Homes
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    scopes: list[_Scope] = field(default_factory=list["_Scope"])
    functions: dict[str, FunctionType] = field(default_factory=dict[str, FunctionType])
    block: Block = field(default_factory=Block)
    source: Operation | None = None

    def run(self) -> None:
        ops = list(self.module.body.block.ops)
        for op in ops:
            if isinstance(op, func.FuncOp) and op.is_declaration:
                raise InputError(f"@{op.sym_name.data} at {place(op)}: a function without a body")
        for op in ops:
            if isinstance(op, func.FuncOp) and op.sym_name.data != ENTRY:
                self.functions[op.sym_name.data] = FunctionType.from_lists(
                    [self._linear(t) for t in op.function_type.inputs],
                    [self._linear(t) for t in op.function_type.outputs],
                )
        new = Block()
        for op in ops:
            self.block = new
            self._at(op)
        self.module.body.detach_block(self.module.body.block)
        self.module.body.add_block(new)

    # Types

    def _linear(self, type_: Attribute) -> PartitionTensor:
        """The type of a value that a function takes or returns: in linear layout."""
        tensor = _function_tensor(type_)
        return laid_out(tensor, self.homes.linear(tensor))

    def _argument(self, value: SSAValue) -> PartitionTensor:
        """The type of an input of the program."""
        tensor = _function_tensor(value.type)
        return laid_out(tensor, self.homes.argument(value, tensor))

    # Building

    def _add(self, op: Operation, *path: str) -> Operation:
        assert self.source is not None
        locate(op, at(self.source, *path))
        self.block.add_op(op)
        return op

    def _in_layout(self, value: SSAValue, layout: Layout, role: str) -> SSAValue:
        """The value in a layout: the value itself, an earlier relayout of it, or a new one.

        A value that a loop does not change is relaid once, before the loop.
        """
        given = partition_type(value)
        if given.layout.data == layout:
            return value
        for scope in self.scopes:
            if (value, layout) in scope.relayouts:
                return scope.relayouts[value, layout]
        op = partition.RelayoutOp([value], None, laid_out(given.tensor, layout))
        inner, scope = self.block, self._before_loops(value)
        self.block = scope.block
        self._add(op, role)
        self.block = inner
        scope.relayouts[value, layout] = op.result
        return op.result

    def _before_loops(self, value: SSAValue) -> _Scope:
        """The outermost region reached from here without entering a loop that contains the value's
        definition.
        """
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        at = len(self.scopes) - 1
        while self.scopes[at].repeats and self.scopes[at].block is not home:
            at -= 1
        return self.scopes[at]

    def _in_types(self, values: Sequence[SSAValue], types: Sequence[Attribute]) -> list[SSAValue]:
        result: list[SSAValue] = []
        for value, type_ in zip(values, types, strict=True):
            assert isinstance(type_, PartitionTensor)
            result.append(self._in_layout(value, type_.layout.data, "carried"))
        return result

    def _region(
        self,
        region: Region,
        types: Sequence[Attribute],
        finish: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
        repeats: bool = False,
    ) -> Region:
        """Convert a region.

        Args:
            finish: maps the operands of its last operation to the new ones.
            repeats: whether it is part of a loop.
        """
        outer, source = self.block, self.source
        old = region.block
        self.block = Block(arg_types=types)
        for a, b in zip(old.args, self.block.args, strict=True):
            self.values[a] = b
            b.name_hint = a.name_hint
        self.scopes.append(_Scope(self.block, repeats))
        last = old.last_op
        for op in old.ops:
            if op is not last:
                self._at(op)
        assert last is not None
        self.source = last
        operands = finish([self.values[v] for v in last.operands])
        self._add(type(last).create(operands=operands, properties=dict(last.properties)))
        self.scopes.pop()
        new = Region(self.block)
        self.block, self.source = outer, source
        return new

    def _bind(self, op: Operation, results: Sequence[SSAValue]) -> None:
        for old, new in zip(op.results, results, strict=True):
            self.values[old] = new
            new.name_hint = old.name_hint

    # Operations

    def _at(self, op: Operation) -> None:
        self.source = op
        if isinstance(op, Structured):
            self._structured(op, op.structure())
        elif isinstance(op, Movement):
            self._movement(op, op)
        elif isinstance(op, Reinterpretation):
            (value,) = op.operands
            new = partition.ReshapeOp(self.values[value], tensor_of(op.results[0]))
            self._add(new)
            self._bind(op, [new.result])
        else:
            self._other(op)

    @singledispatchmethod
    def _other(self, op: Operation) -> None:
        if not isinstance(op, Composite):
            raise Meaningless(op)
        advice = "no conversion to partition; run decompose first"
        raise InputError(f"{op.name} at {place(op)}: {advice}")

    def _structured(self, op: Operation, structure: Structure) -> None:
        values = [(f"in{i}", self.values[v]) for i, v in enumerate(op.operands)]
        try:
            tensors = [tensor_of(result) for result in op.results]
            results = self._compute(values, structure, plan_of(op), tensors)
        except ValueError as error:
            raise InputError(f"{operator_name(op)} at {place(op)}: {error}") from None
        self._bind(op, results)

    def _compute(
        self,
        values: Values,
        structure: Structure,
        plan: Plan,
        tensors: Tensors,
    ) -> Sequence[SSAValue]:
        """Convert an operator, step by step, and combine the partials that its steps leave."""
        if not takes_steps(plan):
            return self._one_pass([PlanStep(structure, plan, ())], values, tensors)
        passes = tuple(passes_of(structure, plan))
        if len(passes) == 1:
            return self._one_pass(passes[0], values, tensors)
        shapes = [part_shape(structure, plan, i) for i in range(len(tensors))]
        made = [TensorType(t.element_type, n) for t, n in zip(tensors, shapes, strict=True)]
        parts = [self._one_pass(steps, values, made, f"part{i}") for i, steps in enumerate(passes)]
        starts = [steps[0].starts for steps in passes]
        every = zip(zip(*parts, strict=True), zip(*starts, strict=True), tensors, strict=True)
        return [
            self._joined(some, at, structure, plan, i, tensor)
            for i, (some, at, tensor) in enumerate(every)
        ]

    def _joined(
        self,
        parts: Sequence[SSAValue],
        starts: Sequence[tuple[int, ...]],
        structure: Structure,
        plan: Plan,
        result: int,
        tensor: TensorType[Attribute],
    ) -> SSAValue:
        """One result of an operator, joined from its parts."""
        element, whole = tensor.element_type, structure.space.results[result].shape
        part = part_shape(structure, plan, result)
        moves = [move_into(part, start, whole) for start in starts]
        layout = final_layout(structure, plan, result)
        joined = partition.RelayoutOp(parts, moves, laid_out(TensorType(element, whole), layout))
        self._add(joined, "join")
        if whole == tensor.get_shape():
            return joined.result
        shaped = partition.ReshapeOp(joined.result, tensor)
        self._add(shaped, "join")
        return shaped.result

    def _one_pass(
        self,
        steps: Sequence[PlanStep],
        values: Values,
        tensors: Tensors,
        *path: str,
    ) -> Sequence[SSAValue]:
        """Convert steps that accumulate: each adds to the result of the step before it."""
        dtypes = [numpy_dtype(partition_type(value).tensor.element_type) for _, value in values]
        result = numpy_dtype(tensors[0].element_type)
        between = [element_type(dtype) for dtype in left_dtypes(steps[0].structure, dtypes, result)]
        left: Sequence[SSAValue] = ()
        for i, step in enumerate(steps):
            structure, plan = step.structure, step.plan
            partial = leaves_partials(structure, plan)
            ends = step is steps[-1] and not partial
            operands = [
                self._in_layout(value, layout, role)
                for (role, value), layout in zip(
                    values, compute_layouts(structure, plan), strict=False
                )
            ]
            cut, split, order = refined(structure, plan)
            own = structure.own_operands
            if left:
                operands[own:own] = left
                cut = adding(cut, chain=ends)
            elif not ends:
                cut = cut.partial
            operands = operands[: len(cut.space.operands)]
            made: Tensors = tensors
            if not ends:
                shapes = [access.shape for access in cut.space.results]
                # A single result keeps the tensor's own shape; its map may view the tensor in
                # another shape.
                shapes = shapes if partial else [tensors[0].get_shape()] * len(shapes)
                made = [TensorType(e, n) for e, n in zip(between, shapes, strict=True)]
            workers = plan.workers + (1,) * (len(split) - len(plan.workers))
            op = partition.ComputeOp(
                operands,
                cut,
                Plan(split, order, plan.first_tile, plan.method, workers if plan.workers else ()),
                *made,
            )
            number = (f"step{i}",) if len(steps) > 1 else ()
            self._add(op, *path, *number, *(("partials",) if partial else ()))
            left = op.results
        structure, plan = steps[-1].structure, steps[-1].plan
        if not leaves_partials(structure, plan):
            return left
        rest = values[structure.own_operands :]
        combine, further = combining(structure, plan)
        names = ["gather"] if len(left) == 1 else [f"gather{i}" for i in range(len(left))]
        gathered = list(zip(names, left, strict=True))
        return self._compute([*gathered, *rest], combine, further, tensors)

    def _movement(self, op: Operation, movement: Movement) -> None:
        tensor = tensor_of(op.results[0])
        layout = movement_result_layout(tensor.get_shape(), plan_of(op))
        new = partition.RelayoutOp(
            [self.values[v] for v in op.operands], movement.moves(), laid_out(tensor, layout)
        )
        self._add(new)
        self._bind(op, [new.result])

    @_other.register
    def _state(self, op: nn.StateOp) -> None:
        tensor = TensorType(element_type(op.value.array.dtype), op.value.array.shape)
        name = op.sym_name.data
        new = partition.StateOp(name, laid_out(tensor, self.homes.states[name]), op.value)
        new.attributes |= handed_down(op)
        self._add(new)

    @_other.register
    def _load(self, op: nn.LoadOp) -> None:
        name = op.state.string_value()
        new = partition.LoadOp(name, laid_out(tensor_of(op.result), self.homes.states[name]))
        self._add(new)
        self._bind(op, [new.result])

    @_other.register
    def _store(self, op: nn.StoreOp) -> None:
        name = op.state.string_value()
        value = self._in_layout(self.values[op.stored], self.homes.states[name], "store")
        self._add(partition.StoreOp(value, name))

    @_other.register
    def _constant(self, op: nn.ConstantOp) -> None:
        home = self.homes.constant(op)
        new = partition.ConstantOp(op.value, laid_out(tensor_of(op.result), home))
        new.attributes |= handed_down(op)
        self._add(new)
        self._bind(op, [new.result])

    @_other.register
    def _function(self, op: func.FuncOp) -> None:
        name = op.sym_name.data
        declared = self.functions.get(name)
        inputs = (
            list(declared.inputs)
            if declared
            else [self._argument(value) for value in op.body.block.args]
        )
        outputs: list[Attribute] = []

        def finish(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if declared:
                values = self._in_types(values, list(declared.outputs))
            outputs.extend(v.type for v in values)
            return values

        body = self._region(op.body, inputs, finish)
        new = func.FuncOp(name, (inputs, outputs), body, op.sym_visibility)
        new.attributes.update(op.attributes)
        self._add(new)

    @_other.register
    def _call(self, op: func.CallOp) -> None:
        name = op.callee.string_value()
        if name not in self.functions:
            raise InputError(f"{op.name} at {place(op)}: no function @{name} that can be called")
        declared = self.functions[name]
        operands = self._in_types([self.values[v] for v in op.arguments], list(declared.inputs))
        new = func.CallOp(op.callee, operands, list(declared.outputs))
        self._add(new)
        self._bind(op, new.results)

    def _carried(self, op: control.RepeatOp | control.WhileOp) -> list[SSAValue]:
        """The initial values of a loop, in the layouts in which the loop carries them."""
        last = op.body.block.last_op
        assert last is not None
        initial: list[SSAValue] = []
        for value, carried, yielded in zip(
            op.initial, op.body.block.args, last.operands, strict=False
        ):
            home = self.homes.updated(carried, yielded)
            new = self.values[value]
            initial.append(new if home is None else self._in_layout(new, home, "carried"))
        return initial

    @_other.register
    def _repeat(self, op: control.RepeatOp) -> None:
        initial = self._carried(op)
        types = [v.type for v in initial]
        number = op.iteration_number
        taken = (
            types
            if number is None
            else [*types, laid_out(control.ITERATION_NUMBER, self.homes.iteration_number)]
        )
        body = self._region(op.body, taken, lambda values: self._in_types(values, types), True)
        new = control.RepeatOp(op.iterations, initial, body, runs=op.runs is not None)
        self._add(new)
        self._bind(op, new.results)

    @_other.register
    def _while(self, op: control.WhileOp) -> None:
        initial = self._carried(op)
        types = [v.type for v in initial]
        test = self._region(op.test, types, lambda values: values, True)
        body = self._region(op.body, types, lambda values: self._in_types(values, types), True)
        new = control.WhileOp(initial, test, body)
        self._add(new)
        self._bind(op, new.results)

    @_other.register
    def _if(self, op: control.IfOp) -> None:
        types: list[Attribute] = []

        def first(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            types.extend(v.type for v in values)
            return values

        then = self._region(op.then, [], first)
        otherwise = self._region(op.otherwise, [], lambda values: self._in_types(values, types))
        new = control.IfOp(self.values[op.predicate], types, then, otherwise)
        self._add(new)
        self._bind(op, new.results)
