import struct
import sys

import pytest

from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.tools.driver.request import Request
from abele.tools.views.planning.picture import draw_trade_offs, needs_matplotlib
from abele.tools.views.planning.plan import TradeOffs, plan_model, product_of_matrices

TINY = resolve_target("tiny:16")


@pytest.fixture(scope="module")
def found() -> TradeOffs:
    question = plan_model(
        Request("", TINY, passes="nn"), product_of_matrices(64, 256, 32, "f16", TINY)
    )
    return question.trade_offs(question.operator("matmul"))


def test_a_picture_is_a_png_of_its_size(found: TradeOffs, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "new folder" / "it.png"
    # What a node is called is no formula.
    draw_trade_offs(TradeOffs("a$b^{", found.question, found.chosen, found.choices), path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1320, 600)
    assert [each.name for each in path.parent.iterdir()] == ["it.png"]


def test_without_matplotlib_it_says_what_to_install(found: TradeOffs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (needs_matplotlib, lambda: draw_trade_offs(found, tmp_path / "it.png")):
        with pytest.raises(InputError, match=r"pip install 'abele\[plot\]'"):
            draw()
    assert not list(tmp_path.iterdir())
