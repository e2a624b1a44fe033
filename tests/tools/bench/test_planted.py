"""Reproducers of planted bugs are measured, and run on the passes without the bug."""

from __future__ import annotations

from pathlib import Path

from abele.dialects import nn
from abele.passes.canonicalize import Canonicalize
from abele.tools.bench.planted import cells, share_within, size_of_most, trouble_on_clean_passes
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import Sketch, Step
from abele.tools.testing.mutation.mutant import Mutant
from abele.tools.testing.mutation.trial import Trial
from abele.tools.testing.search.run import PassList
from abele.tools.testing.search.save import save_failure
from abele.tools.testing.search.settings import Budget


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
