"""Programs, and kernels that are wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
from xdsl.ir import Operation

from abele.backends.codelets.calls import Call
from abele.backends.host.fast import FastBinder
from abele.backends.host.fusion import FusedBinder
from abele.backends.host.vertices import BoundVertices
from abele.dialects.steps import Vertices

LOOP = """
nn.state @n : tensor<8x24xf32> = {n}
func.func @main(%x: tensor<8x24xf32>, %w: tensor<24x24xf32>, %p: tensor<i1>) -> tensor<8x24xf32>
    attributes {arg_names = ["x", "w", "p"], result_names = ["y"]} {
  %0 = nn.matmul %x, %w : (tensor<8x24xf32>, tensor<24x24xf32>) -> tensor<8x24xf32> loc("first")
  %1 = control.repeat 3 (%0) : (tensor<8x24xf32>) -> tensor<8x24xf32> {
  ^bb0(%v: tensor<8x24xf32>):
    %t = nn.matmul %v, %w : (tensor<8x24xf32>, tensor<24x24xf32>) -> tensor<8x24xf32> loc("turn")
    %u = nn.scale %t by 0.2 : (tensor<8x24xf32>) -> tensor<8x24xf32> loc("bend")
    control.yield %u : tensor<8x24xf32>
  }
  %2 = control.if %p : tensor<i1> -> (tensor<8x24xf32>) {
    %a = nn.matmul %1, %w : (tensor<8x24xf32>, tensor<24x24xf32>) -> tensor<8x24xf32> loc("then")
    control.yield %a : tensor<8x24xf32>
  } else {
    %b = nn.exp %1 : (tensor<8x24xf32>) -> tensor<8x24xf32> loc("otherwise")
    control.yield %b : tensor<8x24xf32>
  }
  %n = nn.load @n : tensor<8x24xf32>
  %3 = nn.add %n, %2 : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32> loc("count")
  nn.store %3, @n : tensor<8x24xf32>
  func.return %2 : tensor<8x24xf32>
}
"""
"""A program with a loop, a branch and a state."""


@contextmanager
def wrong_kernel(
    variable: str,
    *,
    fused: bool = True,
    watched: bool = False,
    from_call: int = 1,
    byte: int = 0,
    instead: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Make the compiled calls of vertices that write a variable flip a bit of the first element.

    fused: in a plain run, which fuses calls. watched: in a run that writes every byte. from_call:
    the first call that does. byte: of the element; the first one has its least digits, the last one
    its sign. instead: what the calls do instead of flipping a bit.
    """
    fusing, plain = FusedBinder.fused, FastBinder.vertices

    def add(binder: FastBinder, calls: list[Call]) -> None:
        placed = binder.blocks[variable].placed
        at = placed.address + byte
        place = placed.memory[binder.blocks[variable].layout.first_tile, at : at + 1]
        calls.append((flip, ([], place)) if instead is None else (instead, ()))

    def flip(made: list[None], place: np.ndarray) -> None:
        made.append(None)
        if len(made) >= from_call:
            place ^= 1

    def wrong_fused(self: FusedBinder, ops: list[Operation]) -> dict[Operation, list[Call]]:
        found = fusing(self, ops)
        for op, calls in found.items():
            if fused and isinstance(op, Vertices) and variable in op.destinations:
                add(self, calls)
        return found

    def wrong_vertices(
        self: FastBinder, op: Vertices, equal: frozenset[int] | None = None
    ) -> BoundVertices:
        found = plain(self, op, equal or frozenset())
        # A plain run says which operands are equal.
        if watched and equal is None and variable in op.destinations:
            add(self, found.calls)
        return found

    with (
        mock.patch.object(FusedBinder, "fused", wrong_fused),
        mock.patch.object(FastBinder, "vertices", wrong_vertices),
    ):
        yield
