"""abele's dialects, and the levels that a program passes through on its way to the machine."""

from __future__ import annotations

from importlib import import_module

from xdsl.ir import Dialect, Operation

from ..ir.legality import Kind, Row, contains, counted, inside, names, results, row, values, without
from ..ir.level import Level, Levels
from ..ir.support.errors import InputError
from ..ir.support.user_entries import add_entry, note_entry
from ..ir.upstream import ModuleOp
from ..ir.well_known import LEVEL_NAMES
from ..ir.xdsl.walk import operations
from . import nn, partition
from .constraints import (
    LAID_OUT,
    NOTHING,
    SOURCE_TENSOR,
    TENSOR,
    calls_no_entry,
    changes_variables,
    has_body,
    in_loop_of_state,
    number_temporary,
    on_chips,
    placed,
    remote_home,
    single_truth,
    tensor_of_remote,
    tensor_outside,
    type_of_state,
    uses,
    uses_variables,
    variable,
)
from .onnx_level import ONNX_LEVEL
from .steps import Copy, Remote, Vertices
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

SOURCE_DIALECTS: dict[str, str] = {
    "stablehlo": "abele.dialects.stablehlo:STABLEHLO",
    "chlo": "abele.dialects.chlo:CHLO",
}
"""The dialects of other compilers that abele reads, each as "module:attribute". A context imports
one when a program has an operation of it."""

USERS_DIALECTS: dict[str, Dialect] = {}
"""The dialects that extensions have added above all levels. Their operations are legal on nn."""

LEVEL_DIALECTS: dict[str, Dialect] = {}
"""The dialects of levels that extensions have added. Their operations are legal there alone."""


def all_users_dialects() -> tuple[Dialect, ...]:
    """The dialects that extensions have added, at any level."""
    return (*USERS_DIALECTS.values(), *LEVEL_DIALECTS.values())


def has_dialects_of_users(module: ModuleOp) -> bool:
    """Whether a module has operations of dialects that extensions have added, at any level."""
    added = {each.name for each in all_users_dialects()}
    return any(op.name.partition(".")[0] in added for op in operations(module))


def load_dialect(name: str) -> Dialect:
    """One of abele's own dialects, or one that abele reads."""
    module, _, attribute = (DIALECTS | SOURCE_DIALECTS)[name].partition(":")
    return getattr(import_module(module), attribute)


def register_dialect(dialect: Dialect, owner: str, *, of_level: bool = False) -> None:
    """Make a user's operations legal on nn, or let a level that the user adds have them.

    abele lowers those of nn that are structured, move, reinterpret or decompose. A pass of the
    user's must replace the others.
    Raises InputError if the name is taken, or if an operation's name begins with another one.

    Args:
        of_level: whether a level has these operations.
    """
    for op in dialect.operations:
        if op.name.partition(".")[0] != dialect.name:
            raise InputError(
                f"{owner}: dialect {dialect.name!r}: operation {op.name}; need names that begin "
                f"with '{dialect.name}.'"
            )
    reserved = (*DIALECTS, *SOURCE_DIALECTS, "builtin", "func", *USERS_DIALECTS, *LEVEL_DIALECTS)
    table = LEVEL_DIALECTS if of_level else USERS_DIALECTS
    add_entry(table, "dialect", dialect.name, dialect, owner, reserved)


# Levels


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


STAGED = "staged"
"""nn in which operations may have stages of a pipeline."""

PLANNED = "planned"
"""nn without composites, in which every operation that computes or moves has a plan."""

TILE_DECISIONS = ("plain", "numbered", "placed", "addressed", "grouped")
"""How far a module of tile is decided: nothing; the supersteps are numbered; some variables have an
address; all have one; the operations are grouped into supersteps."""


def _is_users(op_name: str) -> bool:
    """Whether an operation is of a dialect that neither abele nor xDSL's core defines."""
    return op_name.partition(".")[0] not in (*DIALECTS, *SOURCE_LEVELS, "builtin", "func")


def _functions(*variables: str) -> tuple[Row, ...]:
    """What holds of a module and its functions.

    Args:
        variables: the operations that declare what a program keeps between runs.
    """
    return (
        row("builtin.module", contains(*variables, "func.func", users=_is_users)),
        row(" ".join(variables), inside("builtin.module")),
        row("func.func", inside("builtin.module"), has_body, on_chips),
        row("func.call", calls_no_entry),
    )


def _states(dialect: str, kind: type[Operation]) -> Row:
    """What holds between loads, stores and states.

    Args:
        kind: the operation that declares a state.
    """
    return row(
        f"{dialect}.load {dialect}.store",
        *(names("state", f"{dialect}.state", kind), type_of_state, in_loop_of_state),
    )


_NN_STATES = _states("nn", nn.StateOp)

_PARTITION_STATES = _states("partition", partition.StateOp)


def _on_values(kind: Kind) -> tuple[Row, ...]:
    """What holds of functions and control flow where operations work on values.

    Args:
        kind: the types of these values.
    """
    return (
        row("func control", values(kind)),
        row("control.repeat", without("turn", "the number as an argument")),
    )


_ON_VARIABLES = (
    row("control"),
    row("func control.yield control.repeat control.while", values(NOTHING)),
    row("control.if", results(NOTHING)),
)
"""What holds of functions and control flow where operations work on variables: only truth values
are values."""


def _variables(dialect: str, copy: str, vertices: str) -> tuple[Row, ...]:
    """What holds between operations and the variables that they name.

    Args:
        dialect: tile or exchange.
        copy, vertices: what the dialect calls its copies and computations.
    """

    def each(*ops: str) -> str:
        return " ".join(f"{dialect}.{op}" for op in ops)

    return (
        row(each(copy, vertices), uses_variables, changes_variables),
        row(each(copy), *uses(Copy)),
        row(each(vertices), *uses(Vertices)),
        row(each("input", "load"), variable("writes"), changes_variables, tensor_outside),
        row(each("output", "store"), variable("reads"), tensor_outside),
        row(each("load", "store"), names("remote", "remote state", Remote), tensor_of_remote),
        row(each("read"), variable("variable"), single_truth),
    )


_TILE_VARIABLES = _variables("tile", "copy", "vertices")

_EXCHANGE_VARIABLES = _variables("exchange", "move", "compute")

_TURNS = row("control.repeat", variable("turn"), number_temporary)

_NN_ROWS = (*_functions("nn.state"), *_on_values(TENSOR), _NN_STATES)
"""What holds on nn, besides which of its own operations are legal."""

NN = Level(
    "nn",
    (row("nn"), *_NN_ROWS),
    _users_dialects,
    (STAGED, PLANNED),
    meaning="What is computed: operators on whole tensors.",
)

PARTITION = Level(
    "partition",
    (
        row("partition"),
        *_functions("partition.state"),
        *_on_values(LAID_OUT),
        _PARTITION_STATES,
        row("partition.state partition.constant", placed),
        row("partition.state", remote_home),
    ),
    meaning="How it is split: tensors with layouts, and the parts of each computation.",
)

TILE = Level(
    "tile",
    (
        row("tile"),
        *_functions("tile.variable", "tile.remote"),
        *_ON_VARIABLES,
        *_TILE_VARIABLES,
        _TURNS,
        row("tile.vertices", inside("tile.compute_set", "tile.superstep")),
        row("tile.sync", inside("tile.superstep")),
        row(
            "tile.copy tile.compute_set tile.input tile.output tile.load tile.store",
            counted("superstep"),
        ),
        row("tile.variable", placed),
    ),
    decisions=TILE_DECISIONS,
    meaning="Who computes it: variables on tiles, copies between them, vertices.",
)

EXCHANGE = Level(
    "exchange",
    (
        row("exchange"),
        *_functions("exchange.variable", "exchange.remote"),
        *_ON_VARIABLES,
        *_EXCHANGE_VARIABLES,
        _TURNS,
        row(
            "exchange.sync exchange.input exchange.load exchange.move exchange.output "
            "exchange.store exchange.compute",
            inside("exchange.superstep"),
            without("superstep", "the superstep around it"),
        ),
    ),
    meaning="When and where: supersteps, and messages between addresses. The machine runs it.",
)

OWN_LEVELS: tuple[Level, ...] = (NN, PARTITION, TILE, EXCHANGE)
"""abele's levels from the highest to the lowest."""

LEVELS = Levels(OWN_LEVELS)
"""abele's levels and those that extensions have added, from the highest to the lowest."""

STABLEHLO = Level(
    "stablehlo",
    (
        row("stablehlo"),
        row("chlo"),
        row("nn.state nn.load nn.store"),
        *_functions("nn.state"),
        row("func", values(SOURCE_TENSOR)),
        _NN_STATES,
    ),
    meaning="What is computed, as JAX and other frameworks write it.",
)

SOURCES: tuple[Level, ...] = (STABLEHLO,)
"""The levels above nn, from which a pass of their own leads there. A program is on one of them only
if it was read as one."""

SOURCE_LEVELS: dict[str, Level] = {
    "stablehlo": STABLEHLO,
    "chlo": STABLEHLO,
    ONNX_LEVEL.name: ONNX_LEVEL,
}
"""The level of the operations of each dialect above nn."""

NN_CORE = Level(
    "nn-core",
    (Row(tuple(op.name for op in nn.CORE)), *_NN_ROWS),
    _users_core,
    meaning="It has no composites: they have been decomposed.",
)
"""The part of nn that remains after composites are decomposed. It is no level of its own."""

MIXED = Level(
    "mixed",
    (_NN_STATES, _PARTITION_STATES, *_TILE_VARIABLES, *_EXCHANGE_VARIABLES, _TURNS),
    open=True,
)
"""What holds of every module, also of one that passes have lowered in part. It is no level."""


def register_level(level: Level, after: Level, owner: str) -> None:
    """Add a user's level directly below another one.

    Raises InputError if the name is taken, if there is no such other level, and if there is none
    below it.
    """
    above = next((each for each in LEVELS[:-1] if each == after), None)
    if above is None:
        known = ", ".join(map(str, LEVELS[:-1]))
        raise InputError(
            f"{owner}: level {level.name!r}: after {str(after)!r}; need one of {known}"
        )
    taken = {*map(str, LEVELS), *(each for known in LEVELS for each in known.decisions)}

    def remove() -> None:
        LEVELS.remove(level)
        LEVEL_NAMES.remove(level.name)

    note_entry("level", level.name, owner, remove, taken)
    LEVELS.insert_after(above, level)
    LEVEL_NAMES.insert(LEVELS.index(level), level.name)


def level_named(name: str) -> Level:
    """The level of a name. Raises InputError if there is none."""
    for level in (*LEVELS, *SOURCES, ONNX_LEVEL):
        if level.name == name:
            return level
    raise InputError(
        f"level {name!r}; need one of {', '.join(map(str, LEVELS))}, or --load the file that adds "
        "it"
    )


def level_of(module: ModuleOp) -> Level:
    """The lowest level that has an operation or a type in a module; nn if there is none.

    A level is known by operations of the dialect that is called like it. A module is on a level
    above nn as long as it has an operation of that level.
    """
    # Collect the distinct names first: a program has few of them, and splitting a name is slow.
    names = {name.partition(".")[0] for name in {op.name for op in operations(module)}}
    for name, level in SOURCE_LEVELS.items():
        if name in names:
            return level
    for level in reversed(LEVELS):
        if level.name in names:
            return level
    # A program that only returns its arguments has no operation of its level, so look at types too.
    has_layouts = any(
        isinstance(value.type, partition.PartitionTensor)
        for op in module.walk()
        for region in op.regions
        for block in region.blocks
        for value in block.args
    )
    return PARTITION if has_layouts else NN


def known_level(module: ModuleOp) -> Level:
    """The level whose table a module must meet: MIXED unless all operations are of one level.

    A module without an operation of a level is MIXED too.
    """
    names = {op.name for op in operations(module)}
    level = level_of(module)
    of_levels = (DIALECTS.keys() | SOURCE_LEVELS.keys() | LEVEL_DIALECTS.keys()) - {"control"}
    has_own = any(name.partition(".")[0] in of_levels for name in names)
    return level if has_own and all(map(level.is_legal, names)) else MIXED
