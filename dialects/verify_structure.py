"""Checks of a space and a body, for every level whose operations have them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, i32
from xdsl.ir import Attribute

from ..ir.geometry.space import AccessMap, Space
from ..ir.support.limits import POINTS, short
from ..ir.upstream import VerifyException
from .abele import stages_text, verify_chain
from .codelets import Signature
from .combiners import MEMBERS
from .scalar_functions import FUNCTIONS
from .structured import Body, Structure, extras_of


def verify_structure(structure: Structure) -> None:
    """Check that a body fits its space: numbers of operands and results, and the combiner.

    Raises VerifyException.
    """
    body = structure.body
    if body.function not in FUNCTIONS and body.function != MEMBERS:
        raise VerifyException(
            f"scalar function {body.function}; need one of {', '.join(sorted(FUNCTIONS))}"
        )
    parameters = 0 if body.function == MEMBERS else FUNCTIONS[body.function].parameters
    given = len(structure.space.operands), len(body.parameters)
    if given != (structure.arity, parameters):
        chain = f" then {stages_text(body.then)}" if body.then else ""
        raise VerifyException(
            f"{body.function}{chain} of {given[0]} operands and {given[1]} parameters; need "
            f"{structure.arity} and {parameters}"
        )
    # A lookup does not walk through the rows that its indices choose from.
    if not structure.space.relations and structure.space.points > POINTS.most:
        raise VerifyException(POINTS.refusal(f"a space of {short(structure.space.points)} points"))
    _verify_results(structure)
    _verify_coordinates(structure)
    _verify_relations(structure)
    _verify_along(structure)
    _verify_extras(structure)


def verify_results_cover(structure: Structure) -> None:
    """Check that every element of each result is written. Raises VerifyException."""
    for result in structure.space.results:
        _verify_result(structure, result)


def _verify_coordinates(structure: Structure) -> None:
    """Check that coordinates are affine, and that each takes the place of an operand that is a
    number.
    """
    space, body, own = structure.space, structure.body, structure.own_places
    reductions = space.of_kind("reduction")
    taken: set[int] = set()
    for each in space.coordinates:
        name = f"coordinate for operand {each.operand}"
        last = own + extras_of(body.then) - 1
        if each.operand > last or each.operand in taken:
            raise VerifyException(f"{name} of {body.function}; need different ones of 0..{last}")
        taken.add(each.operand)
        axes = each.access.axes
        if len(axes) != 1 or axes[0].divisor != 1 or axes[0].outside != "none":
            raise VerifyException(f"{name}: need one axis, without a division or a rule")
        if each.operand >= own:
            merged = [space.dims[d].name for d in each.access.dims() if d in reductions]
            if merged:
                raise VerifyException(
                    f"{name}, of the chain, depends on {merged[0]}, merged before"
                )
            continue
        if body.combiner is not None or body.along is not None or body.function == "bitcast":
            what = body.combiner or (body.along.name if body.along else "its bits")
            raise VerifyException(f"{name}, of which {what} is computed; need a function alone")
        if each.operand < FUNCTIONS[body.function].values:
            raise VerifyException(
                f"{name} of {body.function}, which is a truth value; need numbers"
            )


def _verify_relations(structure: Structure) -> None:
    """Check that each relation has its operand at the right place, and that a combiner merges its
    points.
    """
    relations, body = structure.space.relations, structure.body
    if relations and body.combiner is None:
        raise VerifyException(
            f"{body.function} at points that meet a relation: need a combiner, whose identity is "
            "the result of no point"
        )
    merged = len(structure.space.of_kind("reduction"))
    if body.updates and (not relations or merged > 1):
        raise VerifyException(
            f"{body.combiner} into an operand with {len(relations)} relations and {merged} merged "
            "dimensions; need a relation, and at most one merged dimension"
        )
    if relations and not structure.space.dims:
        raise VerifyException("a relation in a space without dimensions; need one")
    for i, relation in enumerate(relations, body.function_arity):
        if relation.operand != i:
            raise VerifyException(
                f"relation of operand {relation.operand}; need operand {i}, after those of the "
                "function"
            )


def _verify_along(structure: Structure) -> None:
    """Check that a scan or sort has the function identity and exactly one whole dimension.

    A codelet has the dimensions of its signature.
    """
    space, body = structure.space, structure.body
    if body.along is None:
        return
    signature = body.signature
    if signature is not None:
        kinds = tuple("whole" if each.whole else "parallel" for each in signature.dims)
        if tuple(dim.kind for dim in space.dims) != kinds or space.relations:
            raise VerifyException(f"codelet {signature.name}: need dimensions {', '.join(kinds)}")
        _verify_cells(space, signature)
        return
    name = f"{body.along.name} along a dimension"
    whole = space.of_kind("whole")
    if len(whole) != 1 or space.of_kind("reduction") or space.relations:
        raise VerifyException(
            f"{name}: {len(whole)} whole dimensions, {len(space.of_kind('reduction'))} reductions "
            f"and {len(space.relations)} relations; need one whole dimension, and else parallel "
            "ones"
        )
    if body.function != "identity":
        raise VerifyException(f"{name} of {body.function}; need identity")
    if body.then and body.along.name == "sort_indices":
        raise VerifyException(f"a chain after {name}; indices are integers")


def _verify_cells(space: Space, signature: Signature) -> None:
    """Check that each map has the whole dimensions that a cell's array has as axes."""
    own = space.operands[: len(signature.reads)]
    maps = (*signature.reads.items(), *signature.writes.items())
    for (name, map_), access in zip(maps, (*own, *space.results), strict=True):
        wanted = {d for d in signature.whole_of(map_) if space.dims[d].size != 1}
        found = {d for d in access.dims() if space.dims[d].kind == "whole"}
        if found - wanted or wanted - found:
            names = ", ".join(space.dims[d].name for d in sorted(wanted)) or "none"
            raise VerifyException(
                f"{name} of codelet {signature.name}: need whole dimensions {names}"
            )


def verify_result_types(body: Body, elements: Sequence[Attribute]) -> None:
    """Check that the results of a body can have elements of these types. Raises VerifyException."""
    verify_chain(body, elements[0])
    combiner = body.tuple_combiner
    if combiner is None:
        return
    for i, (kind, element) in enumerate(zip(body.result_kinds, elements, strict=True)):
        floats = kind == "wide" or (kind == "element" and combiner.floats)
        if kind == "index" and element != i32:
            raise VerifyException(f"result {i}, of {combiner.name}: {element}; need i32")
        if floats and not isinstance(element, AnyFloat):
            raise VerifyException(f"result {i}, of {combiner.name}: {element}; need floats")


def _verify_results(structure: Structure) -> None:
    """Check the numbers of results and positions, and the maps of members of an earlier step."""
    space, body = structure.space, structure.body
    given = len(space.results), len(space.positions) - len(space.coordinates)
    if given != (body.result_count, body.position_count):
        what = f" {body.combiner}" if body.combiner else ""
        raise VerifyException(
            f"{body.function}{what} with {given[0]} results and {given[1]} positions; need "
            f"{body.result_count} and {body.position_count}"
        )
    if body.member_kinds and space.relations:
        raise VerifyException(f"combiner {body.combiner} at points that meet a relation; need none")
    own = structure.own_operands
    for i in range(own - len(body.member_kinds) * body.resumes, own):
        if space.operands[i].axes != space.results[0].axes:
            raise VerifyException(f"operand {i}, of an earlier step: need the map of the result")


def _verify_extras(structure: Structure) -> None:
    """Check that no operand of a chain, and no updated operand, depends on a merged dimension."""
    dims, own = structure.space.dims, structure.own_operands - structure.body.updates
    for i, access in enumerate(structure.space.operands[own:], own):
        role = "updated" if i < structure.own_operands else "of the chain"
        merged = [dims[d].name for d in sorted(access.dims()) if dims[d].kind == "reduction"]
        if merged:
            raise VerifyException(f"operand {i}, {role}, depends on {merged[0]}, which is merged")


def _verify_result(structure: Structure, result: AccessMap) -> None:
    """Check that every element of a result is written, and by one set of merged points only."""
    dims = structure.space.dims
    named: list[int] = []
    for i, axis in enumerate(result.axes):
        named += [d for d, _ in axis.terms]
        covers = [(dims[d].size, a) for d, a in axis.terms] == [(axis.size, 1)]
        if axis.offset or axis.divisor != 1 or not (covers or (axis.size <= 1 and not axis.terms)):
            raise VerifyException(
                f"result axis {i} of {axis.size} elements: need one dimension that covers it"
            )
    if len(set(named)) != len(named):
        raise VerifyException("two axes of the result are one dimension")
    for d, dim in enumerate(dims):
        if dim.size == 1 or d in named:
            continue
        if structure.body.signature is not None and dim.kind == "whole":
            # A cell reads all points along it.
            continue
        if (dim.kind != "reduction" and dim.size) or structure.body.combiner is None:
            raise VerifyException(
                f"{dim.kind} dimension {dim.name}: nothing merges its {dim.size} points, and the "
                "result does not have it"
            )
