"""Updates at indices that are rounded stochastically, from nn to the machine."""

from pathlib import Path

import numpy as np
import pytest

from abele.tools import compile_model

GIVEN = """
builtin.module {
  func.func @main(%u: tensor<16x8xf16>, %i: tensor<16x1xi32>, %t: tensor<64x8xf16>)
      -> tensor<64x8xf16> {
    %0 = nn.update "sum" %u, %i into %t axis 0
      : (tensor<16x8xf16>, tensor<16x1xi32>, tensor<64x8xf16>) -> tensor<64x8xf16>
    func.return %0 : tensor<64x8xf16>
  }
}"""
STEP = 2.0**-10


def inputs() -> dict[str, np.ndarray]:
    return {
        "arg0": np.full((16, 8), STEP / 4, np.float16),
        "arg1": (4 * np.arange(16, dtype=np.int32))[:, None],
        "arg2": np.ones((64, 8), np.float16),
    }


def run(path: Path, target: str = "tiny:4") -> np.ndarray:
    path.write_text(GIVEN)
    exe = compile_model(path, target, rounding="stochastic", cache=False)
    return exe.run(inputs())["out0"]


def test_a_rounding_of_updates_costs_no_cycles(tmp_path: Path):
    path = tmp_path / "m.mlir"
    path.write_text(GIVEN)
    nearest, stochastic = (
        compile_model(path, "tiny:4", rounding=each, cache=False).profile["compute_cycles"]
        for each in ("nearest", "stochastic")
    )
    assert nearest == stochastic


def test_rows_that_indices_name_are_rounded_to_either_side(tmp_path: Path):
    got = run(tmp_path / "m.mlir")
    named = got[::4]
    assert set(named.ravel().tolist()) == {1.0, 1 + STEP}
    # Each is rounded up with a probability of 1 / 4.
    assert abs((named > 1).mean() - 0.25) < 4 * np.sqrt(3 / 16 / named.size)
    others = np.delete(got, np.s_[::4], axis=0)
    np.testing.assert_array_equal(others, np.ones_like(others))


def test_replaced_rows_are_not_rounded(tmp_path: Path):
    path = tmp_path / "m.mlir"
    path.write_text(GIVEN.replace('"sum"', '"last"'))
    exe = compile_model(path, "tiny:4", rounding="stochastic", cache=False)
    assert not any("stochastic" in str(op.properties) for op in exe.module_at("partition").walk())


def test_bits_are_the_same_under_every_plan(tmp_path: Path):
    want = run(tmp_path / "m.mlir")
    for target in ("tiny:1", "tiny:7,workers=3", "mk2:16"):
        np.testing.assert_array_equal(run(tmp_path / "m.mlir", target), want)


def test_kernels_write_the_bytes_of_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    want = run(tmp_path / "m.mlir")
    monkeypatch.setenv("ABELE_KERNELS", "plain")
    np.testing.assert_array_equal(run(tmp_path / "m.mlir"), want)
