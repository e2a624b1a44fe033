import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from abele.backends.reference import run_reference
from abele.dialects.levels import NN
from abele.ir.errors import InputError
from abele.ir.phases import UPDATE, Phases
from abele.ir.text import parse_module
from abele.ir.verify import verify
from abele.passes.gradients.loss_scale import EDGE, LARGE, LIMITS, STATE
from abele.passes.narrow_floats import NarrowFloats
from abele.passes.train import Train
from abele.tools.driver.context import new_context

RNG = np.random.default_rng(3)
W = RNG.normal(size=(3, 2)).astype(np.float32)
X = RNG.normal(size=(4, 3)).astype(np.float32)
T = np.array([1, 0, 0, 1], np.int32)


def training(w: np.ndarray = W, narrow: bool = False, **options) -> ModuleOp:
    context = new_context()
    rows, columns = w.shape
    kind = f"tensor<4x{columns}xf32>"
    module = parse_module(
        f"""
    nn.state @w : tensor<{rows}x{columns}xf32> = <"{context.blobs.add(w).digest}">
    func.func @main(%x: tensor<4x{rows}xf32>) -> {kind} attributes {{arg_names = ["x"]}} {{
      %w = nn.load @w : tensor<{rows}x{columns}xf32> loc("w")
      %0 = nn.matmul %x, %w : (tensor<4x{rows}xf32>, tensor<{rows}x{columns}xf32>) -> {kind}
      func.return %0 : {kind}
    }}""",
        context,
    )
    Train(**options).apply(context, module)
    if narrow:
        NarrowFloats().apply(context, module)
    verify(module, NN)
    return module


def steps(module: ModuleOp, inputs: dict[str, np.ndarray], count: int) -> list[dict]:
    states: dict[str, np.ndarray] = {}
    made = []
    for _ in range(count):
        states = run_reference(module, inputs, states).state
        made.append(states)
    return made


@pytest.mark.parametrize("options", [{}, {"optimizer": "adam"}, {"clip_norm": 0.1}])
@pytest.mark.parametrize("scale", [2.0**-4, 128.0, 1024.0])
def test_a_scale_changes_no_bit_of_what_float32_holds(scale: float, options: dict):
    inputs = {"x": X, "target": T}
    plain = steps(training(**options), inputs, 3)[-1]
    scaled = steps(training(loss_scale=scale, **options), inputs, 3)[-1]
    assert scaled.keys() == plain.keys()
    for name, array in plain.items():
        assert scaled[name].tobytes() == array.tobytes()


def test_a_scale_keeps_gradients_that_float16_would_lose():
    # Each sample is right with a probability of 1 - exp(-15).
    inputs = {"x": np.full((4, 3), 0.05, np.float32), "target": np.ones(4, np.int32)}
    w = np.array([[-50.0, 50.0]] * 3, np.float32)
    for scale, is_lost in ((1.0, True), (4096.0, False)):
        module = training(w, narrow=True, loss_scale=scale, learning_rate=1e3)
        (after,) = steps(module, inputs, 1)
        assert np.array_equal(after["w"], w) == is_lost


def test_an_automatic_scale_doubles_until_a_gradient_is_large_and_then_never_rests():
    # The gradient of the mean of (w x - t)^2 is 2 x (w x - t) / 4 times four samples.
    w = np.array([[1.0]], np.float32)
    x, target = np.full((4, 1), 8.0, np.float32), np.full((4, 1), -8.0, np.float32)
    module = training(w, loss="mean_square", loss_scale=4.0, scaling="automatic", learning_rate=0.0)
    after = steps(module, {"x": x, "target": target}, 8)
    found = [float(each[STATE]) for each in after]
    scale, expected, large = 4.0, [], []
    for _ in range(8):
        gradient = 2 * 8.0 * 16.0 * scale
        large.append(float(gradient >= EDGE))
        scale = scale / 2 if gradient >= EDGE else scale * 2
        expected.append(scale)
    assert found == expected
    assert [float(each[LARGE]) for each in after] == large
    assert found[-2:] in ([16.0, 32.0], [32.0, 16.0])


def test_an_automatic_scale_halves_if_a_gradient_is_no_number():
    x = np.full((4, 3), np.inf, np.float32)
    module = training(loss_scale=8.0, scaling="automatic")
    (after,) = steps(module, {"x": x, "target": T}, 1)
    assert after[STATE] == 4.0


def test_an_automatic_scale_stays_where_float16_holds_the_gradient_of_the_loss():
    module = training(loss_scale=LIMITS[1], scaling="automatic", narrow=True)
    found = [float(each[STATE]) for each in steps(module, {"x": X * 0, "target": T}, 2)]
    assert found == [LIMITS[1]] * 2


def test_an_automatic_scale_gives_the_bits_of_no_scale():
    inputs = {"x": X, "target": T}
    plain = steps(training(), inputs, 4)[-1]
    scaled = steps(training(scaling="automatic"), inputs, 4)[-1]
    assert (scaled.pop(STATE), scaled.pop(LARGE)) == (16.0, 0.0)
    assert scaled["w"].tobytes() == plain["w"].tobytes()


def test_the_scale_is_taken_off_in_the_update():
    module = training(loss_scale=128.0)
    phases = Phases.of(module)
    (taken,) = [op for op in module.walk() if op.properties.get("factor") is not None][-2:-1]
    assert phases.phase(taken) == UPDATE


@pytest.mark.parametrize("scale", [0.0, -2.0, 3.0, float("inf"), float("nan")])
def test_a_scale_is_a_power_of_two(scale: float):
    with pytest.raises(InputError, match=r"loss_scale .*; need a power of two, such as 128"):
        training(loss_scale=scale)


def test_a_scale_is_a_number_of_float16():
    with pytest.raises(InputError, match="loss_scale 65536, static; need at most 32768"):
        training(loss_scale=65536.0)


def test_an_automatic_scale_begins_within_its_limits():
    with pytest.raises(InputError, match=r"loss_scale 0.5, automatic; need 1 to 32768"):
        training(loss_scale=0.5, scaling="automatic")
    with pytest.raises(InputError, match="scaling 'often'; need static, automatic or unit"):
        training(scaling="often")
