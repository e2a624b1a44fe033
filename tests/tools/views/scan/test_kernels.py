from types import ModuleType

import numpy as np
import pytest

from abele.tools.views.scan.kernels import claim, deposit, develop, dots, fibres, pull

SIZE = 256


@pytest.fixture
def datashader() -> ModuleType:
    """The package, which takes a second to import: too long where tests are only collected."""
    import datashader

    return datashader


def drawn(ends: np.ndarray, bend: float = 0.0, samples: int = 4000, swell: float = 1.0):
    """Edges, each between two vertices of its own: (n, 4) of x, y, x, y."""
    x = ends[:, [0, 2]].astype(np.float32).ravel()
    y = ends[:, [1, 3]].astype(np.float32).ravel()
    ids = np.arange(len(x), dtype=np.int32)
    picture = np.zeros((SIZE, SIZE, 4), np.float32)
    ink, palette = np.zeros(len(x), np.uint16), np.ones((1, 3), np.float32)
    none = np.empty((0, 3), np.float32)
    real = map(np.float32, (0.25, bend, swell))
    count = fibres(
        ids[::2], ids[1::2], 0, len(ends), x, y, ink, palette, none, samples, *real, 0, picture
    )
    return picture, count


def coarse(picture: np.ndarray) -> np.ndarray:
    return picture.reshape(8, SIZE // 8, 8, SIZE // 8).sum(axis=(1, 3))


@pytest.mark.large
def test_straight_fibres_are_the_lines_that_datashader_draws(datashader: ModuleType):
    import pandas

    random = np.random.default_rng(0)
    ends = random.uniform(0, SIZE - 1, (4000, 4))
    # Along the axes, the light of a line is its pixels; datashader counts those.
    ends[::2, 3] = ends[::2, 1]
    ends[1::2, 2] = ends[1::2, 0]
    picture, count = drawn(ends)
    frame = pandas.DataFrame(ends, columns=["x0", "y0", "x1", "y1"])
    canvas = datashader.Canvas(SIZE, SIZE, x_range=(0, SIZE), y_range=(0, SIZE))
    lines = canvas.line(
        frame, x=["x0", "x1"], y=["y0", "y1"], axis=1, agg=datashader.count()
    ).to_numpy()
    mine, theirs = coarse(picture[..., 3]), coarse(lines.astype(np.float64))
    assert count == len(ends)
    assert mine.sum() == pytest.approx(theirs.sum(), rel=0.005)
    assert np.abs(mine / theirs - 1).max() < 0.03


def test_points_are_those_that_datashader_draws(datashader: ModuleType):
    import pandas

    random = np.random.default_rng(4)
    x, y = random.normal(SIZE / 2, SIZE / 4, (2, 20_000)).astype(np.float32)
    ink = random.integers(0, 3, len(x)).astype(np.uint16)
    palette = random.random((3, 3), np.float32)
    picture = np.zeros((SIZE, SIZE, 4), np.float32)
    count = dots(x, y, ink, palette, picture)
    frame = pandas.DataFrame({"x": x, "y": y, "red": palette[ink, 0]})
    # The last pixel of datashader's canvas is closed on both sides; nothing lies there.
    canvas = datashader.Canvas(SIZE, SIZE, x_range=(0, SIZE), y_range=(0, SIZE))
    seen = canvas.points(frame, "x", "y", agg=datashader.count()).to_numpy()
    red = canvas.points(frame, "x", "y", agg=datashader.sum("red")).to_numpy()
    assert count == seen.sum() < len(x)
    assert np.array_equal(picture[..., 3], seen)
    assert picture[..., 0] == pytest.approx(np.nan_to_num(red), rel=1e-4)


def test_an_edge_has_the_same_total_light_in_any_shape():
    ends = np.random.default_rng(1).uniform(60, 190, (500, 4))
    straight, bent = (drawn(ends, bend, swell=-0.3)[0] for bend in (0.0, 0.2))
    length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
    for picture in (straight, bent):
        assert picture[..., 3].sum() == pytest.approx(((length + 1) ** -0.3).sum(), rel=1e-3)
    assert not np.array_equal(straight > 0, bent > 0)


def test_an_edge_outside_the_sheet_is_not_counted():
    assert drawn(np.array([[-50.0, -50, -20, -90], [10, 10, 20, 20]]))[1] == 1


def test_a_fibre_goes_from_its_producers_to_its_consumers_colour():
    x, y = np.array([10, 240], np.float32), np.array([100, 100], np.float32)
    picture = np.zeros((SIZE, SIZE, 4), np.float32)
    palette = np.array([[1, 0, 0], [0, 0, 1]], np.float32)
    ink, one, other = np.array([0, 1], np.uint16), np.zeros(1, np.int32), np.ones(1, np.int32)
    none = np.empty((0, 3), np.float32)
    real = map(np.float32, (0.5, 0, 0))
    fibres(one, other, 0, 1, x, y, ink, palette, none, 999, *real, 0, picture)
    red, blue = picture[100, :, 0], picture[100, :, 2]
    assert red[10:60].sum() > 4 * blue[10:60].sum()
    assert blue[190:240].sum() > 4 * red[190:240].sum()


def test_opposite_directions_have_colours_of_their_own():
    x, y = np.array([10, 240], np.float32), np.array([100, 100], np.float32)
    directions = np.eye(3, dtype=np.float32)[[0, 0, 1, 1]]
    ink, palette = np.zeros(2, np.uint16), np.ones((1, 3), np.float32)
    ends = np.zeros(1, np.int32), np.ones(1, np.int32)
    seen = []
    for one, other in (ends, ends[::-1]):
        picture = np.zeros((SIZE, SIZE, 4), np.float32)
        real = map(np.float32, (0.5, 0, 0))
        fibres(one, other, 0, 1, x, y, ink, palette, directions, 99, *real, 0, picture)
        seen.append(picture[..., :3].sum(axis=(0, 1)).argmax())
    assert seen[0] != seen[1]


def test_masses_lie_where_they_were_put():
    random = np.random.default_rng(2)
    x, y, m = random.uniform(1, 30, (3, 500)).astype(np.float32)
    grid = np.zeros((32, 32), np.float32)
    deposit(x, y, m, np.float32(0), np.float32(0), np.float32(1), grid)
    at = np.arange(32)
    assert grid.sum() == pytest.approx(m.sum(), rel=1e-4)
    assert (grid * at).sum() == pytest.approx((m * x).sum(), rel=1e-4)
    assert (grid * at[:, None]).sum() == pytest.approx((m * y).sum(), rel=1e-4)


def test_a_cell_with_two_layers_belongs_to_none():
    x, y = np.array([0.5, 0.6, 2.5], np.float32), np.array([0.5, 0.6, 1.5], np.float32)
    owner = np.full((4, 4), -1, np.int32)
    claim(x, y, np.array([3, 5, 5], np.int32), *map(np.float32, (0, 0, 1)), owner)
    assert owner[0, 0] == -2
    assert owner[1, 2] == 5
    assert (owner == -1).sum() == 14


def test_more_light_is_brighter_and_then_white():
    light = np.zeros((1, 4, 4), np.float32)
    light[0, 1:, 0] = light[0, 1:, 3] = (0.01, 0.2, 1)
    picture = np.empty((1, 4, 3), np.float32)
    develop(light, *map(np.float32, (1, 100, 2, 1)), picture)
    assert (np.diff(picture[0, :, 0]) > 0).all()
    assert picture[0, 1, 1] == 0
    assert picture[0, 3, 1] > 0.3


@pytest.mark.parametrize("half_fall", [1, 3])
def test_a_long_edge_pulls_less(half_fall: int):
    random = np.random.default_rng(3)
    x, y = random.random((2, 50), np.float32)
    ends = random.integers(0, 50, (2, 400)).astype(np.int32)
    weight = random.random(400, np.float32)
    sums = np.zeros((50, 3), np.float32)
    pull(*ends, weight, 0, 400, x, y, np.float32(0.05), half_fall, sums)
    dx, dy = (each[ends[1]] - each[ends[0]] for each in (x, y))
    force = weight / (1 + np.hypot(dx, dy) / 0.05) ** (half_fall / 2)
    for column, value, sign in ((0, force * dx, -1), (1, force * dy, -1), (2, force, 1)):
        wanted = np.bincount(ends[0], value, 50) + sign * np.bincount(ends[1], value, 50)
        assert sums[:, column] == pytest.approx(wanted, abs=1e-4)
