import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from some_models import SMALL, model, node, random, relu
from xdsl.dialects.builtin import StringAttr

from abele.backends.executable import ProgramFile, save
from abele.ir.context import AbeleContext
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.text import write_module
from abele.ir.upstream import ModuleOp
from abele.tools import compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.debug.opt import Options, optimise
from abele.tools.driver.analyses import GRAPH
from abele.tools.driver.arrays import seeded
from abele.tools.driver.extensions.loaded import Extensions
from abele.tools.driver.request import Request

RECURRENT = Path(__file__).parents[3] / "examples" / "recurrent.mlir"

LEVELS = ("nn", "partition", "tile", "exchange")

KEYS = {
    "vertices",
    "edges",
    "supersteps",
    "tiles_used",
    "cycles",
    "compute_cycles",
    "exchange_cycles",
    "sync_cycles",
    "exchange_bytes",
    "max_tile_bytes",
    "ops",
    "seconds",
}


def test_bytes_from_and_to_the_host_have_cycles_of_their_own():
    exe = compile_model(relu(), "tiny:4,host.bytes_per_cycle=8")
    profile = exe.profile
    moved = [sum(a.nbytes for a in seeded(each).values()) for each in (exe.inputs, exe.outputs)]
    assert [profile["host_input_bytes"], profile["host_output_bytes"]] == moved
    assert profile["host_cycles"] == sum(moved) // 8
    assert profile["cycles"] == compile_model(relu(), "tiny:4").profile["cycles"]


def test_a_model_in_memory_and_its_file_give_the_same(tmp_path: Path):
    proto = SMALL["normalisations"]()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    one, other = compile_model(proto, "tiny"), compile_model(path, "tiny")
    inputs = seeded(one.inputs)
    np.testing.assert_array_equal(one.run(inputs)["y"], other.run(inputs)["y"])


def test_the_profile_has_every_entry_that_reports_rely_on():
    exe = compile_model(relu(), "tiny:4")
    exe.run(seeded(exe.inputs))
    profile = exe.profile
    assert set(profile) >= KEYS
    assert set(profile["ops"]) == set(LEVELS)
    assert profile["cycles"] == sum(
        profile[f"{kind}_cycles"] for kind in ("compute", "exchange", "sync")
    )
    assert set(profile["seconds"]) >= {"read", *LEVELS, "load", "run"}
    assert 1 <= profile["tiles_used"] <= 4


PLANNED = """
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = nn.relu %x {plan = #abele.plan<split [4, 2]>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  func.return %0 : tensor<8x64xf32>
}"""


def test_plans_made_by_hand_are_for_the_target_that_is_given(tmp_path: Path):
    path = tmp_path / "planned.mlir"
    path.write_text(PLANNED)
    passes = "convert-nn-to-partition,tile,exchange"
    exe = compile_model(path, "tiny:8", passes=passes)
    assert exe.target.tiles == 8
    assert exe.profile["tiles_used"] == 8
    assert bisect(Request(path, "tiny:8", passes=passes)).passed
    with pytest.raises(InputError, match="the module names no target"):
        compile_model(path, passes=passes)


def test_the_target_is_mk2_unless_the_program_names_another():
    assert compile_model(relu()).target.name == "mk2"


def test_an_unknown_level_is_refused():
    with pytest.raises(InputError, match="no level 'vertex'; need one of nn, partition"):
        compile_model(relu(), "tiny").module_at("vertex")


@pytest.mark.parametrize("level", LEVELS)
def test_a_program_goes_on_from_the_text_of_any_level(tmp_path: Path, level: str):
    exe = compile_model(SMALL["convolutions"](), "tiny:5")
    write_module(exe.module_at(level), tmp_path / "program.mlir")
    again = compile_model(tmp_path / "program.mlir", None if level != "nn" else "tiny:5")
    assert again.levels == LEVELS[LEVELS.index(level) :]
    assert again.target == exe.target
    inputs = seeded(exe.inputs)
    np.testing.assert_array_equal(again.run(inputs)["y"], exe.run(inputs)["y"])


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_planned_program_refuses_another_target(tmp_path: Path, level: str):
    exe = compile_model(relu(), "tiny:5")
    path = tmp_path / "program.mlir"
    write_module(exe.module_at(level), path)
    with pytest.raises(InputError, match="planned for target tiny:5, so it cannot run on tiny:6"):
        compile_model(path, "tiny:6")
    assert compile_model(path, "tiny:5").target == exe.target


def test_a_saved_program_runs_as_the_one_that_was_compiled(tmp_path: Path):
    exe = compile_model(SMALL["convolutions"](), "tiny:5")
    path = tmp_path / "program.abele"
    exe.save(path)
    again = compile_model(path)
    assert again.target == exe.target
    assert again.inputs == exe.inputs
    assert again.outputs == exe.outputs
    inputs = seeded(exe.inputs)
    for level in LEVELS:
        np.testing.assert_array_equal(
            again.run(inputs, at=level)["y"], exe.run(inputs, at=level)["y"]
        )
    figures = {key: value for key, value in exe.profile.items() if "seconds" not in key}
    assert {key: again.profile[key] for key in figures} == figures
    with pytest.raises(InputError, match="cannot run on mk2"):
        compile_model(path, "mk2")


def test_a_saved_program_is_profiled_without_parsing_levels_that_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    exe = compile_model(relu(), "tiny")
    path = tmp_path / "program.abele"
    exe.save(path)
    parsed: list[str] = []
    module_at = ProgramFile.module_at

    def note(program: ProgramFile, level: str, made: AbeleContext) -> ModuleOp:
        parsed.append(level)
        return module_at(program, level, made)

    monkeypatch.setattr(ProgramFile, "module_at", note)
    again = compile_model(path)
    with monkeypatch.context() as patch:
        # What the compiler has counted is not counted again.
        patch.setattr("abele.tools.driver.analyses.counts", None)
        figures = {key: value for key, value in exe.profile.items() if "seconds" not in key}
        assert {key: again.profile[key] for key in figures} == figures
    assert parsed == ["exchange"]


@pytest.mark.parametrize(
    "reported", [{}, {"vertices": 3, "ops": {"nn": "many"}}, {"ops": 3}, dict.fromkeys(GRAPH, True)]
)
def test_figures_missing_from_a_profile_are_counted_again(
    tmp_path: Path, reported: dict[str, object]
):
    exe = compile_model(relu(), "tiny")
    levels = {level: exe.module_at(level) for level in LEVELS[:-1]}
    path = tmp_path / "program.abele"
    save(path, exe.module_at("exchange"), exe.target, levels=levels, profile=reported)
    figures = {key: value for key, value in exe.profile.items() if "seconds" not in key}
    again = compile_model(path)
    assert {key: again.profile[key] for key in figures} == figures


def test_a_saved_program_keeps_its_state(tmp_path: Path):
    exe = compile_model(RECURRENT, "tiny")
    exe.save(tmp_path / "program.abele")
    again = compile_model(tmp_path / "program.abele")
    x = {"x": np.ones((1, 4), np.float32)}
    for _ in range(2):
        np.testing.assert_array_equal(again.run(x)["hidden"], exe.run(x)["hidden"])


WITHOUT_ONNX = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("onnx", "onnxruntime"):
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Refuse())
from abele.tools.cli import app
app([sys.argv[1], *sys.argv[2:]])
"""


def test_a_saved_program_runs_where_onnx_is_not_installed(tmp_path: Path):
    path = tmp_path / "program.abele"
    compile_model(relu(), "tiny").save(path)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ONNX, "run", str(path), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "vertices" in done.stdout


def test_symbolic_dimensions_take_their_sizes():
    proto = model([node("Relu", "x", "y")], {"x": ["batch", 3]}, ["y"])
    exe = compile_model(proto, "tiny", dims={"batch": 4})
    assert exe.inputs[0].shape == (4, 3)
    assert exe.run(seeded(exe.inputs))["y"].shape == (4, 3)
    with pytest.raises(InputError, match="batch"):
        compile_model(proto, "tiny")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"input 'x' \(float32\[2, 3\]\) is missing"),
        ({"z": np.zeros((2, 3), np.float32)}, r"no input 'z'; the program takes 'x'"),
        (
            {"x": np.zeros((3, 2), np.float32)},
            r"'x' \(float32\[2, 3\]\): got float32\[3, 2\]",
        ),
        ({"x": np.zeros((2, 3))}, r"input 'x' \(float32\[2, 3\]\): got float64\[2, 3\]"),
        ({"x": [[1, 2, 3], [4, 5]]}, "input 'x' .*: not an array"),
    ],
)
@pytest.mark.parametrize("level", ["nn", "exchange"])
def test_inputs_must_have_the_names_shapes_and_dtypes_of_the_program(
    level: str, given: dict[str, object], message: str
):
    exe = compile_model(relu(), "tiny")
    with pytest.raises(InputError, match=message):
        exe.run(given, at=level)


def test_only_the_machine_is_strict():
    exe = compile_model(relu(), "tiny")
    with pytest.raises(InputError, match="strict at tile"):
        exe.run(seeded(exe.inputs), at="tile", strict=True)


def test_the_error_for_a_program_that_is_too_large_says_where_and_by_how_much():
    proto = model([node("Gemm", "x w", "y")], {"x": [1, 700]}, ["y"], {"w": random((700, 700))})
    with pytest.raises(DoesNotFit, match=r"(?s)tile \d+: .* bytes over: .*the_y") as caught:
        compile_model(proto, "tiny:4")
    assert caught.value.needed > caught.value.available
    assert caught.value.remedy


def test_dumps_can_be_continued_from(tmp_path: Path):
    exe = compile_model(relu(), "tiny", dump_ir=tmp_path)
    dumps = sorted(tmp_path.glob("*.mlir"))
    assert dumps[0].name == "00-input.mlir"
    assert dumps[-1].name.endswith("convert-tile-to-exchange.mlir")
    inputs = seeded(exe.inputs)
    for path in dumps:
        again = compile_model(path, "tiny")
        np.testing.assert_array_equal(again.run(inputs)["y"], exe.run(inputs)["y"])


def test_nodes_are_named_at_every_level():
    exe = compile_model(SMALL["normalisations"](), "tiny")
    for level in LEVELS:
        text = {str(op.location) for op in exe.module_at(level).walk()}
        assert any("the_l" in each for each in text), level


def test_a_dump_of_any_stage_continues_on_the_same_machine(tmp_path: Path):
    compile_model(relu(), "tiny:7", dump_ir=tmp_path)
    for path in sorted(tmp_path.glob("*.mlir")):
        assert compile_model(path).target.spelling() == "tiny:7", path.name


def test_a_given_target_takes_the_place_of_the_modules_until_it_is_planned(tmp_path: Path):
    compile_model(relu(), "tiny:7", dump_ir=tmp_path)
    first, *_, last = sorted(tmp_path.glob("*.mlir"))
    exe = compile_model(first, "tiny:6")
    assert exe.target.spelling() == "tiny:6"
    assert exe.module_at("tile").attributes["abele.target"] == StringAttr("tiny:6")
    planned = next(tmp_path.glob("*plan-splits.mlir"))
    for path in (planned, last):
        with pytest.raises(InputError, match="planned for target tiny:7, so it cannot run on tin"):
            compile_model(path, "tiny:6")


def test_modules_name_their_target_at_every_level():
    exe = compile_model(relu(), "tiny:7")
    for level in LEVELS:
        assert exe.module_at(level).attributes["abele.target"] == StringAttr("tiny:7")


def test_compiling_leaves_garbage_collection_as_it_was():
    import gc

    assert gc.isenabled()
    compile_model(relu(), "tiny")
    assert gc.isenabled()


NAMES_A_FILE = """\
module attributes {{abele.target = "{}"}} {{
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
    %y = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    func.return %y : tensor<4xf32>
  }}
}}
"""


@pytest.mark.parametrize("name", ["other.toml", "other"])
def test_a_program_cannot_make_abele_read_a_file(tmp_path, name):
    (tmp_path / name).write_text("base = 'mk1' \nsecret")
    model = tmp_path / "m.mlir"
    model.write_text(NAMES_A_FILE.format(tmp_path / name))
    with pytest.raises(InputError, match="cannot name a file|is not a preset"):
        compile_model(model)
    for passes in ("plan-splits", "convert-nn-to-partition"):
        with pytest.raises(InputError, match="cannot name a file|is not a preset"):
            optimise(str(model), passes, Options(), Extensions())
    # The user's own words replace what the program says.
    compile_model(model, "tiny")
