"""Combiners of several values at every level: cut, in steps, and round rings of tiles."""

import numpy as np
import pytest

from abele.dialects import partition
from abele.tools.driver.compile import compile_model

SHAPE = (4, 24)


def text(combiner: str, plan: str, shape=SHAPE, element="f32") -> str:
    rows, columns = shape
    index = "i32" if combiner.startswith("arg") else element
    first, second = f"tensor<{rows}x{element}>", f"tensor<{rows}x{index}>"
    return f"""
builtin.module attributes {{abele.target = "tiny:16"}} {{
  func.func @main(%x: tensor<{rows}x{columns}x{element}>) -> ({first}, {second}) {{
    %0, %1 = nn.summarize "{combiner}" %x axes [1] {{plan = #abele.plan<{plan}>}}
      : (tensor<{rows}x{columns}x{element}>) -> ({first}, {second})
    func.return %0, %1 : {first}, {second}
  }}
}}"""


def compiled(tmp_path, *given, **more):
    path = tmp_path / "several.mlir"
    path.write_text(text(*given, **more))
    return compile_model(path, "tiny:16")


PLANS = [
    "split [2, 1]",
    "split [2, 6] combine split [4, 1]",
    "split [1, 5] combine split [2, 1]",
    "split [2, 1] steps [2, 1]",
    "split [2, 1] steps [1, 3]",
    "split [2, 2] steps [2, 4] combine split [2, 1]",
    "split [4, 1] steps [1, 4] ring [-1, 0]",
]
EXPECTED = {
    "argmax": lambda x: (x.max(1), x.argmax(1)),
    "argmin_last": lambda x: (x.min(1), x.shape[1] - 1 - x[:, ::-1].argmin(1)),
    "moments": lambda x: (x.mean(1), x.var(1)),
    "exp_sum": lambda x: (x.max(1), np.exp(x - x.max(1, keepdims=True)).sum(1)),
}


@pytest.mark.parametrize("combiner", EXPECTED)
@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_gives_the_same_results(tmp_path, combiner, plan):
    exe = compiled(tmp_path, combiner, plan)
    # Few values, so that there are ties, also between parts.
    x = np.random.default_rng(3).integers(-3, 4, SHAPE).astype(np.float32)
    x[1] = -2.0
    for level in ("partition", "tile", "exchange"):
        found = exe.run({exe.inputs[0].name: x}, at=level)
        for value, expected in zip(
            found.values(), EXPECTED[combiner](x.astype(float)), strict=True
        ):
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def test_merging_of_many_parts_is_cut_too(tmp_path):
    path = tmp_path / "long.mlir"
    path.write_text(
        """builtin.module {
  func.func @main(%x: tensor<1x100000xf32>) -> tensor<1xi32> {
    %0, %1 = nn.summarize "argmax" %x axes [1]
      : (tensor<1x100000xf32>) -> (tensor<1xf32>, tensor<1xi32>)
    func.return %1 : tensor<1xi32>
  }
}"""
    )
    exe = compile_model(path, "mk2")
    computes = [
        op for op in exe.module_at("partition").walk() if isinstance(op, partition.ComputeOp)
    ]
    assert [op.body.data.unfinished for op in computes] == [True, True, False]
    x = np.random.default_rng(6).standard_normal((1, 100000)).astype(np.float32)
    (found,) = exe.run({exe.inputs[0].name: x}, at="partition").values()
    assert found == x.argmax()


def test_mean_and_variance_of_no_elements_are_0(tmp_path):
    path = tmp_path / "padding.mlir"
    path.write_text("""
func.func @main(%x: tensor<1x1x2xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  %0, %1 = nn.summarize_windows "moments" %x window [1] stride [1] dilation [1] pad [0] to [2]
    : (tensor<1x1x2xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  func.return %0, %1 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}""")
    exe = compile_model(path, "tiny:4")
    for level in exe.levels:
        mean, variance = exe.run({"arg0": np.array([[[3, 5]]], np.float32)}, at=level).values()
        assert mean.ravel().tolist() == [3, 5, 0, 0]
        assert variance.ravel().tolist() == [0, 0, 0, 0]
