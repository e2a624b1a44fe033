"""The operation for any space and body, which means exactly these two."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import AnyFloat, IntegerType, TensorType, f32, i1, i32
from xdsl.ir import Attribute, Block, OpResult, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure

from ...ir.geometry.space import AccessMap, Position, Relation, Space
from ...ir.support.number_kinds import bit_width, is_whole
from ...ir.upstream import VerifyException
from ...ir.xdsl.cached_by_form import cached_by_form
from ..abele import BodyAttr, SpaceAttr, verify_chain
from ..along import Along
from ..combiners import MEMBERS
from ..coordinates import verify_coordinate_dtypes
from ..dtypes import STORED, numpy_dtype
from ..scalar_functions import ARITHMETIC, FUNCTIONS, PACKED
from ..structured import Body, Narrow, Stage, Structure
from ..verify_structure import verify_results_cover, verify_structure
from .base import (
    MOST_POSITIONS,
    NOT_YET,
    Shape,
    element_of,
    number,
    same_element,
    shape_of,
    tensor,
    tensor_of,
    wide_element,
)
from .chain import Followed
from .contraction import WIDEST_FACTOR_BITS
from .elementwise import ELEMENTWISE, ElementwiseOp
from .index import At, Index, dims_of
from .random_structure import random_structure
from .wanted import Wanted


@irdl_op_definition
class ComputeOp(IRDLOperation, Followed):
    """Any iteration space with any body: what no other operation of nn is.

    Example: %2 = nn.compute(%x, %w)
    space <[y = 3, k = 2 reduction] (2 * y + k - 1 fill) of [5], (k) of [2] -> (y) of [3]>
    body <mul sum> : (tensor<5xf32>, tensor<2xf32>) -> tensor<3xf32>

    A tensor may be viewed in another shape, in which its axes are split into several.

    Attributes:
        inputs: one for each operand of the space, in the order that the body takes them.
        space: where each point reads and writes.
        body: what happens at each point.
        made: one for each result of the space.
    """

    name = "nn.compute"
    inputs = var_operand_def(TensorType)
    space = prop_def(SpaceAttr)
    body = prop_def(BodyAttr)
    made = var_result_def(TensorType)
    assembly_format = (
        "`(` $inputs `)` `space` $space `body` $body attr-dict `:` functional-type($inputs, $made)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        structure: Structure,
        *types: TensorType[Attribute],
        elements: Sequence[Attribute] = (),
    ):
        """Build the operation.

        Raises VerifyException if the operands do not fit the structure.

        Args:
            types: of the results; they are inferred if none is given.
            elements: their element types, if the shapes alone are to be inferred.
        """
        count = structure.body.result_count
        super().__init__(
            operands=[inputs],
            properties={"space": SpaceAttr(structure.space), "body": BodyAttr(structure.body)},
            result_types=[types or [NOT_YET] * count],
        )
        try:
            if not types:
                found = self._inferred()
                kinds = elements or [each.element_type for each in found]
                for result, type_, kind in zip(self.made, found, kinds, strict=True):
                    result._type = tensor(shape_of(type_), kind)  # pyright: ignore[reportPrivateUsage]
            self.verify_()
        except VerifyException:
            self.drop_all_references()
            raise

    @property
    def result(self) -> OpResult:
        """The first result."""
        return self.results[0]

    @property
    def is_of_one_type(self) -> bool:
        """Whether all operands that are numbers have elements of the result's type.

        The result of a computation with narrower floats may also be f32, which is not rounded.
        """
        body = self.body.data
        if body.function == "bitcast":
            return False
        numbers = self._function_inputs[FUNCTIONS[body.function].values :]
        known, made = {element_of(value) for value in numbers}, element_of(self.result)
        is_cast = body.function == "identity" and body.combiner is None
        return len(known) == 1 and made in (
            known if is_cast else {*known, *map(wide_element, known)}
        )

    @property
    def _function_inputs(self) -> Sequence[SSAValue]:
        """The operands of the body's function."""
        structure = self.structure()
        arity, coordinates = structure.body.function_arity, structure.space.coordinates
        return self.inputs[: arity - sum(each.operand < arity for each in coordinates)]

    def structure(self) -> Structure:
        """The space and the body."""
        return Structure(self.space.data, self.body.data)

    def infer_all(self) -> Sequence[TensorType[Attribute]]:
        """The default types of the results.

        Their shapes are those of the space. Their element types follow from the body's function and
        the operands; sums of narrower floats have the type of the operands. `verify_` accepts other
        types too.
        """
        self._verify_operands()
        space, body = self.space.data, self.body.data
        first = self._value_element()
        indices = body.along is not None and body.along.name == "sort_indices"
        kinds = body.result_kinds or (("index",) if indices else ("element",))
        element = {"index": i32, "element": first, "wide": first}
        pairs = zip(space.results, kinds, strict=True)
        return [tensor(access.shape, element[kind]) for access, kind in pairs]

    def verify_(self) -> None:
        """Check that the space fits the tensors, and the body fits the space and the element types.

        The result of a cast may have any element type, those of narrower floats their type or
        f32, and a sum of products of integers may be i32.
        """
        inferred = self._inferred()
        if len(self.made) != len(inferred):
            raise VerifyException(f"{len(self.made)} results; need {len(inferred)}")
        for i, (value, type_) in enumerate(zip(self.made, inferred, strict=True)):
            shape, need = shape_of(value), shape_of(type_)
            if not is_view(shape, need):
                raise VerifyException(
                    f"result type {value.type} of result {i}; need the shape {list(need)}, or one "
                    "of which that is a view"
                )
            allowed = self._allowed(element_of(type_))
            if allowed and element_of(value) not in allowed:
                raise VerifyException(
                    f"result type {value.type} of result {i}; need elements "
                    f"{' or '.join(map(str, allowed))}"
                )
        self._verify_stored()
        elements = [element_of(value) for value in (*self.inputs, self.result)]
        verify_coordinate_dtypes(self.structure(), elements)
        verify_chain(self.body.data, element_of(self.result))
        self._verify_stages()
        own = self.structure().own_operands
        for i, value in enumerate(self.inputs[own:], own):
            if element_of(value) != element_of(self.result):
                raise VerifyException(
                    f"operand {i}, of the chain, has elements {element_of(value)}; need "
                    f"{element_of(self.result)}, as the result"
                )

    @classmethod
    def sample(cls, wanted: Wanted) -> ComputeOp:
        """A random operation."""
        structure, types, results = random_structure(wanted)
        return cls(Block(arg_types=types).args, structure, *results)

    @cached_by_form
    def _inferred(self) -> Sequence[TensorType[Attribute]]:
        return self.infer_all()

    def _verify_operands(self) -> None:
        """Check the operands, but not the results."""
        structure = self.structure()
        space, body = structure.space, structure.body
        if body.signature is not None:
            raise VerifyException(
                f"codelet {body.signature.name} in nn.compute; need its operation of that name"
            )
        if body.function == MEMBERS or body.resumes or body.unfinished:
            raise VerifyException(
                f"members of {body.combiner}, which steps leave each other; need elements, and "
                "finished results"
            )
        verify_structure(structure)
        verify_results_cover(structure)
        if len(space.operands) != len(self.inputs):
            raise VerifyException(
                f"{len(self.inputs)} operands for a space of {len(space.operands)}"
            )
        for i, (value, access) in enumerate(zip(self.inputs, space.operands, strict=True)):
            if not is_view(shape_of(value), access.shape):
                raise VerifyException(
                    f"operand {i}: {tensor_of(value)}, which the space reads as "
                    f"{list(access.shape)}; need a view of its axes, split or as they are"
                )
        _verify_rules(space)
        _verify_combiner(structure)
        for relation in space.relations:
            element = element_of(self.inputs[relation.operand])
            if not isinstance(element, IntegerType) or element.width.data < 8:
                raise VerifyException(
                    f"operand {relation.operand}, of a relation, has elements {element}; need "
                    "integers of 8 bits or more"
                )

    def _value_element(self) -> Attribute:
        """The element type of the body's function. Raises VerifyException for wrong operands."""
        body = self.body.data
        coordinates = self.structure().unchained.space.coordinates
        given = [element_of(value) for value in self._function_inputs]
        number_type = next((each for each in given if each != i1), i32)
        for each in coordinates:
            # A coordinate takes the element type of the other operands.
            given.insert(each.operand, number_type)
        if self._multiplies_integers() and len(set(given)) > 1:
            return i32
        element = _element(body.function, body.parameters, _alike(body.function, given))
        combiner = body.tuple_combiner
        if combiner is not None and combiner.floats and not isinstance(element, AnyFloat):
            raise VerifyException(f"{combiner.name} of {element}; need floats")
        merges = body.combiner != "pick" if self.space.data.relations else combiner is not None
        scans = body.along is not None and not body.along.sorts
        if element == i1 and (merges or scans):
            name = body.along.name if body.along is not None else body.combiner
            raise VerifyException(f"{name} of i1; need numbers")
        if element == i1 and body.combiner in ARITHMETIC:
            _verify_merges_truth(body)
        return element

    def _multiplies_integers(self) -> bool:
        """Whether the body sums products of integers that fit i32."""
        body = self.body.data
        dtypes = [numpy_dtype(element_of(v)) for v in self._function_inputs]
        is_product = (body.function, body.combiner) == ("mul", "sum")
        return is_product and all(
            is_whole(d) and 8 <= bit_width(d) <= WIDEST_FACTOR_BITS for d in dtypes
        )

    def _allowed(self, inferred: Attribute) -> tuple[Attribute, ...]:
        """The element types that a result may have; () for any.

        Args:
            inferred: its default element type.
        """
        body = self.body.data
        if body.function == "bitcast":
            source = element_of(self.inputs[0])
            for value in self.made:
                bits = [bit_width(numpy_dtype(each)) for each in (source, element_of(value))]
                if bits[0] != bits[1] or bits[0] % 8:
                    raise VerifyException(
                        f"elements {source} as {element_of(value)}; need types of as many bits, "
                        "8 or more"
                    )
            return ()
        if body.function == "identity" and body.combiner is None and body.along is None:
            return ()
        further: list[Attribute] = [inferred]
        if len(self.made) == 1 or body.member_kinds:
            further.append(wide_element(inferred))
        if self._multiplies_integers():
            further.append(i32)
        return tuple(dict.fromkeys(further))

    def _verify_stages(self) -> None:
        """Check that each function of the chain takes the type that the chain computes in."""
        body = self.body.data
        wide, known = wide_element(element_of(self.result)), body.chained_elements
        for stage in body.then:
            function = FUNCTIONS[stage.function]
            numbers = stage.arguments(known, [""] * stage.extras)[function.values :]
            if not stage.element and "i1" not in numbers:
                truths, kinds = (i1,) * function.values, (wide,) * len(numbers)
                try:
                    _element(stage.function, stage.parameters, truths + kinds)
                except VerifyException as error:
                    raise VerifyException(f"{stage.function} in the chain: {error}") from None

    def _verify_stored(self) -> None:
        """Check that nothing computes with elements that are only stored."""
        body = self.body.data
        moves = FUNCTIONS[body.function].stored and body.combiner in (None, "pick")
        if moves and not body.then and body.along is None:
            return
        for i, value in enumerate((*self.inputs, *self.made)):
            if element_of(value) in STORED:
                count = len(self.inputs)
                what = f"operand {i}" if i < count else f"result {i - count}"
                raise VerifyException(
                    f"{what} has elements {element_of(value)}, which are only stored; need a cast "
                    "to and from a type to compute in"
                )


def is_view(shape: Shape, view: Shape) -> bool:
    """Whether a view has the axes of a tensor, each as it is or split into several."""
    at = 0
    for n in shape:
        size, first = 1, at
        while at < len(view) and (at == first or size != n):
            size *= view[at]
            at += 1
        if at == first or size != n:
            return False
    return prod(view[at:]) == 1


def _verify_rules(space: Space) -> None:
    """Check the rules for outside elements, the axes of relations and the tensors of positions."""
    for i, access in enumerate(space.operands):
        for j, axis in enumerate(access.axes):
            if not axis.size and axis.outside not in ("none", "fill"):
                raise VerifyException(
                    f"operand {i}, axis {j}: {axis.outside} of an axis without elements; need fill"
                )
    for i, relation in enumerate(space.relations):
        access = space.operands[relation.operand]
        if relation.axis.outside not in ("none", "fill"):
            raise VerifyException(f"relation {i}: {relation.axis.outside}; need fill, or no rule")
        if not relation.axis.size and prod(access.shape):
            raise VerifyException(
                f"relation {i}: indices along an axis without elements; need no indices"
            )
    for i, access in enumerate(each.access for each in space.positions):
        if prod(access.shape) > MOST_POSITIONS:
            raise VerifyException(
                f"position {i} in {prod(access.shape):,} elements; need at most 2^31 - 1"
            )


def _verify_combiner(structure: Structure) -> None:
    """Check that the combiner suits the function, the relations and the dimensions."""
    space, body = structure.space, structure.body
    if body.tuple_combiner is not None and body.function != "identity":
        raise VerifyException(f"{body.combiner} of {body.function}; need identity")
    if body.combiner == "pick" and not space.relations:
        raise VerifyException("pick without a relation, which leaves one match; need a relation")
    if body.combiner is not None and body.function == "bitcast":
        raise VerifyException(f"{body.combiner} of bitcast; need it in an operation of its own")
    is_plain_sum = (body.function, body.combiner) == ("identity", "sum")
    if body.narrow and not (body.is_product or is_plain_sum):
        raise VerifyException(
            f"narrow {body.function} {body.combiner}; need a sum of products, or of numbers"
        )
    if body.is_scaled_product:
        raise VerifyException(
            f"{body.function} {body.combiner}, which is for 8-bit floats; need nn.conv or nn.matmul"
        )
    whole = space.of_kind("whole")
    if whole and body.along is None and space.of_kind("reduction"):
        raise VerifyException(
            f"whole dimension {space.dims[whole[0]].name} of {body.function} {body.combiner}; "
            "need parallel or reduction ones"
        )
    if body.tuple_combiner is None:
        return
    for d in space.of_kind("reduction"):
        if not space.dims[d].size:
            raise VerifyException(
                f"{body.combiner} of no elements along {space.dims[d].name}; need one or more"
            )


def _verify_merges_truth(body: Body) -> None:
    """Check that a function whose results are merged as truth values gives 0 or 1.

    A reduction in parts holds each part's result as a truth value, which keeps no other number.
    """
    known = FUNCTIONS[body.function]
    if not (known.boolean or known.keeps_truth):
        raise VerifyException(
            f"{body.combiner} of {body.function} over i1, whose results may be no truth values; "
            "need identity, or a cast to numbers before"
        )


def _alike(function: str, elements: Sequence[Attribute]) -> tuple[Attribute, ...]:
    """The element types of a function's operands that need to be alike.

    A float may be multiplied by packed integers, whose bytes, zero points and shifts are integers,
    and whose scale is a float of any type.
    """
    is_packed = function == PACKED and isinstance(elements[0], AnyFloat)
    return (elements[0],) * len(elements) if is_packed else tuple(elements)


_BY_FUNCTION = {cls.name.partition(".")[2]: cls for cls in ELEMENTWISE}


def _element(
    function: str, parameters: tuple[float, ...], elements: tuple[Attribute, ...]
) -> Attribute:
    """The element type that a function gives, by the rule of the operation of its name.

    Raises VerifyException for element types that the function does not take.
    """
    operands = Block(arg_types=[tensor((), element) for element in elements]).args
    cls = _BY_FUNCTION.get(function)
    if cls is None or not issubclass(cls, ElementwiseOp):
        element = same_element(*operands)
        return i1 if FUNCTIONS[function].boolean else element
    numbers = zip(cls.PARAMETERS, map(number, parameters), strict=True)
    op = cls.create(operands=operands, result_types=[tensor((), f32)], properties=dict(numbers))
    try:
        return op.result_element()
    finally:
        op.drop_all_references()


def compute(
    function: str,
    operands: Sequence[At | Index],
    result: Sequence[Index],
    *,
    combiner: str | None = None,
    parameters: Sequence[float] = (),
    where: Sequence[tuple[Index, int, At]] = (),
    then: Sequence[tuple[Stage, At]] = (),
    position: Sequence[Index] = (),
    along: Along | None = None,
    narrow: bool = False,
    element: Attribute | None = None,
) -> ComputeOp:
    """An operation that computes a scalar function of elements and merges its reduction dimensions.

        y, x, k = nn.dim("y", 8), nn.dim("x", 5), nn.dim("k", 4, "reduction")
        nn.compute("mul", [nn.at(a, y, k), nn.at(b, k, x)], [y, x], combiner="sum")

    Raises VerifyException or ValueError if these do not fit each other.

    Args:
        function: a scalar function.
        operands: the tensors that it reads, each with its indices; an Index is read as its value at
            each point.
        result: the dimension of each axis of the result.
        combiner: what merges the reduction dimensions.
        parameters: constants of the function.
        where: conditions that points must meet, each a tuple (index, size of its axis, operand of
            integers that it must equal).
        then: functions of the merged points, each with its one further operand.
        position: the dimensions that are the axes of the tensor in which an element's position
            counts, for a combiner that needs one.
        along: a scan or sort along the whole dimension.
        element: the element type of the result, if it differs from that of the function.
    """
    read = [each for each in operands if isinstance(each, At)]
    reads = [*read, *(given for _, _, given in where), *(given for _, given in then)]
    counted = [each for each in operands if isinstance(each, Index)]
    related = [index for index, _, _ in where]
    dims = dims_of(result, *(each.indices for each in reads), related, position, counted)
    coordinates = tuple(
        each.coordinate(i, dims) for i, each in enumerate(operands) if isinstance(each, Index)
    )
    body = Body(
        function,
        combiner,
        tuple(parameters),
        tuple(stage for stage, _ in then),
        Narrow() if narrow else None,
        along,
    )
    places = AccessMap(tuple(index.axis(index.dim.size, dims) for index in position))
    target = AccessMap(tuple(index.axis(index.dim.size, dims) for index in result))
    space = Space(
        dims,
        tuple(each.access(dims) for each in reads),
        (target,) * body.result_count,
        tuple(
            Relation(index.axis(size, dims), i)
            for i, (index, size, _) in enumerate(where, len(operands))
        ),
        (*(Position(places),) * body.position_count, *coordinates),
    )
    elements = () if element is None else (element,) * body.result_count
    return ComputeOp([each.value for each in reads], Structure(space, body), elements=elements)
