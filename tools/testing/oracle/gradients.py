"""The relation between the gradients of a program and those of the program that passes made of it.

check_pass("canonicalize", relation=same_gradients)
"""

from __future__ import annotations

from collections.abc import Callable

from ....backends.faults import IndexFault
from ....dialects.levels import NN
from ....ir.errors import InputError
from ....passes.differentiate import Differentiate
from ....passes.gradients.program import entry_of, inputs_of, outputs_of, states_of
from ....passes.gradients.way import is_float
from ..generators.program import Program
from .oracles import difference, run
from .relations import NotApplicable, expected_of


def same_gradients(
    before: Program, after: Program, compiled: Callable[[Program], Program]
) -> str | None:
    """The program after the passes has the gradients of the program before.

    Those of its first output of floats, with respect to all inputs and states of floats that both
    programs have. Applies to nn. Where a program is not smooth, at ties and at the edges of
    functions, two programs with equal results may have other gradients; so use it on inputs that
    are not likely to be there.
    """
    if before.level != NN or after.level != NN:
        raise NotApplicable("gradients are taken at nn")
    names = _sources(before) & _sources(after)
    outputs = [name for name in _outputs(before) if name in _outputs(after)]
    if not names or not outputs:
        raise NotApplicable("the program has no floats to differentiate")
    task = Differentiate(loss=outputs[0], of=tuple(sorted(names)))
    first, second = _differentiated(before, task), _differentiated(after, task)
    expected = expected_of(first)
    try:
        found = run(second)
    except IndexFault as fault:
        raise NotApplicable(f"the program has a fault: {fault}") from None
    wrong = difference(expected, found)
    return None if wrong is None else f"differentiated: {wrong.text}"


def _differentiated(program: Program, task: Differentiate) -> Program:
    made = Program(program.module.clone(), program.context, program.inputs, program.target)
    try:
        task.apply(made.context, made.module)
    except InputError as error:
        raise NotApplicable(str(error)) from None
    return made


def _sources(program: Program) -> set[str]:
    """The names of the inputs and states of floats."""
    main = entry_of(program.module)
    if main is None:
        return set()
    inputs = {name for name, value in inputs_of(main).items() if is_float(value)}
    return inputs | set(states_of(main))


def _outputs(program: Program) -> list[str]:
    main = entry_of(program.module)
    if main is None:
        return []
    return [name for name, value in outputs_of(main).items() if is_float(value)]
