"""Archives of torch.export that are kept with the tests become programs; no PyTorch is needed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abele.dialects import nn
from abele.dialects.first_values import first_values
from abele.ir.context import AbeleContext
from abele.ir.provenance import origin, place
from abele.ir.support.errors import InputError
from abele.tools import Training, compile_model
from abele.tools.importers import UnsupportedError
from abele.tools.importers.front_end import Reading
from abele.tools.importers.given_weights import given_weights
from abele.tools.importers.pt2.reader import uses_of
from abele.tools.views.layer_names import source_lines

from .fixture_models import FIXTURES, agree, archive_of, expected, imported, names_of, results
from .zips import changed

FREE = {
    "free sizes": {"s77": 2, "2*s44": 8},
    **{name: {"keys:2": 5, "values:2": 5} for name in ("decoder step", "decoder step, core")},
}
"""The free sizes of the fixtures that have some."""


@pytest.mark.parametrize("name", FIXTURES)
def test_a_program_computes_what_pytorch_computes(name: str):
    inputs, wanted = expected(name)
    module = imported(archive_of(name), dims=FREE.get(name, {}))
    agree(results(module, inputs), wanted)


@pytest.mark.parametrize("name", ["mlp", "resnet"])
def test_a_file_compiles_and_runs(name: str, tmp_path: Path):
    path = tmp_path / "net.pt2"
    path.write_bytes(archive_of(name))
    inputs, wanted = expected(name)
    exe = compile_model(path, "tiny:16", cache=False)
    found = exe.run({exe.inputs[0].name: inputs[0]})
    agree([np.asarray(each) for each in found.values()], wanted)


def test_pytorch_is_not_needed(tmp_path: Path):
    path = tmp_path / "net.pt2"
    path.write_bytes(archive_of("mlp"))
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import pickle\n"
        "from abele.ir.context import AbeleContext\n"
        "from abele.tools.importers.front_end import Reading\n"
        "from abele.tools.importers.pt2.reader import read_pt2\n"
        "pickle.load = pickle.loads = pickle.Unpickler = None\n"
        f"read_pt2({str(path)!r}, Reading(AbeleContext(), 'net'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Names and lines


def located(name: str) -> dict[str, str]:
    """The place of each operation of a fixture, by its name in the text of the IR and its node."""
    module = imported(archive_of(name), dims=FREE.get(name, {}))
    return {origin(op) or "": place(op) for op in module.walk()}


def test_operations_have_the_path_of_their_module_and_the_users_line():
    found = located("bert")
    assert "layers.1.query" in found
    assert "torch_models.py:" in found["layers.1.query"]
    assert any(name.startswith("layers.0.softmax") for name in found)


def test_an_error_names_the_node_the_module_and_the_line():
    def break_it(tree: Any) -> None:
        node = next(n for n in tree["graph_module"]["graph"]["nodes"] if "conv2d" in n["target"])
        node["inputs"][3]["arg"] = {"as_string": "far"}

    with pytest.raises(
        InputError, match=r"node 'stem.0' \(aten.conv2d.default at torch_models.py:"
    ):
        imported(changed(archive_of("resnet"), "model.json", break_it))


def test_outputs_have_the_keys_of_a_dictionary():
    module = imported(archive_of("bert"))
    assert names_of(module, "arg_names") == ["input_ids", "attention_mask"]
    assert names_of(module, "result_names") == ["last_hidden_state", "pooler_output"]


# States


@pytest.mark.parametrize("name", ["counter", "counter, core"])
def test_buffers_keep_what_a_run_writes(name: str, tmp_path: Path):
    path = tmp_path / "net.pt2"
    path.write_bytes(archive_of(name))
    exe = compile_model(path, "tiny:4", cache=False)
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    seen = np.zeros(3, np.float32)
    for count in (1, 2, 3):
        seen = seen * 0.5
        seen[1:] += x[0, 1:]
        (found,) = exe.run({"x": x}).values()
        np.testing.assert_allclose(found, x * count + seen, rtol=1e-6)


def test_a_buffer_is_not_trained(tmp_path: Path):
    def make_buffer(tree: Any) -> None:
        spec = tree["graph_module"]["signature"]["input_specs"][0]
        given = spec.pop("parameter")
        spec["buffer"] = {
            "arg": given["arg"],
            "buffer_name": given["parameter_name"],
            "persistent": True,
        }

    def trained(archive: bytes) -> set[str]:
        path = tmp_path / "net.pt2"
        path.write_bytes(archive)
        training = Training(loss="mean_square")
        return set(compile_model(path, "tiny:4", train=training, cache=False).weights)

    own = archive_of("mlp")
    assert trained(own) - trained(changed(own, "model.json", make_buffer)) == {"0.weight"}


# Free sizes


def test_a_missing_size_is_named():
    with pytest.raises(InputError, match=r"'s77', has no size; .*add --dim s77=1 --dim 2\*s44=1"):
        imported(archive_of("free sizes"))


@pytest.mark.parametrize(
    "dims", [{"s77": 3, "s44": 5}, {"s77": 3, "2*s44": 10}, {"x:0": 3, "x:2": 10}]
)
def test_a_size_is_given_by_its_symbol_its_expression_or_its_axis(dims: dict[str, int]):
    module = imported(archive_of("free sizes"), dims=dims)
    (found,) = results(module, [np.zeros((3, 3, 10, 8), np.float32)])
    assert found.shape == (3, 4, 5, 4)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"s77": "0..17", "s44": 4}, r"--dim s77=0..17; the model was exported for 0 to 16"),
        ({"s77": 17, "s44": 4}, r"--dim s77=17; the model was exported for 0 to 16"),
        ({"s77": 1, "s44": 2}, r"--dim s44=2; the model was exported for 3 to 20"),
        ({"s77": 1, "2*s44": 9}, r"--dim 2\*s44=9; no s44 gives it"),
        ({"s77": 1, "s44": 4, "2*s44": 10}, r"--dim 2\*s44=10; it is 8 for s44=4"),
        ({"batch": 1}, "no such dimension"),
    ],
)
def test_a_wrong_size_is_refused(dims: dict[str, int], message: str):
    with pytest.raises(InputError, match=message):
        imported(archive_of("free sizes"), dims=dims)


def test_a_value_of_an_input_is_known_at_import():
    inputs, wanted = expected("bert")
    module = imported(archive_of("bert"), values={"attention_mask": inputs[1]})
    assert names_of(module, "arg_names") == ["input_ids"]
    agree(results(module, inputs[:1]), wanted)


def test_another_number_of_samples():
    inputs, wanted = expected("resnet")
    module = imported(archive_of("resnet"), batch=6)
    agree(results(module, [np.tile(inputs[0], (3, 1, 1, 1))]), [np.tile(wanted[0], (3, 1))])


# What cannot be read


def test_another_major_version_of_the_schema_is_refused():
    def other(tree: Any) -> None:
        tree["schema_version"]["major"] = 9

    with pytest.raises(UnsupportedError, match=r"version 9 of the schema .* version 8 is read"):
        imported(changed(archive_of("mlp"), "model.json", other))


def test_a_name_of_many_pages_is_refused_in_a_short_message():
    def grow(tree: Any) -> None:
        node = tree["graph_module"]["graph"]["nodes"][0]
        node["inputs"][0]["arg"] = {"as_tensor": {"name": "a" * 70_000}}

    with pytest.raises(InputError, match="need a name of at most 1000 letters") as error:
        imported(changed(archive_of("mlp"), "model.json", grow))
    assert len(str(error.value)) < 300


def renamed(*targets: tuple[str, str]) -> bytes:
    """The model "bert" with other operators."""

    def change(tree: Any) -> None:
        for node in tree["graph_module"]["graph"]["nodes"]:
            for old, new in targets:
                node["target"] = node["target"].replace(old, new)

    return changed(archive_of("bert"), "model.json", change)


def test_all_missing_operators_are_listed():
    with pytest.raises(
        UnsupportedError, match=r"2 operators are not supported: .*aten.lineer \(13"
    ):
        imported(renamed(("aten.linear.", "aten.lineer."), ("aten.gelu.", "mine.gelu.")))


def test_a_missing_operator_is_named_with_its_line_and_a_guess():
    with pytest.raises(
        UnsupportedError,
        match=r"node 'layers.0.geluu' at torch_models.py:\d+: operator aten.geluu.default: the "
        r"operator is not supported; \d+ others are .* did you mean gelu",
    ):
        imported(renamed(("aten.gelu.", "aten.geluu.")))


def test_the_operators_are_listed_with_reasons_and_lines():
    reading = Reading(AbeleContext(), "net")
    used, problem = uses_of(renamed(("aten.gelu.", "aten.geluu.")), reading)
    assert problem == ""
    by_name = {each.operator: each for each in used}
    assert by_name["aten.geluu"].supported == "no"
    assert "torch_models.py:" in by_name["aten.geluu"].nodes[0]
    assert by_name["aten.linear"].supported == "yes"
    assert sum(len(each.nodes) for each in used) > 40


def test_a_wrong_type_of_a_result_is_refused():
    def lie(tree: Any) -> None:
        tree["graph_module"]["graph"]["tensor_values"]["relu"]["sizes"][1] = {"as_int": 17}

    with pytest.raises(InputError, match=r"result 'relu' has shape \[4, 16\]; the file says"):
        imported(changed(archive_of("mlp"), "model.json", lie))


def test_tensors_of_a_state_dictionary_replace_the_weights_of_their_names():
    values = {each.name: each.blob.array for each in first_values(imported(archive_of("resnet")))}
    given = given_weights({name: np.ones_like(array) for name, array in values.items()})
    module = imported(archive_of("resnet"), weights=given)
    assert given.settle(module, "net.pt2") == []
    assert all((each.blob.array == 1).all() for each in first_values(module))


def test_weights_are_states_under_their_own_names():
    module = imported(archive_of("mlp"))
    states = [op.sym_name.data for op in module.ops if isinstance(op, nn.StateOp)]
    assert {"0.weight", "0.bias", "2.running_mean"} <= set(states)


def test_lines_of_python_say_what_the_file_holds(tmp_path: Path):
    path = tmp_path / "net.pt2"
    path.write_bytes(archive_of("resnet"))
    lines = source_lines(path)
    place = next(line for line, text in lines.items() if "self.conv1(x)" in text)
    assert place.startswith("torch_models.py:")
