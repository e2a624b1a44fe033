"""A user's scalar function is imported, fused, planned, run, checked and generated as abele's."""

import re
from collections.abc import Generator
from pathlib import Path

import numpy as np
import onnx
import pytest
from some_extensions import abele, loads_taken_back
from some_models import model, node, random

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.dialects.levels import LEVELS
from abele.dialects.scalar_functions import FUNCTIONS, chainable
from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.extensions import load_extensions
from abele.tools.testing import (
    Operators,
    check_pass,
    check_pipeline,
    programs,
    scales_by_powers_of_two,
)

CUBE = '''
import numpy as np
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition

from abele.backends.codelets.scalar import ScalarFunction, computed_by
from abele.dialects.nn.elementwise import UnaryOp
from abele.tools.extensions import onnx_operator


@irdl_op_definition
class CubeOp(UnaryOp):
    """a * a * a."""

    name = "mine.cube"


Mine = Dialect("mine", [CubeOp], [])

CUBE = ScalarFunction(
    "cube",
    1,
    computed_by(lambda a: a * a * a),
    ulps=2,
    priced_as="mul",
    ends_decide=True,
    chain=(0,),
    carries_identity_of=("sum", "prod"),
    degree=lambda parameters, degrees: 3 * degrees[0],
    rescales=True,
    far=True,
    whole=True,
)


@onnx_operator("Cube", "com.example")
def cube(node):
    return node.add(CubeOp(node[0]))
'''

SHAPES = {"x": [1, 3, 8, 8]}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """Remove the functions that a test loads."""
    monkeypatch.chdir(tmp_path)
    with loads_taken_back():
        yield


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "cubes.py"
    path.write_text(CUBE)
    return path


def network() -> onnx.ModelProto:
    """relu of the cube of a convolution."""
    proto = model(
        [
            node("Conv", "x w", "a"),
            node("Cube", "a", "b", domain="com.example"),
            node("Relu", "b", "y"),
        ],
        SHAPES,
        ["y"],
        {"w": random((4, 3, 3, 3), 1)},
    )
    proto.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    return proto


def test_a_users_function_is_fused_into_a_convolution(mine: Path):
    onnx.save(network(), "cubes.onnx")
    fused = compile_model("cubes.onnx", "tiny:8", load=[mine])
    apart = compile_model("cubes.onnx", "tiny:8", load=[mine], passes=UNFUSED)
    assert fused.profile["cycles"] < apart.profile["cycles"]
    made = abele("compile", "cubes.onnx", "-o", "p.abele", "--load", mine, "--dump-ir", "stages")
    assert made.exit_code == 0, made.stderr
    stages = [path.read_text() for path in Path("stages").glob("*fuse-chains*")]
    cube = re.compile(r"nn.conv [^:]*\{group = (\d+) .*mine.cube %\d+ \{group = \1 ", re.S)
    assert any(cube.search(text) for text in stages)


UNFUSED = "decompose,fold-constants,plan-splits,partition,tile,exchange"


@pytest.mark.parametrize("level", [level.name for level in LEVELS])
def test_a_chain_with_a_users_function_computes_the_same_at_every_level(mine: Path, level: str):
    exe = compile_model(network(), "tiny:8", load=[mine])
    plain = compile_model(network(), "tiny:8", load=[mine], passes=UNFUSED)
    x = {"x": random((1, 3, 8, 8))}
    np.testing.assert_allclose(exe.run(x, at=level)["y"], plain.run(x)["y"], rtol=1e-5, atol=1e-5)


def test_a_chain_with_a_users_function_is_checked_and_read_from_a_saved_program(mine: Path):
    onnx.save(network(), "cubes.onnx")
    both = ("--load", mine, "--check", "--strict")
    result = abele("run", "cubes.onnx", "--target", "tiny:8", *both)
    assert result.exit_code == 0, result.stderr
    made = abele("compile", "cubes.onnx", "--load", mine, "--target", "tiny:8", "-o", "p.abele")
    assert made.exit_code == 0, made.stderr
    result = abele("run", "p.abele", *both)
    assert result.exit_code == 0, result.stderr


def test_a_function_that_is_wrong_in_float32_is_found_in_a_chain(mine: Path):
    wrong = "a * a * a * a.dtype.type(1 + 1e-4 * (a.dtype == np.float32)))"
    mine.write_text(CUBE.replace("a * a * a)", wrong))
    onnx.save(network(), "cubes.onnx")
    result = abele("run", "cubes.onnx", "--target", "tiny:8", "--load", mine, "--check")
    assert result.exit_code != 0
    assert "times its bound" in result.stderr


def cubes(path: Path) -> Operators:
    """Operators to make programs of: the user's own, and some that it may be fused into."""
    context = load_extensions([path]).context()
    return Operators(context, ["mine.cube", "nn.add", "nn.matmul", "nn.scale", "nn.reduce"])


def test_programs_are_made_of_a_users_function(mine: Path):
    assert "cube" not in chainable()
    found = cubes(mine)
    assert {each.name for each in found.classes} >= {"mine.cube", "nn.add"}
    assert chainable()["cube"] == (0,)
    report = check_pass("fuse-chains", programs=programs(operators=found), examples=20, seed=3)
    assert report.examples == 20
    check_pipeline(programs=programs(operators=found), examples=10, seed=4)


def test_programs_scale_by_the_degree_of_a_users_function(mine: Path):
    found = cubes(mine)
    tested = programs(operators=found, data=["normal"])
    options = {"programs": tested, "examples": 60, "seed": 5}
    report = check_pass("fuse-chains", relation=scales_by_powers_of_two, **options)
    assert report.examples == 60
    mine.write_text(CUBE.replace("3 * degrees[0]", "2 * degrees[0]"))
    load_extensions([mine])
    with pytest.raises(Exception, match="scales_by_powers_of_two"):
        check_pass("fuse-chains", relation=scales_by_powers_of_two, **{**options, "examples": 300})


def test_wrong_facts_of_a_function_are_named(mine: Path):
    mine.write_text(CUBE.replace("    ends_decide=True,\n", ""))
    with pytest.raises(InputError, match="scalar function 'cube' in chains; need ends_decide"):
        load_extensions([mine])
    assert "cube" not in {*FUNCTIONS, *SCALAR_FUNCTIONS}
