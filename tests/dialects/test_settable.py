"""The states of a program that may change."""

from abele.dialects.settable import changing_states
from abele.ir.text import parse_module
from abele.tools.driver.context import new_context

TEXT = """
builtin.module attributes {abele.updated = ["b"]} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    nn.store %x, @a : tensor<2xf32>
    %b = nn.load @b : tensor<2xf32>
    %c = nn.load @c : tensor<2xf32>
    %0 = nn.add %b, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    func.return %0 : tensor<2xf32>
  }
}"""


def test_stored_states_change_and_so_do_those_that_the_host_sets():
    assert changing_states(parse_module(TEXT, new_context())) == {"a", "b"}
