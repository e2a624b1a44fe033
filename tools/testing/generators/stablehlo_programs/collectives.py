"""Draws operations between processes, of which there is one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Region

from .....dialects import nn, stablehlo
from .....dialects.dense import dense_of_array
from .....dialects.dtypes import element_type
from .....dialects.stablehlo.collectives import ChannelHandleAttr
from .draft import FLOATS, INTEGERS, Draft, Draw, Properties, number


def _grouped(draft: Draft, name: str) -> None:
    values = [draft.value((*FLOATS, *INTEGERS), 1)]
    rank = len(nn.shape_of(values[0]))
    axis = number(draft.random.randrange(rank))
    how: dict[str, Attribute] = {"replica_groups": dense_of_array(np.zeros((1, 1), np.int64))}
    if draft.chance(0.5):
        how["channel_handle"] = ChannelHandleAttr((draft.random.randint(0, 9), 0))
    own: Mapping[str, Properties] = {
        "stablehlo.all_gather": {"all_gather_dim": axis},
        "stablehlo.all_to_all": {
            "split_dimension": axis,
            "concat_dimension": number(draft.random.randrange(rank)),
            "split_count": number(1),
        },
        "stablehlo.reduce_scatter": {"scatter_dimension": axis},
    }
    regions = list[Region]()
    if name in ("stablehlo.all_reduce", "stablehlo.reduce_scatter"):
        one = nn.tensor((), nn.element_of(values[0]))
        inner = draft.inside([one, one], scalars=True)
        merge = draft.choice(("stablehlo.add", "stablehlo.maximum"))
        inner.end(inner.add(merge, inner.block.args, [one]))
        regions.append(inner.region())
    if name not in ("stablehlo.all_to_all", "stablehlo.collective_broadcast"):
        how |= {"use_global_device_ids": UnitAttr()} if draft.chance(0.3) else {}
    draft.add(name, values, [each.type for each in values], {**how, **own.get(name, {})}, regions)


def _permuted(draft: Draft, name: str) -> None:
    value = draft.value((*FLOATS, *INTEGERS))
    pairs = np.zeros((draft.random.randint(0, 1), 2), np.int64)
    draft.add(name, [value], [value.type], {"source_target_pairs": dense_of_array(pairs)})


def _number(draft: Draft, name: str) -> None:
    draft.add(name, [], [nn.tensor((), element_type(np.dtype(np.uint32)))])


TABLE: Mapping[str, Draw] = {
    **{each.name: _grouped for each in stablehlo.GROUPED},
    "stablehlo.collective_permute": _permuted,
    "stablehlo.partition_id": _number,
    "stablehlo.replica_id": _number,
}
"""What draws each operation, by name."""
