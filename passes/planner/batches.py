"""The terms of a program whose batch, or whose optimiser, several chips share."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation

from ...dialects.structured import Movement, Structured
from ...ir.phases import UPDATE, Phases
from ...ir.upstream import ModuleOp
from ..replicas.following import Following, batch_dim
from ..replicas.written import PARTS, follow, replicas_of, shares_optimizer
from .limits import Limits
from .terms import FREE


def with_batch(limits: Limits, module: ModuleOp) -> Limits:
    """Limits that also cut the batch of a module across its replicas, if it has several, and the
    updates of its weights across all chips, if it shares the optimiser."""
    replicas, shares = replicas_of(module), shares_optimizer(module)
    if replicas == 1 and not shares:
        return limits
    found = follow(module) if replicas > 1 else Following(module)
    phases = Phases.of(module)
    terms = dict(limits.terms)
    for op in module.walk():
        own = terms.get(op, FREE)
        batch, parts = _batch(op, found, replicas), op.attributes.get(PARTS)
        # A user's shard of an operator comes before what replicas do.
        if batch is not None and own.across is None:
            own = replace(own, batch=batch)
        elif shares and isinstance(op, Structured) and phases.phase(op) == UPDATE:
            own = replace(own, every=True)
        if isinstance(parts, DenseArrayBase) and not own.split:
            own = replace(own, split=tuple(int(n) for n in parts.get_values()))
        if own is not FREE:
            terms[op] = own
    return replace(limits, terms=terms)


def _batch(op: Operation, found: Following, replicas: int) -> tuple[int, int] | None:
    """The dimension of an operation that replicas cut, and their number."""
    if op not in found.dims:
        return None
    if isinstance(op, Movement):
        dims = len(op.moves()[0].results[0].axes)
        fit = (each.along for each in found.dims[op] if each.count % replicas == 0)
        return next(((d, replicas) for d in fit if d < dims), None)
    assert isinstance(op, Structured)
    space = op.structure().space
    batch = batch_dim(space, found.dims[op], replicas)
    if batch is None:
        return None
    dim = space.dims[batch.along]
    # An operator that sums over replicas may lie anywhere: each chip then computes a share of it.
    return None if dim.kind == "reduction" and dim.size == replicas else (batch.along, replicas)
