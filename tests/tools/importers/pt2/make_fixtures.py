"""Writes the archives in `fixtures`, compressed, and what PyTorch computes for them.

Needs PyTorch; the tests that read the files do not. Run it in this folder: python make_fixtures.py.
"""

from __future__ import annotations

import io
import json
import lzma
import re
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np
import torch
from torch.utils._pytree import tree_flatten
from torch_models import Residual, made

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


def without_paths(archive: bytes) -> bytes:
    """The archive, in which no file of Python has a folder of this machine."""
    made_again = io.BytesIO()
    with ZipFile(io.BytesIO(archive)) as old, ZipFile(made_again, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith("models/model.json"):
                text = data.decode()
                text = re.sub(r'File \\"[^"]*?/(site-packages/[^"]*)\\"', r'File \\"/\1\\"', text)
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


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    found: dict[str, np.ndarray] = {}
    for name in dict.fromkeys((*PLAIN, *CORE)):
        module, inputs = made(name)
        program = torch.export.export(module, inputs)
        if name in PLAIN:
            saved(program, name)
        if name in CORE:
            saved(program.run_decompositions(), f"{name}, core")
        found |= arrays(name, inputs, module(*inputs))
    torch.manual_seed(0)
    block = Residual(3, 4, 2).eval()
    image = torch.randn(2, 3, 8, 8)
    batch = torch.export.Dim("batch", max=16)
    size = 2 * torch.export.Dim("half", min=3, max=20)
    free = {"x": {0: batch, 2: size}}
    saved(torch.export.export(block, (image,), dynamic_shapes=free), "free sizes")
    found |= arrays("free sizes", image, block(image))
    np.savez_compressed(FOLDER / "values.npz", **found)


if __name__ == "__main__":
    main()
