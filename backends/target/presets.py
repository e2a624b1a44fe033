"""The preset machines: what differs from the defaults of `facts.py`, each value with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_UNITS = "poplibs ConvPartial1x1Out.cpp, 8 on the first IPU"
_RESERVED = "code, stacks, vertex state, exchange code"
_KNOWLES = (
    "assumed: which of the figures of Knowles, Hot Chips 2021, belongs to these types; memory, "
    "datapath and transport"
)
_CARD = "assumed: a PCIe card has no DRAM of its own, and the host's is not counted"


@dataclass(frozen=True)
class Own:
    """A value of a preset.

    Attributes:
        source: "confidence: source", as facts are marked.
    """

    value: int | float | str
    source: str


_CHIPS: Mapping[str, Mapping[str, Own]] = {
    # Mk1's memory at Mk2's rates, on few tiles: for tests, and for looking closely.
    "tiny": {
        "tiles": Own(4, "assumed: small enough to look at every tile"),
        "memory.bytes_per_tile": Own(262_144, "assumed: Mk1's"),
        "memory.reserved_bytes": Own(16_384, f"assumed: {_RESERVED}"),
        "rounding.overflow": Own(0, "assumed: IEEE 754"),
        "amp.float8_float16.units": Own(16, "assumed: the C600's, so that tests reach them"),
    },
    # GC2. Its clock and MAC rates follow from the published peaks.
    "mk1": {
        "tiles": Own(1216, "published: WikiChip, Colossus floorplan"),
        "clock_hz": Own(1.6e9, "published: arithmetic, 31.1 TFLOP/s of 1216 tiles and 8 MACs"),
        "memory.bytes_per_tile": Own(262_144, "published: Citadel's study of the chip, 256 KiB"),
        "memory.reserved_bytes": Own(16_384, f"assumed: {_RESERVED}"),
        "exchange.pair_factor": Own(
            1.0, "assumed: shared buses are documented only for the second chip"
        ),
        "copy.staging_workers": Own(
            1, "assumed: one worker copies; within 10 % of four measured phases"
        ),
        "remote.gbytes": Own(0.0, _CARD),
        "amp.float16_float16.units": Own(8, f"published: {_UNITS}"),
        "amp.float16_float32.units": Own(8, f"published: {_UNITS}"),
        "amp.float32_float32.units": Own(8, "published: arithmetic, 31.1 TFLOP/s of 1216 tiles"),
    },
    # The energies are those of arithmetic with its reads of memory and its transport. So the facts
    # of memory and exchange stay unknown.
    "mk2": {
        "energy.float16_float16_pj_per_mac": Own(2.6, f"{_KNOWLES}, 1.3 pJ/flop"),
        "energy.float16_float32_pj_per_mac": Own(3.5, f"{_KNOWLES}, 1.75 pJ/flop"),
        "energy.float32_float32_pj_per_mac": Own(6.6, f"{_KNOWLES}, 3.3 pJ/flop"),
        "area.die_mm2": Own(823.0, "published: Graphcore, 59.4e9 transistors on 823 mm2"),
        "area.die_tiles": Own(1472, "published: Graphcore, Hot Chips 2021"),
        "area.die_bytes_per_tile": Own(638_976, "published: 624 KiB, Graphcore, Hot Chips 2021"),
    },
    "bow": {
        "clock_hz": Own(1.85e9, "published: arithmetic, 350 TFLOP/s of 1472 tiles and 64 MACs"),
        "remote.gbytes": Own(64.0, "published: Bow-2000 data sheet, up to 256 GB for four chips"),
    },
    # IPU21: Mk2 at 1.5 GHz with 8-bit float units, twice the MACs of float16.
    "c600": {
        "clock_hz": Own(1.5e9, "published: arithmetic, 280 TFLOP/s of 1472 tiles and 64 MACs"),
        "exchange.fabric": Own("ipu21", "published: ipu-stack topology.rs, distances on this chip"),
        "exchange.send_cycles": Own(2, "published: ipu-stack ipu21/costs.rs"),
        "exchange.receive_cycles": Own(2, "published: ipu-stack ipu21/costs.rs"),
        "exchange.place_cycles": Own(1, "published: ipu-stack ipu21/costs.rs"),
        "memory.element_bytes": Own(16_384, "published: ipu-stack memory.rs, a patent's figure 5"),
        "remote.gbytes": Own(0.0, _CARD),
        "amp.float8_float16.units": Own(16, "published: arithmetic, 560 TFLOP/s, ByteMLPerf"),
        "amp.float8_float16.in_grain": Own(32, "published: 32 weights a unit, poplibs"),
    },
    # Mk2's tiles on another fabric, to see what distance and busy links cost.
    "mesh": {
        "exchange.fabric": Own("mesh", "assumed: Mk2 has no such fabric"),
    },
}


def _several(base: str, tiles: int, chips: int, topology: str, **facts: Own) -> dict[str, Own]:
    """The values of several chips that links join.

    Args:
        tiles: of a chip.
        facts: of the links.
    """
    which = f"{chips} chips of {base}"
    return {
        **_CHIPS[base],
        "tiles": Own(chips * tiles, f"published: arithmetic, {which}"),
        "links.topology": Own(topology, f"published: how {which} are joined"),
        "links.chips": Own(chips, f"published: {which}"),
        **{f"links.{key}": own for key, own in facts.items()},
    }


_MK2_LINK = "assumed: 10 links of 32 GB/s at 0.85 (secondary text), shared as on Mk1"
_MK2_LINKS = {"rung_gbytes": Own(108.8, _MK2_LINK), "rail_gbytes": Own(54.4, _MK2_LINK)}

JOINED: Mapping[str, Mapping[str, Own]] = {
    chip: {
        "links.topology": Own(topology, f"assumed: how many chips of {chip} are joined"),
        **{f"links.{key}": own for key, own in links.items()},
    }
    for chip, topology, links in (
        ("tiny", "ladder", {}),
        ("mk1", "ladder", {}),
        ("mk2", "pod", _MK2_LINKS),
        ("bow", "pod", _MK2_LINKS),
        ("c600", "ladder", _MK2_LINKS),
        ("mesh", "ladder", {}),
    )
}
"""By preset of one chip and dotted key, what joins several of them. Few chips of a pod are a part
of it."""

PRESET_VALUES: Mapping[str, Mapping[str, Own]] = {
    **_CHIPS,
    "mk1x2": _several("mk1", 1216, 2, "ladder"),
    "mk1x4": _several("mk1", 1216, 4, "ladder"),
    "mk1x16": _several("mk1", 1216, 16, "ladder"),
    "mk2x4": _several("mk2", 1472, 4, "ladder", **_MK2_LINKS),
    "bow-pod16": _several("bow", 1472, 16, "ladder", **_MK2_LINKS),
    "bow-pod64": _several("bow", 1472, 64, "torus", **_MK2_LINKS),
    "bow-pod256": _several("bow", 1472, 256, "pod", **_MK2_LINKS),
    "c600x2": _several("c600", 1472, 2, "ladder", **_MK2_LINKS),
}
"""By preset and dotted key, the values that are its own."""

CHIP_OF: Mapping[str, str] = {
    name: next((chip for chip in _CHIPS if name.startswith((f"{chip}x", f"{chip}-"))), name)
    for name in PRESET_VALUES
}
"""The preset of one chip of each preset; itself if it has one chip."""

WITHOUT_CHIP = ("tiny", "mesh")
"""The presets that stand for no chip, and may have any number of tiles. The tiles of every other
preset are those of one chip."""

PRESET_SOURCES: Mapping[str, Mapping[str, str]] = {
    name: {key: own.source for key, own in values.items()} for name, values in PRESET_VALUES.items()
}
"""By preset and dotted key, the sources of its own values."""

DEFAULT_TARGET = "mk2"
"""The target if the user names none."""
