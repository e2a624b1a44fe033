"""Memory over time: what the curve shows is what the program does."""

import csv
from itertools import pairwise
from pathlib import Path

import pytest
from training import training_step, with_phases

from abele.tools import Executable, compile_model
from abele.tools.driver.executable import MACHINE
from abele.tools.driver.recomputation.record import Recomputed, write_recomputed
from abele.tools.views.memory_curve import (
    APART,
    MemoryCurve,
    _apart,
    _places,
    write_memory_curves,
)

TARGET = "tiny:8"


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("step") / "step.mlir"
    path.write_text(with_phases(training_step(4, 8, 16), 4))
    return path


@pytest.fixture(scope="module")
def kept(step: Path) -> Executable:
    return compile_model(step, TARGET)


def chosen(exe: Executable, **names: tuple[str, ...]) -> Recomputed:
    """A choice, recorded as the only one of a program."""
    parts = {"nodes": (), "apart": (), "anew": (), **names}
    choice = Recomputed(**parts, bytes=1, cycles=1)
    write_recomputed(exe.module_at(MACHINE), (choice,))
    return choice


def marks(exe: Executable, kept: Executable) -> list[tuple[str, str]]:
    """The supersteps in which choices take effect, each with what they do."""
    curve = MemoryCurve.of(exe, "auto", kept)
    return [(each.step, kind) for each in curve.moments for _, kind in each.effects]


def test_a_curve_covers_the_run_and_has_its_peak(kept: Executable):
    curve = MemoryCurve.of(kept)
    for a, b in pairwise(curve.moments):
        assert a.start + a.cycles == b.start
    last = curve.moments[-1]
    assert last.start + last.cycles == kept.profile["cycles"]
    highest = max(each.bytes for each in curve.moments)
    assert highest == kept.memory.max_tile_bytes - kept.memory.gap_bytes
    worst = [each for each in curve.moments if each.step == kept.memory.worst_step]
    assert [each.bytes for each in worst] == [highest]


def test_a_copy_is_marked_and_its_original_is_not(step: Path, kept: Executable):
    exe = compile_model(step, TARGET, recompute="conv2,tanh2")
    chosen(exe, nodes=("conv2", "tanh2"))
    assert {kind for _, kind in marks(exe, kept)} == {"computed again"}
    (name,) = {name for name, _ in marks(exe, kept)}
    order = [each.step for each in MemoryCurve.of(exe).moments]
    assert name.startswith("conv2+tanh2")
    assert order.index("conv4+tanh4") < order.index(name)
    # The same choice takes no effect in a program that keeps everything.
    chosen(kept, nodes=("conv2", "tanh2"))
    assert marks(kept, kept) == []
    write_recomputed(kept.module_at(MACHINE), ())


def test_layouts_and_narrow_values_are_marked_where_they_are_made(step: Path, kept: Executable):
    narrow = compile_model(step, TARGET, stash=["float16:tanh1"])
    chosen(narrow, narrow=("float16:tanh1",), anew=("back2/backward",))
    (first, _), (second, _) = found = marks(narrow, kept)
    assert [kind for _, kind in found] == ["kept narrow", "laid out anew"]
    assert first == "conv1+tanh1/stash"
    assert "back2/backward" in second


def test_places_are_where_a_name_begins():
    steps = [frozenset(each.split()) for each in ("a", "a b", "c", "a b d", "", "e:0", "e:0")]
    assert _places("a", steps) == [0, 3]
    assert _places("a+b", steps) == [1, 3]
    assert _places("a:2", steps) == [0, 3]
    assert _places("e:0", steps) == [5]
    assert _places("f", steps) == []


def test_names_in_a_picture_keep_their_distance():
    found = _apart([0.1, 0.5, 0.5, 0.51, 1.0], APART)
    assert all(b - a >= APART - 1e-9 for a, b in pairwise(found))
    assert found[0] == 0.1
    assert found[3:] == [0.51, 1.0]


def test_both_curves_are_in_the_table_and_in_the_picture(
    step: Path, kept: Executable, tmp_path: Path
):
    exe = compile_model(step, TARGET, recompute="tanh2")
    chosen(exe, nodes=("tanh2",))
    # A name may have anything in it.
    odd = "a$\\x$\x1b"
    curves = [MemoryCurve.of(kept), MemoryCurve.of(exe, odd, kept)]
    write_memory_curves(tmp_path / "m.csv", curves, 50_000)
    with (tmp_path / "m.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["recompute"] for row in rows} == {"", odd.replace("\x1b", r"\x1b")}
    assert len(rows) == sum(len(each.moments) for each in curves)
    assert {row["effects"] for row in rows} == {"", "computed again: tanh2"}
    pytest.importorskip("matplotlib")
    write_memory_curves(tmp_path / "m.png", curves, 50_000)
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
