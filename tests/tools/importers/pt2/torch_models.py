"""Small modules of the shapes that people bring from torchvision, timm and transformers."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._higher_order_ops import while_loop


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.down = (
            nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
            if stride != 1
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += self.down(x)
        return F.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        self.layer1 = nn.Sequential(Residual(8, 8), Residual(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.flatten(self.pool(self.layer1(self.stem(x))), 1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, channels // 4, 1)
        self.fc2 = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.fc2(F.silu(self.fc1(self.pool(x)))).sigmoid()


class InvertedResidual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int, act: type[nn.Module], *, se: bool):
        super().__init__()
        wide = inner * 4
        layers: list[nn.Module] = [
            nn.Conv2d(inner, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            act(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            act(),
        ]
        if se:
            layers.append(SqueezeExcite(wide))
        layers += [nn.Conv2d(wide, outer, 1, bias=False), nn.BatchNorm2d(outer)]
        self.layers = nn.Sequential(*layers)
        self.skips = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.skips else self.layers(x)


def mobile(act: type[nn.Module], *, se: bool) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        act(),
        InvertedResidual(8, 8, 1, act, se=se),
        InvertedResidual(8, 12, 2, act, se=se),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(12, 10),
    )


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.dw = nn.Conv2d(size, size, 7, padding=3, groups=size)
        self.norm = nn.LayerNorm(size, eps=1e-6)
        self.fc1, self.fc2 = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.gamma = nn.Parameter(torch.full((size,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.dw(x).permute(0, 2, 3, 1))
        y = self.gamma * self.fc2(F.gelu(self.fc1(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 4, 4), LayerNorm2d(8, eps=1e-6))
        self.blocks = nn.Sequential(ConvNeXtBlock(8), ConvNeXtBlock(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean([-2, -1]))


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(8 + 4 * i), nn.ReLU(), nn.Conv2d(8 + 4 * i, 4, 3, padding=1)
            )
            for i in range(3)
        )
        self.trans = nn.Sequential(nn.BatchNorm2d(20), nn.Conv2d(20, 10, 1), nn.AvgPool2d(2))
        self.fc = nn.Linear(10, 10)

    def forward(self, x: Tensor) -> Tensor:
        features = [self.stem(x)]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        y = self.trans(torch.cat(features, dim=1))
        return self.fc(F.adaptive_avg_pool2d(F.relu(y), (1, 1)).flatten(1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up1 = nn.ConvTranspose2d(16, 8, 2, 2)
        self.conv = nn.Conv2d(16, 8, 3, padding=1)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = F.relu(self.down1(x))
        b = F.relu(self.down2(F.max_pool2d(a, 2)))
        up = self.up1(b)
        more = F.interpolate(b[:, :8], scale_factor=2.0, mode="bilinear", align_corners=False)
        dy, dx = a.shape[2] - up.shape[2], a.shape[3] - up.shape[3]
        up = F.pad(up, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.out(F.relu(self.conv(torch.cat([a, up + more], dim=1))))


def vgg() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(True),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(True),
        nn.MaxPool2d(2, 2, ceil_mode=True),
        nn.AdaptiveAvgPool2d((3, 3)),
        nn.Flatten(),
        nn.Linear(144, 32),
        nn.ReLU(True),
        nn.Dropout(),
        nn.Linear(32, 10),
        nn.LogSoftmax(dim=1),
    )


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 1)
        self.b = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 6, (1, 7), padding=(0, 3)))
        self.c = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 6, (5, 1), padding="same"))
        self.bn = nn.BatchNorm2d(16, eps=0.001)
        self.fc = nn.Linear(19, 10)

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
        y = F.relu(self.bn(torch.cat([self.a(x), self.b(x), self.c(x)], 1)), inplace=True)
        y = torch.cat([y, pooled], 1)
        return self.fc(F.dropout(y.amax((2, 3)), training=self.training))


class Attention(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attn = Attention(size, heads)
        self.mlp = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.cls = nn.Parameter(torch.randn(1, 1, 16))
        self.pos = nn.Parameter(torch.randn(1, 17, 16))
        self.blocks = nn.Sequential(Block(16, 2), Block(16, 2))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.cls.expand(y.shape[0], -1, -1), y], dim=1) + self.pos
        return self.head(self.norm(self.blocks(y))[:, 0])


class WindowAttention(nn.Module):
    """A block of Swin: windows, shifted by half a window, with relative positions."""

    def __init__(self, size: int = 16, window: int = 4, shift: int = 2):
        super().__init__()
        self.window, self.shift = window, shift
        self.norm, self.qkv = nn.LayerNorm(size), nn.Linear(size, 3 * size)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, 2))
        axes = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij"))
        coordinates = torch.flatten(axes, 1)
        relative = (coordinates[:, :, None] - coordinates[:, None]).permute(1, 2, 0) + window - 1
        index = relative[..., 0] * (2 * window - 1) + relative[..., 1]
        self.register_buffer("index", index)
        mask = torch.zeros(4, 16, 16)
        mask[1, :8, 8:] = -100.0
        self.register_buffer("mask", mask, persistent=False)
        self.proj = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        m = self.window
        y = torch.roll(self.norm(x), shifts=(-self.shift, -self.shift), dims=(1, 2))
        y = y.view(b, h // m, m, w // m, m, c).permute(0, 1, 3, 2, 4, 5)
        y = y.contiguous().view(-1, m * m, c)
        qkv = self.qkv(y).reshape(y.shape[0], m * m, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = (q * (c // 2) ** -0.5) @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(m * m, m * m, -1).permute(2, 0, 1)
        scores = scores + bias.contiguous().unsqueeze(0)
        count = self.mask.shape[0]
        scores = scores.view(b, count, 2, m * m, m * m) + self.mask.unsqueeze(1).unsqueeze(0)
        weights = scores.view(-1, 2, m * m, m * m).softmax(dim=-1)
        y = self.proj((weights @ v).transpose(1, 2).reshape(-1, m * m, c))
        y = y.view(b, h // m, w // m, m, m, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return x + torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 12, 4, 4)
        self.norm1, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)
        self.tokens = nn.Sequential(nn.Linear(16, 8), nn.GELU("tanh"), nn.Linear(8, 16))
        self.channels = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))

    def forward(self, x: Tensor) -> Tensor:
        y = self.patch(x).flatten(2).mT
        y = y + self.tokens(self.norm1(y).transpose(1, 2)).transpose(1, 2)
        return (y + self.channels(self.norm2(y))).mean(dim=1)


class BertLayer(nn.Module):
    def __init__(self, size: int = 16, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.dense, self.up = nn.Linear(size, size), nn.Linear(size, 2 * size)
        self.down = nn.Linear(2 * size, size)
        self.norm1, self.norm2 = nn.LayerNorm(size, 1e-12), nn.LayerNorm(size, 1e-12)

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (self.split(each(x)) for each in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) + mask
        y = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        x = self.norm1(x + self.dense(y.view(*y.shape[:2], -1)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, layers: int = 2):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16, padding_idx=0), nn.Embedding(32, 16)
        self.types, self.norm = nn.Embedding(2, 16), nn.LayerNorm(16, 1e-12)
        self.layers = nn.ModuleList(BertLayer() for _ in range(layers))
        self.pooler = nn.Linear(16, 16)
        self.register_buffer("position_ids", torch.arange(32).expand((1, -1)), persistent=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        n = input_ids.size(1)
        types = torch.zeros_like(input_ids)
        x = self.words(input_ids) + self.types(types) + self.places(self.position_ids[:, :n])
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return {"last_hidden_state": x, "pooler_output": torch.tanh(self.pooler(x[:, 0]))}


class GptBlock(nn.Module):
    def __init__(self, size: int = 16, heads: int = 2, length: int = 32):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.c_attn, self.c_proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.fc, self.out = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        causal = torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        self.register_buffer("bias", causal)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.size()
        q, k, v = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (e.view(b, t, self.heads, c // self.heads).transpose(1, 2) for e in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        y = (F.softmax(att, dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        x = x + self.c_proj(y)
        h = self.fc(self.ln_2(x))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * h.pow(3.0))))
        return x + self.out(h)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.h = nn.ModuleList([GptBlock(), GptBlock()])
        self.ln_f, self.lm_head = nn.LayerNorm(16), nn.Linear(16, 50, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx: Tensor) -> Tensor:
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))[:, [-1], :]


class RMSNorm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size) + 0.1 * torch.randn(size))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        return self.weight * (wide * torch.rsqrt(variance + 1e-6)).to(x.dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class LlamaLayer(nn.Module):
    def __init__(self, size: int = 16, heads: int = 4, shared: int = 2):
        super().__init__()
        self.heads, self.shared, self.each = heads, shared, size // heads
        self.q_proj = nn.Linear(size, size, bias=False)
        self.k_proj = nn.Linear(size, shared * self.each, bias=False)
        self.v_proj = nn.Linear(size, shared * self.each, bias=False)
        self.o_proj = nn.Linear(size, size, bias=False)
        self.gate, self.up = (nn.Linear(size, 24, bias=False) for _ in range(2))
        self.down = nn.Linear(24, size, bias=False)
        self.norm1, self.norm2 = RMSNorm(size), RMSNorm(size)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        b, t, _ = x.shape
        y = self.norm1(x)
        q = self.q_proj(y).view(b, t, -1, self.each).transpose(1, 2)
        k = self.k_proj(y).view(b, t, -1, self.each).transpose(1, 2)
        v = self.v_proj(y).view(b, t, -1, self.each).transpose(1, 2)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        share = self.heads // self.shared
        k = k[:, :, None].expand(b, self.shared, share, t, self.each).reshape(b, -1, t, self.each)
        v = v[:, :, None].expand(b, self.shared, share, t, self.each).reshape(b, -1, t, self.each)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o_proj(y.transpose(1, 2).reshape(b, t, -1).contiguous())
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.layers = nn.ModuleList([LlamaLayer(), LlamaLayer()])
        self.norm, self.head = RMSNorm(16), nn.Linear(16, 50, bias=False)
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, 4, 2) / 4)))

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embed(input_ids)
        t = x.shape[1]
        places = torch.arange(t, device=x.device).unsqueeze(0)
        freq = self.inv_freq[None, :, None].float().expand(1, -1, 1)
        freqs = (freq @ places[:, None, :].float()).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos()[:, None], emb.sin()[:, None]
        mask = torch.full((t, t), torch.finfo(x.dtype).min).triu(diagonal=1)[None, None]
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.head(self.norm(x))


class T5(nn.Module):
    """Attention with the buckets of relative positions of T5."""

    def __init__(self, size: int = 16, heads: int = 2):
        super().__init__()
        self.heads, self.embed = heads, nn.Embedding(40, size)
        self.q, self.k, self.v, self.o = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.bias, self.norm = nn.Embedding(8, heads), RMSNorm(size)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.norm(self.embed(input_ids))
        b, t, c = x.shape
        relative = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        bucket = (relative > 0).to(torch.long) * 4
        distance = torch.abs(relative)
        far = 2 + (torch.log(distance.float() / 2) / math.log(8 / 2) * 2).to(torch.long)
        far = torch.min(far, torch.full_like(far, 3))
        bucket = bucket + torch.where(distance < 2, distance, far)
        bias = self.bias(bucket).permute([2, 0, 1]).unsqueeze(0)
        q, k, v = (
            e(x).view(b, -1, self.heads, c // self.heads).transpose(1, 2)
            for e in (self.q, self.k, self.v)
        )
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += bias
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        return x + self.o(torch.matmul(weights, v).transpose(1, 2).contiguous().view(b, -1, c))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.lstm = nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(12, 5)

    def forward(self, words: Tensor) -> Tensor:
        y, (h, c) = self.lstm(self.embed(words))
        return self.fc(y) + h.sum() + c.mean()


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.rnn, self.fc = nn.GRU(3, 6, 1), nn.RNN(6, 4), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.gru(x.transpose(0, 1))
        _, last = self.rnn(y)
        return self.fc(last.squeeze(0))


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(8, 16),
        nn.ReLU(),
        nn.BatchNorm1d(16),
        nn.Linear(16, 8),
        nn.Tanh(),
        nn.Linear(8, 3),
    )


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 6, mode="mean")
        self.fc = nn.Linear(6, 4)

    def forward(self, words: Tensor) -> Tensor:
        return F.softmax(self.fc(self.bag(words)), dim=1)


class Temporal(nn.Module):
    """A residual block of causal, dilated convolutions."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(4, 8, 3, padding=2, dilation=1)
        self.conv2 = nn.Conv1d(8, 8, 3, padding=4, dilation=2)
        self.skip, self.fc = nn.Conv1d(4, 8, 1), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = F.elu(self.conv1(x)[:, :, :-2].contiguous())
        y = F.leaky_relu(self.conv2(y)[..., :-4], 0.1)
        return self.fc(F.relu(y + self.skip(x))[:, :, -1])


def decoder() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 32),
        nn.Unflatten(1, (8, 2, 2)),
        nn.ConvTranspose2d(8, 4, 4, 2, 1),
        nn.BatchNorm2d(4),
        nn.LeakyReLU(0.2),
        nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1),
        nn.Sigmoid(),
    )


class DiffusionBlock(nn.Module):
    def __init__(self, size: int = 8):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, size), nn.GroupNorm(2, size, affine=False)
        self.conv1, self.conv2 = (nn.Conv2d(size, size, 3, padding=1) for _ in range(2))
        self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, size * 2))
        self.down = nn.Conv2d(size, size, 3, 2, 1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        freq = torch.exp(-math.log(10000.0) * torch.arange(0, 8, dtype=torch.float32) / 8)
        angle = t[:, None].float() * freq[None]
        emb = self.time(torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1))
        scale, shift = emb[:, :, None, None].chunk(2, dim=1)
        y = self.conv1(F.silu(self.norm1(x)))
        y = self.norm2(y) * (scale + 1) + shift
        y = x + self.conv2(F.silu(y))
        return F.interpolate(self.down(y), scale_factor=2.0, mode="nearest")


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.attn(x, x, x, need_weights=True)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.encoder(x, mask=mask, is_causal=True)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        self.decoder = nn.TransformerDecoder(layer, 1)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        return self.decoder(x, memory)


def super_resolution() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2),
        nn.PReLU(8),
        nn.Conv2d(8, 9, 3, padding=1),
        nn.PixelShuffle(3),
    )


class Counter(nn.Module):
    """A module that counts its calls, and keeps a mean of what it saw."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)
        self.seen.mul_(0.5)
        self.seen[1:] += x[0, 1:]
        return x * self.count + self.seen


class Cache(nn.Module):
    """A decoder's cache, written at a position that is an input."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(1, 8, 4))

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        self.cache.index_copy_(1, place, self.fc(x))
        keep = torch.arange(8) <= place
        scores = (self.cache @ x.transpose(1, 2)).squeeze(-1)
        weights = scores.masked_fill(~keep, float("-inf")).softmax(-1)
        return weights @ self.cache[0]


class Step(nn.Module):
    """A step of a decoder, with a cache of any length that is an input and an output."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(32, 8)
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, tokens = ids.shape
        past = keys.shape[2]
        x = self.words(ids) + self.places(torch.arange(past, past + tokens))
        parts = self.qkv(self.norm(x)).view(batch, tokens, 3, 2, 4).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        mask = torch.ones(tokens, past + tokens, dtype=torch.bool).tril(past)
        y = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return x + self.out(y.transpose(1, 2).reshape(batch, tokens, -1)), keys, values


class Control(nn.Module):
    """A branch and a loop, which both depend on values."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        def goes_on(i: Tensor, y: Tensor) -> Tensor:
            return i < count

        def body(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, self.fc(y).tanh()

        branch = torch.cond(x.sum() > 0, lambda x: self.fc(x), lambda x: x - count, (x,))
        number, last = while_loop(goes_on, body, (torch.zeros((), dtype=torch.int64), x))
        return branch, number, last


class Detector(nn.Module):
    """Boxes from a grid: strides, exponentials, a table of scores, and the best ones."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 14, 3, 2, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.conv(x)
        b, _, h, w = y.shape
        y = y.view(b, 2, 7, h, w).permute(0, 1, 3, 4, 2).contiguous()
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((gx, gy), 2).view(1, 1, h, w, 2).float()
        xy = (y[..., 0:2].sigmoid() * 2.0 - 0.5 + grid) * 2
        wh = torch.exp(y[..., 2:4].clamp(max=4.0))
        scores = y[..., 4:].sigmoid().flatten(1, 3).max(dim=-1)
        best = torch.topk(scores.values, 5, dim=1)
        boxes = torch.cat((xy - wh / 2, xy + wh / 2), -1).flatten(1, 3)
        chosen = torch.gather(boxes, 1, best.indices.unsqueeze(-1).expand(-1, -1, 4))
        return chosen, best.values, scores.indices.gather(1, best.indices)


def images(n: int = 1, c: int = 3, size: int = 16) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(n, c, size, size),)


def words(most: int, *shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randint(1, most, shape),)


def of(*shapes: tuple[int, ...]) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: tuple(torch.randn(shape) for shape in shapes)


def sentences() -> tuple[Tensor, ...]:
    return torch.randint(1, 50, (2, 6)), torch.tensor([[1] * 6, [1] * 4 + [0] * 2])


def made(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A module in inference, with weights and statistics that matter, and inputs for it."""
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    return with_statistics(make().eval()), inputs()


def with_statistics(module: nn.Module) -> nn.Module:
    """The module, in which running statistics are those of some data."""
    with torch.no_grad():
        for each in module.modules():
            if isinstance(each, nn.modules.batchnorm._BatchNorm):
                each.running_mean.normal_(0.0, 0.5)
                each.running_var.uniform_(0.5, 2.0)
    return module


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "mlp": (mlp, of((4, 8))),
    "resnet": (ResNet, images(2, size=32)),
    "mobilenet": (lambda: mobile(nn.ReLU6, se=False), images()),
    "mobilenet v3": (lambda: mobile(nn.Hardswish, se=True), images()),
    "efficientnet": (lambda: mobile(nn.SiLU, se=True), images()),
    "convnext": (ConvNeXt, images()),
    "densenet": (DenseNet, images()),
    "unet": (UNet, images()),
    "vgg": (vgg, images(size=26)),
    "inception": (Inception, images(size=8)),
    "vit": (ViT, images(2)),
    "swin": (WindowAttention, of((1, 8, 8, 16))),
    "mixer": (Mixer, images()),
    "bert": (
        Bert,
        lambda: (torch.randint(1, 50, (2, 6)), torch.tensor([[1] * 6, [1] * 4 + [0] * 2])),
    ),
    "gpt": (Gpt, words(50, 2, 7)),
    "llama": (Llama, words(50, 1, 6)),
    "t5": (T5, words(40, 2, 7)),
    "lstm tagger": (Tagger, words(30, 2, 5)),
    "gru forecaster": (Forecaster, of((2, 5, 3))),
    "embedding bag": (Bag, words(20, 3, 4)),
    "temporal convolution": (Temporal, of((2, 4, 12))),
    "generator": (decoder, of((2, 6))),
    "diffusion block": (DiffusionBlock, lambda: (torch.randn(2, 8, 8, 8), torch.tensor([3, 500]))),
    "multi-head attention": (SelfAttention, of((2, 5, 16))),
    "transformer encoder": (Encoder, of((2, 5, 16))),
    "transformer decoder": (Decoder, of((2, 4, 16), (2, 6, 16))),
    "super resolution": (super_resolution, images(1, 1, 8)),
    "detector": (Detector, images(2, size=8)),
    "counter": (Counter, of((2, 3))),
    "control": (Control, lambda: (torch.randn(3, 4), torch.tensor(3))),
    "cache": (Cache, lambda: (torch.randn(1, 1, 4), torch.tensor([3]))),
}
"""The modules, each with what makes its inputs."""
