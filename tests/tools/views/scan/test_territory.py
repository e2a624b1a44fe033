import numpy as np

from abele.tools.views.scan.measures import purity
from abele.tools.views.scan.territory import separate_layers


def mixed(count: int = 800_000):
    """Two layers on either side of a line, mixed near it, and some of a third among them."""
    random = np.random.default_rng(0)
    x, y = random.random((2, count)).astype(np.float32)
    layer = (x + random.normal(0, 0.03, count) > 0.5).astype(np.int32)
    layer[random.random(count) < 0.02] = 2
    return x, y, layer


def test_separated_layers_share_no_cell():
    x, y, layer = mixed()
    assert purity(x, y, layer) < 0.95
    assert separate_layers(x, y, layer) == 0
    assert purity(x, y, layer) > 0.999


def test_vertices_move_to_the_nearest_place_only():
    x, y, layer = mixed()
    old = x.copy(), y.copy()
    separate_layers(x, y, layer)
    far = np.hypot(x - old[0], y - old[1])
    assert (far == 0).mean() > 0.9
    assert far.max() < 25 / 512
    assert np.percentile(far, 99) < 6 / 512
    # By whole cells: what could be seen of the grid would be straight lines.
    cells = np.abs(x - old[0])[far > 0] * 512
    assert np.abs(cells - np.round(cells)).max() < 0.01


def test_a_vertex_far_from_its_layer_is_moved_to_it():
    # Four in each cell.
    places = (np.arange(1024, dtype=np.float32) + 0.5) / 1024
    x, y = (each.ravel().copy() for each in np.meshgrid(places, places))
    layer = (x > 0.7).astype(np.int32)
    # Far more than REACH cells from those of their layer, and no cell is free.
    strays = np.flatnonzero((x > 0.1) & (x < 0.3) & (y > 0.1) & (y < 0.9))[::300]
    layer[strays] = 1
    assert separate_layers(x, y, layer) == 0
    assert purity(x, y, layer) > 0.999
    assert (x[strays] > 0.69).all()


def test_vertices_on_the_border_keep_the_size_of_the_picture():
    x, y, layer = mixed()
    rim = [x.argmin(), x.argmax(), y.argmin(), y.argmax()]
    layer[rim] = 2
    box = x.min(), x.max(), y.min(), y.max()
    separate_layers(x, y, layer)
    assert (x.min(), x.max(), y.min(), y.max()) == box
    assert purity(x, y, layer) > 0.999


def test_no_vertex_moves_beyond_the_border():
    random = np.random.default_rng(2)
    x, y = random.random((2, 1_000_000)).astype(np.float32)
    # Theirs is the last column of cells only.
    layer = (x > 511 / 512).astype(np.int32)
    layer[::50] = 1
    box = x.min(), x.max(), y.min(), y.max()
    separate_layers(x, y, layer)
    assert (x.min(), x.max(), y.min(), y.max()) == box
    assert purity(x, y, layer) > 0.999
