"""Writes decoder_step.mlir: a step that trains a decoder of Flax, as JAX and optax write it.

    pip install 'abele[jax]' flax optax
    python examples/make_decoder_step.py

The step returns new weights, the new state of Adam and the loss. `docs/gallery.md` shows it:

    abele scan decoder_step.mlir --weights decoder_step.safetensors -o scan.png \
        --keep 'params=result[0]' --keep 'state=result[1]'
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from flax import linen

from abele.tools import from_jax

VOCABULARY, BATCH = 512, 8


class Layer(linen.Module):
    """Attention that looks back, and two products with a GELU between them."""

    heads: int

    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        mask = linen.make_causal_mask(x[..., 0])
        width = x.shape[-1]
        attention = linen.MultiHeadDotProductAttention(self.heads, name="attention")
        x += attention(linen.LayerNorm()(x), mask=mask)
        wide = linen.gelu(linen.Dense(4 * width, name="up")(linen.LayerNorm()(x)))
        return x + linen.Dense(width, name="down")(wide)


class Decoder(linen.Module):
    """Scores of the next token at each place."""

    layers: int
    width: int
    heads: int

    @linen.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = linen.Embed(VOCABULARY, self.width, name="tokens")(tokens)
        x += self.param("places", linen.initializers.normal(0.02), x.shape[1:])
        for n in range(self.layers):
            x = Layer(self.heads, name=f"layer{n}")(x)
        return linen.Dense(VOCABULARY, name="head")(linen.LayerNorm(name="last")(x))


def step_of(
    layers: int = 4, width: int = 128, heads: int = 4, length: int = 32
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step of training, and examples of its weights, its state and its tokens."""
    decoder, adam = Decoder(layers, width, heads), optax.adam(1e-3)
    size = (BATCH, length + 1)
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, size, dtype=np.int32)
    weights = decoder.init(jax.random.key(0), tokens[:, :-1])["params"]

    def loss_of(params: Any, tokens: jax.Array) -> jax.Array:
        scores = decoder.apply({"params": params}, tokens[:, :-1])
        losses = optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:])
        return losses.mean()

    def step(params: Any, state: Any, tokens: jax.Array) -> tuple[Any, Any, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(params, tokens)
        changes, state = adam.update(gradients, state)
        return optax.apply_updates(params, changes), state, loss

    return step, (weights, adam.init(weights), tokens)


if __name__ == "__main__":
    step, examples = step_of()
    from_jax(step, *examples, weights=["params", "state"]).save("decoder_step.mlir")
