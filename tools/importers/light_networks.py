"""The nine light networks of the onnx package, with seeded weights that make good tests.

The package ships the graphs of AlexNet, ResNet-50 and seven more without their weights: every
large tensor is the constant 0.02, every output is uniform, and swapped channels go unseen. Here
they get random weights, calibrated in one pass over a batch of 8 so that signals neither die nor
explode and the answer depends on the input:

- He-normal weights, then each output channel of a Conv or Gemm scaled to unit deviation times
  exp(0.2 N), its bias minus the mean plus 0.2 N;
- the statistics of each BatchNormalization those observed, its scale exp(0.2 N), its shift 0.2 N;
- the last Conv or Gemm scaled so that the logits have deviation 2 over the batch; where a channel
  has only 8 values (that layer, and every Gemm) the deviation is that of all channels together.

The pass runs in NumPy, so that a bare install can make the networks. What it finds is small and is
cached; the weights are drawn again from the seed each time.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from ...ir.support.cache_folder import cache_folder
from ...ir.support.errors import InputError
from ...ir.support.sealed_file import Broken, read_sealed, write_sealed

Array = NDArray[np.float32]

LIGHT_NAMES = (
    "alexnet",
    "zfnet512",
    "vgg19",
    "squeezenet",
    "shufflenet",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "densenet121",
)

# The one file whose name differs from its network.
FILES = {"alexnet": "bvlc_alexnet"}

BATCH = 8
LOGIT_DEVIATION = 2.0

# Part of the cache's key: raise it when a change here changes a weight.
VERSION = 1

KIND = "figures of a light network 1"
"""What a file of the cache is sealed as."""


def light_names() -> tuple[str, ...]:
    """The names that `seeded` accepts."""
    return LIGHT_NAMES


def light_input(name: str, seed: int = 0) -> dict[str, Array]:
    """A seeded normal image for a network, by the name of its input: float32[1, 3, 224, 224]."""
    return {_input_name(_load(name)): _images(name, seed, 1)}


def seeded(name: str, seed: int = 0) -> onnx.ModelProto:
    """A light network with calibrated random weights, all of them initializers.

    The same name and seed give the same model on the same NumPy. It differs from the file in two
    ways: a weight that is reshaped before use has its final shape, and unused tensors are left out.
    Raises InputError.
    """
    graph = _LightGraph(_load(name), name, seed)
    path = cache_folder() / f"light-{VERSION}-{name}-{seed}.figures"
    found = _read_cache(path)
    if found is None or set(found) != set(graph.calibrated):
        found = graph.calibrate()
        _write_cache(path, found)
    return graph.model(found)


def light_file(name: str) -> Path:
    """The file of a light network in the onnx package. Raises InputError."""
    if name not in LIGHT_NAMES:
        raise InputError(f"light network {name!r}; need one of {', '.join(LIGHT_NAMES)}")
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    path = folder / f"light_{FILES.get(name, name)}.onnx"
    if not path.is_file():
        raise InputError(f"light network {name!r}: this onnx package has no file {path.name}")
    return path


def _load(name: str) -> onnx.ModelProto:
    return onnx.load(str(light_file(name)))


def _input_name(model: onnx.ModelProto) -> str:
    """The graph input that is not an initializer."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    (name,) = (each.name for each in model.graph.input if each.name not in initialized)
    return name


def _images(name: str, seed: int, count: int, stream: int = 0) -> Array:
    """Normal images.

    Args:
        stream: 0 for inputs, 1 for calibration, so that the two never coincide.
    """
    random = _random(f"{name}/images", seed, stream)
    return random.standard_normal((count, 3, 224, 224), dtype=np.float32)


def _random(label: str, seed: int, stream: int = 0) -> np.random.Generator:
    if seed < 0:
        raise InputError(f"seed {seed}; need 0 or more")
    return np.random.default_rng([seed, stream, zlib.crc32(label.encode())])


# The graph, its weights drawn and its calibration.


@dataclass
class _LightGraph:
    """One light network: its nodes without constants, and the uses of its weights.

    Attributes:
        calibrated: the names of the tensors that calibration computes, with their shapes. The
            weights of a Conv or Gemm appear as one factor per output channel.
        roles: the tensors that calibration does not compute: "scale" or "shift".
    """

    source: onnx.ModelProto
    name: str
    seed: int
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    integers: dict[str, NDArray[np.int64]] = field(default_factory=dict[str, NDArray[np.int64]])
    calibrated: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    roles: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        constants = {t.name: numpy_helper.to_array(t) for t in self.source.graph.initializer}
        for node in self.source.graph.node:
            if node.op_type == "ConstantOfShape":
                shape = constants.pop(node.input[0])
                self.shapes[node.output[0]] = tuple(int(size) for size in shape)
            else:
                self.nodes.append(node)
        # Some files contain tensors that no node reads.
        read = [key for node in self.nodes for key in node.input]
        self.shapes = {key: self.shapes[key] for key in read if key in self.shapes}
        for key in dict.fromkeys(key for key in read if key in constants):
            value = constants[key]
            if value.dtype == np.int64:
                self.integers[key] = cast(NDArray[np.int64], value)
            else:
                self.shapes[key] = value.shape
        self.nodes = [node for node in self.nodes if not self._fold_reshape(node)]
        self._find_roles()

    def _fold_reshape(self, node: onnx.NodeProto) -> bool:
        """Give a weight that is reshaped before use its last shape and name."""
        if node.op_type != "Reshape" or node.input[0] not in self.shapes:
            return False
        del self.shapes[node.input[0]]
        shape = self.integers.pop(node.input[1])
        self.shapes[node.output[0]] = tuple(int(size) for size in shape)
        return True

    def _find_roles(self) -> None:
        """Find the calibrated parameters, and the Mul or Add that an Unsqueeze feeds one to."""
        unsqueezed: dict[str, str] = {}
        for node in self.nodes:
            if node.op_type in ("Conv", "Gemm"):
                self.calibrated[node.input[1]] = (self.shapes[node.input[1]][0],)
                if len(node.input) > 2:
                    self.calibrated[node.input[2]] = self.shapes[node.input[2]]
            elif node.op_type == "BatchNormalization":
                self.roles[node.input[1]] = "scale"
                self.roles[node.input[2]] = "shift"
                for statistic in node.input[3:5]:
                    self.calibrated[statistic] = self.shapes[statistic]
            elif node.op_type == "Unsqueeze" and node.input[0] in self.shapes:
                unsqueezed[node.output[0]] = node.input[0]
            elif node.op_type in ("Mul", "Add"):
                for operand in node.input:
                    if operand in unsqueezed:
                        role = "scale" if node.op_type == "Mul" else "shift"
                        self.roles[unsqueezed[operand]] = role
        unknown = set(self.shapes) - set(self.calibrated) - set(self.roles)
        if unknown:
            raise InputError(f"light network {self.name!r}: no use known of {sorted(unknown)}")

    def drawn(self, key: str) -> Array:
        """A parameter before calibration: He-normal weights, or a scale or shift about 1 or 0."""
        shape = self.shapes[key]
        values = _random(f"{self.name}/{key}", self.seed).standard_normal(shape, dtype=np.float32)
        role = self.roles.get(key)
        if role is None:
            values *= np.float32(np.sqrt(2 / np.prod(shape[1:])))
            return values
        values *= np.float32(0.2)
        return np.exp(values) if role == "scale" else values

    def weights(self, key: str, factors: Array) -> Array:
        """Calibrated weights: one factor per output channel."""
        values = self.drawn(key)
        values *= factors.reshape(-1, *[1] * (values.ndim - 1))
        return values

    def calibrate(self) -> dict[str, Array]:
        """Factors, biases and statistics by parameter, from one pass over a batch."""
        found: dict[str, Array] = {}
        values: dict[str, Array] = {
            _input_name(self.source): _images(self.name, self.seed, BATCH, stream=1)
        }
        last_use = {key: index for index, node in enumerate(self.nodes) for key in node.input}
        head = max(i for i, node in enumerate(self.nodes) if node.op_type in ("Conv", "Gemm"))
        for index, node in enumerate(self.nodes):
            attributes = _attributes(node)
            operands = [values[key] for key in node.input if key in values]
            if node.op_type in ("Conv", "Gemm"):
                result = PRODUCTS[node.op_type](operands[0], self.drawn(node.input[1]), attributes)
                self._calibrate_product(node, result, index == head, found)
            elif node.op_type == "BatchNormalization":
                result = self._calibrate_normalization(node, operands[0], attributes, found)
            elif node.op_type == "Reshape":
                # The shapes are written for one image.
                shape = [int(size) for size in self.integers[node.input[1]]]
                result = operands[0].reshape(BATCH, *shape[1:])
            else:
                parameters = [self.drawn(key) for key in node.input if key in self.roles]
                result = EVALUATE[node.op_type]([*operands, *parameters], attributes)
            values[node.output[0]] = result
            for key in node.input:
                if last_use[key] == index:
                    values.pop(key, None)
        return found

    def _calibrate_product(
        self, node: onnx.NodeProto, result: Array, is_head: bool, found: dict[str, Array]
    ) -> None:
        """Scale and shift a product in place, channel by channel, and record the factors."""
        weight = node.input[1]
        random = _random(f"{self.name}/{weight}", self.seed, 2)
        channels = int(result.shape[1])
        axes = (0, *range(2, result.ndim))
        mean = _mean(result, axes)
        # In the head, the differences between images matter, once positions are averaged.
        spread = _mean(result, axes[1:]) if is_head else result
        deviation = _deviation(spread, (0, *range(2, spread.ndim)))
        if spread.ndim == 2:
            # Eight samples say too little about one channel. Dividing by each channel's own
            # deviation would give a few logits that dominate, and a softmax that hides errors.
            deviation = np.full_like(deviation, np.sqrt(np.square(deviation).mean()))
        wanted = np.exp(0.2 * random.standard_normal(channels))
        if is_head:
            wanted *= LOGIT_DEVIATION
        factors = (wanted / np.maximum(deviation, 1e-6)).astype(np.float32)
        found[weight] = factors
        result *= _over_channels(factors, result.ndim)
        if len(node.input) > 2:
            bias = 0.2 * random.standard_normal(channels) - mean * factors
            found[node.input[2]] = bias.astype(np.float32)
            result += _over_channels(found[node.input[2]], result.ndim)

    def _calibrate_normalization(
        self,
        node: onnx.NodeProto,
        value: Array,
        attributes: Mapping[str, Any],
        found: dict[str, Array],
    ) -> Array:
        axes = (0, *range(2, value.ndim))
        mean = _mean(value, axes).astype(np.float32)
        variance = np.square(_deviation(value, axes)).astype(np.float32)
        found[node.input[3]], found[node.input[4]] = mean, variance
        scale, shift = self.drawn(node.input[1]), self.drawn(node.input[2])
        epsilon = np.float32(attributes.get("epsilon", 1e-5))
        factor = (scale / np.sqrt(variance + epsilon)).astype(np.float32)
        result = value * _over_channels(factor, value.ndim)
        result += _over_channels((shift - mean * factor).astype(np.float32), value.ndim)
        return result

    def model(self, found: Mapping[str, Array]) -> onnx.ModelProto:
        """The network with its weights as initializers that are not graph inputs."""
        initializers = [numpy_helper.from_array(v, key) for key, v in self.integers.items()]
        for key, shape in self.shapes.items():
            if key not in found:
                values = self.drawn(key)
            elif found[key].shape == shape:
                values = found[key]
            else:
                values = self.weights(key, found[key])
            initializers.append(numpy_helper.from_array(values, key))
        source = self.source.graph
        name = _input_name(self.source)
        graph = helper.make_graph(
            self.nodes,
            source.name,
            [each for each in source.input if each.name == name],
            list(source.output),
            initializers,
        )
        # From version 4 on, an initializer need not be a graph input.
        return helper.make_model(
            graph, opset_imports=list(self.source.opset_import), ir_version=4, producer_name="abele"
        )


def _mean(value: NDArray[np.floating], axes: tuple[int, ...]) -> NDArray[np.float64]:
    return cast(NDArray[np.float64], value.mean(axis=axes, dtype=np.float64))


def _deviation(value: NDArray[np.floating], axes: tuple[int, ...]) -> NDArray[np.float64]:
    return cast(NDArray[np.float64], value.std(axis=axes, dtype=np.float64))


def _over_channels(values: Array, rank: int) -> Array:
    return values.reshape(1, -1, *[1] * (rank - 2))


# The operators of the nine networks, batch first, in float32.


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _windows(
    value: Array, attributes: Mapping[str, Any], size: tuple[int, int], fill: float
) -> Array:
    """Views of all windows: (batch, channels, rows, columns, window rows, window columns)."""
    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    stride_y, stride_x = attributes.get("strides", (1, 1))
    if top or left or bottom or right:
        edges = ((0, 0), (0, 0), (top, bottom), (left, right))
        value = np.pad(value, edges, constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(value, size, axis=(2, 3))
    return windows[:, :, ::stride_y, ::stride_x]


def _convolution(value: Array, weights: Array, attributes: Mapping[str, Any]) -> Array:
    """Image by image: windows gathered in columns, then one product per group."""
    groups = int(attributes.get("group", 1))
    size = cast(tuple[int, int], weights.shape[2:])
    windows = _windows(value, attributes, size, 0.0)
    rows, columns = windows.shape[2:4]
    matrices = weights.reshape(groups, weights.shape[0] // groups, -1)
    result = np.empty((value.shape[0], weights.shape[0], rows, columns), np.float32)
    for image, into in zip(windows, result, strict=True):
        gathered = image.transpose(0, 3, 4, 1, 2).reshape(groups, -1, rows * columns)
        np.matmul(matrices, gathered, out=into.reshape(groups, -1, rows * columns))
    return result


def _gemm(value: Array, weights: Array, attributes: Mapping[str, Any]) -> Array:
    if attributes != {"transB": 1}:
        raise InputError(f"Gemm with {attributes}; need transB = 1 and nothing else")
    return value @ weights.T


def _pooled(value: Array, attributes: Mapping[str, Any], fill: float, merge: np.ufunc) -> Array:
    """Merge windows position by position, which is faster than reducing the two short axes."""
    size = cast(tuple[int, int], tuple(attributes["kernel_shape"]))
    windows = _windows(value, attributes, size, fill)
    result = windows[..., 0, 0].copy()
    for y, x in list(np.ndindex(size))[1:]:
        merge(result, windows[..., y, x], out=result)
    return result


def _max_pool(operands: list[Array], attributes: Mapping[str, Any]) -> Array:
    return _pooled(operands[0], attributes, -np.inf, np.maximum)


def _average_pool(operands: list[Array], attributes: Mapping[str, Any]) -> Array:
    """The mean of the elements inside the image, without padding."""
    ones = np.ones((1, 1, *operands[0].shape[2:]), np.float32)
    counts = _pooled(ones, attributes, 0.0, np.add)
    return _pooled(operands[0], attributes, 0.0, np.add) / counts


def _local_response(operands: list[Array], attributes: Mapping[str, Any]) -> Array:
    """Each value divided by a power of the squares in the channels around it."""
    value, size = operands[0], int(attributes["size"])
    low, channels = (size - 1) // 2, operands[0].shape[1]
    squares = np.pad(value * value, ((0, 0), (low, size - 1 - low), (0, 0), (0, 0)))
    around = squares[:, :channels].copy()
    for offset in range(1, size):
        around += squares[:, offset : offset + channels]
    around *= np.float32(attributes.get("alpha", 1e-4) / size)
    around += np.float32(attributes.get("bias", 1.0))
    np.power(around, np.float32(-attributes.get("beta", 0.75)), out=around)
    return (value * around).astype(np.float32, copy=False)


def _softmax(operands: list[Array], attributes: Mapping[str, Any]) -> Array:
    """The form below opset 13: over all axes from `axis` on, 1 by default, taken as one."""
    value = operands[0]
    rows = value.reshape(int(np.prod(value.shape[: attributes.get("axis", 1)])), -1)
    raised = np.exp(rows - rows.max(axis=1, keepdims=True))
    return (raised / raised.sum(axis=1, keepdims=True)).reshape(value.shape)


def _unsqueeze(operands: list[Array], attributes: Mapping[str, Any]) -> Array:
    return np.expand_dims(operands[0], tuple(attributes["axes"]))


def _sum(operands: list[Array], attributes: Mapping[str, Any]) -> Array:
    del attributes
    result = operands[0].copy()
    for operand in operands[1:]:
        result += operand
    return result


PRODUCTS: Mapping[str, Callable[[Array, Array, Mapping[str, Any]], Array]] = {
    "Conv": _convolution,
    "Gemm": _gemm,
}

EVALUATE: Mapping[str, Callable[[list[Array], Mapping[str, Any]], Array]] = {
    "Add": lambda operands, attributes: operands[0] + operands[1],
    "AveragePool": _average_pool,
    "Concat": lambda operands, attributes: np.concatenate(operands, axis=attributes["axis"]),
    "Dropout": lambda operands, attributes: operands[0],
    "GlobalAveragePool": lambda operands, attributes: operands[0].mean(axis=(2, 3), keepdims=True),
    "LRN": _local_response,
    "MaxPool": _max_pool,
    "Mul": lambda operands, attributes: operands[0] * operands[1],
    "Relu": lambda operands, attributes: np.maximum(operands[0], np.float32(0)),
    "Softmax": _softmax,
    "Sum": _sum,
    "Transpose": lambda operands, attributes: np.ascontiguousarray(
        operands[0].transpose(attributes["perm"])
    ),
    "Unsqueeze": _unsqueeze,
}


# The cache: a few kilobytes per network.


def _read_cache(path: Path) -> dict[str, Array] | None:
    """The cached figures, or None. A damaged file counts as none."""
    try:
        contents = BytesIO(read_sealed(path, KIND, path.name))
        with np.load(contents, allow_pickle=False) as stored:
            return {key: cast(Array, stored[key]) for key in stored.files}
    except (OSError, Broken):
        return None


def _write_cache(path: Path, found: Mapping[str, Array]) -> None:
    """Write a file, so that nobody reads half of it. May fail silently."""
    try:
        # Names of tensors contain slashes, and could be np.savez's own arguments.
        contents = BytesIO()
        with zipfile.ZipFile(contents, "w") as archive:
            for key, value in found.items():
                with archive.open(f"{key}.npy", "w") as entry:
                    np.lib.format.write_array(entry, value, allow_pickle=False)
        write_sealed(path, KIND, path.name, contents.getvalue())
    except OSError:
        return
