"""Finds the first value of a training step that is not finite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation

from ...backends.evaluate.partition import Stacked, run_partition
from ...backends.reference import run_reference
from ...dialects import nn, partition
from ...dialects.control import RepeatOp
from ...dialects.levels import NN, PARTITION
from ...ir.phases import FORWARD, Phases
from ...ir.provenance import place
from ...ir.support.arrays import Array
from ...ir.support.number_formats import FORMATS
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp
from .dump.nodes import node_names, nodes_of

if TYPE_CHECKING:
    from .executable import Executable
    from .training import Settings


@dataclass(frozen=True)
class NotFinite:
    """The first value of a run that is not finite.

    Attributes:
        text: what makes it, in words.
        step: the step of the run in which it is made, from 0; None if that is not known.
        nodes: the nodes of the operation of partition that makes it; () if none is known.
        element: the name of its type; "" if no operation of partition is known.
        is_scaled: whether it depends on gradients, and so on the loss scale.
    """

    text: str
    step: int | None = None
    nodes: tuple[str, ...] = ()
    element: str = ""
    is_scaled: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether a type of 16 or fewer bits is too small for it."""
        return self.element not in ("", str(f32))


class _Found(Exception):
    """Raised to end a run at the first value that is not finite."""

    def __init__(self, found: NotFinite) -> None:
        super().__init__(found.text)
        self.found = found


def advice(found: NotFinite | None, settings: Settings) -> str:
    """What may help against values that are not finite, in words.

    Args:
        found: the first of them, if it is known.
    """
    others = "a smaller learning rate or clip_norm"
    if found is None or not found.is_narrow:
        return f"{others[:1].upper()}{others[1:]} may help"
    format_ = FORMATS.get(found.element)
    limit = "" if format_ is None else f"{found.element} holds numbers up to {format_.largest:g}: "
    helps = ["bfloat16 (--precision bfloat16)"] if found.element != "bf16" else []
    if found.is_scaled and settings.loss_scale > 1:
        helps.append(f"a loss_scale below {settings.loss_scale:g}, or automatic scaling")
    if found.nodes:
        kept = f'narrow-floats{{keep="{found.nodes[0]}"}}'
        helps.append(f"float32 for this operation (in the pipeline, {kept})")
    return f"{limit}{', '.join((*helps, others))} may help"


def all_finite(array: Array) -> bool:
    """Whether all elements are finite numbers."""
    if not is_floating(array.dtype):
        return True
    # One pass without an array of truth values: a sum is finite only if all that is added is.
    with np.errstate(all="ignore"):
        total = float(array.sum(dtype=np.float64))
    return bool(np.isfinite(total)) or bool(np.isfinite(array.astype(np.float64)).all())


def first_not_finite(
    exe: Executable, inputs: Mapping[str, Array], states: Mapping[str, Array]
) -> NotFinite | None:
    """The first value of a run of a program of nn that is not finite, as far as it can be found.

    Operations of partition compute the bits of the machine. If it is a value of 16 bits, its
    operation of partition is named. Otherwise the operation of nn says more, if the reference finds
    one: it may round in another order than the machine.
    """
    module = exe.module_at(NN.name)
    found = _given(_loop_of_runs(module), inputs, states)
    if found is None and PARTITION.name in exe.levels:
        known = node_names(op.location for op in module.walk())
        found = _made_in_bits(exe.module_at(PARTITION.name), inputs, states, known)
        if found is not None and found.is_narrow:
            return found
    if found is None or found.element:
        exact = _made(module, inputs, states) if _has_states(module, states) else None
        return exact or found
    return found


def _given(
    loop: RepeatOp | None, inputs: Mapping[str, Array], states: Mapping[str, Array]
) -> NotFinite | None:
    """The first input or state that is not finite before a run."""
    for name, array in inputs.items():
        for step, batch in enumerate([array] if loop is None else array):
            if not all_finite(batch):
                when = "before the step" if loop is None else f"in {_batch(step, loop)}"
                return NotFinite(f"input {name!r} holds {_wrong(batch)} {when}", step)
    for name, array in states.items():
        if not all_finite(array):
            what = "step" if loop is None else "run"
            return NotFinite(f"state {name!r} holds {_wrong(array)} before the {what}")
    return None


def _made(
    module: ModuleOp, inputs: Mapping[str, Array], states: Mapping[str, Array]
) -> NotFinite | None:
    """The first operation of nn that makes an infinity or NaN of finite operands."""
    steps = _Steps(_loop_of_runs(module))

    def observe(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        steps.count(op)
        for values in results:
            if not all_finite(values) and all(map(all_finite, operands)) and operands:
                raise _Found(
                    NotFinite(f"{op.name} at {place(op)} makes {_wrong(values)} of finite values")
                )

    return steps.found(lambda: run_reference(module, inputs, states, observe=observe))


def _made_in_bits(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    states: Mapping[str, Array],
    known: Collection[str],
) -> NotFinite | None:
    """The first operation of partition that makes an infinity or NaN of finite inputs and states.

    Args:
        known: the names of the nodes of nn.
    """
    steps, phases = _Steps(_loop_of_runs(module)), Phases.of(module)

    def observe(op: Operation, operands: Sequence[Stacked], results: Sequence[Stacked]) -> None:
        steps.count(op)
        for result in results if isinstance(op, partition.ComputeOp) else ():
            values = result.values
            if not all_finite(values):
                element = str(result.tensor.element_type)
                text = f"the operation at {place(op)} makes {_wrong(values)} of {element}"
                is_scaled = phases.phase(op) != FORWARD
                raise _Found(
                    NotFinite(text, None, nodes_of(op.location, known), element, is_scaled)
                )

    return steps.found(lambda: run_partition(module, inputs, states, observe))


def _has_states(module: ModuleOp, states: Mapping[str, Array]) -> bool:
    """Whether a module of nn has these states, in the types of these arrays."""
    known = {op.sym_name.data: op.value.array for op in module.ops if isinstance(op, nn.StateOp)}
    return all(name in known and known[name].dtype == a.dtype for name, a in states.items())


def _loop_of_runs(module: ModuleOp) -> RepeatOp | None:
    """The loop whose iterations are the steps of a run, if there is one."""
    loops = (op for op in module.walk() if isinstance(op, RepeatOp))
    return next((op for op in loops if op.runs is not None), None)


@dataclass
class _Steps:
    """The steps that a run has begun.

    Attributes:
        seen: how often each operation of the loop's block was seen: once in a step.
    """

    loop: RepeatOp | None
    seen: Counter[Operation] = field(default_factory=Counter[Operation])

    def count(self, op: Operation) -> None:
        """Count an operation."""
        if self.loop is not None and op.parent is self.loop.body.block:
            self.seen[op] += 1

    def found(self, run: Callable[[], object]) -> NotFinite | None:
        """What a run raises as found, with the step that it was in; None if it raises nothing."""
        try:
            with np.errstate(all="ignore"):
                run()
        except _Found as error:
            found, begun = error.found, max(self.seen.values(), default=0)
            if self.loop is None or not begun:
                return found
            when = _batch(begun - 1, self.loop)
            return replace(found, text=f"{found.text} in {when}", step=begun - 1)
        return None


def _batch(step: int, loop: RepeatOp) -> str:
    return f"batch {step + 1} of {loop.iterations} of the run"


def _wrong(values: Array) -> str:
    wide = values.astype(np.float64).ravel()
    return str(wide[~np.isfinite(wide)][0])
