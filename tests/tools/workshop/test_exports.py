"""Exports of frameworks (`exports/make.py`), with the frameworks' own outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from abele.backends.reference import run_reference
from abele.ir.errors import InputError
from abele.tools.driver.arrays import checked, read_arrays
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
from abele.tools.importers import import_onnx
from abele.tools.workshop.exports import difference, exports_in, tried

MADE = Path(__file__).parent / "exports" / "made"
NAMES = [name for name, _ in exports_in(MADE, [])]


@pytest.mark.parametrize("name", NAMES)
def test_an_export_agrees_with_its_framework(name: str):
    path = MADE / f"{name}.onnx"
    inputs = read_arrays(MADE / f"{name}.npz")
    dims = {"batch": 2} if name.endswith(".keras") else {}
    module = import_onnx(path, new_context(), dims)
    host = signature(module)
    results = run_reference(module, checked(host.padded(inputs), host.inputs)).outputs
    found = host.told(host.trimmed(results))
    expected = read_arrays(MADE / f"{name}.expected.npz")
    assert difference([*found.values()], [*expected.values()]) <= 1e-5


def test_an_export_that_does_not_run_says_why(tmp_path: Path):
    (tmp_path / "a.onnx").write_bytes(b"")
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    ((name, path),) = exports_in(tmp_path, ["a"])
    assert tried(name, path, "tiny:2").problem == "error: a.onnx: empty; need an ONNX model"


def test_an_export_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="no export at all"):
        list(exports_in(tmp_path, []))
    with pytest.raises(InputError, match="no export b"):
        list(exports_in(MADE, [NAMES[0], "b"]))


FLOATS = np.array([[1.0, -4.0]])


@pytest.mark.parametrize(
    ("found", "expected", "apart"),
    [
        ([FLOATS], [FLOATS], 0.0),
        ([FLOATS], [FLOATS + [0, 1]], 1 / 3),
        ([FLOATS], [FLOATS, FLOATS], float("inf")),
        ([FLOATS], [FLOATS.T], float("inf")),
        ([FLOATS[:, :1]], [FLOATS[0, :1]], 0.0),
        ([FLOATS], [FLOATS * [1, np.inf]], float("inf")),
        ([np.array(["a"])], [np.array(["a"])], 0.0),
        ([np.array(["a"])], [np.array(["b"])], float("inf")),
        ([np.zeros(0)], [np.zeros(0)], 0.0),
    ],
)
def test_a_difference_is_relative_to_the_largest_value(found, expected, apart: float):
    assert difference(found, expected) == pytest.approx(apart)
