"""The attributes that all levels share: blobs, spaces, bodies, chains, layouts and plans.

Spaces and layouts are printed in this form:

    #abele.space<[y = 55, ky = 11 reduction] (4 * y + ky - 2 fill) of [224] -> (y) of [55]>
    #abele.layout<[6 by 6, 55 by 55, 11] (4 * d1 + d2 - 2 fill) of [224] at 0>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast, get_args

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import irdl_attr_definition

from ..ir.blob import Blob
from ..ir.geometry.chip_groups import ChipGroups, ChipRun, runs_of
from ..ir.geometry.grid import Cut
from ..ir.geometry.layout import Layout, placement_order, raw_layout
from ..ir.geometry.space import (
    AccessMap,
    AxisMap,
    Dim,
    Division,
    Kind,
    Outside,
    Position,
    Relation,
    Rule,
    Space,
    rule_text,
)
from ..ir.geometry.tiles import MOST_TILES, Tiles, check_spread
from ..ir.support.hash_once import hash_once
from ..ir.support.number_formats import Overflow
from ..ir.support.same_number import same_number
from ..ir.upstream import AttrParser, VerifyException
from .along import Along
from .blob_attr import BlobAttr
from .codelets import is_codelet
from .message_order import MessageOrderAttr
from .numbers import number_text, parse_number
from .structured import FURTHER, Body, Narrow, Stage
from .table_text import parse_table
from .value_attr import ValueAttr

T = TypeVar("T")


# Text of integers, numbers and names


def _parse_integer(parser: AttrParser) -> int:
    value = parser.parse_integer(allow_boolean=False, allow_negative=True)
    if not -(1 << 63) <= value < 1 << 63:
        parser.raise_error(f"integer of {value.bit_length()} bits; need at most 63 and a sign")
    return value


def _parse_tile(parser: AttrParser) -> int:
    """Parse an optional `at 3`, the number of a layout's or a plan's first tile; 0 if it is
    absent."""
    if parser.parse_optional_keyword("at") is None:
        return 0
    tile = _parse_integer(parser)
    if not 0 <= tile <= MOST_TILES:
        parser.raise_error(f"at {tile}; need 0 to {MOST_TILES}")
    return tile


def _parse_apart(parser: AttrParser) -> int:
    """Parse an optional `apart 1472`, the distance in tiles from a chip to the next; 0 if it is
    absent."""
    return _parse_integer(parser) if parser.parse_optional_keyword("apart") else 0


def _parse_list(parser: AttrParser, item: Callable[[], T]) -> tuple[T, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, item))


def _parse_integers(parser: AttrParser) -> tuple[int, ...]:
    return _parse_list(parser, lambda: _parse_integer(parser))


def _print_integers(values: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


# Text of access maps


def _print_axis(axis: AxisMap, names: Sequence[str]) -> str:
    text = ""
    for d, a in axis.terms:
        term = names[d] if abs(a) == 1 else f"{abs(a)} * {names[d]}"
        text += (f" {'-' if a < 0 else '+'} " if text else "-" if a < 0 else "") + term
    if axis.offset or not text:
        sign = "-" if axis.offset < 0 else "+"
        text = f"{text} {sign} {abs(axis.offset)}" if text else str(axis.offset)
    if axis.divisor > 1:
        text += f" {axis.division}div {axis.divisor}"
    return text if axis.outside == "none" else f"{text} {rule_text(axis.outside)}"


def _print_access(access: AccessMap, names: Sequence[str]) -> str:
    axes = ", ".join(_print_axis(axis, names) for axis in access.axes)
    text = f"({axes}) of {_print_integers(access.shape)}"
    if same_number(access.fill, 0.0):
        return text
    return f"{text} pad {number_text(access.fill)}"


def parse_axis(parser: AttrParser, names: dict[str, int]) -> AxisMap:
    """Parse an axis of a map: `2 * y + k - 1 fill`, `j + 4 table [3, -1, 0]`. The axis has no size
    yet.

    Args:
        names: the dimensions, numbered.
    """
    terms: list[tuple[int, int]] = []
    offset = 0
    sign = -1 if parser.parse_optional_punctuation("-") else 1
    while True:
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if number is None or parser.parse_optional_punctuation("*") is not None:
            name = parser.parse_identifier("a dimension")
            if name not in names:
                parser.raise_error(f"no dimension {name}; there are {', '.join(names) or 'none'}")
            terms.append((names[name], sign * (1 if number is None else number)))
        else:
            offset += sign * number
        if parser.parse_optional_punctuation("+") is not None:
            sign = 1
        elif parser.parse_optional_punctuation("-") is not None:
            sign = -1
        else:
            break
    divisor, division = 1, "floor"
    for kind in get_args(Division):
        if parser.parse_optional_keyword(f"{kind}div") is not None:
            divisor, division = _parse_integer(parser), kind
    return AxisMap(0, tuple(terms), offset, divisor, cast(Division, division), _parse_rule(parser))


def _parse_rule(parser: AttrParser) -> Rule:
    """Parse an optional rule for indices outside a tensor."""
    if parser.parse_optional_keyword("table") is not None:
        return parse_table(parser)
    for word in get_args(Outside):
        if parser.parse_optional_keyword(word) is not None:
            return cast(Outside, word)
    return "none"


def _parse_access(parser: AttrParser, names: dict[str, int]) -> AccessMap:
    axes = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parse_axis(parser, names)
    )
    parser.parse_keyword("of")
    shape = _parse_integers(parser)
    if len(shape) != len(axes):
        parser.raise_error(f"{len(axes)} axes of a shape of {len(shape)}")
    fill = parse_number(parser) if parser.parse_optional_keyword("pad") is not None else 0.0
    return AccessMap(
        tuple(
            AxisMap(n, a.terms, a.offset, a.divisor, a.division, a.outside)
            for n, a in zip(shape, axes, strict=True)
        ),
        fill,
    )


def _print_dim(dim: Dim) -> str:
    return f"{dim.name} = {dim.size}" + ("" if dim.kind == "parallel" else f" {dim.kind}")


@irdl_attr_definition
class SpaceAttr(ValueAttr[Space]):
    """An iteration space.

    Relations (`where`) follow the results: only points at which they hold contribute. Positions
    (`at`) come last. A position is the place of an element in a tensor, in row-major order, and
    points outside the tensor contribute nothing. With `as operand 1`, the body reads the position
    in the place of that operand. With `from`, counting begins at another number than 0.

    Example: #abele.space<[m = 8, k = 4 reduction] (m, k) of [8, 4], (k) of [4] -> (m) of [8]>
    #abele.space<[j = 3, r = 8 reduction] (r) of [8], (j) of [3] -> (j) of [3]
    where operand 1 is (r) of [8]>
    #abele.space<[m = 8, k = 4 reduction] (m, k) of [8, 4] -> (m) of [8], (m) of [8] at (k) of [4]>
    #abele.space<[m = 8, n = 4] (m, n) of [8, 4] -> (m, n) of [8, 4]
    at (m - n + 3) of [11] as operand 1 from -3>
    """

    name = "abele.space"
    alias = "space"

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The tables of its maps, which the text names by their digest."""
        return tuple(each.blob for each in self.data.tables)

    @classmethod
    def parse_value(cls, parser: AttrParser) -> Space:
        """Parse the text between the brackets."""

        def dim() -> Dim:
            name = parser.parse_identifier("a dimension's name")
            parser.parse_punctuation("=")
            size = _parse_integer(parser)
            kind = next(
                (k for k in get_args(Kind) if parser.parse_optional_keyword(k) is not None),
                "parallel",
            )
            return Dim(name, size, cast(Kind, kind))

        dims = _parse_list(parser, dim)
        names = {d.name: i for i, d in enumerate(dims)}
        if len(names) != len(dims):
            parser.raise_error("two dimensions have one name")
        operands: list[AccessMap] = []
        while parser.parse_optional_punctuation("->") is None:
            if operands:
                parser.parse_punctuation(",")
            operands.append(_parse_access(parser, names))
            if len(operands) > 64:
                parser.raise_error("more than 64 operands")
        results = [_parse_access(parser, names)]
        while parser.parse_optional_punctuation(",") is not None:
            results.append(_parse_access(parser, names))
        relations: list[Relation] = []
        while parser.parse_optional_keyword("where") is not None:
            parser.parse_keyword("operand")
            operand = _parse_integer(parser)
            parser.parse_keyword("is")
            access = _parse_access(parser, names)
            if len(access.axes) != 1:
                parser.raise_error(f"a relation of {len(access.axes)} axes; need one")
            relations.append(Relation(access.axes[0], operand))
        positions: list[Position] = []
        while parser.parse_optional_keyword("at") is not None:
            access = _parse_access(parser, names)
            is_operand = parser.parse_optional_keyword("as") is not None
            if is_operand:
                parser.parse_keyword("operand")
            operand = _parse_integer(parser) if is_operand else -1
            first = _parse_integer(parser) if parser.parse_optional_keyword("from") else 0
            positions.append(Position(access, operand, first))
        return Space(dims, tuple(operands), tuple(results), tuple(relations), tuple(positions))

    def text(self) -> str:
        """The text between the brackets."""
        names = [d.name for d in self.data.dims]
        dims = ", ".join(map(_print_dim, self.data.dims))
        operands = ", ".join(_print_access(a, names) for a in self.data.operands)
        results = ", ".join(_print_access(a, names) for a in self.data.results)
        relations = "".join(
            f" where operand {r.operand} is {_print_access(AccessMap((r.axis,)), names)}"
            for r in self.data.relations
        )
        positions = "".join(
            f" at {_print_access(each.access, names)}"
            + (f" as operand {each.operand}" if each.is_coordinate else "")
            + (f" from {each.first}" if each.first else "")
            for each in self.data.positions
        )
        reads = f"{operands} " if operands else ""
        return f"[{dims}] {reads}-> {results}{relations}{positions}"


@irdl_attr_definition
class LayoutAttr(ValueAttr[Layout]):
    """Which block of a tensor lives on which tile.

    Example: #abele.layout<[96 by 6, 55 by 11 grain 2] (d0, d1) of [96, 55] at 3>
    """

    name = "abele.layout"
    alias = "layout"

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The tables of its maps, which the text names by their digest."""
        return tuple(each.blob for each in self.data.tables)

    @classmethod
    def parse_value(cls, parser: AttrParser) -> Layout:
        """Parse the text between the brackets."""

        def cut() -> Cut:
            size = _parse_integer(parser)
            parts = _parse_integer(parser) if parser.parse_optional_keyword("by") else 1
            grain = _parse_integer(parser) if parser.parse_optional_keyword("grain") else 1
            chips = _parse_integer(parser) if parser.parse_optional_keyword("across") else 1
            return Cut(size, parts, grain, chips)

        grid = _parse_list(parser, cut)
        access = _parse_access(parser, {f"d{i}": i for i in range(len(grid))})
        layout = Layout(grid, access, _parse_tile(parser), _parse_apart(parser))
        check_spread(layout.parts, layout.tiles.chips, layout.apart)
        layout.check_bounds()
        return layout

    def text(self) -> str:
        """The text between the brackets."""
        layout = self.data
        cuts = [
            str(c.size)
            + (f" by {c.parts}" if c.parts > 1 else "")
            + (f" grain {c.grain}" if c.grain > 1 else "")
            + (f" across {c.chips}" if c.chips > 1 else "")
            for c in layout.grid
        ]
        names = [f"d{i}" for i in range(len(layout.grid))]
        at = f" at {layout.first_tile}" if layout.first_tile else ""
        at += f" apart {layout.apart}" if layout.apart else ""
        return f"[{', '.join(cuts)}] {_print_access(layout.access, names)}{at}"


def _parse_parameters(parser: AttrParser) -> tuple[float, ...]:
    values = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_number(parser)
    )
    return tuple(values or ())


def _print_parameters(values: Sequence[float]) -> str:
    return " [" + ", ".join(map(number_text, values)) + "]" if values else ""


def parse_stages(
    parser: AttrParser, delimiter: AttrParser.Delimiter = AttrParser.Delimiter.NONE
) -> tuple[Stage, ...]:
    """Parse the stages of a chain: add, sub at 1, clip [0.0, 6.0], identity as i8, mul(v0, v3),
    add(v1, in).

    v0 is the value that the stages begin with, v1 the value of the first stage, and `in` a further
    operand.

    Raises ParseError for a stage that no chain can have, or for no stage at all.
    """

    def read() -> int:
        name = parser.parse_identifier("v0, v1, ..., or in")
        if name == "in":
            return FURTHER
        if name[:1] != "v" or not name[1:].isdecimal() or len(name) > 9:
            parser.raise_error(f"{name}: need v0, v1, ..., or in")
        return int(name[1:])

    def stage() -> Stage:
        function = parser.parse_identifier("a scalar function")
        reads = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, read)
        at = _parse_integer(parser) if parser.parse_optional_keyword("at") else 0
        is_cast = parser.parse_optional_keyword("as") is not None
        element = parser.parse_identifier("an element type") if is_cast else ""
        parameters = _parse_parameters(parser)
        try:
            return Stage(function, parameters, at, tuple(reads or ()), element)
        except ValueError as error:
            parser.raise_error(str(error))

    stages = tuple(parser.parse_comma_separated_list(delimiter, stage))
    if not stages:
        parser.raise_error("a chain without functions; leave it out")
    return stages


def _reads_text(reads: Sequence[int]) -> str:
    names = ", ".join("in" if k == FURTHER else f"v{k}" for k in reads)
    return f"({names})" if reads else ""


def stages_text(stages: Sequence[Stage]) -> str:
    """The text that parse_stages reads."""
    return ", ".join(
        stage.function
        + _reads_text(stage.reads)
        + (f" at {stage.at}" if stage.at else "")
        + (f" as {stage.element}" if stage.element else "")
        + _print_parameters(stage.parameters)
        for stage in stages
    )


def verify_chain(body: Body, element: Attribute) -> None:
    """Check that the result of a chain can have this element type. Raises VerifyException."""
    if not body.then:
        return
    if body.function == "bitcast":
        raise VerifyException(
            f"chain {stages_text(body.then)} of a bitcast, whose bits have the type of the result; "
            "need an operation of its own for each"
        )
    made = body.chained_elements[-1]
    if made not in ("?", "" if isinstance(element, AnyFloat) else str(element)):
        raise VerifyException(
            f"chain {stages_text(body.then)} on elements {element}; need {made or 'floats'}"
        )


def _parse_along(parser: AttrParser) -> Along | None:
    """Parse an optional scan, sort or codelet after a function: `along sum reverse exclusive`,
    `along heat.step [0.1]`; None without one.
    """
    if parser.parse_optional_keyword("along") is None:
        return None
    name = parser.parse_identifier("a scan, a sort or a codelet")
    reverse = parser.parse_optional_keyword("reverse") is not None
    exclusive = parser.parse_optional_keyword("exclusive") is not None
    parameters = _parse_parameters(parser) if is_codelet(name) else ()
    try:
        return Along(name, reverse, exclusive, parameters)
    except ValueError as error:
        parser.raise_error(str(error))


def _along_text(along: Along) -> str:
    flags = " reverse" * along.reverse + " exclusive" * along.exclusive
    return f" along {along.name}{flags}{_print_parameters(along.parameters)}"


def _parse_narrow(parser: AttrParser) -> Narrow | None:
    """Parse how a sum is merged in the type of its operands: `narrow`, `narrow 16 clip`; None
    without it.
    """
    if parser.parse_optional_keyword("narrow") is None:
        return None
    terms = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    rule = parser.parse_optional_keyword("clip") or parser.parse_optional_keyword("nan")
    overflow = Overflow.INFINITY if rule is None else Overflow[rule.upper()]
    try:
        return Narrow(1 if terms is None else terms, overflow)
    except ValueError as error:
        parser.raise_error(str(error))


def _narrow_text(narrow: Narrow) -> str:
    terms = "" if narrow.terms == 1 else f" {narrow.terms}"
    rule = "" if narrow.overflow is Overflow.INFINITY else f" {narrow.overflow.name.lower()}"
    return f" narrow{terms}{rule}"


@irdl_attr_definition
class BodyAttr(ValueAttr[Body]):
    """What happens at each point of an iteration space.

    Example: #abele.body<mul sum>, #abele.body<leaky_relu [0.01]>, #abele.body<mul sum then add>,
    #abele.body<mul sum then sigmoid, mul(v0, v1)>, #abele.body<mul sum narrow 16 clip>,
    #abele.body<identity along sum reverse exclusive>, #abele.body<identity argmax>,
    #abele.body<members moments resumes unfinished>
    """

    name = "abele.body"
    alias = "body"

    @classmethod
    def parse_value(cls, parser: AttrParser) -> Body:
        """Parse the text between the brackets."""
        function = parser.parse_identifier("a scalar function")
        chained = parser.parse_optional_keyword("then")
        along = None if chained else _parse_along(parser)
        combiner = None if chained or along else parser.parse_optional_identifier()
        parameters = () if chained else _parse_parameters(parser)
        narrow = None if chained else _parse_narrow(parser)
        resumes, unfinished = (
            not chained and parser.parse_optional_keyword(word) is not None
            for word in ("resumes", "unfinished")
        )
        chained = chained or parser.parse_optional_keyword("then")
        stages = parse_stages(parser) if chained else ()
        return Body(function, combiner, parameters, stages, narrow, along, resumes, unfinished)

    def text(self) -> str:
        """The text between the brackets."""
        body = self.data
        text = body.function + (f" {body.combiner}" if body.combiner else "")
        text += _along_text(body.along) if body.along else ""
        text += _print_parameters(body.parameters)
        text += "" if body.narrow is None else _narrow_text(body.narrow)
        text += " resumes" * body.resumes + " unfinished" * body.unfinished
        return f"{text} then {stages_text(body.then)}" if body.then else text


MOST_PARTS = 1 << 31
"""Parts of one dimension. Prices multiply them with other counts, in 64-bit integers."""


@hash_once
@dataclass(frozen=True)
class Plan:
    """The planner's decisions for one operation.

    Attributes:
        split: parts of each dimension of its space. The parts of a reduction dimension become
            partials. A movement is planned over the axes of its result.
        order: the dimensions by which cells are numbered over the tiles, slowest first; dimensions
            that are left out follow.
        first_tile: the tile of cell 0.
        method: how the codelet works, a key of its price table.
        workers: parts of a cell's dimensions over the worker threads; () for a supervisor codelet,
            which is one vertex per cell.
        combine: the plan of the compute that merges partials, over the result's axes; None if no
            reduction is split.
        steps: parts of each dimension in time, one after another; () for one step.
        ring: for each dimension, the parallel dimension around whose tiles its steps rotate, so
            that no two of these tiles hold the same part; -1 for none, () if no dimension rotates.
        across: the chips over which the parts of each dimension are spread; () for one chip.
        apart: the distance in tiles from a chip to the next; 0 for one chip.
    """

    split: tuple[int, ...]
    order: tuple[int, ...] = ()
    first_tile: int = 0
    method: str = ""
    workers: tuple[int, ...] = ()
    combine: Plan | None = None
    steps: tuple[int, ...] = ()
    ring: tuple[int, ...] = ()
    across: tuple[int, ...] = ()
    apart: int = 0

    @cached_property
    def tiles(self) -> Tiles:
        """The tiles that hold the cells."""
        order = placement_order(len(self.split), self.order)
        chips = tuple(self.across[d] for d in order) if self.across else ()
        return Tiles(self.first_tile, tuple(self.split[d] for d in order), chips, self.apart)

    @property
    def stacked(self) -> Plan:
        """The same cells, with cell c on tile c."""
        if not (self.first_tile or self.across):
            return self
        return replace(self, first_tile=0, across=(), apart=0)

    @property
    def cells(self) -> Plan:
        """The plan reduced to what decides where the cells of a step lie."""
        if not (self.method or self.workers or self.combine):
            return self
        return replace(self, method="", workers=(), combine=None)

    def layout(self, dims: tuple[Dim, ...], access: AccessMap) -> Layout:
        """The layout of an operand or result, with every dimension of the space kept."""
        return raw_layout(
            dims,
            access,
            self.split,
            self.order,
            self.first_tile,
            across=self.across,
            apart=self.apart,
        )

    def __post_init__(self) -> None:
        for what, parts in (
            ("split", self.split),
            ("workers", self.workers),
            ("steps", self.steps),
        ):
            if not parts:
                continue
            if min(parts) < 1:
                raise ValueError(f"{what} {list(parts)}; need 1 or more parts of each dimension")
            if max(parts) > MOST_PARTS:
                raise ValueError(f"{what} {list(parts)}; need at most {MOST_PARTS} parts")
        if min(self.order, default=0) < 0:
            raise ValueError(f"order {list(self.order)}; need 0 or more")
        if not 0 <= self.first_tile <= MOST_TILES:
            raise ValueError(f"at {self.first_tile}; need 0 to {MOST_TILES}")
        check_spread(self.split, self.across, self.apart)


@irdl_attr_definition
class PlanAttr(ValueAttr[Plan]):
    """Decisions for one operation.

    Example: #abele.plan<split [6, 55, 1] order [1, 0] at 8 method amp workers [1, 6, 1]>
    #abele.plan<split [6, 4, 1] steps [1, 1, 8] ring [-1, -1, 1]>
    """

    name = "abele.plan"
    alias = "plan"

    @classmethod
    def parse_value(cls, parser: AttrParser) -> Plan:
        """Parse the text between the brackets."""
        parser.parse_keyword("split")
        split = _parse_integers(parser)
        order = _parse_integers(parser) if parser.parse_optional_keyword("order") else ()
        first = _parse_tile(parser)
        method = parser.parse_identifier() if parser.parse_optional_keyword("method") else ""
        workers = _parse_integers(parser) if parser.parse_optional_keyword("workers") else ()
        steps = _parse_integers(parser) if parser.parse_optional_keyword("steps") else ()
        ring = _parse_integers(parser) if parser.parse_optional_keyword("ring") else ()
        across = _parse_integers(parser) if parser.parse_optional_keyword("across") else ()
        apart = _parse_apart(parser)
        combine = cls.parse_value(parser) if parser.parse_optional_keyword("combine") else None
        return Plan(split, order, first, method, workers, combine, steps, ring, across, apart)

    def text(self) -> str:
        """The text between the brackets."""

        def plan(p: Plan) -> str:
            text = f"split {_print_integers(p.split)}"
            text += f" order {_print_integers(p.order)}" if p.order else ""
            text += f" at {p.first_tile}" if p.first_tile else ""
            text += f" method {p.method}" if p.method else ""
            text += f" workers {_print_integers(p.workers)}" if p.workers else ""
            text += f" steps {_print_integers(p.steps)}" if p.steps else ""
            text += f" ring {_print_integers(p.ring)}" if p.ring else ""
            text += f" across {_print_integers(p.across)} apart {p.apart}" if p.across else ""
            return text + (f" combine {plan(p.combine)}" if p.combine else "")

        return plan(self.data)


def _parse_range(parser: AttrParser) -> tuple[int, int, int]:
    first = _parse_integer(parser)
    if parser.parse_optional_keyword("to") is None:
        return first, first, 1
    last = _parse_integer(parser)
    return first, last, _parse_integer(parser) if parser.parse_optional_keyword("by") else 1


def _parse_chip_run(parser: AttrParser) -> ChipRun:
    ranges = _parse_list(parser, lambda: _parse_range(parser))
    if parser.parse_optional_keyword("times") is None:
        return ChipRun(ranges)
    times = _parse_integer(parser)
    parser.parse_keyword("apart")
    return ChipRun(ranges, times, _parse_integer(parser))


def _range_text(first: int, last: int, step: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {last}" + (f" by {step}" if step > 1 else "")


def _chip_run_text(run: ChipRun) -> str:
    text = "[" + ", ".join(_range_text(*each) for each in run.ranges) + "]"
    return text if run.times == 1 else f"{text} times {run.times} apart {run.apart}"


@irdl_attr_definition
class ChipGroupsAttr(ValueAttr[ChipGroups]):
    """Groups of chips: those of a group meet.

    Equal groups at equal distances are written once, so that a text does not grow with replicas.

    Example: #abele.chip_groups<[0, 1]>, #abele.chip_groups<[0 to 3] times 16 apart 4>,
    #abele.chip_groups<[0 to 12 by 4], [5, 6]>
    """

    name = "abele.chip_groups"
    alias = "chips"

    @classmethod
    def parse_value(cls, parser: AttrParser) -> ChipGroups:
        """Parse the text between the brackets."""
        runs = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: _parse_chip_run(parser)
        )
        return ChipGroups.of_runs(runs)

    def text(self) -> str:
        """The text between the brackets."""
        return ", ".join(map(_chip_run_text, runs_of(self.data)))


Abele = Dialect(
    "abele",
    [],
    [BlobAttr, SpaceAttr, LayoutAttr, BodyAttr, PlanAttr, ChipGroupsAttr, MessageOrderAttr],
)
