from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from abele.tools.cli import app

SUMS = """builtin.module {
  func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %0 = nn.softmax %x axis 1 : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = nn.softmax %0 axis 0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
    func.return %1 : tensor<64x64xf32>
  }
}
"""


@pytest.fixture(autouse=True)
def _network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("sums.mlir").write_text(SUMS)


def exchange(*arguments: str, target: str = "tiny:16") -> Result:
    asked = ["exchange", "sums.mlir", "--target", target, *arguments]
    found = CliRunner().invoke(app, asked)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


@pytest.mark.parametrize(
    ("arguments", "target", "error"),
    [
        (["--tile", "0"], "tiny:4", "--tile and --draw need --superstep NAME"),
        (["--superstep", "nothing"], "tiny:4", "no superstep @nothing; there are "),
        (["--superstep", "largest", "--tile", "16"], "tiny:16", "has tiles 0..15"),
        ([], "mesh:4", "mesh:4: a mesh has no timetables"),
        (
            [],
            "mesh:4,exchange.timetables=1",
            "exchange.timetables: 1 with a mesh, whose links a timetable does not know; need 0",
        ),
    ],
)
def test_what_has_no_timetable_is_refused_in_one_line(
    arguments: list[str], target: str, error: str
):
    found = exchange(*arguments, target=target)
    assert found.exit_code == 2
    assert found.stderr.startswith("error: ")
    assert error in found.stderr
    assert found.stderr.count("\n") == 1


def test_an_exchange_without_messages_has_no_picture():
    found = exchange("--superstep", "host", "--draw", "lanes.png")
    assert found.exit_code == 2
    assert found.stderr == "error: @host: no messages between tiles, so nothing to draw\n"


def test_an_order_is_shown_and_makes_an_exchange_shorter():
    plain = exchange("--superstep", "centre+exp.1").stdout
    best = exchange("--superstep", "centre+exp.1", "--order").stdout
    assert "in the order of the senders" in plain
    assert "order <" in best
    cycles = [int(text.split()[1]) for text in (plain, best)]
    assert cycles[1] < cycles[0]


def test_exchanges_over_their_bound_say_what_they_wait_for():
    plain, best = exchange("--top", "1").stdout, exchange("--top", "1", "--order").stdout
    for text, order in ((plain, "in the order of the senders"), (best, "in order <")):
        (reason,) = (line for line in text.splitlines() if line.startswith("@"))
        assert reason.startswith("@centre+exp: ")
        assert " messages wait for each other on " in reason
        assert order in reason


def test_a_tile_lists_as_many_words_as_it_sends_and_receives():
    shown = exchange("--superstep", "centre+exp.1", "--tile", "1").stdout
    sends, receives = shown.split("tile 1 receives")
    assert "tile 1 sends" in sends
    for part in (sends, receives):
        rows = [line.split("│") for line in part.splitlines() if line.startswith("│")]
        # Fifteen other tiles, each of which wants a block of 4 x 4.
        assert [int(row[2]) for row in rows] == 15 * [16]


def test_a_picture_is_drawn():
    pytest.importorskip("matplotlib")
    found = exchange("--superstep", "centre+exp.1", "--draw", "lanes.png")
    assert found.exit_code == 0
    assert Path("lanes.png").read_bytes()[1:4] == b"PNG"
