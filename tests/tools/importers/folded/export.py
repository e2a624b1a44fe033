"""Exports a network with batch normalisation and dropout in each way that PyTorch has.

    python export.py      # needs torch 2.13 and onnxscript

Tests read the files, so that they need no PyTorch. Stacks of calls, which name folders of the
machine, are left out.
"""

import io
import json
import lzma
import os
import tempfile
import zipfile

import onnx
import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
LEFT_OUT = ("stack_trace", "fx_node", "class_hierarchy")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.drop(torch.relu(self.bn(self.conv(x))).mean((2, 3))))


def write(name: str, module: nn.Module, **options: object) -> None:
    path = os.path.join(HERE, f"{name}.onnx")
    torch.onnx.export(module, (X,), path, input_names=["x"], output_names=["y"], **options)
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if not p.key.endswith(LEFT_OUT)]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:]
    onnx.save(model, path)


def without_stacks(data: bytes) -> bytes:
    if not data.startswith(b'{"graph_module"'):
        return data
    tree = json.loads(data)
    for each in tree["graph_module"]["graph"]["nodes"]:
        each["metadata"].pop("stack_trace", None)
    return json.dumps(tree).encode()


torch.manual_seed(0)
NET, X = Net(), torch.zeros(2, 3, 8, 8)
NEW = {"dynamo": True, "external_data": False}
write("dynamo", NET.eval(), **NEW)
write("dynamo-unoptimised", NET.eval(), **NEW, optimize=False)
write("dynamo-training", NET.train(), **NEW, optimize=False)
write("script", NET.eval(), dynamo=False)
in_training = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
write("script-training", NET.train(), dynamo=False, **in_training)
program = torch.export.export(NET.eval(), (X,))
for name, each in (("eval", program), ("eval-decomposed", program.run_decompositions())):
    with tempfile.TemporaryDirectory() as folder:
        torch.export.save(each, f"{folder}/net.pt2")
        archive = zipfile.ZipFile(f"{folder}/net.pt2")
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as made:
            for member in archive.namelist():
                made.writestr(zipfile.ZipInfo(member), without_stacks(archive.read(member)))
    with open(os.path.join(HERE, f"{name}.pt2.xz"), "wb") as stream:
        stream.write(lzma.compress(data.getvalue()))
