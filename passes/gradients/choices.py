"""The names of losses and optimizers, and the default ones.

They are in a file of their own because commands name them as options, and most commands train
nothing.
"""

from __future__ import annotations

LOSS_NAMES = (
    "softmax_cross_entropy",
    "nll",
    "binary_cross_entropy",
    "mean_square",
    "mean_absolute",
    "huber",
    "ctc",
    "given",
)
"""The losses, in the order of LOSSES."""

OPTIMIZER_NAMES = (
    "sgd",
    "adam",
    "adamw",
    "adamax",
    "lamb",
    "rmsprop",
    "adagrad",
    "adadelta",
    "lars",
)
"""The optimizers, in the order of OPTIMIZERS."""

DEFAULT_LOSS, DEFAULT_OPTIMIZER = LOSS_NAMES[0], OPTIMIZER_NAMES[0]
