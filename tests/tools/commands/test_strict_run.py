"""A strict run says which timetables it has not checked."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.backends.timetable import strict
from abele.tools.cli import app

SOFTMAX = """func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.softmax %x axis 0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.softmax %0 axis 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %1 : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize("most", [0, 1 << 18])
def test_exchanges_of_too_many_messages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(strict, "MOST_CHECKED", most)
    Path("softmax.mlir").write_text(SOFTMAX)
    found = CliRunner().invoke(app, ["run", "softmax.mlir", "--target", "tiny:4", "--strict"])
    assert found.exit_code == 0
    said = [line for line in found.stderr.splitlines() if "were not checked" in line]
    assert [line.partition(": @")[0] for line in said] == (
        [] if most else ["timetables with too many messages were not checked"]
    )
