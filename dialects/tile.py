"""Which vertex runs on which tile, which copies are needed, and the control program.

Passes write two decisions as attributes. `superstep` is a number on copies, compute sets and host
traffic; neighbours with equal numbers share a superstep. `address`, on variables, is the address of
the first byte of a variable's block on each tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoTerminator, SymbolOpInterface

from ..ir.blob import Blob
from ..ir.geometry.chip_groups import ChipGroups
from ..ir.geometry.layout import Layout, with_chips_axis
from ..ir.geometry.space import Space, first_entry
from ..ir.upstream import VerifyException
from ..ir.xdsl.verified_by_form import verified_by_form
from .abele import BodyAttr, ChipGroupsAttr, LayoutAttr, Plan, PlanAttr, SpaceAttr
from .blob_attr import BlobAttr
from .dtypes import numpy_dtype
from .message_order import LONGEST_MESSAGE, WIDTHS, MessageOrder, MessageOrderAttr
from .partition import access_layout, verify_cut
from .structured import Structure
from .variable import Variable, references, symbols


@irdl_op_definition
class VariableOp(Variable):
    """A tensor resident on tiles.

    Example: tile.variable @conv1 : tensor<1x96xf32> layout <[96 by 6] (d0) of [96]>
    """

    name = "tile.variable"
    assembly_format = (
        "$sym_name `:` $tensor `layout` $layout "
        "(`state` $state^)? (`=` `blob` $initial^)? attr-dict"
    )
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        tensor: TensorType,
        layout: Layout,
        initial: BlobAttr | None = None,
        state: bool = False,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "tensor": tensor,
                "layout": LayoutAttr(layout),
                "initial": initial,
                "state": UnitAttr() if state else None,
            }
        )


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Fill a variable with the elements of others, on all tiles at once, padding included.

    Example: tile.copy [@image] -> @conv1.in

    Attributes:
        reads: variables whose layouts give each element one owner.
        writes: another variable, of the same element type.
        moves: one space per variable that is read, from its tensor to the one written (transpose,
            concat, slice, pad, ...); without it, the only variable is copied as it is, row-major.
        own: the entries of the leading axis of what is read are equal, and the variable that is
            written is held by as many chips. Each chip reads the entry of its own number. The move
            takes the first entry, which is the same.
        order: the order in which messages leave their tiles; by the parts of the source where it is
            absent.
        chunk: the words after which a message ends and the next one begins; as many as a message
            can have where it is absent.
        width: the bits that a receiving tile takes at once, 32 where it is absent. With 64, both
            tiles of each pair receive the same words.
    """

    name = "tile.copy"
    reads = prop_def(ArrayAttr[SymbolRefAttr])
    writes = prop_def(SymbolRefAttr)
    moves = opt_prop_def(ArrayAttr[SpaceAttr])
    own = opt_prop_def(UnitAttr)
    order = opt_prop_def(MessageOrderAttr)
    chunk = opt_prop_def(IntegerAttr[I64])
    width = opt_prop_def(IntegerAttr[I64])
    assembly_format = (
        "$reads `->` $writes (`moves` $moves^)? (`own` $own^)? (`order` $order^)? "
        "(`chunk` $chunk^)? (`width` $width^)? attr-dict"
    )

    def __init__(
        self,
        reads: Sequence[str],
        writes: str,
        moves: Sequence[Space] | None = None,
        *,
        own: bool = False,
        order: MessageOrder | None = None,
        chunk: int | None = None,
        width: int | None = None,
    ):
        super().__init__(
            properties={
                "reads": references(reads),
                "writes": SymbolRefAttr(writes),
                "moves": None if moves is None else ArrayAttr(map(SpaceAttr, moves)),
                "own": UnitAttr() if own else None,
                "order": None if order is None else MessageOrderAttr(order),
                "chunk": None if chunk is None else IntegerAttr(chunk, i64),
                "width": None if width is None else IntegerAttr(width, i64),
            }
        )

    @property
    def sources(self) -> list[str]:
        """Names of the variables read."""
        return symbols(self.reads)

    @property
    def destination(self) -> str:
        """Name of the variable written."""
        return self.writes.string_value()

    @property
    def destinations(self) -> list[str]:
        """The name of the variable written, as a list."""
        return [self.destination]

    @property
    def spaces(self) -> tuple[Space, ...] | None:
        """One move per source; None if the only source is copied as it is."""
        return None if self.moves is None else tuple(m.data for m in self.moves)

    @property
    def message_order(self) -> MessageOrder | None:
        """The order in which messages leave; None by the parts of the source."""
        return None if self.order is None else self.order.data

    @property
    def message_words(self) -> int:
        """The most words of a message."""
        return LONGEST_MESSAGE if self.chunk is None else self.chunk.value.data

    @property
    def lane_bits(self) -> int:
        """The bits that a receiving tile takes at once: 32 or 64."""
        return WIDTHS[0] if self.width is None else self.width.value.data

    def routes(self, written: Layout) -> tuple[Layout, tuple[Space, ...] | None]:
        """The layout that the copy fills, and the moves that say from where.

        They are those of the copy, unless each chip reads its own entry. Then the layout has a
        leading axis of chips.

        Args:
            written: the layout of the variable written.
        """
        if self.own is None:
            return written, self.spaces
        assert self.spaces is not None
        chips = self.spaces[0].operands[0].shape[0]
        filled = with_chips_axis(written, chips)
        if filled is None:
            raise VerifyException(
                f"each chip reads its own entry of {chips}; @{self.destination} is not held by so "
                "many chips"
            )
        return filled, None

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.destination in self.sources:
            raise VerifyException(f"copy of @{self.destination} onto itself")
        if not 1 <= self.message_words <= LONGEST_MESSAGE:
            raise VerifyException(
                f"chunk {self.message_words}; need 1 to {LONGEST_MESSAGE} words, which is as long "
                "as a message can be"
            )
        if self.lane_bits not in WIDTHS:
            raise VerifyException(f"width {self.lane_bits}; need {' or '.join(map(str, WIDTHS))}")
        if self.own is None:
            return
        (space,) = self.spaces if self.spaces and len(self.spaces) == 1 else (None,)
        shape = () if space is None else space.operands[0].shape
        if not shape or space != first_entry(shape):
            raise VerifyException("`own` needs one move, which takes the first entry")


@irdl_op_definition
class VerticesOp(IRDLOperation):
    """One codelet on every cell of a split: which blocks it reads and writes.

    Example: tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
    plan <split [6]> reads [@x] writes @y

    Attributes:
        space: where each point reads and writes.
        body: what happens at each point.
        plan: how the space is split over tiles, in parallel dimensions only, and over workers;
            combine is not set.
        reads: one variable per operand of the space, in the layout that the plan needs.
        writes: the variable of the result, or a list of one per result, in the layouts that the
            plan needs.
        generators: the variable with the generators of random numbers that the vertices use up, in
            the order in which they write. Vertex sets of a superstep use them one after another.
    """

    name = "tile.vertices"
    space = prop_def(SpaceAttr)
    body = prop_def(BodyAttr)
    plan = prop_def(PlanAttr)
    reads = prop_def(ArrayAttr[SymbolRefAttr])
    writes = prop_def(SymbolRefAttr | ArrayAttr[SymbolRefAttr])
    generators = opt_prop_def(SymbolRefAttr)
    assembly_format = (
        "`space` $space `body` $body `plan` $plan `reads` $reads `writes` $writes "
        "(`generators` $generators^)? attr-dict"
    )

    def __init__(self, structure: Structure, plan: Plan, reads: Sequence[str], *writes: str):
        super().__init__(
            properties={
                "space": SpaceAttr(structure.space),
                "body": BodyAttr(structure.body),
                "plan": PlanAttr(plan),
                "reads": references(reads),
                "writes": SymbolRefAttr(writes[0]) if len(writes) == 1 else references(writes),
            }
        )

    @property
    def sources(self) -> list[str]:
        """Names of the variables read, one per operand."""
        return symbols(self.reads)

    @property
    def destinations(self) -> list[str]:
        """Names of the variables written, one per result."""
        writes = self.writes
        return [writes.string_value()] if isinstance(writes, SymbolRefAttr) else symbols(writes)

    @property
    def destination(self) -> str:
        """Name of the variable of the only result, or of the first of several."""
        return self.destinations[0]

    def structure(self) -> Structure:
        """The space and the body."""
        return Structure(self.space.data, self.body.data)

    def layouts(self) -> tuple[Layout, ...]:
        """The layouts that operands and, last, the results must have."""
        return _layouts(self.space.data, self.plan.data)

    def overwritable(self) -> frozenset[str]:
        """The variables that the result may overwrite, both beginning at the same address.

        That needs elements of the same width, and no other reader of the old contents.
        """
        reads, structure = list(enumerate(self.sources)), self.structure()
        not_in_place = {name for i, name in reads if not structure.reads_in_place(i)}
        return frozenset(name for _, name in reads) - not_in_place

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        verify_cut(self.structure(), self.plan.data)
        space, written = self.space.data, self.destinations
        if len(space.operands) != len(self.reads) or len(space.results) != len(written):
            raise VerifyException(
                f"reads {len(self.reads)} variables and writes {len(written)} for a space of "
                f"{len(space.operands)} operands and {len(space.results)} results"
            )
        if len(set(written)) != len(written):
            raise VerifyException(f"writes one variable twice: {', '.join(written)}")


@lru_cache(maxsize=4096)
def _layouts(space: Space, plan: Plan) -> tuple[Layout, ...]:
    """The layouts that a split needs: each is asked for at every verification."""
    return tuple(access_layout(space, a, plan) for a in (*space.operands, *space.results))


@irdl_op_definition
class ComputeSetOp(IRDLOperation):
    """Vertices that run in one compute phase.

    Example:
        tile.compute_set @relu1 {
          tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
            plan <split [6]> reads [@x] writes @y
        }

    Attributes:
        sym_name: what reports call it.
        body: the vertices.
    """

    name = "tile.compute_set"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    assembly_format = "$sym_name $body attr-dict"
    traits = traits_def(NoTerminator())

    def __init__(self, name: str, vertices: Sequence[Operation]):
        super().__init__(
            properties={"sym_name": StringAttr(name)}, regions=[Region(Block(vertices))]
        )


class Arrival(IRDLOperation):
    """What fills a variable with a tensor that comes from outside of the tiles.

    Attributes:
        writes: the variable.
        tensor: the shape outside, of as many elements as the variable, and of its element type.
    """

    writes = prop_def(SymbolRefAttr)
    tensor = prop_def(TensorType)

    @property
    def destination(self) -> str:
        """Name of the variable written."""
        return self.writes.string_value()


class Departure(IRDLOperation):
    """What gives the tensor that a variable holds to something outside of the tiles.

    Attributes:
        reads: the variable.
        tensor: the shape outside, of as many elements as the variable, and of its element type.
    """

    reads = prop_def(SymbolRefAttr)
    tensor = prop_def(TensorType)

    @property
    def source(self) -> str:
        """Name of the variable read."""
        return self.reads.string_value()


@irdl_op_definition
class InputOp(Arrival):
    """The host writes a run's input into a variable.

    Example: tile.input "image" -> @image : tensor<1x3x224x224xf32>

    Attributes:
        host_name: what the host calls the input.
    """

    name = "tile.input"
    host_name = prop_def(StringAttr)
    assembly_format = "$host_name `->` $writes `:` $tensor attr-dict"

    def __init__(self, host_name: str, writes: str, tensor: TensorType):
        super().__init__(
            properties={
                "host_name": StringAttr(host_name),
                "writes": SymbolRefAttr(writes),
                "tensor": tensor,
            }
        )


@irdl_op_definition
class OutputOp(Departure):
    """The host reads a result of the run from a variable.

    Example: tile.output @prob -> "prob" : tensor<1x1000xf32>

    Attributes:
        host_name: what the host calls the result.
    """

    name = "tile.output"
    host_name = prop_def(StringAttr)
    assembly_format = "$reads `->` $host_name `:` $tensor attr-dict"

    def __init__(self, reads: str, host_name: str, tensor: TensorType):
        super().__init__(
            properties={
                "reads": SymbolRefAttr(reads),
                "host_name": StringAttr(host_name),
                "tensor": tensor,
            }
        )


@irdl_op_definition
class RemoteOp(IRDLOperation):
    """A state in remote memory: memory beside the chips, which no tile computes on.

    Example: tile.remote @w : tensor<96xf32> = blob <"39296d74...">

    Attributes:
        sym_name: its name in loads and stores.
        tensor: its shape and element type.
        initial: what it holds before the first run.
    """

    name = "tile.remote"
    sym_name = prop_def(SymbolNameConstraint())
    tensor = prop_def(TensorType)
    initial = prop_def(BlobAttr)
    assembly_format = "$sym_name `:` $tensor `=` `blob` $initial attr-dict"
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, tensor: TensorType, initial: BlobAttr):
        super().__init__(
            properties={"sym_name": StringAttr(name), "tensor": tensor, "initial": initial}
        )

    @property
    def symbol(self) -> str:
        """Its name."""
        return self.sym_name.data

    @property
    def first_value(self) -> NDArray[Any]:
        """What it holds before the first run, in its own shape."""
        return self.initial.array.reshape(self.tensor.get_shape())

    @property
    def bytes(self) -> int:
        """The bytes that it takes of remote memory."""
        return self.initial.array.nbytes

    def verify_(self) -> None:
        """Check that the first value has the elements of the tensor."""
        try:
            dtype = numpy_dtype(self.tensor.element_type)
        except ValueError as error:
            raise VerifyException(f"@{self.symbol}: {error}") from None
        found = self.initial.array
        if found.dtype != dtype or found.size != prod(self.tensor.get_shape()):
            raise VerifyException(
                f"@{self.symbol}: initial value of {found.dtype} {list(found.shape)} for "
                f"{self.tensor}"
            )


@irdl_op_definition
class LoadOp(Arrival):
    """Fill a variable with what a state in remote memory holds.

    Example: tile.load @w -> @w.loaded : tensor<96xf32>

    Attributes:
        remote: the state.
    """

    name = "tile.load"
    remote = prop_def(SymbolRefAttr)
    assembly_format = "$remote `->` $writes `:` $tensor attr-dict"

    def __init__(self, remote: str, writes: str, tensor: TensorType):
        super().__init__(
            properties={
                "remote": SymbolRefAttr(remote),
                "writes": SymbolRefAttr(writes),
                "tensor": tensor,
            }
        )


@irdl_op_definition
class StoreOp(Departure):
    """Let a state in remote memory hold what a variable holds.

    Example: tile.store @w.new -> @w : tensor<96xf32>

    Attributes:
        remote: the state.
    """

    name = "tile.store"
    remote = prop_def(SymbolRefAttr)
    assembly_format = "$reads `->` $remote `:` $tensor attr-dict"

    def __init__(self, reads: str, remote: str, tensor: TensorType):
        super().__init__(
            properties={
                "reads": SymbolRefAttr(reads),
                "remote": SymbolRefAttr(remote),
                "tensor": tensor,
            }
        )


SYNC_ZONES = ("internal", "external", "all")
"""The zones of a sync; SyncOp says what they mean."""


def zone_of(*, host: bool, chips: bool = False) -> str:
    """The zone of a superstep's sync.

    Args:
        host: whether it takes part.
        chips: whether words travel between chips.
    """
    return "all" if chips and not host else SYNC_ZONES[host]


@irdl_op_definition
class SyncOp(IRDLOperation):
    """Tiles wait for each other.

    The tiles of all chips of a group wait for each other. On a chip of no group that takes part in
    the superstep, the tiles wait only for each other.

    Example: tile.sync "all" of <[0 to 3] times 16 apart 4>

    Attributes:
        zone: internal, the tiles of each chip by itself; all, those of each group of chips;
            external, those of one group of chips, and the host.
        groups: the groups of chips; all chips are one group where it is absent.
    """

    name = "tile.sync"
    zone = prop_def(StringAttr)
    groups = opt_prop_def(ChipGroupsAttr)
    assembly_format = "$zone (`of` $groups^)? attr-dict"

    def __init__(self, zone: str, groups: ChipGroups | None = None):
        super().__init__(
            properties={
                "zone": StringAttr(zone),
                "groups": None if groups is None else ChipGroupsAttr(groups),
            }
        )

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.zone.data not in SYNC_ZONES:
            raise VerifyException(
                f'sync zone "{self.zone.data}"; need one of {", ".join(SYNC_ZONES)}'
            )
        if self.groups is None:
            return
        if self.zone.data == SYNC_ZONES[0]:
            raise VerifyException(
                f'sync zone "{self.zone.data}" of a group of chips; these meet each by itself: '
                "name none"
            )
        if self.zone.data == SYNC_ZONES[1] and len(self.groups.data.groups) > 1:
            found = len(self.groups.data.groups)
            raise VerifyException(f"{found} groups; the host meets one group of chips")

    @property
    def chips(self) -> ChipGroups | None:
        """The groups of chips; None for all chips together, and where each meets by itself."""
        return None if self.groups is None else self.groups.data


PHASES: tuple[tuple[type[Operation], ...], ...] = (
    (SyncOp,),
    (Arrival, CopyOp, Departure),
    (VerticesOp,),
)
"""The operations that each phase of a superstep may hold, in order."""

OUTSIDE = (Arrival, Departure)
"""The operations that move a tensor to the tiles or from them. They sync with the host."""

IN_A_SUPERSTEP = tuple(kind for phase in PHASES for kind in phase)
"""The operations of a superstep. Once variables have addresses, they stand nowhere else."""


def _phase(op: Operation) -> int:
    """The phase of an operation in a superstep; -1 if it cannot be in a superstep."""
    return _phase_of(type(op))


@cache
def _phase_of(op_class: type[Operation]) -> int:
    return next((i for i, kinds in enumerate(PHASES) if issubclass(op_class, kinds)), -1)


@irdl_op_definition
class SuperstepOp(IRDLOperation):
    """A sync, and the copies and vertices that had one `superstep` number.

    Example:
        tile.superstep @relu1 {
          tile.sync "internal"
          tile.copy [@image] -> @x
          tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
            plan <split [6]> reads [@x] writes @y
        }

    Attributes:
        sym_name: what reports call it.
        body: one sync, then copies and host traffic, then vertices.
    """

    name = "tile.superstep"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    assembly_format = "$sym_name $body attr-dict"
    traits = traits_def(NoTerminator())

    def __init__(self, name: str, ops: Sequence[Operation]):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[Region(Block(ops))])

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        phases = [_phase(op) for op in self.body.block.ops]
        if -1 in phases or phases != sorted(phases) or phases[:1] != [0] or phases.count(0) != 1:
            raise VerifyException(
                "a superstep is one sync, then moves and host traffic, then compute"
            )
        sync = self.body.block.first_op
        host = any(isinstance(op, OUTSIDE) for op in self.body.block.ops)
        allowed = (zone_of(host=host),) if host else (zone_of(host=host), "all")
        if isinstance(sync, SyncOp) and sync.zone.data not in allowed:
            takes = "takes part" if host else "takes no part"
            raise VerifyException(
                f'sync zone "{sync.zone.data}", but the host {takes}; need "{zone_of(host=host)}"'
            )


@irdl_op_definition
class ReadOp(IRDLOperation):
    """The single i1 that a variable holds, for the control program.

    Example: %c = tile.read @more : i1

    Attributes:
        variable: of one element, an i1.
    """

    name = "tile.read"
    variable = prop_def(SymbolRefAttr)
    result = result_def(i1)
    assembly_format = "$variable attr-dict `:` type($result)"

    def __init__(self, variable: str):
        super().__init__(properties={"variable": SymbolRefAttr(variable)}, result_types=[i1])


def written_by(op: Operation) -> list[str]:
    """The names of the variables that an operation writes; [] unless it is a copy, vertices or an
    arrival.
    """
    if isinstance(op, CopyOp | VerticesOp):
        return op.destinations
    return [op.destination] if isinstance(op, Arrival) else []


def written(module: Operation) -> set[str]:
    """Names of the variables that a run of a module may write."""
    return {name for op in module.walk() for name in written_by(op)}


@dataclass(frozen=True)
class FirstValue:
    """What a state holds before the first run.

    Attributes:
        shape: its own.
        blob: its elements.
    """

    shape: tuple[int, ...]
    blob: Blob

    @property
    def array(self) -> NDArray[Any]:
        """The value in the state's own shape."""
        return self.blob.array.reshape(self.shape)


def first_values(module: Operation) -> Mapping[str, FirstValue]:
    """The first value of each state of a module of tile or exchange, on tiles or remote, by name.

    A state on tiles without a first value is not among them.
    """
    return {
        op.symbol: FirstValue(op.tensor.get_shape(), op.initial.data)
        for op in module.regions[0].block.ops
        if isinstance(op, RemoteOp) or (isinstance(op, Variable) and op.state is not None)
        if op.initial is not None
    }


Tile = Dialect(
    "tile",
    [
        VariableOp,
        CopyOp,
        VerticesOp,
        ComputeSetOp,
        InputOp,
        OutputOp,
        RemoteOp,
        LoadOp,
        StoreOp,
        SyncOp,
        SuperstepOp,
        ReadOp,
    ],
    [],
)
verified_by_form(*Tile.operations)
