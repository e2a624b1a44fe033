"""Files of models that no front end reads, and the lines that export what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TORCH = "torch.export.save(torch.export.export(model.eval(), (x,)), 'net.pt2')"
KERAS = "keras.models.load_model('{path}').export('net.onnx', format='onnx')"
TF2ONNX = "python -m tf2onnx.convert {given} --output net.onnx"
PICKLE = "skl2onnx.to_onnx(model, x[:1], options={{'zipmap': False}}).SerializeToString()"

EXPORTS: Mapping[str, tuple[str, str]] = {
    ".pt": ("a pickle of PyTorch", TORCH),
    ".pth": ("a pickle of PyTorch", TORCH),
    ".safetensors": ("weights without a graph; load them into the model", TORCH),
    ".caffemodel": ("weights of Caffe without a network; compile the .prototxt beside it", ""),
    ".params": ("weights of MXNet without a graph; compile the -symbol.json beside it", ""),
    ".keras": ("a model of Keras", KERAS),
    ".h5": ("a model of Keras", KERAS),
    ".tflite": ("a model of TensorFlow Lite", TF2ONNX.format(given="--tflite {path}")),
    ".pb": (
        "a frozen graph of TensorFlow",
        TF2ONNX.format(given="--graphdef {path} --inputs x:0 --outputs y:0"),
    ),
    ".gguf": (
        "quantised weights of llama.cpp without a graph; take the model that they were made from",
        "optimum-cli export onnx --model NAME net",
    ),
    ".ort": (
        "onnxruntime's form of an ONNX model; take the .onnx file that it was made from",
        "",
    ),
    ".pkl": ("a pickle, which may run any code; models of scikit-learn have an export", PICKLE),
    ".joblib": ("a pickle, which may run any code; models of scikit-learn have an export", PICKLE),
}
"""For each suffix, what such a file is, and the line that exports its model, "" for none."""

SAVED_MODEL = "saved_model.pb"
"""The file that a folder of TensorFlow's SavedModel has."""


def how_to_export(path: str) -> str:
    """What a file or folder is and how its model is exported; "" if its kind is unknown."""
    file = Path(path)
    folder = file.parent if file.name == SAVED_MODEL else file
    if (folder / SAVED_MODEL).is_file():
        what, line = "a SavedModel of TensorFlow", TF2ONNX.format(given=f"--saved-model {folder}")
    else:
        what, line = EXPORTS.get(file.suffix.lower(), ("", ""))
        line = line.format(path=path)
    if not what:
        return ""
    kind, _, hint = what.partition("; ")
    export = f"export it: {line}" if line else ""
    return "; ".join(filter(None, [f"{kind}, which abele does not read", hint, export]))
