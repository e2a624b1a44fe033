"""Rows of steps on pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.tools.bench.fidelity.pods.rows import COLUMNS, PODS, is_of_pods, read_pods
from abele.tools.bench.fidelity.rows import CALIBRATION

LINE = "Bow 1.85 GHz,r,16,ResNet-50,fp16.16,22,10,16,3520,1,images/s,0.08,s"


def test_every_row_has_a_machine_and_a_batch():
    rows = {each.name: each for each in read_pods()}
    assert set(rows) == {
        *("resnet50-bow-16", "resnet50-bow-64", "resnet50-mk2-16"),
        *("bert-bow-16", "bert-bow-64"),
    }
    assert rows["bert-bow-64"].stages == 8
    assert rows["resnet50-bow-16"].target.spelling() == "bow-pod16"
    assert rows["resnet50-bow-16"].cycles == pytest.approx(0.0813 * 1.85e9)


def test_a_file_is_known_by_its_columns(tmp_path: Path):
    assert is_of_pods(PODS)
    assert not is_of_pods(CALIBRATION)
    (tmp_path / "empty.csv").write_text("")
    assert not is_of_pods(tmp_path / "empty.csv")


@pytest.mark.parametrize(
    ("lines", "says"),
    [([], "rows.csv: no rows"), ([LINE, LINE], "rows.csv:3: a second row resnet50-bow-16")],
)
def test_a_file_has_rows_of_different_names(tmp_path: Path, lines: list[str], says: str):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")
    with pytest.raises(InputError, match=says):
        read_pods(path)


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("Bow 1.85 GHz", "Box", "rows.csv:2: system 'Box'; need one of Bow, GC200"),
        ("ResNet-50", "AlexNet", "model 'AlexNet'; need one of ResNet-50, BERT-Large"),
        (",16,ResNet", ",15,ResNet", "rows.csv:2: 16 replicas on 15 chips; need a divisor"),
        (",16,ResNet", ",48,ResNet", ""),
        (",22,", ",no,", "micro_batch: 'no'; need a positive number"),
        (",0.08,", ",nan,", "seconds_per_update; need a positive number"),
        (",images/s,0.08,s", "", "seconds_per_update; need a positive number"),
    ],
)
def test_a_row_that_no_pod_has_is_refused(tmp_path: Path, was: str, now: str, says: str):
    path = tmp_path / "rows.csv"
    assert was in LINE
    path.write_text(f"{','.join(COLUMNS)}\n{LINE.replace(was, now)}\n")
    if not says:
        assert read_pods(path)[0].stages == 3
        return
    with pytest.raises(InputError) as error:
        read_pods(path)
    assert says in str(error.value)
