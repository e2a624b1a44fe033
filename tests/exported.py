"""Programs of nn in other dialects: what they compute, beside what nn computes."""

from collections.abc import Callable, Mapping

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from abele.backends.reference import run_reference
from abele.dialects.dtypes import numpy_dtype
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.ir.upstream import Context, ModuleOp
from abele.tools.driver.context import new_context
from abele.tools.testing import Program, bounded_run, difference, programs
from abele.tools.testing.oracle.oracles import Outcome, Run


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


WITHOUT_ELEMENTS = (
    (
        'nn.update "last" %x, %x into %x axis 0',
        "(tensor<0x1x2xi32>, tensor<0x1x2xi32>, tensor<0x1x2xi32>) -> tensor<0x1x2xi32>",
    ),
    ("nn.relu %x", "(tensor<0x1x2xf16>) -> tensor<0x1x2xf16>"),
    ('nn.reduce "sum" %x axes [1]', "(tensor<0x1x2xf32>) -> tensor<0x2xf32>"),
    (
        'nn.pad "constant" %x low [0, 1, 0] high [0, 2, 0] value 1.0',
        "(tensor<0x1x2xf32>) -> tensor<0x4x2xf32>",
    ),
    ("nn.transpose %x [2, 0, 1]", "(tensor<0x1x2xi32>) -> tensor<2x0x1xi32>"),
    ("nn.take %x axis 1 places [] value 0.0", "(tensor<3x1x2xi32>) -> tensor<3x0x2xi32>"),
)
"""Operations whose results have no elements, and their types."""


def without_elements(operation: str, types: str) -> tuple[ModuleOp, np.ndarray, tuple[int, ...]]:
    """A program of one of these operations, its input, and the shape of its result."""
    taken, made = types.split(" -> ")
    kind = taken.strip("()").split(", ")[0]
    program = parse_module(
        f"func.func @main(%x: {kind}) -> {made} {{\n"
        f"  %1 = {operation} : {types}\n  func.return %1 : {made}\n}}\n",
        new_context(),
    )
    given_ = next(iter(program.ops)).body.block.args[0].type
    x = np.zeros(given_.get_shape(), numpy_dtype(given_.element_type))
    (expected,) = run_reference(program, {"arg0": x}).outputs.values()
    return program, x, expected.shape


def differs(program: Program, found: Mapping[str, np.ndarray]) -> str | None:
    """How results differ from what a program computes, beyond the bounds; None if they do not."""
    expected = bounded_run(program)
    return None if expected.fault is not None else differs_from(expected, found)


def differs_from(expected: Outcome, found: Mapping[str, np.ndarray]) -> str | None:
    """How results differ from those expected, beyond the bounds; None if they do not."""

    def typed(wanted: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = ((name, np.asarray(found[name]), array) for name, array in wanted.items())
        return {n: f.view(a.dtype) if a.dtype.kind == "u" else f for n, f, a in given}

    changed = {name: array for name, array in expected.state.items() if name in found}
    run = Run(typed(expected.outputs), {**expected.state, **typed(changed)})
    found_difference = difference(expected, run)
    return None if found_difference is None else found_difference.text


def check_round_trips(
    trip: Callable[[ModuleOp, Context], tuple[str, ModuleOp]],
    examples: int,
    *,
    again: bool = False,
    least: int = 10,
):
    """Check that random programs compute the same after a trip through another dialect.

    Args:
        again: whether to check that a third trip gives the text of the second one, because what a
            trip changes, it changes once.
        least: how many programs must have made the trip. Others are refused by name, or fault.
    """
    compared: list[Program] = []

    @drawn(examples)
    @given(programs("nn"))
    def check(program: Program):
        try:
            _, back = trip(program.module.clone(), program.context)
        except InputError as error:
            assert "not covered:" in str(error)
            return
        expected = bounded_run(program)
        if expected.fault is not None:
            # It reads outside a table: in another dialect, it may compute anything.
            return
        assert differs_from(expected, outputs_of(program, back)) is None
        if again:
            second, back = trip(back, program.context)
            assert trip(back, program.context)[0] == second
        compared.append(program)

    check()
    assert len(compared) >= least


SORTS = [
    ("sort", "axis 1", "3x5xf32"),
    ("sort", "axis 0 descending", "5x2xbf16"),
    ("sort_indices", "axis 1", "2x6xf32"),
    ("sort_indices", "axis 0 descending", "6x2xi32"),
    ("sort", "axis 0 descending", "4xui8"),
    ("sort_indices", "axis 0", "1x3xf32"),
    ("sort", "axis 0", "6xi1"),
]
"""A sort, its axis and direction, and the type of what it sorts."""


def sorted_as(kind: str, along: str, shape: str) -> tuple[ModuleOp, np.ndarray, np.ndarray]:
    """A program that sorts, what it takes, with equal elements, NaN and both zeros, and what it
    computes."""
    type_ = f"tensor<{shape}>"
    size, _, element = shape.rpartition("x")
    made = f"tensor<{size}xi32>" if kind == "sort_indices" else type_
    program = parse_module(
        f"func.func @main(%x: {type_}) -> {made} {{\n"
        f"  %1 = nn.{kind} %x {along} : ({type_}) -> {made}\n"
        f"  func.return %1 : {made}\n}}\n",
        new_context(),
    )
    dtype = numpy_dtype(next(iter(program.ops)).body.block.args[0].type.element_type)
    x = np.random.default_rng(1).integers(0, 4, [int(n) for n in size.split("x")]).astype(dtype)
    if "f" in element:
        x.reshape(-1)[:3] = [np.nan, -0.0, 0.0]
    (expected,) = run_reference(program, {"arg0": x}).outputs.values()
    return program, x, expected.astype(np.float64)
