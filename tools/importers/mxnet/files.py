"""The files of a network of MXNet: the graph, and the weights of its last epoch beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ..files_beside import file_inside
from ..huge_weights import WeightCheck
from .params import read_params

SUFFIX = "-symbol.json"
"""How the names of graphs end. Before it is the prefix of all files of the network."""


def weights_beside(path: Path) -> Sequence[str]:
    """The file of weights of a graph: PREFIX-0012.params, of the last epoch there is."""
    prefix = path.name.removesuffix(SUFFIX)
    pattern = re.compile(re.escape(prefix) + r"-([0-9]{1,6})\.params")
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    found = [(int(match[1]), name) for name in names if (match := pattern.fullmatch(name))]
    return [max(found)[1]] if found else []


def stored(path: Path, place: str, check: WeightCheck) -> Mapping[str, Array]:
    """The arrays of the file of weights by name; none without such a file.

    Raises InputError.

    Args:
        place: the graph in messages.
        check: called with the size of the file before it is read.
    """
    found: dict[str, Array] = {}
    for name in weights_beside(path):
        file = file_inside(path.parent, name, place, "weights")
        check({name: file.stat().st_size})
        found |= read_params(file)
    return found
