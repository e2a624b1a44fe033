"""Shapes of inputs give sizes to free dimensions; what contradicts them is named beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from typer.testing import CliRunner, Result

from abele.ir.errors import InputError
from abele.tools import Session, compile_model
from abele.tools.cli import app
from abele.tools.driver.example import Example, example_of, sizes_by_example
from abele.tools.driver.request import Request

RANDOM = np.random.default_rng(0)

ARRAYS = {
    "x": RANDOM.standard_normal((2, 3, 5)).astype(np.float32),
    "w": RANDOM.standard_normal((5, 4)).astype(np.float32),
    "any": RANDOM.standard_normal((2, 7)).astype(np.float32),
}

SHAPES = {"x": ("N", 3, "s27"), "w": ("s27", 4), "any": ("?", "?"), "free": ("",)}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18]>
        m (float[N, 3, s27] x, float[s27, 4] w, float[?, ?] any) => (y, z)
        { y = MatMul (x, w) z = Relu (any) }"""
    )
    file = tmp_path_factory.mktemp("model") / "m.onnx"
    onnx.save(model, file)
    return file


def npz(tmp_path: Path, **arrays: Any) -> Path:
    np.savez(tmp_path / "x.npz", **(ARRAYS | arrays))
    return tmp_path / "x.npz"


def call(command: str, model: Path, *more: str | Path) -> Result:
    words = (command, model, "--target", "tiny:4", *more)
    return CliRunner().invoke(app, [str(each) for each in words])


def sizes(**options: Any) -> dict[str, int]:
    shapes = {name: array.shape for name, array in ARRAYS.items()} | options.pop("shapes", {})
    given = {"dims": {}, "values": {}, "batch": None} | options
    return sizes_by_example("m", SHAPES, Example(shapes, "x.npz"), **given)


def test_free_axes_get_the_sizes_of_the_arrays():
    wanted = {"N": 2, "s27": 5, "any:0": 2, "any:1": 7}
    assert sizes() == wanted
    assert sizes(shapes={"free": (6,)}) == wanted | {"free_0": 6}
    assert sizes(dims={"N": 2, "any:1": 7}) == {"N": 2, "any:1": 7, "s27": 5, "any:0": 2}


def test_a_number_of_samples_is_not_that_of_the_arrays():
    assert sizes(batch=9) == {"s27": 5, "any:1": 7}


def test_a_size_that_says_nothing_is_left_out():
    assert "N" not in sizes(shapes={"x": (None, 3, 5)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"shapes": {"w": (4, 4)}},
            "x.npz: axis 0 of 'w' is 4, but axis 2 of 'x' is 5; the model calls both s27",
        ),
        ({"shapes": {"x": (3, 5)}}, "x.npz: 'x' has the shape [3, 5], but the model declares ["),
        ({"shapes": {"x": (2, 2, 5)}}, "shape [2, 2, 5], but the model declares [N, 3, s27]"),
        ({"shapes": {"any": ()}}, "'any' has the shape [], but the model declares [?, ?]"),
        ({"dims": {"N": 4}}, "x.npz: axis 0 of 'x' is 2, but --dim N=4"),
        ({"dims": {"x:0": 4}}, "x.npz: axis 0 of 'x' is 2, but --dim x:0=4"),
        ({"values": {"w": np.ones((6, 4))}}, "axis 2 of 'x' is 5, but axis 0 of --value w is 6"),
    ],
)
def test_a_contradiction_names_both_sides(options: dict[str, Any], message: str):
    with pytest.raises(InputError) as caught:
        sizes(**options)
    assert message in str(caught.value)


def test_an_input_without_an_array_is_named_beside_the_arrays_that_are_there():
    with pytest.raises(InputError, match=r"x.npz: no array 'x', which m declares as \[N, 3, s27\]"):
        sizes_by_example("m", SHAPES, Example({"X": (2, 3, 5)}, "x.npz"), {}, {}, None)


def test_arrays_without_names_are_the_inputs_in_their_order():
    shapes = {f"arr_{i}": shape for i, shape in enumerate([(2, 3, 5), (5, 4), (2, 7), (6,)])}
    found = sizes_by_example("m", SHAPES, Example(shapes, "x.npz"), {}, {}, None)
    assert found == {"N": 2, "s27": 5, "any:0": 2, "any:1": 7, "free_0": 6}


@pytest.mark.parametrize("command", ["run", "bisect"])
def test_commands_that_run_need_no_sizes(path: Path, tmp_path: Path, command: str):
    done = call(command, path, "--inputs", npz(tmp_path))
    assert (done.exit_code, "error" in done.stderr) == (0, False)


def test_commands_that_only_compile_take_the_shapes_too(path: Path, tmp_path: Path):
    done = call("compile", path, "--inputs", npz(tmp_path), "-o", tmp_path / "m.abele")
    assert done.exit_code == 0
    assert call("run", tmp_path / "m.abele", "--inputs", npz(tmp_path)).exit_code == 0


def test_a_size_that_is_missing_is_named_by_input_and_axis(path: Path):
    done = call("run", path)
    assert done.exit_code == 2
    assert "axis 0 of input 'x', which the model calls 'N', has no size; give the in" in done.stderr


def test_outputs_are_those_of_arrays_by_name(path: Path, tmp_path: Path):
    by_name = compile_model(path, "tiny:4", example=ARRAYS).run(ARRAYS)
    np.savez(tmp_path / "y.npz", *ARRAYS.values())
    done = call("run", path, "--inputs", tmp_path / "y.npz", "--outputs", tmp_path / "out.npz")
    assert done.exit_code == 0
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["y"], by_name["y"])


def test_an_example_and_sizes_find_the_same_program(path: Path, tmp_path: Path):
    first = Request(path, example=ARRAYS).settled()
    second = Request(path, example=npz(tmp_path)).settled()
    assert first.dims == second.dims == {"N": 2, "s27": 5, "any_0": 2, "any_1": 7}
    assert first.example is None
    assert first == Request(path, dims=first.dims).settled()


def test_the_programs_of_a_session_take_examples_of_their_own(path: Path):
    longer = ARRAYS | {"x": np.ones((1, 3, 5), np.float32)}
    programs = {"two": {"example": ARRAYS}, "one": {"example": longer}}
    session = Session.compiled(path, programs, "tiny:4")
    assert session.run(ARRAYS)["y"].shape == (2, 3, 4)
    assert session.run(longer)["y"].shape == (1, 3, 4)


def test_only_headers_of_a_file_are_read(tmp_path: Path):
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 4), np.float16))
    assert example_of(tmp_path / "x.npz").shapes == {"x": (3, 4)}
    (tmp_path / "y.npz").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="damaged, or not an .npz file"):
        example_of(tmp_path / "y.npz")


# Values that the model is compiled with


@pytest.fixture(scope="module")
def reshape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18]>
        m (float[N, 6] x, int64[2] shape) => (y) { y = Reshape (x, shape) }"""
    )
    file = tmp_path_factory.mktemp("model") / "m.onnx"
    onnx.save(model, file)
    return file


@pytest.mark.parametrize("command", ["run", "bisect"])
def test_a_file_may_hold_the_value_that_an_option_gives(
    reshape: Path, tmp_path: Path, command: str
):
    np.savez(tmp_path / "x.npz", x=np.ones((2, 6), np.float32), shape=np.array([3, 4]))
    inputs = "--inputs", tmp_path / "x.npz"
    done = call(command, reshape, *inputs, "--value", "shape=3,4")
    assert (done.exit_code, "decide every output" in done.stderr) == (0, False)
    done = call(command, reshape, *inputs, "--value", "shape=4,3")
    assert done.exit_code == 2
    assert "'shape' is [3, 4], but --value shape is [4, 3]; need one of the two" in done.stderr


def test_values_that_decide_every_output_are_named(reshape: Path):
    values = "--value", "x=[[1,2,3,4,5,6]]", "--value"
    done = call("run", reshape, *values, "shape=2,3")
    assert done.exit_code == 0
    assert "the values of x, shape decide every output, so the program comp" in done.stderr
