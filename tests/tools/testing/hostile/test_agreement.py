"""Levels that differ are told from levels that only round elsewhere."""

from pathlib import Path

import pytest

from abele.tools.driver.executable import Executable
from abele.tools.testing.hostile.agreement import disagreement

TWICE = """
func.func @main(%x: tensor<4x3x9x{0}>) -> tensor<4x3x9x{0}> {{
  %y = nn.sigmoid %x : (tensor<4x3x9x{0}>) -> tensor<4x3x9x{0}>
  %z = nn.sigmoid %y : (tensor<4x3x9x{0}>) -> tensor<4x3x9x{0}>
  func.return %z : tensor<4x3x9x{0}>
}}
"""


@pytest.fixture(params=["f32", "f16", "bf16"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A model that is rounded once where its operations are one codelet, and twice elsewhere."""
    path = tmp_path / "twice.mlir"
    path.write_text(TWICE.format(request.param))
    return str(path)


def test_levels_may_differ_by_their_roundings(model: str):
    assert disagreement(model, "tiny:10,workers=2") == ""


def test_a_level_that_computes_something_else_is_found(model: str, monkeypatch: pytest.MonkeyPatch):
    right = Executable.run

    def wrong(self, inputs, *, at="exchange", **options):
        factor = 1.02 if at == "partition" else 1
        found = right(self, inputs, at=at, **options)
        return {name: (each * factor).astype(each.dtype) for name, each in found.items()}

    monkeypatch.setattr(Executable, "run", wrong)
    assert disagreement(model, "tiny:10,workers=2").startswith("partition differs: output")
