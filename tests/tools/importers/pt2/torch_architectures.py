"""Small models of the ten architectures whose operators docs/models.md counts."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .torch_models import (
    Bert,
    ConvNeXt,
    Gpt,
    LlamaLayer,
    ResNet,
    RMSNorm,
    ViT,
    WindowAttention,
    images,
    sentences,
    words,
)
from .torch_models import Llama as DenseLlama


class Merging(nn.Module):
    """The step between two stages of Swin: four neighbours become one."""

    def __init__(self, size: int):
        super().__init__()
        self.norm, self.reduction = (
            nn.LayerNorm(4 * size),
            nn.Linear(4 * size, 2 * size, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.block = nn.Conv2d(3, 16, 2, 2), WindowAttention()
        self.merging, self.norm, self.head = Merging(16), nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(self.patch(x).permute(0, 2, 3, 1))
        return self.head(self.norm(self.merging(y)).mean((1, 2)))


class Experts(nn.Module):
    """A mixture of experts as transformers writes it: each expert takes the tokens it was given."""

    def __init__(self, size: int = 16, count: int = 4, chosen: int = 2):
        super().__init__()
        self.count, self.chosen = count, chosen
        self.gate = nn.Linear(size, count, bias=False)
        self.w1, self.w3 = (nn.Parameter(torch.randn(count, 24, size) / 4) for _ in range(2))
        self.w2 = nn.Parameter(torch.randn(count, size, 24) / 5)

    def routed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The weights and the numbers of the chosen experts of each token."""
        weights = F.softmax(self.gate(x), dim=1, dtype=torch.float)
        weights, experts = torch.topk(weights, self.chosen, dim=-1)
        return (weights / weights.sum(-1, keepdim=True)).to(x.dtype), experts

    def expert(self, number: int, x: Tensor) -> Tensor:
        hidden = F.silu(F.linear(x, self.w1[number])) * F.linear(x, self.w3[number])
        return F.linear(hidden, self.w2[number])

    def forward(self, hidden: Tensor) -> Tensor:
        x = hidden.reshape(-1, hidden.shape[-1])
        weights, experts = self.routed(x)
        found = torch.zeros_like(x)
        mask = F.one_hot(experts, num_classes=self.count).permute(2, 1, 0)
        for number in range(self.count):
            place, token = torch.where(mask[number])
            own = self.expert(number, x[token]) * weights[token, place, None]
            found.index_add_(0, token, own.to(x.dtype))
        return found.reshape(hidden.shape)


class DenseExperts(Experts):
    """The same mixture, in which every expert computes every token."""

    def forward(self, hidden: Tensor) -> Tensor:
        x = hidden.reshape(-1, hidden.shape[-1])
        weights, experts = self.routed(x)
        share = torch.zeros(x.shape[0], self.count).scatter_add(1, experts, weights)
        inner = F.silu(torch.einsum("td,ehd->teh", x, self.w1))
        inner = inner * torch.einsum("td,ehd->teh", x, self.w3)
        found = torch.einsum("teh,edh,te->td", inner, self.w2, share)
        return found.reshape(hidden.shape)


class MixtralLayer(LlamaLayer):
    def __init__(self):
        super().__init__()
        self.experts = Experts()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = super().forward(x, cos, sin, mask)
        return x + self.experts(self.norm2(x))


class Mixtral(DenseLlama):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([MixtralLayer(), MixtralLayer()])


class Whisper(nn.Module):
    """An encoder of a spectrogram, and a decoder that attends it."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(8, 16, 3, padding=1)
        self.conv2 = nn.Conv1d(16, 16, 3, stride=2, padding=1)
        places = torch.arange(8)[:, None] * torch.exp(torch.arange(8) * -math.log(1e4) / 7)[None]
        self.register_buffer("places", torch.cat([places.sin(), places.cos()], 1))
        self.encoder = nn.TransformerEncoderLayer(16, 2, 32, 0.0, F.gelu, batch_first=True)
        self.embed, self.learned = nn.Embedding(40, 16), nn.Parameter(torch.randn(12, 16))
        self.decoder = nn.TransformerDecoderLayer(16, 2, 32, 0.0, F.gelu, batch_first=True)
        self.norm = nn.LayerNorm(16)

    def forward(self, features: Tensor, ids: Tensor) -> Tensor:
        x = F.gelu(self.conv2(F.gelu(self.conv1(features)))).permute(0, 2, 1) + self.places
        heard = self.encoder(x)
        tokens = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(tokens)
        y = self.embed(ids) + self.learned[:tokens]
        y = self.decoder(y, heard, tgt_mask=mask, tgt_is_causal=True)
        return self.norm(y) @ self.embed.weight.T


class Mamba(nn.Module):
    """A selective scan, one token after another, as transformers writes it."""

    def __init__(self, size: int = 8, inner: int = 16, states: int = 4):
        super().__init__()
        self.inner, self.states = inner, states
        self.embed, self.norm = nn.Embedding(30, size), RMSNorm(size)
        self.in_proj = nn.Linear(size, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, padding=3, groups=inner)
        self.x_proj = nn.Linear(inner, 2 + 2 * states, bias=False)
        self.dt_proj, self.out_proj = nn.Linear(2, inner), nn.Linear(inner, size, bias=False)
        rates = torch.arange(1, states + 1, dtype=torch.float32)
        self.rates = nn.Parameter(torch.log(rates.expand(inner, -1)).contiguous())
        self.skip = nn.Parameter(torch.ones(inner))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        tokens = ids.shape[1]
        hidden, gate = self.in_proj(self.norm(x)).transpose(1, 2).chunk(2, dim=1)
        hidden = F.silu(self.conv(hidden)[..., :tokens])
        parts = self.x_proj(hidden.transpose(1, 2))
        step, b, c = torch.split(parts, [2, self.states, self.states], dim=-1)
        step = F.softplus(self.dt_proj(step)).transpose(1, 2)
        decay = torch.exp(-torch.exp(self.rates)[None, :, None, :] * step[:, :, :, None])
        given = step[:, :, :, None] * b[:, None, :, :] * hidden[:, :, :, None]
        state, found = torch.zeros(x.shape[0], self.inner, self.states), []
        for i in range(tokens):
            state = decay[:, :, i] * state + given[:, :, i]
            found.append(torch.matmul(state, c[:, i].unsqueeze(-1))[:, :, 0])
        y = torch.stack(found, dim=-1) + hidden * self.skip[None, :, None]
        return x + self.out_proj((y * F.silu(gate)).transpose(1, 2))


class TimedBlock(nn.Module):
    """A residual block of a diffusion model."""

    def __init__(self, before: int, after: int):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, before), nn.GroupNorm(4, after)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(16, after)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class CrossAttention(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.norm = nn.GroupNorm(4, size)
        self.attention = nn.MultiheadAttention(size, 2, kdim=8, vdim=8, batch_first=True)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        b, c, h, w = x.shape
        y = self.norm(x).view(b, c, h * w).transpose(1, 2)
        y, _ = self.attention(y, text, text, need_weights=False)
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class DiffusionUNet(nn.Module):
    """A UNet that knows the time and attends to a text."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16))
        self.begin, self.end = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)
        self.down, self.middle = TimedBlock(8, 8), TimedBlock(8, 16)
        self.shrink, self.attend = nn.Conv2d(8, 8, 3, 2, 1), CrossAttention(16)
        self.grow, self.up = nn.Conv2d(16, 16, 3, padding=1), TimedBlock(24, 8)
        self.norm = nn.GroupNorm(4, 8)

    def forward(self, x: Tensor, step: Tensor, text: Tensor) -> Tensor:
        rates = torch.exp(-math.log(1e4) * torch.arange(8, dtype=torch.float32) / 8)
        angles = step[:, None].float() * rates[None]
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1))
        kept = self.down(self.begin(x), time)
        y = self.attend(self.middle(self.shrink(kept), time), text)
        y = self.grow(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        y = self.up(torch.cat([y, kept], 1), time)
        return self.end(F.silu(self.norm(y)))


def spectrogram() -> tuple[Tensor, ...]:
    return torch.randn(1, 8, 16), torch.randint(0, 40, (1, 5))


def noise() -> tuple[Tensor, ...]:
    return torch.randn(1, 4, 8, 8), torch.tensor([7]), torch.randn(1, 3, 8)


ARCHITECTURES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "ResNet": (ResNet, images(2, size=32)),
    "ConvNeXt": (ConvNeXt, images()),
    "ViT": (ViT, images(2)),
    "Swin": (Swin, images()),
    "BERT": (Bert, sentences),
    "GPT-2": (Gpt, words(50, 2, 7)),
    "Llama": (DenseLlama, words(50, 1, 6)),
    "Mixtral (mixture of experts)": (Mixtral, words(50, 1, 6)),
    "Whisper (encoder, decoder)": (Whisper, spectrogram),
    "Mamba (selective scan)": (Mamba, words(30, 1, 6)),
    "UNet of diffusion": (DiffusionUNet, noise),
}
"""The models, each with what makes its inputs."""
