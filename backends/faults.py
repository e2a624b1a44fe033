"""What a run raises when the program is at fault."""

from __future__ import annotations


class IterationLimit(RuntimeError):
    """A while loop did not end. The message names it and the limit."""


class MachineFault(Exception):
    """A program does what the machine cannot, or must not.

    superstep, op, variable: names. tile, addresses: the first tile concerned, and the range of its
    bytes, end excluded. node: the framework's node, if it is known.
    """

    def __init__(
        self,
        message: str,
        *,
        superstep: str | None = None,
        op: str | None = None,
        variable: str | None = None,
        tile: int | None = None,
        addresses: tuple[int, int] | None = None,
        node: str | None = None,
    ) -> None:
        super().__init__(message)
        self.superstep = superstep
        self.op = op
        self.variable = variable
        self.tile = tile
        self.addresses = addresses
        self.node = node
