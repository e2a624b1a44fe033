"""Pieces of vertex sets on chips, and the pictures of graphs on several chips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from layered_graph import LayeredGraph

from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan import layout as layout_file
from abele.tools.views.scan import raster
from abele.tools.views.scan.colours import NONE, coloured
from abele.tools.views.scan.groups import grouped
from abele.tools.views.scan.kernels import deposit, deposit_layers, pull, step
from abele.tools.views.scan.layout import Layout, lay_out, places_of_chips
from abele.tools.views.scan.lettering import labels_of
from abele.tools.views.scan.pieces import Pieces
from abele.tools.views.scan.raster import Sheet, Window, draw
from abele.tools.views.scan.sample import sample_edges
from abele.tools.views.scan.sampled import Sampled
from abele.tools.views.scan.scan import Scan, Subject, check_drawn, laid_out, legend, scan

SIZE = 256


class OnChips(LayeredGraph):
    """Layers whose vertices lie on four tiles in turn, which are those of several chips."""

    def __init__(self, chips: int, **options: int):
        super().__init__(**options)
        self.chips = chips

    @property
    def crossing_count(self) -> int:
        chip = self.vertices()["tile"] // (self.tiles // self.chips)
        return sum(int((chip[b.producer] != chip[b.consumer]).sum()) for b in self.edges())


def placed(graph: LayeredGraph) -> Layout:
    return lay_out(graph, sample_edges(graph, 0, ignore_step), 0, ignore_step)


def test_on_one_chip_the_pieces_are_the_sets():
    graph = LayeredGraph()
    pieces = Pieces.in_graph(graph)
    assert pieces.size.tolist() == [each.count for each in graph.sets]
    assert pieces.set_of.tolist() == list(range(len(graph.sets)))
    assert [ids.tolist() for ids in pieces.members()] == [
        list(range(each.first, each.first + each.count)) for each in graph.sets
    ]


def test_each_vertex_is_in_the_piece_of_its_set_and_chip():
    graph = OnChips(2)
    pieces = Pieces.in_graph(graph)
    columns = graph.vertices()
    assert np.array_equal(pieces.set_of[pieces.of], columns["set"])
    assert np.array_equal(pieces.chip_of[pieces.of], columns["tile"] // 2)
    assert pieces.count == 2 * len(graph.sets)
    assert (
        np.concatenate(pieces.members()).tolist() == np.argsort(pieces.of, kind="stable").tolist()
    )


def test_no_group_has_vertices_of_two_chips():
    graph = OnChips(2, size=200)
    pieces = Pieces.in_graph(graph)
    groups = grouped(graph, pieces, ignore_step)
    assert np.array_equal(groups.piece_of[groups.group_of], pieces.of)


@pytest.mark.parametrize("lobes", [512, 3])
def test_chips_lie_apart_in_rows(lobes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout_file, "MOST_LOBES", lobes)
    layout = placed(OnChips(4, size=200))
    assert len(layout.lobes) == (12 if lobes == 512 else 4)
    assert (layout.lobes[0] == "") == (lobes == 3)
    at = np.stack([layout.x, layout.y])
    middle = np.stack([np.median(at[:, layout.chip_of == k], axis=1) for k in range(4)])
    for k in range(4):
        far = np.hypot(*(at[:, layout.chip_of == k] - middle[k][:, None]))
        away = np.hypot(*(np.delete(middle, k, 0) - middle[k]).T).min()
        assert far.max() < away
    # Chips 0 and 1 are above 2 and 3, and 0 and 2 are left of the others.
    assert max(middle[:2, 1]) < min(middle[2:, 1])
    assert max(middle[[0, 2], 0]) < min(middle[[1, 3], 0])


def test_chips_stand_in_a_square_within_the_picture():
    for chips in (2, 4, 6, 16, 64, 100):
        centres, width = places_of_chips(chips)
        ends = np.abs(centres) + width / 2
        assert ends.max() <= 0.5 + 1e-9
        away = np.hypot(*(centres[:, :, None] - centres[:, None]))
        # Chips repel each other.
        assert away[~np.eye(chips, dtype=bool)].min() * layout_file.CHIP_PUSHED > width


def test_edges_between_chips_are_golden_and_counted():
    graph = OnChips(2)
    layout = placed(graph)
    place = Window.around(layout.x, layout.y, SIZE).pixels(layout.x, layout.y)
    golden = coloured("chip", graph, layout)
    plain = replace(golden, between=NONE)
    sheets = [draw(graph, *place, each, SIZE, ignore_step) for each in (golden, plain)]
    for sheet in sheets:
        assert (sheet.edges, sheet.between) == (graph.edge_count, graph.crossing_count)
        assert 0 < sheet.between < sheet.edges
        check_drawn(graph, sheet)
    with pytest.raises(AssertionError):
        check_drawn(graph, replace(sheets[0], between=0))
    # There is no less light, but gold has no blue, which all chips have.
    light, blue = ([float(each.fibres[..., k].sum()) for each in sheets] for k in (3, 2))
    assert light[0] >= 0.999 * light[1]
    assert blue[0] < 0.9 * blue[1]


def test_few_edges_between_chips_are_brightened():
    picture, gold = np.full((2, 8, 8, 4), 1.0, np.float32)
    gold[:] = 0
    gold[3, 3] = 0.1
    bright, dim = picture.copy(), picture.copy()
    raster._add_gold(bright, gold)
    assert bright[3, 3, 3] == pytest.approx(1 + 0.1 * raster.MOST_GOLD)
    raster._add_gold(dim, np.ones_like(picture))
    assert dim[3, 3, 3] == pytest.approx(2)


def test_each_chip_has_a_name_above_it():
    graph = OnChips(2)
    layout = placed(graph)
    window = Window.around(layout.x, layout.y, SIZE)
    found = {each.name: each for each in labels_of(layout, window)}
    assert {"chip 0", "chip 1"} < set(found)
    _, y = window.pixels(layout.x, layout.y)
    for k in range(2):
        mine = layout.chip_of == k
        assert found[f"chip {k}"].vertices == mine.sum()
        assert found[f"chip {k}"].y * SIZE <= np.percentile(y[mine], 1)


def test_the_legend_says_how_many_edges_lead_between_chips():
    graph = OnChips(2)
    laid = laid_out(graph, Subject("net", "batch 1"), SIZE)
    found = scan(laid, "chip", SIZE)
    share = graph.crossing_count / graph.edge_count
    line = f"edges between chips: {graph.crossing_count:,} ({share:.2%})"
    assert line in legend_of(found)


def legend_of(found: Scan) -> list[str]:
    none = np.zeros((0, 0, 4), np.float32)
    graph = found.laid.graph
    return legend(found.laid, Sheet(none, none, found.edges, found.vertices, graph.crossing_count))


def test_a_sample_counts_its_own_edges_between_chips():
    graph = OnChips(2, size=200)
    part = Sampled(graph, 3)
    chip = part.vertices()["tile"] // 2
    expected = sum(int((chip[b.producer] != chip[b.consumer]).sum()) for b in part.edges())
    assert part.crossing_count == expected > 0
    assert Sampled(LayeredGraph(), 3).crossing_count == 0


def test_kernels_that_drew_one_chip_are_not_compiled_again_for_several():
    for graph in (LayeredGraph(), OnChips(2)):
        placed(graph)
    assert [len(each.signatures) for each in (deposit, deposit_layers, pull, step)] == [1] * 4
