"""Small modules of one operator of PyTorch each, with the inputs that they are tried on."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

torch.manual_seed(1)
X = torch.randn(2, 3, 4)
Y = torch.randn(2, 3, 4)
P = torch.rand(2, 3, 4) + 0.2
K = torch.randint(-5, 6, (2, 3, 4))
J = torch.randint(1, 5, (2, 3, 4))
B = X > 0
V = torch.randn(4)
M, N = torch.randn(3, 4), torch.randn(4, 5)
IMAGE = torch.randn(1, 4, 6, 6)
W = torch.tensor([2, 0, 1])

Case = tuple[Callable[..., object], tuple[Tensor, ...]]


def floats() -> dict[str, Case]:
    """Functions of floats, each on numbers of its domain."""
    inside = ("acos", "asin", "atanh")
    positive = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal")
    others = (
        *("abs", "neg", "ceil", "floor", "round", "trunc", "frac", "sign", "exp", "exp2", "expm1"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan", "erf", "erfc", "sigmoid"),
        *("square", "isnan", "isinf", "isfinite", "logical_not", "deg2rad", "nan_to_num"),
    )
    found: dict[str, Case] = {name: (getattr(torch, name), (X,)) for name in others}
    found |= {name: (getattr(torch, name), (X.clamp(-0.9, 0.9),)) for name in inside}
    found |= {name: (getattr(torch, name), (P,)) for name in positive}
    found["acosh"] = (torch.acosh, (P + 1,))
    found["logit"] = (lambda x: torch.logit(x, 1e-3), (torch.rand(5),))
    return found


def activations() -> dict[str, Case]:
    names = (
        *("relu", "relu6", "gelu", "silu", "mish", "elu", "selu", "celu", "softplus", "softsign"),
        *("hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "logsigmoid", "tanhshrink"),
        *("softshrink", "hardshrink"),
    )
    found: dict[str, Case] = {f"F.{name}": (getattr(F, name), (3 * X,)) for name in names}
    found["F.glu"] = (lambda x: F.glu(x, 2), (X,))
    found["F.threshold"] = (lambda x: F.threshold(x, 0.1, 20.0), (X,))
    found["F.prelu"] = (F.prelu, (X, torch.rand(3)))
    found["F.elu 2"] = (lambda x: F.elu(x, 2.0), (X,))
    found["F.softplus 2"] = (lambda x: F.softplus(x, 2.0, 1.0), (X,))
    found["F.gelu tanh"] = (lambda x: F.gelu(x, approximate="tanh"), (X,))
    return found


def pairs() -> dict[str, Case]:
    names = ("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "atan2", "hypot")
    found: dict[str, Case] = {name: (getattr(torch, name), (X, Y)) for name in names}
    found |= {n: (getattr(torch, n), (K, J)) for n in ("eq", "ne", "lt", "le", "gt", "ge")}
    found |= {
        f"{n} ints": (getattr(torch, n), (K, J)) for n in ("add", "mul", "div", "floor_divide")
    }
    found |= {f"{n} ints": (getattr(torch, n), (K, J)) for n in ("remainder", "fmod", "maximum")}
    found |= {n: (getattr(torch, n), (X, Y)) for n in ("remainder", "fmod", "floor_divide")}
    logical = ("logical_and", "logical_or", "logical_xor")
    found |= {n: (getattr(torch, n), (B, Y > 0)) for n in logical}
    bits = ("bitwise_and", "bitwise_or", "bitwise_xor")
    found |= {n: (getattr(torch, n), (K, J)) for n in bits}
    found |= {f"{n} truths": (getattr(torch, n), (B, Y > 0)) for n in bits}
    found["bitwise_not"] = (torch.bitwise_not, (K,))
    found["shifts"] = (lambda a, b: (a << b, a >> b), (J, J))
    found["int + float"] = (lambda a, b: a + b, (K, X))
    found["int * 0.5"] = (lambda a: a * 0.5, (K,))
    found["2 - x"] = (lambda a: 2 - a, (X,))
    found["add alpha"] = (lambda a, b: torch.add(a, b, alpha=3), (X, Y))
    found["rsub alpha"] = (lambda a, b: torch.rsub(a, b, alpha=2), (X, Y))
    found["div floor"] = (lambda a, b: torch.div(a, b, rounding_mode="floor"), (K, J))
    found["div trunc"] = (lambda a, b: torch.div(a, b, rounding_mode="trunc"), (K, J))
    found["div trunc floats"] = (lambda a: torch.div(a, 0.3, rounding_mode="trunc"), (X,))
    found["pow"] = (lambda a, b: (a**2, a**b, 2**b, a**-1, a**0.5, a**3), (P, X))
    found["pow ints"] = (lambda a: a**2, (K,))
    found["lerp"] = (lambda a, b: (torch.lerp(a, b, 0.3), torch.lerp(a, b, a)), (X, Y))
    found["addcmul"] = (lambda a, b: torch.addcmul(a, b, b, value=2), (X, Y))
    found["addcdiv"] = (lambda a, b: torch.addcdiv(a, b, a, value=2), (P, Y))
    found["clamp"] = (lambda a: (a.clamp(-0.5, 0.5), a.clamp(min=0), a.clamp(max=0.1)), (X,))
    found["clamp tensors"] = (lambda a, b: torch.clamp(a, min=b), (X, Y))
    found["clamp ints"] = (lambda a: a.clamp(-1, 2), (K,))
    found["where"] = (lambda c, a, b: (torch.where(c, a, b), torch.where(c, a, 0.0)), (B, X, Y))
    found["masked_fill"] = (lambda a, m: a.masked_fill(m, -1.0), (X, B))
    found["xlogy"] = (torch.xlogy, (X, P))
    found["to"] = (lambda a: (a.to(torch.int32), a.long(), a.bool(), a.half().float()), (3 * X,))
    found["float16"] = (lambda a: (a.half() * 2 + 1).float(), (X,))
    found["bfloat16"] = (lambda a: (a.bfloat16() + 1).sum().float(), (X,))
    found["compare floats"] = (lambda a: ((a > 0) & (a <= 1)).float(), (X,))
    return found


def reductions() -> dict[str, Case]:
    found: dict[str, Case] = {
        "sum": (lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True)), (X,)),
        "sum ints": (lambda x, b: (x.sum(), b.sum(-1)), (K, B)),
        "mean": (lambda x: (x.mean(), x.mean(-1), x.mean((0, 1), keepdim=True)), (X,)),
        "prod": (lambda x: (x.prod(), x.prod(1)), (X,)),
        "amax": (lambda x: (x.amax(), x.amin((1, 2)), x.max(), x.min()), (X,)),
        "max": (lambda x: (*x.max(1), *x.min(-1, keepdim=True)), (X,)),
        "argmax": (lambda x: (x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True)), (X,)),
        "any": (lambda b: (b.any(), b.all(), b.any(1), b.all(-1, keepdim=True)), (B,)),
        "var": (lambda x: (x.var(), x.var(1, unbiased=False), x.std(-1), x.std()), (X,)),
        "var_mean": (lambda x: (*torch.var_mean(x, 1), *torch.std_mean(x, 2)), (X,)),
        "norm": (lambda x: (x.norm(), x.norm(dim=1), x.norm(1, dim=-1), x.norm(3, 0)), (X,)),
        "vector_norm": (lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1), (X,)),
        "normalize": (lambda x: F.normalize(x, dim=1), (X,)),
        "logsumexp": (lambda x: torch.logsumexp(x, 1), (X,)),
        "cumsum": (lambda x, i: (x.cumsum(1), i.cumsum(-1), x.cumprod(2)), (X, K)),
        "topk": (lambda x: (*x.topk(2, 1), *x.topk(1, -1, largest=False)), (X,)),
        "sort": (lambda x: (*x.sort(-1), *x.sort(1, descending=True), x.argsort(2)), (X,)),
        "mse": (lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b), F.smooth_l1_loss(a, b)), (X, Y)),
        "bce": (lambda a, b: F.binary_cross_entropy_with_logits(a, b), (X, torch.rand(2, 3, 4))),
        "huber": (lambda a, b: F.huber_loss(a, b, delta=0.5), (X, Y)),
        "cross entropy": (F.cross_entropy, (M, torch.tensor([1, 0, 3]))),
        "nll": (lambda a, t: F.nll_loss(F.log_softmax(a, 1), t), (M, torch.tensor([1, 0, 3]))),
        "softmax": (lambda x: (x.softmax(1), x.log_softmax(-1), F.softmin(x, 0)), (X,)),
    }
    return found


def products() -> dict[str, Case]:
    return {
        "mm": (torch.mm, (M, N)),
        "mv": (torch.mv, (M, V)),
        "dot": (lambda a: torch.dot(a, a), (V,)),
        "bmm": (lambda a, b: torch.bmm(a, b.mT), (X, Y)),
        "matmul": (lambda a, b, v: (a @ b, a @ v, v @ b), (X, N, V)),
        "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (torch.randn(5), M, N)),
        "baddbmm": (lambda a, b: torch.baddbmm(torch.ones(3, 3), a, b.mT, alpha=0.5), (X, Y)),
        "outer": (lambda a: torch.outer(a, a), (V,)),
        "einsum": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), (X, Y)),
        "linear": (
            lambda x, w, b: (F.linear(x, w, b), F.linear(x[0, 0], w)),
            (X, N.T, torch.ones(5)),
        ),
        "cosine": (lambda a, b: F.cosine_similarity(a, b, dim=1), (X, Y)),
        "conv1d": (lambda x, w: F.conv1d(x, w, padding=1, stride=2), (X, torch.randn(5, 3, 3))),
        "conv2d": (
            lambda x, w: F.conv2d(x, w, padding="same", dilation=2),
            (IMAGE, torch.randn(2, 4, 3, 3)),
        ),
        "conv2d groups": (lambda x, w: F.conv2d(x, w, groups=2), (IMAGE, torch.randn(6, 2, 3, 2))),
        "conv3d": (
            lambda x, w: F.conv3d(x, w, padding=1),
            (torch.randn(1, 2, 4, 4, 4), torch.randn(3, 2, 3, 3, 3)),
        ),
        "conv unbatched": (lambda x, w: F.conv2d(x, w), (IMAGE[0], torch.randn(2, 4, 3, 3))),
        "conv_transpose1d": (
            lambda x, w: F.conv_transpose1d(x, w, stride=2),
            (X, torch.randn(3, 2, 3)),
        ),
        "conv_transpose2d": (
            lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1, groups=2),
            (IMAGE, torch.randn(4, 3, 3, 3)),
        ),
        "attention": (
            lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True),
            (torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)),
        ),
        "attention mask": (
            lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m, scale=0.3),
            (torch.randn(2, 2, 3, 4), torch.tensor([[True, False, True]] * 3)),
        ),
        "attention groups": (
            lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
            (torch.randn(2, 4, 3, 4), torch.randn(2, 2, 5, 4)),
        ),
        "attention three axes": (lambda q: F.scaled_dot_product_attention(q, q, q), (X,)),
    }


def matrices() -> dict[str, Case]:
    lower = torch.tril(torch.randn(2, 9, 9)) / 9 + 2 * torch.eye(9)
    positive = lower @ lower.mT
    right = torch.randn(9, 3)
    solve = torch.linalg.solve_triangular
    return {
        "cholesky": (lambda a: torch.linalg.cholesky_ex(a)[0], (positive,)),
        "cholesky upper": (lambda a: torch.linalg.cholesky_ex(a, upper=True)[0], (positive,)),
        "cholesky info": (
            lambda a: torch.linalg.cholesky_ex(a)[1],
            (positive - torch.diag(torch.tensor([0.0, 0, 0, 0, 0, 0, 9, 0, 0])),),
        ),
        "solve_triangular": (lambda a, b: solve(a, b, upper=False), (lower, right)),
        "solve_triangular right": (
            lambda a, b: solve(a.mT, b.mT, upper=True, left=False, unitriangular=True),
            (lower, right),
        ),
        "triangular_solve": (
            lambda a, b: torch.triangular_solve(b, a, upper=False, transpose=True)[0],
            (lower, right),
        ),
        "cholesky_solve": (lambda a, b: torch.cholesky_solve(b, a), (lower, right)),
        "cholesky_solve upper": (
            lambda a, b: torch.cholesky_solve(b, a.mT, upper=True),
            (lower, right),
        ),
    }


def windows() -> dict[str, Case]:
    return {
        "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (IMAGE,)),
        "max_pool2d indices": (lambda x: F.max_pool2d(x, 2, return_indices=True), (IMAGE,)),
        "max_pool1d": (lambda x: F.max_pool1d(x, 2), (X,)),
        "avg_pool2d": (
            lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, count_include_pad=False)),
            (IMAGE,),
        ),
        "avg_pool1d": (lambda x: F.avg_pool1d(x, 2, 1), (X,)),
        "adaptive": (
            lambda x: (F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool2d(x, (4, None))),
            (IMAGE,),
        ),
        "adaptive max": (
            lambda x: (F.adaptive_max_pool2d(x, 3), F.adaptive_max_pool2d(x, 4)),
            (IMAGE,),
        ),
        "adaptive 1d": (lambda x: F.adaptive_avg_pool1d(x, 3), (X,)),
        "unfold": (lambda x: F.unfold(x, 3, padding=1, stride=2), (IMAGE,)),
        "fold": (lambda x: F.fold(x, (4, 4), 2, stride=2), (torch.randn(1, 8, 4),)),
        "Tensor.unfold": (lambda x: x.unfold(2, 3, 2), (IMAGE,)),
        "lp_pool": (lambda x: F.lp_pool2d(x.abs() + 0.1, 2.0, 2), (IMAGE,)),
        "batch norm": (
            lambda x, m, v: F.batch_norm(x, m, v),
            (X, torch.randn(3), torch.rand(3) + 0.1),
        ),
        "batch norm in training": (_learned, (X, torch.randn(3), torch.rand(3) + 0.1)),
        "instance norm": (F.instance_norm, (IMAGE,)),
        "layer norm": (lambda x: (F.layer_norm(x, (4,)), F.layer_norm(x, (3, 4))), (X,)),
        "group norm": (lambda x, w: F.group_norm(x, 2, w, w), (IMAGE, torch.rand(4))),
        "rms norm": (lambda x, w: (F.rms_norm(x, (4,), w), F.rms_norm(x, (4,), eps=1e-3)), (X, V)),
        "local response": (lambda x: F.local_response_norm(x, 3), (IMAGE,)),
        "nearest": (
            lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(9, 4))),
            (IMAGE,),
        ),
        "nearest exact": (lambda x: F.interpolate(x, size=(9, 4), mode="nearest-exact"), (IMAGE,)),
        "bilinear": (lambda x: F.interpolate(x, size=(9, 4), mode="bilinear"), (IMAGE,)),
        "bilinear corners": (
            lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=True),
            (IMAGE,),
        ),
        "bilinear factor": (
            lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
            (IMAGE,),
        ),
        "bicubic": (lambda x: F.interpolate(x, size=(9, 4), mode="bicubic"), (IMAGE,)),
        "linear 1d": (lambda x: F.interpolate(x, size=7, mode="linear"), (X,)),
        "grid_sample": (
            lambda x, g: F.grid_sample(x, g, align_corners=False),
            (IMAGE, torch.rand(1, 3, 3, 2) * 2 - 1),
        ),
        "affine_grid": (
            lambda t: F.affine_grid(t, [1, 1, 3, 4], align_corners=False),
            (torch.randn(1, 2, 3),),
        ),
    }


def movements() -> dict[str, Case]:
    return {
        "view": (
            lambda x: (x.view(6, -1), x.reshape(-1), x.flatten(1), x.unflatten(2, (2, -1))),
            (X,),
        ),
        "squeeze": (
            lambda x: (x[:1].squeeze(), x[:1].squeeze(0), x.unsqueeze(-1), x.squeeze(1)),
            (X,),
        ),
        "permute": (
            lambda x: (x.permute(2, 0, 1), x.transpose(0, -1), x.mT, x.movedim(0, 2)),
            (X,),
        ),
        "t": (lambda x: (x.t(), x.T, x.swapaxes(0, 1)), (M,)),
        "expand": (lambda x: (x[:, :1].expand(2, 5, 4), x.expand(3, -1, -1, -1)), (X,)),
        "repeat": (
            lambda x: (
                x.repeat(2, 1, 1),
                x.tile(2),
                x.repeat_interleave(2, 1),
                x.repeat(2, 1, 1, 3),
            ),
            (X,),
        ),
        "cat": (
            lambda a, b: (torch.cat([a, b], 1), torch.stack([a, b], -1), torch.hstack([a, b])),
            (X, Y),
        ),
        "split": (
            lambda x: (*x.split(3, 2), *x.split([1, 2], 1), *x.chunk(2, -1), *x.unbind(0)),
            (X,),
        ),
        "tensor_split": (lambda x: (*x.tensor_split(3, 2), *x.tensor_split([1], 2)), (X,)),
        "slice": (
            lambda x: (x[:, 1:], x[..., ::2], x[0], x[:, -1], x[:, :, 1:-1], x[None, 0]),
            (X,),
        ),
        "narrow": (lambda x: (x.narrow(2, 1, 2), x.select(1, 2)), (X,)),
        "flip": (
            lambda x: (x.flip(0), x.flip(1, 2), x.roll(1, 2), x.roll((1, -1), (0, 2)), x.roll(5)),
            (X,),
        ),
        "diff": (
            lambda x: (
                x.diff(),
                x.diff(2, 1),
                torch.diff(x, prepend=x[..., :1], append=x[..., :2]),
                (x > 0).diff(dim=0),
                x.diff(n=9),
            ),
            (X,),
        ),
        "rot90": (lambda x: (x.rot90(1, [1, 2]), x.rot90(2, [0, 1]), x.rot90(3, [0, 2])), (X,)),
        "pad": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 1), value=3.0)), (X,)),
        "pad reflect": (
            lambda x: (
                F.pad(x, (1, 2), mode="reflect"),
                F.pad(x, (1, 1), mode="replicate"),
                F.pad(x, (1, 1), mode="circular"),
            ),
            (X,),
        ),
        "pixel shuffle": (
            lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2)),
            (IMAGE,),
        ),
        "tril": (lambda x: (x.tril(), x.triu(1), x.tril(-1)), (M,)),
        "diagonal": (lambda x: (x.diagonal(), x.diagonal(1), x.diagonal(-1)), (M,)),
        "meshgrid": (lambda a: torch.meshgrid(a, a[:3], indexing="xy"), (V,)),
        "broadcast": (lambda a, b: torch.broadcast_tensors(a, b), (M, V)),
        "as_strided": (lambda x: x.as_strided((2, 3), (4, 1), 1), (M,)),
        "arange": (
            lambda x: (
                torch.arange(3),
                torch.arange(1, 6, 2) + x[0, 0, 0],
                torch.linspace(0, 1, 5),
            ),
            (X,),
        ),
        "zeros": (
            lambda x: (
                torch.zeros(2, 3),
                torch.full((2,), 7),
                torch.ones_like(x),
                x.new_full((2,), 3.0),
                torch.eye(3),
            ),
            (X,),
        ),
        "tri indices": (lambda x: (torch.tril_indices(3, 3), torch.triu_indices(3, 4, 1)), (X,)),
        "embedding": (lambda w, i: F.embedding(i, w), (M, W)),
        "bags": (
            lambda w, i: [
                F.embedding_bag(i, w, torch.tensor([0, 1, 1, 3]), mode=mode)
                for mode in ("sum", "mean", "max")
            ],
            (M, torch.tensor([2, 0, 1, 1, 2])),
        ),
        "index_select": (lambda x, i: x.index_select(1, i), (X, W)),
        "gather": (lambda x, i: (x.gather(1, i % 3), torch.take_along_dim(x, i % 4, 2)), (X, J)),
        "index": (lambda x, i: (x[i % 2], x[:, i], x[:, i, i], x[i % 2, :, i], x[..., i]), (X, W)),
        "index rows": (lambda x, i: x[i[:, None], i[None, :]], (torch.randn(3, 3), W)),
        "mask": (lambda x: (x[torch.tensor([True, False])], x * (x > 0)), (X,)),
        "index_put": (lambda x, i: x.index_put((i % 2, i), torch.ones(3, 4)), (X, W)),
        "index_put accumulate": (
            lambda x, i: x.index_put((i % 2,), torch.tensor(1.0), accumulate=True),
            (X, W),
        ),
        "write": (lambda x, i: _written(x, i), (X, W)),
        "scatter": (lambda x, i: (x.scatter(2, i % 4, 5.0), x.scatter_add(1, i % 3, x)), (X, J)),
        "scatter_reduce": (lambda x, i: x.scatter_reduce(1, i % 3, x, "amax"), (X, J)),
        "index_add": (lambda x, i: (x.index_add(1, i, x), x.index_copy(1, i, x * 2)), (X, W)),
        "one_hot": (lambda i: F.one_hot(i, 4), (W,)),
        "slice_scatter": (
            lambda x, y: (x.slice_scatter(y[:, :2], 1, 1, 3), x.select_scatter(y[:, 0], 1, 2)),
            (X, Y),
        ),
        "slice_scatter step": (lambda x, y: x.slice_scatter(y[..., :2], 2, 0, 4, 2), (X, Y)),
        "nonzero": (lambda x: torch.nonzero(x > 0), (X,)),
        "masked_select": (lambda x: x.masked_select(x > 0), (X,)),
    }


def _learned(x: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
    """A batch normalisation and the running statistics that it leaves."""
    mean, variance = mean.clone(), variance.clone()
    return F.batch_norm(x, mean, variance, training=True, momentum=0.3), mean, variance


def _written(x: Tensor, i: Tensor) -> Tensor:
    """Writes into views, as people write them."""
    y = x.clone()
    y[:, 0] = 1.0
    y[..., 1:3] += 2.0
    row = y[1]
    row.mul_(3.0)
    y.transpose(1, 2)[:, 0] = -1.0
    y[:, i] = y[:, i] * 2
    y[y > 3] = 0.0
    return y + row


OPERATORS: dict[str, Case] = {
    **floats(),
    **activations(),
    **pairs(),
    **reductions(),
    **products(),
    **matrices(),
    **windows(),
    **movements(),
}
"""The functions by name."""
