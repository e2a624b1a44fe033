"""Makes exports of many kinds of models, each with inputs and the framework's own outputs.

    python make.py FOLDER [NAME ...]

Each export is NAME.onnx or NAME.pt2, with NAME.npz for its inputs, and NAME.expected.npz for its
outputs, in order. `python -m abele.tools.workshop.exports FOLDER` then runs them. A framework that
is not installed is left out, and named.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SMALL_MODELS = HERE.parents[1] / "importers" / "pt2" / "torch_models.py"
"""The modules that the tests of .pt2 archives export too."""

Make = Callable[[Path, str], None]
"""Writes an export and its arrays into a folder, under a name."""


def load(path: Path) -> Any:
    """A file as a module. Its folder is no place for imports: names there may hide packages."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def write(folder: Path, name: str, given: Mapping[str, Any], found: Iterable[Any]) -> None:
    """Write the inputs and the outputs of an export."""
    np.savez(folder / f"{name}.npz", **given)
    np.savez(folder / f"{name}.expected.npz", **{f"{i:03}": each for i, each in enumerate(found)})


def onnx_inputs(path: Path) -> list[str]:
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    weights = {each.name for each in graph.initializer}
    return [each.name for each in graph.input if each.name not in weights]


# PyTorch


def torch_arrays(values: object) -> list[np.ndarray]:
    from torch.utils._pytree import tree_flatten

    return [each.detach().numpy() for each in tree_flatten(values)[0]]


def torch_export(way: str, module: Any, inputs: Any, folder: Path, name: str) -> None:
    import torch

    module = module.eval()
    outputs = torch_arrays(module(*inputs))
    if way == "pt2":
        program = torch.export.export(module, inputs)
        torch.export.save(program, folder / f"{name}.pt2")
        names = [each.arg.name for each in program.graph_signature.input_specs if is_user(each)]
    else:
        path = folder / f"{name}.onnx"
        torch.onnx.export(module, inputs, path, dynamo=way == "dynamo", external_data=False)
        names = onnx_inputs(path)
    write(folder, name, dict(zip(names, torch_arrays(inputs), strict=True)), outputs)


def is_user(spec: Any) -> bool:
    return spec.kind.name == "USER_INPUT"


WAYS = ("dynamo", "script", "pt2")


def torch_exports() -> dict[str, Make]:
    small, more = load(SMALL_MODELS), load(HERE / "more_torch_models.py")
    own = more.more_models()
    kinds = (
        *("mlp", "resnet", "mobilenet", "unet", "vit", "bert", "gpt", "llama", "lstm tagger"),
        *("gru forecaster", "embedding bag", "temporal convolution", "generator"),
        *("super resolution", "swin", "detector", "t5", "cache"),
    )

    def make(way: str, kind: str, folder: Path, name: str) -> None:
        if kind in own:
            import torch

            torch.manual_seed(2)
            module, inputs = own[kind][0](), own[kind][1]
        else:
            module, inputs = small.made(kind)
        torch_export(way, module, inputs, folder, name)

    found: dict[str, Make] = {}
    for i, kind in enumerate((*kinds, *own)):
        # Two of three ways each; the older exporter cannot keep a cache that forward writes.
        ways = ("dynamo", "pt2") if kind == "cache" else {WAYS[i % 3], WAYS[(i + 1) % 3]}
        for way in sorted(ways):
            found[f"{kind.replace(' ', '-')}.{way}"] = partial(make, way, kind)
    return found


# Keras


def keras_exports() -> dict[str, Make]:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    def make(build: Callable[[], Any], folder: Path, name: str) -> None:
        keras.utils.set_random_seed(3)
        model = build()
        x = np.random.default_rng(4).random((2, *model.input_shape[1:])).astype(np.float32)
        path = folder / f"{name}.onnx"
        # Keras exports only a model that was called.
        found = keras.ops.convert_to_numpy(model(x))
        model.export(str(path), format="onnx", verbose=False)
        write(folder, name, {onnx_inputs(path)[0]: x}, [found])

    def cnn() -> Any:
        return keras.Sequential(
            [
                keras.Input((16, 16, 3), batch_size=2),
                layers.Conv2D(6, 3, padding="same", activation="relu"),
                layers.BatchNormalization(),
                layers.MaxPooling2D(),
                layers.DepthwiseConv2D(3, padding="same"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(4, activation="softmax"),
            ]
        )

    def lstm() -> Any:
        return keras.Sequential(
            [
                keras.Input((6, 4), batch_size=2),
                layers.LSTM(8, return_sequences=True),
                layers.GRU(6),
                layers.Dense(2),
            ]
        )

    builds = {"cnn": cnn, "lstm": lstm}
    return {f"{name}.keras": partial(make, build) for name, build in builds.items()}


# JAX


def jax_exports() -> dict[str, Make]:
    import jax
    import jax.numpy as jnp
    from jax2onnx import to_onnx

    random = np.random.default_rng(6)

    def weight(*shape: int) -> np.ndarray:
        return random.normal(size=shape, scale=0.5).astype(np.float32)

    def mlp() -> tuple[Any, tuple[np.ndarray, ...]]:
        a, b = weight(6, 12), weight(12, 3)
        return lambda x: jax.nn.softmax(jax.nn.gelu(x @ a) @ b), (weight(4, 6),)

    def convolution() -> tuple[Any, tuple[np.ndarray, ...]]:
        kernel = weight(3, 3, 2, 5)
        numbers = ("NHWC", "HWIO", "NHWC")

        def f(x: Any) -> Any:
            y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)
            return jnp.mean(jax.nn.relu(y), axis=(1, 2))

        return f, (weight(2, 8, 8, 2),)

    def attention() -> tuple[Any, tuple[np.ndarray, ...]]:
        q, k, v = weight(8, 8), weight(8, 8), weight(8, 8)

        def f(x: Any) -> Any:
            scores = (x @ q) @ jnp.swapaxes(x @ k, -1, -2) / jnp.sqrt(8.0)
            return x + jax.nn.softmax(scores, axis=-1) @ (x @ v)

        return f, (weight(2, 5, 8),)

    def make(build: Callable[[], tuple[Any, tuple[np.ndarray, ...]]], folder: Path, name: str):
        import onnx

        f, inputs = build()
        path = folder / f"{name}.onnx"
        onnx.save(to_onnx(f, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs]), path)
        given = dict(zip(onnx_inputs(path), inputs, strict=True))
        write(folder, name, given, [np.asarray(each) for each in [f(*inputs)]])

    builds = {"mlp": mlp, "convolution": convolution, "attention": attention}
    return {f"{name}.jax": partial(make, build) for name, build in builds.items()}


# scikit-learn


def sklearn_exports() -> dict[str, Make]:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC

    random = np.random.default_rng(7)
    x = random.normal(size=(90, 3)).astype(np.float32)
    number = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5)
    label = np.array(["low", "middle", "high"])[number]
    city = np.array([["Oslo"], ["Lima"], ["Rome"]])[random.integers(0, 3, 90)]

    def save(model: Any, initial: Any, given: Mapping[str, Any], folder: Path, name: str) -> None:
        # The newest opset of ai.onnx.ml that skl2onnx writes for all of these.
        exported = to_onnx(model, initial_types=initial, target_opset={"": 18, "ai.onnx.ml": 3})
        (folder / f"{name}.onnx").write_bytes(exported.SerializeToString())
        frame = next(iter(given.values())) if len(given) == 1 else table(given)
        found = [model.predict(frame)]
        found += [model.predict_proba(frame)] if hasattr(model, "predict_proba") else []
        write(folder, name, given, found)

    def table(given: Mapping[str, Any]) -> Any:
        import pandas

        columns = {name: each[:, 0] for name, each in given.items()}
        return pandas.DataFrame(columns)

    def numbers(model: Any, target: np.ndarray, folder: Path, name: str) -> None:
        fitted = model.fit(x, target)
        save(fitted, [("X", FloatTensorType([5, 3]))], {"X": x[:5]}, folder, name)

    def columns(folder: Path, name: str) -> None:
        model = make_pipeline(
            make_column_transformer(
                (StandardScaler(), ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["city"])
            ),
            LogisticRegression(),
        )
        given = {"age": x[:, :1], "city": city}
        model.fit(table(given), label)
        initial = [("age", FloatTensorType([5, 1])), ("city", StringTensorType([5, 1]))]
        save(model, initial, {n: each[:5] for n, each in given.items()}, folder, name)

    seed = {"random_state": 0}
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    boosted = GradientBoostingClassifier(n_estimators=4, max_depth=2, **seed)
    forest = RandomForestRegressor(4, max_depth=3, **seed)
    return {
        "pipeline.sklearn": partial(numbers, pipeline, label),
        "svc.sklearn": partial(numbers, SVC(probability=True, **seed), label),
        "boosted.sklearn": partial(numbers, boosted, number),
        "forest.sklearn": partial(numbers, forest, x[:, 2]),
        "neighbours.sklearn": partial(numbers, KNeighborsClassifier(3), label),
        "columns.sklearn": columns,
    }


# onnxruntime's quantisers


def quantised_exports() -> dict[str, Make]:
    import onnxruntime
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        quantize_dynamic,
        quantize_static,
    )

    small = load(SMALL_MODELS)

    class Samples(CalibrationDataReader):
        def __init__(self, samples: list[dict[str, np.ndarray]]) -> None:
            self.rest = iter(samples)

        def get_next(self) -> dict[str, np.ndarray] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
            return next(self.rest, None)

    def make(kind: str, form: QuantFormat | None, folder: Path, name: str) -> None:
        plain, path = folder / f"{name}.float.onnx", folder / f"{name}.onnx"
        module, inputs = small.made(kind)
        torch_export("dynamo", module, inputs, folder, f"{name}.float")
        given = dict(zip(onnx_inputs(plain), torch_arrays(inputs), strict=True))
        if form is None:
            quantize_dynamic(plain, path)
        else:
            samples = Samples([{n: each * s for n, each in given.items()} for s in (1.0, 0.7, -1)])
            quantize_static(plain, path, samples, quant_format=form)
        for other in folder.glob(f"{name}.float.*"):
            other.unlink()
        # Optimisations of onnxruntime move roundings.
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(path, options)
        write(folder, name, given, session.run(None, given))

    return {
        "resnet.qdq": partial(make, "resnet", QuantFormat.QDQ),
        "mobilenet.qoperator": partial(make, "mobilenet", QuantFormat.QOperator),
        "mlp.qdq": partial(make, "mlp", QuantFormat.QDQ),
        "bert.int8": partial(make, "bert", None),
        "lstm-tagger.int8": partial(make, "lstm tagger", None),
    }


FRAMEWORKS: dict[str, Callable[[], dict[str, Make]]] = {
    "PyTorch": torch_exports,
    "Keras": keras_exports,
    "JAX": jax_exports,
    "scikit-learn": sklearn_exports,
    "onnxruntime": quantised_exports,
}


def main(folder: Path, names: list[str]) -> None:
    """Make the exports of these names, or all."""
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for framework, listed in FRAMEWORKS.items():
        try:
            makes = listed()
        except ImportError as error:
            print(f"{framework} is left out: {error}")
            continue
        for name, make in makes.items():
            if names and name not in names:
                continue
            try:
                make(folder, name)
                print(name, flush=True)
            except Exception as error:
                # An exporter that fails is no reason to have no other export.
                print(f"{name} is not exported: {type(error).__name__}: {str(error)[:300]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
