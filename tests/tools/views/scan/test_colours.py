import numpy as np
import pytest
from layered_graph import LayeredGraph

from abele.ir.support.on_step import ignore_step
from abele.tools.views.scan.colours import COLOURINGS, ramp, screen
from abele.tools.views.scan.layout import lay_out
from abele.tools.views.scan.sample import sample_edges


@pytest.fixture(scope="module")
def colourings():
    graph = LayeredGraph(("a", "b", "c", "d"))
    layout = lay_out(graph, sample_edges(graph, 0, ignore_step), 0, ignore_step)
    return graph, layout, {name: make(graph, layout) for name, make in COLOURINGS.items()}


def test_a_ramp_begins_and_ends_with_its_stops():
    found = screen(ramp(("#ff0000", "#00ff00", "#0000ff"), 5))
    assert found == pytest.approx(
        np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]), abs=1e-3
    )


def test_every_layer_has_a_colour_of_its_own(colourings):
    _, layout, found = colourings
    layer = found["layer"]
    assert np.array_equal(layer.ink, layout.layer_of)
    assert len(np.unique(layer.palette.round(3), axis=0)) == len(layout.layers)


def test_colours_of_time_follow_the_program(colourings):
    graph, _, found = colourings
    assert np.array_equal(found["time"].ink, graph.vertices()["compute_set"])


def test_more_cycles_have_a_hotter_colour(colourings):
    graph, _, found = colourings
    cycles = graph.vertices()["cycles"]
    order = np.argsort(cycles, kind="stable")
    assert (np.diff(found["cycles"].ink[order].astype(int)) >= 0).all()
    light = found["cycles"].palette.sum(axis=1)
    assert light[-1] > 3 * light[0]
    assert (found["cycles"].low, found["cycles"].high) == ("10", "99")


def test_colours_of_directions_form_a_closed_wheel(colourings):
    wheel = colourings[2]["direction"].directions
    steps = np.abs(np.roll(wheel, 1, axis=0) - wheel).max(axis=1)
    assert steps[0] < 2 * steps.max()
    assert steps.max() < 0.1


def test_each_phase_of_training_has_a_family_of_colours_with_one_for_each_layer():
    names = ("a", "b", "c", "c backward", "b backward", "b update", "c update")
    graph = LayeredGraph(names, size=20)
    layout = lay_out(graph, sample_edges(graph, 0, ignore_step), 0, ignore_step)
    found = COLOURINGS["phase"](graph, layout)
    assert layout.layers == names
    colours = found.palette[found.ink]
    of_layer = {name: colours[layout.layer_of == k] for k, name in enumerate(names)}
    assert all((each == each[0]).all() for each in of_layer.values())
    assert len({tuple(each[0]) for each in of_layer.values()}) == len(names)
    strongest = {name: int(each[0].argmax()) for name, each in of_layer.items()}
    assert [strongest[name] for name in names] == [2, 2, 2, 0, 0, 1, 1]
