import numpy as np
import pytest
from layered_graph import LayeredGraph

from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan.colours import COLOURINGS
from abele.tools.views.scan.layout import Layout, lay_out
from abele.tools.views.scan.raster import Window, draw
from abele.tools.views.scan.sample import sample_edges

SIZE = 256


@pytest.fixture(scope="module")
def laid() -> tuple[LayeredGraph, Layout]:
    graph = LayeredGraph()
    return graph, lay_out(graph, sample_edges(graph, 0, ignore_step), 0, ignore_step)


@pytest.mark.parametrize("name", COLOURINGS)
def test_as_much_is_drawn_as_is_counted_in_all_colours(name: str, laid):
    graph, layout = laid
    colouring = COLOURINGS[name](graph, layout)
    place = Window.around(layout.x, layout.y, SIZE).pixels(layout.x, layout.y)
    sheet = draw(graph, *place, colouring, SIZE, ignore_step)
    assert (sheet.edges, sheet.vertices) == (graph.edge_count, graph.vertex_count)
    again = draw(graph, *place, colouring, SIZE, ignore_step)
    assert np.array_equal(sheet.fibres, again.fibres)
    assert np.array_equal(sheet.points, again.points)


def test_a_vertex_is_drawn_where_it_lies_in_its_colour(laid):
    graph, layout = laid
    colouring = COLOURINGS["layer"](graph, layout)
    x, y = Window.around(layout.x, layout.y, SIZE).pixels(layout.x, layout.y)
    sheet = draw(graph, x, y, colouring, SIZE, ignore_step)
    for vertex in (0, 57, graph.vertex_count - 1):
        column, row = int(x[vertex]), int(y[vertex])
        here = (x.astype(int) == column) & (y.astype(int) == row)
        assert sheet.points[row, column, 3] == here.sum()
        expected = colouring.palette[colouring.ink[here]].sum(axis=0)
        assert sheet.points[row, column, :3] == pytest.approx(expected, rel=1e-4)


def test_a_window_holds_everything_with_a_margin(laid):
    _, layout = laid
    x, y = Window.around(layout.x, layout.y, SIZE, margin=0.1).pixels(layout.x, layout.y)
    for values in (x, y):
        assert values.min() >= 0.0999 * SIZE
        assert values.max() <= 0.9001 * SIZE
