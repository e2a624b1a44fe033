import gc
import subprocess
import sys
import weakref
from itertools import product
from math import gcd

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings
from tile_programs import (
    Case,
    cases,
    context,
    convolutions,
    dense,
    exchange_module,
    matmul_case,
    matmuls,
    parse,
    transposed_convolutions,
)
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from abele.backends.evaluate.binder import Binder
from abele.backends.faults import MachineFault
from abele.backends.host.binders import best_binder
from abele.backends.host.fast import FastBinder
from abele.backends.host.fusion import FusedBinder
from abele.backends.host.switch import is_wanted
from abele.backends.machine import DropMessage, FlipByte, Machine, Observer
from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.space import AccessMap
from abele.ir.provenance import named

TINY = resolve_target("tiny:16")
X8 = "tensor<8xf32>"
BY_4 = "layout <[8 by 4] (d0) of [8]>"
ON_ONE = "layout <[8] (d0) of [8]>"
RELU = "space <[i = 8] (i) of [8] -> (i) of [8]> body <relu> plan <split [4]>"


def variable(name: str, address: int, rest: str = "", layout: str = BY_4) -> str:
    return f"exchange.variable @{name} at {address} : {X8} {layout} {rest}\n"


def superstep(name: str, *ops: str) -> str:
    zone = (
        "external"
        if any("exchange.input" in op or "exchange.output" in op for op in ops)
        else "internal"
    )
    return f'exchange.superstep @{name} {{ exchange.sync "{zone}"\n' + "\n".join(ops) + "\n}\n"


def main(*steps: str) -> str:
    return "func.func @main() {\n" + "".join(steps) + "func.return\n}\n"


def machine(text: str, strict: bool = True, verified: bool = True, **options) -> Machine:
    ctx = context()
    digest = ctx.blobs.add(np.arange(8, dtype=np.float32)).digest
    text = text.replace("INITIAL", f'= blob <"{digest}">')
    options.setdefault("binder", best_binder(is_watched="observers" in options))
    if verified:
        return Machine(parse(text, ctx), TINY, strict, **options)
    return Machine(Parser(ctx, text).parse_module(), TINY, strict, **options)


def fault_of(text: str, **options) -> MachineFault:
    with pytest.raises(MachineFault) as caught:
        machine(text, **options).run({})
    return caught.value


# What a program may not do


def test_a_vertex_may_not_read_unwritten_bytes():
    text = variable("x", 0) + variable("y", 8)
    text += main(superstep("go", f"exchange.compute {RELU} reads [@x] writes @y"))
    fault = fault_of(text)
    assert str(fault) == (
        "superstep @go: exchange.compute at unknown line in @go reads bytes 0..7 of tile 0 (@x), "
        "never written before"
    )
    assert (fault.superstep, fault.op, fault.variable) == ("go", "exchange.compute", "x")
    assert (fault.tile, fault.addresses, fault.node) == (0, (0, 8), None)


def test_a_move_may_not_read_unwritten_bytes():
    text = variable("x", 0) + variable("y", 8, layout=ON_ONE)
    fault = fault_of(text + main(superstep("go", "exchange.move [@x] -> @y")))
    assert (fault.op, fault.variable, fault.tile) == ("exchange.move", "x", 0)


def test_an_output_may_not_read_unwritten_bytes():
    text = variable("x", 0) + main(superstep("go", f'exchange.output @x -> "x" : {X8}'))
    assert (fault_of(text).op, fault_of(text).variable) == ("exchange.output", "x")


def test_a_predicate_may_not_be_read_before_it_is_written():
    text = "exchange.variable @p at 0 : tensor<i1> layout <[] () of []>\n"
    text += main("%c = exchange.read @p : i1\n")
    fault = fault_of(text)
    assert str(fault) == (
        "exchange.read at unknown line in @main reads bytes 0..0 of tile 0 (@p), never written "
        "before"
    )
    assert fault.superstep is None


def test_a_move_may_take_a_part():
    half = "exchange.variable @half at 16 : tensor<4xf32> layout <[4 by 4] (d0) of [4] at 2>\n"
    move = "moves [#abele.space<[i = 4] (i + 2) of [8] -> (i) of [4]>]"
    text = variable("x", 0, "INITIAL") + half
    text += main(
        superstep("cut", f"exchange.move [@x] -> @half {move}"),
        superstep("out", 'exchange.output @half -> "half" : tensor<4xf32>'),
    )
    assert machine(text).run({})["half"].tolist() == [2, 3, 4, 5]


def test_a_variable_may_not_be_read_after_another_took_its_bytes():
    text = variable("x", 0, "INITIAL") + variable("y", 8) + variable("z", 8)
    text += main(
        superstep("one", "exchange.move [@x] -> @y"),
        superstep("two", "exchange.move [@x] -> @z"),
        superstep("three", f"exchange.compute {RELU} reads [@y] writes @x"),
    )
    fault = fault_of(text)
    assert "reads bytes 8..15 of tile 0 (@y), last written as @z" in str(fault)


def test_a_variable_must_lie_in_a_tiles_memory():
    size = TINY.bytes_per_tile
    inside = main(superstep("go"))
    assert machine(variable("x", size - 8) + inside, strict=False).run({}) == {}
    fault = fault_of(variable("x", size) + inside, strict=False)
    assert fault.addresses == (size, size + 8)
    assert f"bytes {size}..{size + 7} of tile 0; a tile has {size}" in str(fault)


def test_a_variable_must_lie_on_the_targets_tiles():
    text = variable("x", 0, layout="layout <[8 by 4] (d0) of [8] at 13>") + main(superstep("go"))
    fault = fault_of(text, strict=False)
    assert (fault.variable, fault.tile) == ("x", 16)
    assert "tiles 13..16; the target has 16" in str(fault)


def test_elements_must_be_aligned():
    text = variable("x", 2) + main(superstep("go"))
    fault = fault_of(text, verified=False)
    assert "address 2 of elements of 4 bytes; need a multiple" in str(fault)


def test_two_moves_may_not_write_one_byte():
    text = variable("x", 0, "INITIAL") + variable("y", 8) + variable("z", 8, layout=ON_ONE)
    text += main(superstep("go", "exchange.move [@x] -> @y", "exchange.move [@x] -> @z"))
    fault = fault_of(text)
    assert (fault.superstep, fault.variable, fault.tile) == ("go", "z", 0)
    assert fault.addresses == (8, 16)
    assert "exchange.move at unknown line in @go writes in the same phase" in str(fault)


def test_moves_to_other_tiles_may_share_addresses():
    at = "layout <[8 by 4] (d0) of [8] at 4>"
    text = variable("x", 0, "INITIAL") + variable("y", 8) + variable("z", 8, layout=at)
    text += main(superstep("go", "exchange.move [@x] -> @y", "exchange.move [@x] -> @z"))
    assert machine(text).run({}) == {}


def test_two_vertices_may_not_write_one_byte():
    text = variable("x", 0, "INITIAL") + variable("y", 8)
    vertices = f"exchange.compute {RELU} reads [@x] writes @y"
    fault = fault_of(text + main(superstep("go", vertices, vertices)))
    assert (fault.op, fault.variable, fault.addresses) == ("exchange.compute", "y", (8, 16))


def test_a_vertex_may_not_write_an_element_twice():
    space = "space <[i = 8] (i) of [8] -> () of []>"
    text = variable("x", 0, "INITIAL", ON_ONE)
    text += "exchange.variable @y at 64 : tensor<f32> layout <[] () of []>\n"
    text += main(
        superstep(
            "go", f"exchange.compute {space} body <relu> plan <split [1]> reads [@x] writes @y"
        )
    )
    with pytest.raises(ValueError, match="dimension i: its 8 points write one element"):
        machine(text, verified=False)


def test_a_move_may_not_read_bytes_that_a_move_of_its_phase_writes():
    text = variable("x", 0, "INITIAL") + variable("y", 8, "INITIAL") + variable("z", 16)
    text += main(superstep("go", "exchange.move [@x] -> @y", "exchange.move [@y] -> @z"))
    fault = fault_of(text)
    assert (fault.variable, fault.tile, fault.addresses) == ("y", 0, (8, 16))
    assert "exchange.move at unknown line in @go writes in the same phase" in str(fault)


def test_a_vertex_may_not_read_bytes_that_another_of_its_phase_writes():
    text = variable("x", 0, "INITIAL") + variable("y", 8, "INITIAL") + variable("z", 16)
    text += main(
        superstep(
            "go",
            f"exchange.compute {RELU} reads [@x] writes @y",
            f"exchange.compute {RELU} reads [@y] writes @z",
        )
    )
    assert fault_of(text).variable == "y"


def test_a_vertex_may_read_bytes_that_its_own_superstep_delivered():
    text = variable("x", 0, "INITIAL") + variable("y", 8) + variable("z", 16)
    text += main(
        superstep("go", "exchange.move [@x] -> @y", f"exchange.compute {RELU} reads [@y] writes @z")
    )
    m = machine(text)
    m.run({})
    assert m.read("z").tolist() == list(range(8))


def test_a_point_may_overwrite_elements_that_it_alone_reads():
    text = variable("x", 0, "INITIAL")
    text += main(superstep("go", f"exchange.compute {RELU} reads [@x] writes @x"))
    assert machine(text).run({}) == {}


def test_a_point_may_not_overwrite_elements_that_another_reads():
    space = "space <[i = 4, k = 2 reduction] (2 * i + k) of [8] -> (i) of [4]>"
    text = variable("x", 0, "INITIAL", "layout <[8 by 4] (d0) of [8]>")
    text += "exchange.variable @y at 0 : tensor<4xf32> layout <[4 by 4] (d0) of [4]>\n"
    body = "body <identity sum> plan <split [4, 1]>"
    text += main(superstep("go", f"exchange.compute {space} {body} reads [@x] writes @y"))
    fault = fault_of(text)
    assert (fault.variable, fault.addresses) == ("x", (0, 4))
    assert "it overwrites in the same phase" in str(fault)


def test_a_point_may_overwrite_elements_that_its_chain_reads():
    text = variable("x", 0, "INITIAL") + variable("y", 8, "INITIAL")
    chain = RELU.replace("<relu>", "<square then add>").replace(" ->", ", (i) of [8] ->", 1)
    for reads in ("@y, @x", "@x, @y", "@x, @x"):
        m = machine(
            text + main(superstep("go", f"exchange.compute {chain} reads [{reads}] writes @x"))
        )
        m.run({})
        assert m.read("x").tolist() == [i * i + i for i in range(8)]


def test_a_sum_of_products_may_not_overwrite_elements_that_its_chain_reads():
    text = variable("x", 0, "INITIAL") + variable("y", 8, "INITIAL")
    space = "space <[i = 8, k = 1 reduction] (i) of [8], (i) of [8], (i) of [8] -> (i) of [8]>"
    body = "body <mul sum then add> plan <split [4, 1]>"
    found = fault_of(
        text
        + main(superstep("go", f"exchange.compute {space} {body} reads [@y, @y, @x] writes @x"))
    )
    assert found.variable == "x"
    assert "it overwrites in the same phase" in str(found)


def test_a_fault_names_the_node_it_came_from():
    ctx = context()
    text = variable("x", 0) + variable("y", 8)
    module = parse(
        text + main(superstep("go", f"exchange.compute {RELU} reads [@x] writes @y")), ctx
    )
    for op in module.walk():
        if op.name == "exchange.compute":
            op.location = named("layer1/relu")
    with pytest.raises(MachineFault, match="exchange.compute at layer1/relu reads") as caught:
        Machine(module, TINY, strict=True).run({})
    assert caught.value.node == "layer1/relu"


def test_an_operation_must_suit_its_variables():
    text = variable("x", 0) + variable("y", 8, layout=ON_ONE)
    text += main(superstep("go", f"exchange.compute {RELU} reads [@x] writes @y"))
    with pytest.raises(VerifyException, match="@y has layout"):
        machine(text, verified=False)


def test_inputs_are_checked():
    text = variable("x", 0) + main(superstep("in", f'exchange.input "image" -> @x : {X8}'))
    with pytest.raises(InputError, match='no input "image"; given: picture'):
        machine(text).run({"picture": np.zeros(8, np.float32)})
    with pytest.raises(InputError, match=r'"image": float64\[8\]; need float32\[8\]'):
        machine(text).run({"image": np.zeros(8)})


def test_operations_of_other_levels_are_refused():
    text = variable("x", 0) + main("tile.compute_set @s {}\n")
    with pytest.raises(InputError, match="tile.compute_set at .* in @s: not an operation"):
        machine(text, verified=False).run({})


# Time


def counter() -> str:
    state = "tensor<8xf32> layout <[8 by 4] (d0) of [8]>"
    return (
        f"exchange.variable @n at 0 : {state} state INITIAL\n"
        + variable("m", 8)
        + main(
            superstep(
                "count",
                "exchange.compute space <[i = 8] (i) of [8] -> (i) of [8]> body <shift [1.0]> "
                "plan <split [4]> reads [@n] writes @m",
            ),
            superstep("keep", "exchange.move [@m] -> @n"),
        )
    )


@pytest.mark.parametrize("strict", [False, True])
def test_state_stays_from_run_to_run_and_load_forgets_it(strict: bool):
    m = machine(counter(), strict)
    for iteration in range(1, 4):
        m.run({})
        assert m.read("n").tolist() == [i + iteration for i in range(8)]
    m.write("n", np.zeros(8, np.float32))
    m.run({})
    assert m.read("n").tolist() == [1] * 8
    m.load()
    assert m.read("n").tolist() == list(range(8))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("binder", [Binder, FastBinder, FusedBinder])
def test_memory_is_freed_as_soon_as_a_machine_is_dropped(binder: type[Binder], strict: bool):
    pytest.importorskip("numba")
    if binder is not Binder and not is_wanted():
        pytest.skip("this run wants no kernels")
    read = superstep("read", f'exchange.input "x" -> @a : {X8}')
    write = superstep("write", f'exchange.output @a -> "y" : {X8}')
    m = machine(variable("a", 0) + main(read, write), strict, binder=binder)
    x = np.arange(8, dtype=np.float32)
    assert m.run({"x": x})["y"].tolist() == x.tolist()
    dropped = weakref.ref(m)
    gc.disable()
    try:
        del m
        assert dropped() is None
    finally:
        gc.enable()


def test_cycles_are_counted_superstep_by_superstep():
    m = machine(counter(), price=lambda step: {"count": 100, "keep": 7}[step.sym_name.data])
    m.run({})
    m.run({})
    assert m.cycles == 2 * 107


def test_observers_see_each_operation_with_its_values():
    class Watch(Observer):
        def __init__(self):
            self.seen = []

        def before_compute(self, op, machine):
            self.seen.append(("before", machine.read(op.sources[0])[0]))

        def on_compute(self, op, machine):
            self.seen.append(("compute", machine.read(op.destination)[0]))

        def on_move(self, op, machine):
            self.seen.append(("move", machine.read(op.destination)[0]))

        def on_superstep(self, op, machine):
            self.seen.append(("superstep", op.sym_name.data))

    watch = Watch()
    machine(counter(), observers=[watch]).run({})
    assert watch.seen == [
        ("before", 0),
        ("compute", 1),
        ("superstep", "count"),
        ("move", 1),
        ("superstep", "keep"),
    ]


def test_a_fresh_process_runs_the_text(tmp_path):
    case = matmul_case()
    operands = case.operands()
    (tmp_path / "program.mlir").write_text(str(exchange_module(case)))
    np.savez(tmp_path / "inputs.npz", **{f"x{i}": x for i, x in enumerate(operands)})
    script = """
import sys
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from abele.backends.host.binders import best_binder
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.dialects import abele, control, exchange, tile
from abele.ir.context import AbeleContext

ctx = AbeleContext()
for dialect in (Builtin, func.Func, abele.Abele, control.Control, tile.Tile, exchange.Exchange):
    ctx.load_dialect(dialect)
folder = sys.argv[1]
module = Parser(ctx, open(folder + "/program.mlir").read()).parse_module()
machine = Machine(module, resolve_target("tiny:16"), binder=best_binder())
outputs = machine.run(np.load(folder + "/inputs.npz"))
np.savez(folder + "/outputs.npz", **outputs)
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    actual = np.load(tmp_path / "outputs.npz")["y"]
    np.testing.assert_array_equal(actual, dense(case.structure, operands, case.dtypes[-1]))


# Faults on purpose


def cells_of(case: Case):
    """Every cell: its tile, and the ranges of the space's dimensions in it."""
    dims, plan = case.structure.space.dims, case.plan
    order = [*plan.order, *(d for d in range(len(dims)) if d not in plan.order)]
    edges = {d: Cut(dims[d].size, plan.split[d]).edges() for d in order}
    for cell, parts in enumerate(product(*(range(plan.split[d]) for d in order))):
        at = dict(zip(order, parts, strict=True))
        yield (
            plan.first_tile + cell,
            [range(edges[d][at[d]], edges[d][at[d] + 1]) for d in range(len(dims))],
        )


def positive(case: Case) -> list[np.ndarray]:
    """Operands from 1 to 3: a change of one of their elements changes every sum that it is in."""
    return [np.abs(x) % 3 + 1 for x in case.operands()]


def dependents(case: Case, operand: int, tile: int, element: int) -> tuple[np.ndarray, np.ndarray]:
    """Which results are made from one element of one block, point by point.

    The first are those where the other factor is no padding, and so certainly changes them.
    """
    space = case.structure.space
    access, other, result = space.operands[operand], space.operands[1 - operand], space.results[0]
    layout = case.layouts()[operand]
    must, may = np.zeros(result.shape, bool), np.zeros(result.shape, bool)
    largest = [max(len(r[d]) for _, r in cells_of(case)) for d in range(len(space.dims))]
    for where, ranges in cells_of(case):
        if where != tile:
            continue
        points = list(product(*ranges))
        at = [numerators(access, point) for point in points]
        low = np.min(at, axis=0) if access.axes else []
        for point, numerator in zip(points, at, strict=True):
            position = 0
            for i, axis in enumerate(access.axes):
                step = gcd(*(a for d, a in axis.terms if largest[d] > 1)) or 1
                position = position * layout.box[i] + (numerator[i] - low[i]) // step
            if position == element:
                index = tuple(numerators(result, point))
                may[index] = True
                indices = [
                    int(axis.resolve(np.array(n)))
                    for axis, n in zip(other.axes, numerators(other, point), strict=True)
                ]
                must[index] |= min(indices, default=0) >= 0
    return must, may


def numerators(access: AccessMap, point: tuple[int, ...]) -> list[int]:
    return [axis.offset + sum(a * point[d] for d, a in axis.terms) for axis in access.axes]


@st.composite
def linear_cases(draw: st.DrawFn) -> Case:
    case = draw(
        cases(st.one_of(convolutions(), transposed_convolutions(), matmuls()), ("float32",))
    )
    assume(case.structure.space.points < 4000)
    return case


@settings(max_examples=30)
@given(data=st.data(), case=linear_cases())
def test_a_flipped_byte_changes_only_values_that_depend_on_it(data: st.DataObject, case: Case):
    inputs = {f"x{i}": x for i, x in enumerate(positive(case))}
    operand = data.draw(st.integers(0, 1))
    layout = case.layouts()[operand]
    tile = data.draw(st.integers(layout.first_tile, layout.first_tile + layout.cells - 1))
    element = data.draw(st.integers(0, layout.block_elements - 1))
    flip = FlipByte(f"x{operand}.in", tile, 4 * element + 3, 0x40, "moves")
    module = exchange_module(case)
    with np.errstate(all="ignore"):
        right = Machine(module, TINY, binder=best_binder()).run(inputs)["y"]
        wrong = Machine(module, TINY, faults=[flip]).run(inputs)["y"]
    must, may = dependents(case, operand, tile, element)
    changed = wrong != right
    assert not (must & ~changed).any()
    assert not (changed & ~may).any()


@settings(max_examples=30)
@given(data=st.data(), case=linear_cases())
def test_a_dropped_message_leaves_old_bytes_where_it_should_have_gone(
    data: st.DataObject, case: Case
):
    module = exchange_module(case)
    operands = positive(case)
    inputs = {f"x{i}": x for i, x in enumerate(operands)}
    source, target = data.draw(st.integers(0, 15)), data.draw(st.integers(0, 15))
    owned = [owner_of(module, f"x{i}", x.size).reshape(x.shape) for i, x in enumerate(operands)]
    lost = [np.where(owner == source, 0, x) for owner, x in zip(owned, operands, strict=True)]
    drop = DropMessage("moves", source, target)
    try:
        m = Machine(module, TINY, faults=[drop])
    except ValueError as error:
        assert "there is no such message" in str(error)
        lost = operands
        m = Machine(module, TINY, binder=best_binder())
    actual = m.run(inputs)["y"]
    right = dense(case.structure, operands, np.dtype(np.float32))
    wrong = dense(case.structure, lost, np.dtype(np.float32))
    there = np.zeros(right.shape, bool)
    for tile, ranges in cells_of(case):
        for point in product(*ranges) if tile == target else ():
            there[tuple(numerators(case.structure.space.results[0], point))] = True
    expected = np.where(there, wrong, right) if source != target else right
    np.testing.assert_array_equal(actual, expected)


def owner_of(module, name: str, elements: int) -> np.ndarray:
    """The tile that each element of a linearly spread variable lives on."""
    (op,) = (op for op in module.ops if getattr(op, "symbol", None) == name)
    tiles = np.zeros(elements, np.int64)
    for cut in op.placed.grid[:1]:
        edges = cut.edges()
        for part in range(cut.parts):
            tiles[edges[part] : edges[part + 1]] = part
    return tiles


def test_dropping_keeps_the_bytes_of_the_run_before():
    text = (
        variable("x", 0, layout=ON_ONE)
        + variable("y", 32)
        + main(
            superstep("in", f'exchange.input "x" -> @x : {X8}'),
            superstep("go", "exchange.move [@x] -> @y"),
            superstep("out", f'exchange.output @y -> "y" : {X8}'),
        )
    )
    m = machine(text, strict=False, faults=[DropMessage("go", 0, 2)])
    x = np.arange(1, 9, dtype=np.float32)
    assert m.run({"x": x})["y"].tolist() == [1, 2, 3, 4, 0, 0, 7, 8]
    m.write("y", 10 * x)
    assert m.run({"x": x})["y"].tolist() == [1, 2, 3, 4, 50, 60, 7, 8]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (FlipByte("z", 0, 0), "no variable @z"),
        (FlipByte("n", 4, 0), "@n has 8 bytes on tiles 0..3"),
        (FlipByte("n", 0, 8), "@n has 8 bytes on tiles 0..3"),
        (FlipByte("n", 0, 0, 1, "later"), "no superstep @later"),
        (DropMessage("later", 0, 1), "no superstep @later"),
        (DropMessage("keep", 0, 1), "there is no such message"),
        (DropMessage("keep", 1, 1), "there is no such message"),
    ],
)
def test_faults_that_cannot_happen_are_refused(fault: FlipByte | DropMessage, message: str):
    with pytest.raises(ValueError, match=message):
        machine(counter(), faults=[fault])


def test_a_byte_is_flipped_once_after_load():
    m = machine(counter(), strict=False, faults=[FlipByte("n", 0, 3, 0x80)])
    m.write("n", np.ones(8, np.float32))
    m.load()
    assert np.signbit(m.read("n")[0])


@pytest.mark.parametrize("binder", [Binder, FastBinder, FusedBinder])
def test_tiles_that_the_host_has_no_memory_for_are_refused_in_one_way(binder: type[Binder]):
    pytest.importorskip("numba")
    huge = resolve_target("tiny:1000000,memory.bytes_per_tile=4000000000")
    with pytest.raises(MemoryError):
        Machine(parse(main(superstep("go")), context()), huge, binder=binder)
