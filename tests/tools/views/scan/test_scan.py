import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layered_graph import LayeredGraph
from PIL import Image

from abele.ir.errors import InputError
from abele.tools.views.scan import raster
from abele.tools.views.scan.raster import Sheet
from abele.tools.views.scan.scan import Laid, Subject, developed, laid_out, scan, write_picture

SIZE = 256


@pytest.fixture(scope="module")
def laid() -> Laid:
    return laid_out(LayeredGraph(), Subject("Net <b>", "batch 7"), SIZE)


def test_the_legend_says_what_is_drawn(laid: Laid, monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    from abele.tools.views.scan import scan as module

    original = module.legend
    monkeypatch.setattr(
        module, "legend", lambda *given: said.extend(original(*given)) or original(*given)
    )
    found = scan(laid, "layer", SIZE)
    graph = laid.graph
    assert (found.vertices, found.edges) == (graph.vertex_count, graph.edge_count)
    assert said[0] == "tiny, 4 tiles, batch 7"
    assert said[1] == f"vertices: {graph.vertex_count} drawn = {graph.vertex_count} counted"
    assert said[2] == f"edges: {graph.edge_count:,} drawn = {graph.edge_count:,} counted"
    assert "layer purity" in said[3]


def test_the_same_seed_draws_the_same_picture(laid: Laid):
    again = laid_out(LayeredGraph(), Subject("Net <b>", "batch 7"), SIZE)
    one, same = (np.asarray(scan(each, "layer", SIZE).image) for each in (laid, again))
    assert np.array_equal(one, same)
    assert len(np.unique(one.reshape(-1, 3), axis=0)) > 500


def test_many_vertices_at_one_place_keep_their_colour():
    fibres, points = np.zeros((2, SIZE, SIZE, 4), np.float32)
    fibres[0, 0] = 1
    points[64:192, 64:192] = [50, 0, 0, 50]
    picture = developed(Sheet(fibres, points, 1, 50 * 128 * 128))
    red, green, _ = picture[128, 128].astype(int)
    assert red > 100
    assert red > 4 * green


def test_an_edge_that_is_left_out_is_noticed(laid: Laid, monkeypatch: pytest.MonkeyPatch):
    original = raster.fibres

    def forgets_one(producer: Any, consumer: Any, first: int, last: int, *rest: Any) -> int:
        return original(producer, consumer, first + (last > first), last, *rest)

    monkeypatch.setattr(raster, "fibres", forgets_one)
    with pytest.raises(AssertionError):
        scan(laid, "layer", SIZE)


def test_a_sample_says_that_it_is_one():
    laid = laid_out(LayeredGraph(), Subject("Net", "batch 1"), SIZE, share=2)
    found = scan(laid, "direction", SIZE)
    assert found.vertices == laid.graph.vertex_count < laid.whole.vertex_count
    from abele.tools.views.scan.scan import legend

    none = np.zeros((1, 1, 4), np.float32)
    lines = legend(laid, Sheet(none, none, found.edges, found.vertices))
    assert lines[1] == (
        f"A SAMPLE of {laid.whole.vertex_count} vertices and {laid.whole.edge_count:,} edges"
    )


def test_a_program_without_vertices_is_refused():
    with pytest.raises(InputError, match="Net: computes nothing on the device"):
        laid_out(LayeredGraph(()), Subject("Net", ""), SIZE)


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.webp"])
def test_the_file_ending_decides_the_format_of_the_picture(tmp_path: Path, name: str):
    write_picture(Image.new("RGB", (16, 16), "red"), tmp_path / name)
    with Image.open(tmp_path / name) as image:
        assert image.size == (16, 16)


def test_a_disk_that_fills_up_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def save(self: Image.Image, stream: Any, **_: Any) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "x.png").write_bytes(b"old")
    monkeypatch.setattr(Image.Image, "save", save)
    with pytest.raises(InputError, match=r"x\.png: cannot be written: No space left on device"):
        write_picture(Image.new("RGB", (4, 4)), tmp_path / "x.png")
    assert [each.name for each in tmp_path.iterdir()] == ["x.png"]
    assert (tmp_path / "x.png").read_bytes() == b"old"
