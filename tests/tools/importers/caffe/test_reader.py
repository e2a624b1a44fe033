"""Networks of Caffe come in: phases, tops in place, both forms of layers, weights, bad files."""

from pathlib import Path

import numpy as np
import pytest

from abele.backends.levels import initial_states
from abele.backends.reference import run_reference
from abele.dialects.settable import listed_names
from abele.ir.context import AbeleContext
from abele.ir.support.errors import DoesNotFit, InputError
from abele.ir.upstream import ModuleOp
from abele.tools import compile_model
from abele.tools.importers.caffe.blobs import states_in
from abele.tools.importers.caffe.files import names_of_files
from abele.tools.importers.caffe.reader import open_shapes, read_caffe, uses_of
from abele.tools.importers.front_end import Reading
from abele.tools.importers.huge_weights import refusing_huge_weights
from abele.tools.testing.hostile.caffe_files import caffemodel

TRAIN_VAL = """
name: "small"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  include { phase: TRAIN }
  transform_param { crop_size: 4 mean_value: 104 mean_value: 117 mean_value: 123 }
  data_param { source: "train" batch_size: 6 backend: LMDB }
}
layer {
  name: "data" type: "Data" top: "data" top: "label"
  include { phase: TEST }
  transform_param { crop_size: 4 }
  data_param { source: "val" batch_size: 2 }
}
layer {
  name: "fc" type: "InnerProduct" bottom: "data" top: "fc"
  param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  inner_product_param {
    num_output: 3
    weight_filler { type: "gaussian" std: 0.5 }
    bias_filler { type: "constant" value: 0.25 }
  }
}
layer { name: "drop" type: "Dropout" bottom: "fc" top: "fc" }
layer {
  name: "accuracy" type: "Accuracy" bottom: "fc" bottom: "label" top: "accuracy"
  include: { phase: TEST }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
"""

OLD = """
name: "old"
input: "x"
input_dim: 2 input_dim: 3 input_dim: 1 input_dim: 1
layers {
  name: "ip" type: INNER_PRODUCT bottom: "x" top: "y" blobs_lr: 1 blobs_lr: 0 weight_decay: 1
  inner_product_param { num_output: 2 }
}
layers { name: "r" type: RELU bottom: "y" top: "y" }
"""


def read(path: Path, text: str | None = None, **reading: object) -> ModuleOp:
    if text is not None:
        path.write_text(text)
    return read_caffe(path, Reading(AbeleContext(), str(path), **reading))  # pyright: ignore


def names(module: ModuleOp, attribute: str) -> list[str]:
    main = list(module.body.block.ops)[-1]
    return [each.data for each in main.attributes[attribute].data]  # pyright: ignore


def test_a_phase_chooses_layers_and_labels_are_integers(tmp_path: Path):
    path = tmp_path / "net.prototxt"
    module = read(path, TRAIN_VAL)
    assert names(module, "arg_names") == ["data", "label"]
    assert names(module, "result_names") == ["accuracy", "loss"]
    assert open_shapes(path) == {"data": (2, 3, 4, 4), "label": (2,)}
    images = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
    found = run_reference(module, {"data": images, "label": np.array([0, 2], np.int32)}).outputs
    assert found["accuracy"] in (0.0, 0.5, 1.0)


def test_a_label_that_is_silenced_too_is_an_integer(tmp_path: Path):
    silence = 'layer { name: "s" type: "Silence" ' + 'bottom: "fc" ' * 5 + 'bottom: "label" }'
    module = read(tmp_path / "net.prototxt", TRAIN_VAL + silence)
    types = list(module.body.block.ops)[-1].function_type.inputs.data  # pyright: ignore
    assert [str(each.element_type) for each in types] == ["f32", "i32"]


def test_batch_is_the_size_of_what_the_layer_of_data_gives(tmp_path: Path):
    module = read(tmp_path / "net.prototxt", TRAIN_VAL, batch=5)
    types = list(module.body.block.ops)[-1].function_type.inputs.data  # pyright: ignore
    assert [each.get_shape() for each in types] == [(5, 3, 4, 4), (5,)]


def test_fillers_draw_from_a_seed_of_the_name(tmp_path: Path):
    kinds = ("xavier", "msra", "uniform", "gaussian", "positive_unitball", "constant")
    layers = "".join(
        f'layer {{ name: "{kind}" type: "InnerProduct" bottom: "x" top: "{kind}" '
        f"inner_product_param {{ num_output: 400 bias_term: false "
        f'weight_filler {{ type: "{kind}" }} }} }}'
        for kind in kinds
    )
    text = f'input: "x" input_shape {{ dim: 1 dim: 300 }} {layers}'
    first, second = (states(read(tmp_path / "net.prototxt", text)) for _ in range(2))
    for kind in kinds:
        weights = first[f"{kind}.weight"]
        assert weights.shape == (400, 300)
        np.testing.assert_array_equal(weights, second[f"{kind}.weight"])
    wanted = {"xavier": (1 / 300) ** 0.5, "msra": (2 / 300) ** 0.5, "uniform": 12**-0.5}
    for kind, deviation in {**wanted, "gaussian": 1.0, "constant": 0.0}.items():
        assert first[f"{kind}.weight"].std() == pytest.approx(deviation, rel=0.02), kind
    np.testing.assert_allclose(first["positive_unitball.weight"].sum(1), 1.0, rtol=1e-5)


def states(module: ModuleOp) -> dict[str, np.ndarray]:
    return dict(initial_states(module))


@pytest.mark.parametrize("form", ["INNER_PRODUCT", "legacy shapes"])
def test_layers_of_the_old_form_take_weights_of_both_forms(tmp_path: Path, form: str):
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    bias = np.array([1, -50], np.float32)
    type_ = 14 if form == "legacy shapes" else "InnerProduct"
    path = tmp_path / "net.prototxt"
    path.with_suffix(".caffemodel").write_bytes(caffemodel([("ip", type_, [weight, bias])]))
    module = read(path, OLD)
    x = np.ones((2, 3, 1, 1), np.float32)
    found = run_reference(module, {"x": x}).outputs
    np.testing.assert_allclose(found["y"], [[4, 0], [4, 0]])
    assert list(listed_names(module, "abele.fixed") or ()) == ["ip.bias"]
    assert names_of_files(path) == ["net.caffemodel"]


@pytest.mark.parametrize("type_", [14, "InnerProduct"])
def test_weights_of_another_file_are_given_by_layer(tmp_path: Path, type_: int | str):
    weight, bias = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, -50], np.float32)
    (tmp_path / "net.prototxt").write_text(OLD)
    other = tmp_path / "tuned.caffemodel"
    other.write_bytes(caffemodel([("ip", type_, [weight, bias])]))
    exe = compile_model(tmp_path / "net.prototxt", "tiny:2", weights=other, cache=False)
    found = exe.run({"x": np.ones((2, 3, 1, 1), np.float32)})["y"]
    np.testing.assert_allclose(found, [[4, 0], [4, 0]])
    sums = [np.full(4, 3, np.float32), np.full(4, 6, np.float32), np.full(1, 2, np.float32)]
    other.write_bytes(caffemodel([("bn", "BatchNorm", sums)]))
    found = states_in(other)
    assert {name: array.tolist() for name, array in found.items()} == {
        "bn.mean": [1.5] * 4,
        "bn.variance": [3.0] * 4,
    }


def test_the_cache_has_another_program_once_the_weights_are_others(tmp_path: Path):
    path, x = tmp_path / "net.prototxt", np.ones((2, 3, 1, 1), np.float32)
    path.write_text(OLD)
    for number in (1, 2, 1):
        arrays = [np.full((2, 3), number, np.float32), np.zeros(2, np.float32)]
        path.with_suffix(".caffemodel").write_bytes(caffemodel([("ip", "InnerProduct", arrays)]))
        found = compile_model(path, "tiny:2").run({"x": x})["y"]
        np.testing.assert_allclose(found, np.full((2, 2), 3 * number))


def test_layers_may_share_a_weight_by_its_name(tmp_path: Path):
    layer = (
        'layer {{ name: "{0}" type: "InnerProduct" bottom: "x" top: "{0}" '
        'param {{ name: "w" }} inner_product_param {{ num_output: 2 bias_term: false '
        'weight_filler {{ type: "xavier" }} }} }}'
    )
    text = 'input: "x" input_shape { dim: 1 dim: 3 }' + layer.format("a") + layer.format("b")
    module = read(tmp_path / "net.prototxt", text)
    assert list(states(module)) == ["w"]
    found = run_reference(module, {"x": np.ones((1, 3), np.float32)}).outputs
    np.testing.assert_array_equal(found["a"], found["b"])


@pytest.mark.parametrize("type_", [14, "InnerProduct"])
def test_weights_of_another_file_are_given_by_their_own_names(tmp_path: Path, type_: int | str):
    layer = ("ip", type_, [np.ones((2, 3), np.float32), np.zeros(2, np.float32)])
    path = tmp_path / "tuned.caffemodel"
    path.write_bytes(caffemodel([layer, ("twin", *layer[1:])], ["w", ""]))
    assert states_in(path).keys() == {"w", "ip.bias", "twin.bias"}


def test_list_ops_names_all_that_is_missing_with_lines(tmp_path: Path):
    path = tmp_path / "net.prototxt"
    path.write_text(
        TRAIN_VAL
        + 'layer { name: "p" type: "Python" bottom: "fc" top: "p" }\n'
        + 'layer { name: "q" type: "Python" bottom: "p" top: "q" }\n'
        + 'layer { name: "s" type: "Pooling" bottom: "fc" top: "s" }\n'
        + 'layer { name: "n" type: "SPP" bottom: "fc" top: "n" }\n'
    )
    uses, problem = uses_of(path, Reading(AbeleContext(), str(path)))
    assert problem == ""
    found = {each.operator: each for each in uses}
    assert found["Python"].nodes == ["p (line 30)", "q (line 31)"]
    assert found["Python"].supported == found["SPP"].supported == "no"
    assert found["InnerProduct"].supported == found["Data"].supported == "yes"
    (reason,) = found["Pooling"].reasons
    assert "image of shape [2, 3]" in reason
    with pytest.raises(InputError, match=r"2 operators are not supported: Python \(2 nodes, the "):
        read(path)


BAD = [
    ("layer {", r"line 1: the end of the file; need the name of a field or }"),
    ('layer { name: "a" type: "ReLU" botom: "x" }', r"line 1: no field 'botom'; did you mean"),
    ('layer { name: "a" }', r"layer 'a': line 1: type: missing"),
    (
        'input: "x" input_shape { dim: 2 }\nlayer { name: "a" type: "ReLU" bottom: "y" top: "z" }',
        r"layer 'a': line 2: bottom: 'y' is no input or earlier top",
    ),
    (
        'input: "x" input_shape { dim: 2 }\nlayer { name: "a" type: "Relu" bottom: "x" top: "z" }',
        r"layer 'a' \(Relu, line 2\): the type is not supported; .*did you mean ReLU",
    ),
    (
        'input: "x" input_shape { dim: 2 dim: 3 }\nlayer { name: "a" type: "InnerProduct" '
        'bottom: "x" top: "z"\ninner_product_param { num_output: -4 } }',
        r"layer 'a': line 3: num_output: is -4; need 1 or more",
    ),
    (
        'input: "x" input_shape { dim: 2 dim: 3 }\nlayer { name: "a" type: "InnerProduct" '
        'bottom: "x" top: "z"\ninner_product_param { num_output: "4" } }',
        r"layer 'a': line 3: num_output is '4'; need an integer",
    ),
    (
        'input: "x" input_shape { dim: 2 dim: 3 }\n'
        'layer { name: "a" type: "Pooling" bottom: "x" top: "z" }',
        r"layer 'a' \(Pooling, line 2\): image of shape \[2, 3\]",
    ),
    ("name: \"a\\z\"", r"line 1: .*no escape but those of C"),
    ("name: [1, 2", r"line 1: the end of the file; need , or \]"),
    ("~", r"line 1: '~' begins nothing"),
    ("layer { " * 70, r"line 1: messages 65 deep; at most 64"),
    (OLD.replace("INNER_PRODUCT", "PRODUCT"), r"type is 'PRODUCT'; need one of ABSVAL"),
    ('base_lr: 0.1', r"line 1: net: nothing says what is trained"),
    ('base_lr: 0.1\nnet: "../x.prototxt"', r"'\.\./x\.prototxt'; need a path below the model"),
    ('base_lr: 0.1\nnet: "/etc/passwd"', r"need a path below the model's folder"),
    ('input: "x" input_shape { dim: 2 dim: 3 }\nlayer { name: "a" type: "PReLU" bottom: "x" '
     'top: "z"\nprelu_param { channel_shared: true filler { type: "xavier" } } }',
     r"layer 'a': line 3: type: is xavier, of a weight that is one number; need axes"),
    ('input: "x" input_shape { dim: 2 dim: 3 }\nlayer { name: "a" type: "Scale" bottom: "x" '
     'top: "z"\nscale_param { num_axes: 0 filler { type: "gaussian" sparse: 2 } } }',
     r"layer 'a': line 3: sparse: of a weight that is one number; need axes"),
    ('input: "x" input_shape { dim: 2 dim: 3 }\nlayer { name: "a" type: "ELU" bottom: "x" '
     'top: "z"\nelu_param { alpha: 1e39 } }',
     r"layer 'a': line 3: alpha is '1e39'; need a finite number"),
    ('input: "x" input_shape { }\nlayer { name: "a" type: "ArgMax" bottom: "x" top: "z" }',
     r"layer 'a' \(ArgMax, line 2\): the bottom is one number; need axes"),
    ('input: "x" input_shape { dim: 1 dim: 2 dim: 6 dim: 6 }\nlayer { name: "a" type: "Pooling" '
     'bottom: "x" top: "z"\npooling_param { kernel_h: 3 } }',
     r"layer 'a': line 3: kernel_w: missing"),
    ('layer { name: "d" type: "ImageData" top: "x"\nimage_data_param { new_height: -3 '
     'new_width: 4 } }\nlayer { name: "a" type: "ReLU" bottom: "x" top: "z" }',
     r"layer 'd': line 2: new_height: is -3; need 0 or more"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str):
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path / "net.prototxt", text)
    assert str(error.value).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("blobs", "message"),
    [
        ([np.zeros((2, 4), np.float32)], r"layer 'ip' .*weight has shape \[2, 3\]; the file of"),
        ([np.zeros((2, 3), np.float32)], r"layer 'ip' .*has 1 blobs, and no bias"),
    ],
)
def test_weights_of_other_shapes_are_refused(tmp_path: Path, blobs: list, message: str):
    path = tmp_path / "net.prototxt"
    path.with_suffix(".caffemodel").write_bytes(caffemodel([("ip", "InnerProduct", blobs)]))
    with pytest.raises(InputError, match=message):
        read(path, OLD)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            'net: "../x.prototxt"',
            r"s\.prototxt: net: the network in '\.\./x\.prototxt'; need a path",
        ),
        ('net: "x.prototxt"', r"s\.prototxt: net: there is no file 'x\.prototxt' of the network"),
        ('net: "s.prototxt" weights: "/w"', r"s\.prototxt: weights: weights in '/w'; need a path"),
    ],
)
def test_a_file_that_a_solver_names_wrongly_is_called_by_its_field(
    tmp_path: Path, more: str, message: str
):
    path = tmp_path / "s.prototxt"
    path.write_text(f"base_lr: 0.1 {more}")
    with pytest.raises(InputError, match=message):
        _ = names_of_files(path)


def test_weights_of_another_network_are_refused(tmp_path: Path):
    path, array = tmp_path / "net.prototxt", np.zeros((2, 3), np.float32)
    path.with_suffix(".caffemodel").write_bytes(caffemodel([("fc8", "InnerProduct", [array])]))
    with pytest.raises(InputError, match=r"net\.caffemodel has weights of 'fc8', which are no"):
        read(path, OLD)


def test_weights_beyond_all_tiles_are_refused_unread(tmp_path: Path):
    path, check = tmp_path / "net.prototxt", refusing_huge_weights("tiny:2")
    wide = OLD.replace("num_output: 2", "num_output: 1000000000")
    with pytest.raises(DoesNotFit, match=r"ip\.weight 12000000000 B"):
        read(path, wide, check=check)
    with open(path.with_suffix(".caffemodel"), "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(DoesNotFit, match=r"net\.caffemodel 1099511627776 B"):
        read(path, OLD, check=check)


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_cut_file_of_weights_is_refused(tmp_path: Path, cut: int):
    path = tmp_path / "net.prototxt"
    whole = caffemodel([("ip", "InnerProduct", [np.zeros((2, 3), np.float32)])])
    path.with_suffix(".caffemodel").write_bytes(whole[:-cut])
    with pytest.raises(InputError, match=r"net\.caffemodel: "):
        read(path, OLD)
