"""A solver of Caffe trains as its formulas say: rates, decays and momentum of each weight."""

from pathlib import Path

import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.ir.well_known import ASKED, SCHEDULE
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.importers.caffe.reader import read_caffe
from abele.tools.importers.front_end import Reading

NET = """
layer {
  name: "data" type: "Data" top: "x" top: "label"
  transform_param { crop_size: 2 force_gray: true } data_param { batch_size: 6 }
}
layer {
  name: "fc" type: "InnerProduct" bottom: "x" top: "fc"
  param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  inner_product_param { num_output: 3 weight_filler { type: "xavier" }
    bias_filler { type: "constant" value: 0.5 } }
}
layer { name: "acc" type: "Accuracy" bottom: "fc" bottom: "label" top: "acc"
        include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss"
        loss_weight: 0.5 }
"""

SOLVER = """
net: "models/small/net.prototxt"
base_lr: 0.5 lr_policy: "step" gamma: 0.25 stepsize: 2
momentum: 0.875 weight_decay: 0.125 max_iter: 100 display: 20 test_iter: 10 test_interval: 100
snapshot_prefix: "models/small/snap" solver_mode: GPU
"""

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((6, 1, 2, 2)).astype(np.float32)
LABEL = np.array([0, 1, 2, 2, 1, 0], np.int32)


def solver(folder: Path, text: str = SOLVER, net: str = NET) -> Path:
    (folder / "net.prototxt").write_text(net)
    path = folder / "solver.prototxt"
    path.write_text(text)
    return path


def gradients(w: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Half the mean loss of softmax, and its gradients."""
    x = X.reshape(6, 4).astype(np.float64)
    scores = x @ w.T + b
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(6), LABEL]).mean() / 2
    p[np.arange(6), LABEL] -= 1
    return loss, p.T @ x / 12, p.sum(0) / 12


@pytest.mark.parametrize("type_", ["SGD", "Nesterov", "AdaGrad", "AdaDelta"])
def test_steps_are_those_of_caffe(tmp_path: Path, type_: str):
    text = SOLVER.replace("momentum: 0.875", "") if type_ == "AdaGrad" else SOLVER
    exe = compile_model(solver(tmp_path, text + f'type: "{type_}"'), "tiny:4", cache=False)
    w, b = (exe.states[f"fc.{part}"].astype(np.float64) for part in ("weight", "bias"))
    assert (b == 0.5).all()
    kept = [np.zeros_like(w), np.zeros_like(b)]
    moved = [np.zeros_like(w), np.zeros_like(b)]
    for rate in (0.5, 0.5, 0.125):
        loss, *slopes = gradients(w, b)
        slopes[0] = slopes[0] + 0.125 * w
        steps = []
        for i, (slope, factor) in enumerate(zip(slopes, (1.0, 2.0), strict=True)):
            if type_ == "AdaGrad":
                kept[i] = kept[i] + slope**2
                steps.append(factor * rate * slope / (np.sqrt(kept[i]) + 1e-8))
                continue
            if type_ == "AdaDelta":
                kept[i] = 0.875 * kept[i] + 0.125 * slope**2
                step = slope * np.sqrt((moved[i] + 1e-8) / (kept[i] + 1e-8))
                moved[i] = 0.875 * moved[i] + 0.125 * step**2
                steps.append(factor * rate * step)
                continue
            old = kept[i]
            kept[i] = 0.875 * old + factor * rate * slope
            steps.append(1.875 * kept[i] - 0.875 * old if type_ == "Nesterov" else kept[i])
        w, b = w - steps[0], b - steps[1]
        given = {"x": X, "label": LABEL, "learning_rate": np.float32(rate)}
        found = exe.run(given)
        np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
        np.testing.assert_allclose(exe.states["fc.weight"], w, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(exe.states["fc.bias"], b, rtol=1e-4, atol=1e-6)


def asked(path: Path) -> tuple[str, str]:
    """What the module of a solver asks for: options of training, and a schedule."""
    module = read_caffe(path, Reading(new_context(), str(path)))
    found = [module.attributes.get(each) for each in (ASKED, SCHEDULE)]
    return tuple("" if each is None else each.data for each in found)  # pyright: ignore


@pytest.mark.parametrize(
    ("policy", "schedule"),
    [
        ('lr_policy: "fixed"', ""),
        ('lr_policy: "step" gamma: 0.1 stepsize: 30', "step:30:0.1"),
        ('lr_policy: "exp" gamma: 0.9', "exp:0.9"),
        ('lr_policy: "inv" gamma: 0.0001 power: 0.75', "inv:0.0001:0.75"),
        ('lr_policy: "multistep" gamma: 0.5 stepvalue: [3, 7]', "multistep:0.5:3:7"),
        ('lr_policy: "poly" power: 0.5 max_iter: 90', "poly:0.5:90"),
        ('lr_policy: "sigmoid" gamma: -0.1 stepsize: 50', "sigmoid:-0.1:50"),
        ('lr_policy: "fixed" gamma: -0.1 power: -1', ""),
    ],
)
def test_the_policy_of_a_solver_is_a_schedule(tmp_path: Path, policy: str, schedule: str):
    options, found = asked(solver(tmp_path, f'net: "net.prototxt" base_lr: 0.1 {policy}'))
    assert found == schedule
    assert ("schedule=true" in options) == bool(schedule)


def test_the_numbers_of_a_solver_are_those_of_an_optimizer(tmp_path: Path):
    text = 'net: "net.prototxt" base_lr: 0.1 iter_size: 4 clip_gradients: 35 '
    options, _ = asked(solver(tmp_path, text + 'type: "Adam" momentum: 0.8 momentum2: 0.99'))
    assert options == (
        "loss=given optimizer=adam learning-rate=0.1 epsilon=1e-08 beta1=0.8 beta2=0.99 "
        "micro-batches=4 clip-norm=35.0"
    )
    options, _ = asked(solver(tmp_path, text + "solver_type: RMSPROP rms_decay: 0.5"))
    assert "optimizer=rmsprop learning-rate=0.1 epsilon=1e-08 alpha=0.5" in options
    options, _ = asked(solver(tmp_path, 'net: "net.prototxt" base_lr: 0.1 type: "Nesterov"'))
    assert options == "loss=given optimizer=sgd learning-rate=0.1 momentum=0.0"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('type: "AdaMax"', r"solver\.prototxt: line 1: type: is 'AdaMax'; need one of SGD"),
        ('regularization_type: "L1"', "line 1: regularization_type: need L2"),
        ('lr_policy: "step"', "line 1: stepsize: missing"),
        ('lr_policy: "wave"', "lr_policy: is 'wave'; need one of fixed, step"),
        ("base_rl: 1", r"no field 'base_rl'; did you mean base_lr"),
        ('train_net: "net.prototxt"', "net, train_net says what is trained; need one of"),
        ("\nmomentum: 1", "line 2: momentum: momentum 1; need 0 or more, and less than 1"),
        ("\n\nweight_decay: -1", "line 3: weight_decay: weight_decay -1; need 0 or more"),
        ('type: "Adam"\nmomentum2: 1.5', "line 2: momentum2: beta2 1.5; need 0 or more"),
        ('type: "Adam" delta: -1', "line 1: delta: epsilon -1; need 0 or more"),
        ('lr_policy: "exp"\ngamma: -0.5', "line 2: gamma: is -0.5; need 0 or more"),
        ('lr_policy: "inv"\npower: -2', "line 2: power: is -2; need 0 or more"),
    ],
)
def test_a_solver_that_abele_does_not_follow_is_refused(tmp_path: Path, more: str, message: str):
    with pytest.raises(InputError, match=message):
        asked(solver(tmp_path, f'net: "net.prototxt" base_lr: 0.1 {more}'))


def test_a_network_without_a_loss_is_refused(tmp_path: Path):
    net = NET[: NET.index('layer { name: "loss"')]
    with pytest.raises(InputError, match="the network has no layer with a loss"):
        asked(solver(tmp_path, net=net))
