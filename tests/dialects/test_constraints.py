"""Each constraint of each level's table refuses a program that breaks this constraint first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from abele.dialects.levels import EXCHANGE, LEVELS, MIXED, NN, PARTITION, TILE, known_level
from abele.ir.legality import ModuleFacts
from abele.ir.level import Level
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp, VerifyException
from abele.ir.verify import verify

from ..strategies import at_exchange, context

TENSOR = "tensor<4xf32>"
LAID_OUT = "!partition.tensor<4xf32, [4 by 2] (d0) of [4]>"
RETURN = "func.return"
EMPTY = "func.func @main() { func.return }"

READS_AND_WRITES = "`reads` and `writes` name variables, and `generators` a state of generators"


def nn(top: str) -> str:
    """A program of nn with a state @w."""
    return f'nn.state @w : {TENSOR} = <"BLOB"> {top}'


def partition(top: str) -> str:
    """A program of partition with a state @w."""
    return f'partition.state @w : tensor <4xf32, [4 by 2] (d0) of [4]> = blob <"BLOB"> {top}'


def _variables(kind: str, at: Callable[[int], str]) -> str:
    halves = "[4 by 2] (d0) of [4]"
    listed = {
        "@a": f"tensor<4xf32> layout <{halves}>",
        "@b": f"tensor<4xf32> layout <{halves}>",
        "@whole": "tensor<4xf32> layout <[4] (d0) of [4]>",
        "@halo": "tensor<4xf32> layout <[2 by 2, 3] (d0 + d1) of [4]>",
        "@i": f"tensor<4xi32> layout <{halves}>",
        "@short": "tensor<2xf32> layout <[2 by 2] (d0) of [2]>",
        "@pair": "tensor<2x4xf32> layout <[2, 4 by 2] (d0, d1) of [2, 4]>",
        "@constant": f'tensor<4xf32> layout <{halves}> = blob <"BLOB">',
        "@p": "tensor<1xi1> layout <[1] (d0) of [1]>",
        "@kept": 'tensor<4xf32> layout <[4] (d0) of [4]> state = blob <"BLOB">',
    }
    each = ((64 * i, *item) for i, item in enumerate(listed.items()))
    return " ".join(f"{kind}.variable {name}{at(i)} : {text}" for i, name, text in each)


def tile(top: str) -> str:
    """A program of tile with some variables."""
    return f"{_variables('tile', lambda _: '')} {top}"


def exchange(top: str) -> str:
    """A program of exchange with some variables.

    Args:
        top: what else stands in it, as at tile.
    """
    return f"{_variables('exchange', lambda address: f' at {address}')} {at_exchange(top)}"


FRAMES = {NN: nn, PARTITION: partition, TILE: tile, EXCHANGE: exchange}


REMOTE = 'tile.remote @r : tensor<2x2xf32> = blob <"BLOB">'


def main(body: str, arguments: str = "") -> str:
    """The function @main."""
    return f"func.func @main({arguments}) {{ {body} func.return }}"


def computed(change: str, by: str) -> str:
    """A compute set."""
    text = (
        "tile.vertices space <[i = 4] (i) of [4] -> (i) of [4]> body <relu> plan <split [2]> "
        "reads [@a] writes @b"
    )
    return text.replace(change, by)


def in_set(vertices: str) -> str:
    """A compute set around vertices."""
    return f"tile.compute_set @s {{ {vertices} }}"


def in_step(ops: str, zone: str = "internal") -> str:
    """A superstep around operations."""
    return f'tile.superstep @s {{ tile.sync "{zone}" {ops} }}'


def in_loop(ops: str) -> str:
    """A loop around operations."""
    return f"control.repeat 1 () : () -> () {{ {ops} control.yield }}"


ORDER = "keys of its `order` name parts of the two grids, which are those that the order is for"

Broken = tuple[Level, str, str, str]
"""A level, a constraint as the table says it, a program that breaks it, and a part of the error."""


def at_every_level() -> list[Broken]:
    """What breaks the rows that all levels have."""
    found: list[Broken] = []
    for level, frame in FRAMES.items():
        declares = f"{level}.state" if level in (NN, PARTITION) else f"{level}.variable"
        above = declares if level in (NN, PARTITION) else f"{declares}` or `{level}.remote"
        inner = frame("").replace("@w", "@inner").replace("@a", "@inner").split(f" {declares}")[0]
        found += [
            (
                level,
                f"the outermost operation, with `{above}` or `func.func` in it",
                frame(f"{in_loop('')} {EMPTY}"),
                "control.repeat at .* stands at the top of the module, where only .* may stand",
            ),
            (
                level,
                "inside `builtin.module`",
                frame(main(inner)),
                f"{declares} at .*: inside func.func; need builtin.module around it",
            ),
            (
                level,
                "`abele.chips`, if it is there, is `[first chip, number of chips, chips apart]`",
                frame(EMPTY.replace("main()", "f() attributes {abele.chips = [0, 0, 1]}") + EMPTY),
                r"@f: abele.chips = \[0 : i64, .*: 0 chips; need 1 to 4096",
            ),
            (level, "a body", frame(f"func.func private @f() {EMPTY}"), "@f has no body; need one"),
            (
                level,
                "calls another function than `@main`",
                frame(main("func.call @main() : () -> ()")),
                "calls @main, in which a run begins; move its body to a function",
            ),
        ]
    return found


def loop_of_runs(level: Level) -> str:
    """A loop of runs that stores to @w."""
    turn, type_ = "tensor<i32>", TENSOR
    store = f"nn.store %old, @w : {type_}"
    if level == PARTITION:
        turn, type_ = "!partition.tensor<i32, [2 by 2] (0) of [1]>", LAID_OUT
        store = f"partition.store %old -> @w : {type_}"
    return (
        f"control.repeat 3 runs () : () -> () {{ ^bb0(%turn: {turn}): "
        f"%old = {level}.load @w : {type_} {store} control.yield }}"
    )


def with_values() -> list[Broken]:
    """What breaks the rows of nn and partition."""
    found: list[Broken] = []
    for level, type_, wrong, need in (
        (NN, TENSOR, "tensor<4xi7>", "a tensor of static shape, of elements that a tile can hold"),
        (PARTITION, LAID_OUT, TENSOR, "a `!partition.tensor`"),
    ):
        frame, other = FRAMES[level], type_.replace("4xf32", "2x2xf32")
        load = f"%0 = {level}.load @w : {type_}"
        found += [
            (
                level,
                f"values: {need}",
                frame(main("", f"%x: {wrong}")),
                f"func.func at .*: argument 0 is {wrong}; need a",
            ),
            (
                level,
                "no `turn`",
                frame(main("control.repeat 1 turn @t () : () -> () { control.yield }")),
                "has turn, which this level does not have; need the number as an argument",
            ),
            (
                level,
                f"`state` names a {level}.state",
                frame(main(load.replace("@w", "@v"))),
                f"no {level}.state @v; there is w",
            ),
            (
                level,
                "the type of the state that it names, in any layout if the state is remote",
                frame(main(load.replace(type_, other))),
                "@w is .*; the operation says",
            ),
            (
                level,
                "if a loop of runs stores to the state: in this loop",
                frame(main(f"{loop_of_runs(level)} {load}")),
                "a loop of runs stores to state 'w', which is loaded outside of it; move the",
            ),
        ]
    return found


def with_variables() -> list[Broken]:
    """What breaks the rows of tile and exchange."""
    found: list[Broken] = []
    for level, frame in ((TILE, tile), (EXCHANGE, exchange)):
        below = level == EXCHANGE

        def moved(text: str, zone: str = "internal", below: bool = below) -> str:
            return main(in_step(text, zone) if below else text)

        def made(change: str, by: str, below: bool = below) -> str:
            text = computed(change, by)
            return main(in_step(text) if below else in_set(text))

        found += [
            (
                level,
                "values: none",
                frame(main("", "%x: tensor<4xf32>")),
                "argument 0 is tensor<4xf32>; need none; keep the value in a variable",
            ),
            (
                level,
                "results and arguments: none",
                frame(
                    main(
                        "%t = tile.read @p : i1 %u = control.if %t : i1 -> (i1) "
                        "{ control.yield %t : i1 } else { control.yield %t : i1 }"
                    )
                ),
                "result 0 is i1; need none; keep the value in a variable",
            ),
            (
                level,
                READS_AND_WRITES,
                frame(moved("tile.copy [@x] -> @a")),
                "no variable @x",
            ),
            (
                level,
                READS_AND_WRITES,
                frame(moved("tile.copy [@a] -> @x")),
                "no variable @x",
            ),
            (
                level,
                "`writes` names a variable",
                frame(moved('tile.input "x" -> @x : tensor<4xf32>', "external")),
                "no variable @x",
            ),
            (
                level,
                "`reads` names a variable",
                frame(moved('tile.output @x -> "x" : tensor<4xf32>', "external")),
                "no variable @x",
            ),
            (
                level,
                "`writes` names no constant",
                frame(moved("tile.copy [@a] -> @constant")),
                "writes @constant, a constant; need a variable without a first value, or a state",
            ),
            (
                level,
                "`moves` lead from the shapes that it reads to the one that it writes",
                frame(moved("tile.copy [@short] -> @a")),
                r"\[\[2\]\] to \[4\] without moves; need one source",
            ),
            (
                level,
                "one element type",
                frame(moved("tile.copy [@i] -> @a")),
                "copies int32 @i into float32",
            ),
            (
                level,
                "each element that it reads has one owner",
                frame(moved("tile.copy [@halo] -> @a")),
                "blocks of @halo overlap: elements have no one owner",
            ),
            (
                level,
                "chips that read their own entries hold the whole tensor each",
                frame(
                    moved(
                        "tile.copy [@pair] -> @a moves [#abele.space<[d0 = 4] (0, d0) of [2, 4] "
                        "-> (d0) of [4]>] own"
                    )
                ),
                "each chip reads its own entry of 2; @a is not held by so many chips",
            ),
            (
                level,
                ORDER,
                frame(moved("tile.copy [@a] -> @b order <(s1)>")),
                "key s1: no s1; the grid of the source has s0",
            ),
            (
                level,
                "with `width` 64, both tiles of each pair receive the same block",
                frame(moved("tile.copy [@a] -> @b width 64")),
                "width 64, but tile 1 does not receive what tile 0 does",
            ),
            (
                level,
                "element types that the body gives",
                frame(made("@b", "@i").replace("<relu>", "<relu then tanh>")),
                "chain tanh on elements i32; need floats",
            ),
            (
                level,
                "layouts that the split needs",
                frame(made("@b", "@whole")),
                "@whole has layout .*; the split needs",
            ),
            (
                level,
                "as many elements, of the same type, outside as in the variable",
                frame(moved('tile.input "x" -> @a : tensor<9xf32>', "external")),
                "@a is tensor<4xf32>; the tensor outside is tensor<9xf32>",
            ),
            (
                level,
                "`remote` names a remote state",
                frame(moved("tile.load @b -> @a : tensor<4xf32>", "external")),
                "no remote state @b; there are none",
            ),
            (
                level,
                "the tensor of the remote state that it names",
                frame(f"{REMOTE} {moved('tile.store @a -> @r : tensor<4xf32>', 'external')}"),
                "@r is tensor<2x2xf32>; the operation says tensor<4xf32>",
            ),
            (
                level,
                "`variable` names a variable",
                frame(main("%t = tile.read @x : i1")),
                "no variable @x",
            ),
            (
                level,
                "a variable of a single `i1`",
                frame(main("%t = tile.read @a : i1")),
                "@a is tensor<4xf32>; need a single i1",
            ),
            (
                level,
                "`turn` names a variable",
                frame(main("control.repeat 1 turn @x () : () -> () { control.yield }")),
                "no variable @x",
            ),
            (
                level,
                "`turn` is a temporary `tensor<i32>`",
                frame(main("control.repeat 1 turn @a () : () -> () { control.yield }")),
                "@a is tensor<4xf32>; need a temporary tensor<i32>",
            ),
        ]
    return found


PLACED = "`address` is a multiple of 8 and `reload` a number, both from 0 to 2^48"

PLACES: list[Broken] = [
    (
        TILE,
        "inside `tile.compute_set` or `tile.superstep`",
        tile(main(computed("", ""))),
        "tile.vertices at .*: inside func.func; need tile.compute_set or tile.superstep around it",
    ),
    (
        TILE,
        "inside `tile.superstep`",
        tile(main('tile.sync "internal"')),
        "tile.sync at .*: inside func.func; need tile.superstep around it",
    ),
    (
        PARTITION,
        PLACED,
        partition(
            main(f'%0 = partition.constant blob <"BLOB"> : {LAID_OUT} {{address = 4 : i64}}')
        ),
        "partition.constant at .*: address 4; need a multiple of 8",
    ),
    (
        TILE,
        PLACED,
        tile("tile.variable @d : tensor<f32> layout <[] () of []> {address = 4 : i64}"),
        "tile.variable at .*: address 4; need a multiple of 8",
    ),
    (
        PARTITION,
        "no home but remote memory; then a layout with one owner per element",
        partition('{home = "attic"}'),
        'home = "attic"; need "remote", or a layout alone',
    ),
    (
        TILE,
        "`superstep` is a number from 0 on",
        tile(main("tile.copy [@a] -> @b {superstep = -1 : i64}")),
        "superstep = -1 : i64; need a number from 0 on, as 3 : i64",
    ),
    (
        EXCHANGE,
        "no `superstep`",
        exchange(main(in_step("tile.copy [@a] -> @b {superstep = 1 : i64}"))),
        "has superstep, which this level does not have; need the superstep around it",
    ),
    (
        EXCHANGE,
        "inside `exchange.superstep`",
        exchange(main("tile.copy [@a] -> @b")),
        "inside func.func; need exchange.superstep around it",
    ),
]

BROKEN = [*at_every_level(), *with_values(), *with_variables(), *PLACES]


def parsed(text: str) -> ModuleOp:
    """A program whose blobs are four zeros."""
    made = context()
    digest = made.blobs.add(np.zeros(4, np.float32)).digest
    return parse_module(text.replace("BLOB", digest), made)


def first_broken(module: ModuleOp, level: Level) -> str:
    """The first constraint of a level that an operation of a module breaks; "" if none is."""
    facts = ModuleFacts(module)
    for op in facts.operations:
        for constraint in level.table.needs(op.name) or ():
            try:
                constraint.check(op, facts)
            except VerifyException:
                return constraint.says
    return ""


@pytest.mark.parametrize(
    ("level", "says", "text", "message"), BROKEN, ids=[f"{each[0]}-{each[1]}" for each in BROKEN]
)
def test_a_program_that_breaks_a_constraint_is_refused(
    level: Level, says: str, text: str, message: str
):
    module = parsed(text)
    verify(module)
    assert first_broken(module, level) == says
    with pytest.raises(VerifyException, match=message):
        verify(module, level)


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_every_constraint_is_broken_by_a_program(level: Level):
    says = {need.says for each in level.rows for need in each.needs}
    assert says == {each[1] for each in BROKEN if each[0] == level}


VALID = {
    NN: nn(main(loop_of_runs(NN))),
    PARTITION: partition(main(loop_of_runs(PARTITION))),
    TILE: tile(main(in_set(computed("", "")) + "tile.copy [@b] -> @kept")),
    EXCHANGE: exchange(main(in_step(computed("", "")) + in_step("tile.copy [@b] -> @kept"))),
}


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_a_program_of_a_level_meets_its_table_and_no_other_one(level: Level):
    module = parsed(VALID[level])
    for each in LEVELS:
        if each == level:
            verify(module, each)
        else:
            with pytest.raises(VerifyException, match="is not legal here"):
                verify(module, each)


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_the_level_of_a_program_is_known_by_its_operations(level: Level):
    assert known_level(parsed(VALID[level])) == level


def test_a_program_that_is_lowered_in_part_must_name_what_exists_and_may_be_anything_else():
    half = f"""
      tile.variable @a : tensor<4xf32> layout <[4] (d0) of [4]>
      func.func @main(%x: {TENSOR}) -> {TENSOR} {{
        %0 = nn.relu %x : ({TENSOR}) -> {TENSOR}
        tile.copy [@a] -> @b
        func.return %0 : {TENSOR}
      }}
    """
    whole = f"{half} tile.variable @b : tensor<4xf32> layout <[4] (d0) of [4]>"
    assert known_level(parsed(half)) == MIXED
    verify(parsed(whole), MIXED)
    with pytest.raises(VerifyException, match="no variable @b; there is a"):
        verify(parsed(half), MIXED)


def test_a_program_without_an_operation_of_a_level_may_have_values_of_any_type():
    assert known_level(parsed("func.func @f(%x: i7) { func.return }")) == MIXED


@pytest.mark.parametrize(
    "attributes",
    [
        "address = 9223372036854775800 : i64",
        "address = 8.0 : f32",
        f"address = {1 << 64} : i128",
        "address = 8 : i64, reload = -1 : i64",
        f"address = 8 : i64, reload = {1 << 2000} : i2048",
        'address = 8 : i64, reload = "much"',
    ],
)
def test_addresses_and_reloads_that_are_no_numbers_are_refused(attributes: str):
    text = f"tile.variable @d : tensor<f32> layout <[] () of []> {{{attributes}}}"
    with pytest.raises(VerifyException, match=r"need a number from 0 to \d+, as 8 : i64"):
        verify(parsed(tile(text)), TILE)


@pytest.mark.parametrize("given", ["1.0 : f32", '"one"'])
def test_a_superstep_is_a_number(given: str):
    text = tile(main(f"tile.copy [@a] -> @b {{superstep = {given}}}"))
    with pytest.raises(VerifyException, match="superstep = .*; need a number from 0 on"):
        verify(parsed(text), TILE)
