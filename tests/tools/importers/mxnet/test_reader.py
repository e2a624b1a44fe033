"""Graphs of MXNet come in: spellings, weights of all versions, free sizes, training; bad files."""

import json
from pathlib import Path

import numpy as np
import pytest

from abele.backends.levels import initial_states
from abele.backends.reference import run_reference
from abele.dialects.settable import listed_names
from abele.ir.support.errors import DoesNotFit, InputError
from abele.ir.upstream import ModuleOp
from abele.ir.well_known import ASKED, FACTORS
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.importers.front_end import Reading
from abele.tools.importers.huge_weights import refusing_huge_weights
from abele.tools.importers.mxnet.files import weights_beside
from abele.tools.importers.mxnet.params import V1, V2, V3
from abele.tools.importers.mxnet.reader import open_shapes, read_mxnet, uses_of
from abele.tools.testing.hostile.mxnet_files import OLDEST, Node, params_bytes, symbol_text

NODES: list[Node] = [
    ("Convolution", "conv", ["data", "conv_weight", "conv_bias"],
     {"kernel": "(3,)", "num_filter": 4}),
    ("BatchNorm", "bn", ["conv", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"],
     {"fix_gamma": True, "momentum": 0.75}),
    ("Activation", "relu", ["bn"], {"act_type": "relu"}),
    ("FullyConnected", "fc", ["relu", "fc_weight", "fc_bias"], {"num_hidden": 3}),
    ("SoftmaxOutput", "softmax", ["fc", "softmax_label"], {}),
]  # fmt: skip

RANDOM = np.random.default_rng(0)
WEIGHTS = {
    "arg:conv_weight": RANDOM.standard_normal((4, 2, 3)).astype(np.float32),
    "arg:conv_bias": RANDOM.standard_normal(4).astype(np.float32),
    "arg:bn_gamma": np.full(4, 7, np.float32),
    "arg:bn_beta": RANDOM.standard_normal(4).astype(np.float32),
    "aux:bn_moving_mean": RANDOM.standard_normal(4).astype(np.float32),
    "aux:bn_moving_var": np.exp(RANDOM.standard_normal(4)).astype(np.float32),
    "arg:fc_weight": RANDOM.standard_normal((3, 24)).astype(np.float32),
    "arg:fc_bias": RANDOM.standard_normal(3).astype(np.float32),
}
X = RANDOM.standard_normal((5, 2, 8)).astype(np.float32)
SIZES = {"data_0": 5, "data_2": 8}


def graph(folder: Path, spelling: str = "attrs", nodes: list[Node] = NODES) -> Path:
    path = folder / "net-symbol.json"
    path.write_text(symbol_text(nodes, [nodes[-1][1]], spelling))
    return path


def read(path: Path, **reading: object) -> ModuleOp:
    return read_mxnet(path, Reading(new_context(), str(path), **reading))  # pyright: ignore


@pytest.mark.parametrize("spelling", ["attrs", "attr", "param"])
@pytest.mark.parametrize("version", [OLDEST, V1, V2, V3])
def test_all_spellings_and_versions_are_one_network(tmp_path: Path, spelling: str, version: int):
    path = graph(tmp_path, spelling)
    (tmp_path / "net-0007.params").write_bytes(params_bytes(WEIGHTS, version))
    found = run_reference(read(path, dims=SIZES), {"data": X}).outputs
    w = {name.partition(":")[2]: array for name, array in WEIGHTS.items()}
    parts = np.lib.stride_tricks.sliding_window_view(X, 3, -1)
    y = np.einsum("nctk,ock->not", parts, w["conv_weight"]) + w["conv_bias"][:, None]
    shift = (y - w["bn_moving_mean"][:, None]) / np.sqrt(w["bn_moving_var"] + 1e-3)[:, None]
    y = np.maximum(shift + w["bn_beta"][:, None], 0).reshape(5, -1)
    scores = y @ w["fc_weight"].T + w["fc_bias"]
    power = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(
        found["softmax_output"], power / power.sum(1, keepdims=True), rtol=1e-4, atol=1e-6
    )


def test_the_weights_are_those_of_the_last_epoch_and_tell_sizes(tmp_path: Path):
    path = graph(tmp_path)
    assert open_shapes(path) == {"data": ("", "", "")}
    for name in ("net-0001.params", "net-0012.params", "other-0099.params", "net-x.params"):
        (tmp_path / name).write_bytes(params_bytes(WEIGHTS))
    assert weights_beside(path) == ["net-0012.params"]
    assert open_shapes(path) == {"data": ("", 2, "")}


def test_a_file_of_weights_beyond_all_tiles_is_refused_unread(tmp_path: Path):
    path = graph(tmp_path)
    with open(tmp_path / "net-0001.params", "wb") as stream:
        stream.truncate(1 << 40)
    check = refusing_huge_weights("tiny:2")
    with pytest.raises(DoesNotFit, match=r"net-0001\.params 1099511627776 B"):
        read(path, dims=SIZES, check=check)


def test_an_old_graph_leaves_statistics_out(tmp_path: Path):
    nodes = [(op, name, inputs[:3] if op == "BatchNorm" else inputs, attributes)
             for op, name, inputs, attributes in NODES]  # fmt: skip
    results = []
    for given in (NODES, nodes):
        path = graph(tmp_path, nodes=given)
        (tmp_path / "net-0001.params").write_bytes(params_bytes(WEIGHTS))
        results.append(run_reference(read(path, dims=SIZES), {"data": X}).outputs)
    np.testing.assert_array_equal(results[0]["softmax_output"], results[1]["softmax_output"])


def test_training_asks_for_the_loss_of_the_output_and_for_factors(tmp_path: Path):
    shapes: list[Node] = [
        ("null", "data", (), {"__shape__": "(6, 2, 8)"}),
        ("null", "conv_weight", (), {"__init__": '["xavier", {"magnitude": 2}]'}),
        ("null", "conv_bias", (), {"lr_mult": "2.0", "__wd_mult__": "0.0"}),
        ("null", "fc_bias", (), {"__lr_mult__": "0"}),
    ]
    module = read(graph(tmp_path, nodes=[*shapes, *NODES]), training=True)
    asked = module.attributes[ASKED]
    text = "batch-statistics=0.25 loss=softmax_cross_entropy target=softmax_label"
    assert str(asked) == f'"{text}"'
    assert str(module.attributes[FACTORS]).startswith("{conv_bias = [2.000000e+00 : f64, 0.0000")
    assert listed_names(module, "abele.fixed") == ("fc_bias",)
    states = initial_states(module)
    assert "bn_gamma" not in states
    assert states["conv_weight"].std() == pytest.approx((2 / 3 / 9) ** 0.5, rel=0.3)
    assert (states["bn_moving_var"] == 1).all()


def test_normalisations_with_different_momentum_train_only_apart(tmp_path: Path):
    second: Node = (
        "BatchNorm", "norm", ["bn", "g", "b", "m", "v"], {"momentum": 0.5, "fix_gamma": True}
    )  # fmt: skip
    nodes = [*NODES[:2], second, ("Flatten", "relu", ["norm"], {}), *NODES[3:]]
    path, sizes = graph(tmp_path, nodes=nodes), {**SIZES, "data_1": 2}
    assert read(path, dims=sizes) is not None
    message = r"node 'norm' \(.*momentum 0\.5 in training, next to 0\.75 of an earlier node, is not"
    with pytest.raises(InputError, match=message):
        read(path, dims=sizes, training=True)
    same = [nodes[0], nodes[1], (*second[:3], NODES[1][3]), *nodes[3:]]
    module = read(graph(tmp_path, nodes=same), dims=sizes, training=True)
    assert "batch-statistics=0.25" in str(module.attributes[ASKED])


def test_a_network_along_one_axis_trains(tmp_path: Path):
    path = Path(__file__).parents[4] / "examples" / "strain-symbol.json"
    from abele.tools.driver.training import Training

    exe = compile_model(
        path, "tiny:16", batch=8, train=Training(optimizer="adam", learning_rate=0.002), cache=False
    )
    assert [each.name for each in exe.inputs] == ["data", "softmax_label"]
    label = np.arange(8, dtype=np.int32) % 2
    wave = np.sin(np.arange(512) * 0.2)[None, None] * label[:, None, None] * 3
    data = (RANDOM.standard_normal((8, 1, 512)) + wave).astype(np.float32)
    losses = [float(exe.run({"data": data, "softmax_label": label})["loss"]) for _ in range(8)]
    assert losses[-1] < losses[0] / 2


def test_list_ops_names_nodes_with_lines(tmp_path: Path):
    nodes: list[Node] = [
        *NODES[:4],
        ("ROIPooling", "roi", ["fc"], {}),
        ("Correlation", "moved", ["roi"], {}),
        ("Correlation", "other", ["fc"], {}),
        ("elemwise_add", "sum", ["moved", "other"], {}),
    ]
    path = graph(tmp_path, nodes=nodes)
    uses, problem = uses_of(path, Reading(new_context(), str(path), dims={**SIZES, "data_1": 2}))
    assert problem == ""
    found = {each.operator: each for each in uses}
    assert found["Correlation"].nodes == ["moved (line 17)", "other (line 18)"]
    assert found["ROIPooling"].supported == "no"
    assert found["BatchNorm"].supported == "yes"
    with pytest.raises(InputError, match=r"2 operators are not supported: Correlation \(2 nodes,"):
        read(path, dims=SIZES)


def changed(**changes: object) -> str:
    tree = json.loads(symbol_text(NODES, ["softmax"]))
    for path, value in changes.items():
        place, *rest = path.split("_")
        inner = tree[place]
        for each in rest[:-1]:
            inner = inner[int(each) if each.isdecimal() else each]
        if rest:
            inner[int(rest[-1]) if rest[-1].isdecimal() else rest[-1]] = value
        else:
            tree[place] = value
    return json.dumps(tree)


BAD = [
    ("{", "no graph of MXNet"),
    ("[]", "no graph of MXNet"),
    ('{"nodes": [], "heads": []}', "no nodes"),
    (changed(heads=[]), "no heads"),
    (changed(heads=[[99, 0]]), r"heads: node 99 is no earlier one"),
    (changed(nodes_3_inputs=[[3, 0, 0]]), "node 3, line 1: node 3 is no earlier one"),
    (changed(nodes_3_inputs=[["a", 0]]), "is no node and output"),
    (changed(nodes_3_op=7), "its op '7'"),
    (changed(nodes_3_attrs={"kernel": 3}), "attrs has values that are no texts"),
    (changed(nodes_3_attrs={"kernel": "(x,)", "num_filter": "4"}), "attribute kernel is '"),
    (changed(nodes_3_attrs={"kernel": "(3,)"}), "attribute num_filter is missing"),
    (changed(nodes_3_attrs={"kernel": "(3,)", "num_filter": "-4"}), "need an integer from 1 on"),
    (changed(nodes_3_attrs={"kernel": "(3,)", "num_filter": "4", "odd": "1"}),
     r"node 'conv' \(Convolution, line 1\): attribute 'odd' is not supported"),
    (changed(nodes_3_attrs={"kernel": "(3,)", "num_filter": "4", "layout": "NHWC"}), "layout"),
    (changed(nodes_3_op="Convolutoin"), "did you mean Convolution"),
    ("[" * 100_000, "no graph of MXNet"),
    (changed(nodes_3_attrs=["kernel"]), "attrs is .*need names with texts"),
    (changed(nodes_3_name="c\ud800"), r"node 3, line 1: its name 'c\\ud800' is no text in UTF-8"),
    (changed(nodes_1_attrs={"lr_mult": "fast"}), "weight 'conv_weight': lr_mult is 'fast'; need 0"),
    (changed(nodes_1_attrs={"__wd_mult__": "-1"}), "wd_mult is '-1'; need 0 or more"),
    (changed(nodes_1_attrs={"__init__": '["orthogonal", {}]'}),
     r"node 'conv' \(.*weight 'conv_weight': __init__ is .*orthogonal.*need one of uniform"),
    (changed(nodes_1_attrs={"__init__": '["constant", {"value": 1e300}]'}), "__init__ is "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_graph_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "net-symbol.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read(path, dims={**SIZES, "data_1": 2} if "Convolutoin" not in text else {})
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("cut", range(1, 600, 37))
def test_a_cut_file_of_weights_is_refused(tmp_path: Path, cut: int):
    path = graph(tmp_path)
    (tmp_path / "net-0001.params").write_bytes(params_bytes(WEIGHTS)[:-cut])
    with pytest.raises(InputError, match=r"net-0001\.params: damaged"):
        read(path, dims=SIZES)


def test_weights_of_another_network_are_refused(tmp_path: Path):
    path = graph(tmp_path)
    (tmp_path / "net-0001.params").write_bytes(params_bytes({"arg:x": np.zeros(3, np.float32)}))
    with pytest.raises(InputError, match=r"net-0001\.params has 'x', which are no weights of this"):
        read(path, dims={**SIZES, "data_1": 2})


def test_weights_of_other_shapes_are_refused(tmp_path: Path):
    path = graph(tmp_path)
    wrong = {**WEIGHTS, "arg:fc_bias": np.zeros(4, np.float32)}
    (tmp_path / "net-0001.params").write_bytes(params_bytes(wrong))
    with pytest.raises(InputError, match=r"node 'fc' .*weight 'fc_bias' has shape \[4\]; need"):
        read(path, dims=SIZES)
