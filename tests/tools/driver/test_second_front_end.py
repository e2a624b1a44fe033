"""The front end of the tutorial works by registration alone, also where a .py file would not."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from documents import TITLE, blocks_of

from abele.ir.errors import InputError
from abele.tools import Executable, compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.driver.cache.key import parts_of
from abele.tools.driver.extensions import registration
from abele.tools.driver.extensions.extension import Extension
from abele.tools.driver.extensions.part import Part
from abele.tools.driver.request import Request

CHAPTER = Path(__file__).parents[3] / "docs" / "tutorial" / "10-add-a-front-end.md"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The network of the chapter. Its front end is registered, as an installed package would do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    names: dict[str, object] = {}
    texts = [each.text for each in blocks_of(CHAPTER) if each.kind == "python"]
    for text in texts[:2]:
        exec(text, names)
    assert TITLE.match(texts[1])
    registration.install(
        "a test", Part("a test", tmp_path, Extension(front_ends=(names["GRAPH"],)))
    )
    yield "net.graph"
    registration.uninstall("a test")


def asked(model: str, **options: object) -> Request:
    return Request(model, "tiny:4", dims={"N": 2}, **options)


def test_a_program_is_compiled_run_and_kept(model: str):
    first = compile_model(model, "tiny:4", dims={"N": 2})
    x = {"x": np.ones((2, 8), np.float32)}
    again = compile_model(model, "tiny:4", dims={"N": 2})
    assert (first.is_from_cache, again.is_from_cache) == (False, True)
    np.testing.assert_array_equal(first.run(x)["layer2"], again.run(x)["layer2"])
    assert bisect(asked(model)).passed


def test_weights_beside_the_model_are_part_of_the_key(model: str):
    before = parts_of(asked(model))
    assert before is not None
    weights = bytearray(Path("net.safetensors").read_bytes())
    weights[-1] ^= 1
    Path("net.safetensors").write_bytes(weights)
    after = parts_of(asked(model))
    assert after is not None
    assert {name for name in before if before[name] != after[name]} == {"model"}


@pytest.mark.parametrize("place", ["../secret", "/etc/passwd", "link", "none"])
def test_weights_outside_the_folder_are_refused(model: str, place: str):
    Path("inner").mkdir()
    graph = json.loads(Path(model).read_text())
    Path("inner/net.graph").write_text(json.dumps(graph | {"weights": place}))
    Path("secret").write_bytes(Path("net.safetensors").read_bytes())
    os.symlink(Path("secret").absolute(), "inner/link")
    with pytest.raises(InputError, match="model's folder|no file 'none'"):
        compile_model("inner/net.graph", "tiny:4", dims={"N": 2})
    assert parts_of(asked("inner/net.graph")) is None


def input_shapes(exe: Executable) -> dict[str, tuple[int, ...]]:
    return {each.name: each.shape for each in exe.inputs}


def rewritten(model: str, **changes: object) -> None:
    """Change parts of the network."""
    Path(model).write_text(json.dumps(json.loads(Path(model).read_text()) | changes))


def test_another_number_of_samples_is_read_without_a_line_of_its_own(model: str):
    rewritten(model, inputs={"x": [2, 8]})
    exe = compile_model(model, "tiny:4", batch=5, cache=False)
    assert input_shapes(exe) == {"x": (5, 8)}
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    whole = exe.run({"x": x})["layer2"]
    pair = compile_model(model, "tiny:4", cache=False).run({"x": x[1:3]})["layer2"]
    np.testing.assert_allclose(whole[1:3], pair, rtol=1e-5)


def test_a_node_that_mixes_samples_is_refused(model: str):
    mixing = [{"name": "mix", "op": "matmul", "of": ["w1", "x"]}]
    rewritten(model, inputs={"x": [6, 8]}, nodes=mixing, outputs=["mix"])
    assert input_shapes(compile_model(model, "tiny:4", cache=False)) == {"x": (6, 8)}
    with pytest.raises(InputError, match=r"^net.graph: node 'mix': lhs has 6 columns, rhs has 7"):
        compile_model(model, "tiny:4", batch=7, cache=False)


def test_an_input_with_a_value_is_no_input_of_the_program(model: str):
    node = {"name": "sum", "op": "add", "of": ["x", "y"]}
    rewritten(model, inputs={"x": ["N", 8], "y": ["N", 1]}, nodes=[node], outputs=["sum"])
    exe = compile_model(model, "tiny:4", values={"y": [[1.0], [2.0]]}, cache=False)
    assert input_shapes(exe) == {"x": (2, 8)}
    np.testing.assert_array_equal(exe.run({"x": np.ones((2, 8), np.float32)})["sum"][:, 0], [2, 3])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "axis 0 of input 'x', which the model calls 'N', has no size; .* add --dim N=1"),
        ({"dims": {"M": 2}}, "--dim M=2: no such dimension; the model has N, and each axis as"),
        ({"dims": {"x:1": 2}}, "--dim x:1=2: axis 1 of input 'x' has the size 8"),
        ({"values": {"y": 1}}, "no input 'y' to give a value; there are x"),
    ],
)
def test_what_contradicts_the_model_is_refused(model: str, given: dict, message: str):
    with pytest.raises(InputError, match=f"^net.graph: {message}"):
        compile_model(model, "tiny:4", cache=False, **given)


def test_an_operator_that_it_lacks_is_named(model: str):
    rewritten(model, nodes=[{"name": "n", "op": "sqrt", "of": ["x"]}], outputs=["n"])
    with pytest.raises(InputError, match=r"node 'n': operator 'sqrt' is not supported; matmul, "):
        compile_model(model, "tiny:4", dims={"N": 2}, cache=False)
