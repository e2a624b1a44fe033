"""Calibrates the scales of 8-bit products that `--precision float8` makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2

from xdsl.ir import Operation

from ...backends.reference import run_reference
from ...dialects import nn
from ...dialects.levels import NN
from ...ir.node_names import node_names
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.well_known import LEVEL_NAMES
from ...passes.narrow_products import NarrowProducts, source_of, split_gemms, write_scales
from ..driver.compile_anew import read_model
from ..driver.files import PROGRAM_FILE
from ..driver.program import signature
from ..driver.request import NARROW, Request
from .calibration import count
from .formats import FP8
from .histogram import Histogram
from .ranges import DEFAULT, METHODS, Method
from .samples import LABELS, Data, arrays_of, units_of, with_sizes

PRECISION = "float8"
"""The precision whose scales are calibrated."""

Seen = dict[tuple[str, int], dict[int, Histogram]]
"""The numbers of operands, by the name and the number of operands of a product."""


def with_calibrated_scales(request: Request, inputs: Data, method: Method = DEFAULT) -> Request:
    """A request in which the 8-bit products of the forward pass have scales that fit samples.

    The float model runs on all samples. Weights and constants keep the scales that follow from
    their values, and gradients keep theirs. Raises InputError.

    Args:
        inputs: samples for each input, as for `quantise`; an array named "target" is left out.
    """
    if request.precision != PRECISION:
        raise InputError(f"--calibrate without --precision {PRECISION}; need both")
    if request.file.endswith(PROGRAM_FILE):
        raise InputError(f"{request.path}: compiled already; --calibrate needs the model")
    seen = _seen(request, inputs)
    scales: list[str] = []
    for (name, operands), found in seen.items():
        exponents = [
            int(log2(METHODS[method](found[i], FP8, f"{name}: operand {i}").scale))
            if i in found
            else None
            for i in range(operands)
        ]
        scales.append(write_scales(tuple(exponents), name))
    narrow = NARROW[PRECISION].split(",")[:-1]
    own = str(NarrowProducts(scales=tuple(scales)).spec())
    passes = request.passes or ",".join(LEVEL_NAMES)
    if NarrowProducts.name in passes:
        raise InputError(f"--calibrate and the pipeline '{passes}'; need one of the two")
    return replace(request, precision=None, passes=",".join((*narrow, own, passes)))


def _seen(request: Request, inputs: Data) -> Seen:
    """The numbers that the operands of products have in all runs of the float model."""
    arrays, path = arrays_of(inputs, "inputs")
    arrays = {name: array for name, array in arrays.items() if name != LABELS}
    plain = replace(
        request, precision=None, passes="", train=None, keep=None, example=None, on_note=None
    )
    plain = with_sizes(plain, arrays, path, LABELS)
    program = read_model(plain, plain.extensions.context())
    if program.level != NN:
        raise InputError(
            f"{program.path}: a program of {program.level.name}; need one of {NN.name}"
        )
    # Its parts have the names that the pass finds.
    split_gemms(program.module)
    units = units_of(arrays, signature(program.module, program.path).inputs, path, LABELS)
    seen: Seen = {}
    first = 0

    def observe(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        if not isinstance(op, nn.ContractionOp) or not (names := node_names(op)):
            return
        found = seen.setdefault((names[-1], len(operands)), {})
        for i, (value, array) in enumerate(zip(op.operands, operands, strict=True)):
            if not isinstance(source_of(value), nn.ConstantOp | nn.LoadOp):
                what = f"operand {i} of {names[-1]!r}"
                count(found.setdefault(i, Histogram()), array, what, units, first)

    for run, first, left in units.runs():
        request.on_step(f"calibrate {first + left} of {units.count}")
        _ = run_reference(program.module, run, observe=observe)
    if not any(seen.values()):
        raise InputError(f"{program.path}: no product of activations that has a name")
    return {key: found for key, found in seen.items() if found}
