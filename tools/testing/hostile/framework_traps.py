"""Files of Caffe and MXNet that do harm where they are read: absurd sizes, cycles, and bombs."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from string import Template
from typing import Any

import numpy as np

from ...importers.mxnet.params import MAGIC, V1, V2, V3
from .caffe_files import LAYER, OLD_LAYER, field, varint
from .case import Case, Damaged
from .models import model_case
from .mxnet_files import Node, symbol_text

SIZES = (
    *(0, 1, 2, 3, 7, 64, 1000, 65_536, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, 10**12),
    *(1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -1, -7, -(1 << 63), 10**40),
)
"""Sizes that files promise: some do no harm, so that readers get past their first check."""

DEPTHS = (2, 5, 40, 300, 3000)
"""How deep things are nested, and how long chains are."""

PATHS = (
    *("/etc/passwd", "../../../etc/passwd", "/dev/zero", "/proc/self/mem", "net.prototxt", "."),
    *("solver.prototxt", "", "a\\000b", "x" * 5000, "models/../../x", "~/x", "$HOME/x", "//x"),
)
"""Paths that lead out of the folder, to devices, to the file itself, or nowhere."""


def _any(choices: Sequence[Any], random: np.random.Generator) -> Any:
    return choices[int(random.integers(len(choices)))]


def _sizes(text: str, random: np.random.Generator) -> tuple[str, str]:
    chosen = {name: str(_any(SIZES, random)) for name in "nmk"}
    chosen["path"] = str(_any(PATHS, random))
    return Template(text).safe_substitute(chosen), f"{text[:80]} with {chosen}"[:200]


# Caffe

DATA = (
    'layer { name: "data" type: "Input" top: "x" '
    "input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }\n"
)

CAFFE_LAYERS = (
    'type: "InnerProduct" inner_product_param { num_output: $n axis: $m }',
    'type: "Convolution" convolution_param { num_output: $n kernel_size: $m pad: $k }',
    'type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 stride: $n dilation: '
    "$m }",
    'type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 group: $n axis: $m }',
    'type: "Deconvolution" convolution_param { num_output: $n kernel_size: $m stride: $k }',
    'type: "Pooling" pooling_param { pool: AVE kernel_size: $n stride: $m pad: $k }',
    'type: "Pooling" pooling_param { pool: MAX kernel_h: $n kernel_w: 2 global_pooling: true }',
    'type: "SPP" spp_param { pyramid_height: $n pool: MAX }',
    'type: "Tile" tile_param { axis: $n tiles: $m }',
    'type: "Reshape" reshape_param { shape { dim: $n dim: $m dim: -1 } axis: $k }',
    'type: "Reshape" reshape_param { shape { dim: -1 dim: -1 } num_axes: $n }',
    'type: "LRN" lrn_param { local_size: $n alpha: 1e400 beta: nan }',
    'type: "Flatten" flatten_param { axis: $n end_axis: $m }',
    'type: "Softmax" softmax_param { axis: $n }',
    'type: "ArgMax" argmax_param { top_k: $n axis: $m out_max_val: true }',
    'type: "Reduction" reduction_param { axis: $n coeff: 1e39 }',
    'type: "Embed" embed_param { num_output: $n input_dim: $m }',
    'type: "Scale" scale_param { axis: $n num_axes: $m }',
    'type: "Bias" bias_param { axis: $n num_axes: $m }',
    'type: "Parameter" parameter_param { shape { dim: $n dim: $m } }',
    'type: "DummyData" dummy_data_param { shape { dim: $n dim: $m dim: $k } }',
    'type: "Input" input_param { shape { dim: $n dim: $m dim: $k dim: 4 } }',
    'type: "Power" power_param { power: $n scale: $m shift: $k }',
    'type: "Dropout" dropout_param { dropout_ratio: $n }',
    'type: "MVN" mvn_param { across_channels: true eps: $n }',
    'type: "LSTM" recurrent_param { num_output: $n }',
    'type: "RNN" recurrent_param { num_output: $n expose_hidden: true }',
    'type: "Data" data_param { source: "$path" batch_size: $n } transform_param { crop_size: '
    '$m mean_file: "$path" }',
    'type: "ImageData" image_data_param { source: "$path" root_folder: "$path" batch_size: $n '
    "new_height: $m new_width: $k }",
    'type: "HDF5Data" hdf5_data_param { source: "$path" batch_size: $n }',
    'type: "InfogainLoss" infogain_loss_param { source: "$path" }',
    'type: "HDF5Output" hdf5_output_param { file_name: "$path" }',
    'type: "Python" python_param { module: "os" layer: "system" param_str: "touch ran" }',
    'type: "$path" phase: TRAIN loss_weight: $n',
    'type: "ReLU" include { min_level: $n max_level: $m stage: "$path" }',
    'type: "Slice" slice_param { axis: $n slice_point: $m slice_point: $k } top: "z"',
    'type: "Concat" bottom: "x" concat_param { axis: $n }',
    'type: "Eltwise" bottom: "x" eltwise_param { operation: PROD coeff: $n }',
    'type: "BatchNorm" batch_norm_param { eps: $n moving_average_fraction: $m }',
    'type: "Crop" bottom: "x" crop_param { axis: $n offset: $m offset: $k }',
)
"""Layers with places for sizes and paths."""


def _caffe_sizes(random: np.random.Generator) -> tuple[str, str]:
    layer, what = _sizes(str(_any(CAFFE_LAYERS, random)), random)
    bottom = "" if any(each in layer for each in ("Data", "Input", "Parameter")) else 'bottom: "x"'
    return f'{DATA}layer {{ name: "l" {bottom} top: "y" {layer} }}\n', what


def _caffe_chain(random: np.random.Generator) -> tuple[str, str]:
    """A value that is joined with itself, or that passes through many layers."""
    depth = int(_any(DEPTHS, random))
    kinds = {
        "joined": 'type: "Concat" bottom: "{0}"',
        "tiled": 'type: "Tile" tile_param {{ axis: 1 tiles: 7 }}',
        "added": 'type: "Eltwise" bottom: "{0}"',
        "in place": 'type: "ReLU"',
        "padded": 'type: "Convolution" convolution_param {{ num_output: 1 kernel_size: 1 pad: 9 }}',
        "spread": 'type: "Deconvolution" '
        "convolution_param {{ num_output: 1 kernel_size: 9 stride: 9 }}",
        "the same name": 'type: "Split"',
    }
    way = str(_any(list(kinds), random))
    lines, at = [DATA], "x"
    for i in range(depth):
        top = at if way == "in place" else f"t{i}"
        name = "l" if way == "the same name" else f"l{i}"
        lines.append(
            f'layer {{ name: "{name}" bottom: "{at}" top: "{top}" {kinds[way].format(at)} }}'
        )
        at = top
    return "\n".join(lines), f"{way}, {depth} layers"


CAFFE_WRONG = (
    'layer { name: "a" type: "ReLU" bottom: "b" top: "a" } layer { name: "b" type: "ReLU" '
    'bottom: "a" top: "b" }',
    'layer { name: "a" type: "ReLU" bottom: "a" top: "a" }',
    'layer { name: "a" type: "Split" bottom: "x" top: "a" top: "a" }',
    'layers { name: "a" type: RELU bottom: "x" top: "a" } layer { name: "b" type: "ReLU" '
    'bottom: "x" top: "b" }',
    'layers { type: 4 name: "a" bottom: "x" top: "a" blobs_lr: 1 blobs_lr: 2 }',
    'input: "y" input_dim: $n input_dim: $m layer { name: "a" type: "ReLU" bottom: "y" top: "a" }',
    'input: "x" input: "x" input_shape { dim: $n } input_shape { dim: $m dim: $k }',
    'layer { name: "a" type: "InnerProduct" bottom: "x" top: "a" inner_product_param { '
    'num_output: 3 } param { name: "w" } } '
    'layer { name: "b" type: "InnerProduct" bottom: "x" top: "b" inner_product_param { '
    'num_output: $n } param { name: "w" } }',
    'layer { name: "$path" type: "ReLU" bottom: "x" top: "$path" }',
    'layer { name: "a" type: "ReLU" bottom: "x" top: "a" blobs { shape { dim: $n } data: 1 } }',
    'layer { name: "a" type: 7 bottom: "x" top: "a" }',
    'state { phase: TEST level: $n stage: "$path" } force_backward: maybe',
    'layer < name: "a" type: "ReLU"; bottom: ["x"], top: ["a"] >',
    'layer { name: "a" type: "SoftmaxWithLoss" bottom: "x" bottom: "x" top: "a" loss_weight: '
    "$n loss_param { ignore_label: $m normalization: 9 } }",
)
"""Networks that are wrong, or look wrong, in one way."""


def _caffe_wrong(random: np.random.Generator) -> tuple[str, str]:
    text, what = _sizes(str(_any(CAFFE_WRONG, random)), random)
    return DATA + text + "\n", what


def _caffe_text(random: np.random.Generator) -> tuple[str, str]:
    """A text that is deep, long, or full of one thing."""
    depth = int(_any((20, 300, 3000, 100_000), random))
    ways = {
        "messages": "layer { " * depth + "}" * depth,
        "open messages": "layer { " * depth,
        "lists": "layer { bottom: " + "[" * depth,
        "fields": DATA + 'layer { name: "a" type: "Slice" bottom: "x" ' + 'top: "a" ' * depth + "}",
        "numbers": DATA + "layer { loss_weight: " + "9" * depth + " }",
        "strings": DATA + 'layer { name: "' + "\\x41" * depth + '" }',
        "an open string": DATA + 'layer { name: "' + "a" * depth,
        "comments": "#" * depth + DATA,
        "dims": "input: 'x' input_shape { " + "dim: 2 " * depth + "}",
        "inputs": " ".join(
            f"input: 'x{i}' input_shape {{ dim: 1 }}" for i in range(min(depth, 9999))
        ),
    }
    way = str(_any(list(ways), random))
    return ways[way], f"{depth} {way}"


SOLVERS = (
    'net: "$path" base_lr: 0.1 max_iter: $n',
    'net: "net.prototxt" weights: "$path" base_lr: 0.1',
    'net: "net.prototxt" weights: "net.caffemodel,$path,net.caffemodel" base_lr: 0.1',
    'train_net: "$path" test_net: "$path" base_lr: 0.1',
    'net: "net.prototxt" base_lr: $n momentum: $m weight_decay: $k',
    'net: "net.prototxt" base_lr: 0.1 lr_policy: "multistep" stepvalue: $n stepvalue: $m '
    "stepvalue: $k",
    'net: "net.prototxt" base_lr: 0.1 lr_policy: "step" gamma: $n stepsize: $m max_iter: $k',
    'net: "net.prototxt" base_lr: 0.1 lr_policy: "poly" power: $n max_iter: $m',
    'net: "net.prototxt" base_lr: 0.1 lr_policy: "$path" iter_size: $n',
    'net: "net.prototxt" base_lr: 0.1 type: "$path" clip_gradients: $n',
    'net: "net.prototxt" base_lr: 0.1 type: "Adam" momentum: $n momentum2: $m delta: $k',
    'net: "net.prototxt" base_lr: 0.1 type: "RMSProp" rms_decay: $n delta: $m',
    'net: "net.prototxt" base_lr: 0.1 type: "AdaDelta" momentum: $n delta: $m',
    'net: "net.prototxt" base_lr: 0.1 solver_type: $n regularization_type: "$path"',
    'net: "net.prototxt" base_lr: 0.1 snapshot_prefix: "$path" snapshot: $n random_seed: $m',
    'net: "net.prototxt" train_net: "net.prototxt" base_lr: 0.1',
    'net_param { layer { name: "a" type: "ReLU" bottom: "x" top: "a" } } base_lr: $n',
    'net: "net.prototxt" base_lr: 0.1 train_state { level: $n stage: "$path" }',
    "base_lr: 0.1",
)
"""Solvers with places for sizes and paths."""


def _solver(random: np.random.Generator) -> tuple[str, str]:
    return _sizes(str(_any(SOLVERS, random)), random)


Trap = Callable[[np.random.Generator], tuple[str, str]]

CAFFE_TRAPS: tuple[tuple[str, Trap], ...] = (
    ("net.prototxt", _caffe_sizes),
    ("net.prototxt", _caffe_sizes),
    ("net.prototxt", _caffe_chain),
    ("net.prototxt", _caffe_wrong),
    ("net.prototxt", _caffe_text),
    ("solver.prototxt", _solver),
)
"""The name of the file, and what makes it."""


def caffe_trap(random: np.random.Generator) -> Case:
    """A network or a solver of Caffe that does harm."""
    name, trap = CAFFE_TRAPS[int(random.integers(len(CAFFE_TRAPS)))]
    text, what = trap(random)
    beside = {} if name == "net.prototxt" else {"net.prototxt": DATA.encode()}
    made = Damaged(text.encode("utf-8", "surrogatepass"), what)
    return model_case(name, made, random, beside, is_source=True)


# The weights of Caffe


def _fixed(number: int, value: bytes) -> bytes:
    """A field of 32 bits."""
    return varint(number << 3 | 5) + value


def _blob_trap(random: np.random.Generator) -> tuple[bytes, str]:
    """A blob whose shape, pieces or types do not suit its elements."""
    elements = bytes(4 * int(_any((0, 1, 4, 108, 4000), random)))
    axes = int(_any((0, 1, 2, 4, 33, 3000), random))
    dims = [int(_any(SIZES, random)) for _ in range(axes)]
    shape = field(7, field(1, b"".join(map(varint, dims))))
    loose = b"".join(field(1, n) for n in dims)
    ways = {
        "shape": shape + field(5, elements),
        "shape of single fields": field(7, loose) + field(5, elements),
        "old sizes": b"".join(field(i, n) for i, n in enumerate(dims[:4], 1)) + field(5, elements),
        "two pieces": field(5, elements) + shape + field(5, elements),
        "two types": field(5, elements) + field(8, elements + elements) + shape,
        "half an element": field(5, elements + b"\0"),
        "single elements": b"".join(_fixed(5, b"\0\0\x80?") for _ in range(len(elements) // 4)),
        "doubles": shape + field(8, elements),
        "a varint": field(5, 7) + field(7, 7),
        "no end": varint(5 << 3 | 2) + varint(int(_any(SIZES, random))) + elements,
        "a group": varint(5 << 3 | 3) + elements + varint(5 << 3 | 4),
        "field 0": varint(2) + varint(len(elements)) + elements,
        "a long number": b"\xff" * 40,
    }
    way = str(_any(list(ways), random))
    return ways[way], f"{way} {dims[:4]} of {len(elements)} bytes"


def _deep(depth: int, number: int) -> bytes:
    inside = b""
    for _ in range(depth):
        inside = field(number, inside)
    return inside


NAMES = ("conv", "bn", "scale", "fc", "other", "", "../../x", "\0", "x" * 70_000)


def caffemodel_trap(random: np.random.Generator) -> tuple[bytes, str]:
    """The bytes of a file of weights that does harm."""
    blob, what = _blob_trap(random)
    name = str(_any(NAMES, random))
    layer = field(1, name) + field(2, "Convolution") + field(7, blob)
    whole = field(LAYER, field(1, "conv") + field(7, field(5, bytes(432))))
    depth = int(_any(DEPTHS, random))
    ways = {
        "a layer": field(LAYER, layer),
        "two layers": whole + field(LAYER, layer),
        "many blobs": field(LAYER, field(1, "conv") + field(7, blob) * depth),
        "many layers": b"".join(
            field(LAYER, field(1, f"l{i}") + field(7, blob)) for i in range(depth)
        ),
        "the same layer": field(LAYER, layer) * depth,
        "an old layer": field(OLD_LAYER, field(4, name) + field(5, depth) + field(6, blob)),
        "the oldest layer": field(OLD_LAYER, field(1, layer)),
        "deep messages": _deep(depth, LAYER),
        "names of weights": field(LAYER, layer + field(6, field(1, "w")) * depth),
        "a name that is no text": field(LAYER, field(1, b"\xff\xfe") + field(7, blob)),
        "unknown fields": field(1 << 28, bytes(depth)) + field(LAYER, layer),
    }
    way = str(_any(list(ways), random))
    return ways[way], f"{way} {name[:20]!r} {depth}: {what}"


# MXNet

MXNET_NODES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("FullyConnected", {"num_hidden": "$n", "flatten": "$m"}),
    ("Convolution", {"kernel": "($n, $m)", "num_filter": "$k", "pad": "($k, $k)"}),
    (
        "Convolution",
        {"kernel": "(3, 3)", "num_filter": "4", "stride": "($n, $m)", "dilate": "($k, 1)"},
    ),
    ("Convolution", {"kernel": "(3, 3)", "num_filter": "4", "num_group": "$n", "layout": "NHWC"}),
    (
        "Deconvolution",
        {"kernel": "($n, $n)", "num_filter": "$m", "adj": "($k, $k)", "stride": "(2, 2)"},
    ),
    ("Pooling", {"kernel": "($n, $m)", "stride": "($k, $k)", "pool_type": "avg"}),
    ("Pooling", {"global_pool": "True", "kernel": "($n,)", "pool_type": "lp", "p_value": "$m"}),
    ("Reshape", {"shape": "($n, $m, -1)", "reverse": "True"}),
    ("Reshape", {"shape": "(-4, $n, $m, -3, -2)"}),
    ("transpose", {"axes": "($n, $m)"}),
    ("slice", {"begin": "($n, None)", "end": "($m, $k)", "step": "($k, 1)"}),
    ("slice_axis", {"axis": "$n", "begin": "$m", "end": "$k"}),
    ("SliceChannel", {"num_outputs": "$n", "axis": "$m", "squeeze_axis": "True"}),
    ("tile", {"reps": "($n, $m)"}),
    ("repeat", {"repeats": "$n", "axis": "$m"}),
    ("broadcast_to", {"shape": "($n, $m, $k, 8)"}),
    ("broadcast_axis", {"axis": "($n,)", "size": "($m,)"}),
    ("expand_dims", {"axis": "$n"}),
    ("Pad", {"mode": "constant", "pad_width": "(0, 0, 0, 0, $n, $m, $k, 0)"}),
    ("one_hot", {"depth": "$n"}),
    ("Embedding", {"input_dim": "$n", "output_dim": "$m"}),
    ("_zeros", {"shape": "($n, $m)", "dtype": "$k"}),
    ("_arange", {"start": "$n", "stop": "$m", "step": "$k", "repeat": "$n"}),
    ("UpSampling", {"scale": "$n", "sample_type": "nearest", "num_args": "$m"}),
    ("Concat", {"num_args": "$n", "dim": "$m"}),
    ("LRN", {"nsize": "$n", "alpha": "1e400"}),
    ("BatchNorm", {"axis": "$n", "eps": "$m"}),
    ("RNN", {"state_size": "$n", "num_layers": "$m", "mode": "lstm"}),
    ("topk", {"k": "$n", "axis": "$m", "ret_typ": "both"}),
    ("sum", {"axis": "($n, $m)", "exclude": "True"}),
    ("dot", {"transpose_a": "$n"}),
    ("Cast", {"dtype": "$path"}),
    ("Custom", {"op_type": "$path"}),
    ("$path", {}),
    ("_mul_scalar", {"scalar": "$n"}),
    ("clip", {"a_min": "$n", "a_max": "$m"}),
    ("Activation", {"act_type": "$path"}),
    ("SwapAxis", {"dim1": "$n", "dim2": "$m"}),
    ("Crop", {"h_w": "($n, $m)", "offset": "($k, $k)", "num_args": "1"}),
)
"""Nodes with places for sizes and paths."""

LITERALS = (
    *("(" * 5000, "[" * 5000 + "]" * 5000, "(1,) * 1000000000", "__import__('os').abort()"),
    *("9" * 5000, "1e999", "None", "()", "(,)", "(1 2)", "0x10", "1_000", "(1,", "True", "{}", ""),
    *(
        "(" + "1," * 100_000 + ")",
        "inf",
        "nan",
        "-0",
        "\u0664",
        "1j",
        "b'x'",
        "lambda: 1",
        "é" * 99,
    ),
)
"""Values of attributes that a reader may take for code."""


def _node_text(operator: str, attributes: Mapping[str, str]) -> str:
    nodes: tuple[Node, ...] = (
        ("null", "data", (), {"__shape__": "(2, 3, 8, 8)"}),
        (operator, "n", ("data",), attributes),
    )
    return symbol_text(nodes, ["n"])


def _mxnet_sizes(random: np.random.Generator) -> tuple[str, str]:
    operator, attributes = MXNET_NODES[int(random.integers(len(MXNET_NODES)))]
    chosen = {name: str(_any(SIZES, random)) for name in "nmk"}
    chosen["path"] = str(_any(PATHS, random))
    filled = {key: Template(each).substitute(chosen) for key, each in attributes.items()}
    return _node_text(Template(operator).substitute(chosen), filled), f"{operator} {filled}"[:200]


def _mxnet_literals(random: np.random.Generator) -> tuple[str, str]:
    operator, attributes = MXNET_NODES[int(random.integers(len(MXNET_NODES)))]
    value = str(_any(LITERALS, random))
    made = dict.fromkeys(attributes, "2") | {str(_any([*attributes, "__shape__"], random)): value}
    return _node_text(operator.replace("$path", "Custom"), made), f"{operator}: {value[:60]}"


def _mxnet_chain(random: np.random.Generator) -> tuple[str, str]:
    """A value that is joined with itself, or that passes through many nodes."""
    depth = int(_any(DEPTHS, random))
    kinds: dict[str, tuple[str, int, dict[str, str]]] = {
        "joined": ("Concat", 2, {"num_args": "2", "dim": "1"}),
        "tiled": ("tile", 1, {"reps": "(7, 1, 1, 1)"}),
        "added": ("elemwise_add", 2, {}),
        "raised": ("UpSampling", 1, {"scale": "7", "sample_type": "nearest"}),
        "passed on": ("Activation", 1, {"act_type": "relu"}),
    }
    way = str(_any(list(kinds), random))
    operator, operands, attributes = kinds[way]
    nodes: list[Node] = [("null", "data", (), {"__shape__": "(2, 3, 8, 8)"})]
    nodes += [
        (operator, f"n{i}", ["data" if not i else f"n{i - 1}"] * operands, attributes)
        for i in range(depth)
    ]
    return symbol_text(nodes, [nodes[-1][1]]), f"{way}, {depth} nodes"


def _mxnet_tree(random: np.random.Generator) -> tuple[str, str]:
    """A graph whose edges, heads or parts are not those of a graph."""
    data: dict[str, Any] = {"op": "null", "name": "data", "inputs": []}
    relu: dict[str, Any] = {
        "op": "Activation",
        "name": "a",
        "attrs": {"act_type": "relu"},
        "inputs": [[0, 0, 0]],
    }
    size, depth = _any(SIZES, random), int(_any(DEPTHS[:4], random))
    deep: Any = []
    for _ in range(depth):
        deep = [deep]
    inner: Any = {"nodes": [data], "heads": [[0, 0, 0]]}
    for _ in range(min(depth, 200)):
        inner = {"nodes": [{**relu, "subgraphs": [inner]}], "heads": [[0, 0, 0]]}
    graphs: dict[str, Any] = {
        "itself": {"nodes": [{**relu, "inputs": [[0, 0, 0]]}], "heads": [[0, 0, 0]]},
        "a later node": {"nodes": [{**relu, "inputs": [[1, 0, 0]]}, data], "heads": [[0, 0, 0]]},
        "an output": {"nodes": [data, {**relu, "inputs": [[0, size, 0]]}], "heads": [[1, size, 0]]},
        "a head": {"nodes": [data, relu], "heads": [[size, 0, 0]]},
        "many heads": {"nodes": [data, relu], "heads": [[1, 0, 0]] * min(depth * 30, 10_000)},
        "no heads": {"nodes": [data, relu], "heads": []},
        "deep inputs": {"nodes": [data, {**relu, "inputs": deep}], "heads": [[1, 0, 0]]},
        "deep heads": {"nodes": [data, relu], "heads": deep},
        "graphs inside": inner,
        "names": {"nodes": [data, data, relu], "heads": [[2, 0, 0]]},
        "operands": {
            "nodes": [data, {**relu, "inputs": [[0, 0, 0]] * depth}],
            "heads": [[1, 0, 0]],
        },
        "three spellings": {
            "nodes": [data, {**relu, "attr": {"act_type": "tanh"}, "param": {"act_type": "x"}}],
            "heads": [[1, 0, 0]],
        },
        "a hidden path": {
            "nodes": [{**data, "attrs": {"__init__": '["load", {"path": "/etc/passwd"}]'}}, relu],
            "heads": [[1, 0, 0]],
        },
        "a shape": {
            "nodes": [{**data, "attrs": {"__shape__": f"({size}, {size})"}}, relu],
            "heads": [[1, 0, 0]],
        },
        "no list": {"nodes": {"0": data}, "heads": {}},
    }
    way = str(_any(list(graphs), random))
    return json.dumps(graphs[way]), f"{way}, {size}, {depth}"


MXNET_TRAPS: tuple[Trap, ...] = (
    *(_mxnet_sizes, _mxnet_sizes, _mxnet_literals, _mxnet_chain, _mxnet_tree),
)


def mxnet_trap(random: np.random.Generator) -> Case:
    """A graph of MXNet that does harm."""
    text, what = MXNET_TRAPS[int(random.integers(len(MXNET_TRAPS)))](random)
    made = Damaged(text.encode("utf-8", "surrogatepass"), what)
    return model_case("net-symbol.json", made, random, is_source=True)


# The weights of MXNet

WIDE = (1 << 64) - 1


def params_trap(random: np.random.Generator) -> tuple[bytes, str]:
    """The bytes of a .params file that does harm."""
    version = int(_any((V1, V2, V3, 3, 0, 33), random))
    axes = int(_any((0, 1, 2, 4, 33, (1 << 31) - 1, -1), random))
    dims = [int(_any(SIZES, random)) for _ in range(min(max(axes, 0), 40))]
    storage = int(_any((0, 0, 1, 2, -1), random))
    code = int(_any((0, 0, 1, 2, 7, 8, 12, 99, -1), random))
    elements = bytes(int(_any((0, 4, 96, 4096), random)))
    array = struct.pack("<I", version)
    if version in (V2, V3):
        array += struct.pack("<i", storage)
    if version in (V1, V2, V3):
        array += struct.pack("<i", axes) + b"".join(_wrapped(n, 64) for n in dims)
    else:
        array += b"".join(_wrapped(n, 32) for n in dims)
    array += struct.pack("<iii", 1, 0, code) + elements
    arrays, names = (int(_any((0, 1, 1, 1, 2, 1 << 31, WIDE), random)) for _ in range(2))
    name = str(
        _any(("arg:conv_weight", "conv_weight", "aux:x", ":", "", "../../x", "n" * 9000), random)
    )
    size = len(name) if random.random() < 0.8 else int(_any((0, 5000, WIDE), random))
    data = struct.pack("<QQQ", MAGIC, int(_any((0, WIDE), random)), arrays)
    data += array * min(arrays, 2) + struct.pack("<Q", names)
    data += (struct.pack("<Q", size) + name.encode()) * min(names, 2)
    what = f"version {version:#x}, shape {dims[:4]} of {axes} axes, type {code}, storage {storage}"
    return data, f"{what}, {arrays} arrays, {names} names {name[:20]!r} of {size}"


def _wrapped(number: int, bits: int) -> bytes:
    """The lowest bits of a number."""
    return (number & ((1 << bits) - 1)).to_bytes(bits // 8, "little")
