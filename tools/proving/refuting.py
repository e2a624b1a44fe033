"""Programs that show that a rule is wrong: they are run, and the results are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Block, Region, SSAValue

from ...dialects import nn
from ...ir.blob import BlobStore
from ...ir.element_types import dtype_named
from ...ir.provenance import named
from ...ir.rules import RuleSet
from ...ir.rules.bound_rule import BoundRule
from ...ir.support.errors import InputError
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..driver.program import signature
from ..testing.generators.build import default_operators
from ..testing.generators.program import Program
from ..testing.generators.sketch import machine_of
from ..testing.rules import NeverFired, RuleFailed, RuleWrong, check_rule, check_rule_on
from ..testing.rules.onnx_check import OnnxRuleWrong
from ..testing.rules.settings import RuleReport
from .instances import Instance
from .steps import shape_and_dtype

MACHINE = "tiny:1"
"""The machine that programs name. Nothing is planned for it."""
REDUCING = 4.0
"""Seconds of processor time that making the program smaller may take."""
PLACE = re.compile(r"(.*)\[([\d,]*)\]$")
"""The name of an element: its value, and its index."""


@dataclass(frozen=True)
class Refuted:
    """A program on which a rule is wrong.

    Attributes:
        reason: what is wrong, in one line.
        text: the program, its result and what should be.
    """

    reason: str
    text: str


def refuted(rules: RuleSet, form: Instance, model: Mapping[str, float]) -> Refuted | None:
    """What is wrong with a rule on a match whose elements have given values; None if nothing is.

    Args:
        model: the values of elements, by names such as "x[0,1]". Others are 1.
    """
    for constants in (False, True):
        program = _program(form, model, constants)
        try:
            if check_rule_on(form.rule, program, rules=rules, seed=0, reduce_seconds=REDUCING):
                return None
        except (RuleWrong, RuleFailed) as wrong:
            return _of(wrong)
        except InputError:
            continue
    return None


def tested(rule: BoundRule, rules: RuleSet, seconds: float) -> tuple[int, Refuted | None]:
    """The number of programs that a rule was tested on, and what is wrong on one of them."""
    report = RuleReport()
    try:
        check_rule(
            rule,
            rules=rules,
            seconds=seconds,
            seed=0,
            reduce_seconds=REDUCING,
            report=report,
            properties=("keeps_the_meaning",),
        )
    except (RuleWrong, RuleFailed) as wrong:
        return report.examples, _of(wrong)
    except (NeverFired, InputError):
        pass
    return report.examples, None


def _of(wrong: RuleWrong | RuleFailed) -> Refuted:
    reason = wrong.wrong.text if isinstance(wrong, RuleWrong) else wrong.problem
    ran = wrong.case if isinstance(wrong, OnnxRuleWrong) else wrong.program
    shown = [f"{name} = {_text(array)}" for name, array in ran.inputs.items()]
    inputs = ["", "The inputs:", "", *shown] if shown else []
    return Refuted(reason, "\n".join([str(wrong), *inputs]))


def _text(array: NDArray[Any]) -> str:
    return np.array2string(np.asarray(array, np.float64), threshold=16, separator=", ")


def _program(form: Instance, model: Mapping[str, float], constants: bool) -> Program:
    """The left side of a rule as a program.

    Args:
        constants: whether the values that it reads are constants; else inputs.
    """
    arrays = _arrays(form, model)
    leaves = list(form.names)
    main = Block(arg_types=[] if constants else [each.type for each in leaves])
    values: dict[SSAValue, SSAValue] = {}
    for i, leaf in enumerate(leaves):
        if constants:
            made = nn.ConstantOp(arrays[leaf])
            main.add_op(made)
            values[leaf] = made.result
        else:
            values[leaf] = main.args[i]
    block = form.root.parent_block()
    assert block is not None
    for op in block.ops:
        if op in form.match.matched:
            main.add_op(op.clone(values))
    last = main.last_op
    assert last is not None
    main.add_op(func.ReturnOp(*last.results))
    _name(main)
    types = ([a.type for a in main.args], [v.type for v in last.results])
    module = ModuleOp([func.FuncOp(ENTRY, types, Region(main))])
    named_inputs = zip(signature(module).inputs, leaves, strict=False)
    inputs = {each.name: arrays[leaf] for each, leaf in named_inputs}
    context = default_operators().context.clone()
    context.blobs = BlobStore()
    return Program(module, context, inputs, machine_of(MACHINE))


def _name(main: Block) -> None:
    for number, op in enumerate(main.ops):
        op.location = named(f"node{number}")


def _arrays(form: Instance, model: Mapping[str, float]) -> dict[SSAValue, NDArray[Any]]:
    """The values of what a match reads."""
    made: dict[SSAValue, NDArray[Any]] = {}
    by_name: dict[str, NDArray[Any]] = {}
    for value, name in form.names.items():
        shape, dtype = shape_and_dtype(value)
        made[value] = by_name[name] = np.ones(shape, dtype_named(dtype))
    for element, number in model.items():
        found = PLACE.match(element)
        if found is None or found[1] not in by_name:
            continue
        array = by_name[found[1]]
        index = tuple(int(each) for each in found[2].split(",") if each)
        if is_floating(array.dtype):
            with np.errstate(over="ignore"):
                array[index] = np.float64(number).astype(array.dtype)
        else:
            array[index] = bool(number) if array.dtype.kind == "b" else int(number)
    return made
