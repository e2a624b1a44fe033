"""Keep activations that wait for the backward pass in a narrower type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import frexp
from typing import Self

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult
from xdsl.traits import IsTerminator

from ..dialects import nn
from ..dialects.dtypes import STORED, numpy_dtype
from ..dialects.levels import NN
from ..ir.edit import Edit, source_at
from ..ir.node_names import EVERY, no_such_operator, operations_matching, operations_named
from ..ir.phases import BACKWARD, Phases
from ..ir.provenance import at, locate
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.support.number_formats import FORMATS, SCALES, NumberFormat
from ..ir.support.number_kinds import bit_width, is_floating
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from ..ir.xdsl.walk import operations
from .analysis.waiting import TIMELESS, Moments, Reader, moments
from .plans.fused import FusedGroups
from .recompute import Shapes, numbered

TYPES: Mapping[str, NumberFormat] = {
    "float16": FORMATS["f16"],
    "bfloat16": FORMATS["bf16"],
    **{name: FORMATS[name] for name in ("f143", "f152", "f134")},
}
"""The formats in which stashes may be kept, by their names in options."""

DEFAULT = "float16"
"""The format of the pass without options."""


STASH = "stash"
"""The step that this pass adds to the locations of its operations."""


@dataclass(frozen=True)
class StashType:
    """A format in which stashes are kept, and their scale.

    Attributes:
        name: of the format, a key of TYPES.
        scale: an exponent: a number q of the format stands for q * 2^scale.
    """

    name: str
    scale: int = 0

    @classmethod
    def read(cls, text: str) -> Self:
        """The type that TYPE or TYPE@SCALE stands for. Raises InputError."""
        name, sign, scale = text.partition("@")
        if name not in TYPES:
            raise InputError(f"stash {text!r}: type {name!r}; need one of {', '.join(TYPES)}")
        return cls(name, _exponent(text, scale) if sign else 0)

    @property
    def format(self) -> NumberFormat:
        """The format."""
        return TYPES[self.name]

    def __str__(self) -> str:
        return f"{self.name}@{2.0**self.scale:g}" if self.scale else self.name


def _exponent(text: str, scale: str) -> int:
    """The exponent of a scale that is written as a number or as 2^EXPONENT."""
    base, power, exponent = scale.partition("^")
    try:
        value = 2.0 ** int(exponent) if power and base == "2" else float(scale)
    except (ValueError, OverflowError):
        value = 0.0
    part, found = frexp(value)
    if part != 0.5 or found - 1 not in SCALES:
        raise InputError(
            f"stash {text!r}: scale {scale!r}; need a power of two from 2^{SCALES.start} to "
            f"2^{SCALES.stop - 1}, such as 0.25 or 2^-2"
        )
    return found - 1


@dataclass(frozen=True)
class Stash:
    """A choice of stashes.

    Attributes:
        name: of a framework node, or a pattern with *.
    """

    type: StashType
    name: str

    @classmethod
    def read(cls, text: str) -> Self:
        """The choice that TYPE[@SCALE]:NAME stands for. Raises InputError."""
        kind, colon, name = text.partition(":")
        if not colon or not name:
            raise InputError(f"stash {text!r}; need TYPE:NAME or TYPE@SCALE:NAME")
        return cls(StashType.read(kind), name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


@dataclass(frozen=True)
class NarrowStashes(ModulePass):
    """Keep activations that wait for the backward pass in a narrower type. nn -> nn, each rounds.

    A stash is a value of the forward pass that the backward pass reads. It is divided by its
    scale, a power of two, limited to the range of the narrower type, and rounded to nearest, right
    after it is computed. Each late reader gets the wide value again, right before it. So the wide
    value itself dies with its last reader of the forward pass, and the forward pass computes what
    it did. A block keeps stashes if some operation of it belongs to the backward phase of
    training; what comes before the first such operation is the forward pass.

    This pass belongs behind the decisions about groups, because only the last value of a group is
    kept, and behind recompute: a value that is computed again is no stash. fuse-chains then
    computes rounding and reading in the codelets beside them. Values that the program returns or
    stores late are kept as they are.

    Types are float16, bfloat16, f143 and f152 (the 8-bit floats of products), and f134: three bits
    of exponent and four of fraction without a bias, for magnitudes of 0.125 to 248. No type holds
    the numbers of f134, so that tiles keep their codes, as i8.

        %0 = nn.relu %x                  %0 = nn.relu %x
        ...                              %1 = nn.clip %0 to -65504.0, 65504.0
                                         %2 = nn.cast %1 : ... -> tensor<4xf16>
                                         ...
                                         %5 = nn.cast %2 : ... -> tensor<4xf32>
        %6 = nn.gate %0, %g              %6 = nn.gate %5, %g

    Attributes:
        stashes: what is kept how, as TYPE:NAME or TYPE@SCALE:NAME, where NAME is that of a node, of
            nodes that were fused, or a pattern with *. NAME:N is the N-th of several of a name,
            counted from 1. Of several that fit a value, the first decides. If no option is given,
            all are kept in float16.
    """

    name = "narrow-stashes"
    takes = NN
    rounds = True
    skips_other_levels = True

    stashes: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a wrong choice, and for one that fits no stash."""
        choices = [Stash.read(each) for each in self.stashes]
        with FusedGroups(op):
            found = {each.op: each for each in stashes_of(op)}
            if not choices:
                chosen = dict.fromkeys(found, StashType(DEFAULT))
            else:
                chosen = _chosen(choices, list(found), operations(op))
            for each in [own for own in found if own in chosen]:
                if may_rewrite():
                    _narrow(found[each], chosen[each])


@dataclass(frozen=True, eq=False)
class StashOf:
    """An operation whose results wait for the backward pass.

    Attributes:
        moments: of its block.
        readers: those in the backward pass, of each result that has some.
    """

    op: Operation
    moments: Moments
    readers: Mapping[OpResult, Sequence[Reader]]


def stashes_of(module: ModuleOp) -> Iterator[StashOf]:
    """The stashes of a module, in order. Groups should be single operations."""
    phases = Phases.of(module)
    for block in dict.fromkeys(op.parent for op in operations(module)):
        if block is None:
            continue
        begin = backward_begins(block, phases)
        if begin is not None:
            yield from _of_block(moments(block), begin)


def backward_begins(block: Block, phases: Phases) -> int | None:
    """The index of the first operation of a block that computes for the backward phase; None if
    none does."""
    for i, op in enumerate(block.ops):
        if not isinstance(op, TIMELESS) and phases.phase(op) == BACKWARD:
            return i
    return None


def _of_block(when: Moments, begin: int) -> Iterator[StashOf]:
    for op in when.ops[:begin]:
        if isinstance(op, TIMELESS):
            continue
        late: dict[OpResult, Sequence[Reader]] = {}
        for value in op.results:
            if not isinstance(value.type, TensorType) or _bits(value) is None:
                continue
            found = [each for each in when.readers_in_any_shape(value) if each.at >= begin]
            # What is returned or stored at the end lives until then in any case.
            kept = any(_keeps(when.ops[each.at]) for each in found)
            if found and not kept:
                late[value] = sorted(found, key=lambda each: each.at)
        if late:
            yield StashOf(op, when, late)


def _keeps(op: Operation) -> bool:
    return op.has_trait(IsTerminator) or isinstance(op, nn.StoreOp)


def _bits(value: OpResult) -> int | None:
    """The bits of an element; None if it is no float that functions take."""
    element = nn.element_of(value)
    dtype = numpy_dtype(element)
    return bit_width(dtype) if is_floating(dtype) and element not in STORED else None


def is_wider(op: Operation, kind: StashType) -> bool:
    """Whether some result of an operation would be kept in fewer bits."""
    results = (v for v in op.results if isinstance(v.type, TensorType))
    return any((_bits(value) or 0) > kind.format.bits for value in results)


def _chosen(
    choices: Sequence[Stash], ops: Sequence[Operation], every: Sequence[Operation]
) -> dict[Operation, StashType]:
    """The type of each operation that a choice names. Raises InputError for one that names none."""
    found: dict[Operation, StashType] = {}
    for choice in choices:
        wider = [op for op in ops if is_wider(op, choice.type)]
        name = choice.name
        own = operations_named(name, wider) or operations_matching(name, wider)
        own = own or numbered(name, wider)
        if not own:
            why = f"does not keep anything wider than {choice.type.name} for a backward pass"
            if name != EVERY:
                why = no_such_operator(name, wider, every, why)
            else:
                why = f"no operator {why.replace('does not keep', 'keeps')}"
            raise InputError(f"stash {str(choice)!r}: {why}")
        for op in own:
            found.setdefault(op, choice.type)
    return found


def _narrow(stash: StashOf, kind: StashType) -> None:
    """Keep the results of an operation narrow, and let late readers read them wide again."""
    op, when = stash.op, stash.moments
    with Edit(NARROW, op) as edit:
        behind = op
        for value, readers in stash.readers.items():
            if (_bits(value) or 0) <= kind.format.bits:
                continue
            ops = nn.kept_narrow(value, kind.format, kind.scale)
            for each in ops:
                locate(each, at(op, STASH))
                edit.insert(each, InsertPoint.after(behind))
                behind = each
            kept = ops[-1].results[0]
            # Each reader has its own wide value, so that a codelet may compute both together.
            for index in dict.fromkeys(each.at for each in readers):
                reader = when.ops[index]
                wide = nn.made_wide(kept, kind.format, nn.element_of(value), kind.scale)
                for each in wide:
                    locate(each, at(reader, STASH))
                    edit.insert(each, InsertPoint.before(reader))
                shapes = Shapes({value: wide[-1].results[0]}, wide[-1], edit)
                for each in readers:
                    if each.at == index:
                        user, operand = each.use.operation, each.use.index
                        edit.set_operand(user, operand, shapes.of(user.operands[operand]))
                for shape in shapes.left:
                    edit.erase(shape)


NARROW = source_at("keep the stash narrow", NarrowStashes.apply)
