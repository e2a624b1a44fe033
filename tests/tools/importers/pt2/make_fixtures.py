"""Writes the archives in `fixtures`, compressed, and what PyTorch computes for them.

Needs PyTorch; the tests that read the files do not. Run it in this folder, with the names of models
or for all of them: python make_fixtures.py [NAME]...
"""

from __future__ import annotations

import io
import json
import lzma
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np
import torch
from torch.utils._pytree import tree_flatten
from torch_models import Block, Residual, Step, made, with_statistics

FOLDER = Path(__file__).parent / "fixtures"

PLAIN = (
    "mlp",
    "resnet",
    "bert",
    "llama",
    "gru forecaster",
    "counter",
    "cache",
    "multi-head attention",
)
"""The modules that are exported as they are."""

CORE = ("mlp", "vit", "counter")
"""The modules that are exported after their operators were decomposed."""


OF_TORCH = r'File \\"[^"]*?/(torch/[^"]*)\\"'
"""A line of a stack that is in PyTorch itself."""


def without_paths(archive: bytes) -> bytes:
    """The archive, in which no file of Python has a folder of this machine."""
    made_again = io.BytesIO()
    with ZipFile(io.BytesIO(archive)) as old, ZipFile(made_again, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith("models/model.json"):
                text = data.decode()
                text = re.sub(OF_TORCH, r'File \\"/site-packages/\1\\"', text)
                text = re.sub(r'File \\"(?!/site)[^"]*?([^"/]+)\\"', r'File \\"models/\1\\"', text)
                data = json.dumps(json.loads(text), separators=(",", ":")).encode()
            member = ZipInfo(info.filename, date_time=(1980, 1, 1, 0, 0, 0))
            new.writestr(member, data)
    return made_again.getvalue()


def saved(program: torch.export.ExportedProgram, name: str) -> None:
    stream = io.BytesIO()
    torch.export.save(program, stream)
    data = lzma.compress(without_paths(stream.getvalue()))
    (FOLDER / f"{name}.pt2.xz").write_bytes(data)


def arrays(name: str, inputs: object, outputs: object) -> dict[str, np.ndarray]:
    found = {f"{name}/in{i}": t.numpy() for i, t in enumerate(tree_flatten(inputs)[0])}
    results = tree_flatten(outputs)[0]
    return found | {f"{name}/out{i}": t.detach().numpy() for i, t in enumerate(results)}


def made_plainly(name: str) -> dict[str, np.ndarray]:
    """Write a module of the tables. Returns its inputs and outputs."""
    module, inputs = made(name)
    program = torch.export.export(module, inputs)
    if name in PLAIN:
        saved(program, name)
    if name in CORE:
        saved(program.run_decompositions(), f"{name}, core")
    return arrays(name, inputs, module(*inputs))


def free_sizes(name: str) -> dict[str, np.ndarray]:
    torch.manual_seed(0)
    block = Residual(3, 4, 2).eval()
    image = torch.randn(2, 3, 8, 8)
    batch = torch.export.Dim("batch", max=16)
    size = 2 * torch.export.Dim("half", min=3, max=20)
    free = {"x": {0: batch, 2: size}}
    saved(torch.export.export(block, (image,), dynamic_shapes=free), name)
    return arrays(name, image, block(image))


def decoder_step(name: str) -> dict[str, np.ndarray]:
    torch.manual_seed(0)
    step = Step().eval()
    past = torch.export.Dim("past", min=0, max=20)
    given = torch.randint(0, 11, (1, 2)), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    program = torch.export.export(step, given, dynamic_shapes=({}, {2: past}, {2: past}))
    saved(program, name)
    saved(program.run_decompositions(), f"{name}, core")
    return arrays(name, given, step(*given))


class Perceptron(torch.nn.Sequential):
    """A normalisation and two layers, on rows."""

    def __init__(self):
        size = torch.nn.LayerNorm(8), torch.nn.Linear(8, 16), torch.nn.GELU()
        super().__init__(*size, torch.nn.Linear(16, 8))


PAIRS = {
    "convolution block": (lambda: Residual(4, 8, 2), (1, 4, 8, 8)),
    "perceptron block": (Perceptron, (4, 8)),
    "attention block": (lambda: Block(16, 2), (1, 6, 16)),
}
"""Modules that are exported in both forms, and the shapes of their inputs."""


def pair(name: str) -> dict[str, np.ndarray]:
    """Write a module as .pt2 and as .onnx. Returns nothing to store."""
    torch.manual_seed(0)
    make, shape = PAIRS[name]
    module, x = with_statistics(make().eval()), torch.randn(shape)
    stream = io.BytesIO()
    torch.export.save(torch.export.export(module, (x,)), stream)
    exported = torch.onnx.export(module, (x,), dynamo=True, verbose=False).model_proto
    for node in exported.graph.node:
        del node.metadata_props[:]
    (FOLDER / "pairs").mkdir(exist_ok=True)
    files = {"pt2": without_paths(stream.getvalue()), "onnx": exported.SerializeToString()}
    for kind, data in files.items():
        (FOLDER / "pairs" / f"{name}.{kind}.xz").write_bytes(lzma.compress(data))
    return {}


MAKERS = {
    **dict.fromkeys(PAIRS, pair),
    **dict.fromkeys((*PLAIN, *CORE), made_plainly),
    "free sizes": free_sizes,
    "decoder step": decoder_step,
}
"""What writes the archives of a model, by the model's name."""


def main(names: Sequence[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    values = FOLDER / "values.npz"
    found = dict(np.load(values)) if values.exists() else {}
    for name in names:
        found |= MAKERS[name](name)
    np.savez_compressed(values, **found)


if __name__ == "__main__":
    main(sys.argv[1:] or list(MAKERS))
