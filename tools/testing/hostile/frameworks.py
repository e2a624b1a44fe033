"""Damaged networks of Caffe and MXNet: their texts, their graphs, and their files of weights."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...importers.mxnet.params import V1, V2, V3
from .binary import damage_bytes
from .caffe_files import caffemodel
from .case import Case, Damaged
from .framework_traps import caffemodel_trap, params_trap
from .models import model_case
from .mxnet_files import OLDEST, Node, params_bytes, symbol_text
from .text import damage_text
from .trees import damage_tree, json_text

NETWORK = """name: "small"
layer { name: "data" type: "Data" top: "data" top: "label"
  transform_param { crop_size: 6 mirror: true } data_param { batch_size: 2 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 1 }
  param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 1 dilation: 1
    weight_filler { type: "gaussian" std: 0.1 } bias_filler { type: "constant" value: 0.5 } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" batch_norm_param { eps: 0.001 } }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv"
  scale_param { axis: 1 bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "norm" type: "LRN" bottom: "conv" top: "norm"
  lrn_param { local_size: 3 alpha: 0.1 beta: 0.75 norm_region: ACROSS_CHANNELS } }
layer { name: "pool" type: "Pooling" bottom: "norm" top: "pool"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "side" type: "Pooling" bottom: "norm" top: "side"
  pooling_param { pool: AVE kernel_h: 3 kernel_w: 3 stride: 2 pad: 1 } }
layer { name: "sum" type: "Eltwise" bottom: "pool" bottom: "side" top: "sum"
  eltwise_param { operation: SUM coeff: 1 coeff: -0.5 } }
layer { name: "cut" type: "Slice" bottom: "sum" top: "a" top: "b"
  slice_param { axis: 1 slice_point: 1 } }
layer { name: "join" type: "Concat" bottom: "b" bottom: "a" top: "join" concat_param { axis: 1 } }
layer { name: "shape" type: "Reshape" bottom: "join" top: "shape"
  reshape_param { shape { dim: 0 dim: -1 dim: 2 } } }
layer { name: "drop" type: "Dropout" bottom: "shape" top: "shape"
  dropout_param { dropout_ratio: 0.25 } }
layer { name: "fc" type: "InnerProduct" bottom: "shape" top: "fc"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "acc" type: "Accuracy" bottom: "fc" bottom: "label" top: "acc"
  include { phase: TEST } accuracy_param { top_k: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss"
  loss_weight: 0.5 loss_param { ignore_label: 7 normalization: VALID } }
"""

SOLVER = """net: "models/net.prototxt"
base_lr: 0.1 lr_policy: "step" gamma: 0.5 stepsize: 3 max_iter: 10 momentum: 0.9
weight_decay: 0.001 iter_size: 2 clip_gradients: 5 type: "Nesterov"
"""

NET, LEARNED = "net.prototxt", "net.caffemodel"

TRAPS = 0.4
"""How often weights are written to do harm, instead of being damaged."""

GRAPH, ARRAYS = "net-symbol.json", "net-0001.params"


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@lru_cache(maxsize=2)
def _caffemodel(old: bool) -> bytes:
    """The weights of the network.

    Args:
        old: in the form before 2014, in which batch normalisation has no number.
    """
    layers = [
        ("conv", 4 if old else "Convolution", [_floats(4, 3, 3, 3), _floats(4)]),
        ("bn", 0 if old else "BatchNorm", [_floats(4), _floats(4) ** 2 + 1, np.full(1, 2.0)]),
        ("scale", 0 if old else "Scale", [_floats(4), _floats(4)]),
        ("fc", 14 if old else "InnerProduct", [_floats(3, 64), _floats(3)]),
    ]
    return caffemodel(layers)


def caffe_network(random: np.random.Generator) -> Case:
    """A network or a solver of Caffe whose text is damaged, with whole weights beside it."""
    if random.random() < 0.25:
        made = damage_text(SOLVER, random)
        beside = {NET: NETWORK.encode()}
        return model_case("solver.prototxt", made, random, beside, is_source=True)
    made = damage_text(NETWORK, random)
    beside = {LEARNED: _caffemodel(False)} if random.random() < 0.5 else {}
    return model_case(NET, made, random, beside, is_source=True)


def caffe_weights(random: np.random.Generator) -> Case:
    """A whole network of Caffe, with damaged weights beside it."""
    if random.random() < TRAPS:
        made = Damaged(*caffemodel_trap(random))
    else:
        made = damage_bytes(_caffemodel(random.random() < 0.3), random)
    whole = Damaged(NETWORK.encode(), f"{LEARNED}: {made.description}")
    case = model_case(NET, whole, random, {LEARNED: made.data}, is_source=True)
    return replace(case, damaged=LEARNED)


NODES: tuple[Node, ...] = (
    ("null", "data", (), {"__shape__": "(2, 2, 8)"}),
    ("null", "conv_weight", (), {"__init__": '["xavier", {"magnitude": 2}]'}),
    ("null", "conv_bias", (), {"__lr_mult__": "2.0", "__wd_mult__": "0.0"}),
    (
        "Convolution",
        "conv",
        ("data", "conv_weight", "conv_bias"),
        {"kernel": "(3,)", "num_filter": "4", "stride": "(1,)", "pad": "(1,)", "workspace": "512"},
    ),
    (
        "BatchNorm",
        "bn",
        ("conv", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"),
        {"eps": "0.001", "fix_gamma": "True", "momentum": "0.9"},
    ),
    ("Activation", "relu", ("bn",), {"act_type": "relu"}),
    (
        "Pooling",
        "pool",
        ("relu",),
        {"kernel": "(3,)", "stride": "(2,)", "pool_type": "avg", "pooling_convention": "full"},
    ),
    ("SliceChannel", "split", ("pool",), {"num_outputs": "2", "axis": "1"}),
    ("elemwise_add", "sum", ("split#0", "split#1"), {}),
    ("_mul_scalar", "half", ("sum",), {"scalar": "0.5"}),
    ("Reshape", "shape", ("half",), {"shape": "(0, -4, 1, -1, -2)"}),
    ("transpose", "turned", ("shape",), {"axes": "(0, 2, 1, 3)"}),
    ("LeakyReLU", "leaky", ("turned",), {"act_type": "leaky", "slope": "0.1"}),
    ("mean", "mean", ("leaky",), {"axis": "(1,)", "keepdims": "True"}),
    ("broadcast_sub", "centred", ("leaky", "mean"), {}),
    ("Dropout", "drop", ("centred",), {"p": "0.5"}),
    ("FullyConnected", "fc", ("drop", "fc_weight", "fc_bias"), {"num_hidden": "3"}),
    ("SoftmaxOutput", "softmax", ("fc", "softmax_label"), {"normalization": "batch"}),
)


@lru_cache(maxsize=4)
def _params(version: int) -> bytes:
    return params_bytes(
        {
            "arg:conv_weight": _floats(4, 2, 3),
            "arg:conv_bias": _floats(4),
            "arg:bn_gamma": _floats(4),
            "arg:bn_beta": _floats(4),
            "aux:bn_moving_mean": _floats(4),
            "aux:bn_moving_var": _floats(4) ** 2 + 1,
        },
        version,
    )


def mxnet_graph(random: np.random.Generator) -> Case:
    """A damaged graph of MXNet, with whole weights beside it."""
    text = symbol_text(NODES, ["softmax"], ("attrs", "attr", "param")[int(random.integers(3))])
    way = random.random()
    if way < 0.5:
        tree, done = damage_tree(json.loads(text), random)
        made = Damaged(json_text(tree), done)
    else:
        made = damage_text(text, random) if way < 0.8 else damage_bytes(text.encode(), random)
    beside = {ARRAYS: _params(V2)} if random.random() < 0.5 else {}
    return model_case(GRAPH, made, random, beside, is_source=True)


def mxnet_weights(random: np.random.Generator) -> Case:
    """A whole graph of MXNet, with damaged weights beside it."""
    versions = (OLDEST, V1, V2, V3)
    if random.random() < TRAPS:
        made = Damaged(*params_trap(random))
    else:
        made = damage_bytes(_params(versions[int(random.integers(len(versions)))]), random)
    whole = Damaged(symbol_text(NODES, ["softmax"]).encode(), f"{ARRAYS}: {made.description}")
    case = model_case(GRAPH, whole, random, {ARRAYS: made.data}, is_source=True)
    return replace(case, damaged=ARRAYS)
