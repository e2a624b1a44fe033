"""Models of ONNX on which a rule about operations of ONNX is tested.

Some are made from the rule's own left side, by the sampler that also checks its types. The others
are drawn by the generator of ONNX models, from the operators that the rule names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

import numpy as np
import onnx
from onnx import helper
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturn
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects.onnx import MODEL, Operator
from ....dialects.onnx.types import SKIPPED, UnknownType
from ....ir.element_types import dense_dtype
from ....ir.rules import Vocabulary
from ....ir.rules.bound_rule import BoundNested, BoundPattern, BoundRule
from ....ir.rules.samples import Sample, Sampler
from ....ir.support.errors import InputError
from ....ir.support.number_kinds import is_whole
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.well_known import ENTRY
from ...driver.arrays import Array
from ...importers.onnx_models.writer import model_of
from ..generators.sketch import random_sketch
from ..onnx_graphs.build import OPSETS, build_graph
from ..onnx_graphs.checks import NotCompared, check_valid
from ..onnx_graphs.graph import ModelCase

ROUND = 8
"""Samples that are made with the same sizes."""
BARREN = 3
"""Rounds in a row that give no model, after which no more are made."""
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9)
"""Sizes of axes: those at which compilers tend to err."""
OPSETS_TRIED = 6
"""Opsets that are tried for one sample."""
SHOWN = 0.3
"""How often a result that the rule replaces is an output too, which must then stay."""
BESIDE = ("Relu", "Add", "Mul", "Neg", "Transpose", "Concat", "Cast")
"""Operators that drawn models have beside those of the rule, so that results meet others."""


@dataclass(frozen=True)
class Models:
    """Makes models for one rule.

    Attributes:
        seed: of all random choices.
        first_sizes: of axes of the first samples; different primes if empty.
    """

    rule: BoundRule
    vocabulary: Vocabulary
    seed: int
    first_sizes: tuple[int, ...] = ()

    def sampled(self) -> Iterator[ModelCase]:
        """Models that contain the rule's left side. Ends if none can be made."""
        barren = 0
        for turn in range(1 << 20):
            random = Random(f"{self.seed} {turn} sizes")
            sizes = self.first_sizes if turn == 0 else tuple(random.choices(SIZES, k=4))
            sampler = Sampler(self.vocabulary, self.seed + turn, sizes)
            barren += 1
            for sample in sampler.samples(self.rule, ROUND):
                case = _case_of(sample, random)
                if case is not None:
                    barren = 0
                    yield case
            if barren == BARREN:
                return

    def drawn(self) -> Iterator[ModelCase]:
        """Models of the generator with the rule's operators. They need not fit the rule."""
        operators = frozenset(_operators(self.rule)) | frozenset(BESIDE)
        for number in range(1 << 20):
            random = Random(f"{self.seed} {number} drawn")
            try:
                yield build_graph(random_sketch(random, 8), operators)
            except (ValueError, onnx.checker.ValidationError):
                continue


def _operators(rule: BoundRule) -> Iterator[str]:
    """The operators of the domain ai.onnx on a rule's left side."""
    pending: list[BoundPattern] = list(rule.variants[:1])
    while pending:
        pattern = pending.pop()
        for cls in pattern.classes:
            if issubclass(cls, Operator) and not cls.DEFINITION.domain:
                yield cls.DEFINITION.op_type
        pending += [each.pattern for each in pattern.operands if isinstance(each, BoundNested)]


# A sample as a model


def _case_of(sample: Sample, random: Random) -> ModelCase | None:
    """A model of a sample; None if no opset has it, or none that runs."""
    block = Block(arg_types=[each.type for each in sample.block.args])
    values: dict[SSAValue, SSAValue] = dict(zip(sample.block.args, block.args, strict=True))
    for op in sample.block.ops:
        block.add_op(op.clone(values))
    root = block.last_op
    assert root is not None
    for i, arg in enumerate(block.args):
        arg.name_hint = f"x{i}"
    shown = [each for each in root.results if _is_tensor(each.type)]
    for op in block.ops:
        others = (each for each in op.results if op is not root and _is_tensor(each.type))
        shown += [each for each in others if op.operands and random.random() < SHOWN]
    if not shown or not all(_is_tensor(arg.type) for arg in block.args):
        return None
    block.add_op(FuncReturn(*shown))
    types = [arg.type for arg in block.args], [each.type for each in shown]
    main = FuncOp(ENTRY, types, Region(block))
    proto = _of_some_opset(main, random)
    if proto is None:
        return None
    inputs = {
        info.name: _values(cast("TensorType[Attribute]", arg.type), random)
        for info, arg in zip(proto.graph.input, block.args, strict=True)
    }
    return ModelCase(proto, inputs)


def _is_tensor(type_: Attribute) -> bool:
    if type_ == SKIPPED or isinstance(type_, UnknownType) or not isinstance(type_, TensorType):
        return False
    return min(cast("TensorType[Attribute]", type_).get_shape(), default=0) >= 0


def _of_some_opset(main: FuncOp, random: Random) -> onnx.ModelProto | None:
    """The model of a graph at an opset in which it is valid; None if none of some is."""
    domains = {op.DEFINITION.domain for op in main.walk() if isinstance(op, Operator)}
    for opset in random.sample(OPSETS, min(OPSETS_TRIED, len(OPSETS))):
        module = ModuleOp([main.clone()], {MODEL: _fields(opset, domains)})
        try:
            for op in module.walk():
                if isinstance(op, Operator):
                    op.check_version()
            proto = model_of(module, "sample")
            check_valid(proto)
        except (VerifyException, InputError, NotCompared):
            continue
        return proto
    return None


def _fields(opset: int, domains: set[str]) -> DictionaryAttr:
    imports = {"": opset, **{each: 1 for each in domains if each}}
    listed = [
        DictionaryAttr({"domain": StringAttr(each), "version": IntegerAttr(version, i64)})
        for each, version in imports.items()
    ]
    least = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    return DictionaryAttr(
        {"ir_version": IntegerAttr(least, i64), "opset_import": ArrayAttr(listed)}
    )


def _values(type_: TensorType[Attribute], random: Random) -> Array:
    """Values of an input: small whole numbers, normal ones, or some that are special."""
    dtype, shape = dense_dtype(type_.element_type), tuple(type_.get_shape())
    numbers = np.random.default_rng(random.randrange(1 << 32))
    if dtype.kind == "b":
        return numbers.integers(0, 2, shape).astype(dtype)
    way = random.random()
    if is_whole(dtype):
        low = 0 if dtype.kind == "u" else -3
        return numbers.integers(low, 4, shape).astype(dtype)
    if way < 0.4:
        return numbers.integers(-3, 4, shape).astype(dtype)
    found = (2 * numbers.standard_normal(shape)).astype(dtype)
    if way > 0.85 and found.size:
        at = numbers.integers(0, found.size, max(1, found.size // 4))
        found.reshape(-1)[at] = numbers.choice(np.array(SPECIAL, np.float64), len(at)).astype(dtype)
    return found


SPECIAL: Sequence[float] = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e4)
"""Values at which functions of floats tend to be wrong."""
