"""Strain of gravitational-wave detectors: real noise, and computed chirps.

The noise is real: one second of LIGO Hanford, LIGO Livingston and Virgo from GPS 968654552, which
gwpy keeps for its tests. The chirps are computed: the leading order of an inspiral of two masses,
scaled to a signal-to-noise ratio. Half of all windows hold one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ....ir.support.arrays import Array
from .data import Data, NotInstalled, folder_of

RATE = 16384
"""Samples per second."""

WINDOW = 2048
"""Samples of a window: an eighth of a second."""

PIECE = 4096
"""Samples of each piece from which the density of the noise is estimated."""

TAPER = 1024
"""Samples at each end of the second that are faded, and left out afterwards."""

EACH = 4
"""The stride of the samples that are kept of a window: enough for the band."""

TRAINED, HELD = ("H1:LDAS-STRAIN", "L1:LDAS-STRAIN"), "V1:h_16384Hz"
"""The channels for training, and the held-out channel of another detector."""

SEEN = 0.7
"""The part of the second for training. The rest, and all of Virgo's, is held out."""

CHOSEN = 0.5
"""The part of the second for training while settings are chosen; the rest of SEEN judges them."""

BAND = (60.0, 1000.0)
"""Frequencies in hertz that windows keep. Below, the detectors shake; above, there is no chirp."""

SOLAR_SECONDS = 4.925490947e-6
"""The mass of the Sun as a time, G M / c^3."""

MASSES = (8.0, 25.0)
"""Chirp masses of the inspirals, in masses of the Sun."""

SNR = (9.0, 14.0)
"""Signal-to-noise ratios of chirps within their window."""

TRAINING_WINDOWS, HELD_WINDOWS = 8192, 1024


def strain(seed: int) -> Data:
    """Windows of whitened strain, [windows, 1, WINDOW / EACH], and whether each holds a chirp."""
    return _strain(seed, (*TRAINED, HELD), (SEEN, 1.0))


def strain_within(seed: int) -> Data:
    """Like `strain`, with the training time only. Its end is held out."""
    return _strain(seed, TRAINED, (CHOSEN, SEEN))


def _strain(seed: int, names: Sequence[str], held: tuple[float, float]) -> Data:
    """Training windows of some channels before a time, and held-out windows.

    All windows of other channels are held out, too.

    Args:
        held: the times between which windows are held out.
    """
    path = folder_of("gwpy") / "testing" / "data" / "HLV-HW100916-968654552-1.hdf"
    if not path.exists():
        raise NotInstalled(f"{path} is not there, which holds the strain")
    with import_module("h5py").File(path) as file:
        channels = [_Channel.of(np.asarray(file[name], np.float64)) for name in names]
    random = np.random.default_rng([seed, RATE])
    own, others = channels[: len(TRAINED)], channels[len(TRAINED) :]
    x, y = _windows([each.part(0.0, held[0]) for each in own], TRAINING_WINDOWS, random)
    judged = [*(each.part(*held) for each in own), *others]
    held_x, held_y = _windows(judged, HELD_WINDOWS, random)
    return Data(x, y, held_x, held_y)


@dataclass(frozen=True)
class _Channel:
    """Whitened noise, of variance 1, and the factor of each frequency of a window."""

    noise: Array
    whitening: Array

    @classmethod
    def of(cls, strain: Array) -> _Channel:
        """Whiten the whole second at once.

        The ends of short windows would leak the much louder noise below the band into it.
        """
        length = len(strain)
        pieces = np.lib.stride_tricks.sliding_window_view(strain, PIECE)[:: PIECE // 2]
        tapered = (pieces - pieces.mean(1, keepdims=True)) * np.hanning(PIECE)
        # The median of Welch's overlapping pieces: a glitch in one of them does not count.
        density = np.median(np.abs(np.fft.rfft(tapered)) ** 2, 0)

        def filtered(count: int) -> Array:
            at = np.fft.rfftfreq(count, 1 / RATE)
            found = 1 / np.sqrt(np.interp(at, np.fft.rfftfreq(PIECE, 1 / RATE), density))
            return np.where((at >= BAND[0]) & (at <= BAND[1]), found, 0.0)

        taper = np.minimum(1.0, np.arange(length) / TAPER)
        ends = np.sin(np.pi / 2 * np.minimum(taper, taper[::-1])) ** 2
        noise = np.fft.irfft(
            np.fft.rfft((strain - strain.mean()) * ends) * filtered(length), length
        )
        noise = noise[TAPER:-TAPER]
        return cls(noise / noise.std(), filtered(WINDOW))

    def part(self, begin: float, end: float) -> _Channel:
        """The noise between two fractions of its time."""
        count = len(self.noise)
        return _Channel(self.noise[int(begin * count) : int(end * count)], self.whitening)


def _windows(
    channels: Sequence[_Channel], count: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """Windows of noise at random times, every second one with a chirp.

    Noise is as likely backwards as forwards, and with either sign: so a second gives more of it.
    """
    labels = (np.arange(count) % 2).astype(np.int32)
    which = random.integers(len(channels), size=count)
    lengths = np.array([len(each.noise) for each in channels])
    begins = np.cumsum(lengths) - lengths
    begin = begins[which] + random.integers(0, lengths[which] - WINDOW + 1)
    step = random.choice([-1, 1], count)
    first = np.where(step > 0, begin, begin + WINDOW - 1)
    # Samples that are left out below are never gathered.
    places = first[:, None] + step[:, None] * np.arange(0, WINDOW, EACH)
    noise = np.concatenate([each.noise for each in channels])[places]
    noise *= random.choice([-1, 1], (count, 1))
    whitening = np.stack([each.whitening for each in channels])[which]
    chirps = np.fft.irfft(np.fft.rfft(_chirps(count, random)) * whitening, WINDOW)
    # In white noise of unit density, the ratio is the norm of the signal. This noise has unit
    # variance, but holds only a share of the frequencies.
    share = 2 * (BAND[1] - BAND[0]) / RATE
    ratio = random.uniform(*SNR, (count, 1)) / np.sqrt((chirps**2).sum(1, keepdims=True) * share)
    found = noise + labels[:, None] * (ratio * chirps)[:, ::EACH]
    found /= found.std(1, keepdims=True)
    return found[:, None].astype(np.float32), labels


def _chirps(count: int, random: np.random.Generator) -> Array:
    """Inspirals that end within the last half of a window.

    At a time tau before the merger, of chirp mass M as a time: the phase is
    -2 (tau / 5 M)^(5/8), and the amplitude grows as tau^(-1/4). Source: Cutler and Flanagan, 1994,
    equations 2.5 to 2.7.
    """
    mass = random.uniform(*MASSES, (count, 1)) * SOLAR_SECONDS
    end = random.uniform(0.5, 0.9, (count, 1)) * WINDOW
    tau = (end - np.arange(WINDOW)) / RATE
    # It ends at the last stable orbit of equal masses, where the formula stops being valid.
    total = mass * 4**0.6
    last = 5 / 256 * (6**1.5 * total) ** (8 / 3) / mass ** (5 / 3)
    before = np.maximum(tau, last)
    phase = random.uniform(0, 2 * np.pi, (count, 1)) - 2 * (before / (5 * mass)) ** 0.625
    return np.where(tau > last, before**-0.25 * np.cos(phase), 0.0)
