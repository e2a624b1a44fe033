# gate.py
"""The gate of a mixture of experts: the k best experts of a token, and how much each counts."""

import numpy as np

from abele.tools.extensions import codelet, ulps


@codelet(
    space="token, expert whole",
    reads={"logits": "token, expert"},
    writes={"weights": "token, expert"},
    # A search through the experts for each of the k, their exponentials, and a row of stores.
    cycles=lambda n, expert, k: 30 + n * (k * (2 * expert + 14) + expert),
    bound=ulps(12, of="largest"),
    needs=lambda k, expert: 1 <= k <= expert,
)
def top_k(logits, *, k=2):
    """The softmax over the k largest of a row, and 0 elsewhere. Of equal ones, the first count."""
    best = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    chosen = np.take_along_axis(logits, best, 1)
    shares = np.exp(chosen - chosen[:, :1])
    total = shares[:, :1].copy()
    for i in range(1, k):
        total += shares[:, i : i + 1]
    weights = np.zeros_like(logits)
    np.put_along_axis(weights, best, shares / total, 1)
    return weights
