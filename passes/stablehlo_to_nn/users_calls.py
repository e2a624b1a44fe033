"""Calls of operations that extensions define: by a custom call, or in place of a composite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    StringAttr,
)
from xdsl.ir import Attribute, SSAValue

from ...dialects import stablehlo
from ...dialects.model_calls import ModelCall, called_operation
from ...ir.rules.values import Plain, plain
from .conversion import ToNn
from .matrices import CONFIG


def results_of_call(call: ModelCall, op: stablehlo.CustomCallOp, new: ToNn) -> Sequence[SSAValue]:
    """The results of the operation that a custom call names."""
    if call.is_pure and op.has_side_effect is not None and op.has_side_effect.value.data:
        raise new.unsupported(f"a side effect of @{call.name}", "results alone are")
    if op.called_computations not in (None, ArrayAttr([])):
        raise new.unsupported(f"a function that @{call.name} calls", "attributes are")
    for what, layouts in (("operand", op.operand_layouts), ("result", op.result_layouts)):
        _check_layouts(what, layouts, new)
    config = op.attributes.get(CONFIG) or op.backend_config
    if config in (None, StringAttr("")):
        config = DictionaryAttr({})
    if not isinstance(config, DictionaryAttr):
        raise new.unsupported(f"the backend_config {config}", "one with names is")
    return _results(call, op, config.data, new)


def results_in_place(call: ModelCall, op: stablehlo.CompositeOp, new: ToNn) -> Sequence[SSAValue]:
    """The results of the operation that has the name of a composite."""
    settings = op.composite_attributes
    return _results(call, op, settings.data if settings is not None else {}, new)


def _results(
    call: ModelCall,
    op: stablehlo.CustomCallOp | stablehlo.CompositeOp,
    settings: Mapping[str, Attribute],
    new: ToNn,
) -> Sequence[SSAValue]:
    given = {name: _setting(each) for name, each in settings.items()}
    types = [each.type for each in op.results]
    return new.add_several(called_operation(call, new.operands(op), given, types))


def _check_layouts(what: str, layouts: Attribute | None, new: ToNn) -> None:
    """Raise Unsupported unless tensors lie in memory row by row."""
    found = cast("ArrayAttr[Attribute]", layouts).data if isinstance(layouts, ArrayAttr) else ()
    for i, each in enumerate(found):
        order = list(each.get_values()) if isinstance(each, DenseIntOrFPElementsAttr) else []
        rows = sorted(order, reverse=True)
        if order != rows:
            raise new.unsupported(f"the layout {order} of {what} {i}", f"{rows} is")


def _setting(given: Attribute) -> Plain:
    """The value of an attribute. JAX writes lists as tensors."""
    if isinstance(given, DenseIntOrFPElementsAttr) and len(given.get_shape()) < 2:
        values = tuple(cast("Sequence[int | float]", given.get_values()))
        return values if given.get_shape() else values[0]
    return plain(cast(Attribute, given))
