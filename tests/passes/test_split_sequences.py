from itertools import product
from math import inf, nan

import numpy as np
import pytest
from some_tensors import context, module_of

from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.split_sequences import SplitSequences, best_parts
from abele.tools import compile_model

FLOAT32 = np.dtype(np.float32)
ELEMENTS = {"f32": np.float32, "f16": np.float16, "i32": np.int32}


def program(line: str, shape: str, result: str = "") -> str:
    """A program of one operation."""
    given, made = f"tensor<{shape}>", f"tensor<{result or shape}>"
    return (
        f"func.func @main(%x: {given}) -> {made} {{\n"
        f"%1 = {line} : ({given}) -> {made}\nfunc.return %1 : {made}\n}}"
    )


def split(text: str, target: str = "mk2") -> tuple[ModuleOp, ModuleOp]:
    """A program before and after the pass."""
    ctx = context()
    before, after = module_of(text, ctx), module_of(text, ctx)
    SplitSequences(target).apply(ctx, after)
    verify(after)
    return before, after


def kinds(module: ModuleOp) -> list[type]:
    return [type(op) for op in module.walk()]


def values(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("combiner", ["sum", "max", "min"])
def test_a_long_scan_is_done_in_two_phases(combiner: str, element: str):
    for exclusive, reverse, size in product(("", " exclusive"), ("", " reverse"), (2048, 1999)):
        shape = f"3x{size}x{element}"
        text = program(f'nn.scan "{combiner}" %x axis 1{exclusive}{reverse}', shape)
        before, after = split(text)
        assert kinds(after).count(nn.ScanOp) == 2
        x = {"arg0": values((3, size), ELEMENTS[element])}
        (expected,), (found,) = (run_reference(m, x).outputs.values() for m in (before, after))
        np.testing.assert_array_equal(found, expected, strict=True)


def test_parts_depend_on_the_machine_and_on_the_rows():
    mk2, tiny = resolve_target("mk2"), resolve_target("tiny:1")
    assert best_parts(1, 20, FLOAT32, mk2) == 1
    assert best_parts(1, 100_000, FLOAT32, mk2) > 64
    assert best_parts(100_000, 1000, FLOAT32, mk2) == 1
    assert best_parts(1, 4096, FLOAT32, tiny) <= tiny.workers


@pytest.mark.parametrize("descending", ["", " descending"])
def test_a_sort_of_a_row_counts_pairs(descending: str):
    row = np.array([1, nan, -0.0, inf, 0.0, -inf, nan, 1, -1, inf] * 5, np.float32)
    for x, dtype in ((np.stack([row, row[::-1]]), "f32"), (values((2, 50), np.int32), "i32")):
        for name, made in (("sort", dtype), ("sort_indices", "i32")):
            text = program(f"nn.{name} %x axis 1{descending}", f"2x50x{dtype}", f"2x50x{made}")
            before, after = split(text)
            assert not {nn.SortOp, nn.SortIndicesOp} & set(kinds(after))
            (expected,), (found,) = (
                run_reference(m, {"arg0": x}).outputs.values() for m in (before, after)
            )
            np.testing.assert_array_equal(found, expected, strict=True)


def test_pairs_that_do_not_fit_are_not_counted():
    _, after = split(program("nn.sort %x axis 0", "100000xf32"))
    assert nn.SortOp in kinds(after)


def test_a_member_of_a_group_stays_as_it_is():
    _, after = split(program('nn.scan "sum" %x axis 0 {group = 0}', "8192xf32"))
    assert kinds(after).count(nn.ScanOp) == 1


def test_the_default_pipeline_takes_the_cheaper_algorithm(tmp_path):
    path = tmp_path / "sort.mlir"
    path.write_text(program("nn.sort_indices %x axis 1", "1x64xf32", "1x64xi32"))
    exe = compile_model(str(path), "mk2:16")
    x = values((1, 64), np.float32)
    (found,) = exe.run({exe.inputs[0].name: x}).values()
    np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))
    assert exe.profile["cycles"] < 50_000
