"""Each operator computes what it computes in MXNet, after formulas in NumPy."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.support.errors import InputError
from abele.tools.importers.front_end import Reading
from abele.tools.importers.mxnet.reader import read_mxnet
from abele.tools.testing.hostile.mxnet_files import Node, params_bytes, symbol_text

Array = np.ndarray[Any, Any]


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def computed(
    folder: Path,
    nodes: list[Node],
    heads: list[str],
    inputs: dict[str, Array],
    weights: dict[str, Array] | None = None,
) -> list[Array]:
    path = folder / "net-symbol.json"
    variables: list[Node] = [
        ("null", name, (), {"__shape__": tuple(array.shape)}) for name, array in inputs.items()
    ]
    path.write_text(symbol_text([*variables, *nodes], heads))
    if weights:
        (folder / "net-0003.params").write_bytes(params_bytes(weights))
    module = read_mxnet(path, Reading(AbeleContext(), str(path)))
    return list(run_reference(module, inputs).outputs.values())


def one(
    folder: Path,
    operator: str,
    attributes: dict[str, Any],
    *operands: Array,
    weights: dict[str, Array] | None = None,
) -> Array:
    """What a node of one output computes."""
    given = {f"x{i}": each for i, each in enumerate(operands)}
    held = weights or {}
    names = [*given, *(name.partition(":")[2] for name in held)]
    node: Node = (operator, "y", names, attributes)
    (found,) = computed(folder, [node], ["y"], given, held)
    return found


def agree(found: Array, wanted: Any) -> None:
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def windows(x: Array, size: int, stride: int) -> Array:
    """The windows of the last axis."""
    return np.lib.stride_tricks.sliding_window_view(x, size, -1)[..., ::stride, :]


@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_along_one_axis(tmp_path: Path, groups: int):
    x, w, b = floats(2, 4, 9), floats(6, 4 // groups, 3, seed=1), floats(6, seed=2)
    attributes = {"kernel": (3,), "num_filter": 6, "stride": (2,), "pad": (1,), "num_group": groups}
    found = one(tmp_path, "Convolution", attributes, x, weights={"arg:w": w, "arg:b": b})
    parts = windows(np.pad(x, [(0, 0), (0, 0), (1, 1)]), 3, 2)
    halves = zip(np.split(parts, groups, 1), np.split(w, groups), strict=True)
    wanted = np.concatenate([np.einsum("nctk,ock->not", p, each) for p, each in halves], 1)
    agree(found, wanted + b[:, None])


@pytest.mark.parametrize("rank", [2, 3])
def test_convolutions_of_more_axes(tmp_path: Path, rank: int):
    x, w = floats(1, 2, *[5] * rank), floats(3, 2, *[2] * rank, seed=1)
    attributes = {"kernel": (2,) * rank, "num_filter": 3, "no_bias": True, "dilate": (2,) * rank}
    found = one(tmp_path, "Convolution", attributes, x, weights={"arg:w": w})
    wanted = np.zeros((1, 3, *[3] * rank))
    for place in np.ndindex(*[2] * rank):
        part = x[(slice(None), slice(None), *(slice(2 * p, 2 * p + 3) for p in place))]
        wanted += np.einsum("nc...,oc->no...", part, w[(slice(None), slice(None), *place)])
    agree(found, wanted)


LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


@pytest.mark.parametrize("rank", LAYOUTS)
@pytest.mark.parametrize("operator", ["Convolution", "Deconvolution", "Pooling"])
def test_channels_are_first_or_last(tmp_path: Path, rank: int, operator: str):
    # In MXNet, the layout is that of images and of weights.
    x = floats(2, 4, *range(5, 5 + rank))
    attributes: dict[str, Any] = {"kernel": (2,) * rank, "stride": (2,) * rank}
    weights: dict[str, Array] = {}
    if operator == "Pooling":
        attributes |= {"pool_type": "avg", "pooling_convention": "full"}
    else:
        attributes |= {"num_filter": 6, "num_group": 2, "no_bias": True}
        first, second = (6, 2) if operator == "Convolution" else (4, 3)
        weights = {"arg:w": floats(first, second, *range(2, 2 + rank), seed=1)}
        attributes["kernel"] = tuple(range(2, 2 + rank))
    default, last = LAYOUTS[rank]
    wanted = one(tmp_path, operator, attributes | {"layout": default}, x, weights=weights)
    turned = {name: np.moveaxis(each, 1, -1) for name, each in weights.items()}
    attributes["layout"] = last
    found = one(tmp_path, operator, attributes, np.moveaxis(x, 1, -1), weights=turned)
    agree(np.moveaxis(found, -1, 1), wanted)


def test_a_convolution_with_channels_last_is_its_formula(tmp_path: Path):
    x, w = floats(2, 9, 4), floats(6, 3, 4, seed=1)
    attributes = {"kernel": (3,), "num_filter": 6, "layout": "NWC", "no_bias": True}
    found = one(tmp_path, "Convolution", attributes, x, weights={"arg:w": w})
    parts = np.lib.stride_tricks.sliding_window_view(x, 3, 1)
    agree(found, np.einsum("ntck,okc->nto", parts, w))


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
@pytest.mark.parametrize("convention", ["valid", "full"])
def test_pools_of_both_conventions(tmp_path: Path, kind: str, convention: str):
    x = floats(2, 3, 8)
    attributes = {
        "kernel": "(3,)",
        "stride": "(2,)",
        "pool_type": kind,
        "pooling_convention": convention,
    }
    found = one(tmp_path, "Pooling", attributes, x)
    merge = {"max": np.max, "avg": np.mean, "sum": np.sum}[kind]
    wanted = merge(windows(x, 3, 2), axis=-1)
    if convention == "full":
        last = merge(x[..., 6:], axis=-1, keepdims=True)
        wanted = np.concatenate([wanted, last], -1)
    agree(found, wanted)


@pytest.mark.parametrize("counts", [True, False])
def test_padding_counts_in_a_mean_if_it_is_asked_for(tmp_path: Path, counts: bool):
    x = floats(1, 2, 6)
    attributes = {"kernel": "(3,)", "pad": "(1,)", "pool_type": "avg", "count_include_pad": counts}
    total = windows(np.pad(x, [(0, 0), (0, 0), (1, 1)]), 3, 1).sum(-1)
    ends = np.array([3, 3, 3, 3, 3, 3] if counts else [2, 3, 3, 3, 3, 2])
    agree(one(tmp_path, "Pooling", attributes, x), total / ends)
    agree(
        one(tmp_path, "Pooling", {"global_pool": True, "pool_type": "avg", "kernel": "(2,)"}, x),
        x.mean(-1, keepdims=True),
    )


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize(
    "window", [(6, 3, 2, 1), (5, 2, 2, 1), (7, 3, 3, 1), (8, 5, 3, 2)], ids=str
)
def test_the_mean_of_a_window_that_hangs_over(
    tmp_path: Path, window: tuple[int, int, int, int], convention: str, counts: bool
):
    n, k, s, p = window
    places = (n + 2 * p - k + (s - 1) * (convention == "full")) // s + 1
    begins = np.arange(places) * s - p
    reached = begins[:, None] + np.arange(k)
    inside = (reached >= 0) & (reached < n)
    number = ((reached < n + p) if counts else inside).sum(1)
    attributes = {
        "kernel": f"({k}, {k})",
        "stride": f"({s}, {s})",
        "pad": f"({p}, {p})",
        "pool_type": "avg",
        "pooling_convention": convention,
        "count_include_pad": counts,
    }
    x = floats(1, 2, n, n)
    if not number.all():
        with pytest.raises(InputError, match="lie outside"):
            one(tmp_path, "Pooling", attributes, x)
        return
    share = inside[:, :, None] * np.eye(n)[np.clip(reached, 0, n - 1)]
    each = share.sum(1) / number[:, None]
    agree(one(tmp_path, "Pooling", attributes, x), each @ x @ each.T)


@pytest.mark.parametrize("fixed", [True, False])
def test_a_batch_norm_may_fix_its_scale(tmp_path: Path, fixed: bool):
    x, parts = floats(2, 3, 4), [floats(3, seed=i) for i in range(1, 5)]
    parts[3] = np.exp(parts[3])
    names = ("arg:gamma", "arg:beta", "aux:mean", "aux:var")
    found = one(
        tmp_path,
        "BatchNorm",
        {"eps": 0.01, "fix_gamma": fixed},
        x,
        weights=dict(zip(names, parts, strict=True)),
    )
    scale, bias, mean, variance = (each[:, None] for each in parts)
    scale = 1.0 if fixed else scale
    agree(found, (x - mean) / np.sqrt(variance + 0.01) * scale + bias)


@pytest.mark.parametrize("flat", [True, False])
def test_a_fully_connected_layer_flattens_or_keeps_axes(tmp_path: Path, flat: bool):
    x, b = floats(2, 3, 4), floats(5, seed=2)
    w = floats(5, 12 if flat else 4, seed=1)
    found = one(
        tmp_path,
        "FullyConnected",
        {"num_hidden": 5, "flatten": flat},
        x,
        weights={"arg:w": w, "arg:b": b},
    )
    agree(found, (x.reshape(2, 12) if flat else x) @ w.T + b)


X, Z = floats(2, 3, 4), floats(2, 3, 4, seed=1)
ROW = floats(1, 3, 1, seed=2)
POSITIVE = np.abs(X) + 0.5


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


CASES: list[tuple[str, dict[str, Any], tuple[Array, ...], Callable[..., Any]]] = [
    ("Activation", {"act_type": "relu"}, (X,), lambda x: np.maximum(x, 0)),
    ("Activation", {"act_type": "tanh"}, (X,), np.tanh),
    ("Activation", {"act_type": "softrelu"}, (X,), lambda x: np.log1p(np.exp(x))),
    ("Activation", {"act_type": "softsign"}, (X,), lambda x: x / (1 + np.abs(x))),
    ("LeakyReLU", {"slope": 0.1}, (X,), lambda x: np.where(x > 0, x, 0.1 * x)),
    ("LeakyReLU", {"act_type": "elu", "slope": 0.5}, (X,),
     lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    ("LeakyReLU", {"act_type": "rrelu"}, (X,), lambda x: np.where(x > 0, x, x * 0.2295)),
    ("Dropout", {"p": 0.3}, (X,), lambda x: x),
    ("clip", {"a_min": -0.5, "a_max": 0.25}, (X,), lambda x: x.clip(-0.5, 0.25)),
    ("Flatten", {}, (X,), lambda x: x.reshape(2, 12)),
    ("transpose", {"axes": (0, 2, 1)}, (X,), lambda x: x.transpose(0, 2, 1)),
    ("transpose", {}, (X,), lambda x: x.T),
    ("SwapAxis", {"dim1": 0, "dim2": 2}, (X,), lambda x: x.swapaxes(0, 2)),
    ("Concat", {"dim": 2, "num_args": 2}, (X, Z), lambda x, z: np.concatenate([x, z], 2)),
    ("elemwise_add", {}, (X, Z), lambda x, z: x + z),
    ("_Minus", {}, (X, Z), lambda x, z: x - z),
    ("broadcast_mul", {}, (X, ROW), lambda x, z: x * z),
    ("broadcast_greater", {}, (X, ROW), lambda x, z: x > z),
    ("add_n", {"num_args": 3}, (X, Z, X), lambda x, z, y: x + z + y),
    ("_rminus_scalar", {"scalar": 2.5}, (X,), lambda x: 2.5 - x),
    ("_div_scalar", {"scalar": 4}, (X,), lambda x: x / 4),
    ("_power_scalar", {"scalar": 2}, (POSITIVE,), lambda x: x**2),
    ("_greater_scalar", {"scalar": 0}, (X,), lambda x: x > 0),
    ("sqrt", {}, (POSITIVE,), np.sqrt),
    ("sum", {"axis": (1, 2)}, (X,), lambda x: x.sum((1, 2))),
    ("sum", {}, (X,), lambda x: x.sum(keepdims=True).reshape(1)),
    ("mean", {"axis": 1, "keepdims": True}, (X,), lambda x: x.mean(1, keepdims=True)),
    ("mean", {"axis": 1, "exclude": True}, (X,), lambda x: x.mean((0, 2))),
    ("max", {"axis": -1}, (X,), lambda x: x.max(-1)),
    ("norm", {"axis": 2}, (X,), lambda x: np.linalg.norm(x, axis=2)),
    ("argmax", {"axis": 1}, (X,), lambda x: x.argmax(1)),
    ("softmax", {}, (X,), lambda x: softmax(x, -1)),
    ("softmax", {"temperature": 2.0, "axis": 1}, (X,), lambda x: softmax(x / 2, 1)),
    ("log_softmax", {"axis": 1}, (X,), lambda x: np.log(softmax(x, 1))),
    ("SoftmaxActivation", {"mode": "channel"}, (X,), lambda x: softmax(x, 1)),
    ("SoftmaxOutput", {"multi_output": True}, (X,), lambda x: softmax(x, 1)),
    ("SoftmaxOutput", {}, (X,), lambda x: softmax(x.reshape(2, 12), 1).reshape(2, 3, 4)),
    ("LogisticRegressionOutput", {}, (X,), lambda x: 1 / (1 + np.exp(-x))),
    ("LinearRegressionOutput", {}, (X,), lambda x: x),
    ("L2Normalization", {}, (X,), lambda x: x / np.sqrt((x**2).sum((1, 2), keepdims=True))),
    ("LRN", {"nsize": 3, "alpha": 0.1, "knorm": 1}, (X,), lambda x: x * (1 + 0.1 / 3 * np.stack(
        [(x[:, max(i - 1, 0) : i + 2] ** 2).sum(1) for i in range(3)], 1)) ** -0.75),
    ("expand_dims", {"axis": 1}, (X,), lambda x: x[:, None]),
    ("squeeze", {}, (ROW,), lambda x: x.squeeze()),
    ("slice_axis", {"axis": 2, "begin": 1, "end": "None"}, (X,), lambda x: x[..., 1:]),
    ("slice_axis", {"axis": 1, "begin": -2, "end": -1}, (X,), lambda x: x[:, -2:-1]),
    ("tile", {"reps": (2, 3)}, (X,), lambda x: np.tile(x, (1, 2, 3))),
    ("Pad", {"mode": "constant", "pad_width": (0, 0, 0, 1, 2, 0), "constant_value": 1.5}, (X,),
     lambda x: np.pad(x, [(0, 0), (0, 1), (2, 0)], constant_values=1.5)),
    ("batch_dot", {"transpose_b": True}, (X, Z), lambda x, z: x @ z.transpose(0, 2, 1)),
    ("dot", {}, (X[0], Z[0].T.copy()), lambda x, z: x @ z),
    ("where", {}, ((X > 0).astype(np.float32), X, Z), lambda c, x, z: np.where(c, x, z)),
    ("stack", {"axis": 1}, (X, Z), lambda x, z: np.stack([x, z], 1)),
    ("UpSampling", {"scale": 2, "sample_type": "nearest"}, (floats(1, 2, 2, 3),),
     lambda x: x.repeat(2, 2).repeat(2, 3)),
    ("Cast", {"dtype": "int32"}, (X * 3,), lambda x: x.astype(np.int32)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "attributes", "operands", "formula"),
    CASES,
    ids=[f"{i} {each[0]}" for i, each in enumerate(CASES)],
)
def test_an_operator_is_its_formula(
    tmp_path: Path,
    operator: str,
    attributes: dict[str, Any],
    operands: tuple[Array, ...],
    formula: Callable[..., Any],
):
    agree(one(tmp_path, operator, attributes, *operands), formula(*operands))


@pytest.mark.parametrize(
    ("codes", "shape"),
    [
        ((0, -1), (2, 60)),
        ((-2,), (2, 3, 4, 5)),
        ((0, -3, 0), (2, 12, 5)),
        ((0, 0, -4, 2, -1, 0), (2, 3, 2, 2, 5)),
        ((-4, 1, 2, -2), (1, 2, 3, 4, 5)),
        ((-1, 0), (40, 3)),
        ((8, 15), (8, 15)),
    ],
)
def test_a_reshape_follows_its_codes(tmp_path: Path, codes: tuple[int, ...], shape: tuple):
    x = floats(2, 3, 4, 5)
    if np.prod(shape) != x.size:
        with pytest.raises(InputError, match="shape"):
            one(tmp_path, "Reshape", {"shape": codes}, x)
        return
    agree(one(tmp_path, "Reshape", {"shape": codes}, x), x.reshape(shape))


def test_a_reshape_may_read_its_codes_from_the_right(tmp_path: Path):
    x = floats(10, 5, 4)
    agree(one(tmp_path, "Reshape", {"shape": (-1, 0), "reverse": True}, x), x.reshape(50, 4))
    agree(one(tmp_path, "Reshape", {"shape": (-1, 0)}, x), x.reshape(40, 5))


def test_an_embedding_and_a_prelu_have_weights(tmp_path: Path):
    table, index = floats(7, 3), np.array([[0, 6], [3, 3]], np.int32)
    attributes = {"input_dim": 7, "output_dim": 3}
    agree(one(tmp_path, "Embedding", attributes, index, weights={"arg:t": table}), table[index])
    slope = floats(3)
    found = one(tmp_path, "LeakyReLU", {"act_type": "prelu"}, X, weights={"arg:s": slope})
    agree(found, np.where(X > 0, X, X * slope[:, None]))


def test_a_split_has_several_outputs(tmp_path: Path):
    nodes: list[Node] = [
        ("SliceChannel", "s", ["x"], {"num_outputs": 3, "squeeze_axis": True}),
        ("elemwise_sub", "y", ["s#2", "s#0"], {}),
    ]
    agree(computed(tmp_path, nodes, ["y"], {"x": X})[0], X[:, 2] - X[:, 0])


def test_layer_and_instance_norms(tmp_path: Path):
    scale, bias = floats(4, seed=3), floats(4, seed=4)
    mean, deviation = X.mean(-1, keepdims=True), np.sqrt(X.var(-1, keepdims=True) + 0.1)
    found = one(tmp_path, "LayerNorm", {"eps": 0.1}, X, weights={"arg:g": scale, "arg:b": bias})
    agree(found, (X - mean) / deviation * scale + bias)
    found = one(
        tmp_path,
        "InstanceNorm",
        {"eps": 0.1},
        X,
        weights={"arg:g": scale[:3], "arg:b": bias[:3]},
    )
    agree(found, (X - mean) / deviation * scale[:3, None] + bias[:3, None])


# Sequences


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def stepped(mode: str, x: Array, held: list[Array], wx: Array, wh: Array, bx: Array, bh: Array):
    """The states after a step, by MXNet's formulas; gates are i f c o, and r z o."""
    own, old = x @ wx.T + bx, held[0] @ wh.T + bh
    if mode == "lstm":
        i, f, c, o = np.split(own + old, 4, -1)
        cell = sigmoid(f) * held[1] + sigmoid(i) * np.tanh(c)
        return [sigmoid(o) * np.tanh(cell), cell]
    if mode == "gru":
        (rx, zx, ox), (rh, zh, oh) = np.split(own, 3, -1), np.split(old, 3, -1)
        z, new = sigmoid(zx + zh), np.tanh(ox + sigmoid(rx + rh) * oh)
        return [(1 - z) * new + z * held[0]]
    return [np.tanh(own + old) if mode == "rnn_tanh" else np.maximum(own + old, 0)]


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@pytest.mark.parametrize(("layers", "ways"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("mode", GATES)
def test_recurrent_layers_hold_all_weights_in_one_vector(
    tmp_path: Path, mode: str, layers: int, ways: int
):
    steps, samples, inputs, size = 4, 2, 3, 5
    x, width = floats(steps, samples, inputs), GATES[mode] * size
    begin = [floats(layers * ways, samples, size, seed=s) for s in range(1, 3)][: 1 + (width == 20)]
    terms = [n for k in range(layers) for n in [inputs if k == 0 else ways * size] * ways]
    matrices = [floats(width, n, seed=n + i) / 2 for i, t in enumerate(terms) for n in (t, size)]
    biases = [floats(width, seed=40 + i) for i in range(len(matrices))]
    packed = np.concatenate([each.reshape(-1) for each in (*matrices, *biases)])
    row, ends = x, [[] for _ in begin]
    for layer in range(layers):
        made = []
        for way in range(ways):
            k = layer * ways + way
            held, rows, own = [each[k] for each in begin], [], slice(2 * k, 2 * k + 2)
            for each in row[::-1] if way else row:
                held = stepped(mode, each, held, *matrices[own], *biases[own])
                rows.append(held[0])
            made.append(np.stack(rows[::-1] if way else rows))
            for end, value in zip(ends, held, strict=True):
                end.append(value)
        row = np.concatenate(made, -1)
    attributes = {"mode": mode, "state_size": size, "num_layers": layers, "state_outputs": True}
    names = ["x", "w", "h", "c"][: 2 + len(begin)]
    given = dict(zip(("x", "h", "c"), (x, *begin), strict=False))
    node: Node = ("RNN", "y", names, attributes | {"bidirectional": ways == 2, "p": 0.3})
    path = tmp_path / "net-symbol.json"
    variables: list[Node] = [("null", n, (), {"__shape__": v.shape}) for n, v in given.items()]
    text = symbol_text([*variables, node], ["y"])
    tree = json.loads(text)
    (head,) = tree["heads"]
    tree["heads"] = [[head[0], k, 0] for k in range(1 + len(begin))]
    path.write_text(json.dumps(tree))
    (tmp_path / "net-0001.params").write_bytes(params_bytes({"arg:w": packed}))
    module = read_mxnet(path, Reading(AbeleContext(), str(path)))
    found = list(run_reference(module, given).outputs.values())
    for one_, other in zip(found, [row, *map(np.stack, ends)], strict=True):
        agree(one_, other)


def likeliest(logs: Array, labels: list[int], blank: int) -> float:
    """-log of the chance of all alignments of frames [frames, classes] with labels."""
    total = 0.0
    for path in product(range(logs.shape[1]), repeat=len(logs)):
        runs = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        if [c for c in runs if c != blank] == labels:
            total += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return -np.log(total)


@pytest.mark.parametrize("name", ["ctc_loss", "_contrib_CTCLoss"])
@pytest.mark.parametrize("blank", ["first", "last"])
def test_the_loss_of_labels_without_an_alignment(tmp_path: Path, name: str, blank: str):
    x = floats(4, 3, 3)
    logs = x - np.log(np.exp(x).sum(2, keepdims=True))
    shift, none = (1, 0) if blank == "first" else (0, 2)
    rows = [[0, 1], [1], []]
    said = [[c + shift for c in row] for row in rows]
    labels = np.full((3, 3), 0 if shift else -1, np.float32)
    for row, own in zip(labels, said, strict=True):
        row[: len(own)] = own
    # What follows the first padding does not count.
    labels[2, 1] = 1
    found = one(tmp_path, name, {"blank_label": blank}, x, labels)
    agree(found, [likeliest(logs[:, n], own, none) for n, own in enumerate(said)])
    frames, counts = np.array([4, 3, 2], np.float32), np.array([1, 1, 0], np.float32)
    given = {"blank_label": blank, "use_data_lengths": True, "use_label_lengths": True}
    found = one(tmp_path, name, given, x, labels, frames, counts)
    short = [(4, said[0][:1]), (3, said[1]), (2, [])]
    agree(found, [likeliest(logs[:n, i], own, none) for i, (n, own) in enumerate(short)])


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("RNN", {"mode": "lstm"}, "attribute state_size is missing"),
        ("RNN", {"mode": "qrnn", "state_size": 2, "num_layers": 1}, "need one of lstm, gru"),
        (
            "RNN",
            {"mode": "gru", "state_size": 2, "num_layers": 1, "projection_size": 1},
            "projection_size",
        ),
        ("ctc_loss", {"use_data_lengths": True}, "2 operands; need 3"),
        ("ctc_loss", {"blank_label": "middle"}, "need one of first, last"),
    ],
)
def test_sequences_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, attributes: dict[str, Any], message: str
):
    with pytest.raises(InputError, match=message):
        one(tmp_path, name, attributes, floats(4, 3, 3), floats(3, 2))
