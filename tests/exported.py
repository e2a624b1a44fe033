"""Programs of nn in other dialects: what they compute, beside what nn computes."""

from collections.abc import Mapping

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings

from abele.backends.reference import run_reference
from abele.dialects.dtypes import numpy_dtype
from abele.ir.upstream import ModuleOp
from abele.tools.testing import Program, bounded_run, difference
from abele.tools.testing.oracle.oracles import Run


def drawn(examples: int):
    """Settings for a test of so many programs, always the same ones. Failures are not shrunk."""
    chosen = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: seed(0)(chosen(test))


def entry_of(module: ModuleOp):
    """@main of a module."""
    return next(
        op
        for op in module.body.block.ops
        if getattr(op, "sym_name", None) and op.sym_name.data == "main"
    )


def names_of(module: ModuleOp, attribute: str) -> list[str]:
    """The names of the arguments or results of @main, states included."""
    return [each.data for each in entry_of(module).attributes[attribute].data]


def outputs_of(program: Program, back: ModuleOp) -> Mapping[str, np.ndarray]:
    """What a program that has come back to nn computes, by name; states are results."""
    given = {**program.state, **program.inputs}
    types = entry_of(back).function_type.inputs
    names = names_of(back, "arg_names")
    typed = {
        n: given[n].view(numpy_dtype(t.element_type)) for n, t in zip(names, types, strict=True)
    }
    return run_reference(back, typed).outputs


def differs(program: Program, found: Mapping[str, np.ndarray]) -> str | None:
    """How results differ from what a program computes, beyond the bounds; None if they do not."""
    expected = bounded_run(program)
    if expected.fault is not None:
        return None

    def typed(wanted: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = ((name, np.asarray(found[name]), array) for name, array in wanted.items())
        return {n: f.view(a.dtype) if a.dtype.kind == "u" else f for n, f, a in given}

    changed = {name: array for name, array in expected.state.items() if name in found}
    run = Run(typed(expected.outputs), {**expected.state, **typed(changed)})
    found_difference = difference(expected, run)
    return None if found_difference is None else found_difference.text
