"""The decisions on a planned module: its target, and the plan of each operation."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...backends.target import DEFAULT_TARGET, Target, named_target, resolve_target
from ...dialects.abele import Plan, PlanAttr
from ...dialects.placement import Placement
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from .fused import operator_name
from .parts import Part, Parts

TARGET = "abele.target"
"""The module attribute that names the target. Modules have it from partition on."""


ONE_CHIP = "abele.one_chip"
"""The module attribute of plans that use only the first of several chips. Functions without a
placement lie there."""


def target_of(module: ModuleOp) -> Target:
    """The target that a module was planned for. Raises InputError if it names none."""
    spelling = module.attributes.get(TARGET)
    if not isinstance(spelling, StringAttr):
        raise InputError(
            f'the module names no target: run plan-splits first, or add {{{TARGET} = "mk2"}}'
        )
    return named_target(spelling.data)


def parts_of(module: ModuleOp, target: Target) -> Parts:
    """The parts of a target on which the functions of a planned module lie.

    Functions that nobody places lie on all chips, or on the first one if the plans use no other.
    """
    alone = ONE_CHIP in module.attributes
    return Parts(module, target, Part.of(target, Placement(0) if alone else None))


def asked_target(module: ModuleOp, given: str) -> Target:
    """The target of a pass: the one that its option names, else the module's own, else the default.

    Raises InputError.

    Args:
        given: the option, which may name a file, because the user has typed it; a module's
            attribute may not. "" for none.
    """
    if given:
        return resolve_target(given)
    own = module.attributes.get(TARGET)
    return named_target(own.data if isinstance(own, StringAttr) else DEFAULT_TARGET)


def plan_of(op: Operation) -> Plan:
    """The plan of an operation. Raises InputError if it has none."""
    plan = op.attributes.get("plan")
    if not isinstance(plan, PlanAttr):
        raise InputError(
            f"{operator_name(op)} at {place(op)}: no plan; run plan-splits, or give it a "
            "plan = #abele.plan<split [...]>"
        )
    return plan.data
