"""Products with packed matrices, from nn down to bytes."""

import numpy as np
import pytest

from abele.tools import compile_model

ELEMENTS = {"f16": np.float16, "f32": np.float32}
M, N, K, SIZE = 3, 6, 40, 16
BLOCKS = -(-K // SIZE)


def program(bits: int, element: str) -> str:
    """A product of [M, K] and a packed matrix [N, K], whose last blocks are not full."""
    each = 8 // bits
    types = [
        f"tensor<{M}x{K}x{element}>",
        f"tensor<{N}x{BLOCKS}x{SIZE // each}xui8>",
        f"tensor<{N}x{BLOCKS}x{element}>",
        f"tensor<{N}x{BLOCKS}xui8>",
        f"tensor<{each}xui8>",
    ]
    made = f"tensor<{M}x{N}x{element}>"
    names = [f"%{name}" for name in "xpszh"]
    given = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    return f"""func.func @main({given}) -> {made} {{
      %0 = nn.packed_matmul {", ".join(names)} bits {bits} : ({", ".join(types)}) -> {made}
      %1 = nn.relu %0 : ({made}) -> {made}
      func.return %1 : {made}
    }}"""


def check(text: str, bits: int, element: str, folder, target: str) -> None:
    """Run a program at every level, and compare with the product of the unpacked matrix."""
    path = folder / "product.mlir"
    path.write_text(text)
    exe = compile_model(path, target, cache=False)
    rng = np.random.default_rng(bits)
    dtype, shifts = ELEMENTS[element], np.arange(0, 8, bits, dtype=np.uint8)
    x = rng.integers(-1, 2, (M, K)).astype(dtype)
    packed = rng.integers(0, 256, (N, BLOCKS, SIZE * bits // 8)).astype(np.uint8)
    scales = rng.choice([0.5, 1, 2], (N, BLOCKS)).astype(dtype)
    zeros = rng.integers(0, 1 << bits, (N, BLOCKS)).astype(np.uint8)
    whole = (packed[..., None] >> shifts & (1 << bits) - 1).reshape(N, BLOCKS, SIZE)
    matrix = (whole - zeros[..., None].astype(np.float32)) * scales[..., None]
    wanted = np.maximum(x.astype(np.float32) @ matrix.reshape(N, -1)[:, :K].T, 0).astype(dtype)
    given = dict(
        zip([f"arg{i}" for i in range(5)], (x, packed, scales, zeros, shifts), strict=True)
    )
    for level in ("nn", "partition", "tile", "exchange"):
        np.testing.assert_array_equal(exe.run(given, at=level)["out0"], wanted)


@pytest.mark.parametrize(("bits", "element"), [(2, "f32"), (4, "f16"), (4, "f32"), (8, "f16")])
def test_every_level_multiplies_by_the_unpacked_matrix(bits, element, tmp_path):
    check(program(bits, element), bits, element, tmp_path, "tiny:6")


def test_a_tile_holds_packed_weights_as_bytes(tmp_path):
    path = tmp_path / "product.mlir"
    path.write_text(program(4, "f16"))
    memory = compile_model(path, "tiny:1", cache=False).memory
    held = [(each.dtype, each.bytes) for each in memory.variables]
    assert ("uint8", N * BLOCKS * SIZE // 2) in held
    # Nothing has as many elements as the matrix.
    assert all(size < N * K * 2 for dtype, size in held if dtype != "uint8")
