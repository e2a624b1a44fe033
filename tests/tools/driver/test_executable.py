import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pytest
from some_models import normalisations, relu

from abele.tools import compile_model
from abele.tools.driver.load_program import load_executable


class Cells(HTMLParser):
    """The texts of a page, and its tags that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def cells(text: str) -> list[str]:
    page = Cells()
    page.feed(text)
    assert not page.open
    return page.texts


def test_the_representation_names_program_target_and_levels():
    exe = compile_model(relu(), "tiny:3")
    levels = "nn, partition, tile, exchange"
    assert repr(exe) == f"<Executable <model> for tiny:3: {levels}>"


def test_the_representation_of_a_saved_program_loads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "p.abele"
    compile_model(relu(), "tiny:3").save(path)
    exe = compile_model(path)

    def fail(level: str) -> None:
        raise AssertionError(f"loads {level}")

    monkeypatch.setattr(exe, "module_at", fail)
    assert str(path) in repr(exe)


def test_a_path_names_a_program_file(tmp_path: Path):
    compile_model(relu(), "tiny").save(str(tmp_path / "p.abele"))
    exe = load_executable(tmp_path / "p.abele")
    (tensor,) = exe.inputs
    assert list(exe.run({tensor.name: np.ones(tensor.shape, np.float32)}))


def test_a_notebook_shows_the_signature_and_the_figures():
    exe = compile_model(relu(), "tiny:3")
    found = cells(exe._repr_html_())
    assert found[0] == "<model> for tiny:3"
    shown = dict(zip(found[1::2], found[2::2], strict=True))
    assert shown["inputs"] == "'x' (float32[2, 3])"
    assert shown["outputs"] == "'y' (float32[2, 3])"
    assert shown["cycles"] == f"{exe.profile['cycles']:,}"
    assert "run" not in shown["seconds"]
    exe.run({"x": np.zeros((2, 3), np.float32)})
    assert "run 0.0" in cells(exe._repr_html_())[-1]


def test_names_in_a_notebook_are_text(tmp_path: Path):
    path = tmp_path / "a<b>&c.abele"
    compile_model(relu(), "tiny:3").save(path)
    assert cells(compile_model(path)._repr_html_())[0] == f"{path} for tiny:3"


COMPILE = """
import sys
from pathlib import Path
from abele.tools import compile_model
from abele.tools.driver.load_program import load_executable
for model in sys.argv[1:]:
    compile_model(model, "tiny:8").save(f"{Path(model).stem}.abele")
"""
"""Compiles models into the working folder."""

TEXT = """
func.func @main(%x: tensor<8x16xf32>, %y: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.matmul %x, %y : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = nn.softmax %0 axis 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %1 : tensor<8x4xf32>
}
"""


def test_two_compiles_of_one_model_give_the_same_bytes(tmp_path: Path):
    """In two processes, with other seeds of hashes, other folders and other paths."""
    found: list[list[bytes]] = []
    for seed, folder, path in ((1, "a", ""), (2, "b", "deep/er")):
        models = tmp_path / folder / path
        models.mkdir(parents=True)
        onnx.save(normalisations(), models / "net.onnx")
        (models / "text.mlir").write_text(TEXT)
        subprocess.run(
            [sys.executable, "-c", COMPILE, *(Path(path, n) for n in ("net.onnx", "text.mlir"))],
            cwd=tmp_path / folder,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            check=True,
        )
        files = [tmp_path / folder / name for name in ("net.abele", "text.abele")]
        found.append([file.read_bytes() for file in files])
    assert found[0] == found[1]
