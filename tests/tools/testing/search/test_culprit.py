"""Faults of codelets and layouts are told apart from those of the pass that first shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lengths import large, lengths

from abele.backends.codelets import numerics
from abele.backends.codelets.calls import Call
from abele.backends.evaluate import blocks
from abele.backends.faults import IndexFault
from abele.ir.errors import InputError
from abele.passes.eliminate_dead import EliminateDead
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import Sketch, random_sketch
from abele.tools.testing.oracle.oracles import difference
from abele.tools.testing.oracle.relations import expected_of
from abele.tools.testing.oracle.whole_tensors import run_on_whole_tensors

from ..wrong_passes import NarrowPartials

RIGHT = "is right: on whole tensors, without layouts and codelets"


def plus_one(codelet: Callable[..., list[Call]]) -> Callable[..., list[Call]]:
    """A codelet that is wrong: it adds 1 to each result of a subtraction."""

    def wrong(cells: Any, scratch: Any) -> list[Call]:
        calls = codelet(cells, scratch)
        if cells.body.function != "sub" or cells.body.then:
            return calls
        result = cells.result

        def add() -> None:
            result[...] = (result.astype(float) + 1).astype(result.dtype)

        return [*calls, (add, ())]

    return wrong


def found_in(tested: Sequence[Any], level: str, folder: Path) -> Miscompiled:
    with pytest.raises(Miscompiled) as caught:
        check_pass(tested, level, examples=1000, seed=1, folder=folder)
    return caught.value


@pytest.mark.parametrize(
    ("tested", "level"),
    [
        large(["partition"], "nn", id="as planned"),
        pytest.param(["convert-nn-to-partition", "tile"], "planned", id="at random"),
    ],
)
def test_a_wrong_codelet_is_named(
    tested: list[str], level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wrong = plus_one(numerics.CODELETS["elementwise"])
    monkeypatch.setitem(numerics.CODELETS, "elementwise", wrong)
    found = found_in(["decompose", *tested] if level == "nn" else tested, level, tmp_path)
    assert found.blamed == "convert-nn-to-partition"
    assert re.match(r"the codelet 'elementwise' of 'sub'.* on \w+: element", found.culprit)
    assert RIGHT in str(found)


def test_a_layout_that_loses_elements_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    right = blocks.filling

    def last_part_is_lost(values: Any, target: Any, with_replicas: bool = True) -> Any:
        pairs = right(values, target, with_replicas)
        # A layout whose parts overlap: the last part of a split axis is written over.
        return pairs[:-1] if len(pairs) > 1 else pairs

    monkeypatch.setattr(blocks, "filling", last_part_is_lost)
    found = found_in(["convert-nn-to-partition"], "planned", tmp_path)
    assert found.culprit.startswith("the layout #abele.layout<")
    assert RIGHT in str(found)


def test_a_copy_to_the_wrong_place_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    right = blocks._bind_windows

    def shifted(spread: Any, target: Any, scratch: Any) -> list[Call]:
        calls = right(spread, target, scratch)
        whole = spread.array
        if whole.size < 2:
            return calls

        def roll() -> None:
            whole[...] = whole.reshape(-1)[::-1].reshape(whole.shape).copy()

        return [(roll, ()), *calls]

    monkeypatch.setattr(blocks, "_bind_windows", shifted)
    found = found_in(["convert-nn-to-partition"], "planned", tmp_path)
    assert found.culprit.startswith("copies from #abele.layout<")


def test_a_wrong_pass_keeps_its_blame(tmp_path: Path):
    found = found_in([NarrowPartials()], "partition", tmp_path)
    assert found.blamed == "narrow-partials"
    assert found.culprit == ""
    assert RIGHT not in str(found)


@pytest.mark.parametrize("level", ["partition", "plain", "placed", "grouped", "exchange"])
@pytest.mark.parametrize("examples", lengths(8, 25))
def test_right_programs_are_right_on_whole_tensors(level: str, examples: int):
    operators, compared = default_operators(), 0
    for seed in range(examples):
        sketch = replace(random_sketch(Random(f"whole {seed}")), seed=seed)
        built = build(sketch, operators)
        # An operation that nothing uses may have a fault that the expected results leave out.
        EliminateDead().apply(built.context, built.module)
        program = at_level(built, level)
        if program is None:
            continue
        steps: list[object] = []
        expected = expected_of(program.source_program())
        if expected.fault is not None:
            with pytest.raises(IndexFault):
                run_on_whole_tensors(program, steps.append)
            continue
        done = run_on_whole_tensors(program, steps.append)
        assert difference(expected, done) is None
        compared += bool(steps)
    assert compared > examples / 3


def test_a_program_of_nn_has_no_layouts():
    program = build(Sketch(()), default_operators())
    with pytest.raises(InputError, match="no layouts or codelets"):
        run_on_whole_tensors(program, lambda step: None)
