"""Valid shapes and parameters of operators that iterate over a sequence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .draw import Draw, Form, Parameter, Shape

ACTIVATIONS: dict[str, tuple[tuple[float, ...], ...]] = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "Affine": ((1.0, 0.5), (0.0, 0.3)),
    "LeakyRelu": ((0.01, 0.3),),
    "ThresholdedRelu": ((1.0, 0.4),),
    "ScaledTanh": ((1.0, 0.7), (1.0, 1.5)),
    "HardSigmoid": ((0.2, 0.3), (0.5, 0.4)),
    "Elu": ((1.0, 0.5),),
    "Softsign": (),
    "Softplus": (),
}
"""The activation functions, and values of the constants that each one takes."""

STATES = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 1)}
"""The gates and the activations of each kind of layer."""


def _activations(draw: Draw, count: int) -> dict[str, Parameter]:
    """Activation functions with their constants."""
    if draw.chance(0.5):
        return {"activations": None, "activation_alpha": None, "activation_beta": None}
    names = [draw.one_of(*ACTIVATIONS) for _ in range(count)]
    given = [[draw.one_of(*values) for values in ACTIVATIONS[name]] for name in names]
    return {
        "activations": names,
        "activation_alpha": [each[0] for each in given if each],
        "activation_beta": [each[1] for each in given if len(each) > 1],
    }


def _lengths(draw: Draw, steps: int, batch: int) -> Parameter:
    return np.array([draw.random.randint(1, steps) for _ in range(batch)], np.int32)


def _recurrent(draw: Draw) -> Form:
    """A recurrent layer of a few units. onnxruntime supports only the layout with steps first."""
    name = draw.schema.name
    steps, batch, features = draw.shape
    if 0 in draw.shape:
        raise ValueError("a sequence without elements")
    if draw.types["T"] == "tensor(double)":
        raise ValueError("onnxruntime computes no layer in float64")
    gates, functions = STATES[name]
    direction = draw.one_of(None, "forward", "reverse", "bidirectional")
    d, h = 2 if direction == "bidirectional" else 1, draw.one_of(1, 2, 3, 5)
    state, linear = (d, batch, h), draw.one_of(None, 0, 1)
    parameters: dict[str, Parameter] = {
        "direction": direction,
        "hidden_size": h,
        "layout": None,
        "sequence_lens": _lengths(draw, steps, batch) if draw.chance(0.3) else None,
        "clip": draw.one_of(None, None, 0.5, 3.0),
        "linear_before_reset": linear,
        "input_forget": draw.one_of(None, None, 0, 1),
        **_activations(draw, functions * d),
    }
    others: list[Shape | None] = [
        (d, gates * h, features),
        (d, gates * h, h),
        (d, 2 * gates * h),
        None,
        state,
        state,
        (d, 3 * h),
    ]
    most = 3 if name == "LSTM" else 2
    return Form(others, parameters, results=draw.random.randint(1, most))


def _reverse_sequence(draw: Draw) -> Form:
    time = draw.one_of(None, 0, 1)
    batch = None if time is None else 1 - time
    steps, count = draw.shape[time or 0], draw.shape[1 if batch is None else batch]
    parameters: dict[str, Parameter] = {"time_axis": time, "batch_axis": batch}
    return Form(parameters={**parameters, "sequence_lens": _lengths(draw, steps, count)})


RECURRENT: dict[str, Callable[[Draw], Form]] = {
    **dict.fromkeys(STATES, _recurrent),
    "ReverseSequence": _reverse_sequence,
}
"""Valid combinations of shapes and parameters of these operators."""

RECURRENT_RANKS = {**dict.fromkeys(STATES, (3, 3)), "ReverseSequence": (2, 5)}
"""The least and the greatest number of axes of their first operand."""
