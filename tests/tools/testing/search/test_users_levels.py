import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from some_extensions import loads_taken_back
from some_levels import BRANCHES, HALF, LATE, TARGET, WRONG_IN, WRONG_OUT, write, write_waves

from abele.backends.target import resolve_target
from abele.dialects.levels import NN
from abele.ir.context import AbeleContext
from abele.ir.support.errors import InputError
from abele.ir.text import parse_module
from abele.passes.pipelines import shorthand_from
from abele.tools.driver.arrays import seeded
from abele.tools.driver.program import signature
from abele.tools.extensions import load_extensions
from abele.tools.testing import Miscompiled, bounded_run, check_pass, check_pipeline
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level, known_levels
from abele.tools.testing.generators.program import Program
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.oracle.whole_tensors import run_on_whole_tensors
from abele.tools.testing.search.fuzz import jobs
from abele.tools.testing.search.replay import replayed, saved_program
from abele.tools.testing.search.run import PassList
from abele.tools.testing.search.valid import passes_to_the_machine


@pytest.fixture(autouse=True)
def taken_back() -> Iterator[None]:
    with loads_taken_back():
        yield


def compiled_to(level: str, files: list[str]) -> Program:
    """The program of two branches at a level."""
    extensions = load_extensions(files)
    context = extensions.context()
    module = parse_module(BRANCHES, context)
    target = resolve_target(TARGET)
    inputs = seeded(signature(module).inputs)
    spec = ",".join(each for each in ("nn", "half", "partition", "wave") if each in known_levels())
    spec = spec.partition(level)[0] + level
    for each in extensions.pipeline(spec, target.spelling()):
        each.apply(context, module)
    return Program(module, context, inputs, target)


@pytest.mark.parametrize("tested", ["convert-partition-to-wave", "convert-wave-to-tile"])
def test_right_conversions_pass_on_generated_programs(tmp_path: Path, tested: str):
    load_extensions(write_waves(tmp_path))
    report = check_pass(tested, examples=12, seed=3)
    assert report.level == {"convert-partition-to-wave": "partition"}.get(tested, "wave")
    assert report.examples == 12
    assert report.changed > 2


@pytest.mark.parametrize(
    ("stem", "bug", "tested"),
    [
        ("to_wave", WRONG_IN, "convert-partition-to-wave"),
        ("from_wave", WRONG_OUT, "convert-wave-to-tile"),
    ],
)
def test_the_kit_finds_a_bug_in_a_conversion_and_another_process_can_run_it_again(
    tmp_path: Path, stem: str, bug: tuple[str, str], tested: str
):
    files = write_waves(tmp_path, **{stem: bug})
    with loads_taken_back():
        load_extensions(files)
        with pytest.raises(Miscompiled, match=tested) as found:
            check_pass(tested, examples=200, seed=1, folder=tmp_path / "found", reduce_seconds=2)
    assert "wave.together" in str(found.value)
    record = json.loads((tmp_path / "found" / "replay.json").read_text())
    assert sorted(record["load"]) == sorted(files)
    program, read = saved_program(tmp_path / "found")
    assert replayed(program, read) is not None


def test_the_default_pipeline_of_the_kit_goes_through_the_level(tmp_path: Path):
    assert "wave" not in shorthand_from(NN)
    load_extensions(write_waves(tmp_path))
    names = [each.name for each in PassList.of(shorthand_from(NN)).on()]
    at = names.index("convert-partition-to-wave")
    assert names[at - 1 : at + 2] == [
        "convert-nn-to-partition",
        "convert-partition-to-wave",
        "convert-wave-to-tile",
    ]
    # Texts that follow each other are one pipeline, and one may go past the level.
    past = [each.name for each in PassList.of(("partition", "tile")).on()]
    assert past[-2:] == ["convert-nn-to-partition", "convert-partition-to-tile"]
    assert check_pipeline(examples=3, seed=1, kernels=0).examples == 3


def test_fuzz_tests_the_level_and_its_conversions(tmp_path: Path):
    assert "nn -> wave, at random" not in jobs()
    load_extensions(write_waves(tmp_path))
    found = jobs()
    new = {"convert-partition-to-wave", "convert-wave-to-tile", "nn -> wave, at random"}
    assert new <= found.keys()


def test_generated_programs_reach_the_level(tmp_path: Path):
    load_extensions(write_waves(tmp_path))
    made = [
        at_level(build(random_sketch(Random(seed)), default_operators()), "wave")
        for seed in range(12)
    ]
    levels = [str(each.level) for each in made if each is not None]
    assert levels.count("wave") >= 4
    assert set(levels) <= {"wave", "partition"}


def test_random_decisions_of_a_level_replace_its_conversion(tmp_path: Path):
    decide = (
        "    meanings={",
        "    decide=lambda module, target, random: module.attributes.clear(),\n    meanings={",
    )
    load_extensions(write_waves(tmp_path, waves=decide))
    made = at_level(build(random_sketch(Random(1)), default_operators()), "wave")
    assert made is not None
    assert not made.module.attributes


def test_a_program_of_the_level_has_bounds_and_a_meaning_on_whole_tensors(tmp_path: Path):
    program = compiled_to("wave", write_waves(tmp_path))
    assert str(program.level) == "wave"
    bounded = bounded_run(program)
    (error,) = bounded.errors.values()
    assert 0 < error.max() < 1e-2
    whole = run_on_whole_tensors(program, lambda _: None)
    (name,) = bounded.outputs
    assert abs(whole.outputs[name] - bounded.outputs[name]).max() <= 2.002 * error.max()


def test_the_rest_of_the_pipeline_leaves_the_level_by_its_own_way(tmp_path: Path):
    program = compiled_to("wave", write_waves(tmp_path))
    names = passes_to_the_machine(program)
    assert names[0] == "convert-wave-to-tile"
    program = compiled_to("partition", write_waves(tmp_path))
    assert passes_to_the_machine(program)[0] == "convert-partition-to-tile"


def test_no_bound_is_known_of_what_an_evaluator_computes(tmp_path: Path):
    program = compiled_to("half", [write(tmp_path, "half.py", HALF)])
    assert str(program.level) == "half"
    with pytest.raises(InputError, match=r"half\.of at .*: an evaluator computes it"):
        bounded_run(program)


def test_what_a_user_adds_at_a_level_is_no_operator_of_nn(tmp_path: Path):
    load_extensions([write(tmp_path, "half.py", HALF), write(tmp_path, "late.py", LATE)])
    names = {cls.name for cls in default_operators().classes}
    assert "nn.scale" in names
    assert not {each for each in names if each.startswith(("half.", "late."))}
    assert isinstance(default_operators().context, AbeleContext)
