"""All importers of ATen operators, by the kind of operator."""

from __future__ import annotations

from .aten_node import Importer
from .numbers import NUMBERS
from .ops_control import HIGHER_ORDER
from .ops_creation import CREATIONS
from .ops_elementwise import ELEMENTWISE
from .ops_images import IMAGES
from .ops_indexed import INDEXED
from .ops_matrices import MATRICES
from .ops_movement import MOVEMENTS
from .ops_normalise import NORMALISATIONS
from .ops_products import PRODUCTS
from .ops_recurrent import RECURRENT
from .ops_reductions import REDUCTIONS
from .ops_sized import read_sized
from .ops_windows import WINDOWS

SECTIONS: dict[str, dict[str, Importer]] = {
    "on elements": ELEMENTWISE,
    "products": PRODUCTS,
    "factors of matrices": MATRICES,
    "windows": WINDOWS,
    "reductions, sorts and losses": REDUCTIONS,
    "normalisation": NORMALISATIONS,
    "movement and shapes": MOVEMENTS,
    "new tensors": CREATIONS,
    "indices": INDEXED,
    "images": IMAGES,
    "recurrent layers": RECURRENT,
}
"""The importers of the namespace aten, by the kind of operator."""

OPERATORS: dict[str, Importer] = {
    name: importer for section in SECTIONS.values() for name, importer in section.items()
}
"""The importers of the namespace aten, by name, or by name and overload where that decides."""

ATEN = "aten."


def importer_of(operator: str) -> Importer | None:
    """The importer of an operator such as "aten.max.dim"; None if there is none.

    An operator with an underscore at its end writes its result into its first operand.
    """
    if operator in NUMBERS:
        return NUMBERS[operator]
    whole = operator.removeprefix(ATEN)
    name, _, overload = whole.partition(".")
    if f"{ATEN}{name}" in NUMBERS:
        return NUMBERS[f"{ATEN}{name}"]
    if whole == operator:
        return None
    for each in (name, name.removesuffix("_") if is_in_place(name) else name):
        found = OPERATORS.get(f"{each}.{overload}") or OPERATORS.get(each)
        if found is not None:
            return found
    return None


def sized_importer_of(operator: str) -> Importer | None:
    """The importer of an operator or of one with graphs; None if there is none.

    It takes tensors whose size only a run knows too.
    """
    importer = HIGHER_ORDER.get(operator) or importer_of(operator)
    name = operator.removeprefix(ATEN).partition(".")[0]
    is_of_tensors = operator.startswith(ATEN) and f"{ATEN}{name}" not in NUMBERS
    if importer is None or not is_of_tensors:
        return importer
    plain = name.removesuffix("_") if is_in_place(name) else name
    return lambda node: read_sized(node, plain, importer)


def is_in_place(name: str) -> bool:
    """Whether an operator of this name, without namespace and overload, changes its operand."""
    return name.endswith("_") and not name.startswith("__")
