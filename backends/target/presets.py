"""The preset machines: what differs from the defaults of `facts.py`, each value with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_UNITS = "poplibs ConvPartial1x1Out.cpp, 8 on the first IPU"
_RESERVED = "code, stacks, vertex state, exchange code"


@dataclass(frozen=True)
class Own:
    """A value of a preset.

    Attributes:
        source: "confidence: source", as facts are marked.
    """

    value: int | float | str
    source: str


PRESET_VALUES: Mapping[str, Mapping[str, Own]] = {
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
        "amp.float16_float16.units": Own(8, f"published: {_UNITS}"),
        "amp.float16_float32.units": Own(8, f"published: {_UNITS}"),
        "amp.float32_float32.units": Own(8, "published: arithmetic, 31.1 TFLOP/s of 1216 tiles"),
    },
    "mk2": {},
    "bow": {
        "clock_hz": Own(1.85e9, "published: arithmetic, 350 TFLOP/s of 1472 tiles and 64 MACs")
    },
    # IPU21: Mk2 at 1.5 GHz with 8-bit float units, twice the MACs of float16.
    "c600": {
        "clock_hz": Own(1.5e9, "published: arithmetic, 280 TFLOP/s of 1472 tiles and 64 MACs"),
        "exchange.send_cycles": Own(2, "published: ipu-stack ipu21/costs.rs"),
        "exchange.receive_cycles": Own(2, "published: ipu-stack ipu21/costs.rs"),
        "exchange.place_cycles": Own(1, "published: ipu-stack ipu21/costs.rs"),
        "amp.float8_float16.units": Own(16, "published: arithmetic, 560 TFLOP/s, ByteMLPerf"),
        "amp.float8_float16.in_grain": Own(32, "published: 32 weights a unit, poplibs"),
    },
    # Mk2's tiles on another fabric, to see what distance and busy links cost.
    "mesh": {
        "exchange.fabric": Own("mesh", "assumed: Mk2 has no such fabric"),
    },
}
"""By preset and dotted key, the values that are its own."""

WITHOUT_CHIP = ("tiny", "mesh")
"""The presets that stand for no chip, and may have any number of tiles. The tiles of every other
preset are those of one chip."""

PRESET_SOURCES: Mapping[str, Mapping[str, str]] = {
    name: {key: own.source for key, own in values.items()} for name, values in PRESET_VALUES.items()
}
"""By preset and dotted key, the sources of its own values."""

DEFAULT_TARGET = "mk2"
"""The target if the user names none."""
