"""The choice between a second copy of a weight on the tiles and readers that share the weight.

A second copy lies where its own readers want it, so a run moves nothing. Readers that share a
weight copy it from its home in every run, unless their plans read the home itself. Both programs
are planned, and compared as plans are: what fits a tile comes before what does not, and then the
program that takes fewer cycles. If memory is scarce, the first program pays for its copies with
slower plans of all operators, so that the comparison weighs bytes too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...backends.target import Target
from ...ir.upstream import ModuleOp
from ..plans.copies_of_weights import copies_of_weights, in_clone, read_weights
from ..plans.fused import FusedGroups
from .constrained import Planned, plan_program
from .network import NetworkPlan


@dataclass(frozen=True)
class Asked:
    """What plans have to keep to: the arguments of plan_program."""

    constraints: str | os.PathLike[str] = ""
    proportion: float | None = None
    joint: bool = True
    spare: int = 0
    shards: tuple[str, ...] = ()

    def planned(self, module: ModuleOp, target: Target) -> Planned:
        """The plans of a module at nn. Raises what plan_program raises."""
        return plan_program(
            module,
            target,
            self.constraints,
            self.proportion,
            shards=self.shards,
            joint=self.joint,
            spare=self.spare,
        )


def store_once(module: ModuleOp, target: Target, asked: Asked) -> None:
    """Let readers share a weight instead of a copy of it, if the planned program is better so.

    Values stay the same. No plan is written.
    """
    copies = copies_of_weights(module)
    if not copies:
        return
    apart, sharing = module.clone(), module.clone()
    read_weights(in_clone(copies, module, sharing))
    usable = target.usable_bytes_per_tile - asked.spare
    found: list[NetworkPlan] = []
    for program in (sharing, apart):
        with FusedGroups(program):
            found.append(asked.planned(program, target).network)
    shared, copied = (rank(each, usable) for each in found)
    if shared <= copied:
        read_weights(copies)


def rank(network: NetworkPlan, usable: int) -> tuple[int, float]:
    """The sort key of a planned program: bytes beyond what a tile may hold, then cycles."""
    return max(network.bytes_per_tile - usable, 0), network.cycles
