"""Strain of gravitational-wave detectors: real noise, and computed chirps.

The noise is real: one second of LIGO Hanford, LIGO Livingston and Virgo from GPS 968654552, which
gwpy keeps for its tests. The chirps are computed: the leading order of an inspiral of two masses,
scaled to a signal-to-noise ratio. Half of all windows hold one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Data, NotInstalled, folder_of

Array = NDArray[Any]

RATE = 16384
"""Samples a second."""

WINDOW = 2048
"""Samples of a window: an eighth of a second."""

EACH = 4
"""Of so many samples of a window one is kept, which is enough for the band."""

TRAINED, HELD = ("H1:LDAS-STRAIN", "L1:LDAS-STRAIN"), "V1:h_16384Hz"
"""The channels to learn from, and the one of another detector."""

SEEN = 0.7
"""The part of the second to learn from. The rest, and all of Virgo's, is held out."""

BAND = (60.0, 1000.0)
"""Frequencies in hertz that windows keep. Below, the detectors shake; above, no chirp is."""

SOLAR_SECONDS = 4.925490947e-6
"""The mass of the Sun as a time, G M / c^3."""

MASSES = (8.0, 25.0)
"""Chirp masses of the inspirals, in masses of the Sun."""

SNR = (9.0, 14.0)
"""Signal-to-noise ratios of chirps within their window."""

TRAINING_WINDOWS, HELD_WINDOWS = 2048, 512


def strain(seed: int) -> Data:
    """Windows of whitened strain, [windows, 1, WINDOW / EACH], and whether each holds a chirp."""
    path = folder_of("gwpy") / "testing" / "data" / "HLV-HW100916-968654552-1.hdf"
    if not path.exists():
        raise NotInstalled(f"{path} is not there, which holds the strain")
    with import_module("h5py").File(path) as file:
        channels: dict[str, Array] = {
            name: np.asarray(file[name], np.float64) for name in (*TRAINED, HELD)
        }
    random = np.random.default_rng([seed, RATE])
    filters = {name: _whitening(each) for name, each in channels.items()}
    end = int(SEEN * RATE)
    seen = [(channels[name][:end], filters[name]) for name in TRAINED]
    held = [(channels[name][end:], filters[name]) for name in TRAINED]
    held.append((channels[HELD], filters[HELD]))
    x, y = _windows(seen, TRAINING_WINDOWS, random)
    held_x, held_y = _windows(held, HELD_WINDOWS, random)
    return Data(x, y, held_x, held_y)


def _whitening(values: Array) -> Array:
    """What each frequency of a window is multiplied by, so that noise becomes white in the band.

    It is one over the root of the power density, by Welch's mean of overlapping windows.
    """
    pieces = np.lib.stride_tricks.sliding_window_view(values, WINDOW)[:: WINDOW // 2]
    power = (np.abs(np.fft.rfft(pieces * np.hanning(WINDOW))) ** 2).mean(0)
    frequencies = np.fft.rfftfreq(WINDOW, 1 / RATE)
    inside = (frequencies >= BAND[0]) & (frequencies <= BAND[1])
    return np.where(inside, 1 / np.sqrt(power), 0.0)


def _windows(
    sources: list[tuple[Array, Array]], count: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Windows of noise at random times, half of them with a chirp, in random order."""
    which = random.integers(len(sources), size=count)
    labels = (np.arange(count) % 2).astype(np.int32)
    found = np.empty((count, 1, WINDOW // EACH), np.float32)
    for i, label in enumerate(labels):
        values, whitening = sources[int(which[i])]
        begin = random.integers(len(values) - WINDOW + 1)
        noise = _white(values[begin : begin + WINDOW], whitening)
        noise /= noise.std()
        if label:
            chirp = _white(_chirp(random), whitening)
            # White noise of unit variance: the ratio is the norm of the signal.
            noise += chirp * (random.uniform(*SNR) / np.sqrt((chirp**2).sum()))
        found[i, 0] = (noise / noise.std())[::EACH]
    return found, labels


def _white(values: Array, whitening: Array) -> Array:
    return np.fft.irfft(np.fft.rfft(values * np.hanning(WINDOW)) * whitening, WINDOW)


def _chirp(random: np.random.Generator) -> Array:
    """An inspiral that ends within the last half of a window.

    At a time tau before the merger, of chirp mass M as a time: the phase is
    -2 (tau / 5 M)^(5/8), and the amplitude grows as tau^(-1/4). Source: Cutler and Flanagan, 1994,
    equations 2.5 to 2.7.
    """
    mass = random.uniform(*MASSES) * SOLAR_SECONDS
    end = random.uniform(0.5, 0.9) * WINDOW
    tau = (end - np.arange(WINDOW)) / RATE
    # It ends at the last stable orbit of equal masses, where the formula does.
    total = mass * 4**0.6
    last = 5 / 256 * (6**1.5 * total) ** (8 / 3) / mass ** (5 / 3)
    before = np.maximum(tau, last)
    phase = random.uniform(0, 2 * np.pi) - 2 * (before / (5 * mass)) ** 0.625
    return np.where(tau > last, before**-0.25 * np.cos(phase), 0.0)
