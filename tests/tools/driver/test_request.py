"""A request is the one list of what a user can ask for."""

import inspect
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from onnx import parser
from some_models import relu
from xdsl.dialects.builtin import StringAttr

from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.passes.train import Train
from abele.tools import compile_model
from abele.tools.commands.compiling import ALIKE, Compilation
from abele.tools.driver.compile import compiled
from abele.tools.driver.compile_anew import read_model
from abele.tools.driver.decoding.asked import Decoding
from abele.tools.driver.extensions.loaded import Extensions
from abele.tools.driver.request import OPTIONS, Request

GIVEN: dict[str, object] = {
    "dims": {"N": 2},
    "values": {"x": 1},
    "batch": 2,
    "keep": {"x": "y"},
    "passes": "nn",
    "precision": "float16",
    "sparsity": "zeros",
    "weights": {"w": 1.0},
    "recompute": "auto",
    "replicas": 2,
    "stash": ("f134:y",),
    "remote": ("w*",),
    "io_tiles": 1,
    "rounding": "stochastic",
    "partials": "auto",
    "constraints": "c.json",
    "chips": 2,
    "pipeline": "2",
    "schedule": "grouped",
    "stage_chips": "0,1",
    "micro_batches": 2,
    "shard": ("fc1:n=2",),
    "memory_proportion": 0.0,
    "vertices_per_tile": 0,
    "train": Train(),
    "decoding": Decoding(),
    "beside": {"w": ()},
    "dump_ir": "dump",
}
"""A value of each option that a compiled program refuses."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "p.abele"
    compile_model(relu(), "tiny:2", cache=False).save(path)
    return path


def test_every_field_says_what_it_means():
    text = Request.__doc__ or ""
    assert [name for name in OPTIONS if not re.search(rf"\b{name}:\s", text)] == []


def test_compile_model_takes_the_fields_and_says_what_they_mean():
    made = {name: each.default for name, each in inspect.signature(Request).parameters.items()}
    taken = inspect.signature(compile_model).parameters
    assert {name: each.default for name, each in taken.items()} == made
    text = compile_model.__doc__ or ""
    begin = "Compile a model, or load a compiled program.\n\n    Args:\n        model: the path"
    assert text.startswith(begin)
    assert "Raises InputError, DoesNotFit for" in text
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        compile_model(relu(), size=3)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_compiled_program_refuses_what_it_cannot_do(program: Path, name: str):
    if name in GIVEN:
        given = replace(Request(program), **{name: GIVEN[name]})
        with pytest.raises(InputError, match=r"p\.abele: .*(need the model|a program has sizes)"):
            given.refuse_for_program()
    assert bool(OPTIONS[name].refused) == (name in GIVEN)


def test_a_compiled_program_takes_what_asks_for_nothing(program: Path):
    assert compile_model(program, dims={}, values={}, keep={}, passes="", beside=[]).inputs


def test_the_command_line_asks_for_what_its_options_say():
    how = Compilation(target="tiny", dim=["N=2"], value=["x=1"], keep=["x=y"], batch=3)
    asked = how.request("net.onnx", Extensions())
    assert (asked.model, asked.target, asked.batch, asked.cache) == ("net.onnx", "tiny", 3, True)
    assert (asked.dims, asked.keep, asked.train) == ({"N": 2}, {"x": "y"}, None)
    assert list(asked.values or ()) == ["x"]
    assert not replace(how, no_cache=True).request("net.onnx", Extensions()).cache
    turned = {"dim", "inputs", "value", "keep", "load", "shard", "stash", "train", "loss"} | {
        "io_tiles",
        "remote",
        "optimizer",
        "training",
        "calibrate",
    }
    shown = {"no_cache", "verbose"}
    assert {each.name for each in fields(Compilation)} == ALIKE | turned | shown


def test_settling_a_request_twice_changes_nothing(program: Path):
    first = compile_model(relu(), "tiny:2", cache=False)
    settled = Request(relu(), beside=[first]).settled()
    assert settled.target == first.target
    assert settled.settled() == settled


OWN = "tiny:16,links.chips=4,links.topology=ladder"


@pytest.mark.parametrize(
    ("target", "options", "expected"),
    [
        (None, {}, OWN),
        (None, {"chips": 2}, "tiny:8,links.chips=2,links.topology=ladder"),
        (None, {"chips": 1, "io_tiles": 1}, "tiny,io_tiles=1"),
        ("tiny:6", {"io_tiles": 2}, "tiny:6,io_tiles=2"),
        ("mk2x4", {"chips": 1}, "mk2"),
    ],
)
def test_chips_and_io_tiles_are_those_of_the_given_target_or_else_of_the_model_s_own(
    tmp_path: Path, target: str | None, options: dict[str, int], expected: str
):
    path = tmp_path / "own.mlir"
    path.write_text(f"""
      builtin.module attributes {{abele.target = "{OWN}"}} {{
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
          %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
          func.return %0 : tensor<4xf32>
        }}
      }}""")
    request = Request(path, target, **options).settled()
    program = read_model(request, request.extensions.context())
    assert request.machine(program) == resolve_target(expected)
    assert program.module.attributes["abele.target"] == StringAttr(expected)


def test_values_are_added_to_those_that_are_known():
    asked = Request("net.onnx", values={"x": 1}).with_values({"y": 2})
    assert asked.values == {"x": 1, "y": 2}
    assert Request("net.onnx").with_values({"y": 2}).values == {"y": 2}


def test_whoever_reads_a_model_hears_of_its_program_and_inputs():
    heard: list[str] = []
    request = Request(
        relu(),
        "tiny:2",
        cache=False,
        on_read=lambda program: heard.append(program.path),
        on_inputs=lambda inputs: heard.append(inputs[0].name),
    )
    _ = compiled(request)
    assert heard == ["<model>", "x"]


@pytest.mark.parametrize(("precision", "element"), [("float16", "f16"), ("bfloat16", "bf16")])
def test_a_precision_is_the_pass_that_narrows_before_all_others(precision: str, element: str):
    narrow = f"narrow-floats{{to={element} states=unseen}}"
    settled = Request(relu(), precision=precision).settled()
    assert (settled.precision, settled.passes) == (None, f"{narrow},nn,partition,tile,exchange")
    assert Request(relu(), precision=precision, passes="nn").settled().passes == f"{narrow},nn"
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18]>
        m (float[2, 3] x, float[3, 4] w) => (y) { y = MatMul (x, w) }"""
    )
    exe = compile_model(model, "tiny:2", precision=precision, cache=False)
    assert f"x{element}," in str(exe.module_at("partition"))


def test_a_pure_precision_narrows_states_too():
    settled = Request(relu(), precision="pure-float16").settled()
    assert settled.passes.startswith("narrow-floats{to=f16 states=narrow},nn,")


def test_a_rounding_is_the_pass_that_rounds_behind_those_of_nn_and_before_recomputation():
    rounding = "round-stores{rounding=stochastic}"
    settled = Request(relu(), rounding="stochastic", precision="float16").settled()
    assert (settled.rounding, settled.precision) == (None, None)
    assert (
        settled.passes
        == f"narrow-floats{{to=f16 states=unseen}},nn,{rounding},partition,tile,exchange"
    )
    settled = Request(relu(), "tiny:2", rounding="stochastic", recompute="y").settled()
    target = 'round-stores{rounding=stochastic target="tiny:2"}'
    assert settled.passes.startswith(f"nn,{target},recompute{{")


@pytest.mark.parametrize("passes", ["decompose", "nn,round-stores,partition,tile,exchange"])
def test_a_rounding_and_a_pipeline_that_leaves_no_place_for_it_contradict_each_other(passes: str):
    asked = Request(relu(), rounding="nearest", passes=passes)
    with pytest.raises(InputError, match="--rounding nearest and the pipeline .*; need a pipeline"):
        asked.settled()


def test_a_precision_and_a_pipeline_that_narrows_contradict_each_other():
    asked = Request(relu(), precision="float16", passes="narrow-floats,nn")
    with pytest.raises(InputError, match="--precision float16 and the pipeline 'narrow-floats,nn'"):
        asked.settled()


def test_partials_are_the_pass_that_chooses_them_behind_nn_and_before_roundings_and_copies():
    asked = Request(relu(), partials="auto:0.02,weight-gradient=float32", rounding="nearest")
    settled = replace(asked, recompute="y").settled()
    chooses = "narrow-partials{partials=auto weight_gradient=float32 tolerance=0.02}"
    assert settled.passes.startswith(f"nn,{chooses},round-stores{{rounding=nearest}},recompute{{")
    assert (
        Request(relu(), partials="forward=float16")
        .settled()
        .passes.startswith("nn,narrow-partials{partials=keep forward=float16},")
    )


def test_constraints_on_partials_bring_the_pass_that_reads_them(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text('{"operators": {"fc": {"partials": "float16"}}}')
    settled = Request(relu(), constraints=path).settled()
    assert settled.passes.startswith("nn,narrow-partials{partials=keep},")
    path.write_text('{"operators": {"fc": {"tiles": 2}}}')
    assert Request(relu(), constraints=path).settled().passes == ""


@pytest.mark.parametrize(
    ("partials", "says"),
    [
        ("float8", "'float8'; need float16, float32, auto or auto:ERROR"),
        ("float16:0.1", "'float16:0.1'; need"),
        ("update=float16", "'update=float16'; need"),
        ("auto:x", "'x' is no error, such as 0.05"),
        ("auto:nan", "'nan' is no error, such as 0.05"),
        ("float16,float32", "two choices for all; need one"),
        ("auto:0.1,forward=auto:0.2", "errors 0.1, 0.2; need one"),
    ],
)
def test_partials_that_say_nothing_are_refused(partials: str, says: str):
    with pytest.raises(InputError, match=re.escape(f"--partials {partials}: {says}")):
        Request(relu(), partials=partials).settled()
