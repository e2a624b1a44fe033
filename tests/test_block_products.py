"""Products of block-sparse matrices, from nn down to bytes."""

import numpy as np
import pytest
from block_sparse import densified

from abele.tools import compile_model

ELEMENTS = {"f16": np.float16, "f32": np.float32}
HIGH, WIDE, BLOCKS, COLUMNS = 4, 3, 7, 5


def program(side: int, element: str, flags: str, plan: str = "") -> str:
    """A product of a block-sparse matrix, 4 blocks high and 3 wide, by a dense one.

    Values, dense matrix, rows and columns of blocks are inputs.
    """
    k, m = (HIGH, WIDE)[:: 1 if "transposed" in flags else -1]
    dense = f"{COLUMNS}x{k * side}" if "dense_last" in flags else f"{k * side}x{COLUMNS}"
    made = f"{COLUMNS}x{m * side}" if "dense_last" in flags else f"{m * side}x{COLUMNS}"
    values, indices = f"tensor<{BLOCKS}x{side}x{side}x{element}>", f"tensor<{BLOCKS}xi32>"
    dense, made = f"tensor<{dense}x{element}>", f"tensor<{made}x{element}>"
    return f"""func.func @main(%v: {values}, %x: {dense}, %r: {indices}, %c: {indices}) -> {made} {{
      %0 = nn.block_matmul %v, %x at %r, %c size {m * side} {flags} {plan}
          : ({values}, {dense}, {indices}, {indices}) -> {made}
      func.return %0 : {made}
    }}"""


def check(text: str, side: int, element: str, flags: str, folder, target: str) -> None:
    """Run a program at every level with two patterns, and compare with the dense product."""
    path = folder / "product.mlir"
    path.write_text(text)
    exe = compile_model(path, target, cache=False)
    rng = np.random.default_rng(side)
    for _ in range(2):
        values = rng.integers(-3, 4, (BLOCKS, side, side)).astype(ELEMENTS[element])
        rows, columns = rng.integers(0, HIGH, BLOCKS), rng.integers(0, WIDE, BLOCKS)
        matrix = densified(values, rows, columns, (HIGH, WIDE))
        matrix = matrix.T if "transposed" in flags else matrix
        dense = rng.integers(-3, 4, (matrix.shape[1], COLUMNS)).astype(ELEMENTS[element])
        wanted = matrix @ dense.astype(np.float32)
        given = {"arg1": dense.T if "dense_last" in flags else dense, "arg0": values}
        given |= {"arg2": rows.astype(np.int32), "arg3": columns.astype(np.int32)}
        for level in ("nn", "partition", "tile", "exchange"):
            found = exe.run(given, at=level)["out0"]
            np.testing.assert_array_equal(found.T if "dense_last" in flags else found, wanted)


@pytest.mark.parametrize("flags", ["", "transposed", "dense_last", "transposed dense_last"])
@pytest.mark.parametrize(("side", "element"), [(1, "f32"), (4, "f16"), (8, "f32"), (16, "f16")])
def test_every_level_computes_the_dense_product_of_any_pattern(side, element, flags, tmp_path):
    check(program(side, element, flags), side, element, flags, tmp_path, "tiny:6")


@pytest.mark.parametrize(
    "split",
    [
        [1, 1, 1, 7, 1, 1],
        [1, 4, 1, 2, 1, 1],
        [1, 2, 1, 1, 3, 1],
        [5, 1, 1, 1, 1, 1],
        [1, 1, 4, 1, 1, 2],
        [2, 2, 2, 1, 1, 1],
    ],
)
def test_any_dimension_may_be_cut(split, tmp_path):
    combine = " combine split [2, 2, 1, 1]" if split[3] * split[4] * split[5] > 1 else ""
    plan = f"{{plan = #abele.plan<split {split}{combine}>}}"
    check(program(4, "f32", "", plan), 4, "f32", "", tmp_path, "tiny:16")
