"""Exports the network of this folder with both of PyTorch's exporters.

    python export.py      # writes dynamo.onnx and torchscript.onnx; needs torch 2.13 and onnxscript

Tests read the files, so that they need no PyTorch. The exporter writes the folders of the machine
into the file; they are replaced. Properties that abele does not read are left out, because they are
long.
"""

import os

import onnx
import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.dirname(os.path.dirname(torch.__file__))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2)).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.attn(self.norm(x))
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, width: int = 8, heads: int = 2, depth: int = 2):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 2, 2)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.heads = nn.ModuleDict({"plain": nn.Linear(width, 4), "odd key": nn.Linear(width, 4)})

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        x = torch.relu(x.mean(1))
        return self.heads["plain"](x) + self.heads["odd key"](x)


UNREAD = ("pkg.torch.onnx.fx_node", "pkg.torch.onnx.class_hierarchy")


def without_folders(path: str) -> None:
    """Replace the folders of this machine in the properties of nodes, and drop unread ones."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [each for each in node.metadata_props if each.key not in UNREAD]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        for each in node.metadata_props:
            text = each.value.replace(PACKAGES, "/home/user/venv/lib/site-packages")
            each.value = text.replace(HERE, "/home/user/net")
    onnx.save(model, path)


def main() -> None:
    torch.manual_seed(0)
    net = Net().eval()
    image = torch.randn(1, 3, 8, 8)
    for name, dynamo in (("dynamo.onnx", True), ("torchscript.onnx", False)):
        path = os.path.join(HERE, name)
        torch.onnx.export(
            net,
            (image,),
            path,
            input_names=["image"],
            output_names=["scores"],
            dynamo=dynamo,
            external_data=False,
        )
        without_folders(path)


if __name__ == "__main__":
    main()
