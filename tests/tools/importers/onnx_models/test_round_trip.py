"""A file of ONNX is read as a module of the onnx dialect and written again without loss."""

from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_features import everything
from some_models import convolutions, model, node

from abele.dialects.onnx_level import ONNX_LEVEL
from abele.ir.errors import InputError
from abele.ir.text import blobs_of, parse_module, print_module
from abele.ir.verify import verify
from abele.tools.driver.context import new_context
from abele.tools.importers.onnx_models.files import write_onnx
from abele.tools.importers.onnx_models.reader import module_of, read_model
from abele.tools.importers.onnx_models.writer import model_of
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.onnx_graphs.build import build_graph

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
"""Models that the onnx package brings."""

EVERY = 3
"""One of so many of these is read here."""


def returns(given: onnx.ModelProto, *, valid: bool = True) -> None:
    """Read a model, write it, and do the same by way of its text."""
    context = new_context()
    module = module_of(given, context, "model")
    verify(module, ONNX_LEVEL if valid else None)
    made = model_of(module, "model")
    assert made == given
    wanted = given.SerializeToString(deterministic=True)
    assert made.SerializeToString(deterministic=True) == wanted
    for blob in blobs_of(module):
        context.blobs.add(blob)
    again = parse_module(print_module(module), context, "text")
    assert model_of(again, "text") == given


def test_nothing_of_a_file_is_lost():
    returns(everything())


def test_published_models_come_back():
    # The light networks are much larger than the others, and no more than a list of nodes.
    files = sorted(path for path in DATA.rglob("*.onnx") if path.parent.name != "light")
    assert len(files) > 100
    for path in files[::EVERY]:
        # Some are of operators that their opset has removed.
        returns(onnx.load(path, load_external_data=False), valid=False)


@pytest.mark.parametrize("seed", range(12))
def test_generated_models_come_back(seed: int):
    returns(build_graph(random_sketch(Random(f"round trip {seed}"), 8)).proto)


def test_a_file_that_no_pass_changes_has_the_same_bytes(tmp_path: Path):
    source, made = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(convolutions(), source)
    write_onnx(read_model(source, new_context()), made, source)
    assert made.read_bytes() == source.read_bytes()


def with_external_data(folder: Path) -> Path:
    """The path of a model whose weights lie in a file beside it."""
    weights = {"w": np.arange(300_000, dtype=np.float32), "v": np.ones(3, np.float32)}
    given = model([node("Add", "x w", "y")], {"x": [300_000]}, ["y"], weights)
    as_external = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    onnx.save(given, folder / "m.onnx", **as_external)
    return folder / "m.onnx"


def test_external_data_come_back_byte_by_byte(tmp_path: Path):
    source = with_external_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write_onnx(read_model(source, new_context()), other / "m.onnx", source)
    for name in ("m.onnx", "w.bin"):
        assert (other / name).read_bytes() == (tmp_path / name).read_bytes()


def test_external_data_that_are_missing_are_named(tmp_path: Path):
    source = with_external_data(tmp_path)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(InputError, match=r"tensor 'w': there is no file 'w.bin'"):
        read_model(source, new_context())


def test_other_data_in_the_way_are_not_replaced(tmp_path: Path):
    source = with_external_data(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "w.bin").write_bytes(b"mine")
    with pytest.raises(InputError, match="holds other data than the model"):
        write_onnx(read_model(source, new_context()), other / "m.onnx", source)
    assert (other / "w.bin").read_bytes() == b"mine"


def test_a_weight_that_is_trained_may_not_be_removed(tmp_path: Path):
    given = model([node("Relu", "x", "y")], {"x": [2]}, ["y"], {"w": np.ones(2, np.float32)})
    given.training_info.add().update_binding.add(key="w", value="w2")
    module = module_of(given, new_context(), "m.onnx")
    for op in tuple(module.walk()):
        if op.name == "onnx.initializer":
            op.detach()
    with pytest.raises(InputError, match="changes the weight 'w', which the passes have removed"):
        write_onnx(module, tmp_path / "m.onnx")


def test_an_opset_that_onnx_does_not_know_is_one_message():
    given = model([node("Relu", "x", "y")], {"x": [2]}, ["y"], opset=99)
    with pytest.raises(InputError, match=r"opset 99 of ai\.onnx; onnx .* install a newer onnx"):
        module_of(given, new_context(), "m.onnx")


def test_an_operator_of_a_later_opset_is_named():
    given = model([node("Gelu", "x", "y")], {"x": [2]}, ["y"], opset=17)
    with pytest.raises(InputError, match="Gelu exists since opset 20 .* imports opset 17"):
        module_of(given, new_context(), "m.onnx")


def test_a_misspelt_operator_is_named_with_the_nearest():
    given = model([node("Rleu", "x", "y")], {"x": [2]}, ["y"])
    with pytest.raises(InputError, match="no operator Rleu in opset 17; did you mean Relu"):
        module_of(given, new_context(), "m.onnx")


def test_two_values_of_one_name_are_refused():
    nodes = [node("Relu", "x", "y"), helper.make_node("Neg", ["x"], ["y"], "again")]
    with pytest.raises(InputError, match="two values have the name 'y'"):
        module_of(model(nodes, {"x": [2]}, ["y"]), new_context(), "m.onnx")


def test_a_name_that_nothing_gives_is_refused():
    given = model([node("Relu", "z", "y")], {"x": [2]}, ["y"])
    with pytest.raises(InputError, match=r"\(Relu\) reads 'z', which no input"):
        module_of(given, new_context(), "m.onnx")


TEXT = """
builtin.module attributes {
    onnx.model = {ir_version = 8 : i64, opset_import = [{version = 17 : i64}]}} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = onnx.OP : (tensor<2xf32>) -> tensor<2xf32>
    func.return %y : tensor<2xf32>
  }
}
"""


def of_text(op: str) -> onnx.ModelProto:
    module = parse_module(TEXT.replace("OP", op), new_context(), "m.mlir")
    verify(module, ONNX_LEVEL)
    return model_of(module, "m.mlir")


def test_a_text_that_a_person_wrote_is_a_model():
    made = of_text("Softmax(%x) {axis = 0 : i64}")
    onnx.checker.check_model(made, full_check=True)
    assert [each.op_type for each in made.graph.node] == ["Softmax"]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('Softmax(%x) {axis = "a"}', '"a"; need a whole number, as 1 : i64'),
        ("Squeeze(%x) {axes = array<i64: 0>}", "axes, which version 13 of Squeeze does not have"),
        ("Gelu(%x)", r"opset 17 of ai\.onnx does not have it; it is there since opset 20"),
        ("Upsample(%x)", "has it no more; it was removed in opset 10"),
        ("Split(%x, %x, %x)", "3 operands; need 1 to 2"),
        ("Cast(%x)", "no attribute to|property to|to"),
    ],
)
def test_what_a_version_does_not_have_is_refused(op: str, message: str):
    text = op.replace("%x, %x, %x) :", "%x) :")
    types = ", ".join(["tensor<2xf32>"] * op.count("%x"))
    whole = TEXT.replace("OP : (tensor<2xf32>)", f"{text} : ({types})")
    with pytest.raises(Exception, match=message):
        verify(parse_module(whole, new_context(), "m.mlir"), ONNX_LEVEL)


def test_a_tensor_of_a_damaged_message_is_kept_as_it_is():
    short = TensorProto(name="w", dims=[4], data_type=TensorProto.FLOAT, raw_data=b"abc")
    given = model([node("Relu", "x", "y")], {"x": [2]}, ["y"])
    given.graph.initializer.append(short)
    given.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "fine"))
    assert model_of(module_of(given, new_context(), "m"), "m") == given
