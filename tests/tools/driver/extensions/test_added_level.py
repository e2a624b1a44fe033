import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from some_extensions import abele, loads_taken_back
from some_levels import (
    BRANCHES,
    HALF,
    LATE,
    RUSH,
    TARGET,
    WRONG_IN,
    WRONG_OUT,
    write,
    write_waves,
)

from abele.backends.evaluate.users_levels import EVALUATORS, LOWERED, MEANINGS
from abele.dialects.levels import LEVEL_DIALECTS, LEVELS, NN, OWN_LEVELS, USERS_DIALECTS, level_of
from abele.ir.well_known import LEVEL_NAMES
from abele.passes.pipelines import USERS_WAYS
from abele.tools import compile_model
from abele.tools.driver.arrays import seeded
from abele.tools.driver.extensions.added_level import ADDED
from abele.tools.extensions import load_extensions

ALL = ("nn", "partition", "wave", "tile", "exchange")


@pytest.fixture(autouse=True)
def taken_back() -> Iterator[None]:
    with loads_taken_back():
        yield


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write(tmp_path, "branches.mlir", BRANCHES)


@pytest.fixture
def waves(tmp_path: Path) -> list[str]:
    return write_waves(tmp_path)


def loading(files: list[str]) -> list[str]:
    return [word for each in files for word in ("--load", each)]


# The table of levels


def test_a_level_stands_where_it_is_put_until_its_file_is_taken_back(waves: list[str]):
    with loads_taken_back():
        extensions = load_extensions(waves)
        assert tuple(map(str, LEVELS)) == tuple(LEVEL_NAMES) == ALL
        assert tuple(map(str, extensions.levels)) == ALL
        assert extensions.shorthand_from(NN) == ",".join(ALL)
        assert tuple(map(str, load_extensions().levels)) == tuple(map(str, OWN_LEVELS))
        assert "wave" in LEVEL_DIALECTS
        # Its operations are not legal on nn, as those of other users' dialects are.
        assert "wave" not in USERS_DIALECTS
        assert not NN.is_legal("wave.together")
    assert tuple(LEVELS) == OWN_LEVELS
    assert tuple(LEVEL_NAMES) == tuple(map(str, OWN_LEVELS))
    assert not any((ADDED, LEVEL_DIALECTS, USERS_WAYS, MEANINGS, EVALUATORS, LOWERED))


def test_a_changed_file_replaces_its_level(waves: list[str]):
    load_extensions(waves)
    changed = Path(waves[0])
    changed.write_text(changed.read_text().replace("Computations of one", "Parts of one"))
    load_extensions(waves)
    assert tuple(map(str, LEVELS)) == ALL


# Programs


def test_the_default_pipeline_goes_through_the_level_of_a_request_and_of_no_other(
    model: str, waves: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    without = compile_model(model, TARGET)
    through = compile_model(model, TARGET, load=waves)
    again = compile_model(model, TARGET)
    own = tuple(map(str, OWN_LEVELS))
    assert (without.levels, through.levels, again.levels) == (own, ALL, own)
    # The cache keeps no program of users' code, and takes it for no other request.
    assert again.is_from_cache
    assert not through.is_from_cache
    assert through.profile["supersteps"] < without.profile["supersteps"]
    assert through.profile["sync_cycles"] < without.profile["sync_cycles"]
    assert again.profile["cycles"] == without.profile["cycles"]


def test_all_levels_compute_the_same(model: str, waves: list[str]):
    exe = compile_model(model, TARGET, load=waves)
    assert str(level_of(exe.module_at("wave"))) == "wave"
    inputs = seeded(exe.inputs)
    right = exe.run(inputs, at="nn")["y"]
    for level in ALL:
        np.testing.assert_allclose(exe.run(inputs, at=level)["y"], right, rtol=1e-5, atol=1e-4)


def test_a_pipeline_may_go_past_a_level_and_set_the_options_of_its_conversion(
    model: str, waves: list[str]
):
    def supersteps(passes: str) -> int:
        exe = compile_model(model, TARGET, load=waves, passes=passes)
        return exe.profile["supersteps"]

    past = supersteps("nn,partition,tile,exchange")
    assert past == compile_model(model, TARGET).profile["supersteps"]
    option = "convert-partition-to-wave{most-bytes=1}"
    assert supersteps(f"nn,partition,{option},tile,exchange") == past
    assert supersteps("nn,partition,convert-partition-to-wave,tile,exchange") < past


def test_opt_lists_the_level_and_stops_and_continues_there(
    model: str, waves: list[str], tmp_path: Path
):
    load = loading(waves)
    listed = abele("opt", "--list-passes", *load).output
    assert "wave                       convert-partition-to-wave\n" in listed
    assert "tile                       convert-wave-to-tile\n" in listed
    stages, text = tmp_path / "stages", tmp_path / "wave.mlir"
    compiled = ("compile", model, "-o", tmp_path / "p.abele", "--target", TARGET)
    assert abele(*compiled, "--dump-ir", stages, *load).exit_code == 0
    partition = stages / "12-convert-nn-to-partition.mlir"
    assert "wave.together" in (stages / "13-convert-partition-to-wave.mlir").read_text()
    assert "wave.together" not in (stages / "14-convert-wave-to-tile.mlir").read_text()
    assert abele("opt", partition, "-p", "wave", "-o", text, *load).exit_code == 0
    assert "wave.together" in text.read_text()
    continued = abele("opt", text, "-p", "tile,exchange", *load)
    assert "exchange.variable" in continued.stdout
    # Each stage of the page has a price, as if the pipeline continued from there.
    page = (stages / "index.html").read_text()
    assert "cannot be built from here" not in page


def test_a_saved_program_keeps_the_level(model: str, waves: list[str], tmp_path: Path):
    saved = tmp_path / "branches.abele"
    compile_model(model, TARGET, load=waves).save(saved)
    assert abele("run", saved, "--at", "wave", *loading(waves)).exit_code == 0


def test_without_its_extension_a_saved_program_runs_at_the_other_levels(model: str, tmp_path: Path):
    saved = tmp_path / "branches.abele"
    with loads_taken_back():
        compile_model(model, TARGET, load=write_waves(tmp_path)).save(saved)
    assert abele("run", saved).exit_code == 0
    refused = abele("run", saved, "--at", "wave")
    assert refused.exit_code == 2
    assert "level 'wave'; need one of nn, partition, tile, exchange, or --load" in refused.stderr


# Bisection


@pytest.mark.parametrize(
    ("stem", "bug", "blamed"),
    [
        ("to_wave", WRONG_IN, "convert-partition-to-wave"),
        ("from_wave", WRONG_OUT, "convert-wave-to-tile"),
    ],
)
def test_bisect_names_the_wrong_conversion(
    model: str, tmp_path: Path, stem: str, bug: tuple[str, str], blamed: str
):
    files = write_waves(tmp_path, **{stem: bug})
    found = abele("bisect", model, "--target", TARGET, *loading(files))
    assert found.exit_code == 1
    assert found.output.startswith(f"pass '{blamed}' (1")


def test_bisect_names_a_wrong_pass_before_the_level(model: str, waves: list[str], tmp_path: Path):
    wrong = write(
        tmp_path,
        "wrong.rw",
        "rule wrong: nn.scale(x) {factor = f} => nn.scale(x) {factor = f * 2} where f < 1\n",
    )
    found = abele(
        "bisect",
        model,
        "--target",
        TARGET,
        *loading([*waves, wrong]),
        "-p",
        "wrong," + ",".join(ALL),
    )
    assert found.exit_code == 1
    assert found.output.startswith("pass 'wrong' (1 of")


def test_bisect_says_between_which_passes_a_level_cannot_run(model: str, tmp_path: Path):
    wrong = ("isinstance(each, FenceOp)", "each.name in ('late.fence', 'tile.copy')")
    late = write(tmp_path, "late.py", LATE.replace(*wrong))
    found = abele("bisect", model, "--target", TARGET, "--load", late)
    assert found.exit_code == 1
    assert found.output.startswith("pass 'drop-fences' (15 of 19)")
    assert "or a pass since 'convert-tile-to-late': no run in between" in found.output


@pytest.mark.parametrize(
    ("name", "text", "keeps", "says"),
    [
        (
            "half",
            HALF,
            ("LocatingWalker(FromHalf()).rewrite_module(op)", "pass"),
            "pass 'lower-halves' (12 of 19): leaves half.of at scale: plan-splits takes modules of "
            "nn\n",
        ),
        (
            "late",
            LATE,
            ("isinstance(each, FenceOp)", "False"),
            "pass 'drop-fences' (15 of 19): leaves late.fence at unknown line in @main: "
            "schedule-supersteps takes modules of tile\n",
        ),
    ],
)
def test_bisect_names_the_conversion_that_leaves_an_operation_of_the_level(
    model: str, tmp_path: Path, name: str, text: str, keeps: tuple[str, str], says: str
):
    assert keeps[0] in text
    file = write(tmp_path, f"{name}.py", text.replace(*keeps))
    found = abele("bisect", model, "--target", TARGET, "--load", file)
    assert found.exit_code == 1
    assert found.output.startswith(says)


def test_bisect_refuses_a_pipeline_that_leaves_out_a_level(model: str):
    for passes in ("exchange", "decompose,exchange"):
        refused = abele("bisect", model, "--target", TARGET, "-p", passes)
        assert refused.exit_code == 2
        assert "nn.matmul at q: schedule-supersteps takes modules of tile" in refused.stderr


# Other kinds of levels


def test_an_evaluator_computes_an_operation_on_arrays(model: str, tmp_path: Path):
    half = write(tmp_path, "half.py", HALF)
    exe = compile_model(model, TARGET, load=[half])
    assert exe.levels == ("nn", "half", "partition", "tile", "exchange")
    inputs = seeded(exe.inputs)
    right = exe.run(inputs, at="nn")["y"]
    for level in exe.levels:
        np.testing.assert_allclose(exe.run(inputs, at=level)["y"], right, rtol=1e-5, atol=1e-4)


def test_a_wrong_conversion_differs_from_the_evaluator(model: str, tmp_path: Path):
    half = write(tmp_path, "half.py", HALF.replace("FACTOR = 0.5", "FACTOR = 0.25"))
    found = abele("bisect", model, "--target", TARGET, "--load", half)
    assert found.output.startswith("pass 'lower-halves' (12 of 19): output 'y' is off by")
    assert "rewrite 1 of 1: FromHalf (half.py:" in found.output


def test_an_evaluator_has_to_return_what_the_types_say(model: str, tmp_path: Path):
    half = write(tmp_path, "half.py", HALF.replace("[arrays[0] * np", "[arrays[0][1:] * np"))
    found = abele("run", model, "--target", TARGET, "--at", "half", "--load", half)
    assert found.exit_code == 2
    assert "its evaluator returns arrays of [[15, 16]]; need [[16, 16]]" in found.stderr


def test_a_level_may_run_only_once_it_is_lowered(model: str, tmp_path: Path):
    late = write(tmp_path, "late.py", LATE)
    exe = compile_model(model, TARGET, load=[late])
    assert exe.levels == ("nn", "partition", "tile", "late", "exchange")
    assert "late.fence" in str(exe.module_at("late"))
    inputs = seeded(exe.inputs)
    right = exe.run(inputs)["y"]
    assert np.array_equal(exe.run(inputs, at="late")["y"], right)


def test_two_levels_may_stand_in_a_row(model: str, waves: list[str], tmp_path: Path):
    late = write(tmp_path, "late.py", LATE)
    exe = compile_model(model, TARGET, load=[*waves, late])
    assert exe.levels == ("nn", "partition", "wave", "tile", "late", "exchange")


def test_a_level_may_stand_after_that_of_another_extension(
    model: str, waves: list[str], tmp_path: Path
):
    rush = write(tmp_path, "rush.py", RUSH)
    exe = compile_model(model, TARGET, load=[*waves, rush])
    assert exe.levels == ("nn", "partition", "wave", "rush", "tile", "exchange")
    assert "wave.together" in str(exe.module_at("rush"))
    through = compile_model(model, TARGET, load=waves)
    assert exe.profile["supersteps"] == through.profile["supersteps"]


def test_a_conversion_may_be_a_file_of_rules(model: str, tmp_path: Path):
    half = HALF.replace('into="convert-nn-to-half"', 'into="to-half"')
    half = write(tmp_path, "half.py", half)
    text = "takes nn\nleaves half\nrule scale: nn.scale(x) {factor = 0.5} => half.of(x)\n"
    rules = write(tmp_path, "to_half.rw", text)
    exe = compile_model(model, TARGET, load=[half, rules])
    assert "half.of" in str(exe.module_at("half"))


# Prices


def test_a_report_prices_the_level(model: str, tmp_path: Path):
    priced = ("    meanings={", "    price=lambda op, target: 7.25 * target.tiles,\n    meanings={")
    files = write_waves(tmp_path, waves=priced)
    report = tmp_path / "report"
    made = abele("report", model, "--target", TARGET, "-o", report, *loading(files))
    assert made.exit_code == 0, made.output
    onnx = pytest.importorskip("onnx")
    graph = onnx.load(report / "levels" / "wave.onnx").graph
    waves = [each for each in graph.node if each.op_type == "together"]
    costs = [{each.name: each.f for each in wave.attribute} for wave in waves]
    assert {each["estimated_cycles"] for each in costs} == {58.0}
    program = json.loads((report / "report.json").read_text())["program"]
    assert program["operations_by_level"]["wave"] > 0


# Refusals

WAVE = 'WAVE = PARTITION.extended("wave")'

BAD = {
    "a name that is taken": (('extended("wave")', 'extended("tile")'), "level 'tile': no dialect"),
    "no such neighbour": (
        ("after=PARTITION", "after=WAVE"),
        "level 'wave': after 'wave'; need one of nn, partition, tile",
    ),
    "the last level": (
        ("after=PARTITION", "after=__import__('abele.dialects.levels', fromlist='x').EXCHANGE"),
        "after 'exchange'; need one of nn, partition, tile",
    ),
    "no conversion in": (('into="convert-partition-to-wave"', 'into=""'), "no conversion in; need"),
    "no conversion out": (('out="convert-wave-to-tile"', 'out=""'), "no conversion out; need"),
    "an unknown pass": (
        ('out="convert-wave-to-tile"', 'out="convert-wave-to-tle"'),
        "conversion out: no pass 'convert-wave-to-tle'; did you mean convert-wave-to-tile",
    ),
    "a conversion that stops": (
        ('out="convert-wave-to-tile"', 'out="group-supersteps"'),
        "conversion out: group-supersteps takes tile, but the module is at wave",
    ),
    "a conversion that leads nowhere": (
        ('out="convert-wave-to-tile"', 'out="cse"'),
        "conversion out ends at wave; need a pass that declares leaves = the level tile",
    ),
    "a cycle": (
        ('out="convert-wave-to-tile"', 'out="convert-nn-to-partition"'),
        "convert-nn-to-partition takes nn, but the module is at wave",
    ),
    "a conversion in from elsewhere": (
        ('into="convert-partition-to-wave"', 'into="convert-wave-to-tile"'),
        "conversion in: convert-wave-to-tile takes wave, but the module is at partition",
    ),
    "an operation that nothing runs": (
        ("meanings={TogetherOp: one_by_one}", "meanings={}"),
        "nothing runs wave.together of class TogetherOp; need it in meanings or in evaluators",
    ),
    "a meaning of another operation": (
        ("meanings={TogetherOp: one_by_one}", "meanings={ComputeOp: one_by_one}"),
        "meaning of partition.compute, which is no operation of its dialects",
    ),
    "a meaning besides lowering": (
        ("meanings={", "runs_lowered=True, meanings={"),
        "a meaning, and runs_lowered; need one of them",
    ),
    "no dialect of its name": (
        ('extended("wave")', 'extended("waves")'),
        "level 'waves': no dialect 'waves', by whose operations",
    ),
    "a name with a digit": (('extended("wave")', 'extended("wave2")'), "need a name of lower"),
    "like nothing": (
        (WAVE, "from abele.ir.level import Level\nWAVE = Level('wave', ())"),
        "like is None; need a level of abele's",
    ),
    "like a distant level": (
        (WAVE, "from abele.dialects.levels import EXCHANGE\nWAVE = EXCHANGE.extended('wave')"),
        "like exchange; need partition or tile, between which it stands",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "says"), BAD.values(), ids=BAD)
def test_a_level_that_cannot_stand_is_refused(
    model: str, tmp_path: Path, change: tuple[str, str], says: str
):
    files = write_waves(tmp_path, waves=change)
    refused = abele("run", model, "--target", TARGET, *loading(files))
    assert refused.exit_code == 2
    assert says in refused.stderr
    # Nothing of it is left.
    assert tuple(LEVELS) == OWN_LEVELS
    assert abele("run", model, "--target", TARGET, "--no-cache").exit_code == 0


def test_a_conversion_back_up_is_a_cycle(model: str, waves: list[str], tmp_path: Path):
    up = Path(waves[2])
    text = (
        up.read_text()
        .replace("import TILE", "import PARTITION")
        .replace("leaves = TILE", "leaves = PARTITION")
    )
    up.write_text(text)
    refused = abele("run", model, "--target", TARGET, *loading(waves))
    assert refused.exit_code == 2
    assert "convert-wave-to-tile leads from wave back up to partition: a cycle" in refused.stderr


def test_a_level_that_was_refused_is_loaded_once_it_is_mended(model: str, tmp_path: Path):
    files = write_waves(tmp_path, waves=('out="convert-wave-to-tile"', 'out=""'))
    assert abele("run", model, "--target", TARGET, *loading(files)).exit_code == 2
    assert abele("run", model, "--target", TARGET, *loading(files[:1])).exit_code == 2
    files = write_waves(tmp_path)
    assert abele("run", model, "--target", TARGET, *loading(files)).exit_code == 0


def test_a_name_is_taken_once(waves: list[str], tmp_path: Path):
    load_extensions(waves)
    other = write(tmp_path, "others.py", Path(waves[0]).read_text())
    refused = abele("opt", "--list-passes", "--load", other)
    assert refused.exit_code == 2
    assert "dialect 'wave' is already defined by" in refused.stderr


def test_two_levels_in_one_place_are_refused_with_the_pass_that_does_not_fit(
    waves: list[str], tmp_path: Path
):
    more = tmp_path / "more"
    more.mkdir()
    for name in ("waves", "to_wave", "from_wave"):
        text = (tmp_path / f"{name}.py").read_text()
        text = text.replace("wave", "rush").replace("WAVE", "RUSH").replace("Wave", "Rush")
        (more / f"{name.replace('wave', 'rush')}.py").write_text(text)
    files = [*waves, *map(str, sorted(more.glob("*rush*.py"), reverse=True))]
    refused = abele("opt", "--list-passes", *loading(files))
    assert refused.exit_code == 2
    assert "but the module is at" in refused.stderr
    assert re.search(
        r"Level '(wave|rush)' of \S+\.py stands after partition, too, and .*; load one of them, or "
        "put one after the other",
        refused.stderr,
    )
