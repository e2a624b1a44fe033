"""Metrics of outputs against targets: accuracy, and the area under the ROC curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Array
from .training import Settings


def accuracy(outputs: Array, targets: Array, settings: Settings) -> float | None:
    """The share of positions where the output is right; None if nothing can be right or wrong.

    For labels, the largest output along axis 1 counts, and ignored positions do not. For binary
    cross-entropy, an output is right if it is on the target's side of a probability of 1/2.
    """
    if settings.classes:
        kept = _kept(targets, settings)
        return _mean((outputs.argmax(1) == targets)[kept])
    if settings.loss != "binary_cross_entropy":
        return None
    # Without a sigmoid in front of it, an output is the logarithm of the odds.
    middle = 0.5 if settings.inside else 0.0
    return _mean((outputs > middle) == (targets > 0.5))


def area_under_curve(outputs: Array, targets: Array, settings: Settings) -> float | None:
    """The area under the ROC curve; None unless each sample is of one of two kinds, and both occur.

    It is the share of pairs of a positive and a negative sample in which the positive one has the
    larger output; equal outputs count half.
    """
    if settings.classes == 2 and outputs.ndim == 2:
        kept = _kept(targets, settings)
        scores = outputs[kept, 1].astype(np.float64) - outputs[kept, 0]
        positive = targets[kept] == 1
    elif settings.loss == "binary_cross_entropy" and outputs.size == len(outputs):
        scores, positive = outputs.ravel().astype(np.float64), targets.ravel() == 1
        if not np.isin(targets, (0, 1)).all():
            return None
    else:
        return None
    count = int(positive.sum())
    pairs = count * (len(positive) - count)
    if not pairs or not np.isfinite(scores).all():
        return None
    _, which, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    # Equal scores share the mean of their ranks.
    ranks = np.cumsum(sizes) - (sizes - 1) / 2
    return float((ranks[which][positive].sum() - count * (count + 1) / 2) / pairs)


def mean_loss(losses: Array, targets: Array, settings: Settings) -> float:
    """The mean of losses, one for each position that counts."""
    kept = _kept(targets, settings) if settings.classes else np.ones(losses.shape, np.bool_)
    found = _mean(losses[kept])
    return 0.0 if found is None else found


def _kept(targets: Array, settings: Settings) -> NDArray[np.bool_]:
    if settings.ignored is None:
        return np.ones(targets.shape, np.bool_)
    return targets != settings.ignored


def _mean(values: Array) -> float | None:
    return float(values.mean(dtype=np.float64)) if values.size else None
