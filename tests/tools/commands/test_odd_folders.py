"""File names that are not UTF-8, and a working folder that was deleted."""

import os
import sys
from pathlib import Path

import pytest
from some_models import relu
from typer.testing import CliRunner

from abele.tools.cli import app

TEXT = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


def abele(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.output


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_name_need_not_be_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("m\udcff.mlir").write_text(TEXT)
    Path("m\udcff.onnx").write_bytes(relu().SerializeToString())
    Path("t\udcff.toml").write_text('base = "tiny"\ntiles = 4\n')
    Path("c\udcff.json").write_text("{}")
    for model in ("m\udcff.mlir", "m\udcff.onnx"):
        how = (model, "--target", "t\udcff.toml", "--constraints", "c\udcff.json")
        assert abele("compile", *how, "-o", "p\udcff.abele", "--dump-ir", "d\udcff")[0] == 0
        assert abele("run", "p\udcff.abele", "--outputs", "y\udcff.npz")[0] == 0
        assert abele("plan", *how, "--json", "p\udcff.json")[0] == 0
        assert abele("memory", *how)[0] == 0
    code, said = abele("opt", "m\udcff.mlir", "-p", "decompose", "--mlir-print-debuginfo")
    assert code == 0
    assert 'loc("m\\\\xff.mlir":2:' in said
    Path("bad\udcff.mlir").write_text("func")
    code, said = abele("run", "bad\udcff.mlir")
    assert (code, said.partition(":")[2].strip().partition(":")[0]) == (2, "bad\\xff.mlir")


def test_in_a_deleted_folder_only_whole_paths_are_found(tmp_path: Path):
    (tmp_path / "m.mlir").write_text(TEXT)
    gone = tmp_path / "gone"
    gone.mkdir()
    before = os.getcwd()
    os.chdir(gone)
    gone.rmdir()
    try:
        model = str(tmp_path / "m.mlir")
        program = str(tmp_path / "p.abele")
        assert abele("compile", model, "--target", "tiny", "-o", program)[0] == 0
        for line in (
            ("run", "m.mlir"),
            ("compile", model, "-o", "p.abele"),
            ("run", model, "--dump-ir", "dump"),
            ("opt", "m.mlir"),
        ):
            code, said = abele(*line)
            assert (code, said) == (
                2,
                "error: the working folder was deleted; change to another one\n",
            ), line
    finally:
        os.chdir(before)
