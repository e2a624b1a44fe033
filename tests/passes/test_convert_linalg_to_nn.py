"""What linalg, tensor, arith, math and scf mean in nn, by NumPy and by xDSL's interpreter."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.interpreter import Interpreter
from xdsl.interpreters import register_implementations
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr

from abele.backends.reference import run_reference
from abele.dialects.levels import NN
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.ir.verify import verify
from abele.passes.convert_linalg_to_nn import ConvertLinalgToNn
from abele.passes.eliminate_dead import EliminateDead
from abele.tools import compile_model
from abele.tools.driver.context import new_context

F32 = np.float32

LAYER = Path(__file__).parent.parent / "filecheck" / "convert-linalg-to-nn.mlir"


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    """What a program of MLIR's dialects computes as nn."""
    context = new_context()
    module = parse_module(text, context, "net.mlir")
    module.verify()
    ConvertLinalgToNn().apply(context, module)
    verify(module, NN)
    given_ = {f"arg{i}": each for i, each in enumerate(inputs)}
    return list(run_reference(module, given_).outputs.values())


def function(types: Sequence[str], results: Sequence[str], body: str) -> str:
    """The text of a function whose arguments are %0, %1 and so on, and that returns %r0, ..."""
    arguments = ", ".join(f"%{i}: {each}" for i, each in enumerate(types))
    returned = ", ".join(f"%r{i}" for i in range(len(results)))
    listed = ", ".join(results)
    return (
        f"func.func @main({arguments}) -> ({listed}) {{\n{body}\n"
        f"func.return {returned} : {listed}\n}}"
    )


def at_each_element(operation: str, sources: Sequence[str], target: str, size: int) -> str:
    """The text of a function that applies an operation, of %a0, %a1, ..., to each element.

    Args:
        operation: without its types, if these are those of the operands.
        sources, target: the types of the elements.
    """
    types = [f"tensor<{size}x{each}>" for each in (*sources, target)]
    inputs = ", ".join(f"%{i}" for i in range(len(sources)))
    arguments = ", ".join(f"%a{i}: {each}" for i, each in enumerate(sources))
    maps = ", ".join("affine_map<(i) -> (i)>" for _ in types)
    typed = operation if " to " in operation else f"{operation} : {sources[0]}"
    body = f"""
    %e = tensor.empty() : {types[-1]}
    %r0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
        ins({inputs} : {", ".join(types[:-1])}) outs(%e : {types[-1]}) {{
    ^bb0({arguments}, %o: {target}):
      %y = {typed}
      linalg.yield %y : {target}
    }} -> {types[-1]}"""
    return function(types[:-1], types[-1:], body)


X = np.array([-2.5, -0.75, 0.5, 1.25, 2.0, np.nan], F32)
Y = np.array([1.5, -0.75, 2.0, np.nan, -1.25, np.nan], F32)
K = np.array([-7, -1, 0, 3, 8, 2**31 - 1], np.int32)
J = np.array([2, -3, 5, -4, 3, 7], np.int32)
U, V = K.view(np.uint32), J.view(np.uint32)


def signed(values):
    return np.asarray(values, np.uint32).view(np.int32)


with np.errstate(all="ignore"):
    FLOATS = {
        "arith.maximumf %a0, %a1": np.maximum(X, Y),
        "arith.minnumf %a0, %a1": np.fmin(X, Y),
        "arith.maxnumf %a0, %a1": np.fmax(X, Y),
        "arith.subf %a0, %a1": X - Y,
        "arith.negf %a0": -X,
        "math.absf %a0": abs(X),
        "math.trunc %a0": np.trunc(X),
        "math.round %a0": np.sign(X) * np.floor(abs(X) + F32(0.5)),
        "math.roundeven %a0": np.round(X),
        "math.copysign %a0, %a1": np.where(np.isnan(Y), np.abs(X), np.copysign(X, Y)),
        "math.expm1 %a0": np.expm1(X),
        "math.log1p %a0": np.log1p(X),
        "math.exp2 %a0": np.exp2(X),
        "math.log2 %a0": np.log2(X),
        "math.rsqrt %a0": 1 / np.sqrt(X),
        "math.fma %a0, %a1, %a0": X * Y + X,
        "math.erf %a0": special.erf(X),
        "math.powf %a0, %a1": np.power(X, Y),
        "math.atan2 %a0, %a1": np.arctan2(X, Y),
        "math.cbrt %a0": np.cbrt(X),
    }
    INTEGERS = {
        "arith.divsi %a0, %a1": np.trunc(K.astype(float) / J).astype(np.int32),
        "arith.remsi %a0, %a1": np.fmod(K, J),
        "arith.floordivsi %a0, %a1": K // J,
        "arith.ceildivsi %a0, %a1": -(-K.astype(np.int64) // J).astype(np.int32),
        "arith.divui %a0, %a1": signed(U // V),
        "arith.remui %a0, %a1": signed(U % V),
        "arith.maxui %a0, %a1": signed(np.maximum(U, V)),
        "arith.minsi %a0, %a1": np.minimum(K, J),
        "arith.xori %a0, %a1": K ^ J,
        "arith.shrui %a0, %a1": np.where((J < 0), 0, signed(U >> (V & 31))),
        "math.absi %a0": abs(K),
        "math.ctpop %a0": np.array([f"{n:b}".count("1") for n in U], np.int32),
        "math.ctlz %a0": np.array([32 - int(n).bit_length() for n in U], np.int32),
        "math.cttz %a0": np.array([f"1{n:032b}"[::-1].index("1") for n in U], np.int32),
    }
    COMPARED = {
        "arith.cmpf oeq, %a0, %a1": X == Y,
        "arith.cmpf one, %a0, %a1": (X < Y) | (X > Y),
        "arith.cmpf une, %a0, %a1": X != Y,
        "arith.cmpf ueq, %a0, %a1": (X == Y) | np.isnan(X) | np.isnan(Y),
        "arith.cmpf ult, %a0, %a1": ~(X >= Y),
        "arith.cmpf oge, %a0, %a1": X >= Y,
        "arith.cmpf ord, %a0, %a1": ~(np.isnan(X) | np.isnan(Y)),
        "arith.cmpf uno, %a0, %a1": np.isnan(X) | np.isnan(Y),
    }
    ORDERED = {
        "arith.cmpi ne, %a0, %a1": K != J,
        "arith.cmpi sle, %a0, %a1": K <= J,
        "arith.cmpi ult, %a0, %a1": U < V,
        "arith.cmpi uge, %a0, %a1": U >= V,
    }


@pytest.mark.parametrize(
    ("operation", "expected"),
    [each for table in (FLOATS, INTEGERS, COMPARED, ORDERED) for each in table.items()],
)
def test_an_operation_of_arith_or_math_computes_what_numpy_does(operation, expected):
    whole = operation in INTEGERS or operation in ORDERED
    element = "i32" if whole else "f32"
    inputs = (K, J) if whole else (X, Y)
    target = "i1" if expected.dtype == np.bool_ else element
    (found,) = run(at_each_element(operation, [element] * 2, target, 6), *inputs)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


CASTS = {
    ("arith.extsi", "i1", "i32"): (np.array([True, False]), np.array([-1, 0], np.int32)),
    ("arith.extui", "i1", "i32"): (np.array([True, False]), np.array([1, 0], np.int32)),
    ("arith.sitofp", "i8", "f32"): (np.array([-3, 7], np.int8), np.array([-3, 7], F32)),
    ("arith.uitofp", "i8", "f32"): (np.array([-3, 7], np.int8), np.array([253, 7], F32)),
    ("arith.fptosi", "f32", "i32"): (np.array([-2.7, 2.7], F32), np.array([-2, 2], np.int32)),
    ("arith.fptoui", "f32", "i8"): (np.array([200.7, 2.7], F32), np.array([-56, 2], np.int8)),
    ("arith.trunci", "i32", "i8"): (np.array([300, -1], np.int32), np.array([44, -1], np.int8)),
    ("arith.trunci", "i32", "i1"): (np.array([2, 3], np.int32), np.array([False, True])),
    ("arith.bitcast", "f32", "i32"): (np.array([1, -2], F32), np.array([1, -2], F32).view("i4")),
    ("arith.truncf", "f32", "f16"): (np.array([1.1, 2], F32), np.array([1.1, 2], np.float16)),
}


@pytest.mark.parametrize("cast", CASTS, ids=" ".join)
def test_a_cast_keeps_the_sign_that_its_name_says(cast):
    name, source, target = cast
    given_, expected = CASTS[cast]
    operation = f"{name} %a0 : {source} to {target}"
    (found,) = run(at_each_element(operation, [source], target, 2), given_)
    np.testing.assert_array_equal(found, expected)


A = np.arange(24, dtype=F32).reshape(4, 6)


def changed(rows, columns, values):
    made = A.copy()
    made[rows, columns] = values
    return made


MOVED = {
    "tensor.extract_slice %0[1, 0] [2, 3] [1, 2] : tensor<4x6xf32> to tensor<2x3xf32>": A[1:3, ::2],
    "tensor.extract_slice %0[1, 0] [1, 6] [1, 1] : tensor<4x6xf32> to tensor<6xf32>": A[1],
    "tensor.insert_slice %1 into %0[0, 1] [2, 3] [2, 2] : tensor<2x3xf32> into tensor<4x6xf32>": (
        changed(slice(0, 4, 2), slice(1, 6, 2), -1)
    ),
    "tensor.insert_slice %2 into %0[1, 0] [2, 6] [1, 1] : tensor<2x6xf32> into tensor<4x6xf32>": (
        changed(slice(1, 3), slice(None), -2)
    ),
    "tensor.insert_slice %2 into %0[1, 0] [2, 6] [2, 1] : tensor<2x6xf32> into tensor<4x6xf32>": (
        changed(slice(1, 4, 2), slice(None), -2)
    ),
    "tensor.collapse_shape %0 [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>": A.ravel(),
    "tensor.expand_shape %0 [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf32> into "
    "tensor<4x2x3xf32>": A.reshape(4, 2, 3),
    "tensor.concat dim(0) %0, %2 : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>": (
        np.concatenate([A, np.full((2, 6), -2, F32)])
    ),
}


def result_type(operation: str) -> str:
    return operation.split()[-1]


@pytest.mark.parametrize("operation", MOVED)
def test_an_operation_of_tensor_moves_what_numpy_does(operation):
    types = ["tensor<4x6xf32>", "tensor<2x3xf32>", "tensor<2x6xf32>"]
    text = function(types, [result_type(operation)], f"%r0 = {operation}")
    (found,) = run(text, A, np.full((2, 3), -1, F32), np.full((2, 6), -2, F32))
    np.testing.assert_array_equal(found, MOVED[operation])


def test_padding_may_be_a_number_that_is_computed():
    body = """
    %n = tensor.extract %1[] : tensor<f32>
    %r0 = tensor.pad %0 low[1, 0] high[0, 2] {
    ^bb0(%i: index, %j: index):
      %m = arith.mulf %n, %n : f32
      tensor.yield %m : f32
    } : tensor<4x6xf32> to tensor<5x8xf32>"""
    text = function(["tensor<4x6xf32>", "tensor<f32>"], ["tensor<5x8xf32>"], body)
    (found,) = run(text, A, np.array(3, F32))
    np.testing.assert_array_equal(found, np.pad(A, ((1, 0), (0, 2)), constant_values=9))


LOOP = """
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %end = {end}
    %r0 = scf.for %i = %zero to %end step %two iter_args(%x = %0) -> (tensor<4x6xf32>) {{
      %row = tensor.extract_slice %x[%i, 0] [1, 6] [1, 1] : tensor<4x6xf32> to tensor<6xf32>
      %more = arith.addf %row, %row : tensor<6xf32>
      %y = tensor.insert_slice %more into %x[%i, 0] [1, 6] [1, 1]
          : tensor<6xf32> into tensor<4x6xf32>
      scf.yield %y : tensor<4x6xf32>
    }}"""


@pytest.mark.parametrize(
    "end", ["arith.constant 4 : index", "arith.index_cast %1 : i32 to index"], ids=["known", "read"]
)
def test_a_loop_runs_to_an_end_that_is_known_or_not(end):
    text = function(["tensor<4x6xf32>", "i32"], ["tensor<4x6xf32>"], LOOP.format(end=end))
    (found,) = run(text, A, np.array(4, np.int32))
    expected = A.copy()
    expected[::2] *= 2
    np.testing.assert_array_equal(found, expected)


def test_a_branch_and_a_loop_with_a_condition_run():
    body = """
    %limit = arith.constant 100.0 : f32
    %r0 = scf.while (%x = %0) : (f32) -> f32 {
      %c = arith.cmpf olt, %x, %limit : f32
      scf.condition(%c) %x : f32
    } do {
    ^bb0(%x: f32):
      %y = arith.addf %x, %x : f32
      scf.yield %y : f32
    }
    %big = arith.cmpf ogt, %r0, %limit : f32
    %r1 = scf.if %big -> (f32) {
      scf.yield %r0 : f32
    } else {
      scf.yield %0 : f32
    }"""
    first, second = run(function(["f32"], ["f32", "f32"], body), np.array(3, F32))
    assert (first, second) == (192, 192)


# Loops, by xDSL's interpreter

SCALARS = ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf", "arith.minimumf")
MERGES = ("arith.addf", "arith.maximumf", "arith.minimumf", "arith.mulf")


@st.composite
def loops(draw):
    """A linalg.generic as text, its inputs, and its result's shape."""
    rank = draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 4)) for _ in range(rank)]
    kept = [draw(st.booleans()) for _ in range(rank)]
    names = [f"d{i}" for i in range(rank)]
    out = draw(st.permutations([i for i in range(rank) if kept[i]]))
    # The first operand has each loop as an axis, so that the number of turns is known.
    first = draw(st.permutations(range(rank)))
    maps, shapes = [", ".join(names[i] for i in first)], [[sizes[i] for i in first]]
    for _ in range(draw(st.integers(0, 2))):
        axes, shape = [], []
        for _ in range(draw(st.integers(0, 2))):
            i, j = draw(st.integers(0, rank - 1)), draw(st.integers(0, rank - 1))
            a, c = draw(st.integers(1, 2)), draw(st.integers(0, 1))
            axes.append(f"{names[i]} * {a} + {names[j]} + {c}")
            shape.append(a * (sizes[i] - 1) + sizes[j] - 1 + c + 1)
        maps.append(", ".join(axes))
        shapes.append(shape)
    maps.append(", ".join(names[i] for i in out))
    shapes.append([sizes[i] for i in out])
    values = [f"%a{i}" for i in range(len(maps) - 1)]
    lines = []
    for k in range(draw(st.integers(0, 4))):
        left, right = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        lines.append(f"%s{k} = {draw(st.sampled_from(SCALARS))} {left}, {right} : f32")
        values.append(f"%s{k}")
    last = values[-1]
    if not all(kept) or draw(st.booleans()):
        merge, turn = draw(st.sampled_from(MERGES)), draw(st.booleans())
        pair = f"%o, {last}" if turn else f"{last}, %o"
        lines.append(f"%y = {merge} {pair} : f32")
        last = "%y"
    types = ["tensor<" + "".join(f"{n}x" for n in shape) + "f32>" for shape in shapes]
    count = len(types) - 1
    listed = ", ".join(f"affine_map<({', '.join(names)}) -> ({each})>" for each in maps)
    kinds = ", ".join(f'"{"parallel" if each else "reduction"}"' for each in kept)
    body = "\n".join(
        [
            f"%r0 = linalg.generic {{indexing_maps = [{listed}], iterator_types = [{kinds}]}} "
            f"ins({', '.join(f'%{i}' for i in range(count))} : {', '.join(types[:-1])}) "
            f"outs(%{count} : {types[-1]}) {{",
            f"^bb0({', '.join(f'%a{i}: f32' for i in range(count))}, %o: f32):",
            *lines,
            f"linalg.yield {last} : f32",
            f"}} -> {types[-1]}",
        ]
    )
    seed = draw(st.integers(0, 1 << 16))
    random = np.random.default_rng(seed)
    inputs = [random.integers(-3, 4, shape).astype(F32) for shape in shapes]
    return function(types, types[-1:], body), inputs


def interpreted(text: str, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """What xDSL's interpreter computes."""
    context = new_context()
    module = parse_module(text, context)
    interpreter = Interpreter(module)
    register_implementations(interpreter, context)
    given_ = tuple(
        ShapedArray(TypedPtr.new_float32(each.ravel().tolist()), list(each.shape))
        for each in inputs
    )
    (found,) = interpreter.call_op("main", given_)
    return np.array(found.data, F32).reshape(found.shape)


@settings(max_examples=40, deadline=None)
@given(loops())
def test_loops_compute_what_the_interpreter_of_xdsl_does(drawn):
    text, inputs = drawn
    (found,) = run(text, *inputs)
    expected = interpreted(text, inputs)
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, atol=1e-5 * scale)


# The way down


def test_a_program_of_linalg_goes_down_to_the_machine(tmp_path):
    path = tmp_path / "layer.mlir"
    text = LAYER.read_text()
    path.write_text(text)
    x, w, b = (np.random.default_rng(0).random(s, F32) for s in ((4, 8), (8, 3), (3,)))
    exe = compile_model(path, target="tiny:4")
    outputs = exe.run({"arg0": x, "arg1": w, "arg2": b})
    (found,) = outputs.values()
    np.testing.assert_allclose(found, np.maximum(x @ w + b, 0).max(1), rtol=1e-5)


def test_all_that_is_not_covered_is_named_with_its_line():
    pair = "(tensor<4xi32>, tensor<4xi32>)"
    body = f"""
    %1, %c = "arith.addui_extended"(%0, %0) : {pair} -> (tensor<4xi32>, tensor<4xi1>)
    %2 = arith.addi %1, %1 : tensor<4xi32>
    %3, %4 = "arith.mulsi_extended"(%0, %0) : {pair} -> {pair}
    %r0 = arith.addi %0, %0 : tensor<4xi32>"""
    with pytest.raises(InputError) as error:
        run(function(["tensor<4xi32>"], ["tensor<4xi32>"], body), np.zeros(4, np.int32))
    lines = str(error.value).splitlines()
    assert lines[0] == "2 operations are not covered:"
    assert lines[1].startswith("net.mlir:3:5: arith.addui_extended: ")
    assert lines[2].startswith("net.mlir:5:5: arith.mulsi_extended: ")
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "%e = tensor.empty() : tensor<f32>\n"
            "%r0 = linalg.reduce ins(%0 : tensor<4xf32>) outs(%e : tensor<f32>) dimensions = [0]\n"
            "(%a: f32, %o: f32) { %s = arith.addf %a, %o : f32\n linalg.yield %s : f32 }",
            "begin with the elements of tensor.empty",
        ),
        (
            "%c = arith.constant dense<0.0> : tensor<f32>\n"
            "%r0 = linalg.reduce ins(%0 : tensor<4xf32>) outs(%c : tensor<f32>) dimensions = [0]\n"
            "(%a: f32, %o: f32) { %h = arith.mulf %o, %o : f32\n"
            "%s = arith.addf %a, %h : f32\n linalg.yield %s : f32 }",
            "merges more than the result and one term",
        ),
    ],
)
def test_a_merge_that_means_nothing_or_depends_on_the_order_is_refused(body, why):
    with pytest.raises(InputError, match=why):
        run(function(["tensor<4xf32>"], ["tensor<f32>"], body), np.zeros(4, F32))


def test_the_size_of_an_axis_that_a_tensor_lacks_is_refused():
    body = """
    %c = arith.constant 1 : index
    %r0 = tensor.dim %0, %c : tensor<4xf32>"""
    with pytest.raises(InputError, match="tensor.dim: axis 1 of tensor<4xf32>, which has 1 axes"):
        run(function(["tensor<4xf32>"], ["index"], body), np.zeros(4, F32))


def test_sizes_that_are_not_known_are_refused():
    body = """
    %e = tensor.empty(%1) : tensor<?xf32>
    %r0 = tensor.cast %e : tensor<?xf32> to tensor<4xf32>"""
    with pytest.raises(InputError, match="an axis has no size; need static shapes"):
        run(function(["tensor<4xf32>", "index"], ["tensor<4xf32>"], body), np.zeros(4, F32))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("%c = arith.constant 1" + "0" * 30 + " : index", "an integer has more than 64 bits"),
        (
            """%c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types =
            ["parallel"]} outs(%0 : tensor<4xf32>) {
            ^bb0(%o: f32):
              %i = linalg.index 3 : index
              %j = arith.index_cast %i : index to i32
              %y = arith.sitofp %j : i32 to f32
              linalg.yield %y : f32
            } -> tensor<4xf32>""",
            "index of loop 3; need 0..0",
        ),
    ],
)
def test_numbers_that_nothing_has_are_refused(body: str, why: str):
    text = function(["tensor<4xf32>"], ["tensor<4xf32>"], body).replace("%r0", "%0")
    with pytest.raises(InputError, match=why):
        run(text, np.zeros(4, F32))


def test_a_body_may_be_long():
    lines = "".join(f"%s{i + 1} = arith.addf %s{i}, %a : f32\n" for i in range(1500))
    body = f"""
    %r0 = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%0 : tensor<4xf32>) outs(%0 : tensor<4xf32>) {{
    ^bb0(%a: f32, %o: f32):
      %s0 = arith.addf %a, %a : f32
      {lines}
      linalg.yield %s1500 : f32
    }} -> tensor<4xf32>"""
    x = np.arange(4, dtype=F32)
    (found,) = run(function(["tensor<4xf32>"], ["tensor<4xf32>"], body), x)
    np.testing.assert_array_equal(found, 1502 * x)


def test_a_body_that_merges_points_may_be_long():
    """Each value is read twice, so that the ways through the body double with each line."""
    lines = "".join(f"%s{i + 1} = arith.minimumf %s{i}, %s{i} : f32\n" for i in range(1500))
    body = f"""
    %z = arith.constant dense<0.0> : tensor<2xf32>
    %r0 = linalg.reduce ins(%0 : tensor<2x4xf32>) outs(%z : tensor<2xf32>) dimensions = [1]
    (%a: f32, %o: f32) {{
      %s0 = arith.addf %a, %a : f32
      {lines}
      %m = arith.addf %o, %s1500 : f32
      linalg.yield %m : f32
    }}"""
    x = np.arange(8, dtype=F32).reshape(2, 4)
    (found,) = run(function(["tensor<2x4xf32>"], ["tensor<2xf32>"], body), x)
    np.testing.assert_array_equal(found, 2 * x.sum(1))


def test_a_mistake_of_abele_is_not_blamed_on_the_program(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.passes.linalg_to_nn.tensors.type_in_nn", None)
    body = "%s = arith.constant 0.0 : f32\n%r0 = tensor.splat %s : tensor<4xf32>"
    with pytest.raises(TypeError, match="not callable"):
        run(function(["tensor<4xf32>"], ["tensor<4xf32>"], body), np.zeros(4, F32))


def test_an_operation_that_xdsl_does_not_check_is_refused():
    context = new_context()
    body = """
    %z = arith.constant 0.0 : f32
    %r0 = linalg.fill ins(%z : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>"""
    text = function(["tensor<4xf32>"], ["tensor<4xf32>"], body)
    module = parse_module(text, context, "net.mlir")
    (fill,) = (op for op in module.walk() if op.name == "linalg.fill")
    fill.operands = fill.operands[:1]
    fill.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, 0])
    with pytest.raises(InputError, match=r"net.mlir:4:5: linalg.fill: it breaks a rule .*index"):
        ConvertLinalgToNn().apply(context, module)


def test_a_text_that_breaks_a_rule_of_its_dialect_is_refused(tmp_path: Path):
    path = tmp_path / "net.mlir"
    body = """
    %r0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<4xf32>"""
    path.write_text(function(["tensor<4xf32>"], ["tensor<4xf32>"], body))
    with pytest.raises(InputError, match=r"net.mlir: linalg.generic at .*: "):
        compile_model(path, target="tiny:4")


def test_removing_what_is_dead_leaves_the_ends_of_blocks():
    context = new_context()
    module = parse_module(LAYER.read_text(), context, "layer.mlir")
    EliminateDead().apply(context, module)
    module.verify()
