"""Read a program from a file or a model: its level, its target, its inputs and outputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ...backends.levels import initial_states
from ...backends.reference import tensor_kind
from ...backends.target import DEFAULT_TARGET, Target, named_target, resolve_target
from ...dialects.block_inputs import BLOCK_INPUTS, BlockInput, block_inputs
from ...dialects.call_graph import check_nested_calls
from ...dialects.dtypes import numpy_dtype
from ...dialects.host import (
    ARGUMENT_SIZES,
    COLUMNS,
    KEPT_SIZES,
    LENGTHS,
    RESULT_SIZES,
    TEXTS,
    ArgumentSize,
    HostTexts,
    KeptSize,
    LengthInput,
    ResultSize,
    argument_sizes,
    host_names,
    host_texts,
    kept_sizes,
    length_inputs,
    result_sizes,
)
from ...dialects.levels import NN, PARTITION, SOURCES, level_of
from ...dialects.partition import PartitionTensor
from ...dialects.steps import Input, Output, Sync
from ...dialects.tensor_limits import check_tensor_limits
from ...ir.level import Level
from ...ir.provenance import place
from ...ir.support.errors import InputError, naming_memory_errors
from ...ir.upstream import ModuleOp, VerifyException
from ...ir.verify import verify
from ...ir.well_known import ENTRY
from ...passes.plans.planned import TARGET
from ..importers.files_beside import file_inside
from ..importers.front_end import FrontEnd, Reading
from ..importers.front_ends import Model, refuse_options
from ..importers.notes import write_notes
from .arrays import Tensor
from .signature import Signature


@dataclass(frozen=True)
class ReadProgram:
    """A module that was read and verified.

    Attributes:
        path: the name of the program in messages.
        source: the module of a level above nn from which the module was made, or None.
    """

    module: ModuleOp
    level: Level
    path: str
    source: ModuleOp | None = None


def read_program(model: Model, front_end: FrontEnd, reading: Reading) -> ReadProgram:
    """Read the program of a model. Raises InputError, and what the reading's check raises."""
    refuse_options(front_end, reading)
    in_memory = not isinstance(model, str | os.PathLike)
    # With a marker, looking for the names may mean to read the model twice.
    if not in_memory and front_end.files is not None and not front_end.marker:
        path = Path(model)
        for name in front_end.files(path):
            _ = file_inside(path.parent, name, str(path))
    with naming_memory_errors(f"reading {'the model' if in_memory else reading.place}"):
        module = front_end.read(model, reading)
        if reading.weights is not None:
            reading.notes.extend(reading.weights.settle(module, reading.place))
    write_notes(module, reading.notes)
    return ReadProgram(module, verified_level(module, reading.place), reading.place)


def verified_level(module: ModuleOp, path: str) -> Level:
    """The lowest level in a module. The module must verify, and all of it must be on that level.

    Raises InputError.
    """
    level = level_of(module)
    try:
        verify(module, level)
    except VerifyException as error:
        message = str(error)
        raise InputError(message if path in message else f"{path}: {message}") from None
    check_nested_calls(module, entry(module, path).sym_name.data, path)
    return level


def entry(module: ModuleOp, path: str) -> FuncOp:
    """The function at which a run begins. Raises InputError if there is none."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == ENTRY:
            return op
    raise InputError(f"{path}: no function @{ENTRY}; need one, because a run begins there")


def target_of(module: ModuleOp, given: str | Target | None, path: str) -> Target:
    """The target to compile for: the module's own, else the default.

    A given target replaces the module's own while nothing is planned. After that, both must be
    equal. Raises InputError.
    """
    own = module.attributes.get(TARGET)
    if own is None or (given is not None and not _is_planned(module)):
        return _resolved(DEFAULT_TARGET if given is None else given)
    if not isinstance(own, StringAttr):
        raise InputError(f"{path}: {TARGET} is {own}; need the name of a target as text")
    target = named_target(own.data)
    check_target(target, given, path)
    _check_syncs(module, target, path)
    return target


def _check_syncs(module: ModuleOp, target: Target, path: str) -> None:
    """Raise InputError for a sync that names a chip which the target lacks."""
    for op in module.walk():
        if isinstance(op, Sync) and op.chips is not None and op.chips.last >= target.chips:
            raise InputError(
                f"{path}: {op.name} at {place(op)}: chip {op.chips.last}; target {target.called} "
                f"has {target.chips}"
            )


def plan_target(module: ModuleOp, given: str | Target | None, path: str) -> Target:
    """The target to compile for, which is also written on an nn module, so that dumps keep it.

    As target_of, but a module with plans needs a target of its own, unless one is given.
    Raises InputError.
    """
    target = target_of(module, given, path)
    if not _is_planned(module) or (given is not None and TARGET not in module.attributes):
        module.attributes[TARGET] = StringAttr(target.spelling())
    return target


def _is_planned(module: ModuleOp) -> bool:
    return level_of(module) != NN or any("plan" in op.attributes for op in module.walk())


def check_target(own: Target, given: str | Target | None, path: str) -> None:
    """Raise InputError unless a given target is the one that a program was planned for."""
    if given is not None and _resolved(given) != own:
        asked = given if isinstance(given, str) else given.spelling()
        raise InputError(
            f"{path}: planned for target {own.spelling()}, so it cannot run on {asked}; leave out "
            "the target, or begin with the model it was made from"
        )


def _resolved(target: str | Target) -> Target:
    return resolve_target(target) if isinstance(target, str) else target


# Inputs and outputs


def signature(module: ModuleOp, path: str = "<module>") -> Signature:
    """The inputs and outputs of a module of any level. Raises InputError."""
    main = entry(module, path)
    if level_of(module).form in (*SOURCES, NN, PARTITION):
        taken, given = main.function_type.inputs.data, main.function_type.outputs.data
        inputs = map(_tensor, host_names(main, "arg_names", len(taken)), taken)
        results = map(_tensor, host_names(main, "result_names", len(given)), given)
    else:
        ops = tuple(main.walk())
        inputs = (_tensor(o.host_name.data, o.tensor) for o in ops if isinstance(o, Input))
        results = (_tensor(o.host_name.data, o.tensor) for o in ops if isinstance(o, Output))
    texts = host_texts(module)
    taken = _told(_distinct(inputs, path), texts, texts.inputs, path)
    given = _told(_distinct(results, path), texts, texts.results, path)
    _check_columns(given, texts, path)
    sizes = result_sizes(module)
    _check_sizes(sizes, given, path)
    hidden = {each.size for each in sizes}
    outputs = tuple(t for t in given if t.name not in hidden)
    blocks = block_inputs(module)
    taken = _with_lists(taken, blocks, path)
    lengths, padded, kept = length_inputs(module), argument_sizes(module), kept_sizes(module)
    if not lengths and not padded and not kept:
        return Signature(taken, outputs, sizes, blocks=blocks)
    _check_lengths(lengths, padded, taken, path)
    held = _first_held(module, lengths, kept, path)
    open_axes = {t.name: tuple(s.axis for s in padded if s.argument == t.name) for t in taken}
    taken = tuple(replace(t, open_axes=(*t.open_axes, *open_axes[t.name])) for t in taken)
    return Signature(taken, outputs, sizes, lengths, padded, kept, held, blocks)


def _with_lists(
    inputs: tuple[Tensor, ...], blocks: Sequence[BlockInput], path: str
) -> tuple[Tensor, ...]:
    """The inputs as the host sees them: lists of blocks, which may be shorter than there is room.

    Raises InputError for buckets that are no inputs of the program.
    """
    known = {tensor.name: tensor for tensor in inputs}
    hidden: set[str] = set()
    shown: dict[str, Tensor] = {}
    for each in blocks:
        for tier, (values, *indices) in zip(each.lists.tiers, each.tier_names, strict=True):
            places = (tier.bands, tier.parts, tier.room)
            tensors = [known.get(name) for name in (values, *indices)]
            shapes = [() if tensor is None else tensor.shape for tensor in tensors]
            if shapes[0][:3] != places or len(shapes[0]) != 5 or shapes[1:] != [places, places]:
                raise InputError(f"{path}: {BLOCK_INPUTS}: need inputs {values!r} of {places}")
            hidden |= {values, *indices}
        values, *indices = each.names
        most, index = each.lists.most, numpy_dtype(each.index)
        kind = known[values]
        shown[values] = Tensor(values, (most, *kind.shape[3:]), kind.dtype, (0,))
        shown |= {name: Tensor(name, (most,), index, (0,)) for name in indices}
    found = (shown.get(t.name, t) for t in inputs if t.name in shown or t.name not in hidden)
    return tuple(found)


def _first_held(
    module: ModuleOp, lengths: Sequence[LengthInput], kept: Sequence[KeptSize], path: str
) -> dict[str, int]:
    """How many elements of states exist before the first run, by the state that holds the number.

    Raises InputError for a size of what is no state, or with what is no length.
    """
    if not kept:
        return {}
    states, bounds = initial_states(module), {each.name for each in lengths}
    for each in kept:
        state, held = states.get(each.state), states.get(each.held)
        if state is None or not 0 <= each.axis < state.ndim:
            raise InputError(f"{path}: {KEPT_SIZES}: no axis {each.axis} of a state {each.state!r}")
        if held is None or held.shape or held.dtype.kind not in "iu":
            raise InputError(
                f"{path}: {KEPT_SIZES}: need a state {each.held!r}, one integer without axes"
            )
        missing = [name for name in each.lengths if name not in bounds]
        if missing:
            raise InputError(f"{path}: {KEPT_SIZES}: {missing[0]!r} is no length")
    return {each.held: int(states[each.held]) for each in kept}


def _told(
    tensors: tuple[Tensor, ...], texts: HostTexts, names: Sequence[str], path: str
) -> tuple[Tensor, ...]:
    """Inputs or results, with the strings that they hold and the names of their columns.

    Args:
        names: of those that hold strings.
    """
    if not names and not texts.columns:
        return tensors
    for name in names:
        found = [each for each in tensors if each.name == name]
        if not found or found[0].dtype != np.int32:
            raise InputError(f"{path}: {TEXTS}: need an input or a result {name!r} of i32")
    return tuple(
        replace(
            each,
            texts=texts.table if each.name in names else None,
            columns=texts.columns.get(each.name, ()),
        )
        for each in tensors
    )


def _check_columns(results: Sequence[Tensor], texts: HostTexts, path: str) -> None:
    """Raise InputError for columns of a result that does not have as many."""
    for name, columns in texts.columns.items():
        found = [each for each in results if each.name == name]
        if not found or found[0].shape[-1:] != (len(columns),):
            raise InputError(f"{path}: {COLUMNS}: need a result {name!r} with {len(columns)}")


def _check_lengths(
    lengths: Sequence[LengthInput],
    padded: Sequence[ArgumentSize],
    inputs: Iterable[Tensor],
    path: str,
) -> None:
    """Raise InputError for a length that is no input, or of something that is none."""
    known = {tensor.name: tensor for tensor in inputs}
    for each in lengths:
        tensor = known.get(each.name)
        if tensor is None or tensor.shape or tensor.dtype != np.int32:
            raise InputError(f"{path}: {LENGTHS}: need an input {each.name!r}, an i32 without axes")
        if not 0 <= each.least <= each.most:
            raise InputError(
                f"{path}: {LENGTHS}: {each.name!r} has bounds {each.least}..{each.most}"
            )
    bounds = {each.name: each for each in lengths}
    for each in padded:
        tensor = known.get(each.argument)
        if tensor is None or not 0 <= each.axis < len(tensor.shape):
            raise InputError(
                f"{path}: {ARGUMENT_SIZES}: no axis {each.axis} of an input {each.argument!r}"
            )
        missing = [name for name in each.lengths if name not in bounds]
        if missing:
            raise InputError(f"{path}: {ARGUMENT_SIZES}: {missing[0]!r} is no length")
        most = each.offset + sum(bounds[name].most for name in each.lengths)
        if each.offset < 0 or most > tensor.shape[each.axis]:
            raise InputError(
                f"{path}: {ARGUMENT_SIZES}: {most} elements along axis {each.axis} of {tensor}"
            )


def _check_sizes(sizes: Iterable[ResultSize], results: Iterable[Tensor], path: str) -> None:
    """Raise InputError for a size, or the owner of a size, that is not a result."""
    known = {tensor.name: tensor for tensor in results}
    for each in sizes:
        result, size = known.get(each.result), known.get(each.size)
        if result is None or not 0 <= each.axis < len(result.shape):
            raise InputError(
                f"{path}: {RESULT_SIZES}: no axis {each.axis} of a result {each.result!r}"
            )
        if size is None or size.shape or size.dtype.kind not in "iu":
            raise InputError(
                f"{path}: {RESULT_SIZES}: need a result {each.size!r}, one integer without axes"
            )


def _distinct(tensors: Iterable[Tensor], path: str) -> tuple[Tensor, ...]:
    found: dict[str, Tensor] = {}
    for tensor in tensors:
        if tensor.name in found:
            raise InputError(f"{path}: two inputs or two outputs are called {tensor.name!r}")
        found[tensor.name] = tensor
    return tuple(found.values())


def _tensor(name: str, type_: Attribute) -> Tensor:
    plain = type_.tensor if isinstance(type_, PartitionTensor) else type_
    try:
        shape, dtype = tensor_kind(plain)
        check_tensor_limits(shape, dtype.itemsize)
        return Tensor(name, shape, dtype)
    except ValueError as error:
        raise InputError(f"@{ENTRY}: {name!r}: {error}") from None
