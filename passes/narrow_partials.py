"""The pass that chooses the type in which partial sums are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from xdsl.ir import Operation

from ..dialects.levels import NN
from ..ir.edit import Edit, source_at
from ..ir.provenance import place
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .analysis.partial_sums import (
    Role,
    error_of_halves,
    fits_halves,
    is_narrow,
    read_halves,
    roles,
    write_narrow,
)
from .planner.constrained import asked_for
from .planner.constraints import PARTIALS_KEY, read_constraints
from .plans.fused import FusedGroups, operator_name
from .plans.planned import asked_target

Partials = Literal["keep", "float16", "float32", "auto"]

TOLERANCE = 0.05
"""The largest error that `auto` accepts, in units of the sum of all absolute terms."""


@dataclass(frozen=True)
class NarrowPartials(ModulePass):
    """Keep the partial sums of float16 in float16 (fp16.16) or in float32 (fp16.32).

    nn -> nn, float16 rounds more. It belongs behind the decisions about groups, and before
    round-stores. Units that multiply float16 are twice as fast where they keep partial sums in
    float16, and partial sums take half the bytes, in memory and in the exchange that brings parts
    of a sum together. Each partial sum that is stored is rounded. Sums of numbers, such as those of
    a mean or of pooling, are rounded only where a part of them is stored. They may read a float32
    copy of float16, and then read the float16 instead. Sums of values that are computed in float32,
    such as those of a softmax, stay float32.

    `auto` takes float16 where the sum is stored as float16, and the bound of the error that this
    adds is at most the tolerance, in units of the sum of all absolute terms. This is a decision
    about results, so no plan makes it: it is written on the operations before plans are searched
    for.

        %0 = nn.matmul %x, %w : (tensor<4x64xf16>, ...
        %0 = nn.matmul %x, %w narrow_partials : (tensor<4x64xf16>, ...

    Attributes:
        partials: float16, float32, auto; or keep, which leaves operations as they are.
        forward: the same for the forward part of a step of training; "" for what `partials` says.
        input_gradient: the same for gradients of values.
        weight_gradient: the same for gradients of weights.
        tolerance: the largest error that `auto` accepts.
        constraints: a JSON file of constraints on operators, by the names of their nodes; its
            `partials` of an operator override all others.
        target: as for plan-splits. `auto` asks how many products its units add between two
            roundings.
    """

    name = "narrow-partials"
    takes = NN
    rounds = True
    skips_other_levels = True

    partials: Partials = "float16"
    forward: Literal["", "keep", "float16", "float32", "auto"] = ""
    input_gradient: Literal["", "keep", "float16", "float32", "auto"] = ""
    weight_gradient: Literal["", "keep", "float16", "float32", "auto"] = ""
    tolerance: float | int = TOLERANCE
    constraints: str = ""
    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        if not 0 <= self.tolerance < float("inf"):
            raise InputError(f"tolerance {self.tolerance}; need a number from 0 up")
        of_parts = {
            "forward": self.forward,
            "input_gradient": self.input_gradient,
            "weight_gradient": self.weight_gradient,
        }
        found = roles(op)
        asked = dict(self._constrained(op, found))
        target = asked_target(op, self.target)
        for each, role in found.items():
            choice = asked.get(each) or of_parts[role] or self.partials
            narrow = is_narrow(each)
            if choice != "keep":
                narrow = choice == "float16" or (
                    choice == "auto"
                    and fits_halves(each)
                    and error_of_halves(each, target) <= self.tolerance
                )
            if narrow != is_narrow(each) and may_rewrite():
                with Edit(source_at("choose partial sums", NarrowPartials.apply), each) as edit:
                    write_narrow(each, narrow=narrow)
                    edit.modified(each)
                    if narrow:
                        read_halves(each, edit)

    def _constrained(
        self, module: ModuleOp, found: Mapping[Operation, Role]
    ) -> Iterator[tuple[Operation, str]]:
        """The choice of each operation for which the file has one. A group has that of its root."""
        if not self.constraints:
            return
        constraints = read_constraints(self.constraints)
        names: dict[str, Operation | None] = {}
        with FusedGroups(module) as groups:
            for op, keys in asked_for(PARTIALS_KEY, constraints, module).items():
                name, choice = keys[PARTIALS_KEY]
                root = groups.root(op)
                names.setdefault(name, op)
                if root in found:
                    names[name] = None
                    yield root, cast(str, choice)
            for name, other in names.items():
                if other is not None:
                    where = constraints.json.place("operators", name, PARTIALS_KEY)
                    raise InputError(
                        f"{where}: {operator_name(other)} at {place(other)} sums no float16; leave "
                        "partials out"
                    )
