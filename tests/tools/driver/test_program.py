"""What a program's text may not say is refused by one message that names the place."""

from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.tools import compile_model

NESTED = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {{
  %0 = nn.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.func @inner(%y: tensor<4x6xf32>) -> tensor<4x6xf32>{body}
  func.return %0 : tensor<4x6xf32>
}}
"""

PLANNED = """
builtin.module attributes {abele.target = "tiny:4"} {
  func.func @main(%x: tensor<4x6xf32>, %y: tensor<6x4xf32>) -> tensor<4x4xf32> {
    %0 = nn.matmul %x, %y {plan = #abele.plan<split [1, 1, 1] method slic>}
        : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32> loc("product")
    func.return %0 : tensor<4x4xf32>
  }
}
"""


def refused(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        compile_model(path, cache=False)


@pytest.mark.parametrize("body", ["", " {\n    func.return %y : tensor<4x6xf32>\n  }"])
def test_a_function_inside_another_one_is_refused(tmp_path: Path, body: str):
    match = r"func.func at \S*p.mlir:4:3: inside func.func; need builtin.module around it"
    refused(tmp_path, NESTED.format(body=body), match)


def test_a_method_that_the_target_does_not_have_is_refused(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(PLANNED)
    exe = compile_model(path, cache=False)
    with pytest.raises(InputError, match="at product: target tiny: no method 'slic' .*; need"):
        _ = exe.profile


EXCHANGE = """
builtin.module attributes {abele.target = "tiny:4"} {
  exchange.variable @x at 0 : tensor<24xf32> layout <[24 by 4] (d0) of [24]>
  func.func @main() {
    exchange.superstep @in { exchange.sync "external" exchange.input "x" -> @x : tensor<24xf32> }
    exchange.superstep @s { exchange.sync "all" of <[0, 7]> }
    func.return
  }
}
"""


def test_a_sync_of_a_chip_that_the_target_lacks_is_refused(tmp_path: Path):
    refused(
        tmp_path, EXCHANGE, r"p.mlir: exchange.sync at \S*p.mlir:6:\d+: chip 7; target tiny has 1"
    )
