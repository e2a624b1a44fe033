"""What chips do over time, against the executions of the report."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from some_models import convolutions

from abele.tools.driver.compile import compile_model
from abele.tools.views.report import chip_boxes as boxes_file
from abele.tools.views.report import execution
from abele.tools.views.report.chip_boxes import SKIPPED, Boxes, chip_boxes
from abele.tools.views.report.chip_picture import chip_picture
from abele.tools.views.report.collect import Report, collect

SVG = "{http://www.w3.org/2000/svg}"

TARGET = (
    "tiny:16,links.topology=ladder,links.chips=4,links.rung_gbytes=1e3,links.rail_gbytes=1e3,"
    "links.first_word_ns=0"
)

STAGES, BATCHES = 4, 6


def layers() -> str:
    """Four products, one after the other."""
    x, w = "tensor<8x32xf32>", "tensor<32x32xf32>"
    names = [f"%w{k}" for k in range(STAGES)]
    lines = [f"func.func @main(%a: {x}, {', '.join(f'{n}: {w}' for n in names)}) -> {x} {{"]
    for k, name in enumerate(names):
        before = "%a" if k == 0 else f"%{k - 1}"
        lines.append(f'%{k} = nn.matmul {before}, {name} : ({x}, {w}) -> {x} loc("layer{k}")')
    lines.append(f"func.return %{STAGES - 1} : {x} }}")
    return "\n".join(lines)


def compiled(folder: Path, **options: object) -> Report:
    path = folder / "net.mlir"
    path.write_text(layers())
    return collect(compile_model(path, TARGET, cache=False, **options))


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Report:
    cuts = ",".join(f"layer{k}" for k in range(1, STAGES))
    folder = tmp_path_factory.mktemp("pipeline")
    return compiled(folder, pipeline=cuts, micro_batches=BATCHES)


def boxes_of(found: Boxes, part: str, chip: int) -> np.ndarray:
    return np.flatnonzero((found.part == found.parts.index(part)) & (found.chip == chip))


def test_a_stage_works_on_its_own_chip_once_for_each_micro_batch(pipeline: Report):
    found = chip_boxes(pipeline)
    for stage in range(STAGES):
        here = boxes_of(found, f"stage{stage}", stage)
        assert found.turn[here].max() == BATCHES - 1
        assert set(found.turn[here]) == set(range(BATCHES))


def test_stages_work_side_by_side_and_each_after_the_one_before(pipeline: Report):
    found = chip_boxes(pipeline)
    first, second = (boxes_of(found, f"stage{k}", k) for k in (0, 1))
    begin, end = found.start, found.end
    for turn in range(BATCHES):
        done = end[first[found.turn[first] == turn]].max()
        assert begin[second[found.turn[second] == turn]].min() >= done
    together = (begin[first][:, None] < end[second]) & (begin[second] < end[first][:, None])
    assert together.any()


def test_boxes_of_a_chip_do_not_overlap_and_take_as_long_as_it_works(pipeline: Report):
    found, chips = chip_boxes(pipeline), pipeline.tables["chips"]
    for chip in range(4):
        mine = np.flatnonzero(found.chip == chip)
        assert (found.start[mine][1:] >= found.end[mine][:-1]).all()
        lasts = int((found.end - found.start)[mine].sum())
        busy = [int(chips[f"{name}_cycles"][chip]) for name in ("compute", "exchange", "sync")]
        assert lasts == sum(busy)
        assert found.end[mine].max() == chips["end"][chip]
    assert found.end.max() == pipeline.program["cycles"]


def test_chips_meet_where_one_of_them_has_waited(pipeline: Report):
    found, rows = chip_boxes(pipeline), pipeline.tables["chip_executions"]
    assert len(found.meet)
    assert (found.first < found.last).all()
    waited = np.asarray(rows["start"]) > np.asarray(rows["arrives"])
    assert set(found.meet.tolist()) <= set(np.asarray(rows["start"])[waited].tolist())


def test_iterations_that_the_timeline_skips_are_boxes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(execution, "MOST_EXECUTIONS", 40)
    found = chip_boxes(compiled(tmp_path, pipeline="layer2", micro_batches=40))
    skipped = np.flatnonzero(found.part == SKIPPED)
    assert len(skipped)
    assert found.turn[skipped].max() > 20
    for chip in range(4):
        mine = np.flatnonzero(found.chip == chip)
        assert (found.start[mine][1:] >= found.end[mine][:-1]).all()


def test_without_functions_boxes_are_layers(tmp_path: Path):
    report = compiled(tmp_path)
    found = chip_boxes(report)
    assert {f"layer{k}" for k in range(STAGES)} <= {each.split("/")[0] for each in found.parts}
    assert found.end.max() == report.program["cycles"]


def test_one_chip_has_one_row():
    report = collect(compile_model(convolutions(), "tiny:4", cache=False))
    found = chip_boxes(report)
    assert set(found.chip) == {0}
    assert (found.start.min(), found.end.max()) == (0, report.program["cycles"])
    assert not len(found.meet)


def test_later_boxes_of_a_long_run_are_left_out_and_counted(
    pipeline: Report, monkeypatch: pytest.MonkeyPatch
):
    whole = chip_boxes(pipeline)
    monkeypatch.setattr(boxes_file, "MOST_BOXES", 10)
    found = chip_boxes(pipeline)
    assert len(found.chip) == 10
    assert found.left_out == len(whole.chip) - 10
    assert found.start.max() <= np.sort(whole.start)[10]


def test_the_picture_has_a_row_for_each_chip_and_a_box_for_each_call(pipeline: Report):
    picture = chip_picture(pipeline)
    root = ElementTree.fromstring(picture.svg)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert [text for text in texts if text and text.startswith("chip ")] == [
        f"chip {k}" for k in range(4)
    ]
    tips = [each.text or "" for each in root.iter(f"{SVG}title")]
    for stage in range(STAGES):
        for turn in range(BATCHES):
            assert any(tip.startswith(f"stage{stage}, time {turn + 1}:") for tip in tips)


def test_the_picture_of_a_pod_has_a_row_for_each_of_many_chips(tmp_path: Path):
    path = tmp_path / "net.mlir"
    path.write_text(layers().replace("8x32", "2048x32"))
    target = TARGET.replace("tiny:16", "tiny:128").replace("chips=4", "chips=64")
    picture = chip_picture(collect(compile_model(path, target, cache=False)))
    assert len(picture.svg) < 200_000
    assert "chip 63" in picture.svg or "chip 62" in picture.svg
