"""Partial sums in 16 bits that are rounded stochastically, from nn to the machine."""

from pathlib import Path

import numpy as np
import pytest

from abele.dialects.structured import Body
from abele.tools import compile_model

PRODUCT = """
builtin.module {{ func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>)
    -> tensor<{m}x{n}xf16> {{
  %0 = nn.matmul %a, %b narrow_partials {plan}
    : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>
  {after}
}} }}"""
PLAIN = "func.return %0 : tensor<{m}x{n}xf16>"
SHIFTED = """%1 = nn.shift %0 by 1.0 {{group = 0}} : (tensor<{m}x{n}xf16>) -> tensor<{m}x{n}xf16>
  func.return %1 : tensor<{m}x{n}xf16>"""
ROUNDED = "nn,round-stores{rounding=stochastic},partition,tile,exchange"
STEP = 2.0**-10

PLANS = {
    "whole": "split [4, 1, 1]",
    "parts": "split [1, 1, 4] combine split [4, 1, 1]",
    "steps": "split [2, 1, 1] steps [1, 1, 4]",
    "parts in steps": "split [2, 1, 2] steps [1, 1, 2] combine split [4, 1, 1]",
    "ring": "split [2, 1, 1] steps [1, 1, 2] ring [-1, -1, 0]",
}


def text(plan: str, after: str = PLAIN, m: int = 32, n: int = 32, k: int = 256) -> str:
    sizes = {"m": m, "n": n, "k": k}
    written = f"{{group = 0, plan = #abele.plan<{plan}>}}"
    return PRODUCT.format(**sizes, plan=written, after=after.format(**sizes))


def run(path: Path, program: str, inputs: dict[str, np.ndarray], target: str = "tiny:4"):
    path.write_text(program)
    exe = compile_model(path, target, passes=ROUNDED, cache=False)
    bodies = [
        op.properties["body"].data
        for op in exe.module_at("partition").walk()
        if "body" in op.properties
    ]
    return exe.run(inputs)["out0"].astype(np.float64), bodies


def little_more() -> dict[str, np.ndarray]:
    """1 and then 15 zeros, which is one pass of the units; then a quarter of a step a pass."""
    a = np.zeros((32, 256), np.float16)
    a[:, 0], a[:, 16::16] = 1.0, STEP / 4
    return {"arg0": a, "arg1": np.ones((256, 32), np.float16)}


def is_by_words(body: Body) -> bool:
    return body.rounding_of_sums is not None


@pytest.mark.parametrize("plan", PLANS)
def test_the_mean_of_sums_whose_terms_are_less_than_half_a_step_is_exact(tmp_path: Path, plan: str):
    got, bodies = run(tmp_path / "m.mlir", text(PLANS[plan]), little_more())
    assert is_by_words(bodies[0])
    exact = 1 + 15 * STEP / 4
    # Each of at most 16 roundings has a deviation of half a step at most.
    assert abs(got.mean() - exact) < 4 * 2 * STEP / np.sqrt(got.size)


def test_roundings_of_one_sum_have_words_of_their_own(tmp_path: Path):
    got, _ = run(tmp_path / "m.mlir", text(PLANS["whole"]), little_more())
    # 15 independent steps with a probability of 1 / 4; with one word, all or none would be taken.
    assert got.std() == pytest.approx(np.sqrt(15 * 3 / 16) * STEP, rel=0.1)


@pytest.mark.parametrize("plan", ["parts", "steps", "parts in steps", "ring"])
def test_parts_of_one_sum_have_words_of_their_own(tmp_path: Path, plan: str):
    """Parts of one pass each, whose sums are in the middle of two numbers, half of them
    negative."""
    count = {"ring": 2}.get(plan, 4)
    a = np.zeros((32, 16 * count), np.float16)
    a[:, ::16], a[:, 1::16] = 1.0, STEP / 2
    a *= np.repeat([1, -1, -1, 1][:count], 16)
    inputs = {"arg0": a, "arg1": np.ones((16 * count, 32), np.float16)}
    got, _ = run(tmp_path / "m.mlir", text(PLANS[plan], k=16 * count), inputs)
    # Equal words would round all of them up, or none, so that all results were 0.
    assert got.std() == pytest.approx(np.sqrt(count) / 2 * STEP, rel=0.1)
    assert abs(got.mean()) < 4 * np.sqrt(count) / 2 * STEP / 32


def test_a_chain_goes_on_with_a_sum_that_words_have_rounded(tmp_path: Path):
    for plan in PLANS.values():
        got, bodies = run(tmp_path / "m.mlir", text(plan, SHIFTED), little_more())
        assert abs(got.mean() - 2 - 15 * STEP / 4) < 4 * 2.5 * STEP / np.sqrt(got.size)
        assert any(each.function == "shift" for body in bodies for each in body.then)


def test_kernels_write_the_bytes_of_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape).astype(np.float16) for shape in ((32, 256), (256, 32)))
    inputs = {"arg0": a, "arg1": b}
    found, _ = run(tmp_path / "m.mlir", text(PLANS["parts"], SHIFTED), inputs)
    monkeypatch.setenv("ABELE_KERNELS", "plain")
    plain, _ = run(tmp_path / "m.mlir", text(PLANS["parts"], SHIFTED), inputs)
    np.testing.assert_array_equal(found, plain)


def test_parts_of_a_sum_of_numbers_have_words_of_their_own(tmp_path: Path):
    program = """
    builtin.module { func.func @main(%a: tensor<1024x256xf16>) -> tensor<1024xf16> {
      %0 = nn.reduce "sum" %a axes [1] narrow_partials
        {group = 0, plan = #abele.plan<split [1, 4] combine split [4, 1]>}
        : (tensor<1024x256xf16>) -> tensor<1024xf16>
      func.return %0 : tensor<1024xf16>
    } }"""
    a = np.zeros((1024, 256), np.float16)
    a[:, ::64], a[:, 1::64] = 1.0, STEP / 2
    a *= np.repeat([1, -1, -1, 1], 64)
    got, bodies = run(tmp_path / "m.mlir", program, {"arg0": a})
    assert is_by_words(bodies[0])
    assert got.std() == pytest.approx(STEP, rel=0.1)
    assert abs(got.mean()) < 4 * STEP / 32
