"""Convert partition to tile: from values to variables, copies and compute sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod

from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects import control, partition, tile
from ..dialects.blob_attr import BlobAttr
from ..dialects.control import run_around
from ..dialects.home import handed_down
from ..dialects.host import host_names
from ..dialects.levels import PARTITION, TILE
from ..dialects.partition import PartitionTensor, partition_type
from ..dialects.variable import Variable
from ..ir.provenance import locate, origin_names, place
from ..ir.support.errors import InputError
from ..ir.support.unused_names import UnusedNames
from ..ir.upstream import Context, ModuleOp, ModulePass
from ..ir.well_known import ENTRY
from .analysis.carried_in_place import Loop, carried_in_place
from .analysis.states_in_place import states_in_place


@dataclass(frozen=True)
class ConvertPartitionToTile(ModulePass):
    """Give every value a variable, every relayout a copy, every compute a compute set.

    partition -> tile. The values that loops carry, branches choose and functions take and return
    get variables of their own, which copies fill. A value that an iteration yields is computed
    directly into the variable of the carried value that it replaces, if no operation reads the old
    value later. A load gives the value of the state at the start of the run: a state that is also
    stored to is copied at the start of @main, unless no operation reads its old value after the
    store. A stored value is computed directly into the state if no operation needs the old value.
    """

    name = "convert-partition-to-tile"
    takes = PARTITION
    leaves = TILE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        _Conversion(op).run()


@dataclass
class _Function:
    parameters: list[str]
    results: list[str]


@dataclass
class _Conversion:
    module: ModuleOp
    variables: list[Variable] = field(default_factory=list[Variable])
    names: UnusedNames = field(default_factory=UnusedNames)
    where: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    types: dict[str, PartitionTensor] = field(default_factory=dict[str, PartitionTensor])
    functions: dict[str, _Function] = field(default_factory=dict[str, _Function])
    before: dict[str, str] = field(default_factory=dict[str, str])
    began: dict[str, control.RepeatOp | None] = field(
        default_factory=dict[str, "control.RepeatOp | None"]
    )
    written: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    block: Block = field(default_factory=Block)
    source: Operation | None = None

    def run(self) -> None:
        functions: list[func.FuncOp] = []
        for op in list(self.module.body.block.ops):
            self.source = op
            if isinstance(op, partition.StateOp):
                self.names.taken.add(op.sym_name.data)
                self._declare(op.sym_name.data, op.type, op.initial, state=True)
                self.variables[-1].attributes |= handed_down(op)
            elif isinstance(op, func.FuncOp):
                self.names.taken.add(op.sym_name.data)
                functions.append(op)
            else:
                raise InputError(f"{op.name} at {place(op)}: cannot stand at the top of a module")
        if sum(f.sym_name.data == ENTRY for f in functions) != 1:
            raise InputError(f"the module needs one function @{ENTRY}")
        for f in functions:
            self._parameters(f)
        self._snapshots()
        new: list[Operation] = [self._function(f) for f in functions]
        block = Block([*self.variables, *new])
        self.module.body.detach_block(self.module.body.block)
        self.module.body.add_block(block)

    # Variables

    def _declare(
        self,
        name: str,
        type_: PartitionTensor,
        initial: BlobAttr | None = None,
        state: bool = False,
    ) -> str:
        op = tile.VariableOp(name, type_.tensor, type_.layout.data, initial, state)
        if self.source is not None:
            locate(op, self.source)
        self.variables.append(op)
        self.types[name] = type_
        return name

    def _fresh(self, type_: PartitionTensor, hint: str | None = None) -> str:
        """Declare a variable, named after the operation whose result it holds; returns its name."""
        assert self.source is not None
        paths = origin_names(self.source)
        base = hint or ("+".join(paths) if paths else self.source.name.split(".")[-1])
        return self._declare(self.names.unused(base), type_)

    def _result(self, value: SSAValue) -> str:
        """The variable that an operation writes: the state to which its value is stored, or a new
        variable.
        """
        return self.written.get(value) or self._fresh(partition_type(value))

    def _add(self, op: Operation) -> None:
        assert self.source is not None
        locate(op, self.source)
        self.block.add_op(op)

    def _copy(self, source: str, destination: str) -> None:
        if source != destination:
            self._add(tile.CopyOp([source], destination))

    def _copy_all(self, sources: Sequence[str], destinations: Sequence[str]) -> None:
        """Copy several variables as if at once: no copy reads a variable that another copy has
        overwritten.
        """
        overwritten = set(destinations)
        staged = list(sources)
        for i, (s, d) in enumerate(zip(sources, destinations, strict=True)):
            if s != d and s in overwritten:
                staged[i] = self._fresh(self.types[s])
                self._copy(s, staged[i])
        for s, d in zip(staged, destinations, strict=True):
            self._copy(s, d)

    def _snapshots(self) -> None:
        """Declare variables for the old values of states that are read after the store."""
        found = states_in_place(self.module, ENTRY)
        self.written |= found.written
        ops = list(self.module.walk())
        stores = (op.state.string_value() for op in ops if isinstance(op, partition.StoreOp))
        stored = set(stores) - found.uncopied
        for op in ops:
            if isinstance(op, partition.LoadOp):
                name = op.state.string_value()
                if name in stored and name not in self.before:
                    self.began[name] = run_around(op)
                    self.source = op
                    self.before[name] = self._fresh(self.types[name], f"{name}.before")

    def _copy_old_values(self, run: control.RepeatOp | None) -> None:
        """Copy the old values of states at the start of a run, or of an iteration of a loop of
        runs.
        """
        for state, variable in self.before.items():
            if self.began[state] is run:
                self._copy(state, variable)

    # Functions

    def _parameters(self, f: func.FuncOp) -> None:
        self.source = f
        name = f.sym_name.data
        inputs = host_names(f, "arg_names", len(f.body.block.args))
        hints = inputs if name == ENTRY else [f"{name}.{n}" for n in inputs]
        parameters = [
            self._fresh(partition_type(a), hint)
            for a, hint in zip(f.body.block.args, hints, strict=True)
        ]
        for a, p in zip(f.body.block.args, parameters, strict=True):
            self.where[a] = p
        outputs: list[str] = []
        if name != ENTRY:
            for i, type_ in enumerate(f.function_type.outputs):
                assert isinstance(type_, PartitionTensor)
                outputs.append(self._fresh(type_, f"{name}.out{i}"))
        self.functions[name] = _Function(parameters, outputs)

    def _function(self, f: func.FuncOp) -> func.FuncOp:
        name = f.sym_name.data
        self.block = Block()
        signature = self.functions[name]
        if name == ENTRY:
            self.source = f
            for host, variable in zip(
                host_names(f, "arg_names", len(signature.parameters)),
                signature.parameters,
                strict=True,
            ):
                self._add(tile.InputOp(host, variable, self.types[variable].tensor))
            self._copy_old_values(None)
        last = f.body.block.last_op
        for op in f.body.block.ops:
            if op is not last:
                self._at(op)
        assert isinstance(last, func.ReturnOp)
        self.source = last
        values = [self.where[v] for v in last.arguments]
        if name == ENTRY:
            self.source = f
            for host, value, old in zip(
                host_names(f, "result_names", len(values)),
                values,
                last.arguments,
                strict=True,
            ):
                self._add(tile.OutputOp(value, host, partition_type(old).tensor))
        else:
            self._copy_all(values, signature.results)
        self._add(func.ReturnOp())
        new = func.FuncOp(name, ([], []), Region(self.block), f.sym_visibility)
        locate(new, f)
        return new

    def _region(self, region: Region, destinations: Sequence[str] | None) -> Region:
        """Convert a region; the values that it yields are copied to the destinations."""
        outer, source = self.block, self.source
        self.block = Block()
        last = region.block.last_op
        parent = region.block.parent_op()
        if isinstance(parent, control.RepeatOp) and parent.runs is not None:
            self._copy_old_values(parent)
        for op in region.block.ops:
            if op is not last:
                self._at(op)
        assert last is not None
        self.source = last
        if destinations is None:
            predicate = tile.ReadOp(self.where[last.operands[0]])
            self._add(predicate)
            self._add(control.ConditionOp(predicate.result))
        else:
            self._copy_all([self.where[v] for v in last.operands], destinations)
            self._add(control.YieldOp())
        new = Region(self.block)
        self.block, self.source = outer, source
        return new

    # Operations

    @singledispatchmethod
    def _at(self, op: Operation) -> None:
        raise InputError(f"{op.name} at {place(op)}: no conversion to tile")

    @_at.register
    def _load(self, op: partition.LoadOp) -> None:
        self.source = op
        state = op.state.string_value()
        self.where[op.result] = self.before.get(state, state)

    @_at.register
    def _store(self, op: partition.StoreOp) -> None:
        self.source = op
        self._copy(self.where[op.value], op.state.string_value())

    @_at.register
    def _constant(self, op: partition.ConstantOp) -> None:
        self.source = op
        name = self._fresh(partition_type(op.result))
        self.variables[-1].properties["initial"] = op.value
        self.variables[-1].attributes |= handed_down(op)
        self.where[op.result] = name

    @_at.register
    def _reshape(self, op: partition.ReshapeOp) -> None:
        self.where[op.result] = self.where[op.value]

    @_at.register
    def _relayout(self, op: partition.RelayoutOp) -> None:
        self.source = op
        name = self._result(op.result)
        moves = None if op.moves is None else [m.data for m in op.moves]
        self._add(tile.CopyOp([self.where[v] for v in op.inputs], name, moves))
        self.where[op.result] = name

    @_at.register
    def _compute(self, op: partition.ComputeOp) -> None:
        self.source = op
        names = [self._result(value) for value in op.made]
        vertices = tile.VerticesOp(
            op.structure(), op.plan.data, [self.where[v] for v in op.inputs], *names
        )
        self._add(tile.ComputeSetOp(names[0], [vertices]))
        self.where.update(zip(op.made, names, strict=True))

    @_at.register
    def _call(self, op: func.CallOp) -> None:
        self.source = op
        callee = op.callee.string_value()
        signature = self.functions[callee]
        self._copy_all([self.where[v] for v in op.arguments], signature.parameters)
        self._add(func.CallOp(callee, [], []))
        for result, variable in zip(op.results, signature.results, strict=True):
            self.where[result] = self._fresh(partition_type(result))
            self._copy(variable, self.where[result])

    def _carried(self, initial: Sequence[SSAValue], results: Sequence[SSAValue]) -> list[str]:
        variables = [self._fresh(partition_type(v)) for v in results]
        self._copy_all([self.where[v] for v in initial], variables)
        for r, v in zip(results, variables, strict=True):
            self.where[r] = v
        return variables

    def _write_into(self, loop: Loop, variables: Sequence[str]) -> None:
        """Let an iteration compute values directly into the variables of the values that they
        replace.
        """
        for value, i in carried_in_place(loop).items():
            self.written.setdefault(value, variables[i])

    @_at.register
    def _repeat(self, op: control.RepeatOp) -> None:
        self.source = op
        variables = self._carried(op.initial, op.results)
        self._write_into(op, variables)
        number, iteration = op.iteration_number, None
        self.where.update(zip(op.body.block.args, variables, strict=number is None))
        if number is not None:
            iteration = self.where[number] = self._fresh(partition_type(number))
        self._add(control.RepeatOp(op.iterations, [], self._region(op.body, variables), iteration))

    @_at.register
    def _while(self, op: control.WhileOp) -> None:
        self.source = op
        variables = self._carried(op.initial, op.results)
        self._write_into(op, variables)
        self.where.update(zip(op.test.block.args, variables, strict=True))
        self.where.update(zip(op.body.block.args, variables, strict=True))
        test = self._region(op.test, None)
        self._add(control.WhileOp([], test, self._region(op.body, variables)))

    @_at.register
    def _if(self, op: control.IfOp) -> None:
        self.source = op
        variables = [self._fresh(partition_type(v)) for v in op.results]
        self.where.update(zip(op.results, variables, strict=True))
        predicate = tile.ReadOp(self.where[op.predicate])
        self._add(predicate)
        then, otherwise = self._region(op.then, variables), self._region(op.otherwise, variables)
        self._add(control.IfOp(predicate.result, [], then, otherwise))
