"""Which axes a form only carries along, so that its proof holds for any number of them.

An axis is carried if, in every step of both sides, one parallel dimension is that axis of the
result, and is the same axis, element for element, of each operand that has it. Operands without it
are repeated along it. For each index along such an axis, both sides are then the two sides of the
rule without the axis. So if the two sides are equal without it, they are equal with it, of any
size; and by induction, with any number of such axes, wherever they stand.

If every axis of a form is carried, a proof of the form at one rank is a proof at every rank, for
programs whose further axes are carried too. That they are, abele finds by looking at the rule's
forms: those of every rank it has found must carry all of their axes.
"""

from __future__ import annotations

from .steps import Axis, Points, Step, Steps


def carries_all_axes(steps: Steps) -> bool:
    """Whether both sides carry every axis."""
    return all(map(_carries, steps.steps, [steps] * len(steps.steps)))


def _carries(step: Step, steps: Steps) -> bool:
    if step.kind == "reshaped":
        (source,) = step.operands
        return step.shape == steps.steps[source].shape
    return all(map(_is_pointwise, step.spaces))


def _is_pointwise(points: Points) -> bool:
    """Whether each point writes the element that it reads, of one dimension per axis."""
    written = [_dim(axis) for axis in points.result.axes]
    dims = [d for d in written if d is not None and d >= 0]
    if None in written or len(set(dims)) < len(dims):
        return False
    if any(size.constant != 1 for d, size in enumerate(points.sizes) if d not in dims):
        return False
    if points.coordinates:
        return False
    for view in points.operands:
        read = [_dim(axis) for axis in view.axes]
        order = [dims.index(d) for d in read if d in dims]
        if None in read or order != sorted(set(order)):
            return False
    return True


def _dim(axis: Axis) -> int | None:
    """The dimension that an axis is; -1 if it has one element and none; None for other axes."""
    if axis.divisor != 1 or axis.offset.terms:
        return None
    if not axis.terms:
        return -1
    return axis.terms[0][0] if len(axis.terms) == 1 and axis.terms[0][1] == 1 else None
