"""The general rule: the gradients of any space with any body.

The slope of the body gives the gradient that a point passes back, and the transpose of the space
gives the element that receives it. Combiners have slopes too: a sum passes its gradient on to every
point, a maximum shares it equally among the points that equal it, a product multiplies it by the
product of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import SSAValue

from ...dialects import nn
from ...dialects.nn.elementwise import broadcast_space
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.slopes import OPERANDS, Term, Values, call
from ...dialects.structured import Body, Structure
from ...ir.geometry.space import AccessMap, Space, identity_map
from .emit import Emitter, points
from .errors import NoGradient
from .way import is_float

Read = tuple[SSAValue, AccessMap]
"""A value with the access map by which points read it."""

EXTREMES = ("max", "min")

MATCHED = call("match", Term("a"), Term("y"), Term("g"))
"""The slope of an extreme: g where the element equals the extreme, else 0."""


def differentiated(
    emit: Emitter,
    structure: Structure,
    operands: Sequence[SSAValue],
    result: SSAValue,
    gradient: SSAValue,
    wanted: Sequence[int],
    named: Mapping[int, Sequence[nn.ChainableOp]] | None = None,
) -> dict[int, SSAValue]:
    """The gradients of the wanted operands of a structured operation with one result.

    Raises NoGradient for bodies without a rule.

    Args:
        named: for each operand, candidate operations for its gradient; one with the same space and
            body is used instead of an nn.compute.
    """
    if structure.space.coordinates:
        places = structure.with_coordinates(range(len(operands)), [-1] * _count(structure))
        again, values = _counted(emit, structure, operands, gradient)
        found = differentiated(
            emit, again, values, result, gradient, [places.index(k) for k in wanted]
        )
        return {places[place]: value for place, value in found.items()}
    space, body = structure.space, structure.body
    steps = body.then or body.along or body.member_kinds or body.resumes
    assert not steps, "operations of several steps have been decomposed"
    slopes = FUNCTIONS[body.function].slopes
    if not slopes:
        raise NoGradient(f"computes {body.function}, which has no slope")
    at_result = space.results[0]
    reads: dict[str, Read] = {
        name: (value, access)
        for name, value, access in zip(
            OPERANDS[: body.function_arity], operands, space.operands, strict=False
        )
    }
    related = related_by(space, operands)
    reads |= {"y": (result, at_result), "g": (gradient, at_result)}
    found: dict[int, SSAValue] = {}
    shares = body.combiner in EXTREMES and body.function == "identity"
    if shares:
        reads["g"] = share(emit, space, reads["a"], reads, related)
    elif body.combiner in (*EXTREMES, "prod") or (body.combiner and _reads_result(body, wanted)):
        reads = _at_points(emit, structure, reads, related)
    for k in wanted:
        term = MATCHED if shares else slopes[k](Values(body.parameters))
        shape, operand = nn.shape_of(operands[k]), space.operands[k]
        if term is None:
            continue
        if _is_elementwise(structure, operands, result):
            values = {name: value for name, (value, _) in reads.items()}
            if not _is_direct(term) or nn.shape_of(result) == shape:
                found[k] = emit.summed_to(
                    emit.expanded(emit.term(term, values), nn.shape_of(result)), shape
                )
                continue
        if not _is_direct(term):
            term = with_calls_at_points(emit, space, term, reads)
        function, given = _call(term)
        chosen = [_read(emit, name, reads) for name in given]
        kinds = dict.fromkeys(str(nn.element_of(v)) for v, _ in chosen if is_float(v))
        if len(kinds) > 1:
            raise NoGradient(f"has floats of {' and '.join(kinds)}; need one type")
        place = given.index("g") if "g" in given else given.index(PASSED)
        found[k] = emit.transpose(
            space,
            operand,
            shape,
            function,
            term.parameters if not term.is_value else (),
            chosen,
            place,
            (named or {}).get(k, ()),
            related,
        )
    return found


def related_by(space: Space, operands: Sequence[SSAValue]) -> list[Read]:
    """The operands of the relations of a space, with their maps."""
    return [(operands[each.operand], space.operands[each.operand]) for each in space.relations]


def _count(structure: Structure) -> int:
    return len(structure.space.coordinates)


def _counted(
    emit: Emitter, structure: Structure, operands: Sequence[SSAValue], gradient: SSAValue
) -> tuple[Structure, list[SSAValue]]:
    """The structure with an nn.iota operand instead of each coordinate, and all its operands."""
    space, element = structure.space, nn.element_of(gradient)
    maps: list[AccessMap] = []
    values: list[SSAValue] = []
    for each in space.coordinates:
        (axis,) = each.access.axes
        steps = dict(axis.terms)
        dims = sorted(steps)
        shape = tuple(space.dims[d].size for d in dims)
        start = each.first + axis.offset
        values.append(emit(nn.IotaOp(nn.tensor(shape, element), [steps[d] for d in dims], start)))
        maps.append(identity_map(tuple(dims), shape))
    positions = tuple(each for each in space.positions if not each.is_coordinate)
    every = tuple(structure.with_coordinates(space.operands, maps))
    plain = replace(structure, space=replace(space, operands=every, positions=positions))
    return plain, structure.with_coordinates(operands, values)


PASSED = "passed"
"""The name of a gradient that has been computed at all points."""


def _reads_result(body: Body, wanted: Sequence[int]) -> bool:
    """Whether a slope reads the result of the function at its point, which merging has not kept."""
    slopes = FUNCTIONS[body.function].slopes
    terms = [slopes[k](Values(body.parameters)) for k in wanted]
    return any(term is not None and "y" in term.values() for term in terms)


def _is_elementwise(structure: Structure, operands: Sequence[SSAValue], result: SSAValue) -> bool:
    """Whether operands are broadcast to the result as elementwise operations do it."""
    shapes = tuple(map(nn.shape_of, operands))
    own = nn.shape_of(result)
    if structure.body.combiner is not None or not all(_broadcasts(each, own) for each in shapes):
        return False
    return structure.space == broadcast_space(shapes, own)


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    """Whether a shape broadcasts to another one."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(own in (1, size) for own, size in pairs)


def _is_direct(term: Term) -> bool:
    """Whether a term is a value, or one function of values among which is the gradient."""
    names = [each.name for each in term.operands]
    return term.is_value or (all(each.is_value for each in term.operands) and "g" in names)


def _call(term: Term) -> tuple[str, list[str]]:
    """The function of a direct term, and the names of its operands."""
    if term.is_value:
        return "identity", [term.name]
    return term.name, [each.name for each in term.operands]


def _read(emit: Emitter, name: str, reads: Mapping[str, Read]) -> Read:
    return reads[name] if name in reads else (emit.zero(reads["g"][0]), AccessMap(()))


def with_calls_at_points(emit: Emitter, space: Space, term: Term, reads: dict[str, Read]) -> Term:
    """Compute a term at all points. Returns a term for the result, which is added to `reads`."""
    every, access = points(space, space.results[0])
    made: dict[Term, Read] = {}

    def read(each: Term) -> Read:
        if each.is_value:
            return _read(emit, each.name, reads)
        if each not in made:
            given = [read(operand) for operand in each.operands]
            made[each] = (computed(emit, every, access, each.name, each.parameters, given), access)
        return made[each]

    reads[PASSED] = read(term)
    return Term(PASSED)


def computed(
    emit: Emitter,
    every: Space,
    access: AccessMap,
    function: str,
    parameters: Sequence[float],
    given: Sequence[Read],
) -> SSAValue:
    """A scalar function at all points of a space."""
    own = Space(every.dims, tuple(each for _, each in given), (access,))
    structure = Structure(own, Body(function, None, tuple(parameters)))
    return emit(nn.ComputeOp([value for value, _ in given], structure))


def merged(
    emit: Emitter, space: Space, body: Body, given: Sequence[Read], related: Sequence[Read]
) -> SSAValue:
    """A body at the points that meet the relations of a space, merged over its reduction
    dimensions.

    Args:
        related: the operands of the relations.
    """
    if space.of_kind("reduction") or related:
        first = len(given)
        relations = tuple(replace(r, operand=first + i) for i, r in enumerate(space.relations))
    else:
        relations, body = (), replace(body, combiner=None)
    given = (*given, *related)
    own = replace(space, operands=tuple(each for _, each in given), relations=relations)
    return emit(nn.ComputeOp([value for value, _ in given], Structure(own, body)))


def _at_points(
    emit: Emitter, structure: Structure, reads: Mapping[str, Read], related: Sequence[Read]
) -> dict[str, Read]:
    """The values that slopes read at each point, where y is the function's value at the point.

    g is the gradient of that value: the combiner's slope has been applied to it.
    """
    space, body = structure.space, structure.body
    every, access = points(space, space.results[0])
    given = [reads[name] for name in OPERANDS if name in reads]
    if body.function == "identity":
        value = given[0]
    else:
        made = computed(emit, every, access, body.function, body.parameters, given)
        value = (made, access)
    found = dict(reads) | {"y": value}
    if body.combiner in EXTREMES:
        found["g"] = _shared(emit, space, value, reads, related)
    elif body.combiner == "prod":
        found["g"] = _by_the_others(emit, space, value, reads["g"], related)
    return found


def share(
    emit: Emitter, space: Space, value: Read, reads: Mapping[str, Read], related: Sequence[Read]
) -> Read:
    """The gradient of an extreme, divided by the number of points that equal the extreme."""
    one = emit.constant(1.0, value[0])
    given = [value, reads["y"], (one, AccessMap(()))]
    count = merged(emit, space, Body("match", "sum"), given, related)
    own = reads["g"][0]
    return emit(nn.DivOp(own, emit.reshaped(count, nn.shape_of(own)))), space.results[0]


def _shared(
    emit: Emitter, space: Space, value: Read, reads: Mapping[str, Read], related: Sequence[Read]
) -> Read:
    """The gradient of an extreme at each point: its share where the point equals the extreme, else
    0.
    """
    every, access = points(space, space.results[0])
    passed = [value, reads["y"], share(emit, space, value, reads, related)]
    return computed(emit, every, access, "match", (), passed), access


def _by_the_others(
    emit: Emitter, space: Space, value: Read, gradient: Read, related: Sequence[Read]
) -> Read:
    """The gradient of a product at each point: the gradient times the product of all other
    points."""
    every, access = points(space, space.results[0])
    # A point that does not meet the relations is a factor of 1.
    spread = merged(emit, every, Body("identity", "prod"), [value], related)
    sizes = nn.shape_of(spread)
    kept = len([axis for axis in space.results[0].axes if axis.terms])
    flat = emit.reshaped(spread, (*sizes[:kept], prod(sizes[kept:])))
    before = emit(nn.ScanOp(flat, "prod", kept, exclusive=True))
    after = emit(nn.ScanOp(flat, "prod", kept, exclusive=True, reverse=True))
    others = emit.reshaped(emit(nn.MulOp(before, after)), sizes)
    passed = computed(emit, every, access, "mul", (), [gradient, (others, access)])
    return passed, access
