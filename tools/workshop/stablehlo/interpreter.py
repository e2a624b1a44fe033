"""The tests of StableHLO's own interpreter, from a folder that the user names.

The folder is stablehlo/tests/interpret of the repository github.com/openxla/stablehlo. Each test is
a module whose operations `check.expect_*` compare values with expected ones. jaxlib reads it. Its
constants then become inputs, and the checked values become outputs.
"""

# pyright: basic
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ....ir.support.errors import InputError
from ....ir.support.number_kinds import is_floating
from ...importers.stablehlo.print_generic import new_context
from .cases import Array, Case, Refused, Tolerance, complex_of

SEPARATOR = "// -----"

CHECKS = ("expect_eq", "expect_eq_const", "expect_almost_eq", "expect_almost_eq_const")
"""The operations that check values, of those that the tests use."""

PARALLEL = "interpreter.run_parallel"
"""The operation that runs functions as processes of their own, between which values move."""

TOLERANCE = "0.0001"
"""The absolute tolerance of an operation that says none."""

_CONSTANT = re.compile(
    r"check\.(expect_(?:almost_)?eq_const) +(%[\w#]+),\s*(dense<[^>]*>) *: *(tensor<[\w<>]+>)"
    r"(?: *[,{] *tolerance *= *([\d.e+-]+)(?: *: *f64 *\})?)?"
)
_VALUES = re.compile(
    r"check\.(expect_(?:almost_)?eq) +(%[\w#]+), *(%[\w#]+)(?:, *tolerance *= *([\d.e+-]+))? *:"
    r" *(tensor<[\w<>]+>)"
)


def _generic_constant(found: re.Match[str]) -> str:
    name, value, elements, kind, allowed = found.groups()
    attributes = f"value = {elements} : {kind}, tolerance = {allowed or TOLERANCE} : f64"
    return f'"check.{name}"({value}) {{{attributes}}} : ({kind}) -> ()'


def _generic_values(found: re.Match[str]) -> str:
    name, one, other, allowed, kind = found.groups()
    attributes = f"tolerance = {allowed or TOLERANCE} : f64"
    return f'"check.{name}"({one}, {other}) {{{attributes}}} : ({kind}, {kind}) -> ()'


@dataclass(frozen=True)
class Source:
    """A test as its file has it.

    Attributes:
        name: the file and the number of the module in it.
    """

    name: str
    group: str
    text: str


@lru_cache(maxsize=1)
def sources(folder: Path) -> Sequence[Source]:
    """All tests of a folder, file by file. Raises InputError for a folder without any."""
    found = [
        Source(f"{path.stem}/{number}", path.stem, text)
        for path in sorted(folder.glob("*.mlir"))
        for number, text in enumerate(path.read_text().split(SEPARATOR))
        if "func.func" in text
    ]
    if not found:
        raise InputError(f"{folder}: no tests; need stablehlo/tests/interpret of openxla/stablehlo")
    return found


def case(source: Source) -> Case:
    """A test as a case: its constants are inputs, and what it checks are outputs.

    Raises Refused for a test that jaxlib does not read, that checks nothing, or that
    runs several processes.
    """
    if PARALLEL in source.text:
        raise Refused(f"{PARALLEL}: several processes, and a program of abele is one")
    text = _VALUES.sub(_generic_values, _CONSTANT.sub(_generic_constant, source.text))
    constant = _Test(text)
    expected = constant.return_checked()
    hoisted = _Test(text)
    hoisted.return_checked()
    inputs = hoisted.take_constants()
    arrays, tolerances = [each for each, _ in expected], [each for _, each in expected]
    bound = Case(source.name, source.group, constant.text, [], arrays, tolerances)
    return Case(source.name, source.group, hoisted.text, inputs, arrays, tolerances, bound)


class _Test:
    """A test that jaxlib has read."""

    def __init__(self, text: str) -> None:
        self.ir = import_module("jaxlib.mlir.ir")
        self.func = import_module("jaxlib.mlir.dialects.func")
        self.context = new_context()
        with self.context, self.ir.Location.unknown():
            try:
                self.module = self.ir.Module.parse(text)
            except self.ir.MLIRError as error:
                raise Refused(f"jaxlib: {' '.join(str(error).split())}") from None
        functions = [each for each in self.module.body.operations if "sym_name" in each.attributes]
        named = [each for each in functions if each.attributes["sym_name"].value == "main"]
        self.main = (named or functions)[0]
        self.block = self.main.regions[0].blocks[0]

    @property
    def text(self) -> str:
        """The module in the generic form."""
        return self.module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)

    def return_checked(self) -> list[tuple[Array, Tolerance]]:
        """Replace the checks of the test by a return of the checked values.

        Returns the expected array and the tolerance of each.
        """
        values, expected = [], []
        checks = [
            each for each in self.block.operations if each.operation.name.startswith("check.")
        ]
        if not checks:
            raise Refused("it checks no value")
        for each in checks:
            operation = each.operation
            if operation.name.removeprefix("check.") not in CHECKS:
                raise Refused(operation.name)
            held = operation
            if len(operation.operands) > 1:
                held = operation.operands[1].owner
                if held.name != "stablehlo.constant":
                    raise Refused(f"{operation.name} of two values that are computed")
            allowed = Tolerance()
            if "almost" in operation.name:
                allowed = Tolerance(operation.attributes["tolerance"].value)
            if "value" in held.attributes:
                values.append(operation.operands[0])
                expected.append((_array(held), allowed))
            operation.erase()
        with self.context, self.ir.Location.unknown():
            end = list(self.block.operations)[-1]
            with self.ir.InsertionPoint(end):
                self.func.ReturnOp(values)
            end.operation.erase()
            self._set_type([each.type for each in values])
        return expected

    def take_constants(self) -> list[Array]:
        """Turn the constants of the test into arguments, and return their arrays."""
        taken: list[Array] = []
        with self.context, self.ir.Location.unknown() as place:
            for each in list(self.block.operations):
                operation = each.operation
                if operation.name != "stablehlo.constant":
                    continue
                taken.append(_array(operation))
                argument = self.block.add_argument(operation.results[0].type, place)
                operation.results[0].replace_all_uses_with(argument)
                operation.erase()
            outputs = self.ir.FunctionType(self.main.attributes["function_type"].value).results
            self._set_type(outputs)
        return taken

    def _set_type(self, outputs: Sequence[Any]) -> None:
        inputs = [each.type for each in self.block.arguments]
        found = self.ir.FunctionType.get(inputs, outputs)
        self.main.attributes["function_type"] = self.ir.TypeAttr.get(found)


_COMPLEX = re.compile(r"value = (dense<[^>]*>) : (tensor<(?:\d+x)*)complex<(\w+)>>")
"""The elements of an attribute of complex numbers, which jaxlib's Python does not show."""


def _array(operation: Any) -> Array:
    """The array of the attribute `value` of an operation."""
    try:
        return elements(operation.attributes["value"])
    except TypeError:
        pass
    found = _COMPLEX.search(operation.get_asm(print_generic_op_form=True))
    if found is None:
        raise Refused("elements of another form")
    dense, shape, part = found.groups()
    floats, whole = f"{shape}{part}>", f"{shape}complex<{part}>>"
    text = (
        f"func.func @main() -> ({floats}, {floats}) {{ %0 = stablehlo.constant {dense} : {whole} "
        f"%1 = stablehlo.real %0 : ({whole}) -> {floats} "
        f"%2 = stablehlo.imag %0 : ({whole}) -> {floats} "
        f"return %1, %2 : {floats}, {floats} }}"
    )
    real, imag = _evaluated(operation.context, text)
    return complex_of(real, imag)


def _evaluated(context: Any, text: str) -> list[Array]:
    """The results of a program without arguments, by StableHLO's own interpreter."""
    stablehlo = import_module("jaxlib.mlir.dialects.stablehlo")
    ir = import_module("jaxlib.mlir.ir")
    with context, ir.Location.unknown():
        return [np.array(each) for each in stablehlo.eval_module(ir.Module.parse(text), [])]


def elements(attribute: Any) -> Array:
    """The array of a dense<...>. Raises Refused for a type that NumPy does not have."""
    kind = attribute.type
    try:
        if 0 not in kind.shape:
            return np.array(attribute)
    except TypeError:
        pass
    found = _dtype(str(kind.element_type))
    wide = "f32" if is_floating(found) else "i32"
    shape = "".join(f"{size}x" for size in kind.shape)
    text = (
        f"func.func @main() -> tensor<{shape}{wide}> {{ %0 = stablehlo.constant {attribute} "
        f"%1 = stablehlo.convert %0 : ({kind}) -> tensor<{shape}{wide}> "
        f"return %1 : tensor<{shape}{wide}> }}"
    )
    (value,) = _evaluated(attribute.context, text)
    return value.astype(found)


def _dtype(element: str) -> np.dtype[Any]:
    """The dtype of an element type of MLIR."""
    name = re.sub(r"^f(\d+)E", r"float\1_e", element).lower()
    name = re.sub(r"^(u?)i(\d+)$", r"\1int\2", name.replace("bf16", "bfloat16"))
    name = re.sub(r"^f(\d+)$", r"float\1", re.sub("^int1$", "bool", name))
    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        raise Refused(f"elements {element}") from None
