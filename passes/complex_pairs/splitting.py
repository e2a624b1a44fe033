"""The mechanism that replaces values of complex numbers by their real and imaginary parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import stablehlo
from ...dialects.source_types import dtype_of_elements, is_complex, part_type, shape_of
from ...ir.provenance import at
from ...ir.upstream import ModuleOp

Pair = tuple[SSAValue, SSAValue]
"""The real and the imaginary parts of a value."""

Made = SSAValue | Pair

Rule = Callable[[Any, "Splitting"], Sequence[Made]]
"""Adds operations that compute the results of an operation, and returns these: pairs for those of
complex numbers."""


def holds_complex(module: ModuleOp) -> bool:
    """Whether a program has values of complex numbers."""
    return any(
        is_complex(each)
        for op in module.walk()
        for each in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args))
    )


class Splitting:
    """A program of stablehlo, while its complex numbers are replaced.

    Attributes:
        rules: what replaces each operation on complex numbers, by name. An operation without a rule
            stays, between operations that make its operands of their parts and take its results
            apart.
        pairs: the parts of values.
        origins: the operation of the program that each new one was made for.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self.rules = rules
        self.pairs: dict[SSAValue, Pair] = {}
        self.origins: dict[Operation, Operation] = {}
        self._replaced: list[Operation] = []
        self._added: list[Operation] = []
        self._numbers: dict[tuple[bytes, Attribute], SSAValue] = {}
        self._source: Operation | None = None

    # Building

    def add(self, op: Operation) -> SSAValue:
        """Add an operation before the one that is replaced, and return its first result."""
        assert self._source is not None
        block = self._source.parent_block()
        assert block is not None
        block.insert_op_before(op, self._source)
        self._added.append(op)
        return cast("Any", op.results[0] if op.results else None)

    def number(self, value: float, like: SSAValue) -> SSAValue:
        """A constant of a value's shape and element type."""
        element = np.asarray(value).astype(dtype_of_elements(like))
        key = (element.tobytes(), like.type)
        if key not in self._numbers:
            array = np.broadcast_to(element, shape_of(like))
            self._numbers[key] = self.add(stablehlo.ConstantOp(array))
        return self._numbers[key]

    def pair(self, value: SSAValue) -> Pair:
        """The parts of a value: of floats, the value itself and zeros."""
        if is_complex(value):
            return self.pairs[value]
        return value, self.number(0.0, value)

    def flat(self, values: Iterable[SSAValue]) -> list[SSAValue]:
        """Values, with both parts in place of each that is complex."""
        return [part for each in values for part in self.pairs.get(each, (each,))]

    def again(
        self, op: Operation, operands: Sequence[SSAValue], results: Sequence[Attribute]
    ) -> Operation:
        """An operation on other operands, which takes the regions of the old one."""
        regions = [each for each in op.regions]
        for each in regions:
            op.detach_region(each)
        made = type(op).create(
            operands=operands,
            result_types=results,
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=regions,
        )
        self.add(made)
        return made

    # Walking

    def module(self, module: ModuleOp) -> None:
        """Replace the complex numbers of all functions."""
        for each in tuple(module.body.block.ops):
            if isinstance(each, func.FuncOp) and each.body.blocks:
                self.region(each.body)
        for each in reversed(self._replaced):
            each.detach()
            each.erase()
        for each in module.body.block.ops:
            if isinstance(each, func.FuncOp) and each.body.blocks:
                self._drop_arguments(each.body)
                each.update_function_type()

    def region(self, region: Region) -> None:
        """Replace the complex numbers of a region, and the complex arguments of its blocks."""
        for block in region.blocks:
            for argument in tuple(block.args):
                if is_complex(argument) and argument not in self.pairs:
                    self._split_argument(block, argument)
            for op in tuple(block.ops):
                self.op(op)

    def _split_argument(self, block: Block, argument: Any) -> None:
        kind = part_type(argument)
        parts = [block.insert_arg(kind, argument.index + 1 + i) for i in range(2)]
        for part, name in zip(parts, ("real", "imag"), strict=True):
            part.location = argument.location
            if argument.name_hint:
                part.name_hint = f"{argument.name_hint}_{name}"
        self.pairs[argument] = (parts[0], parts[1])

    def op(self, op: Operation) -> None:
        """Replace an operation on complex numbers. Of another one, replace those in its regions."""
        if not _is_on_complex(op):
            for region in op.regions:
                self.region(region)
            return
        outer = self._source, self._added, self._numbers
        self._source, self._added, self._numbers = op, [], {}
        rule = self.rules.get(op.name)
        if rule is None:
            self._keep(op)
        else:
            made = rule(op, self)
            for old, new in zip(op.results, made, strict=True):
                if isinstance(new, tuple):
                    self.pairs[old] = new
                else:
                    old.replace_all_uses_with(new)
            self._replaced.append(op)
            self._locate(op, made)
        self.origins.update(dict.fromkeys(self._added, self.origins.get(op, op)))
        self._source, self._added, self._numbers = outer

    def _locate(self, op: Operation, made: Sequence[Made]) -> None:
        """Give the added operations their names below that of the operation."""
        own: dict[Operation | Any, str] = {}
        for each in made:
            if isinstance(each, tuple):
                own.update(zip((part.owner for part in each), ("real", "imag"), strict=True))
        taken: dict[str, int] = {}
        for each in self._added:
            if len(self._added) == 1 or (not own and each is self._added[-1]):
                each.location = op.location
                continue
            step = own.get(each) or each.name.rpartition(".")[2]
            taken[step] = taken.get(step, -1) + 1
            each.location = at(op.location, f"{step}_{taken[step]}" if taken[step] else step)

    def _keep(self, op: Operation) -> None:
        """Leave an operation as it is, and all inside it."""
        for inner in op.walk():
            for i, value in enumerate(inner.operands):
                if value in self.pairs:
                    inner.operands[i] = self.add(stablehlo.ComplexOp(*self.pairs[value]))
        block = op.parent_block()
        assert block is not None
        for result in op.results:
            if is_complex(result):
                parts = stablehlo.RealOp(result), stablehlo.ImagOp(result)
                block.insert_ops_after(parts, op)
                self._added += parts
                self.pairs[result] = (parts[0].result, parts[1].result)
        for each in self._added:
            each.location = op.location

    def _drop_arguments(self, region: Region) -> None:
        """Erase the complex arguments of blocks, which nobody reads any more."""
        for block in _blocks(region):
            for argument in tuple(block.args):
                if argument in self.pairs:
                    block.erase_arg(argument)


def _blocks(region: Region) -> Iterable[Block]:
    for block in region.blocks:
        yield block
        for op in block.ops:
            for inner in op.regions:
                yield from _blocks(inner)


def _is_on_complex(op: Operation) -> bool:
    """Whether an operation takes or makes complex numbers, or a region of it takes some."""
    return any(map(is_complex, (*op.operands, *op.results))) or any(
        is_complex(argument)
        for region in op.regions
        for block in region.blocks
        for argument in block.args
    )


# Rules for many operations


def flat(op: Operation, new: Splitting) -> Sequence[Made]:
    """The same operation with both parts as values of their own, in its regions too."""
    for region in op.regions:
        new.region(region)
    types = [
        kind
        for each in op.results
        for kind in ([part_type(each)] * 2 if is_complex(each) else [each.type])
    ]
    results = iter(new.again(op, new.flat(op.operands), types).results)
    return [
        (next(results), next(results)) if is_complex(each) else next(results) for each in op.results
    ]


def partwise(op: Operation, new: Splitting) -> Sequence[Made]:
    """The same operation on the real parts, and on the imaginary ones. It has no regions."""
    types = [part_type(each) if is_complex(each) else each.type for each in op.results]
    made = [
        new.again(op, [new.pair(v)[i] if is_complex(v) else v for v in op.operands], types)
        for i in range(2)
    ]
    return [(real, imag) for real, imag in zip(*(each.results for each in made), strict=True)]
