"""Trains the example models on scikit-learn's handwritten digits, and writes them as ONNX files.

    pip install torch scikit-learn onnx onnxscript
    python examples/make_models.py

Writes digits.onnx (a convolutional network), gru_cell.onnx (one step of a recurrent network that
reads a digit row by row) and attention.onnx (an attention block over the rows) beside this file,
and images that were not trained on: digits.npz and digit_labels.npy. It takes about a minute.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

HERE = Path(__file__).parent
ROWS = COLUMNS = 8
CLASSES, TEST = 10, 297


class Convolutional(nn.Module):
    """Two convolutions, a max-pool and a linear layer: [N, 1, 8, 8] -> [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 32, 3, padding=1)
        self.classes = nn.Linear(32 * 4 * 4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        x = torch.max_pool2d(torch.relu(self.second(x)), 2)
        return self.classes(x.flatten(1))


class Cell(nn.Module):
    """One step of a gated recurrent network: a row and a state -> scores and the next state."""

    def __init__(self, size: int = 32) -> None:
        super().__init__()
        self.size = size
        self.of_row = nn.Linear(COLUMNS, 3 * size)
        self.of_state = nn.Linear(size, 3 * size)
        self.classes = nn.Linear(size, CLASSES)

    def forward(self, row: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        r, z, n = self.of_row(row).chunk(3, dim=1)
        hr, hz, hn = self.of_state(state).chunk(3, dim=1)
        update = torch.sigmoid(z + hz)
        new = torch.tanh(n + torch.sigmoid(r + hr) * hn)
        state = update * state + (1 - update) * new
        return self.classes(state), state


class Recurrent(nn.Module):
    """The cell, over all rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()

    def forward(self, x: Tensor) -> Tensor:
        scores, state = torch.empty(0), torch.zeros(len(x), self.cell.size)
        for row in x[:, 0].unbind(1):
            scores, state = self.cell(row, state)
        return scores


class Attention(nn.Module):
    """Attention over the rows of an image, then a feed-forward layer: [N, 1, 8, 8] -> [N, 10]."""

    def __init__(self, size: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.size, self.heads = size, heads
        self.embed = nn.Linear(COLUMNS, size)
        self.positions = nn.Parameter(torch.randn(ROWS, size) * 0.1)
        self.queries_keys_values = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.before, self.between = nn.LayerNorm(size), nn.LayerNorm(size)
        self.wide, self.narrow = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.classes = nn.Linear(size, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x.squeeze(1)) + self.positions
        x = x + self.attend(self.before(x))
        x = x + self.narrow(torch.relu(self.wide(self.between(x))))
        return self.classes(x.mean(1))

    def attend(self, x: Tensor) -> Tensor:
        parts = self.queries_keys_values(x).chunk(3, dim=2)
        depth = self.size // self.heads
        q, k, v = (p.reshape(-1, ROWS, self.heads, depth).transpose(1, 2) for p in parts)
        weights = torch.softmax(q @ k.transpose(2, 3) / depth**0.5, dim=3)
        return self.out((weights @ v).transpose(1, 2).reshape(-1, ROWS, self.size))


def train(model: nn.Module, x: Tensor, y: Tensor, epochs: int) -> None:
    """Train with Adam on batches of 64."""
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimiser.step()


def export(model: nn.Module, given: dict[str, Tensor], results: list[str], name: str) -> None:
    """Write a model with a free batch size N."""
    batch = torch.export.Dim("N", min=1)
    exported = torch.onnx.export(
        model.eval(),
        tuple(given.values()),
        input_names=list(given),
        output_names=results,
        dynamic_shapes=tuple({0: batch} for _ in given),
        dynamo=True,
        verbose=False,
    )
    proto = exported.model_proto
    # The exporter notes the paths of the files that made each node.
    for node in proto.graph.node:
        node.ClearField("metadata_props")
    onnx.save(proto, HERE / name)


def main() -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    order = np.random.default_rng(0).permutation(len(images))
    train_on, test_on = order[TEST:], order[:TEST]
    x, y = torch.from_numpy(images[train_on]), torch.from_numpy(digits.target[train_on])
    test, labels = torch.from_numpy(images[test_on]), torch.from_numpy(digits.target[test_on])
    np.savez_compressed(HERE / "digits.npz", x=images[test_on])
    np.save(HERE / "digit_labels.npy", digits.target[test_on].astype(np.int8))

    convolutional, recurrent, attention = Convolutional(), Recurrent(), Attention()
    for model, epochs in ((convolutional, 30), (recurrent, 60), (attention, 60)):
        train(model, x, y, epochs)
        right = (model(test).argmax(1) == labels).float().mean().item()
        print(f"{type(model).__name__}: {right:.1%} of {TEST} images right")
    export(convolutional, {"x": test[:2]}, ["scores"], "digits.onnx")
    state = torch.zeros(2, recurrent.cell.size)
    given = {"row": test[:2, 0, 0], "state": state}
    export(recurrent.cell, given, ["scores", "next_state"], "gru_cell.onnx")
    export(attention, {"x": test[:2]}, ["scores"], "attention.onnx")


if __name__ == "__main__":
    main()
