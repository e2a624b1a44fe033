from dataclasses import replace

import pytest

from abele.backends.prices.price import price, totals, variables_of
from abele.backends.target import resolve_target
from abele.backends.timetable.moves import moves_of
from abele.dialects.steps import Copy, Superstep
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp
from abele.passes.order_exchanges import OrderExchanges

from ..strategies import context

TIMED = resolve_target("tiny:4,exchange.timetables=1")


def module(order: str = "") -> ModuleOp:
    """Rows on tiles become columns on tiles: every tile sends to every other one."""
    text = f"""builtin.module attributes {{abele.target = "tiny:4"}} {{
      exchange.variable @x at 0 : tensor<4x64xf32> layout <[4 by 4, 64] (d0, d1) of [4, 64]>
      exchange.variable @y at 256 : tensor<4x64xf32> layout <[4, 64 by 4] (d0, d1) of [4, 64]>
      func.func @main() {{
        exchange.superstep @turn {{
          exchange.sync "internal"
          exchange.move [@x] -> @y {order}
        }}
        func.return
      }}
    }}"""
    return parse_module(text, context())


def cycles(made: ModuleOp) -> int:
    return totals(price(made, TIMED)).cycles


def test_a_latin_square_is_written_and_is_priced():
    made = module()
    before = cycles(made)
    OrderExchanges().apply(context(), made)
    assert "order <((p1 - q0) mod 4) of [1, 4] from [4, 1]>" in print_module(made)
    assert cycles(made) < before


def test_an_order_that_somebody_wrote_stays():
    made = module("order <(d1)>")
    text = print_module(made)
    OrderExchanges().apply(context(), made)
    assert print_module(made) == text
    # All tiles send to the first receiver, then all to the second.
    assert cycles(made) > cycles(module("order <((d1 - s0) mod 4) of [1, 4] from [4, 1]>"))


def test_the_price_is_that_of_the_timetable_and_of_what_surrounds_it():
    made = module("order <((d1 - s0) mod 4) of [1, 4] from [4, 1]>")
    (found,) = price(made, TIMED)
    # Every tile sends three messages of 16 words.
    assert found.sync_cycles + found.exchange_cycles == TIMED.exchange.phase_cycles + 3 * 16


def test_a_superstep_of_several_moves_keeps_their_order():
    made = module()
    step = next(op for op in made.walk() if isinstance(op, Superstep))
    (move,) = moves_of(step, variables_of(made))
    assert replace(move, order=None) == move
    assert [op.destination for op in step.walk() if isinstance(op, Copy)] == ["y"]


@pytest.mark.parametrize("choice", ["exchange.timetables=2", "exchange.phase_cycles=-1"])
def test_a_wrong_choice_of_a_target_is_refused(choice: str):
    with pytest.raises(Exception, match=choice.split("=")[0]):
        resolve_target(f"tiny:4,{choice}")


def test_pairs_that_want_the_same_words_get_items_of_64_bits():
    text = print_module(module()).replace("[4, 64 by 4]", "[4, 64 by 2, 2 by 2]")
    made = parse_module(text, context())
    before = cycles(made)
    OrderExchanges().apply(context(), made)
    assert "width 64" in print_module(made)
    assert cycles(made) < before
