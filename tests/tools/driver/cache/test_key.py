"""Whatever decides a program is part of its key, and nothing else is."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from some_models import products

from abele.dialects.home import Home
from abele.ir.errors import InputError
from abele.ir.geometry.layout import block_layout
from abele.ir.support.limits import POINTS
from abele.passes.train import Train
from abele.tools.driver.cache import key
from abele.tools.driver.cache.key import TEXTS, key_of, parts_of, why_no_key
from abele.tools.driver.decoding.asked import Decoding
from abele.tools.driver.extensions.loaded import Extensions
from abele.tools.driver.request import OPTIONS, Request

PLAIN = Request("net.onnx", "tiny", load=Extensions())


def parts(request: Request = PLAIN) -> dict[str, str]:
    found = parts_of(request)
    assert found is not None
    return found


def changed(request: Request) -> set[str]:
    """The parts in which a request differs from the plain one."""
    before, after = parts(), parts(request)
    assert (before == after) == (key_of(before) == key_of(after))
    return {name for name in before if before[name] != after[name]}


DECIDING = [
    ("target", "tiny:8", "target"),
    ("target", None, "target"),
    ("chips", 2, "target"),
    ("io_tiles", 1, "target"),
    ("remote", ("w",), "passes"),
    ("dims", {"N": 2}, "dims"),
    ("values", {"x": 1.5}, "values"),
    ("batch", 2, "batch"),
    ("keep", {"x": "y"}, "keep"),
    ("passes", "decompose,nn", "passes, tailored"),
    ("precision", "float16", "passes"),
    ("rounding", "stochastic", "passes"),
    ("sparsity", "zeros", "passes, sparsity"),
    ("load", replace(Extensions(), load=("net.onnx",)), "loaded"),
    ("partials", "float16", "passes"),
    ("constraints", "asked.json", "constraints"),
    ("shard", ("fc1:n=2",), "shard"),
    ("memory_proportion", 0.5, "memory proportion"),
    ("vertices_per_tile", 2, "vertices per tile"),
    ("micro_batches", 2, "micro batches"),
    ("recompute", "auto", "recompute"),
    ("recompute", "sqrt", "passes"),
    ("replicas", 2, "passes"),
    ("stash", ("f134:y",), "passes"),
    ("weights", "net.onnx", "weights"),
    ("weights", {"w": 1.5}, "weights"),
    ("partial_weights", True, "partial weights"),
    ("lenient", True, "lenient"),
    ("train", Train(), "training"),
    ("decoding", Decoding(tokens=4), "decoding"),
    ("beside", {}, "beside"),
    ("beside", {"w": (Home(block_layout((4,), (2,)), 8, 1),)}, "beside"),
]
"""Another value of each option that decides the program, and the parts that differ."""

NOT_DECIDING: dict[str, object] = {
    "example": {"x": np.ones((16, 256), np.float32)},
    "unbounded": True,
    "runs": 3,
    "dump_ir": "dump",
    "reproducers": "failures",
    "verify_each": False,
    "watch": print,
    "on_read": print,
    "on_inputs": print,
    "on_note": print,
    "cache": False,
}
"""Another value of each option that does not decide the bytes of a program that fits."""


OF_PIPELINES: dict[str, object] = {
    "pipeline": "1",
    "schedule": "sequential",
    "stage_chips": "1",
}
"""Another value of each option that is one of the passes if there is a pipeline."""


@pytest.mark.parametrize("field", OF_PIPELINES)
def test_a_pipeline_is_one_of_the_passes(folder: Path, field: str):
    pipeline = {} if field == "pipeline" else {"pipeline": "1"}
    before = parts(replace(PLAIN, **pipeline))
    after = parts(replace(PLAIN, **pipeline, **{field: OF_PIPELINES[field]}))
    assert {name for name in before if before[name] != after[name]} == {"passes"}


def test_whether_a_compile_adds_passes_to_a_pipeline_is_a_part(folder: Path):
    """Without a pipeline, it always does."""
    given = replace(PLAIN, passes="decompose,nn,partition,tile,exchange")
    before, after = parts(given), parts(replace(given, tailored=True))
    assert {name for name in before if before[name] != after[name]} == {"tailored"}
    assert not changed(replace(PLAIN, tailored=True))


@pytest.mark.parametrize(("field", "value", "parts"), DECIDING)
def test_each_option_is_a_part(folder: Path, field: str, value: object, parts: str):
    Path("asked.json").write_text("{}")
    assert changed(replace(PLAIN, **{field: value})) == {*parts.split(", ")}


@pytest.mark.parametrize(("field", "part"), [("chips", "chips"), ("io_tiles", "io tiles")])
def test_what_changes_the_model_s_own_target_is_a_part(folder: Path, field: str, part: str):
    own = replace(PLAIN, target=None)
    before, after = parts(own), parts(replace(own, **{field: 2}))
    assert {name for name in before if before[name] != after[name]} == {part}


@pytest.mark.parametrize("field", NOT_DECIDING)
def test_what_does_not_decide_a_program_is_no_part(folder: Path, field: str):
    assert not changed(replace(PLAIN, **{field: NOT_DECIDING[field]}))


def test_every_option_is_known_to_decide_a_program_or_not_to():
    deciding = {field for field, *_ in DECIDING}
    apart = OF_PIPELINES.keys() | {"model", "tailored"}
    assert OPTIONS.keys() == deciding | NOT_DECIDING.keys() | apart
    assert not deciding & NOT_DECIDING.keys()
    assert TEXTS.keys() <= deciding


@pytest.mark.parametrize("field", ["dims", "values", "keep"])
def test_no_names_are_as_good_as_none(folder: Path, field: str):
    assert not changed(replace(PLAIN, **{field: {}}))


def test_an_option_whose_value_no_text_stands_for_is_a_mistake_of_ours(folder: Path):
    with pytest.raises(TypeError, match="needs a function in TEXTS"):
        parts(replace(PLAIN, keep=object()))


@pytest.mark.parametrize(
    "other",
    [
        {"v": (Home(block_layout((4,), (2,)), 8, 1),)},
        {"w": (Home(block_layout((4,), (4,)), 8, 1),)},
        {"w": (Home(block_layout((4,), (2,)), 16, 1),)},
        {"w": (Home(block_layout((4,), (2,)), 8, 2),)},
        {},
    ],
)
def test_each_home_of_others_is_part_of_the_key(folder: Path, other: dict):
    one = replace(PLAIN, beside={"w": (Home(block_layout((4,), (2,)), 8, 1),)})
    assert parts(one)["beside"] != parts(replace(PLAIN, beside=other))["beside"]


def test_training_is_told_by_the_options_that_differ_from_their_defaults(folder: Path):
    assert parts(replace(PLAIN, train=Train()))["training"] == "{}"
    some = parts(replace(PLAIN, train=Train(steps=3, optimizer="adam")))
    assert json.loads(some["training"]) == {"optimizer": "'adam'", "steps": "3"}


def test_values_count_with_their_element_types(folder: Path):
    ones = [replace(PLAIN, values={"x": np.ones(2, kind)}) for kind in ("f4", "i4")]
    assert parts(ones[0])["values"] != parts(ones[1])["values"]


def test_the_contents_of_a_model_count_and_the_name_of_its_file(folder: Path):
    other = products()
    other.graph.node[0].name = "other"
    Path("more").mkdir()
    onnx.save(other, "more/net.onnx")
    onnx.save(products(), "same.onnx")
    assert changed(replace(PLAIN, model="more/net.onnx")) == {"model"}
    assert changed(replace(PLAIN, model=Path("same.onnx"))) == {"name"}
    assert changed(replace(PLAIN, model=products())) == {"name"}


def test_weights_in_other_files_count(folder: Path):
    onnx.save(
        products(), "far.onnx", save_as_external_data=True, location="far.bin", size_threshold=0
    )
    far = replace(PLAIN, model="far.onnx")
    before = parts(far)
    weights = bytearray(Path("far.bin").read_bytes())
    weights[-1] ^= 1
    Path("far.bin").write_bytes(weights)
    assert parts(far)["model"] != before["model"]
    Path("far.bin").unlink()
    assert parts_of(far) is None


@pytest.mark.parametrize("place", ["../secret", "/etc/passwd", "link"])
def test_a_model_that_names_a_file_outside_its_folder_has_no_key(folder: Path, place: str):
    Path("inner").mkdir()
    Path("secret").write_bytes(bytes(1 << 16))
    Path("inner/link").symlink_to(Path("secret").absolute())
    model = products()
    (weight, *_) = model.graph.initializer
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=place)
    Path("inner/net.onnx").write_bytes(model.SerializeToString())
    request = replace(PLAIN, model="inner/net.onnx")
    assert parts_of(request) is None
    with pytest.raises(InputError, match="model's folder"):
        why_no_key(request)


def test_the_contents_of_constraints_and_of_a_target_file_count(folder: Path):
    Path("c.json").write_text("{}")
    Path("t.toml").write_text('base = "tiny"\ntiles = 4\n')
    with_both = replace(PLAIN, constraints="c.json", target="t.toml")
    before = parts(with_both)
    Path("c.json").write_text("{ }")
    Path("t.toml").write_text('base = "tiny"\ntiles = 5\n')
    after = parts(with_both)
    assert {n for n in before if before[n] != after[n]} == {"constraints", "target"}


def test_the_contents_of_loaded_files_count(folder: Path):
    Path("r.toml").write_text('base = "tiny"\ntiles = 3\n')
    loaded = replace(PLAIN, load=replace(Extensions(), load=("r.toml",)))
    assert changed(loaded) == {"loaded"}
    before = parts(loaded)
    Path("r.toml").write_text('base = "tiny"\ntiles = 2\n')
    assert parts(loaded) != before


def test_a_program_that_python_code_takes_part_in_has_no_key(folder: Path):
    Path("more.py").write_text("from abele.ir.upstream import ModulePass\n")
    loaded = replace(PLAIN, load=replace(Extensions(), load=("more.py",)))
    assert parts_of(loaded) is None
    assert why_no_key(loaded) == "more.py may import anything"


def test_a_pipe_is_not_read_for_a_key(folder: Path):
    os.mkfifo("pipe.onnx")
    os.mkfifo("pipe.json")
    assert parts_of(replace(PLAIN, model="pipe.onnx")) is None
    assert parts_of(replace(PLAIN, constraints="pipe.json")) is None


def test_in_a_checkout_a_changed_source_counts(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def version_in(root: Path) -> str:
        monkeypatch.setattr(key, "ROOT", root)
        key.abele_version.cache_clear()
        return key.abele_version()

    (folder / "ir").mkdir(parents=True)
    source = folder / "ir" / "some.py"
    source.write_text("one = 1\n")
    wheel = version_in(folder)
    source.write_text("one = 2\n")
    assert version_in(folder) == wheel
    (folder / "pyproject.toml").touch()
    before = version_in(folder)
    source.write_text("one = 1\n")
    assert version_in(folder) != before
    (folder / "ir" / "__pycache__").mkdir()
    after = version_in(folder)
    (folder / "ir" / "__pycache__" / "some.pyc").touch()
    assert version_in(folder) == after
    monkeypatch.undo()
    key.abele_version.cache_clear()


def test_a_changed_limit_counts_and_its_default_does_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    before = parts()
    monkeypatch.setenv(POINTS.variable, str(POINTS.default))
    assert parts() == before
    monkeypatch.setenv(POINTS.variable, str(POINTS.default + 1))
    assert {name for name in before if before[name] != parts()[name]} == {"limits"}
    monkeypatch.setenv(POINTS.variable, "many")
    with pytest.raises(InputError, match="need an integer"):
        why_no_key(PLAIN)


def test_nothing_of_the_host_is_a_part(folder: Path, monkeypatch: pytest.MonkeyPatch):
    before = parts()
    for name, text in {"HOME": "/nowhere", "USER": "other", "ABELE_KERNELS": "plain"}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(os, "uname", lambda: ("other",) * 5)
    assert parts() == before
