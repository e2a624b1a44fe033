"""abele's dialects, and the levels that a program passes through on its way to the machine."""

from __future__ import annotations

from importlib import import_module

from xdsl.ir import Dialect

from ..ir.legality import Row, row
from ..ir.level import Level
from ..ir.support.errors import InputError
from ..ir.support.user_entries import add_entry
from ..ir.upstream import ModuleOp
from ..ir.xdsl.walk import operations
from .nn import CORE
from .partition import PartitionTensor
from .structured import Composite

DIALECTS: dict[str, str] = {
    "abele": "abele.dialects.abele:Abele",
    "control": "abele.dialects.control:Control",
    "nn": "abele.dialects.nn:NN",
    "partition": "abele.dialects.partition:Partition",
    "tile": "abele.dialects.tile:Tile",
    "exchange": "abele.dialects.exchange:Exchange",
}
"""Each of abele's dialects as "module:attribute", imported on first use."""

USERS_DIALECTS: dict[str, Dialect] = {}
"""The dialects that extensions have added. Their operations are legal on nn."""


def load_dialect(name: str) -> Dialect:
    """One of abele's own dialects."""
    module, _, attribute = DIALECTS[name].partition(":")
    return getattr(import_module(module), attribute)


def register_dialect(dialect: Dialect, owner: str) -> None:
    """Make a user's operations legal on nn.

    abele lowers those that are structured, move, reinterpret or decompose. A pass of the user's
    must replace the others.
    Raises InputError if the name is taken, or if an operation's name begins with another one.
    """
    for op in dialect.operations:
        if op.name.partition(".")[0] != dialect.name:
            raise InputError(
                f"{owner}: dialect {dialect.name!r}: operation {op.name}; need names that begin "
                f"with '{dialect.name}.'"
            )
    reserved = (*DIALECTS, "builtin", "func")
    add_entry(USERS_DIALECTS, "dialect", dialect.name, dialect, owner, reserved)


# Levels

_EVERYWHERE = row("control func builtin")


def _users_dialects() -> tuple[Row, ...]:
    return (Row(tuple(USERS_DIALECTS)),) if USERS_DIALECTS else ()


def _users_core() -> tuple[Row, ...]:
    """The users' operations that remain after composites are decomposed."""
    names = tuple(
        op.name
        for dialect in USERS_DIALECTS.values()
        for op in dialect.operations
        if not issubclass(op, Composite)
    )
    return (Row(names),) if names else ()


PLANNED = "planned"
"""nn without composites, in which every operation that computes or moves has a plan."""

TILE_DECISIONS = ("plain", "numbered", "placed", "addressed", "grouped")
"""How far a module of tile is decided: nothing; the supersteps are numbered; some variables have an
address; all have one; the operations are grouped into supersteps."""

NN = Level("nn", (row("nn"), _EVERYWHERE), _users_dialects, (PLANNED,))
"""What is computed: operators on whole tensors."""

PARTITION = Level("partition", (row("partition"), _EVERYWHERE))
"""How it is split: tensors with layouts, and the parts of each computation."""

TILE = Level("tile", (row("tile"), _EVERYWHERE), decisions=TILE_DECISIONS)
"""Who computes it: variables on tiles, copies between them, vertices."""

EXCHANGE = Level(
    "exchange",
    (
        row("exchange"),
        row("tile.superstep tile.sync tile.input tile.copy tile.output tile.vertices tile.read"),
        _EVERYWHERE,
    ),
)
"""When and where: supersteps, and messages between addresses. The machine runs this level."""

LEVELS: tuple[Level, ...] = (NN, PARTITION, TILE, EXCHANGE)
"""The levels from the highest to the lowest."""

NN_CORE = Level("nn-core", (Row(tuple(op.name for op in CORE)), _EVERYWHERE), _users_core)
"""The part of nn that remains after composites are decomposed. It is no level of its own."""


def level_named(name: str) -> Level:
    """The level of a name. Raises InputError if there is none."""
    for level in LEVELS:
        if level.name == name:
            return level
    raise InputError(f"level {name!r}; need one of {', '.join(map(str, LEVELS))}")


def level_of(module: ModuleOp) -> Level:
    """The lowest level that has an operation or a type in a module; nn if there is none."""
    # Collect the distinct names first: a program has few of them, and splitting a name is slow.
    names = {name.partition(".")[0] for name in {op.name for op in operations(module)}}
    for level in reversed(LEVELS):
        if level.name in names:
            return level
    # A program that only returns its arguments has no operation of its level, so look at types too.
    has_layouts = any(
        isinstance(value.type, PartitionTensor)
        for op in module.walk()
        for region in op.regions
        for block in region.blocks
        for value in block.args
    )
    return PARTITION if has_layouts else NN
