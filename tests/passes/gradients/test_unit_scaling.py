"""Unit scaling: powers of two of gradients, which each update divides by."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import log2
from random import Random

import numpy as np
import pytest
from lengths import lengths
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from abele.backends.faults import IndexFault
from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.levels import NN
from abele.ir.errors import InputError
from abele.ir.phases import BACKWARD, UPDATE, Phases
from abele.ir.provenance import origin
from abele.ir.text import parse_module
from abele.ir.verify import verify
from abele.passes.gradients.unit_scaling import MOST, first_exponent
from abele.passes.narrow_floats import NarrowFloats
from abele.passes.train import Train
from abele.tools.driver.context import new_context
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.generators.training import as_step, is_step

Arrays = dict[str, np.ndarray]

RNG = np.random.default_rng(5)
SIZES = (16, 256, 8, 128, 32)
"""The sizes of the layers, which grow and shrink by turns."""
BATCH = 64

PROGRAMS = 40
NARROW = re.compile("x(b?f16|f8)")
F32 = 0
"""The number of float32 in a sketch."""

X = RNG.normal(size=(BATCH, SIZES[0])).astype(np.float32)
LABELS = RNG.integers(0, SIZES[-1], BATCH).astype(np.int32)


def layers(middle: str = "%a{0} = nn.tanh %p{0} : ({1}) -> {1}") -> tuple[str, Arrays]:
    """Layers with weights that keep the size of values, and a bias for each."""
    states: Arrays = {}
    lines, tops, value = list[str](), list[str](), "%x"
    for i, (n, m) in enumerate(pairwise(SIZES)):
        kinds = f"tensor<{BATCH}x{n}xf32>", f"tensor<{n}x{m}xf32>", f"tensor<{BATCH}x{m}xf32>"
        states[f"w{i}"] = (RNG.normal(size=(n, m)) / np.sqrt(n)).astype(np.float32)
        states[f"b{i}"] = np.zeros(m, np.float32)
        for name, kind in ((f"w{i}", kinds[1]), (f"b{i}", f"tensor<{m}xf32>")):
            tops.append(f'nn.state @{name} : {kind} = <"{{{name}}}">')
            lines.append(f"%{name} = nn.load @{name} : {kind}")
        lines += [
            f"%m{i} = nn.matmul {value}, %w{i} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}",
            f"%p{i} = nn.add %m{i}, %b{i} : ({kinds[2]}, tensor<{m}xf32>) -> {kinds[2]}",
            middle.format(
                *(i, kinds[2], f"tensor<{BATCH}x1xf32>"),
                *(f"tensor<{m}x{BATCH}xf32>", f"tensor<{BATCH}x{BATCH}xf32>"),
            ),
        ]
        value = f"%a{i}"
    value = f"%p{len(SIZES) - 2}"
    end = f"tensor<{BATCH}x{SIZES[-1]}xf32>"
    text = (
        "\n".join(tops)
        + f"\nfunc.func @main(%x: tensor<{BATCH}x{SIZES[0]}xf32>) -> {end}"
        + ' attributes {arg_names = ["x"]} {\n'
        + "\n".join(lines)
        + f"\nfunc.return {value} : {end}\n}}"
    )
    return text, states


def training(program: tuple[str, Arrays], narrow: bool = False, **options) -> ModuleOp:
    text, states = program
    context = new_context()
    for name, array in states.items():
        text = text.replace(f"{{{name}}}", context.blobs.add(array).digest)
    module = parse_module(text, context)
    Train(**options).apply(context, module)
    if narrow:
        NarrowFloats().apply(context, module)
    verify(module, NN)
    return module


def factor_of(op: nn.ScaleOp) -> float:
    (factor,) = op.parameters
    return factor


def same_bits(first: Arrays, second: Arrays) -> bool:
    return first.keys() == second.keys() and all(
        first[name].tobytes() == array.tobytes() for name, array in second.items()
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimizer": "adam", "clip_norm": 0.1},
        {"ignore_index": 3, "label_smoothing": 0.25},
        {"reduction": "none"},
        {"micro_batches": 2},
        {"steps": 2},
    ],
    ids=str,
)
def test_weights_are_those_of_plain_training_to_the_bit(options: dict):
    program = layers()
    count = options.get("micro_batches", 1) * options.get("steps", 1)
    inputs = {"x": np.tile(X, (count, 1)), "target": np.tile(LABELS, count)}
    if "steps" in options:
        inputs = {n: a.reshape(count, -1, *a.shape[1:]) for n, a in inputs.items()}
    plain, unit = (
        run_reference(training(program, scaling=each, **options), inputs)
        for each in ("static", "unit")
    )
    assert not same_bits(plain.state, program[1])
    assert same_bits(plain.state, unit.state)
    assert same_bits(plain.outputs, unit.outputs)


@pytest.mark.parametrize("examples", lengths(15, 40))
def test_any_program_trains_to_the_same_bits(examples: int):
    scaled = 0
    for number in range(examples):
        sketch = replace(random_sketch(Random(f"unit {number}")), data="normal", element=F32)
        program = build(sketch, default_operators())
        plain, unit = (as_step(program, number, "normal", each) for each in ("static", "unit"))
        if not is_step(unit.module) or NARROW.search(unit.text):
            continue
        try:
            with np.errstate(all="ignore"):
                before, after = (run_reference(each.module, each.inputs) for each in (plain, unit))
        except IndexFault:
            continue
        # Where numbers leave the range of their type, a scaled one may not.
        states = [array.astype(np.float64) for array in before.state.values()]
        if not all(np.abs(array).max(initial=0) < 2.0**60 for array in states):
            continue
        scaled += plain.text != unit.text
        for name, array in before.state.items():
            np.testing.assert_array_equal(after.state[name], array, f"{number}: {name}")
    assert scaled > examples / 13


def sizes(module: ModuleOp, kind: type[Operation], *, rows: bool = True) -> list[float]:
    """The root mean squares of what the operations of one class pass back, except the loss.

    Args:
        rows: also of values with one element for each row.
    """
    phases, found = Phases.of(module), list[float]()

    def observe(op: Operation, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]):
        if not isinstance(op, kind) or "loss" in str(origin(op)):
            return
        if phases.phase(op) == BACKWARD and (rows or results[0].shape[-1:] != (1,)):
            found.append(float(np.sqrt(np.mean(np.square(results[0])))))

    run_reference(module, {"x": X, "target": LABELS}, observe=observe)
    return found


def test_gradients_are_of_size_1_where_those_of_plain_training_are_small():
    plain = sizes(training(layers()), nn.MatMulOp)
    assert len(plain) == 2 * (len(SIZES) - 1) - 1
    assert max(plain) < 0.02
    unit = sizes(training(layers(), scaling="unit"), nn.ScaleOp)
    # The gradients of weights, of biases, and of values between the layers.
    assert len(unit) == 3 * (len(SIZES) - 1) - 1
    assert 0.4 < min(unit) <= max(unit) < 2


NORMALISED = (
    '%n{0}, %v{0} = nn.summarize "moments" %p{0} axes [1] keep_dims : ({1}) -> ({2}, {2})',
    "%c{0} = nn.sub %p{0}, %n{0} : ({1}, {2}) -> {1}",
    "%e{0} = nn.shift %v{0} by 1.0e-5 : ({2}) -> {2}",
    "%s{0} = nn.sqrt %e{0} : ({2}) -> {2}",
    "%r{0} = nn.reciprocal %s{0} : ({2}) -> {2}",
    "%a{0} = nn.mul %c{0}, %r{0} : ({1}, {2}) -> {1}",
)
ATTENDED = (
    "%t{0} = nn.transpose %p{0} [1, 0] : ({1}) -> {3}",
    "%d{0} = nn.matmul %p{0}, %t{0} : ({1}, {3}) -> {4}",
    "%e{0} = nn.scale %d{0} by 0.05 : ({4}) -> {4}",
    "%s{0} = nn.softmax %e{0} axis 1 : ({4}) -> {4}",
    "%c{0} = nn.matmul %s{0}, %p{0} : ({4}, {1}) -> {1}",
    "%a{0} = nn.add %p{0}, %c{0} : ({1}, {1}) -> {1}",
)


@pytest.mark.parametrize("middle", [NORMALISED, ATTENDED], ids=["normalised", "attended"])
def test_gradients_of_many_readers_stay_near_size_1(middle: Sequence[str]):
    module = training(layers("\n".join(middle)), scaling="unit")
    # That of the factor of a row is 0: the next layer is normalised as well.
    found = [log2(size) for size in sizes(module, nn.ScaleOp, rows=False)]
    assert -5 < min(found) <= max(found) < 8


def test_gradients_that_float16_loses_are_kept():
    # The gradients of the first weights are below half of the smallest float16 number, 2^-24.
    small = {"x": X * 2.0**-22, "target": LABELS}
    for scaling, is_lost in (("static", True), ("unit", False)):
        text, states = layers()
        module = training((text, states), narrow=True, scaling=scaling, learning_rate=1e3)
        after = run_reference(module, small).state
        assert np.array_equal(after["w0"], states["w0"]) == is_lost


@pytest.mark.parametrize(
    ("classes", "positions", "exponent"),
    [(1, 1, 0), (2, 1, 1), (10, 1, 2), (1000, 1, 5), (1000, 64, 11), (1000, 1 << 30, 15)],
)
def test_a_step_begins_with_the_inverse_of_the_size_of_the_gradient_of_its_loss(
    classes: int, positions: int, exponent: int
):
    assert first_exponent(classes, positions) == exponent


def test_readers_of_one_value_pass_back_gradients_with_one_factor():
    # The mean of a row is subtracted from it: its gradient has a factor of its own.
    lines = (
        '%r{0} = nn.reduce "sum" %p{0} axes [1] keep_dims : ({1}) -> {2}',
        "%s{0} = nn.scale %r{0} by 0.001 : ({2}) -> {2}",
        "%a{0} = nn.sub %p{0}, %s{0} : ({1}, {2}) -> {1}",
    )
    program = layers("\n".join(lines))
    inputs = {"x": X, "target": LABELS}
    plain, unit = (
        run_reference(training(program, scaling=each), inputs) for each in ("static", "unit")
    )
    assert same_bits(plain.state, unit.state)


def test_a_loss_scale_besides_is_refused():
    with pytest.raises(InputError, match=r"loss_scale 128, unit; need none: unit scaling chooses"):
        training(layers(), scaling="unit", loss_scale=128.0)


def test_each_update_divides_in_its_own_phase():
    module = training(layers(), scaling="unit")
    phases = Phases.of(module)
    factors = {
        factor_of(op)
        for op in module.walk()
        if isinstance(op, nn.ScaleOp) and phases.phase(op) == UPDATE
    }
    # One divisor for each weight, beside the learning rate.
    assert all(np.frexp(each)[0] == 0.5 for each in factors - {0.01})
    assert len(factors) > 2


@pytest.mark.parametrize("factor", ["1.0e-30", "1.0e+30", "0.0", "0x7FF0000000000000"])
def test_factors_that_no_float32_could_make_up_for_are_left_as_they_are(factor: str):
    middle = (
        "%s{0} = nn.scale %p{0} by "
        + factor
        + " : ({1}) -> {1}\n%a{0} = nn.tanh %s{0} : ({1}) -> {1}"
    )
    module = training(layers(middle), scaling="unit")
    factors = [factor_of(op) for op in module.walk() if isinstance(op, nn.ScaleOp)]
    powers = [abs(np.log2(each)) for each in factors if each > 0 and np.frexp(each)[0] == 0.5]
    assert max(powers) <= 2 * MOST
