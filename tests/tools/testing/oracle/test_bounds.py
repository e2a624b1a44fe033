"""Error bounds of chains with functions that are not defined everywhere."""

import numpy as np
import pytest

from abele.backends.target import resolve_target
from abele.ir.text import parse_module
from abele.tools.driver.context import new_context
from abele.tools.testing import Program, bounded_run, difference
from abele.tools.testing.oracle.oracles import Outcome

CHAIN = """
builtin.module {
  func.func @main(%0: tensor<2xf16>, %1: tensor<2xf16>) -> tensor<2xf16>
      attributes {arg_names = ["x", "y"], result_names = ["z"]} {
    %2 = nn.pow %0, %1 then [neg, log] : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
    func.return %2 : tensor<2xf16>
  }
}
"""


@pytest.mark.parametrize(("first", "bound"), [(0.5, np.inf), (np.nan, np.nan)])
def test_a_chain_may_leave_its_domain_after_a_number_but_not_after_nan(first: float, bound: float):
    context = new_context()
    values = np.array([first, 0.5], np.float16)
    inputs = {"x": values, "y": np.full(2, 2, np.float16)}
    program = Program(parse_module(CHAIN, context), context, inputs, resolve_target("tiny:1"))
    expected = bounded_run(program)
    np.testing.assert_array_equal(expected.errors["z"], [bound, np.inf])
    zero = Outcome({"z": np.full(2, -np.inf, np.float16)}, {}, {})
    assert (difference(expected, zero) is None) == np.isfinite(first)
