"""Updates at indices, in place wherever nobody reads the old elements later: the same at every
level, and at the cost of the updates."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from abele.backends.faults import IndexFault
from abele.dialects import control, partition
from abele.ir.text import parse_module, write_module
from abele.tools import Executable, compile_model

from .strategies import context

ROWS, WIDTH = 6, 4
TABLE = f"tensor<{ROWS}x{WIDTH}xf32>"
SIZES = f"tensor<2x{WIDTH}xf32>, tensor<2x1xi32>"
ITERATIONS = 3
STATE = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)

MERGE: dict[str, Callable[[float, float], float]] = {
    "last": lambda old, new: new,
    "sum": lambda old, new: old + new,
    "prod": lambda old, new: old * new,
    "max": max,
    "min": min,
}


def updated(
    combiner: str, updates: np.ndarray, indices: np.ndarray, table: np.ndarray, axis: int
) -> np.ndarray:
    """The definition, element by element in row-major order."""
    result, indices = table.copy(), np.broadcast_to(indices, updates.shape)
    for at in np.ndindex(updates.shape):
        where = (*at[:axis], int(indices[at]), *at[axis + 1 :])
        result[where] = MERGE[combiner](result[where], updates[at])
    return result


@st.composite
def updates(draw: st.DrawFn):
    """A table, and updates of it, of small whole numbers."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(shape) - 1))
    count = draw(st.integers(0, 5))
    given_ = [count if i == axis else n for i, n in enumerate(shape)]
    named = [draw(st.sampled_from([1, n])) for n in given_]
    named[axis] = count
    random = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from(["float32", "float16", "int32", "int8"]))
    table, new = (random.integers(-3, 4, n).astype(dtype) for n in (shape, given_))
    indices = random.integers(-shape[axis], shape[axis], named).astype(np.int32)
    return draw(st.sampled_from(list(MERGE))), new, indices, table, axis


def typed(array: np.ndarray) -> str:
    """The type of an array in the text of a program."""
    kind = f"{'f' if array.dtype.kind == 'f' else 'i'}{8 * array.itemsize}"
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{kind}>"


def compiled(text: str, target: str = "tiny:4") -> Executable:
    """The program of a text, in which STATE stands for the first value of a state."""
    made = context()
    digest = made.blobs.add(STATE).digest
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        write_module(parse_module(text.replace("STATE", digest), made), path)
        return compile_model(path, target=target)


@settings(max_examples=20)
@given(updates())
def test_an_update_agrees_with_its_definition_at_every_level(case):
    combiner, new, indices, table, axis = case
    types = ", ".join(map(typed, (new, indices, table)))
    exe = compiled(f"""func.func @main(%u: {typed(new)}, %i: {typed(indices)}, %t: {typed(table)})
        -> {typed(table)} {{
          %0 = nn.update "{combiner}" %u, %i into %t axis {axis} : ({types}) -> {typed(table)}
          func.return %0 : {typed(table)}
        }}""")
    inputs = {"arg0": new, "arg1": indices, "arg2": table}
    expected = updated(combiner, new, indices, table, axis)
    for level in ("nn", "partition", "tile", "exchange"):
        (found,) = exe.run(inputs, at=level).values()
        np.testing.assert_array_equal(found, expected, level)


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Operations on two tables, %a and %b, which give new tables in any order.

    What is overwritten too early is read by others: other updates of the same table, operations of
    elements, and what is passed on.
    """
    pool, lines = ["%a", "%b"], list[str]()
    for n in range(draw(st.integers(1, 4))):
        name = f"%v{n}"
        one, other = (draw(st.sampled_from(pool)) for _ in range(2))
        if draw(st.integers(0, 2)):
            combiner = draw(st.sampled_from(["last", "sum"]))
            lines.append(
                f'{name} = nn.update "{combiner}" %u, %i into {one} axis 0 : '
                f"({SIZES}, {TABLE}) -> {TABLE}"
            )
        else:
            lines.append(f"{name} = nn.sub {one}, {other} : ({TABLE}, {TABLE}) -> {TABLE}")
        pool.append(name)
    one, other, third = (draw(st.sampled_from(pool)) for _ in range(3))
    return "\n".join(lines), one, other, third


def check_levels(text: str, runs: int = 1) -> None:
    """Check that the machine, strict and fast, computes what the program means."""
    exe = compiled(text)
    for run in range(runs):
        random = np.random.default_rng(run)
        rows, tables = [(2, WIDTH)], [(ROWS, WIDTH)] * 2
        new, *given_ = (random.integers(-3, 4, n).astype(np.float32) for n in rows + tables)
        indices = random.integers(-ROWS, ROWS, (2, 1)).astype(np.int32)
        inputs = dict(zip(("arg0", "arg1", "arg2", "arg3"), (new, indices, *given_), strict=True))
        expected = exe.run(inputs, at="nn")
        for strict in (True, False):
            found = exe.run(inputs, strict=strict)
            for name, array in expected.items():
                np.testing.assert_array_equal(found[name], array, f"{name}, strict {strict}")


HEAD = (
    f"func.func @main(%u: tensor<2x{WIDTH}xf32>, %i: tensor<2x1xi32>, %x: {TABLE}, %y: {TABLE}) "
    f"-> ({TABLE}, {TABLE})"
)


@settings(max_examples=30)
@given(programs())
def test_a_loop_overwrites_no_table_that_is_still_read(case: tuple[str, str, str, str]):
    body, first, second, _ = case
    check_levels(f"""{HEAD} {{
      %p, %q = control.repeat {ITERATIONS} (%x, %y) : ({TABLE}, {TABLE}) -> ({TABLE}, {TABLE}) {{
      ^bb0(%a: {TABLE}, %b: {TABLE}):
        {body}
        control.yield {first}, {second} : {TABLE}, {TABLE}
      }}
      func.return %p, %q : {TABLE}, {TABLE}
    }}""")


@settings(max_examples=30)
@given(programs(), st.booleans())
def test_a_store_overwrites_no_state_that_is_still_read(
    case: tuple[str, str, str, str], twice: bool
):
    body, first, second, third = case
    # The same state may be loaded twice.
    other = "s" if twice else "t"
    states = "".join(f'nn.state @{name} : {TABLE} = <"STATE">\n' for name in "st")
    check_levels(
        f"""{states}{HEAD} {{
      %a = nn.load @s : {TABLE}
      %b = nn.load @{other} : {TABLE}
      {body}
      nn.store {first}, @s : {TABLE}
      nn.store {second}, @t : {TABLE}
      func.return {third}, %b : {TABLE}, {TABLE}
    }}""",
        runs=2,
    )


def test_an_update_into_what_a_loop_carries_costs_no_more_for_a_longer_table():
    def cycles(rows: int) -> int:
        exe = compiled(f"""func.func @main(%u: tensor<1x64xf32>, %t: tensor<{rows}x64xf32>)
          -> tensor<{rows}x64xf32> {{
          %r = control.repeat 8 (%t) : (tensor<{rows}x64xf32>) -> tensor<{rows}x64xf32> {{
          ^bb0(%a: tensor<{rows}x64xf32>, %n: tensor<i32>):
            %i = nn.reshape %n to [1, 1] : (tensor<i32>) -> tensor<1x1xi32>
            %0 = nn.update "last" %u, %i into %a axis 0 : (tensor<1x64xf32>, tensor<1x1xi32>,
              tensor<{rows}x64xf32>) -> tensor<{rows}x64xf32>
            control.yield %0 : tensor<{rows}x64xf32>
          }}
          func.return %r : tensor<{rows}x64xf32>
        }}""")
        prices = exe.operation_prices.values()
        return sum(each.cycles for each in prices if each.times == 8)

    # Plans differ a little.
    assert cycles(800) <= 1.25 * cycles(80)


@pytest.mark.parametrize("index", [ROWS, -ROWS - 1])
def test_an_update_outside_of_its_table_is_a_fault(index: int):
    types = f"({SIZES}, {TABLE}) -> {TABLE}"
    exe = compiled(f"""{HEAD.replace(f"({TABLE}, {TABLE})", TABLE)} {{
      %0 = nn.update "last" %u, %i into %x axis 0 : {types}
      func.return %0 : {TABLE}
    }}""")
    table = np.zeros((ROWS, WIDTH), np.float32)
    inputs = {"arg0": table[:2], "arg1": np.array([[0], [index]], np.int32), "arg2": table}
    for level in ("nn", "exchange"):
        with pytest.raises(IndexFault, match=f"{index}"):
            exe.run(inputs | {"arg3": table}, at=level)


def test_what_a_loop_does_not_change_gets_its_layout_before_the_loop():
    exe = compiled("""func.func @main(%x: tensor<16x16xf32>, %y: tensor<8x16xf32>)
      -> tensor<8x16xf32> {
      %t = nn.tanh %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
      %r = control.repeat 40 (%y) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
      ^bb0(%a: tensor<8x16xf32>):
        %0 = nn.matmul %a, %t : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
        %1 = nn.matmul %0, %t transpose_rhs : (tensor<8x16xf32>, tensor<16x16xf32>)
          -> tensor<8x16xf32>
        control.yield %1 : tensor<8x16xf32>
      }
      func.return %r : tensor<8x16xf32>
    }""")
    (loop,) = (op for op in exe.module_at("partition").walk() if isinstance(op, control.RepeatOp))
    moved = [v for op in loop.walk() if isinstance(op, partition.RelayoutOp) for v in op.inputs]
    assert moved
    assert all(loop.is_ancestor(v.owner) for v in moved)
