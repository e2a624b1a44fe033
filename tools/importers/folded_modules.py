"""Batch normalisation and dropout that an exporter has folded away, as far as a file shows it.

Exporters rewrite models for inference: a batch normalisation becomes part of the convolution before
it, and dropout becomes nothing. Training such a file trains another model than the user's. A file
shows it where it says of a node which module it was made in, and of which class that module is.
Where nothing is left of a module, nothing can be said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

SHOWN = 3
"""The number of modules that a warning names."""

HOW_TO_EXPORT = (
    "to train them, export in training mode: "
    "torch.export.save(torch.export.export(module.train(), (x,)), 'net.pt2')"
)


@dataclass(frozen=True)
class Called:
    """A node, and the module that it was made in.

    Attributes:
        module: the path of the innermost module.
        kind: the class of this module, such as torch.nn.modules.dropout.Dropout.
        operator: the operator of the node, in any form that contains its name.
    """

    module: str
    kind: str
    operator: str


@dataclass(frozen=True)
class Layer:
    """A kind of layer that acts in training only, or otherwise than in inference.

    Attributes:
        home: how the names of its classes begin.
        own: parts of the names of operators that compute it.
        instead: parts of the names of operators that take its place when it is folded away.
        effect: what training does without it.
    """

    home: str
    own: tuple[str, ...]
    instead: tuple[str, ...]
    effect: str


LAYERS: Mapping[str, Layer] = {
    "batch normalisation": Layer(
        "torch.nn.modules.batchnorm.",
        ("batch_norm", "batchnorm"),
        ("conv", "gemm", "matmul", "addmm", "linear"),
        "training changes the weights that it is folded into, and learns no statistics",
    ),
    "dropout": Layer(
        "torch.nn.modules.dropout.",
        ("dropout", "bernoulli", "rand"),
        ("identity", "clone", "alias"),
        "training drops nothing there",
    ),
}
"""The kinds of layers, by what warnings call them."""


def folded_modules(calls: Iterable[Called]) -> dict[str, list[str]]:
    """The modules that are folded away, by kind of layer."""
    operators: dict[tuple[str, str], list[str]] = {}
    for each in calls:
        operators.setdefault((each.module, each.kind), []).append(each.operator.lower())
    found: dict[str, list[str]] = {}
    for what, layer in LAYERS.items():
        for (module, kind), names in operators.items():
            if kind.startswith(layer.home) and _is_folded(layer, names):
                found.setdefault(what, []).append(module)
    return found


def _is_folded(layer: Layer, names: Sequence[str]) -> bool:
    return not _has(names, layer.own) and _has(names, layer.instead)


def _has(names: Sequence[str], parts: Sequence[str]) -> bool:
    return any(part in name for name in names for part in parts)


def warnings_of(found: Mapping[str, Sequence[str]], place: str) -> Iterator[str]:
    """A line for the user for each kind of layer that is folded away.

    Args:
        found: the modules, by kind of layer.
        place: the model's name in messages.
    """
    for what, modules in found.items():
        named = ", ".join(modules[:SHOWN]) + (", ..." if len(modules) > SHOWN else "")
        count = f"{len(modules):,} module{'' if len(modules) == 1 else 's'}"
        yield (
            f"warning: {place}: the exporter has folded {what} away in {count} ({named}): "
            f"{LAYERS[what].effect}; {HOW_TO_EXPORT}"
        )
