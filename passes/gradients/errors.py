"""Errors for operations that cannot be differentiated."""

from __future__ import annotations

from xdsl.ir import Operation

from ...ir.provenance import place
from ...ir.support.errors import InputError


class NoGradient(Exception):
    """A rule cannot differentiate an operation. The message is a predicate, without its subject."""


def no_gradient(op: Operation, why: str) -> InputError:
    """The error for an operation without a gradient between the loss and a wanted value."""
    return InputError(
        f"{op.name} at {place(op)} {why}, and it lies between the loss and what is trained; "
        "train only what comes after it, or replace it by operations that have a gradient"
    )
