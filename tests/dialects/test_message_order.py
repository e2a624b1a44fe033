import numpy as np
import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from abele.dialects.blob_attr import BlobAttr
from abele.dialects.levels import TILE
from abele.dialects.message_order import MessageOrder, MessageOrderAttr, parsed_keys
from abele.ir.blob import Blob
from abele.ir.text import blobs_of, parse_module, print_module
from abele.ir.upstream import VerifyException
from abele.ir.verify import verify

from ..strategies import context

TEXTS = [
    "#abele.order<(s1)>",
    "#abele.order<(sign(d0 - s0), sign(d1 - s1), s0)>",
    "#abele.order<((d1 - s1) mod 46) of [32, 46] from [32, 46]>",
    "#abele.order<(-s0 + 2 * (d0 floordiv 4), (s0 floordiv 2) mod 3) of [16] from [6]>",
    "#abele.order<(-d0)>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_orders_print_as_they_are_written(text: str):
    assert str(Parser(context(), text).parse_attribute()) == text


def test_colours_are_found_by_their_digest():
    colours = Blob(np.array([0, 1, 1, 0], np.uint16))
    order = MessageOrder(colours=colours, of=(4,), sources=(4,))
    made = context()
    made.blobs.add(colours)
    assert Parser(made, str(MessageOrderAttr(order))).parse_attribute().data == order
    assert BlobAttr(colours).data.digest in order.text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(d0 - s0 mod 4)", "mod in a sum; put parentheses around what it divides"),
        ("(d0 mod 4 + 1)", "more after a division; put parentheses around the division"),
        (
            "((d0 - s0) mod 4)",
            r"write for how many parts, as `of \[4\] from",
        ),
        ("colour #abele.blob<[1] : tensor<1xi32>>", r"\(colour\) has numbers"),
        ("colour #abele.blob<[1.0] : tensor<1xf32>> of [1] from [1]", "need one integer for each"),
        ("colour 3", "need #abele.blob<...>"),
        ("(d1) of [4] from [4]", "no d1; the grid of the destination has d0"),
        ("(s2) of [4] from [4, 2]", "no s2; the grid of the source has s0, s1"),
        ("(x)", "x in a key; need a part of the destination"),
        ("(d00)", "d00 in a key"),
        ("(d0 mod 0) of [4] from [4]", "mod 0; need 1 to 2147483647"),
        ("(d0) of [0] from [4]", "0 parts; need 1 to 2147483647"),
        ("(d0) of [4]", "Expected 'from'"),
        ("()", "an order needs keys or colours"),
        (f"({'(' * 50}d0)", "parentheses more than 8 deep"),
        (f"({', '.join(['d0'] * 17)})", "an order of 17 keys; need at most 16"),
        (f"({10**20} * d0) of [4] from [4]", "need at most 2147483647"),
    ],
)
def test_bad_orders_are_refused_with_the_reason(text: str, message: str):
    with pytest.raises(ParseError, match=message):
        Parser(context(), f"#abele.order<{text}>").parse_attribute()


def test_keys_are_evaluated_for_all_messages_at_once():
    shift, row = parsed_keys("(d0 - s0) mod 3, 2 * s1")
    order = MessageOrder((shift, row), of=(3,), sources=(3, 2))
    to, of = np.arange(3)[:, None], np.arange(3)[None, :]
    first, second = order.values({"d": [to], "s": [of, np.ones((1, 3), np.int64)]})
    assert first.tolist() == [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    assert np.unique(second).tolist() == [2]


# Moves

MOVES = """
    tile.variable @a : tensor<8xf32> layout <[8 by 4] (d0) of [8]>
    tile.variable @b : tensor<8xf32> layout <[2 by 2, 8 by 4] (d1) of [8]>
    tile.variable @pairs : tensor<8xf32> layout <[8 by 2, 2 by 2] (d0) of [8]>
    func.func @main() {{
      tile.copy [@a] -> @{to} {with_}
      func.return
    }}
"""


def move(with_: str, to: str = "b") -> str:
    return MOVES.format(with_=with_, to=to)


@pytest.mark.parametrize(
    "with_",
    [
        "order <(s0)>",
        "order <(p0 - q0)>",
        "order <((d1 - s0) mod 4) of [2, 4] from [4]> chunk 1",
        "chunk 4148",
        "width 32",
    ],
)
def test_a_move_has_an_order_a_chunk_and_a_width(with_: str):
    made = context()
    module = parse_module(move(with_), made)
    verify(module, TILE)
    assert f"tile.copy [@a] -> @b {with_} loc(" in print_module(module)


def test_pairs_of_tiles_that_hold_the_same_take_64_bits():
    verify(parse_module(move("width 64", "pairs"), context()), TILE)


@pytest.mark.parametrize(
    ("with_", "message"),
    [
        ("chunk 0", "chunk 0; need 1 to 4148 words"),
        ("chunk 4149", "chunk 4149; need 1 to 4148 words"),
        ("chunk -3", "chunk -3; need 1 to 4148 words"),
        ("width 16", "width 16; need 32 or 64"),
        ("width 64", "width 64, but tile 1 does not receive what tile 0 does"),
        ("order <(s1)>", "key s1: no s1; the grid of the source has s0"),
        ("order <(d2)>", "key d2: no d2; the grid of the destination has d0, d1"),
        ("order <(p0 - q3)>", "no q3; the groups of axes of the move have q0"),
        (
            "order <((d0 - s0) mod 8) of [8] from [4]>",
            r"the order is of \[8\] from \[4\] parts, but the move is of \[2, 4\] from \[4\]; "
            "order it again, or remove the order",
        ),
    ],
)
def test_a_move_refuses_what_does_not_suit_it(with_: str, message: str):
    with pytest.raises(VerifyException, match=message):
        verify(parse_module(move(with_), context()), TILE)


def test_a_module_keeps_the_colours_of_its_moves():
    made = context()
    blob = made.blobs.add(np.arange(4, dtype=np.uint16))
    text = move(f"order <colour {BlobAttr(blob)} of [2, 4] from [4]>")
    assert [each.digest for each in blobs_of(parse_module(text, made))] == [blob.digest]
