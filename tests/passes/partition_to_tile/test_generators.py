"""Stochastic rounding by the generators of the workers: `--rounding hardware`."""

from pathlib import Path

import numpy as np
import pytest
from some_steps import PRODUCT
from xdsl.dialects.builtin import SymbolRefAttr

from abele.dialects import tile
from abele.dialects.generators import GENERATORS, seeded_generators
from abele.dialects.levels import TILE
from abele.dialects.steps import Vertices
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import VerifyException
from abele.ir.verify import verify
from abele.passes.convert_partition_to_tile import convert_to_tile
from abele.tools import Executable, Training, compile_model
from abele.tools.driver.context import new_context

F16 = "11.0, -14.0, 65504.0, 0.0"
TARGET = "tiny:4,workers=3"
MODEL = """
builtin.module {
  func.func @main(%x: tensor<64x8xf16>, %y: tensor<64x8xf16>) -> tensor<64x8xf16> {
    %0 = nn.add %x, %y : (tensor<64x8xf16>, tensor<64x8xf16>) -> tensor<64x8xf16> loc("sum")
    func.return %0 : tensor<64x8xf16>
  }
}"""
INPUTS = {
    "arg0": np.ones((64, 8), np.float16),
    "arg1": np.full((64, 8), 2.0**-12, np.float16),
}
"""A quarter of a step is added to 1."""


def compiled(path: Path, target: str = TARGET, text: str = MODEL, **options) -> Executable:
    path.write_text(text)
    return compile_model(path, target, rounding="hardware", cache=False, **options)


def test_a_vertex_set_that_draws_gets_the_generators_of_all_workers():
    before = f"""
    builtin.module attributes {{abele.target = "{TARGET}"}} {{
      func.func @main(%x: !partition.tensor<8xf32, [8 by 4] (d0) of [8]>)
          -> !partition.tensor<8xf32, [8 by 4] (d0) of [8]> {{
        %0 = partition.compute(%x) space <[d0 = 8] (d0) of [8] -> (d0) of [8]>
            body <drawn [{F16}]> plan <split [4]>
            : (!partition.tensor<8xf32, [8 by 4] (d0) of [8]>)
            -> !partition.tensor<8xf32, [8 by 4] (d0) of [8]> loc("y")
        func.return %0 : !partition.tensor<8xf32, [8 by 4] (d0) of [8]>
      }}
    }}"""
    ctx = new_context()
    module = parse_module(before, ctx)
    convert_to_tile(module)
    verify(module)
    text = print_module(module, locations=False)
    assert f"writes @y generators @{GENERATORS}" in " ".join(text.split())
    (held,) = [each for each in module.ops if getattr(each, "symbol", "") == GENERATORS]
    assert isinstance(held, tile.VariableOp)
    assert held.initial is not None
    np.testing.assert_array_equal(held.initial.array, seeded_generators(0, 4, 3))


def test_the_same_program_gives_the_same_bits_and_each_run_others(tmp_path: Path):
    exe, again = compiled(tmp_path / "a.mlir"), compiled(tmp_path / "b.mlir")
    first, second = exe.run(INPUTS)["out0"], exe.run(INPUTS)["out0"]
    share = (first > 1).mean()
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / first.size)
    assert set(first.reshape(-1).tolist()) == {1.0, 1 + 2.0**-10}
    assert (first != second).any()
    for expected in (first, second):
        assert again.run(INPUTS)["out0"].tobytes() == expected.tobytes()
    again.reset()
    for at in ("tile", "exchange"):
        assert again.run(INPUTS, at=at)["out0"].tobytes() == first.tobytes()
    exe.seed_random(3)
    assert exe.run(INPUTS)["out0"].tobytes() != first.tobytes()


def test_bits_depend_on_the_plan_and_on_the_workers(tmp_path: Path):
    found = {
        compiled(tmp_path / "m.mlir", target).run(INPUTS)["out0"].tobytes()
        for target in ("tiny:4,workers=3", "tiny:4,workers=2", "tiny:3,workers=3")
    }
    assert len(found) == 3


def test_levels_without_generators_take_the_nearest_number(tmp_path: Path):
    exe = compiled(tmp_path / "m.mlir")
    for at in ("nn", "partition"):
        np.testing.assert_array_equal(exe.run(INPUTS, at=at)["out0"], INPUTS["arg0"])


def test_generators_take_16_bytes_for_each_worker(tmp_path: Path):
    exe = compiled(tmp_path / "m.mlir")
    nearest = compile_model(tmp_path / "m.mlir", TARGET, rounding="nearest", cache=False)
    more = exe.memory.tile_bytes - nearest.memory.tile_bytes
    assert set(more.tolist()) == {3 * 16}


def test_both_stochastic_roundings_of_a_step_cost_the_same(tmp_path: Path):
    path = tmp_path / "m.mlir"
    path.write_text(PRODUCT)
    found = [
        compile_model(
            *(path, TARGET),
            precision="pure-float16",
            rounding=each,
            train=Training(learning_rate=0.01),
            cache=False,
        ).profile["cycles"]
        for each in ("stochastic", "hardware")
    ]
    assert found[0] == found[1]


def test_training_that_is_resumed_gives_the_same_bits(tmp_path: Path):
    rng = np.random.default_rng(0)
    inputs = [
        {"x": rng.normal(size=(4, 3)).astype(np.float32), "target": rng.integers(0, 2, 4, np.int32)}
        for _ in range(4)
    ]
    options = {"precision": "pure-float16", "train": Training(learning_rate=0.01), "text": PRODUCT}
    exe, other = (compiled(tmp_path / f"{name}.mlir", **options) for name in "ab")
    for each in inputs[:2]:
        exe.step(each)
    assert exe.states[GENERATORS].shape == (4, 3, 4)
    other.set_states(exe.states)
    for each in inputs[2:]:
        exe.step(each)
        other.step(each)
    for name, state in exe.states.items():
        assert other.states[name].tobytes() == state.tobytes()


def test_a_variable_that_holds_no_generators_is_refused(tmp_path: Path):
    exe = compiled(tmp_path / "m.mlir")
    module = exe.module_at("tile")
    (drawing,) = [op for op in module.walk() if isinstance(op, Vertices)]
    for name, problem in (
        ("other", "no variable @other"),
        ("arg0", "@arg0 holds no generators; need a state of"),
    ):
        drawing.properties["generators"] = SymbolRefAttr(name)
        with pytest.raises(VerifyException, match=problem):
            verify(module, TILE)
