"""A module compiles to the same program by .pt2 and by ONNX, except where docs/porting.md says."""

import lzma
from collections import Counter
from pathlib import Path

import pytest

from abele.tools import compile_model
from abele.tools.driver.executable import Executable

from .fixture_models import FOLDER

FIGURES = (
    *("supersteps", "cycles", "exchange_bytes", "exchange_cycles", "compute_cycles", "vertices"),
    *("edges", "connections", "relayout_elements", "tiles_used", "max_tile_bytes"),
)
"""What the profile says of a program at exchange."""


def compiled(name: str, kind: str, folder: Path) -> Executable:
    path = folder / f"net.{kind}"
    path.write_bytes(lzma.decompress((FOLDER / "pairs" / f"{name}.{kind}.xz").read_bytes()))
    return compile_model(path, "tiny:16", cache=False)


def operations(exe: Executable, level: str) -> Counter[str]:
    return Counter(op.name for op in exe.module_at(level).walk())


@pytest.mark.parametrize("name", ["convolution block", "perceptron block"])
def test_both_forms_give_the_same_program(name: str, tmp_path: Path):
    archive, onnx = (compiled(name, kind, tmp_path) for kind in ("pt2", "onnx"))
    assert {each: archive.profile[each] for each in FIGURES} == {
        each: onnx.profile[each] for each in FIGURES
    }
    assert operations(archive, "exchange") == operations(onnx, "exchange")


def test_attention_differs_where_the_onnx_exporter_writes_it_out(tmp_path: Path):
    """The exporter scales the queries and the keys, and transposes the keys, in three axes."""
    archive, onnx = (
        operations(compiled("attention block", kind, tmp_path), "nn") for kind in ("pt2", "onnx")
    )
    # The exporter also stores equal weights once, and the factor as a weight.
    for each in (archive, onnx):
        del each["nn.state"], each["nn.load"]
    assert onnx - archive == {"nn.mul": 2, "nn.reshape": 2, "nn.transpose": 1}
    assert archive - onnx == {"nn.scale": 1}
