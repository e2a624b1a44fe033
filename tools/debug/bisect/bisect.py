"""Read a model and find the first pass, rewrite and value that make it wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from numpy.typing import ArrayLike

from ....backends.target import Target
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass
from ....passes.pipelines import shorthand_from
from ...driver.arrays import Array, checked, read_npz, seeded
from ...driver.extensions.load import load_extensions
from ...driver.extensions.loaded import Extensions
from ...driver.lowering_advice import advising_on_lowering
from ...driver.on_step import OnStep, ignore_step
from ...driver.overrides import overrides
from ...driver.program import Model, plan_target, read_program, signature
from ...importers.huge_weights import refusing_huge_weights
from .first_pass import bisect_module
from .verdict import Verdict


def bisect(
    model: Model,
    target: str | Target | None = None,
    *,
    passes: str | Sequence[ModulePass] = "",
    inputs: str | os.PathLike[str] | Mapping[str, Array] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
    batch: int | None = None,
    load: Sequence[str | os.PathLike[str]] | Extensions = (),
    lenient: bool = False,
    watch: OnStep | None = None,
) -> Verdict:
    """Read a model and run it after every pass, until it is wrong.

    model, target, dims, values, batch, load, lenient: as for compile_model, but model cannot be a
    compiled program. passes: a pipeline as text, in which a level stands for the passes that lead
    there, or a sequence of passes; "" for all passes down to the machine. inputs: arrays by name,
    or an .npz file; missing ones get seeded values. watch: called with each step of the work.
    Raises InputError, and DoesNotFit.
    """
    extensions = load if isinstance(load, Extensions) else load_extensions(load)
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".abele"):
        raise InputError(f"{model}: compiled already, so there is no pass to test; need the model")
    context = extensions.context()
    on_step = watch or ignore_step
    on_step("read")
    check = refusing_huge_weights(target)
    read = partial(
        read_program, model, context, dict(dims or {}), check, batch=batch, lenient=lenient
    )
    program, replaced = read(values=values), dict[str, Array]()
    if inputs is not None:
        names = {*(values or {}), *(each.name for each in signature(program.module).inputs)}
        replaced = overrides(model, inputs, names)
    if replaced:
        program = read(values={**(values or {}), **replaced})
    machine = plan_target(program.module, target, program.path)
    if isinstance(passes, str):
        spec = passes or shorthand_from(program.level)
        passes = extensions.pipeline(spec, machine.spelling()) if spec else ()
    if not passes:
        raise InputError(f"{program.path}: at {program.level}, so there is no pass to test")
    tensors = signature(program.module, program.path).inputs
    given = dict[str, Array]()
    if inputs is not None:
        arrays = inputs if isinstance(inputs, Mapping) else read_npz(inputs, tensors, replaced)
        given.update((name, array) for name, array in arrays.items() if name not in replaced)
    values = checked({**seeded(tensors, seed), **given}, tensors)
    with advising_on_lowering(passes, extensions):
        return bisect_module(program.module, context, passes, values, machine, on_step)
