import numpy as np
import pytest
from layered_graph import LayeredGraph

from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan.colours import COLOURINGS
from abele.tools.views.scan.layout import lay_out
from abele.tools.views.scan.lettering import Label, labels_of, lettered, shortened
from abele.tools.views.scan.raster import Window
from abele.tools.views.scan.sample import sample_edges

SIZE = 512


@pytest.fixture(scope="module")
def layout():
    graph = LayeredGraph(("one", "two", "three"))
    return graph, lay_out(graph, sample_edges(graph, 0, ignore_step), 0, ignore_step)


def test_a_label_lies_on_a_vertex_of_its_layer(layout):
    _, laid = layout
    window = Window.around(laid.x, laid.y, SIZE)
    x, y = window.pixels(laid.x, laid.y)
    labels = labels_of(laid, window)
    assert [each.vertices for each in labels] == sorted(
        (each.vertices for each in labels), reverse=True
    )
    for label in labels:
        mine = laid.layer_of == laid.layers.index(label.name)
        distance = np.hypot(x[mine] - label.x * SIZE, y[mine] - label.y * SIZE)
        assert distance.min() < 1e-2
        assert label.vertices == mine.sum()


def test_labels_do_not_cover_each_other_nor_the_legend(layout):
    colouring = COLOURINGS["layer"](*layout)
    blank = np.zeros((SIZE, SIZE, 3), np.uint8)
    here = [Label(f"layer{k}", 0.5, 0.4, 10) for k in range(40)]
    assert 1 < lettered(blank, here, "t", ["a"], colouring)[1] < 40
    apart = [Label("a", 0.2, 0.2, 10), Label("b", 0.8, 0.2, 10)]
    image, written = lettered(blank, apart, "t", ["a"], colouring)
    assert written == 2
    lit = np.asarray(image).max(axis=-1) > 200
    for x in (0.2, 0.8):
        column = int(x * SIZE)
        assert lit[90:115, column - 15 : column + 15].any()


def test_a_label_at_the_edge_stays_on_the_picture(layout):
    blank = np.zeros((SIZE, SIZE, 3), np.uint8)
    label = Label("a rather long name of a layer", 0.0, 0.0, 10)
    image, written = lettered(blank, [label], "", [], COLOURINGS["layer"](*layout))
    assert written == 1
    assert (np.asarray(image)[:20, :200].max(axis=-1) > 200).sum() > 20


def test_long_names_keep_their_ends():
    assert shortened("conv1") == "conv1"
    assert shortened("a\nb") == "a b"
    long = "block/" * 20 + "conv"
    assert len(shortened(long, 20)) == 20
    assert shortened(long, 20).endswith("block/conv")
