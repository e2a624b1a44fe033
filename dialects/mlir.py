"""The dialects of MLIR itself that stand above nn: their definitions are xDSL's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from xdsl.ir import Dialect

from ..ir.legality import row
from ..ir.level import Level
from ..ir.upstream import Context, ModuleOp
from ..ir.xdsl.walk import operations

_HOMES: Mapping[str, str] = {
    "arith": "xdsl.dialects.arith:Arith",
    "linalg": "xdsl.dialects.linalg:Linalg",
    "math": "xdsl.dialects.math:Math",
    "scf": "xdsl.dialects.scf:Scf",
    "tensor": "xdsl.dialects.tensor:Tensor",
}
"""Each dialect as "module:attribute"."""

MLIR_DIALECTS = tuple(_HOMES)
"""The names of the dialects."""


MLIR = Level(
    "linalg",
    (row("builtin func"), row(" ".join(MLIR_DIALECTS))),
    meaning="What compilers that use MLIR share: loops over elements, and scalar bodies.",
)
"""Where a program of these dialects begins, above all levels."""


def register_mlir(context: Context) -> None:
    """Let texts have operations of these dialects. Each is loaded when a text names it."""
    known = set(context.registered_dialect_names)
    for name in _HOMES:
        if name not in known:
            context.register_dialect(name, _loader(name))


def _loader(name: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute)

    return load


def has_mlir(module: ModuleOp) -> bool:
    """Whether a module has operations of these dialects."""
    names = {op.name for op in operations(module)}
    return any(name.partition(".")[0] in _HOMES for name in names)
