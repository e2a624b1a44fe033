"""Valid shapes and parameters of scans, sorts, and operators whose result sizes are open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .draw import Draw, Form, Shape


def _scan(draw: Draw) -> Form:
    axis = np.array(draw.signed(draw.random.randrange(draw.rank)))
    return Form(parameters={"axis": axis})


def _top_k(draw: Draw) -> Form:
    axis = draw.random.randrange(draw.rank)
    k = draw.random.randint(0, draw.shape[axis])
    parameters = {"axis": draw.signed(axis), "sorted": draw.one_of(None, 1)}
    if draw.opset < 10:
        if not draw.shape[axis]:
            raise ValueError("the first of no elements")
        return Form(parameters={**parameters, "k": max(k, 1)})
    return Form(parameters={**parameters, "K": np.array([k])})


def _compress(draw: Draw) -> Form:
    """A condition that selects slices along an axis, or single elements. It may be too short."""
    axis = draw.random.randrange(draw.rank)
    whole = draw.chance(0.3)
    length = int(np.prod(draw.shape)) if whole else draw.shape[axis]
    if not length:
        raise ValueError("a condition without elements")
    shorter = draw.random.randint(1, length) if draw.chance(0.3) else length
    return Form([(shorter,)], {"axis": None if whole else draw.signed(axis)})


def _unique(draw: Draw) -> Form:
    if 0 in draw.shape:
        raise ValueError("unique elements of none")
    axis = draw.random.randrange(draw.rank)
    return Form(parameters={"axis": None if draw.chance(0.5) else draw.signed(axis)}, results=4)


def _non_max_suppression(draw: Draw) -> Form:
    batch, count, corners = draw.shape
    if corners != 4:
        raise ValueError("boxes without four numbers")
    most = draw.one_of(0, 1, 2, 10)
    shapes: list[Shape | None] = [(batch, draw.one_of(1, 2, 3), count)]
    parameters = {
        "max_output_boxes_per_class": np.array([most]),
        "iou_threshold": np.array([draw.one_of(0.0, 0.3, 0.5, 1.0)]),
        "score_threshold": draw.one_of(None, np.array([0.2])),
        "center_point_box": draw.one_of(None, 0, 1),
    }
    return Form(shapes, parameters)


def _boxes(draw: Draw) -> Shape:
    return (draw.one_of(1, 2), draw.one_of(1, 2, 5), 4)


SELECTED: dict[str, Callable[[Draw], Form]] = {
    "CumSum": _scan,
    "CumProd": _scan,
    "TopK": _top_k,
    "Compress": _compress,
    "Unique": _unique,
    "NonMaxSuppression": _non_max_suppression,
}
"""Valid combinations of shapes and parameters of these operators."""

SELECTED_RANKS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("CumSum", "CumProd", "TopK", "Compress"), (1, 4)),
    "NonZero": (1, 4),
    "Unique": (1, 3),
    "NonMaxSuppression": (3, 3),
}
"""The least and the greatest number of axes of the first operand of these operators."""

SELECTED_SHAPES: dict[str, Callable[[Draw], Shape]] = {"NonMaxSuppression": _boxes}
"""Shapes for the first operand of those that accept few shapes."""

OPEN_SIZES = frozenset(("NonZero", "Compress", "Unique", "NonMaxSuppression"))
"""Operators whose results have sizes that depend on values. No other node reads these results."""
