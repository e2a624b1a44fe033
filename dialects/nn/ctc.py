"""Connectionist temporal classification: how likely a sequence of labels is, in any alignment.

A sequence of S labels has 2 S + 1 states: a blank, a label, a blank, and so on. A frame stays in
the state of the frame before it, or goes on by one state, or from a label to another one by two.

Source: Graves et al., Connectionist Temporal Classification, ICML 2006.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import AnyFloat, IntegerType, TensorType, f32, i32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from ...ir.support.number_kinds import is_floating
from ...ir.unmet import Unmet
from ...ir.upstream import VerifyException
from ..dtypes import STORED, numpy_dtype
from .base import INTEGER, element_of, integer, shape_of, tensor
from .composite import CompositeOp, Parts
from .elementwise import (
    AddOp,
    EqualOp,
    ExpOp,
    GreaterOp,
    IsInfOp,
    LessOp,
    LogicalAndOp,
    LogicalNotOp,
    LogicalOrOp,
    LogOp,
    MaxOp,
    NegOp,
    ScaleOp,
    SelectOp,
    ShiftOp,
    SubOp,
)
from .generic import compute
from .index import at, dim
from .indexed import GatherAlongOp, GatherOp, ScatterAlongOp, UpdateOp
from .iota import IotaOp
from .movement import ExpandOp, PadOp, ReshapeOp
from .state import ConstantOp
from .wanted import Wanted
from .window import ReduceOp

NONE = float("-inf")
"""The logarithm of a chance of 0."""

LEAST = -1e30
"""Less than the logarithm of any other chance, and finite."""


def check_logs(logs: SSAValue, blank: int) -> tuple[int, int, int]:
    """The numbers of frames, samples and classes of logarithms. Raises VerifyException for a type
    that has none, and for a blank that is no class."""
    element, shape = element_of(logs), shape_of(logs)
    if not is_floating(numpy_dtype(element)):
        raise Unmet(f"logs of {element}; need a floating-point type", "logs")
    if len(shape) != 3 or not shape[0] or not shape[2]:
        raise Unmet(
            f"logs of shape {list(shape)}; need frames, samples and classes, and a frame and a "
            "class at least",
            "logs",
        )
    frames, samples, classes = shape
    if not 0 <= blank < classes:
        raise VerifyException(f"blank {blank} of {classes} classes; need 0..{classes - 1}")
    return frames, samples, classes


def check_integers(name: str, value: SSAValue, need: Sequence[int | str]) -> None:
    """Raise VerifyException unless an operand has integers, and the axes that are needed.

    Args:
        need: one size per axis; a name stands for any.
    """
    element, shape = element_of(value), shape_of(value)
    if not isinstance(element, IntegerType) or element.width.data < 8:
        raise Unmet(f"{name} of {element}; need integers of 8 bits or more", name)
    if len(shape) != len(need) or shape[0] != need[0]:
        raise Unmet(f"{name} of shape {list(shape)}; need [{', '.join(map(str, need))}]", name)


class _CtcOp(CompositeOp, ABC):
    """An operation on the alignments of frames with labels.

    Attributes:
        logs: the logarithms of the chances of all classes, [frames, samples, classes] of floats.
        labels: the classes of each sample, [samples, labels] of integers. What is beyond the number
            of a sample's labels is not read.
        frames: how many frames each sample has, [samples] of integers from 0 to the number of all.
            Negative ones count down from all: -1 stands for all, and -2 for one fewer.
        counts: how many labels each sample has, in the same way.
        blank: the class that is no label.
    """

    logs = operand_def(TensorType)
    labels = operand_def(TensorType)
    frames = operand_def(TensorType)
    counts = operand_def(TensorType)
    blank = prop_def(INTEGER)
    assembly_format = (
        "$logs `,` $labels `,` $frames `,` $counts `blank` $blank"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        logs: SSAValue,
        labels: SSAValue,
        frames: SSAValue,
        counts: SSAValue,
        *,
        blank: int = 0,
    ):
        super().__init__([logs, labels, frames, counts], {"blank": integer(blank)})

    def check(self) -> tuple[int, int, int]:
        """The numbers of frames, samples and classes. Raises VerifyException for what does not
        fit."""
        logs = check_logs(self.logs, self.blank.value.data)
        check_integers("labels", self.labels, [logs[1], "labels"])
        check_integers("frames", self.frames, [logs[1]])
        check_integers("counts", self.counts, [logs[1]])
        return logs

    @classmethod
    def sample(cls, wanted: Wanted) -> _CtcOp:
        """Random frames and labels. A given operand of three axes is the logs."""
        random, first = wanted.random, wanted.first
        if first is None or len(shape_of(first)) != 3:
            floats = [e for e in wanted.elements if isinstance(e, AnyFloat) and e not in STORED]
            shape = [random.randint(1, 6), random.randint(1, 3), random.randint(2, 4)]
            first = tensor(shape, random.choice(floats or (f32,)))
        _, samples, classes = shape_of(first)
        types = [first, tensor((samples, random.randint(0, 3)), i32)]
        types += [tensor((samples,), i32)] * 2
        return cls(*Block(arg_types=types).args, blank=random.randrange(classes))


@dataclass
class _Alignments:
    """The alignments of samples, as steps of an operation.

    Attributes:
        made: takes the steps.
        count: the number of frames.
        frames: the number of frames of each sample, [samples, 1].
        ways: 0 where a state may follow itself, the state before it and the one before that, and
            minus infinity where it may not, [samples, states, 3].
        ends: whether a sequence may end in a state.
        places: the class of each state, once more for each frame.
        chances: the logarithm of the chance of each state, [frames, samples, states].
    """

    made: Parts
    count: int
    frames: SSAValue
    ways: SSAValue
    ends: SSAValue
    places: SSAValue
    chances: SSAValue

    @classmethod
    def of(cls, op: _CtcOp, made: Parts) -> _Alignments:
        """The steps that all operations share."""
        frames, samples, _ = op.check()
        blank = op.blank.value.data
        labels = made.cast("labels", op.labels, i32)
        if not shape_of(labels)[1]:
            labels = made("one_label", PadOp(labels, [0, 0], [0, 1], value=blank))
        most = shape_of(op.labels)[1]
        states = 2 * shape_of(labels)[1] + 1
        shape = (samples, states)
        own = checked(made, "frames", op.frames, frames)
        last = made("last", ScaleOp(checked(made, "counts", op.counts, most), 2))
        n, s = dim("n", samples), dim("s", states)
        none = made("blank", ConstantOp(np.array(blank, np.int32)))
        labels = _labels(made, labels, last, none, op.check()[2])
        label = at(labels, n, (s - 1).exactly(2).outside("fill"), pad=blank)
        spread = made("spread", compute("identity", [label], [n, s]))
        state = made("state", IotaOp(tensor(shape, i32), [0, 1]))
        beyond = made("beyond", GreaterOp(state, last))
        classes = made("classes", SelectOp(beyond, none, spread))
        before = made("before", PadOp(classes, [0, 2], [0, -2], value=blank))
        same = made("same_column", ReshapeOp(made("same", EqualOp(classes, before)), (*shape, 1)))
        way = made("way", IotaOp(tensor((*shape, 3), i32), [0, 0, 1]))
        one = made("one_way", ConstantOp(np.array(1, np.int32)))
        skips = made("barred", LogicalAndOp(same, made("skips", GreaterOp(way, one))))
        final = made("final", EqualOp(state, last))
        ahead = made("ahead", ShiftOp(last, -1))
        ends = made("ends", LogicalOrOp(final, made("label", EqualOp(state, ahead))))
        row = made("row", ReshapeOp(classes, (1, *shape)))
        places = made("places", ExpandOp(row, (frames, *shape)))
        logs = made.wide(op.logs)
        chances = made("chances", GatherAlongOp(logs, places, 2))
        dtype = numpy_dtype(element_of(logs))
        zero, bar = (made("chance", ConstantOp(np.array(x, dtype))) for x in (0.0, NONE))
        ways = made("ways", SelectOp(skips, bar, zero))
        return cls(made, frames, own, ways, ends, places, chances)

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples and states."""
        return shape_of(self.ends)

    def number(self, made: Parts, value: float) -> SSAValue:
        """A number in the type of the logarithms."""
        dtype = numpy_dtype(element_of(self.chances))
        return made("number", ConstantOp(np.array(value, dtype)))

    def forward(self) -> SSAValue:
        """The logarithms of the chances to be in a state after the last frame of a sample."""
        return self.made.repeat("forward", self.count, [self._begin()], self._frame)[0]

    def forward_every(self) -> tuple[SSAValue, SSAValue]:
        """What `forward` returns, and the same after each frame."""

        def frame(made: Parts, given: Sequence[SSAValue], number: SSAValue) -> Sequence[SSAValue]:
            value, table = given
            (value,) = self._frame(made, [value], number)
            return value, self._with_row(made, table, value, number)

        table = self._table()
        end, every = self.made.repeat("forward", self.count, [self._begin(), table], frame)
        return end, every

    def _begin(self) -> SSAValue:
        """The logarithms before the first frame, when only the first state is possible."""
        made = self.made
        state = made("first", IotaOp(tensor(self.shape, i32), [0, 1]))
        one = made("one", ConstantOp(np.array(1, np.int32)))
        zero, none = self.number(made, 0.0), self.number(made, NONE)
        return made("begin", SelectOp(made("start", LessOp(state, one)), zero, none))

    def _table(self) -> SSAValue:
        none = self.number(self.made, NONE)
        return self.made("table", ExpandOp(none, shape_of(self.chances)))

    def _frame(
        self, made: Parts, given: Sequence[SSAValue], number: SSAValue
    ) -> Sequence[SSAValue]:
        (value,) = given
        come = self._sum(made, value, 1)
        own = made("own", AddOp(come, self._row(made, number)))
        return (made("value", SelectOp(self._runs(made, number), own, value)),)

    def backward(self) -> SSAValue:
        """The logarithms of the chances of what follows a state, after each frame."""
        zero, none = self.number(self.made, 0.0), self.number(self.made, NONE)
        begin = self.made("end", SelectOp(self.ends, zero, none))
        last = self.made("last_frame", ConstantOp(np.array(self.count - 1, np.int32)))

        def frame(made: Parts, given: Sequence[SSAValue], number: SSAValue) -> Sequence[SSAValue]:
            value, table = given
            number = made("frame", SubOp(last, number))
            table = self._with_row(made, table, value, number)
            own = made("own", AddOp(value, self._row(made, number)))
            come = self._sum(made, own, -1)
            return made("value", SelectOp(self._runs(made, number), come, value)), table

        _, every = self.made.repeat("backward", self.count, [begin, self._table()], frame)
        return every

    def total(self, end: SSAValue) -> SSAValue:
        """The logarithm of the chance of all alignments, [samples, 1]."""
        made = self.made
        at_end = made("at_end", SelectOp(self.ends, end, self.number(made, NONE)))
        largest = made("largest", ReduceOp(at_end, "max", [1], keep_dims=True))
        base = self._base(made, largest)
        power = made("power", ExpOp(made("centre", SubOp(at_end, base))))
        total = made("total", ReduceOp(power, "sum", [1], keep_dims=True))
        return made("logarithm", AddOp(made("log", LogOp(total)), base))

    def _base(self, made: Parts, largest: SSAValue) -> SSAValue:
        """What is subtracted before exponentials: the largest number, but a finite one."""
        return made("base", MaxOp(largest, self.number(made, LEAST)))

    def _sum(self, made: Parts, value: SSAValue, way: int) -> SSAValue:
        """For each state, the logarithm of the chances of three, added: its own, and those of two
        neighbours, as far as the ways between them are open.

        Args:
            way: 1 for the neighbours before it, and -1 for those after it.
        """
        n, s = (dim(name, size) for name, size in zip("ns", self.shape, strict=True))
        k = dim("k", 3)
        # A state is left by the way that it allows, and reached by the way that it allows.
        other = (s - k * way).outside("fill")
        allowed = s if way > 0 else other
        each = [at(value, n, other, pad=NONE), at(self.ways, n, allowed, k)]
        logs = made("three", compute("add", each, [n, s, k]))
        base = self._base(made, made("largest", ReduceOp(logs, "max", [2], keep_dims=True)))
        power = made("power", ExpOp(made("centre", SubOp(logs, base))))
        total = made("total", ReduceOp(power, "sum", [2]))
        base = made("base", ReshapeOp(base, self.shape))
        return made("logarithm", AddOp(made("log", LogOp(total)), base))

    def _row(self, made: Parts, number: SSAValue) -> SSAValue:
        """The chances of the states at a frame."""
        index = made("index", ReshapeOp(number, (1,)))
        return made("chance", ReshapeOp(made("of", GatherOp(self.chances, index, 0)), self.shape))

    def _with_row(
        self, made: Parts, table: SSAValue, value: SSAValue, number: SSAValue
    ) -> SSAValue:
        """A table in which the row of a frame is replaced."""
        row = made("row", ReshapeOp(value, (1, *self.shape)))
        index = made("place", ReshapeOp(number, (1, 1, 1)))
        return made("rows", UpdateOp(row, index, table, "last", 0))

    def _runs(self, made: Parts, number: SSAValue) -> SSAValue:
        """Whether each sample has a frame."""
        return made("runs", GreaterOp(self.frames, number))


def _labels(
    made: Parts, labels: SSAValue, last: SSAValue, blank: SSAValue, classes: int
) -> SSAValue:
    """Labels, of which one that is negative, the blank or no class is a fault of the run, as an
    index that a table does not have. A label that is not read becomes the blank.

    Args:
        last: twice the number of labels, [samples, 1].
    """
    shape = shape_of(labels)
    place = made("twice_place", IotaOp(tensor(shape, i32), [0, 2]))
    read = made("read", LessOp(place, last))
    zero, away = (made("number", ConstantOp(np.array(n, np.int32))) for n in (0, classes))
    negative = made("negative", LessOp(labels, zero))
    wrong = made("wrong", LogicalOrOp(negative, made("is_blank", EqualOp(labels, blank))))
    index = made("index", SelectOp(wrong, away, labels))
    known = made("known", IotaOp(tensor((classes,), i32), [1]))
    return made(
        "labels_but_not_blank", GatherOp(known, made("of", SelectOp(read, index, blank)), 0)
    )


def checked(made: Parts, name: str, value: SSAValue, most: int) -> SSAValue:
    """Numbers [samples, 1] from 0 to the largest one that is allowed. A larger one is a fault of
    the run, as an index that a table does not have.
    """
    numbers = made(f"{name}_allowed", IotaOp(tensor((most + 1,), i32), [1]))
    found = made(name, GatherOp(numbers, value, 0))
    return made(f"{name}_column", ReshapeOp(found, (*shape_of(value), 1)))


@irdl_op_definition
class CtcLossOp(_CtcOp):
    """The negated logarithm of the chance that frames have labels, in any alignment.

    Example: %4 = nn.ctc_loss %0, %1, %2, %3 blank 0 : (tensor<9x2x5xf32>, tensor<2x3xi32>,
    tensor<2xi32>, tensor<2xi32>) -> tensor<2xf32>

    The loss is infinite if a sample has too few frames for its labels. A number of frames or labels
    that is out of range is a fault of the run. So is a label that is no class: the fault names it
    and its place, [sample, label]. A negative label and the blank are no labels either; the fault
    names the number of classes in their place.
    """

    name = "nn.ctc_loss"

    def infer(self) -> TensorType[Attribute]:
        """One loss per sample."""
        return tensor((self.check()[1],), element_of(self.logs))

    def parts(self, made: Parts) -> SSAValue:
        """The chances to be in each state, from frame to frame."""
        shape = (self.check()[1],)
        if 0 in shape:
            return made("empty", ConstantOp(np.zeros(shape, numpy_dtype(element_of(self.result)))))
        alignments = _Alignments.of(self, made)
        loss = made("negate", NegOp(alignments.total(alignments.forward())))
        return made("back", ReshapeOp(made.narrow(loss), shape))


@irdl_op_definition
class CtcLossGradOp(_CtcOp):
    """The gradient of nn.ctc_loss: minus the chance that a frame stands for a class.

    Example: %4 = nn.ctc_loss_grad %0, %1, %2, %3 blank 0 : (tensor<9x2x5xf32>, tensor<2x3xi32>,
    tensor<2xi32>, tensor<2xi32>) -> tensor<9x2x5xf32>

    It is 0 for a sample whose loss is infinite.
    """

    name = "nn.ctc_loss_grad"

    def infer(self) -> TensorType[Attribute]:
        """The type of the logarithms."""
        return tensor(self.check(), element_of(self.logs))

    def parts(self, made: Parts) -> SSAValue:
        """The share of the alignments, by their chance, that are in a state at a frame."""
        frames, _, classes = shape = self.check()
        if 0 in shape:
            return made("empty", ConstantOp(np.zeros(shape, numpy_dtype(element_of(self.result)))))
        alignments = _Alignments.of(self, made)
        end, before = alignments.forward_every()
        after, total = alignments.backward(), alignments.total(end)
        impossible = made("impossible", IsInfOp(total))
        zero = alignments.number(made, 0.0)
        total = made("possible", SelectOp(impossible, zero, total))
        through = made("through", AddOp(before, after))
        share = made("share", ExpOp(made("part", SubOp(through, total))))
        frame = made("frame", IotaOp(tensor((frames, 1, 1), i32), [1, 0, 0]))
        runs = made("runs", GreaterOp(alignments.frames, frame))
        counts = made("counts", LogicalAndOp(runs, made("likely", LogicalNotOp(impossible))))
        share = made("counted", SelectOp(counts, share, zero))
        found = made("sum", ScatterAlongOp(share, alignments.places, "sum", 2, classes))
        return made.narrow(made("negate", NegOp(found)))
