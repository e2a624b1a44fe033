"""Labels from the chances of classes in frames: decoding for connectionist temporal classification.

An alignment has one class per frame. Its labels are the classes that differ from the class of the
frame before, without blanks: 1 1 _ 1 2 2 stands for 1 1 2.

Source: Graves et al., Connectionist Temporal Classification, ICML 2006; Hannun et al., First-Pass
Large Vocabulary Continuous Speech Recognition using Bi-Directional Recurrent DNNs, 2014.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from xdsl.dialects.builtin import AnyFloat, TensorType, f32, i32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from ...ir.unmet import Unmet
from ...ir.upstream import Builder
from ..dtypes import STORED, numpy_dtype
from ..structured import Composite
from .base import (
    INTEGER,
    MOST_POSITIONS,
    Shape,
    TensorsOp,
    element_of,
    integer,
    need_at_least,
    shape_of,
    tensor,
)
from .composite import Parts
from .ctc import LEAST, NONE, check_integers, check_logs, checked
from .elementwise import (
    AddOp,
    CastOp,
    DivOp,
    EqualOp,
    ExpOp,
    GreaterEqualOp,
    GreaterOp,
    LogicalAndOp,
    LogicalNotOp,
    LogOp,
    MaxOp,
    ScaleOp,
    SelectOp,
    ShiftOp,
    SubOp,
)
from .generic import compute
from .index import at, dim
from .indexed import GatherAlongOp, GatherOp, UpdateOp
from .iota import IotaOp
from .movement import ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from .sequence import ScanOp, SortIndicesOp
from .state import ConstantOp
from .summarize import SummarizeOp
from .wanted import Wanted
from .window import ReduceOp

WHOLE, BLOCK = 32, 8
"""For each prefix, up to the first number of candidates are sorted at once; of more, the second
number at a time. Chosen by trial on mk2, for 256 and 8,192 candidates of 8 prefixes."""

NO_LABEL = -1
"""What follows the labels of a sample in the results."""


class _DecodeOp(TensorsOp, Composite, ABC):
    """An operation that finds likely labels of frames.

    Attributes:
        logs: the logarithms of the chances of all classes, [frames, samples, classes] of floats.
        frames: how many frames each sample has, [samples] of integers from 0 to the number of all.
            Negative ones count down from all: -1 stands for all, and -2 for one fewer.
        blank: the class that is no label.
    """

    logs = operand_def(TensorType)
    frames = operand_def(TensorType)
    blank = prop_def(INTEGER)

    def __init__(
        self, logs: SSAValue, frames: SSAValue, properties: Mapping[str, Attribute], blank: int
    ):
        super().__init__([logs, frames], {**properties, "blank": integer(blank)}, 3)

    def check(self) -> tuple[int, int, int]:
        """The numbers of frames, samples and classes. Raises VerifyException for what does not
        fit."""
        logs = check_logs(self.logs, self.blank.value.data)
        check_integers("frames", self.frames, [logs[1]])
        return logs

    @abstractmethod
    def shape(self) -> Shape:
        """The samples, and the paths of each if there may be several."""

    def infer_all(self) -> Sequence[TensorType[Attribute]]:
        """Labels, their number, and the logarithm of a chance."""
        shape, frames = self.shape(), self.check()[0]
        chances = tensor(shape, element_of(self.logs))
        return tensor((*shape, frames), i32), tensor(shape, i32), chances

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Build the simpler operations, each located below this one."""
        made = Parts(self, builder)
        if 0 in self.shape():
            types = zip(map(shape_of, self.results), map(element_of, self.results), strict=True)
            empty = [np.zeros(shape, numpy_dtype(element)) for shape, element in types]
            return [made("empty", ConstantOp(each)) for each in empty]
        labels, lengths, chances = self.parts(made, made.wide(self.logs))
        return labels, lengths, made.cast("narrow", chances, element_of(self.logs))

    @abstractmethod
    def parts(self, made: Parts, logs: SSAValue) -> Sequence[SSAValue]:
        """Build the simpler operations for one sample at least. Returns one value per result.

        Args:
            logs: the logarithms, in at least f32.
        """


def _sampled(wanted: Wanted) -> list[TensorType[Attribute]]:
    """The types of random frames. A given operand of three axes is the logarithms."""
    random, first = wanted.random, wanted.first
    if first is None or len(shape_of(first)) != 3:
        floats = [e for e in wanted.elements if isinstance(e, AnyFloat) and e not in STORED]
        shape = [random.randint(1, 5), random.randint(1, 3), random.randint(1, 4)]
        first = tensor(shape, random.choice(floats or (f32,)))
    return [first, tensor(shape_of(first)[1:2], i32)]


@irdl_op_definition
class CtcGreedyOp(_DecodeOp):
    """The labels of the most likely alignment of each sample: the most likely class of each frame.

    Example: %2, %3, %4 = nn.ctc_greedy %0, %1 blank 0 : (tensor<9x2x5xf32>, tensor<2xi32>)
    -> (tensor<2x9xi32>, tensor<2xi32>, tensor<2xf32>)

    The results are the labels of each sample followed by -1, [samples, frames] of i32; their
    number, [samples] of i32; and the logarithm of the chance of the alignment, [samples]. Of
    classes with the same chance, the first one counts. A number of frames that is out of range is a
    fault of the run.
    """

    name = "nn.ctc_greedy"
    assembly_format = (
        "$logs `,` $frames `blank` $blank attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, logs: SSAValue, frames: SSAValue, *, blank: int = 0):
        super().__init__(logs, frames, {}, blank)

    def shape(self) -> Shape:
        """The samples."""
        return self.check()[1:2]

    @classmethod
    def sample(cls, wanted: Wanted) -> CtcGreedyOp:
        """Random frames."""
        types = _sampled(wanted)
        classes = max(shape_of(types[0])[2], 1)
        return cls(*Block(arg_types=types).args, blank=wanted.random.randrange(classes))

    def parts(self, made: Parts, logs: SSAValue) -> Sequence[SSAValue]:
        """Each label is written at the number of labels before it."""
        frames, samples, _ = self.check()
        blank = self.blank.value.data
        own = checked(made, "frames", self.frames, frames)
        best = made.several("best", SummarizeOp(logs, "argmax", [2]))
        chance, classes = (made("turned", TransposeOp(value, [1, 0])) for value in best)
        shape = (samples, frames)
        frame = made("frame", IotaOp(tensor(shape, i32), [0, 1]))
        runs = made("runs", GreaterOp(own, frame))
        before = made("before", PadOp(classes, [0, 1], [0, -1], value=blank))
        starts = made("starts", LogicalNotOp(made("same", EqualOp(classes, before))))
        none = made("blank", ConstantOp(np.array(blank, np.int32)))
        labelled = made("labelled", LogicalNotOp(made("blanks", EqualOp(classes, none))))
        kept = made("kept", LogicalAndOp(made("says", LogicalAndOp(starts, labelled)), runs))
        number = made("number", CastOp(kept, i32))
        place = made("place", ScanOp(number, "sum", 1, exclusive=True))
        # What is not kept is written behind the last column, and left out with it.
        away = made("away", ConstantOp(np.array(frames, np.int32)))
        place = made("to", SelectOp(kept, place, away))
        empty = made("empty", ConstantOp(np.array(NO_LABEL, np.int32)))
        table = made("table", ExpandOp(empty, (samples, frames + 1)))
        every = made("every", UpdateOp(classes, place, table, "last", 1))
        labels = made("labels", SliceOp(every, [0, 0], [1, 1], shape))
        lengths = made("lengths", ReduceOp(number, "sum", [1]))
        zero = made("zero", ConstantOp(np.array(0.0, numpy_dtype(element_of(logs)))))
        counted = made("counted", SelectOp(runs, chance, zero))
        return labels, lengths, made("chances", ReduceOp(counted, "sum", [1]))


@irdl_op_definition
class CtcBeamOp(_DecodeOp):
    """The most likely labels of each sample, by a search that keeps the most likely prefixes.

    Example: %2, %3, %4 = nn.ctc_beam %0, %1 blank 0 width 8 paths 2 : (tensor<9x2x5xf32>,
    tensor<2xi32>) -> (tensor<2x2x9xi32>, tensor<2x2xi32>, tensor<2x2xf32>)

    After each frame, the search keeps the prefixes with the largest chances, where the chance of a
    prefix is the sum over all of its alignments that the search has followed. So a search that is
    wide enough finds the chances that nn.ctc_loss has.

    The results are the labels of each path followed by -1, [samples, paths, frames] of i32; their
    number, [samples, paths] of i32; and the logarithm of the chance, [samples, paths]. Paths are
    listed from the largest chance to the smallest. Where fewer labels than paths are possible, the
    rest has no labels and a chance of 0.

    Of prefixes with the same chance, those come first that continue the better prefix of the frame
    before. Of those that continue the same one, the smaller label comes first, where the prefix
    itself counts as the blank. A number of frames that is out of range is a fault of the run.

    Attributes:
        width: the most prefixes that the search keeps, 1 or more.
        paths: how many of them are results, 1 to the width.
    """

    name = "nn.ctc_beam"
    width = prop_def(INTEGER)
    paths = prop_def(INTEGER)
    assembly_format = (
        "$logs `,` $frames `blank` $blank `width` $width `paths` $paths"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self, logs: SSAValue, frames: SSAValue, *, blank: int = 0, width: int = 16, paths: int = 1
    ):
        properties = {"width": integer(width), "paths": integer(paths)}
        super().__init__(logs, frames, properties, blank)

    def shape(self) -> Shape:
        """The samples and their paths."""
        _, samples, classes = self.check()
        width, paths = self.width.value.data, self.paths.value.data
        need_at_least("width", [width], 1)
        if width * classes > MOST_POSITIONS:
            raise Unmet(
                f"width {width} of {classes} classes; need at most {MOST_POSITIONS // classes}",
                "width",
            )
        if not 1 <= paths <= width:
            raise Unmet(f"{paths} paths of width {width}; need 1..{width}", "paths")
        return samples, paths

    @classmethod
    def sample(cls, wanted: Wanted) -> CtcBeamOp:
        """Random frames, and a search that may be wider than there are prefixes."""
        types, random = _sampled(wanted), wanted.random
        blank, width = random.randrange(max(shape_of(types[0])[2], 1)), random.randint(1, 4)
        args, paths = Block(arg_types=types).args, random.randint(1, width)
        return cls(*args, blank=blank, width=width, paths=paths)

    def parts(self, made: Parts, logs: SSAValue) -> Sequence[SSAValue]:
        """A loop over frames that carries the prefixes."""
        frames, samples, classes = self.check()
        own = checked(made, "frames", self.frames, frames)
        shape = (samples, self.width.value.data, classes, frames)
        search = _Search(logs, own, self.blank.value.data, shape)
        found = made.repeat("search", frames, search.begin(made), search.frame)
        return search.results(made, found, self.paths.value.data)


@dataclass
class _Prefixes:
    """The prefixes of samples, from the likeliest on. One without a chance is none.

    Attributes:
        labels: their labels, then NO_LABEL, [samples, prefixes, frames].
        lengths: the number of labels, [samples, prefixes].
        last: the last label of each, or the blank if it has none.
        blank: the logarithm of the chance of its alignments that end with a blank.
        label: that of those which end with its last label.
    """

    labels: SSAValue
    lengths: SSAValue
    last: SSAValue
    blank: SSAValue
    label: SSAValue

    @property
    def values(self) -> list[SSAValue]:
        """All fields in order."""
        return [self.labels, self.lengths, self.last, self.blank, self.label]


@dataclass
class _Search:
    """A search for likely prefixes, as steps of an operation.

    Attributes:
        logs: the logarithms of the chances, [frames, samples, classes].
        frames: the number of frames of each sample, [samples, 1].
        no_label: the class that is no label.
        sizes: the numbers of samples, prefixes, classes and frames.
    """

    logs: SSAValue
    frames: SSAValue
    no_label: int
    sizes: tuple[int, int, int, int]

    def begin(self, made: Parts) -> list[SSAValue]:
        """Before the first frame, the prefix without labels is the only one."""
        samples, width, _, frames = self.sizes
        shape = (samples, width)
        place = made("place", IotaOp(tensor(shape, i32), [0, 1]))
        first = made("first", EqualOp(place, _whole(made, 0)))
        sure, never = self._number(made, 0.0), self._number(made, NONE)
        return _Prefixes(
            made("labels", ExpandOp(_whole(made, NO_LABEL), (*shape, frames))),
            made("lengths", ExpandOp(_whole(made, 0), shape)),
            made("last", ExpandOp(_whole(made, self.no_label), shape)),
            made("sure", SelectOp(first, sure, never)),
            made("never", ExpandOp(never, shape)),
        ).values

    def frame(self, made: Parts, given: Sequence[SSAValue], number: SSAValue) -> Sequence[SSAValue]:
        """The prefixes after a frame. They do not change behind the frames of a sample."""
        old = _Prefixes(*given)
        new = self._next(made, old, self._row(made, number))
        runs = made("runs", GreaterOp(self.frames, number))
        each = _column(made, runs)
        return [
            made("kept", SelectOp(each if i == 0 else runs, after, before))
            for i, (after, before) in enumerate(zip(new.values, given, strict=True))
        ]

    def _next(self, made: Parts, old: _Prefixes, row: SSAValue) -> _Prefixes:
        """The likeliest prefixes that continue others.

        A candidate is a prefix and a class: the prefix with the label added, or the prefix itself,
        in the place of the blank. Both may have the same labels as another prefix of before, whose
        last label was added now. The candidate that keeps this other prefix then has the chances of
        both.
        """
        samples, width, classes, _ = self.sizes
        total = self._sum(made, old.blank, old.label)
        own = made("own_chance", GatherAlongOp(row, old.last, 1))
        extends = self._extends(made, old, total)
        never, blank = self._number(made, NONE), _whole(made, self.no_label)
        # A label that repeats the last one of a prefix is another label only after a blank.
        last, ends_blank, both = (_column(made, v) for v in (old.last, old.blank, total))
        its_last = _row(made, old.last)
        repeats = made("repeats", EqualOp(last, its_last))
        before = made("before", SelectOp(repeats, ends_blank, both))
        reaching = made("reaching", SelectOp(extends, before, never))
        reached = made("reached", AddOp(made("any", ReduceOp(reaching, "max", [1])), own))
        stays = self._sum(made, made("says", AddOp(old.label, own)), reached)
        of_blank = SliceOp(row, [0, self.no_label], [1, 1], [samples, 1])
        pauses = made("pauses", AddOp(total, made("of_blank", of_blank)))
        keeps = _column(made, self._sum(made, pauses, stays))
        label = made("class", IotaOp(tensor((1, 1, classes), i32), [0, 0, 1]))
        again = made("again", EqualOp(last, label))
        from_ = made("from", SelectOp(again, ends_blank, both))
        added = made("added", AddOp(from_, _row(made, row)))
        taken = made("taken", SelectOp(extends, its_last, blank))
        barred = made("barred", ExpandOp(never, (samples, width, width)))
        added = made("allowed", UpdateOp(barred, taken, added, "last", 2))
        is_kept = made("is_kept", EqualOp(label, blank))
        scores = made("scores", SelectOp(is_kept, keeps, added))
        return self._best(made, old, scores, pauses, stays)

    def _best(
        self, made: Parts, old: _Prefixes, scores: SSAValue, pauses: SSAValue, stays: SSAValue
    ) -> _Prefixes:
        """The prefixes of the best candidates.

        Args:
            scores: of all candidates, [samples, prefixes, classes].
            pauses: the logarithm of the chance that a prefix stays, and a blank comes.
            stays: the same for its last label.
        """
        samples, width, classes, frames = self.sizes
        flat = made("flat", ReshapeOp(scores, (samples, width * classes)))
        best = self._largest(made, flat)
        source = made("source", DivOp(best, _whole(made, classes)))
        label = made("label", SubOp(best, made("first", ScaleOp(source, classes))))
        is_kept = made("is_kept", EqualOp(label, _whole(made, self.no_label)))
        score = made("score", GatherAlongOp(flat, best, 1))
        lengths, last, blank, said = (
            made("of_source", GatherAlongOp(each, source, 1))
            for each in (old.lengths, old.last, pauses, stays)
        )
        each = made("each_label", ExpandOp(_column(made, source), (samples, width, frames)))
        labels = made("labels", GatherAlongOp(old.labels, each, 1))
        place = made("place", IotaOp(tensor((1, 1, frames), i32), [0, 0, 1]))
        longer = made("longer", ShiftOp(lengths, 1))
        never, nowhere = self._number(made, NONE), _whole(made, NO_LABEL)
        end = made("end", SelectOp(is_kept, nowhere, lengths))
        at_end = made("at_end", EqualOp(place, _column(made, end)))
        return _Prefixes(
            made("with_label", SelectOp(at_end, _column(made, label), labels)),
            made("length", SelectOp(is_kept, lengths, longer)),
            made("last", SelectOp(is_kept, last, label)),
            made("ends_blank", SelectOp(is_kept, blank, never)),
            made("ends_label", SelectOp(is_kept, said, score)),
        )

    def _largest(self, made: Parts, given: SSAValue) -> SSAValue:
        """The indices of the largest scores [samples, candidates] in order, one per prefix. Of
        equal scores, those that come first.

        Blocks of scores are sorted, and of each so many are left as there are prefixes, until one
        sort is short enough: short sorts take far fewer cycles than a long one. Neither a sort nor
        the order of the blocks changes the order of equal scores.
        """
        samples, width = self.sizes[:2]
        scores, size, count = given, BLOCK * width, shape_of(given)[1]
        index = made("index", IotaOp(tensor((samples, count), i32), [0, 1]))
        while count > WHOLE * width:
            blocks = ceil(count / size)
            rest = [0, blocks * size - count]
            shape, least = (samples, blocks, size), [0, 0, 0]
            pairs = ((scores, NONE), (index, 0))
            scores, index = (
                made("block", ReshapeOp(made("fill", PadOp(each, [0, 0], rest, value=v)), shape))
                for each, v in pairs
            )
            order = made("order", SortIndicesOp(scores, 2, descending=True))
            most = made("most", SliceOp(order, least, [1, 1, 1], [samples, blocks, width]))
            count = blocks * width
            scores, index = (
                made("left", ReshapeOp(made("of", GatherAlongOp(each, most, 2)), (samples, count)))
                for each in (scores, index)
            )
        order = made("order", SortIndicesOp(scores, 1, descending=True))
        most = made("most", SliceOp(order, [0, 0], [1, 1], [samples, width]))
        # Behind no rounds, a place is the index itself.
        whole = count == shape_of(given)[1]
        return most if whole else made("best", GatherAlongOp(index, most, 1))

    def _extends(self, made: Parts, old: _Prefixes, total: SSAValue) -> SSAValue:
        """Whether prefix i with another label is prefix j, [samples, i, j].

        Prefixes differ, so each is reached from one other at most. One that has no chance is no
        prefix, and may look like another.
        """
        samples, width, _, frames = self.sizes
        n, i, j = (dim(*each) for each in zip("nij", (samples, width, width), strict=True))
        t = dim("t", frames, "reduction")
        place = made("place", IotaOp(tensor((1, 1, frames), i32), [0, 0, 1]))
        kept = _column(made, made("kept", ShiftOp(old.lengths, -1)))
        cut = made("cut", GreaterEqualOp(place, kept))
        shorter = made("shorter", SelectOp(cut, _whole(made, NO_LABEL), old.labels))
        pair = [at(old.labels, n, i, t), at(shorter, n, j, t)]
        same = made("same", compute("equal", pair, [n, i, j], combiner="min"))
        some = made("some", GreaterOp(old.lengths, _whole(made, 0)))
        lives = made("lives", GreaterOp(total, self._number(made, NONE)))
        there = _row(made, made("there", LogicalAndOp(some, lives)))
        return made("extends", LogicalAndOp(same, there))

    def results(
        self, made: Parts, found: Sequence[SSAValue], paths: int
    ) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Labels, their numbers and the logarithms of chances of the first prefixes."""
        samples, _, _, frames = self.sizes
        labels = made("first_labels", SliceOp(found[0], [0] * 3, [1] * 3, [samples, paths, frames]))
        lengths, blank, label = (
            made("first", SliceOp(found[i], [0, 0], [1, 1], [samples, paths])) for i in (1, 3, 4)
        )
        chances = self._sum(made, blank, label)
        lives = made("lives", GreaterOp(chances, self._number(made, NONE)))
        each = _column(made, lives)
        return (
            made("labels", SelectOp(each, labels, _whole(made, NO_LABEL))),
            made("lengths", SelectOp(lives, lengths, _whole(made, 0))),
            chances,
        )

    def _row(self, made: Parts, number: SSAValue) -> SSAValue:
        """The logarithms of a frame, [samples, classes]."""
        index = made("index", ReshapeOp(number, (1,)))
        samples, _, classes, _ = self.sizes
        return made("row", ReshapeOp(made("of", GatherOp(self.logs, index, 0)), (samples, classes)))

    def _number(self, made: Parts, value: float) -> SSAValue:
        """A number in the type of the logarithms."""
        return made("number", ConstantOp(np.array(value, numpy_dtype(element_of(self.logs)))))

    def _sum(self, made: Parts, a: SSAValue, b: SSAValue) -> SSAValue:
        """The logarithm of the sum of two chances, from their logarithms."""
        larger = made("larger", MaxOp(a, b))
        base = made("base", MaxOp(larger, self._number(made, LEAST)))
        powers = [made("power", ExpOp(made("centre", SubOp(each, base)))) for each in (a, b)]
        log = made("log", LogOp(made("total", AddOp(*powers))))
        return made("logarithm", AddOp(log, base))


def _whole(made: Parts, value: int) -> SSAValue:
    """A whole number, as i32."""
    return made("whole", ConstantOp(np.array(value, np.int32)))


def _column(made: Parts, value: SSAValue) -> SSAValue:
    """A matrix per sample with one column, from one row of numbers per sample."""
    return made("column", ReshapeOp(value, (*shape_of(value), 1)))


def _row(made: Parts, value: SSAValue) -> SSAValue:
    """A matrix per sample with one row, from one row of numbers per sample."""
    samples, count = shape_of(value)
    return made("as_row", ReshapeOp(value, (samples, 1, count)))
