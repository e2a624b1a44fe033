"""ONNX's TfIdfVectorizer on integers: the number of occurrences of each n-gram of a pool."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from .node import Importer, Node, Results
from .tensors import Array

MODES = ("TF", "IDF", "TFIDF")


def _tf_idf(node: Node) -> Results:
    if node.has_attribute("pool_strings"):
        raise node.unsupported("a pool of strings", "need pool_int64s")
    shape = node.shape(0)
    if len(shape) not in (1, 2):
        raise node.bad(f"items of shape {list(shape)}; need one axis or two")
    mode = node.text("mode")
    if mode not in MODES:
        raise node.bad(f"mode {mode!r}; need one of {', '.join(MODES)}")
    pools = _pools(node)
    columns = np.array(node.integers("ngram_indexes"))
    if len(columns) != sum(map(len, pools)) or not len(columns) or (columns < 0).any():
        raise node.bad(f"{len(columns)} ngram_indexes of {sum(map(len, pools))} n-grams")
    rows = shape[0] if len(shape) == 2 else 1
    items = node.reshape(node[0], (rows, shape[-1]))
    counts = node.add(nn.ConcatOp([_counted(node, items, pool) for pool in pools if len(pool)], 1))
    # The column of each n-gram of the pool. Columns without an n-gram are 0.
    made = int(columns.max()) + 1
    node.check_table(made)
    place = np.full(made, len(columns), np.int64)
    place[columns] = np.arange(len(columns))
    padded = node.add(nn.PadOp(counts, [0, 0], [0, 1]))
    found = node.add(nn.GatherOp(padded, node.emitted(place), 1))
    if mode != "TF" and node.has_attribute("weights"):
        found = _weighted(node, found, place, mode)
    elif mode == "IDF":
        found = node.add(nn.MinOp(found, node.constant(1, found)))
    return node.reshape(found, (*shape[:-1], made))


def _weighted(node: Node, counts: SSAValue, place: Array, mode: str) -> SSAValue:
    """Counts times weights; in mode IDF, the weights of the n-grams that occur."""
    given = np.array(node.numbers("weights"), np.float32)
    if len(given) != len(node.integers("ngram_indexes")):
        raise node.bad(f"{len(given)} weights; need one per n-gram")
    weights = np.append(given, np.float32(0))[place]
    present = counts if mode == "TFIDF" else node.add(nn.MinOp(counts, node.constant(1, counts)))
    return node.add(nn.MulOp(present, node.emitted(weights)))


def _pools(node: Node) -> list[Array]:
    """The n-grams of the pool, [count, n] for n = 1, 2, ..."""
    pool, starts = np.array(node.integers("pool_int64s")), node.integers("ngram_counts")
    ends = [*starts[1:], len(pool)]
    found: list[Array] = []
    for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % n:
            raise node.bad(f"ngram_counts {starts} of a pool of {len(pool)} items")
        found.append(pool[start:end].reshape(-1, n))
    return found


def _counted(node: Node, items: SSAValue, pool: Array) -> SSAValue:
    """The number of occurrences of each n-gram [grams, n] in rows of items, with any allowed
    distance.
    """
    rows, size = nn.shape_of(items)
    grams, n = pool.shape
    least, most = node.integer("min_gram_length"), node.integer("max_gram_length")
    skips = range(node.integer("max_skip_count") + 1) if n > 1 else range(1)
    total: SSAValue | None = None
    for step in (skip + 1 for skip in skips):
        places = size - (n - 1) * step
        if not least <= n <= most or places < 1:
            continue
        found: SSAValue | None = None
        for k in range(n):
            part = node.add(nn.SliceOp(items, [0, k * step], [1, 1], [rows, places]))
            wanted = pool[:, k].astype(numpy_dtype(nn.element_of(items)))
            equal = nn.EqualOp(node.reshape(part, (rows, places, 1)), node.emitted(wanted))
            each = node.add(equal)
            found = each if found is None else node.add(nn.LogicalAndOp(found, each))
        assert found is not None
        count = node.add(nn.ReduceOp(node.cast(found, f32), "sum", [1]))
        total = count if total is None else node.add(nn.AddOp(total, count))
    if total is None:
        return node.emitted(np.zeros((rows, grams), np.float32))
    return total


NGRAMS: dict[str, Importer] = {"TfIdfVectorizer": _tf_idf}
