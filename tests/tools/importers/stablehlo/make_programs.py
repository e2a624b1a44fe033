"""Writes the programs in `programs`: StableHLO of the functions below, and what JAX computes.

Needs JAX and optax; the tests that read the files do not. Run it in this folder, with the names of
programs or for all of them: python make_programs.py [NAME]...

Each function is called with arrays of its own example, which a seed draws. `values.npz` holds, for
the program NAME, its inputs (NAME/in/0) and outputs (NAME/out/0) in the order of the text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.scipy.linalg import solve_triangular

from abele.tools import from_jax

FOLDER = Path(__file__).parent / "programs"
VALUES = FOLDER / "values.npz"

Example = Callable[[np.random.RandomState], tuple[Any, ...]]

PROGRAMS: dict[str, tuple[Callable[..., Any], Example]] = {}


def program(*shapes: Any, like: Example | None = None) -> Callable[[Any], Any]:
    """Register a function, with an example of normal values of these shapes or another one."""

    def example(random: np.random.RandomState) -> tuple[Any, ...]:
        return tuple(normal(random, *each) for each in shapes)

    def register(function: Any) -> Any:
        PROGRAMS[function.__name__] = (function, like or example)
        return function

    return register


def normal(random: np.random.RandomState, *shape: int) -> Any:
    return random.normal(size=shape).astype(np.float32)


def whole(random: np.random.RandomState, below: int, *shape: int) -> Any:
    return random.randint(0, below, shape).astype(np.int32)


# Functions of elements


@program((4, 6), (6,))
def affine_and_clip(x, b):
    return jnp.clip(2 * x + b, -1, 1)


@program((3, 8))
def activations(x):
    return jax.nn.gelu(x), jax.nn.gelu(x, approximate=False), jax.nn.silu(x), jax.nn.softplus(x)


@program((3, 8))
def exponentials(x):
    return jnp.expm1(x), jnp.log1p(jnp.abs(x)), jnp.exp2(x), jax.nn.sigmoid(x), jnp.tanh(x)


@program((3, 8))
def roots_and_powers(x):
    positive = jnp.abs(x) + 0.5
    return lax.rsqrt(positive), jnp.cbrt(x), positive**1.5, x**3, jnp.hypot(x, positive)


@program((3, 8))
def trigonometry(x):
    return jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arctan2(x, 1 - x), jnp.arcsinh(x)


@program((2, 9))
def roundings(x):
    x = 3 * x
    return jnp.floor(x), jnp.ceil(x), jnp.round(x), lax.round(x), jnp.trunc(x), jnp.sign(x)


@program(like=lambda random: (whole(random, 50, 12) - 25, whole(random, 9, 12) + 1))
def integers(x, y):
    return x + y, x * y, lax.div(x, y), lax.rem(x, y), x // y, x % y, jnp.abs(x), jnp.maximum(x, y)


@program(like=lambda random: (whole(random, 1 << 30, 12), whole(random, 31, 12)))
def bits(x, n):
    u = x.astype(jnp.uint32)
    return (
        x & 255,
        x | 1,
        x ^ n,
        ~x,
        x << n,
        x >> n,
        u >> n.astype(jnp.uint32),
        lax.population_count(x),
    )


@program(like=lambda random: (normal(random, 2, 5), whole(random, 2, 2, 5).astype(bool)))
def choices(x, mask):
    return jnp.where(mask & (x > 0), x, -1), mask ^ (x < 0), jnp.where(mask, 3, 4).astype(jnp.int32)


@program((3, 8))
def narrow_floats(x):
    half, brain = x.astype(jnp.float16), x.astype(jnp.bfloat16)
    return half * half + 1, brain + brain, (x * 100).astype(jnp.int8), brain.astype(jnp.float32)


SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0], np.float32)


@program(like=lambda random: (SPECIAL,))
def special_values(x):
    return jnp.isfinite(x), jnp.isnan(x), jnp.maximum(x, 0), jnp.minimum(x, 0), 1 / x, x == x


@program((6,))
def special_constants(x):
    brain = jnp.array([jnp.inf, -jnp.inf, 1.5], jnp.bfloat16)
    half = jnp.array([-jnp.inf, 65504, 6e-8], jnp.float16)
    return jnp.where(x > 9, x, SPECIAL), brain + 1, half, jnp.maximum(x, -jnp.inf)


@program((15, 10))
def large_constant(x):
    return x + np.random.RandomState(5).normal(size=(15, 10)).astype(np.float32)


# Shapes


@program((2, 3, 4))
def transposes(x):
    return x.transpose(2, 0, 1).reshape(4, 6), x[:, ::-1, 1:4:2], jnp.squeeze(x[:, :1], 1)


@program((3, 4))
def paddings(x):
    zero = np.float32(7)
    inner = lax.pad(x, zero, [(1, 2, 0), (0, 1, 2)])
    return inner, lax.pad(x, zero, [(-1, 0, 0), (2, -1, 0)]), jnp.pad(x, 1, mode="reflect")


@program((2, 3), (2, 1), (4, 3))
def joins(x, y, z):
    return (
        jnp.concatenate([x, y], 1),
        jnp.stack([x, x * 2]),
        jnp.vstack([x, z]),
        jnp.tile(x, (2, 2)),
    )


@program((5,))
def positions(x):
    table = jnp.arange(5)[:, None] + jnp.arange(4)
    return (
        x[:, None] * table,
        jnp.tril(jnp.ones((4, 4))) * x[:4],
        jnp.eye(3),
        lax.iota(jnp.int32, 6),
    )


# Sums and products


@program((4, 3, 5))
def reductions(x):
    return x.sum((0, 2)), x.mean(1), x.max(2), x.min(), x.prod(1), (x > 2).any(1), (x > -2).all(0)


@program((4, 6))
def extremes(x):
    return jnp.argmax(x, 1), jnp.argmin(x, 0), jax.nn.logsumexp(x, 1), x.var(1), jnp.linalg.norm(x)


@program((3, 7))
def scans(x):
    return jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), jnp.cumsum(x, 1)[:, ::-1]


@program((4, 6), (6, 5), (5,))
def dense(x, w, b):
    return jax.nn.relu(x @ w + b)


@program((2, 3, 4), (2, 5, 4), (3, 4))
def contractions(x, y, z):
    return (
        jnp.einsum("bij,bkj->bik", x, y),
        jnp.einsum("bij,ij->b", x, z),
        jnp.tensordot(x, y, ((0,), (0,))),
    )


# Layers


@program((4, 8), (8,), (8,))
def layer_norm(x, scale, offset):
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset


@program((4, 3, 3, 2), (2,), (2,))
def batch_norm(x, scale, offset):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) / jnp.sqrt(variance + 1e-3) * scale + offset, 0.9 * mean, 0.9 * variance


@program((2, 6, 6, 3), (3, 3, 3, 4))
def conv_same(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@program((1, 4, 7, 7), (6, 2, 3, 3))
def conv_grouped_dilated(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), [(2, 1), (0, 2)], rhs_dilation=(2, 1), feature_group_count=2
    )


@program((1, 3, 5, 2), (3, 3, 2, 4))
def conv_transposed(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME")


@program((2, 9, 3), (4, 3, 5))
def conv_one_axis(x, w):
    return lax.conv_general_dilated(x, w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"))


@program((2, 7, 7, 3))
def pools(x):
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    largest = lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME")
    return largest, lax.reduce_window(x, 0.0, lax.add, window, strides, "VALID") / 9


@program((2, 5, 8), (8, 24), (8, 8))
def attention(x, w, o):
    q, k, v = jnp.split((x @ w).reshape(2, 5, 6, 4), 3, 2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2
    scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(2, 5, 8) @ o


@program(like=lambda random: (normal(random, 9, 4), whole(random, 9, 3, 2)))
def embedding(table, tokens):
    return table[tokens], jnp.take_along_axis(table, tokens[:1] % 4, 1)


@program((6, 2, 3), (3, 12), (4, 12), (12,))
def gru(xs, w, u, b):
    def cell(h, x):
        z, r, _ = jnp.split(jax.nn.sigmoid(x @ w + h @ u + b), 3, 1)
        n = jnp.tanh((x @ w + b)[:, 8:] + r * (h @ u)[:, 8:])
        h = (1 - z) * n + z * h
        return h, h

    return lax.scan(cell, jnp.zeros((2, 4)), xs)


# Gradients and steps of training


def network(params, x):
    return jax.nn.gelu(x @ params["w"] + params["b"]) @ params["v"]


def square_loss(params, x, y):
    return ((network(params, x) - y) ** 2).mean()


def training_example(random: np.random.RandomState, states: int) -> tuple[Any, ...]:
    params = {"w": normal(random, 3, 6), "b": normal(random, 6), "v": normal(random, 6, 2)}
    more = [jax.tree.map(lambda each: np.abs(0.1 * each), params) for _ in range(states)]
    return params, *more, normal(random, 5, 3), normal(random, 5, 2)


@program(like=partial(training_example, states=0))
def gradient_of_perceptron(params, x, y):
    return jax.value_and_grad(square_loss)(params, x, y)


@program(like=partial(training_example, states=1))
def momentum_step(params, velocity, x, y):
    loss, grads = jax.value_and_grad(square_loss)(params, x, y)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity), velocity, loss


@program(like=partial(training_example, states=2))
def adam_step(params, mean, square, x, y):
    loss, grads = jax.value_and_grad(square_loss)(params, x, y)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)
    params = jax.tree.map(lambda p, m, s: p - 0.01 * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, mean, square, loss


@program((2, 6, 6, 2), (3, 3, 2, 4))
def gradient_of_conv(x, w):
    def loss(x, w):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jnp.sin(
            lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers)
        ).sum()

    return jax.grad(loss, (0, 1))(x, w)


@program((1, 6, 6, 2))
def gradient_of_pools(x):
    def loss(x):
        window, strides = (1, 2, 2, 1), (1, 2, 2, 1)
        largest = lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "VALID")
        mean = lax.reduce_window(x, 0.0, lax.add, window, strides, "VALID")
        return (largest**2 * mean).sum()

    return jax.grad(loss)(x)


@program((4, 8), (8,))
def gradient_of_layer_norm(x, scale):
    return jax.grad(lambda x, s: jnp.tanh(layer_norm(x, s, 0.0)).sum(), (0, 1))(x, scale)


@program(like=lambda random: (normal(random, 7, 4), whole(random, 7, 5)))
def gradient_of_embedding(table, tokens):
    return jax.grad(lambda t: (t[tokens] ** 2).sum())(table)


@program(like=lambda random: (normal(random, 4, 5), whole(random, 5, 4)))
def gradient_of_cross_entropy(logits, labels):
    def loss(logits):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return jax.value_and_grad(loss)(logits)


@program((3, 2, 3), (3, 4), (4, 4))
def gradient_through_time(xs, w, u):
    def loss(w, u):
        step = lambda h, x: (jnp.tanh(x @ w + h @ u), None)  # noqa: E731
        return (lax.scan(step, jnp.zeros((2, 4)), xs)[0] ** 2).sum()

    return jax.grad(loss, (0, 1))(w, u)


# Control flow


@program((4,))
def counted_loop(x):
    return lax.fori_loop(0, 5, lambda i, v: v * 0.5 + i, x)


@program((3,))
def loop_until(x):
    return lax.while_loop(
        lambda s: s[0].sum() < 50, lambda s: (s[0] * 2, s[1] + 1), (jnp.abs(x), 0)
    )


@program(like=lambda random: (np.bool_(True), normal(random, 4)))
def condition(flag, x):
    return lax.cond(flag, lambda v: v * 2, lambda v: v - 1, x)


@program(like=lambda random: (np.int32(2), normal(random, 4)))
def switch(which, x):
    return lax.switch(which, [jnp.sin, jnp.cos, lambda v: v * v], x)


# Indices


@program(like=lambda random: (normal(random, 5, 6), np.int32(2), np.int32(9)))
def dynamic_slices(x, i, j):
    piece = lax.dynamic_slice(x, (i, j), (2, 3))
    return piece, lax.dynamic_update_slice(x, piece, (j, i)), x[i]


@program(like=lambda random: (normal(random, 6, 3), whole(random, 6, 4), normal(random, 4, 3)))
def scatters(x, rows, values):
    return x.at[rows].add(values), x.at[rows].max(values), x.at[jnp.arange(4)].set(values)


@program((4, 7))
def sorts(x):
    return jnp.sort(x, 1), jnp.argsort(x, 1), lax.top_k(x, 3)


@program(like=lambda random: (whole(random, 4, 9), normal(random, 9, 2)))
def segments(groups, x):
    return (
        jax.ops.segment_sum(x, groups, 4),
        jax.nn.one_hot(groups, 4),
        jnp.bincount(groups, length=4),
    )


@program(like=lambda random: (np.array([3, 7], np.uint32),))
def random_numbers(key):
    first, second = jax.random.split(key)
    return jax.random.uniform(first, (5,)), jax.random.bits(second, (3,))


# Complex numbers


@program(like=lambda random: (waves(random, 3, 4), normal(random, 4)))
def complex_numbers(x, y):
    turned = x * jnp.exp(1j * y)
    total = lax.fori_loop(0, 2, lambda i, v: v * v / (1 + jnp.abs(v)), turned)
    return turned, jnp.sum(total, 0), jnp.sqrt(x).real, jnp.tanh(x).imag, jnp.conj(x) @ x.T


@program((3, 12))
def fourier_filter(x):
    spectrum = jnp.fft.rfft(x)
    kept = jnp.where(jnp.arange(7) < 4, spectrum, 0)
    return jnp.abs(spectrum) ** 2, jnp.fft.irfft(kept, 12), jnp.fft.ifft(jnp.fft.fft(x, axis=0))


@program(like=lambda random: (normal(random, 2, 5, 4), 1 + whole(random, 3, 2, 3)))
def gradient_of_ctc(logits, labels):
    """Of optax: the first sample has four frames and two labels."""
    frames = jnp.array([[0, 0, 0, 0, 1], [0] * 5], jnp.float32)
    counts = jnp.array([[0, 0, 1], [0] * 3], jnp.float32)

    def loss(logits):
        return optax.ctc_loss(logits, frames, labels, counts).sum()

    return jax.value_and_grad(loss)(logits)


@program((2, 5, 5), (2, 5, 3))
def gradient_of_cholesky(a, b):
    def solved(a, b):
        factor = jnp.linalg.cholesky(a @ a.transpose(0, 2, 1) + 5 * jnp.eye(5))
        half = solve_triangular(factor, b, lower=True)
        return solve_triangular(factor, half, lower=True, trans=1)

    return jax.value_and_grad(lambda a, b: (solved(a, b) ** 2).sum(), (0, 1))(a, b)


def waves(random: np.random.RandomState, *shape: int) -> Any:
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)


def leaves(values: Any) -> list[Any]:
    return [np.asarray(each) for each in jax.tree.leaves(values)]


def parts(arrays: list[Any]) -> list[Any]:
    """The arrays of a program's inputs or outputs: two in place of each of complex numbers."""
    return [
        part
        for each in arrays
        for part in ((each.real, each.imag) if each.dtype.kind == "c" else (each,))
    ]


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    arrays = dict(np.load(VALUES)) if VALUES.exists() and names else {}
    for number, (name, (function, example)) in enumerate(PROGRAMS.items()):
        if names and name not in names:
            continue
        inputs = jax.tree.map(jnp.asarray, example(np.random.RandomState(number)))
        text = from_jax(function, *inputs).text
        # Neither folders of this machine, nor what called the function.
        text = re.sub(r'"[^"\n]*/([^"/\n]+\.py)"', r'"\1"', text)
        (FOLDER / f"{name}.mlir").write_text(text)
        arrays = {k: v for k, v in arrays.items() if not k.startswith(f"{name}/")}
        for kind, values in (("in", inputs), ("out", jax.jit(function)(*inputs))):
            for i, array in enumerate(parts(leaves(values))):
                narrow = array.dtype.name == "bfloat16"
                arrays[f"{name}/{kind}/{i}"] = array.astype(np.float32) if narrow else array
    np.savez_compressed(VALUES, **arrays)


if __name__ == "__main__":
    main(sys.argv[1:])
