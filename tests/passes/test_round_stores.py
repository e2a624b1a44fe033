from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from some_steps import PRODUCT
from some_tensors import context, module_of
from xdsl.dialects.builtin import StringAttr, f32

from abele.backends.evaluate.host import Run
from abele.backends.evaluate.tile import run_tile
from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.random_states import ROUNDING_SEED, ROUNDING_STEP
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.pipelines import PASSES
from abele.passes.round_stores import OVERFLOW
from abele.passes.rounding.words import LAST_RUN, NEXT_SEED
from abele.tools import Training, compile_model

ADDS = """
func.func @main(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
  %0 = nn.add %x, %y : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  func.return %0 : tensor<4xf16>
}"""
FORMAT = "digits 11.0 least -14.0 largest 65504.0"
LOOP = """
func.func @main(%x: tensor<64xf16>, %y: tensor<64xf16>) -> tensor<64xf16> {
  %0 = control.repeat 4 (%x) : (tensor<64xf16>) -> (tensor<64xf16>) {
  ^bb0(%a: tensor<64xf16>):
    %1 = nn.add %a, %y : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
    control.yield %1 : tensor<64xf16>
  }
  func.return %0 : tensor<64xf16>
}"""
CALLS = """
func.func @twice(%a: tensor<64xf16>, %b: tensor<64xf16>) -> tensor<64xf16> {
  %1 = nn.add %a, %b : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
  func.return %1 : tensor<64xf16>
}
func.func @main(%x: tensor<64xf16>, %y: tensor<64xf16>) -> (tensor<64xf16>, tensor<64xf16>) {
  %0 = func.call @twice(%x, %y) : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
  %1 = func.call @twice(%x, %y) : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
  func.return %0, %1 : tensor<64xf16>, tensor<64xf16>
}"""
INPUTS = {"arg0": np.full(64, 1.0, np.float16), "arg1": np.full(64, 3e-4, np.float16)}


def rounded(text: str, options: str = "", **blobs: np.ndarray) -> ModuleOp:
    ctx = context()
    module = module_of(text, ctx, **blobs)
    for each in parse_pipeline(f"round-stores{{{options}}}", PASSES):
        each.apply(ctx, module)
    verify(module)
    return module


def check(
    before: str, after: str, options: str = "", overflow: str = "", **blobs: np.ndarray
) -> None:
    got = print_module(rounded(before, options, **blobs), locations=False)
    expected = module_of(after, context(), **blobs)
    if overflow:
        expected.attributes[OVERFLOW] = StringAttr(overflow)
    assert got == print_module(expected, locations=False)


def roundings(module: ModuleOp) -> list[nn.StochasticOp]:
    return [op for op in module.walk() if isinstance(op, nn.StochasticOp)]


def test_a_result_becomes_float32_and_is_rounded_by_words_of_its_place_and_step():
    after = """
    nn.state @rounding.seed : tensor<f32> = {zero}
    nn.state @rounding.step : tensor<f32> = {zero}
    func.func @main(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
      %0 = nn.load @rounding.seed : tensor<f32>
      %1 = nn.load @rounding.step : tensor<f32>
      %2 = nn.iota start 0 steps [0] : tensor<4xf32>
      %3 = nn.iota start 0 steps [1] : tensor<4xf32>
      %4 = nn.add %x, %y {group = 0} : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf32>
      %5 = nn.stochastic %4, %3, %2, %1, %0 key KEY FORMAT overflow 1.0 {group = 0}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
      %6 = nn.cast %5 {group = 0} : (tensor<4xf32>) -> tensor<4xf16>
      %7 = nn.shift %1 by 1.0 {group = 1} : (tensor<f32>) -> tensor<f32>
      %8 = nn.scale %7 by -1.0 {group = 1} : (tensor<f32>) -> tensor<f32>
      %9 = nn.shift %8 by 16777215.0 {group = 1} : (tensor<f32>) -> tensor<f32>
      %10 = nn.gate %9, %7 {group = 1} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      nn.store %10, @rounding.step : tensor<f32>
      %11 = nn.shift %0 by 1000003.0 : (tensor<f32>) -> tensor<f32>
      %12 = nn.shift %1 by -16777213.0 {group = 2} : (tensor<f32>) -> tensor<f32>
      %13 = nn.gate %12, %11 {group = 2} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %14 = nn.max %13, %0 {group = 2} : (tensor<f32>, tensor<f32>) -> tensor<f32>
      nn.store %14, @rounding.seed : tensor<f32>
      func.return %6 : tensor<4xf16>
    }"""
    (rounding,) = roundings(rounded(ADDS))
    after = after.replace("FORMAT", FORMAT).replace("KEY", f"{rounding.parameters[0]:.1f}")
    check(ADDS, after, 'target="mk2"', "clip", zero=np.zeros((), np.float32))


def test_a_rounding_to_nearest_needs_no_words():
    after = """
    func.func @main(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
      %4 = nn.add %x, %y {group = 0} : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf32>
      %5 = nn.to_nearest %4 FORMAT overflow 2.0 {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
      %6 = nn.cast %5 {group = 0} : (tensor<4xf32>) -> tensor<4xf16>
      func.return %6 : tensor<4xf16>
    }"""
    check(ADDS, after.replace("FORMAT", FORMAT), "rounding=nearest overflow=nan", "nan")


def test_a_cast_in_a_group_rounds_what_it_reads():
    before = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf16> {
      %0 = nn.tanh %x {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.cast %0 {group = 0} : (tensor<4xf32>) -> tensor<4xf16>
      func.return %1 : tensor<4xf16>
    }"""
    after = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf16> {
      %0 = nn.tanh %x {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.to_nearest %0 FORMAT overflow 1.0 {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.cast %1 {group = 0} : (tensor<4xf32>) -> tensor<4xf16>
      func.return %2 : tensor<4xf16>
    }"""
    check(before, after.replace("FORMAT", FORMAT), "rounding=nearest overflow=clip", "clip")


@pytest.mark.parametrize("options", ["", "rounding=nearest overflow=clip"])
def test_what_no_rounding_changes_is_left(options: str):
    before = """
    func.func @main(%x: tensor<4x2xf16>) -> (tensor<2x4xf16>, tensor<4x2xf16>, tensor<4x2xf32>) {
      %0 = nn.relu %x : (tensor<4x2xf16>) -> tensor<4x2xf16>
      %1 = nn.transpose %0 [1, 0] : (tensor<4x2xf16>) -> tensor<2x4xf16>
      %2 = nn.abs %x : (tensor<4x2xf16>) -> tensor<4x2xf16>
      %3 = nn.cast %x : (tensor<4x2xf16>) -> tensor<4x2xf32>
      func.return %1, %2, %3 : tensor<2x4xf16>, tensor<4x2xf16>, tensor<4x2xf32>
    }"""
    check(before, before, options)


SUM = """
func.func @main(%x: tensor<4x64xf16>, %y: tensor<64x4xf16>) -> tensor<4x4xf16> {
  %0 = nn.matmul %x, %y narrow_partials {group = 0}
    : (tensor<4x64xf16>, tensor<64x4xf16>) -> tensor<4x4xf16>
  %1 = nn.tanh %0 {group = 0} : (tensor<4x4xf16>) -> tensor<4x4xf16>
  func.return %1 : tensor<4x4xf16>
}"""


def test_a_sum_in_16_bits_is_rounded_by_words_before_its_chain():
    module = rounded(SUM)
    first, second = roundings(module)
    assert isinstance(first.value.owner, nn.MatMulOp)
    assert first.value.type.get_element_type() == second.value.type.get_element_type() == f32
    assert first.parameters[0] != second.parameters[0]
    (group,) = [g for g in nn.groups_of(first.parent) if first in g.members]
    assert [each.name for each in group.members] == [
        *("nn.matmul", "nn.stochastic", "nn.cast", "nn.tanh", "nn.stochastic", "nn.cast")
    ]
    assert len(roundings(rounded(SUM.replace("narrow_partials ", "")))) == 1


def test_to_nearest_and_infinity_is_what_a_store_does():
    check(ADDS, ADDS, 'rounding=nearest target="tiny"')


def test_the_target_decides_what_overflow_becomes():
    inputs = {name: np.full(4, 6e4, np.float16) for name in ("arg0", "arg1")}
    for target, largest in (("mk2", 65504), ("tiny", np.inf), ("mk2,rounding.overflow=2", np.nan)):
        module = rounded(ADDS, f'rounding=nearest target="{target}"')
        (found,) = run_reference(module, inputs).outputs.values()
        np.testing.assert_array_equal(found, np.full(4, largest, np.float16))


def test_iterations_of_a_loop_draw_different_words():
    module = rounded(LOOP)
    (rounding,) = roundings(module)
    seen: list[bytes] = []
    run_reference(
        module,
        INPUTS,
        observe=lambda op, _, results: (
            seen.append(results[0].tobytes()) if op is rounding else None
        ),
    )
    assert len(seen) == 4
    ups = [np.frombuffer(each, np.float32) for each in seen]
    steps = [np.diff([before, after], axis=0)[0] for before, after in pairwise(ups)]
    assert len({each.tobytes() for each in steps}) == 3


def test_calls_of_a_function_draw_different_words():
    first, second = run_reference(rounded(CALLS), INPUTS).outputs.values()
    assert set(first) == set(second) == {np.float16(1.0), np.float16(1 + 2.0**-10)}
    assert not np.array_equal(first, second)


def test_each_run_and_each_seed_draws_other_words_and_the_same_run_the_same():
    module = rounded(ADDS.replace("4x", "64x"))
    state: dict[str, np.ndarray] = {}
    runs = []
    for _ in range(2):
        done = run_reference(module, INPUTS, state)
        state = done.state
        runs.append(*done.outputs.values())
    assert not np.array_equal(*runs)
    (again,) = run_reference(module, INPUTS).outputs.values()
    np.testing.assert_array_equal(again, runs[0])
    seeded = {ROUNDING_SEED: np.array(5, np.float32), ROUNDING_STEP: np.array(0, np.float32)}
    (other,) = run_reference(module, INPUTS, seeded).outputs.values()
    assert not np.array_equal(other, runs[0])


def test_run_2_to_the_24_draws_other_words_than_run_0(tmp_path: Path):
    path = tmp_path / "m.mlir"
    text = ADDS.replace("4x", "64x")
    path.write_text(f"builtin.module {{ {text} }}")
    exe = compile_model(path, "tiny:2", rounding="stochastic", cache=False)
    first = {ROUNDING_SEED: np.array(7, np.float32), ROUNDING_STEP: np.array(0, np.float32)}
    last = {**first, ROUNDING_STEP: np.array(LAST_RUN, np.float32)}
    run: Callable[..., Run]
    for run, module in ((run_reference, rounded(text)), (run_tile, exe.module_at("tile"))):
        found, state = [run(module, INPUTS, first)], last
        for _ in range(3):
            found.append(run(module, INPUTS, state))
            state = found[-1].state
        assert len({each.outputs["out0"].tobytes() for each in found}) == 4
        assert (state[ROUNDING_STEP], state[ROUNDING_SEED]) == (2, 7 + NEXT_SEED)


def test_keys_tell_operations_apart():
    text = """
    func.func @main(%x: tensor<64xf16>, %y: tensor<64xf16>) -> (tensor<64xf16>, tensor<64xf16>) {
      %0 = nn.add %x, %y : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
      %1 = nn.add %x, %y : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
      func.return %0, %1 : tensor<64xf16>, tensor<64xf16>
    }"""
    first, second = run_reference(rounded(text), INPUTS).outputs.values()
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("target", ["tiny:1", "tiny:7,workers=3", "mk2:16"])
def test_bits_are_the_same_under_every_plan_at_every_planned_level(tmp_path: Path, target: str):
    path = tmp_path / "m.mlir"
    path.write_text(f"builtin.module {{ {MODEL} }}")
    # Products and sums of these are exact in float32, whatever their order is.
    rng = np.random.default_rng(0)
    inputs = {
        "arg0": rng.integers(-8, 8, (8, 12)).astype(np.float16),
        "arg1": rng.integers(-8, 8, (12, 10)).astype(np.float16),
    }
    exe = compile_model(path, target, rounding="stochastic", cache=False)
    product = inputs["arg0"].astype(np.float64) @ inputs["arg1"].astype(np.float64)
    exact = np.maximum(product, 0) * 0.33203125
    for level in ("partition", "tile", "exchange"):
        (found,) = exe.run(inputs, at=level).values()
        assert (exact.astype(np.float16) != found).any()
        np.testing.assert_array_equal(found, EXPECTED.setdefault("bits", found))
        exe.reset()


MODEL = """
func.func @main(%x: tensor<8x12xf16>, %y: tensor<12x10xf16>) -> tensor<8x10xf16> {
  %0 = nn.matmul %x, %y : (tensor<8x12xf16>, tensor<12x10xf16>) -> tensor<8x10xf16>
  %1 = nn.relu %0 : (tensor<8x10xf16>) -> tensor<8x10xf16>
  %2 = nn.scale %1 by 0.33203125 : (tensor<8x10xf16>) -> tensor<8x10xf16>
  func.return %2 : tensor<8x10xf16>
}"""
EXPECTED: dict[str, np.ndarray] = {}


def test_values_that_are_computed_again_are_rounded_alike(tmp_path: Path):
    path = tmp_path / "m.mlir"
    kind = "tensor<64xf16>"
    lines = [
        f"%0 = nn.scale %x by 1.1 : ({kind}) -> {kind}",
        f"%1 = nn.tanh %0 : ({kind}) -> {kind}",
    ]
    lines += [
        f"%{i} = nn.sort %{i - 1} axis 0 : ({kind}) -> {kind}"
        if i % 2
        else f"%{i} = nn.exp %{i - 1} : ({kind}) -> {kind}"
        for i in range(2, 9)
    ]
    text = "\n".join(
        (*lines, f"%9 = nn.mul %0, %8 : ({kind}, {kind}) -> {kind}", f"func.return %9 : {kind}")
    )
    path.write_text(f"builtin.module {{ func.func @main(%x: {kind}) -> {kind} {{ {text} }} }}")
    inputs = {"arg0": np.linspace(-1, 1, 64).astype(np.float16)}
    found = []
    for again in ("", "recompute,"):
        passes = f"nn,round-stores,{again}partition,tile,exchange"
        exe = compile_model(path, "tiny:2", passes=passes, cache=False)
        found.append(exe.run(inputs)["out0"])
        computed = exe.module_at("partition").walk()
        bodies = [str(op.properties["body"]) for op in computed if "body" in op.properties]
        assert "stochastic" in bodies[0]
        # The first body is that of the value that is computed again.
        copies = sum(each == bodies[0] for each in bodies)
        assert copies > 1 if again else copies == 1
    np.testing.assert_array_equal(*found)


def test_operations_of_one_shape_share_their_places():
    module = rounded(CALLS)
    kinds = Counter(type(op) for op in module.walk())
    assert kinds[nn.IotaOp] == 2


def test_updates_of_less_than_half_a_step_are_lost_only_to_nearest(tmp_path: Path):
    """A weight of 1, to which 2^-13 is added 4,096 times, in float16 with steps of 2^-10."""
    count, kind = 64, "tensor<64xf16>"
    path = tmp_path / "m.mlir"
    path.write_text(f"""
    builtin.module {{ func.func @main(%w: {kind}, %g: {kind}) -> {kind} {{
      %0 = control.repeat 4096 (%w) : ({kind}) -> ({kind}) {{
      ^bb0(%a: {kind}):
        %1 = nn.add %a, %g : ({kind}, {kind}) -> {kind}
        control.yield %1 : {kind}
      }}
      func.return %0 : {kind}
    }} }}""")
    inputs = {
        "arg0": np.ones(count, np.float16),
        "arg1": np.full(count, 2.0**-13, np.float16),
    }
    nearest, stochastic = (
        compile_model(path, "tiny:2", rounding=each, cache=False).run(inputs)["out0"]
        for each in ("nearest", "stochastic")
    )
    np.testing.assert_array_equal(nearest, inputs["arg0"])
    # Each update is a whole step with a probability of 1 / 8.
    deviation = np.sqrt(4096 * 7 / 64) * 2.0**-10
    mean = stochastic.astype(np.float64).mean()
    assert abs(mean - 1.5) <= 4 * deviation / np.sqrt(count)
    assert stochastic.astype(np.float64).std() == pytest.approx(deviation, rel=0.4)


@pytest.mark.parametrize("target", ["tiny:1", "tiny:5"])
def test_steps_of_training_have_the_same_bits_one_by_one_and_in_one_run(
    tmp_path: Path, target: str
):
    path = tmp_path / "m.mlir"
    path.write_text(PRODUCT)
    one, several = (
        compile_model(
            path,
            target,
            precision="pure-float16",
            rounding="stochastic",
            train=Training(learning_rate=0.01, steps=steps),
            cache=False,
        )
        for steps in (1, 3)
    )
    rng = np.random.default_rng(0)
    x = rng.integers(-8, 8, (3, 4, 3)).astype(np.float32)
    labels = rng.integers(0, 2, (3, 4), np.int32)
    for inputs, target_ in zip(x, labels, strict=True):
        one.run({"x": inputs, "target": target_})
    several.run({"x": x, "target": labels})
    assert one.states.keys() == several.states.keys()
    for name, array in one.states.items():
        assert array.tobytes() == several.states[name].tobytes()
        want = EXPECTED.setdefault(name, array)
        assert array.tobytes() == want.tobytes()


def test_a_cast_to_8_bits_rounds_stochastically_between_its_two_neighbours():
    text = """
    func.func @main(%x: tensor<4096xf16>) -> tensor<4096xf8E4M3FNUZ> {
      %0 = nn.cast %x : (tensor<4096xf16>) -> tensor<4096xf8E4M3FNUZ>
      func.return %0 : tensor<4096xf8E4M3FNUZ>
    }"""
    module = rounded(text)
    assert len(roundings(module)) == 1
    # 1.0625 lies in the middle of 1 and 1.125.
    values = {"arg0": np.full(4096, 1.0625, np.float16)}
    got = run_reference(module, values).outputs["out0"].astype(np.float64)
    assert set(got) == {1.0, 1.125}
    assert abs((got == 1).mean() - 0.5) < 4 * 0.5 / 64
    assert not roundings(rounded(text, "rounding=nearest overflow=clip"))


def test_a_stochastic_cast_to_8_bits_counts_its_places_and_stores_no_table(tmp_path: Path):
    text = """
    func.func @main(%x: tensor<64x32xf32>) -> tensor<64x32xf8E4M3FNUZ> {
      %0 = nn.cast %x : (tensor<64x32xf32>) -> tensor<64x32xf8E4M3FNUZ>
      func.return %0 : tensor<64x32xf8E4M3FNUZ>
    }"""
    file = tmp_path / "cast.mlir"
    _ = file.write_text(text)
    plain, rounding = (
        compile_model(file, target="c600:4", rounding=each) for each in (None, "stochastic")
    )
    assert rounding.profile["compute_cycles"] == plain.profile["compute_cycles"]
