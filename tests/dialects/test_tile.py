"""Variables, vertex sets and copies, as tile and exchange have them."""

import pytest

from abele.dialects.levels import level_of
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import VerifyException
from abele.ir.verify import verify

from ..strategies import context

HALVES = "[8 by 2] (d0) of [8]"
HALO = "[6 by 2, 3] (d0 + d1) of [8]"
SPACE = "<[i = 8] (i) of [8] -> (i) of [8]>"


def tile(body: str) -> str:
    return f"""
    tile.variable @a : tensor<8xf32> layout <{HALVES}>
    tile.variable @b : tensor<8xf32> layout <{HALVES}>
    tile.variable @h : tensor<8xf32> layout <{HALO}>
    tile.variable @i : tensor<8xi32> layout <{HALVES}>
    tile.variable @p : tensor<i1> layout <[] () of []>
    func.func @main() {{ {body} func.return }}
    """


def exchange(body: str) -> str:
    return f"""
    exchange.variable @a at 0 : tensor<8xf32> layout <{HALVES}>
    exchange.variable @b at 16 : tensor<8xf32> layout <{HALVES}>
    func.func @main() {{ exchange.superstep @s {{ {body} }} func.return }}
    """


VERTICES = f"space {SPACE} body <relu> plan <split [2] workers [6]> reads [@a] writes @b"

CHAIN = VERTICES.replace("<relu>", "<relu then add, tanh>").replace("[@a]", "[@a, @b]")
CHAIN = CHAIN.replace(" ->", ", (i) of [8] ->")

VALID = [
    tile(f"tile.compute_set @s {{ tile.vertices {CHAIN} }}"),
    exchange(f'exchange.sync "internal" exchange.compute {CHAIN}'),
    tile(f"tile.compute_set @s {{ tile.vertices {VERTICES} }}"),
    tile("tile.copy [@a] -> @h"),
    tile('tile.input "x" -> @a : tensor<2x4xf32> tile.output @a -> "y" : tensor<8xf32>'),
    tile("%c = tile.read @p : i1 control.if %c : i1 { control.yield } else { control.yield }"),
    exchange(f'exchange.sync "internal" exchange.move [@b] -> @a exchange.compute {VERTICES}'),
    exchange('exchange.sync "external" exchange.input "x" -> @a : tensor<8xf32>'),
    exchange('exchange.sync "all" of <[0 to 3, 7] times 2 apart 8, [4 to 6 by 2]>'),
    exchange('exchange.sync "external" of <[1]> exchange.input "x" -> @a : tensor<8xf32>'),
]


@pytest.mark.parametrize("text", VALID)
def test_programs_print_parse_and_verify(text: str):
    made = context()
    module = parse_module(text, made)
    verify(module, level_of(module))
    printed = print_module(module)
    assert print_module(parse_module(printed, made)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tile("tile.copy [@x] -> @a"), "no variable @x"),
        (tile("tile.copy [@a] -> @a"), "copy of @a onto itself"),
        (tile("tile.copy [@h] -> @a"), "blocks of @h overlap"),
        (tile("tile.copy [@b] -> @a own"), "needs one move, which takes the first entry"),
        (tile("tile.copy [@i] -> @a"), "copies int32 @i into float32"),
        (
            tile(f"tile.compute_set @s {{ tile.vertices {VERTICES} }}").replace(
                "split [2]", "split [4]"
            ),
            "@a has layout .* the split needs",
        ),
        (
            tile(f"tile.compute_set @s {{ tile.vertices {CHAIN.replace('@b', '@i')} }}"),
            "chain add, tanh on elements i32; need floats",
        ),
        (tile('tile.input "x" -> @a : tensor<9xf32>'), "the tensor outside is tensor<9xf32>"),
        (tile("%c = tile.read @a : i1"), "need a single i1"),
        (exchange("exchange.move [@b] -> @a"), "a superstep is one sync, then"),
        (exchange('exchange.sync "lunar"'), 'sync zone "lunar"; need one of internal, external'),
        (exchange('exchange.sync "internal" of <[0, 1]>'), "meet each by itself: name none"),
        (
            exchange(
                'exchange.sync "external" of <[0], [1]> exchange.input "x" -> @a : tensor<8xf32>'
            ),
            "2 groups; the host meets one group of chips",
        ),
        (
            exchange('exchange.sync "internal"').replace("at 16", "at 17"),
            "address 17; need a multiple of 8",
        ),
    ],
)
def test_an_invalid_program_is_refused_with_the_reason(text: str, message: str):
    module = parse_module(text, context())
    with pytest.raises(VerifyException, match=message):
        verify(module, level_of(module))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("[0, 1], [1, 2]", "chip 1 is named twice; need disjoint groups"),
        ("[]", "an empty group of chips; need one chip at least"),
        ("[3 to 1]", "an empty group of chips"),
        ("[0 to 99999999]", "100000000 chips; at most 4096"),
        ("[99999999999]", "chip 99999999999; need less than 4096"),
        ("[0] times 0 apart 1", "an empty group of chips"),
        ("[0] times 2 apart 0", "chip 0 is named twice"),
        ("[2] times 4 apart -1", "chip -1; need 0 or more"),
    ],
)
def test_groups_of_chips_that_cannot_be_are_refused(groups: str, message: str):
    with pytest.raises(InputError, match=message):
        parse_module(exchange(f'exchange.sync "all" of <{groups}>'), context())
