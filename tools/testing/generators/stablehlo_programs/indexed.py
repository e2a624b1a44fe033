"""Draws gathers, scatters, and slices that begin at indices of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from xdsl.dialects.builtin import BoolAttr, i32, i64
from xdsl.ir import Attribute, SSAValue

from .....dialects import nn, stablehlo
from .draft import ALL, INDICES, NUMBERS, Draft, Draw, integers, scalar_like, tensor_like
from .merging import region_of


@dataclass(frozen=True)
class _Windows:
    """Slices of a tensor at places that another tensor holds.

    Attributes:
        axes: what the axes are for. A scatter lists the same axes in the same order.
        places: the shape of the places.
        sizes: of a slice.
        shape: of all slices together.
    """

    axes: stablehlo.GatherAxes
    places: tuple[int, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]


def _windows(draft: Draft, shape: Sequence[int]) -> _Windows:
    random, rank = draft.random, len(shape)
    shared = min(rank, random.choice((0, 0, 0, 1, 2)))
    batching = sorted(random.sample(range(rank), shared))
    others = [a for a in range(rank) if a not in batching]
    gone = [a for a in others if draft.chance(0.5)]
    numbers = random.sample(others, random.randint(0, len(others)))
    own = [draft.choice((1, 2, 3)) for _ in range(random.randint(0, 2))]
    places_batching = random.sample(range(len(own) + shared), shared)
    sizes_of = {at: shape[axis] for at, axis in zip(places_batching, batching, strict=True)}
    rest = iter(own)
    outer = [sizes_of[a] if a in sizes_of else next(rest) for a in range(len(own) + shared)]
    places, at = list(outer), random.randint(0, len(outer))
    if len(numbers) == 1 and draft.chance(0.3):
        at = len(places)
    else:
        places.insert(at, len(numbers))
        places_batching = [a + (a >= at) for a in places_batching]
    sizes = [
        min(n, 1) if a in (*gone, *batching) else random.randint(min(n, 1), n)
        for a, n in enumerate(shape)
    ]
    kept = [n for a, n in enumerate(sizes) if a not in (*gone, *batching)]
    offsets = sorted(random.sample(range(len(outer) + len(kept)), len(kept)))
    inner, batch = iter(kept), iter(outer)
    made = [next(inner) if a in offsets else next(batch) for a in range(len(outer) + len(kept))]
    axes = stablehlo.GatherAxes(
        offset_dims=tuple(offsets),
        collapsed_slice_dims=tuple(gone),
        operand_batching_dims=tuple(batching),
        start_indices_batching_dims=tuple(places_batching),
        start_index_map=tuple(numbers),
        index_vector_dim=at,
    )
    return _Windows(axes, tuple(places), tuple(sizes), tuple(made))


def _value(draft: Draft) -> SSAValue:
    found = draft.value(ALL)
    return draft.of((3, 2), nn.element_of(found)) if 0 in nn.shape_of(found) else found


def _gather(draft: Draft, name: str) -> None:
    value = _value(draft)
    found = _windows(draft, nn.shape_of(value))
    operands = [value, draft.of(found.places, draft.choice(INDICES))]
    how: dict[str, Attribute] = {
        "dimension_numbers": stablehlo.GatherAttr(found.axes),
        "indices_are_sorted": BoolAttr.from_bool(False),
    }
    if name == "stablehlo.gather":
        how["slice_sizes"] = integers(found.sizes)
    elif found.sizes:
        operands.append(draft.constant(list(found.sizes), draft.choice((i32, i64))))
    else:
        return
    draft.add(name, operands, [tensor_like(value, found.shape)], how)


MERGES = ("add", "add", "subtract", "multiply", "maximum", "minimum", "update", "operand")
OF_TRUTHS = ("and", "or", "update")


def _scatter(draft: Draft, name: str) -> None:
    value = _value(draft)
    is_number = nn.element_of(value) in NUMBERS
    values = [value]
    if draft.chance(0.2):
        values.append(draft.another(value))
    found = _windows(draft, nn.shape_of(value))
    axes = stablehlo.ScatterAxes(*astuple(found.axes))
    names = [draft.choice(MERGES if is_number else OF_TRUTHS) for _ in values]

    def merge(inner: Draft, given: Sequence[SSAValue]) -> Sequence[SSAValue]:
        made: list[SSAValue] = []
        for i, each in enumerate(names):
            old, update = given[i], given[len(names) + i]
            if each in ("update", "operand"):
                made.append(update if each == "update" else old)
            else:
                made += inner.add(f"stablehlo.{each}", [old, update], [old.type])
        return made

    region = region_of(draft, [scalar_like(each) for each in values * 2], merge)
    updates = [draft.of(found.shape, nn.element_of(each), each) for each in values]
    how = {
        "scatter_dimension_numbers": stablehlo.ScatterAttr(axes),
        "indices_are_sorted": BoolAttr.from_bool(False),
        "unique_indices": BoolAttr.from_bool(False),
    }
    indices = draft.of(found.places, draft.choice(INDICES))
    made = [each.type for each in values]
    draft.add(name, [*values, indices, *updates], made, how, [region])


def _starts(draft: Draft, rank: int) -> list[SSAValue]:
    element = draft.choice(INDICES)
    return [draft.of((), element) for _ in range(rank)]


def _sizes(draft: Draft, shape: Sequence[int]) -> list[int]:
    """The shape of a part of a tensor."""
    return [draft.random.randint(min(n, 1), n) for n in shape]


def _dynamic_slice(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    shape = nn.shape_of(value)
    sizes = _sizes(draft, shape)
    how = {"slice_sizes": integers(sizes)}
    draft.add(name, [value, *_starts(draft, len(shape))], [tensor_like(value, sizes)], how)


def _dynamic_update_slice(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    shape = nn.shape_of(value)
    update = draft.of(_sizes(draft, shape), nn.element_of(value), value)
    draft.add(name, [value, update, *_starts(draft, len(shape))], [value.type])


TABLE: Mapping[str, Draw] = {
    "stablehlo.gather": _gather,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.scatter": _scatter,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
}
"""What draws each operation, by name."""
