"""Reproducers of planted bugs are measured, and run on the passes without the bug."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from time import sleep

import pytest
from typer.testing import CliRunner

from abele.dialects import nn
from abele.passes.canonicalize import Canonicalize
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import Sketch, Step
from abele.tools.testing.mutation.mutant import Mutant
from abele.tools.testing.mutation.trial import Trial
from abele.tools.testing.search.run import PassList
from abele.tools.testing.search.save import save_failure
from abele.tools.testing.search.settings import Budget
from abele.tools.views.script import script
from abele.tools.workshop import planted
from abele.tools.workshop.planted import (
    NAMES,
    cells,
    share_of_rest,
    share_within,
    size_of_most,
    trouble_on_clean_passes,
)


def saved(folder: Path, *passes: str) -> Path:
    known = default_operators()
    program = build(Sketch((Step(known.classes.index(nn.SubOp)),)), known)
    save_failure(program, PassList.of(passes), (), "value", Budget(folder=folder))
    return folder


def test_a_program_that_right_passes_compile_is_clean(tmp_path: Path):
    assert trouble_on_clean_passes(saved(tmp_path, "canonicalize", "fuse-chains")) == ""


def test_a_program_that_passes_refuse_is_not_clean(tmp_path: Path):
    # It has no plans.
    assert trouble_on_clean_passes(saved(tmp_path, "convert-nn-to-partition"))


def test_sizes_are_summarized():
    sizes = [1] * 95 + [7] * 5
    assert share_within(sizes, 6) == 0.95
    assert share_within([], 6) == 1.0
    assert size_of_most([1, 2, 3]) == 3
    assert size_of_most([]) == 0


def test_the_figures_of_a_pass():
    bug = Mutant("canonicalize", "wrong", 1, "", "", "", Canonicalize)
    done = [
        (bug, Trial("found", "value", seconds=1.0, total=3.0, operators=2, blamed="canonicalize")),
        (bug, Trial("found", "value", seconds=2.0, total=3.0, operators=4, blamed="x", clean="no")),
        (bug, Trial("same")),
    ]
    assert cells(done) == ["3", "2", "3", "4", "4", "1 of 2", "1 of 2", "1.5", "1.5"]


def test_bugs_are_planted_in_passes_beside_the_default_pipeline_too():
    assert {"decompose", "differentiate", "recompute", "unfuse"} <= {*NAMES}
    assert "plan-splits" not in NAMES


def test_passes_share_the_time_evenly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(planted, "monotonic", lambda: 10.0)
    assert share_of_rest(40.0, 3) == 20.0
    assert share_of_rest(40.0, 1) == 40.0
    assert share_of_rest(inf, 3) == inf


def test_a_run_that_is_out_of_time_prints_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    bug = Mutant("x", "wrong", 1, "", "", "", Canonicalize)

    def trials(*given: object):
        while True:
            sleep(0.1)
            yield bug, Trial("found", "value", operators=1, blamed="x")

    monkeypatch.setattr(planted, "plant", lambda *given: None)
    monkeypatch.setattr(planted, "chosen_mutants", lambda *given: [])
    monkeypatch.setattr(planted, "trials_among", trials)
    found = tmp_path / "found.jsonl"
    options = ["--only", "decompose,unfuse", "--stop-after", "1", "--json", str(found)]
    result = CliRunner().invoke(script(planted.planted), options)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    # Each pass has its share of the second, and its line before the table.
    assert [each.partition(":")[0] for each in lines[:2]] == ["decompose", "unfuse"]
    assert "bugs in passes" in lines[2]
    assert 2 <= len([json.loads(each) for each in found.read_text().splitlines()]) <= 11


def test_ctrl_c_prints_what_is_done(monkeypatch: pytest.MonkeyPatch):
    def trials(*given: object):
        yield Mutant("x", "wrong", 1, "", "", "", Canonicalize), Trial("same")
        raise KeyboardInterrupt

    monkeypatch.setattr(planted, "plant", lambda *given: None)
    monkeypatch.setattr(planted, "chosen_mutants", lambda *given: [])
    monkeypatch.setattr(planted, "trials_among", trials)
    result = CliRunner().invoke(script(planted.planted), [])
    assert "interrupted" in result.output
    assert "bugs in passes" in result.output
