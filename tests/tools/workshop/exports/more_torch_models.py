"""Modules of kinds that torch_models.py does not have, small and seeded."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Birnn(nn.Module):
    """A recurrent layer in both directions, of which the last states are classified."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(4, 6, bidirectional=True, batch_first=True)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(x)
        return self.head(y.mean(1))


class Audio(nn.Module):
    """Strided convolutions of a wave, as wav2vec begins with."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 8, 10, stride=5),
            nn.GroupNorm(8, 8),
            nn.GELU(),
            nn.Conv1d(8, 12, 3, stride=2),
            nn.GELU(),
        )

    def forward(self, wave: Tensor) -> Tensor:
        return self.layers(wave[:, None]).transpose(1, 2)


class Vae(nn.Module):
    """A variational autoencoder in inference: the mean, the variance, and the reconstruction."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(16, 12), nn.ReLU())
        self.mean, self.variance = nn.Linear(12, 4), nn.Linear(12, 4)
        self.decode = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 16), nn.Sigmoid())

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.encode(x)
        mean, variance = self.mean(hidden), self.variance(hidden)
        return self.decode(mean + noise * torch.exp(0.5 * variance)), mean, variance


class Autoencoder(nn.Module):
    """A convolutional autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 6, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(6, 8, 3, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 6, 2, 2),
            nn.ReLU(),
            nn.ConvTranspose2d(6, 1, 2, 2),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.layers(x))


class TwoTowers(nn.Module):
    """A dual encoder: the cosine of each pair of two batches."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Embedding(30, 8), nn.Linear(6, 8)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, tokens: Tensor, features: Tensor) -> Tensor:
        a = F.normalize(self.left(tokens).mean(1), dim=-1)
        b = F.normalize(self.right(features), dim=-1)
        return self.scale.exp() * a @ b.T


class GraphNetwork(nn.Module):
    """Two layers that sum over the edges of a graph, and the mean of its nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(5, 8), nn.Linear(8, 8)])
        self.own = nn.ModuleList([nn.Linear(5, 8), nn.Linear(8, 8)])

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer, own in zip(self.layers, self.own, strict=True):
            messages = layer(x)[edges[0]]
            summed = torch.zeros(x.shape[0], 8).index_add(0, edges[1], messages)
            x = F.relu(own(x) + summed)
        return x.mean(0)


class Mixture(nn.Module):
    """A layer of experts of which each token uses two, with all of them computed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.up, self.down = (
            nn.Parameter(torch.randn(*shape) / 3) for shape in ((4, 8, 12), (4, 12, 8))
        )

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        gates = torch.zeros(x.shape[0], 4).scatter(1, chosen, weights)
        hidden = F.silu(torch.einsum("nd,edh->enh", x, self.up))
        return torch.einsum("enh,ehd,ne->nd", hidden, self.down, gates)


class Seq2Seq(nn.Module):
    """nn.Transformer with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Transformer(16, 2, 1, 1, 24, batch_first=True, dropout=0.0)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        n = target.shape[1]
        mask = torch.full((n, n), float("-inf")).triu(1)
        return self.body(source, target, tgt_mask=mask)


def more_models() -> dict[str, tuple[type[nn.Module], tuple[Tensor, ...]]]:
    """The modules, each with its inputs."""
    torch.manual_seed(1)
    return {
        "birnn": (Birnn, (torch.randn(2, 5, 4),)),
        "audio": (Audio, (torch.randn(2, 90),)),
        "vae": (Vae, (torch.rand(3, 16), torch.randn(3, 4))),
        "autoencoder": (Autoencoder, (torch.rand(2, 1, 12, 12),)),
        "two-towers": (TwoTowers, (torch.randint(0, 30, (3, 4)), torch.randn(3, 6))),
        "graph-network": (GraphNetwork, (torch.randn(7, 5), torch.randint(0, 7, (2, 12)))),
        "mixture": (Mixture, (torch.randn(6, 8),)),
        "seq2seq": (Seq2Seq, (torch.randn(2, 5, 16), torch.randn(2, 4, 16))),
    }
