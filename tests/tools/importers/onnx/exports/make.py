"""Exports modules of PyTorch whose sizes depend on values, or have bounds, with both exporters.

    python make.py

It needs torch and onnxscript; tests read the files that it has written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import torch
from onnxscript import opset18
from torch import Tensor, nn
from torch.nn import functional
from torch.onnx import register_custom_op_symbolic

HERE = Path(__file__).parent


class Expert(nn.Module):
    """An expert of Mixtral."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)
        self.w3 = nn.Linear(width, inner, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Mixture(nn.Module):
    """A mixture of experts, as the block of Mixtral in transformers computes it."""

    def __init__(self, width: int = 8, inner: int = 12, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, inner) for _ in range(experts))
        self.chosen = chosen

    def forward(self, hidden: Tensor) -> Tensor:
        batch, tokens, width = hidden.shape
        hidden = hidden.view(-1, width)
        weights = functional.softmax(self.gate(hidden), dim=1, dtype=torch.float)
        weights, selected = torch.topk(weights, self.chosen, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        total = torch.zeros((batch * tokens, width), dtype=hidden.dtype)
        mask = functional.one_hot(selected, num_classes=len(self.experts)).permute(2, 1, 0)
        for number, expert in enumerate(self.experts):
            place, token = torch.where(mask[number])
            current = hidden[None, token].reshape(-1, width)
            current = expert(current) * weights[token, place, None]
            total.index_add_(0, token, current.to(hidden.dtype))
        return total.reshape(batch, tokens, width)


class Masked(nn.Module):
    """Rows chosen by a mask, and what usually follows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 3)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        y = self.linear(x[mask])
        return functional.softmax(y, 0), y.sum(0), torch.cat([y, x[:, :3]], 0)


class MaskedUpdate(nn.Module):
    """Elements chosen by a mask, replaced, averaged and added up."""

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        y = x.clone()
        y[mask] = x[mask].exp()
        return y, x[mask].mean(), torch.cumsum(x[mask], 0)


class Chosen(nn.Module):
    """Rows chosen by nonzero: gathered, scattered and multiplied with each other."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        index = torch.nonzero(x.sum(1) > 0).squeeze(1)
        rows = x[index]
        zeros = torch.zeros_like(x)
        zeros[index] = rows * 2
        return rows, zeros, rows @ rows.T, rows.T @ rows


@torch.library.custom_op("detection::nms", mutates_args=())
def suppressed(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """The indices of the boxes that non-maximum suppression keeps, as torchvision::nms has it."""
    kept: list[int] = []
    for index in scores.argsort(descending=True).tolist():
        if all(float(_overlap(boxes[index], boxes[other])) <= threshold for other in kept):
            kept.append(index)
    return torch.tensor(kept, dtype=torch.int64)


@suppressed.register_fake
def _(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def _overlap(one: Tensor, other: Tensor) -> Tensor:
    """The intersection of two boxes over their union."""
    sides = torch.minimum(one[2:], other[2:]) - torch.maximum(one[:2], other[:2])
    shared = sides.clamp(min=0).prod()
    areas = (one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod()
    return shared / (areas - shared)


def dynamo_nms(boxes: Any, scores: Any, threshold: float) -> Any:
    """What torch's exporter writes for torchvision::nms."""
    ops, most = opset18, opset18.Constant(value_ints=[2**31 - 1])
    chosen = ops.NonMaxSuppression(
        ops.Unsqueeze(boxes, [0]), ops.Unsqueeze(scores, [0, 1]), most, [threshold]
    )
    return ops.Squeeze(ops.Slice(chosen, [2], [3], [1]), [1])


def script_nms(graph: Any, boxes: Any, scores: Any, threshold: Any) -> Any:
    """The same for the older exporter."""

    def ints(*values: int) -> Any:
        return graph.op("Constant", value_t=torch.tensor(values))

    chosen = graph.op(
        "NonMaxSuppression",
        graph.op("Unsqueeze", boxes, ints(0)),
        graph.op("Unsqueeze", graph.op("Unsqueeze", scores, ints(0)), ints(0)),
        ints(2**31 - 1),
        graph.op("Unsqueeze", graph.op("Cast", threshold, to_i=1), ints(0)),
    )
    return graph.op("Squeeze", graph.op("Slice", chosen, ints(2), ints(3), ints(1)), ints(1))


class Detection(nn.Module):
    """A detection head of two stages: boxes, suppression, and classes of what is left."""

    def __init__(self, width: int = 6, classes: int = 3) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.move = nn.Linear(width, 4)
        self.second = nn.Linear(width + 4, classes)

    def forward(self, features: Tensor, anchors: Tensor) -> tuple[Tensor, ...]:
        scores = self.score(features).sigmoid().squeeze(1)
        boxes = anchors + self.move(features).tanh() * 0.05
        keep = torch.ops.detection.nms(boxes, scores, 0.3)
        kept, found = boxes[keep], scores[keep]
        classes = self.second(torch.cat([features[keep], kept], 1)).softmax(-1)
        large = (kept[:, 2] - kept[:, 0]) * (kept[:, 3] - kept[:, 1]) > 0.12
        best = classes[large]
        joined = torch.cat([kept[large], anchors[:2]], 0)
        told = torch.zeros_like(scores)
        told[keep] = found * classes.max(-1).values
        alike = (classes @ classes.T).sum(1)
        return keep, classes, best, joined, told, alike, (found[:, None] * kept).mean(0)


class Attention(nn.Module):
    """Attention to the tokens of a cache and to new ones."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, tokens, width = x.shape
        parts = self.qkv(x).split(width, -1)
        shape = batch, tokens, self.heads, width // self.heads
        q, k, v = (part.view(*shape).transpose(1, 2) for part in parts)
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width)
        return self.out(y), k, v


class Decoder(nn.Module):
    """A decoder with a cache, whose positions follow from the length of the cache."""

    def __init__(self, width: int = 16, heads: int = 2, layers: int = 2, words: int = 20) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(80, width)
        self.before = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.attention = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.after = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
            for _ in range(layers)
        )
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor, past: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        new, old = tokens.shape[1], past[0][0].shape[2]
        place = torch.arange(old, old + new)
        x = self.words(tokens) + self.places(place)[None]
        mask = (torch.arange(old + new)[None, :] <= place[:, None])[None, None]
        present: list[Tensor] = []
        for i, (before, attention, after) in enumerate(
            zip(self.before, self.attention, self.after, strict=True)
        ):
            y, k, v = attention(before(x), *past[i], mask)
            x = x + y
            x = x + after(x)
            present += [k, v]
        return self.head(x), *present


def export(
    name: str,
    module: nn.Module,
    args: tuple[Any, ...],
    ways: tuple[str, ...] = ("script", "dynamo"),
    **options: Any,
) -> None:
    """Write the exports of a module, without what only describes them.

    Args:
        ways: the exporters.
    """
    module.eval()
    shapes, axes = options.pop("dynamic_shapes", None), options.pop("dynamic_axes", None)
    for way in ways:
        path = HERE / f"{name}.{way}.onnx"
        table = options.get("custom_translation_table")
        given = {
            name: each for name, each in options.items() if way == "dynamo" or each is not table
        }
        own: dict[str, Any] = (
            {"dynamo": False, "opset_version": 17, "dynamic_axes": axes}
            if way == "script"
            else {"dynamo": True, "dynamic_shapes": shapes, "verbose": False}
        )
        torch.onnx.export(module, args, path, **own, **given)
        model = onnx.load(path)
        del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:]
        del model.functions[:]
        for each in (*model.graph.node, *model.graph.input, *model.graph.output):
            each.doc_string = ""
            del each.metadata_props[:]
        onnx.save(model, path)
        path.with_suffix(".onnx.data").unlink(missing_ok=True)


def main() -> None:
    """Write all files."""
    torch.manual_seed(0)
    rows = torch.randn(6, 5)
    export("mixture", Mixture(), (torch.randn(1, 6, 8),), input_names=["hidden"])
    mask = torch.tensor([True, False, True, True, False, False])
    export("masked", Masked(), (rows, mask), input_names=["x", "mask"])
    export("masked_update", MaskedUpdate(), (rows, rows > 0), input_names=["x", "mask"])
    # The older exporter writes a reshape to the shape that the rows had when it looked.
    export("chosen", Chosen(), (rows,), ("dynamo",), input_names=["x"])
    register_custom_op_symbolic("detection::nms", script_nms, 17)
    corner = torch.rand(24, 2)
    anchors = torch.cat([corner, corner + 0.2 + torch.rand(24, 2) * 0.3], 1)
    export(
        "detection",
        Detection(),
        (torch.randn(24, 6), anchors),
        input_names=["features", "anchors"],
        custom_translation_table={torch.ops.detection.nms.default: dynamo_nms},
    )
    past = [(torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)) for _ in range(2)]
    parts = [f"{i}.{part}" for i in range(2) for part in ("key", "value")]
    names = ["tokens", *(f"past.{part}" for part in parts)]
    old, new = torch.export.Dim("past", min=0, max=64), torch.export.Dim("new", min=1, max=16)
    export(
        "decoder",
        Decoder(),
        (torch.randint(0, 20, (1, 3)), past),
        input_names=names,
        output_names=["logits", *(f"present.{part}" for part in parts)],
        dynamic_shapes={"tokens": {1: new}, "past": [({2: old}, {2: old})] * 2},
        dynamic_axes={"tokens": {1: "new"}, **{name: {2: "past"} for name in names[1:]}},
    )


if __name__ == "__main__":
    main()
