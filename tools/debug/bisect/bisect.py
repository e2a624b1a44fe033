"""Read a model and find the first pass, rewrite and value that make it wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....dialects.levels import level_of
from ....ir.pass_manager import parse_pipeline
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass
from ....passes.pipelines import FROM_SOURCES, PASSES
from ...driver.arrays import Array, checked, read_npz, seeded
from ...driver.block_buckets import bucket_blocks
from ...driver.compile_anew import read_model, tailored, with_chosen
from ...driver.files import PROGRAM_FILE
from ...driver.lowering_advice import advising_on_lowering
from ...driver.overrides import overrides, refuse_other_values
from ...driver.program import signature
from ...driver.request import Request
from .first_pass import bisect_module
from .verdict import Verdict


def bisect(
    request: Request,
    inputs: str | os.PathLike[str] | Mapping[str, Array] | None = None,
    seed: int = 0,
    passes: Sequence[ModulePass] = (),
) -> Verdict:
    """Read a model and run it after every pass, until it is wrong.

    Raises InputError, and DoesNotFit.

    Args:
        request: for a model that is not compiled yet.
        inputs: arrays by name, or an .npz file, which also give sizes to free dimensions; missing
            inputs get seeded values.
        passes: replace the request's passes.
    """
    if request.file.endswith(PROGRAM_FILE):
        raise InputError(
            f"{request.path}: compiled already, so there is no pass to test; need the model"
        )
    if request.example is None:
        request = replace(request, example=inputs)
    request = request.settled()
    if not passes:
        request = with_chosen(request)
    extensions, context = request.extensions, request.extensions.context()
    request.on_step("read")
    program, replaced = read_model(request, context), dict[str, Array]()
    bound = request.values or {}
    if inputs is not None:
        refuse_other_values(inputs, bound)
        known = {*bound, *(t.name for t in signature(program.module).inputs)}
        replaced = overrides(request.model, inputs, known)
    if replaced:
        program = read_model(request.with_values(replaced), context)
    machine = request.machine(program)
    bucket_blocks(program, context, machine.spelling())
    spec = request.passes or extensions.shorthand_from(program.level)
    if not passes and spec:
        passes = extensions.pipeline(spec, machine.spelling(), program.level)
        passes = tailored(passes, request, program, machine)
    if not passes:
        raise InputError(f"{program.path}: at {program.level}, so there is no pass to test")
    taken = signature(program.module, program.path)
    tensors = taken.inputs
    given = dict[str, Array]()
    if inputs is not None:
        apart = {*bound, *replaced}
        arrays = inputs if isinstance(inputs, Mapping) else read_npz(inputs, tensors, apart)
        given.update((name, array) for name, array in arrays.items() if name not in apart)
    blocks = taken.seeded_blocks(seed)
    values = taken.encoded(checked({**seeded(tensors, seed), **blocks, **given}, tensors))
    module = program.module
    if program.source is not None and not request.keep:
        # The passes that have led to nn may be wrong too.
        lead = ",".join(FROM_SOURCES[level_of(program.source)])
        module, passes = program.source, (*parse_pipeline(lead, PASSES), *passes)
    with advising_on_lowering(passes, extensions):
        return bisect_module(module, context, passes, values, machine, request.on_step)
