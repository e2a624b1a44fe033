"""Models of ONNX on which a rule about operations of ONNX is tested.

Some are made from the rule's own left side, by the sampler that also checks its types. The others
are drawn by the generator of ONNX models, from the operators that the rule names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
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
from ....ir.rules.samples import Sampler
from ....ir.support.errors import InputError
from ....ir.support.number_kinds import is_whole
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.well_known import ENTRY
from ...driver.arrays import Array
from ...driver.context import new_context
from ...importers.onnx_models.reader import module_of
from ...importers.onnx_models.writer import model_of
from ..generators.program import Program
from ..generators.rules.embed import Instance
from ..generators.rules.misses import MISSES, missed
from ..generators.rules.reading import fit, unmet
from ..generators.sketch import machine_of, random_sketch
from ..onnx_graphs.build import OPSETS, build_graph
from ..onnx_graphs.checks import NotCompared, check_valid
from ..onnx_graphs.graph import ModelCase

ROUND = 8
"""Samples that are made with the same sizes."""
BARREN = 3
"""Rounds in a row that give no model, after which no more are made."""
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9)
"""Sizes of axes: those at which compilers tend to err."""
CHANGED = 2
"""The most near-misses made of one model."""
UNMET = 60
"""Operations that are tried with one choice of sizes, for models in which a guard does not hold."""
MACHINE = "tiny:1"
"""The machine that programs name. Nothing is planned for it."""
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
                case = _case_of(sample.block, random)
                if case is not None:
                    barren = 0
                    yield case
            if barren == BARREN:
                return

    def near_misses(self) -> Iterator[tuple[str, ModelCase]]:
        """Models that the rule nearly matches, each with the change in words.

        Some have one change to something that the pattern mentions, of the kinds that were the
        rarest so far. In others, a guard does not hold. Ends if several models in a row give none.
        """
        random = Random(f"{self.seed} near")
        seen: Counter[str] = Counter()
        unmet_guards = self._with_unmet_guards(random) if self.rule.guards else iter(())
        barren = 0
        for case in self.sampled():
            kinds = sorted(random.sample(list(MISSES), len(MISSES)), key=lambda each: seen[each])
            made = list(islice(self._changed(case, kinds, random), CHANGED))
            seen.update(name for name, _ in made)
            made += islice(unmet_guards, 1)
            yield from made
            barren = 0 if made else barren + 1
            if barren == BARREN:
                return

    def _changed(
        self, case: ModelCase, kinds: Sequence[str], random: Random
    ) -> Iterator[tuple[str, ModelCase]]:
        """Valid copies of a model that the rule matches, with one change of each possible kind."""
        context = new_context()
        program = Program(module_of(case.proto, context, "model"), context, {}, machine_of(MACHINE))
        matches = (
            (op, found)
            for op in program.module.walk()
            if type(op) in self.rule.roots
            and (found := fit(self.rule, op, self.vocabulary)) is not None
        )
        root, found = next(matches, (None, None))
        if root is None or found is None:
            return
        for name in kinds:
            made = missed(name, Instance(program, root), found, self.rule, self.vocabulary, random)
            proto = None if made is None else _valid(made.program.module)
            if proto is not None:
                yield name, ModelCase(proto, case.inputs)

    def _with_unmet_guards(self, random: Random) -> Iterator[tuple[str, ModelCase]]:
        """Models of samples for which one guard is false."""
        for turn in range(BARREN):
            sampler = Sampler(self.vocabulary, self.seed + turn, random.choices(SIZES, k=4))
            made = sampler.programs(
                self.rule.name, self.rule.variants, self.rule.guards, tries=UNMET
            )
            for root in made:
                block = root.parent_block()
                failed = unmet(self.rule, root, self.vocabulary)
                if block is None or failed is None or len(failed) != 1:
                    continue
                case = _case_of(block, random)
                if case is not None:
                    yield "a guard does not hold", case

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


def _valid(module: ModuleOp) -> onnx.ModelProto | None:
    """The model of a module; None if onnx refuses it."""
    try:
        for op in module.walk():
            if isinstance(op, Operator):
                op.check_version()
        proto = model_of(module, "model")
        check_valid(proto)
    except (VerifyException, InputError, NotCompared):
        return None
    return proto


def _case_of(sample: Block, random: Random) -> ModelCase | None:
    """A model of a sample; None if no opset has it, or none that runs."""
    block = Block(arg_types=[each.type for each in sample.args])
    values: dict[SSAValue, SSAValue] = dict(zip(sample.args, block.args, strict=True))
    for op in sample.ops:
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
        proto = _valid(module)
        if proto is not None:
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
