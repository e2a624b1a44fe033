"""What only carries the numbers of roundings costs nothing; whatever else reads them does."""

import numpy as np

from abele.backends.prices.price import price
from abele.backends.prices.words import words_only
from abele.backends.target import resolve_target
from abele.ir.blob import Blob
from abele.ir.text import parse_module
from abele.tools.driver.context import new_context

PROGRAM = """
builtin.module attributes {abele.target = "tiny:2"} {
  exchange.variable @rounding.step at 0 : tensor<f32> layout <[] () of []> state = blob <"BLOB">
  exchange.variable @weight at 4 : tensor<f32> layout <[] () of []> state = blob <"BLOB">
  exchange.variable @copy at 8 : tensor<f32> layout <[2 by 2] () of []>
  exchange.variable @sum at 12 : tensor<f32> layout <[2 by 2] () of []>
  func.func @main() {
    exchange.superstep @words {
      exchange.sync "internal"
      exchange.move [@rounding.step] -> @copy
    }
    exchange.superstep @count {
      exchange.sync "internal"
      exchange.compute space <[] () of [] -> () of []> body <shift [1.0]> plan <split []>
          reads [@rounding.step] writes @rounding.step
    }
    exchange.superstep @both {
      exchange.sync "internal"
      exchange.compute space <[] () of [], () of [] -> () of []> body <add> plan <split []>
          reads [@rounding.step, @weight] writes @weight
    }
    func.return
  }
}"""


def test_copies_and_counts_of_the_numbers_cost_nothing_and_their_readers_do():
    ctx = new_context()
    digest = ctx.blobs.add(Blob(np.zeros((), np.float32)).array).digest
    for name, free in (("rounding.step", [True, True, False]), ("steps", [False] * 3)):
        text = PROGRAM.replace("BLOB", digest).replace("rounding.step", name)
        module = parse_module(text, ctx)
        steps = price(module, resolve_target("tiny:2"))
        assert [each.cycles == 0 for each in steps] == free
        assert len(words_only(module)) == sum(free)
