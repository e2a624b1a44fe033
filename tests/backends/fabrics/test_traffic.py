"""Who sends to whom, against the bytes of each tile and against every element followed."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.fabrics.traffic import Carried, Flows, Traffic
from abele.backends.prices.price import charge_copy, no_charge, variables_of
from abele.backends.target import resolve_target
from abele.dialects.steps import Copy
from abele.ir.geometry.layout import Layout, canonical
from abele.ir.geometry.overlap import overlap

from ...ir.geometry.strategies import cell_indices, cuttings, shapes
from ...strategies import Program, planned_programs
from ..exchange_text import lowered
from .some_traffic import add_copy, blocks, traffic


def elements(layout: Layout, cell: int) -> list[int]:
    """Row-major numbers of the elements in a cell's block, without padding."""
    indices = cell_indices(layout, cell)
    grid = np.stack(np.meshgrid(*indices, indexing="ij"), -1).reshape(-1, len(indices))
    inside = grid[(grid >= 0).all(1)]
    return [int(np.ravel_multi_index(tuple(e), layout.shape)) for e in inside]


def pairs_of(flows: Flows) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for s, d, n in zip(flows.source, flows.destination, flows.bytes, strict=True):
        found[int(s), int(d)] += int(n)
    return found


@given(shapes.filter(bool), st.data())
def test_every_element_flows_from_its_owner_to_a_tile_that_lacks_it(shape, data: st.DataObject):
    source = canonical(data.draw(cuttings(shape, windows=False)).layout())
    destination = canonical(data.draw(cuttings(shape)).layout())
    held = {source.tiles.of(t): set(elements(source, t)) for t in range(source.cells)}
    owner: dict[int, int] = {}
    for tile, block in held.items():
        for each in block:
            owner.setdefault(each, tile)
    wanted: Counter[tuple[int, int]] = Counter()
    for cell in range(destination.cells):
        tile = destination.tiles.of(cell)
        wanted.update(
            (owner[e], tile) for e in elements(destination, cell) if e not in held.get(tile, ())
        )
    moved = Traffic.none(0)
    moved.carried.append(Carried(overlap(source, destination), 1))
    flows = moved.flows()
    assert pairs_of(flows) == wanted
    # Each source is one stream.
    assert (flows.source == source.tiles.of(flows.stream)).all()
    assert len(flows.stream_bytes) == source.cells


@given(planned_programs())
@settings(max_examples=20)
def test_flows_add_up_to_what_tiles_receive(program: Program):
    target = resolve_target(program.target)
    module = lowered(program)
    variables = variables_of(module)
    charge = no_charge(64)
    for op in module.walk():
        if isinstance(op, Copy):
            charge_copy(op, variables, target, charge)
    flows = charge.traffic.flows()
    received = np.bincount(flows.destination, flows.bytes, 64)
    assert received.tolist() == charge.traffic.received.tolist()
    assert (flows.source != flows.destination).all()
    assert flows.stream_bytes.sum() == charge.traffic.sent.sum()


def test_a_group_receives_each_word_once():
    # Tile 0 has all 24 elements; tiles 4 to 11 want it, a quarter each, twice.
    flows = traffic(blocks(24, 1, 0), blocks(24, 4, 4, copies=2), 12).flows()
    assert pairs_of(flows) == {(0, tile): 24 for tile in range(4, 12)}
    chip = np.array([0] * 4 + [1] * 8)
    assert pairs_of(flows.among(chip)) == {(0, 1): 96}
    # Within a chip, nothing crosses.
    assert len(flows.among(np.zeros(12, np.int64)).source) == 0
    chips = np.array([0] * 4 + [1] * 4 + [2] * 4)
    assert pairs_of(flows.among(chips)) == {(0, 1): 96, (0, 2): 96}


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(1, 4))
def test_groups_get_what_their_tiles_get_but_words_once(of: int, to: int, copies: int, size: int):
    source, destination = blocks(60, of, 0), blocks(60, to, 3, copies)
    flows = traffic(source, destination, 24).flows()
    group = np.arange(24) // size
    found = flows.among(group)
    wanted: dict[tuple[int, int], set[int]] = {}
    for cell in range(destination.cells):
        tile = cell + destination.first_tile
        own = set(elements(source, tile)) if tile < of else set()
        for each in elements(destination, cell):
            owner = next(c for c in range(of) if each in elements(source, c))
            if each not in own and group[owner] != group[tile]:
                wanted.setdefault((owner // size, tile // size), set()).add(each)
    assert pairs_of(found) == {pair: 4 * len(words) for pair, words in wanted.items()}
    assert prod(found.bytes.shape) == len(found.stream)


def test_copies_of_one_exchange_have_streams_of_their_own():
    moved = traffic(blocks(24, 1, 0), blocks(24, 1, 2), 4)
    add_copy(moved, blocks(24, 1, 0), blocks(24, 1, 2))
    flows = moved.flows()
    assert sorted(flows.stream.tolist()) == [0, 1]
    assert pairs_of(flows.among(np.arange(4))) == {(0, 2): 2 * 96}
    twice = traffic(blocks(24, 1, 0), blocks(24, 1, 2), 4)
    twice.add(traffic(blocks(24, 1, 0), blocks(24, 1, 2), 4))
    assert twice.received.tolist() == moved.received.tolist() == [0, 0, 192, 0]
    assert pairs_of(twice.flows()) == pairs_of(flows)
