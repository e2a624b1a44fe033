"""From copies and compute sets to supersteps on bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ..dialects import control, exchange, tile
from ..ir.errors import InputError
from ..ir.provenance import locate, origin, place
from .allocate import ADDRESS
from .schedule_supersteps import SUPERSTEP


@dataclass(frozen=True)
class ConvertTileToExchange(ModulePass):
    """Apply addresses and the schedule: numbered groups become supersteps. tile -> exchange."""

    name = "convert-tile-to-exchange"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        conversion = _Conversion()
        new = Block([conversion.top(o) for o in op.body.block.ops])
        op.body.detach_block(op.body.block)
        op.body.add_block(new)


@dataclass
class _Conversion:
    names: set[str] = field(default_factory=set[str])
    clashes: Counter[str] = field(default_factory=Counter[str])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def top(self, op: Operation) -> Operation:
        if isinstance(op, tile.VariableOp):
            address = op.attributes.get(ADDRESS)
            if not isinstance(address, IntegerAttr):
                raise InputError(f"@{op.symbol} at {place(op)}: no address; run allocate")
            new: Operation = exchange.VariableOp(
                op.symbol,
                address.value.data,
                op.tensor,
                op.placed,
                op.initial,
                op.state is not None,
            )
        elif isinstance(op, func.FuncOp):
            new = func.FuncOp(op.sym_name.data, ([], []), self.region(op.body), op.sym_visibility)
        else:
            raise InputError(f"{op.name} at {place(op)}: no conversion to exchange")
        locate(new, op)
        return new

    def region(self, region: Region) -> Region:
        block = Block()
        group: list[Operation] = []
        number: int | None = None
        for op in region.block.ops:
            own = op.attributes.get(SUPERSTEP)
            step = own.value.data if isinstance(own, IntegerAttr) else None
            if group and step != number:
                block.add_op(self.superstep(group))
                group = []
            number = step
            if step is not None:
                group.append(op)
            else:
                new = self.control(op)
                locate(new, op)
                block.add_op(new)
        return Region(block)

    def superstep(self, group: list[Operation]) -> Operation:
        host = any(isinstance(op, tile.InputOp | tile.OutputOp) for op in group)
        sync = exchange.SyncOp("external" if host else "internal")
        locate(sync, group[-1])
        ops: list[Operation] = [sync]
        computes: list[Operation] = []
        check_at_once(group)
        for op in group:
            if isinstance(op, tile.ComputeSetOp):
                for vertices in op.body.block.ops:
                    if not isinstance(vertices, tile.VerticesOp):
                        raise InputError(
                            f"{vertices.name} at {place(vertices)}: not in a compute set"
                        )
                    new = exchange.ComputeOp(
                        vertices.structure(),
                        vertices.plan.data,
                        vertices.sources,
                        vertices.destination,
                    )
                    locate(new, vertices)
                    computes.append(new)
            else:
                new = self.transfer(op)
                locate(new, op)
                ops.append(new)
        step = exchange.SuperstepOp(self.name(group), [*ops, *computes])
        locate(step, group[-1])
        return step

    def name(self, group: list[Operation]) -> str:
        """The name of the compute set, or of what is moved, made unique."""
        last = group[-1]
        if isinstance(last, tile.ComputeSetOp):
            base = last.sym_name.data
        elif isinstance(last, tile.InputOp | tile.OutputOp):
            base = "host"
        else:
            base = origin(last) or "exchange"
        name = base
        while name in self.names:
            self.clashes[base] += 1
            name = f"{base}.{self.clashes[base]}"
        self.names.add(name)
        return name

    def transfer(self, op: Operation) -> Operation:
        if isinstance(op, tile.CopyOp):
            return exchange.MoveOp(op.sources, op.destination, op.spaces)
        if isinstance(op, tile.InputOp):
            return exchange.InputOp(op.host_name.data, op.writes.string_value(), op.tensor)
        if isinstance(op, tile.OutputOp):
            return exchange.OutputOp(op.reads.string_value(), op.host_name.data, op.tensor)
        raise InputError(f"{op.name} at {place(op)}: cannot be part of a superstep")

    def control(self, op: Operation) -> Operation:
        if isinstance(op, tile.ReadOp):
            new = exchange.ReadOp(op.variable.string_value())
            self.values[op.result] = new.result
            return new
        if isinstance(
            op,
            control.RepeatOp
            | control.WhileOp
            | control.IfOp
            | control.YieldOp
            | control.ConditionOp
            | func.CallOp
            | func.ReturnOp,
        ):
            return type(op).create(
                operands=[self.values[v] for v in op.operands],
                properties=dict(op.properties),
                attributes=dict(op.attributes),
                regions=[self.region(r) for r in op.regions],
            )
        raise InputError(f"{op.name} at {place(op)}: no superstep; run schedule-supersteps")


def check_at_once(group: Sequence[Operation]) -> None:
    """Raise InputError if the operations of a superstep cannot happen in its phases at once."""
    read: set[str] = set()
    written: set[str] = set()
    computes = False
    for op in group:
        if isinstance(op, tile.ComputeSetOp):
            computes = True
            continue
        if isinstance(op, tile.CopyOp):
            reads, writes = set(op.sources), {op.destination}
        elif isinstance(op, tile.InputOp):
            reads, writes = set[str](), {op.writes.string_value()}
        elif isinstance(op, tile.OutputOp):
            reads, writes = {op.reads.string_value()}, set[str]()
        else:
            continue
        clash = writes & (read | written) | reads & written
        if computes or clash:
            problem = f"@{min(clash)} is written there too" if clash else "it follows a compute set"
            raise InputError(
                f"{op.name} at {place(op)}: not in the superstep of the operations before it, "
                f"since {problem}; give it a later number"
            )
        read |= reads
        written |= writes
