"""The front end of the tutorial works by registration alone, also where a .py file would not."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from documents import TITLE, blocks_of

from abele.ir.errors import InputError
from abele.tools import compile_model
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "input 'x': N has no size; add --dim N=1"),
        ({"dims": {"N": 2}, "values": {"x": 1}}, "values given .x.; need an .onnx model"),
        ({"dims": {"N": 2}, "batch": 2}, "--batch 2 is given; need an .onnx model"),
    ],
)
def test_what_it_does_not_understand_is_refused(model: str, given: dict, message: str):
    with pytest.raises(InputError, match=f"^net.graph: {message}"):
        compile_model(model, "tiny:4", cache=False, **given)
