"""Products of block-sparse matrices whose pattern changes from run to run, with one program."""

from timeit import timeit

import numpy as np
import pytest
from block_sparse import densified, random_blocks
from typer.testing import CliRunner

from abele.dialects import nn
from abele.dialects.abele import Plan, PlanAttr
from abele.ir.geometry.block_lists import BlockLists
from abele.ir.support.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.passes.bucket_blocks import BucketBlocks
from abele.tools import Session, Training, compile_model
from abele.tools.cli import app
from abele.tools.driver.context import new_context

ELEMENTS = {"f16": np.float16, "f32": np.float32}
HIGH, WIDE, COLUMNS = 8, 4, 5
LEVELS = ("nn", "partition", "tile", "exchange")


def program(side, element, capacity, flags="", buckets="buckets [4, 2]", index="i32"):
    """A product of a block-sparse matrix, 8 blocks high and 4 wide, by a dense one."""
    k, m = (HIGH, WIDE)[:: 1 if "transposed" in flags else -1]
    last = "dense_last" in flags
    dense = f"{COLUMNS}x{k * side}" if last else f"{k * side}x{COLUMNS}"
    made = f"{COLUMNS}x{m * side}" if last else f"{m * side}x{COLUMNS}"
    values, indices = f"tensor<9x{side}x{side}x{element}>", f"tensor<9x{index}>"
    dense, made = f"tensor<{dense}x{element}>", f"tensor<{made}x{element}>"
    planned = f"{'density' if '.' in str(capacity) else 'capacity'} {capacity}"
    return f"""func.func @main(%v: {values}, %x: {dense}, %r: {indices}, %c: {indices}) -> {made}
        attributes {{arg_names = ["v", "x", "r", "c"], result_names = ["y"]}} {{
      %0 = nn.block_matmul %v, %x at %r, %c size {m * side} {flags} {planned} {buckets}
          : ({values}, {dense}, {indices}, {indices}) -> {made}
      func.return %0 : {made}
    }}"""


def compiled(folder, *given, target="tiny:16", **options):
    path = folder / "product.mlir"
    path.write_text(program(*given, **options))
    return compile_model(path, target, cache=False)


def blocks(rng, count, side, element):
    """The inputs of random blocks."""
    values, *indices = random_blocks(rng, (HIGH, WIDE), (side, side), count, ELEMENTS[element])
    rows, columns = (each.astype(np.int32) for each in indices)
    return {"v": values, "r": rows, "c": columns}


def matrix_of(given):
    """The matrix of the blocks that inputs or states hold."""
    return densified(given["v"], given["r"], given["c"], (HIGH, WIDE))


def check(run, given, side, element, flags="", seed=0):
    """Compare a run with the dense product, exactly."""
    matrix = matrix_of(given)
    matrix = matrix.T if "transposed" in flags else matrix
    rng, last = np.random.default_rng(seed), "dense_last" in flags
    dense = rng.integers(-3, 4, (matrix.shape[1], COLUMNS)).astype(ELEMENTS[element])
    found = run({**given, "x": np.ascontiguousarray(dense.T) if last else dense})["y"]
    wanted = matrix @ dense.astype(np.float32)
    np.testing.assert_array_equal(found.T if last else found, wanted)


@pytest.mark.parametrize(
    ("side", "element", "flags"),
    [
        (1, "f32", ""),
        (4, "f16", "transposed"),
        (8, "f32", "dense_last"),
        (16, "f16", "transposed dense_last"),
    ],
)
def test_one_program_multiplies_by_any_pattern_that_fits(side, element, flags, tmp_path):
    exe = compiled(tmp_path, side, element, 12, flags)
    rng = np.random.default_rng(side)
    for level in LEVELS:
        given = blocks(rng, 10, side, element)
        check(lambda inputs, level=level: exe.run(inputs, at=level), given, side, element, flags)


@pytest.mark.parametrize(("capacity", "count"), [("0", 0), ("1.0", 32), ("0.25", 0)])
def test_patterns_without_blocks_and_of_all_blocks_run(capacity, count, tmp_path):
    exe = compiled(tmp_path, 4, "f32", capacity)
    rng = np.random.default_rng(0)
    rows, columns = (each.ravel().astype(np.int32) for each in np.indices((HIGH, WIDE)))
    given = blocks(rng, count, 4, "f32")
    given |= {"r": rows[:count], "c": columns[:count]}
    check(exe.run, given, 4, "f32")


def test_a_saved_program_takes_a_new_pattern_in_a_session_and_a_shell(tmp_path):
    exe = compiled(tmp_path, 4, "f16", 12)
    exe.save(tmp_path / "product.abele")
    rng = np.random.default_rng(1)
    session = Session({"one": compile_model(tmp_path / "product.abele")})
    for count in (10, 3):
        check(session.run, blocks(rng, count, 4, "f16"), 4, "f16")
    x = np.zeros((WIDE * 4, COLUMNS), np.float16)
    files = {"fits": blocks(rng, 7, 4, "f16"), "full": blocks(rng, 20, 4, "f16")}
    files["full"] |= {"r": np.zeros(20, np.int32), "c": np.zeros(20, np.int32)}
    files["wrong"] = {**files["fits"], "r": np.full(7, HIGH, np.int32)}
    found = {}
    for name, given in files.items():
        np.savez(tmp_path / f"{name}.npz", **given, x=x)
        words = ["run", tmp_path / "product.abele", "--inputs", tmp_path / f"{name}.npz"]
        found[name] = CliRunner().invoke(app, list(map(str, words)))
    assert found["fits"].exit_code == 0
    assert found["full"].exit_code == found["wrong"].exit_code == 2
    said = " ".join(found["full"].output.split())
    assert "bucket [0, 0] has 20 blocks and room for 2" in said
    assert "with buckets [4, 2]" in said
    assert "row 8 of block 0" in " ".join(found["wrong"].output.split())


def test_a_new_pattern_takes_milliseconds():
    lists = BlockLists.planned((256, 256), (32, 8), 4096, 0.3)
    at = np.random.default_rng(0).choice(1 << 16, 4096, replace=False)
    values = np.zeros((4096, 16, 16), np.float16)
    seconds = min(
        timeit(lambda: lists.encode(values, at // 256, at % 256), number=1) for _ in range(5)
    )
    assert seconds < 0.1


def test_a_pattern_that_does_not_fit_leaves_the_program_as_it_was(tmp_path):
    exe = compiled(tmp_path, 1, "f32", 12)
    rng = np.random.default_rng(2)
    full = {**blocks(rng, 20, 1, "f32"), "r": np.zeros(20, np.int32), "c": np.zeros(20, np.int32)}
    x = np.ones((WIDE, COLUMNS), np.float32)
    with pytest.raises(InputError, match="inputs 'v', 'r', 'c': a pattern of 20 blocks does not"):
        exe.run({**full, "x": x})
    check(exe.run, blocks(rng, 9, 1, "f32"), 1, "f32")


def state(name, array):
    kind = {"f": "f32", "i": "i32"}[array.dtype.kind]
    shape = "x".join(map(str, array.shape))
    listed = ", ".join(map(str, array.ravel().tolist()))
    return f"nn.state @{name} : tensor<{shape}x{kind}> = <[{listed}] : tensor<{shape}x{kind}>>"


def trained_layer(folder, first, side):
    """A program that trains a layer whose blocks are states, with the product of its transpose."""
    count = len(first["v"])
    kinds = [f"tensor<{count}x{side}x{side}xf32>", *[f"tensor<{count}xi32>"] * 2]
    loads = "\n".join(f"%{n} = nn.load @{n} : {kind}" for n, kind in zip("vrc", kinds, strict=True))
    x, h = f"tensor<{COLUMNS}x{WIDE * side}xf32>", f"tensor<{COLUMNS}x{HIGH * side}xf32>"
    text = f"""builtin.module {{
      {state("v", first["v"])} {state("r", first["r"])} {state("c", first["c"])}
      func.func @main(%x: {x}) -> {x} attributes {{arg_names = ["x"], result_names = ["y"]}} {{
        {loads}
        %0 = nn.block_matmul %v, %x at %r, %c size {HIGH * side} dense_last
          capacity 12 buckets [4, 2] : ({kinds[0]}, {x}, {kinds[1]}, {kinds[1]}) -> {h}
        %1 = nn.block_matmul %v, %0 at %r, %c size {WIDE * side} transposed dense_last
          capacity 12 buckets [4, 2] : ({kinds[0]}, {h}, {kinds[1]}, {kinds[1]}) -> {x}
        func.return %1 : {x}
      }}
    }}"""
    path = folder / "layer.mlir"
    path.write_text(text)
    made = Training(
        loss="mean_square",
        optimizer="sgd",
        learning_rate=RATE,
        outputs=True,
    )
    return compile_model(path, "tiny:16", train=made, cache=False)


RATE = 2.0**-6


def expected_step(given, side, x, target):
    """The output of the layer, and its blocks after a step, by dense products."""
    matrix = matrix_of(given)
    hidden = x @ matrix.T
    y = hidden @ matrix
    slope = 2 * (y - target) / y.size
    gradient = hidden.T @ slope + (slope @ matrix.T).T @ x
    blocks_of = gradient.reshape(HIGH, side, WIDE, side)[given["r"], :, given["c"]]
    return y, given["v"] - RATE * blocks_of


def same_blocks(found, wanted):
    """Whether two lists have the same blocks, in any order."""
    keys = [np.lexsort((each["v"][:, 0, 0], each["c"], each["r"])) for each in (found, wanted)]
    for name in "rcv":
        one, other = (each[name][key] for each, key in zip((found, wanted), keys, strict=True))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_blocks_that_are_states_are_trained_and_replaced(tmp_path):
    side, rng = 2, np.random.default_rng(3)
    first, second = (
        {
            "v": rng.integers(-3, 4, (count, side, side)).astype(np.float32),
            "r": rng.integers(0, HIGH, count).astype(np.int32),
            "c": rng.integers(0, WIDE, count).astype(np.int32),
        }
        for count in (10, 7)
    )
    exe = trained_layer(tmp_path, first, side)
    same_blocks(exe.states, first)
    x, target = rng.integers(-2, 3, (2, COLUMNS, WIDE * side)).astype(np.float32)
    for given in (first, second):
        exe.set_states(given)
        y, values = expected_step(given, side, x, target)
        found = exe.step({"x": x, "target": target})
        np.testing.assert_allclose(found["y"], y, rtol=1e-5)
        same_blocks(exe.states, {**given, "v": values.astype(np.float32)})
    held = exe.states
    exe.set_states(held)
    for name, array in held.items():
        np.testing.assert_array_equal(exe.states[name], array)
    # Another program of a session computes with the blocks and with their places.
    used = compile_model(tmp_path / "layer.mlir", "tiny:16", cache=False)
    session = Session({"train": exe, "use": used})
    y, _ = expected_step(held, side, x, target)
    np.testing.assert_allclose(session.run({"x": x})["y"], y, rtol=1e-4)
    with pytest.raises(InputError, match="state 'r' is missing; need v, r, c together"):
        exe.set_states({"v": first["v"]})
    crowded = {**first, "r": first["r"] * 0, "c": first["c"] * 0}
    crowded = {name: np.concatenate([each] * 2) for name, each in crowded.items()}
    with pytest.raises(InputError, match="states 'v', 'r', 'c': a pattern of 20 blocks does not"):
        exe.set_states(crowded)


def test_the_blocks_of_a_bucket_may_go_round_its_tiles(tmp_path):
    path = tmp_path / "product.mlir"
    context = new_context()
    text = program(4, "f32", 12, buckets="oversize 0.0 buckets [2, 1]")
    module = parse_module(text, context, "product.mlir")
    BucketBlocks("tiny:16").apply(context, module)
    first, _ = (op for op in module.walk() if isinstance(op, nn.ComputeOp))
    assert nn.shape_of(first.operands[0]) == (2, 1, 6, 4, 4)
    # Of each band, 2 tiles have 2 rows each, and 3 of its 6 blocks at a time.
    first.attributes["plan"] = PlanAttr(
        Plan((1, 2, 2, 1, 1, 1, 1, 1), steps=(1, 1, 1, 1, 1, 2, 1, 1), ring=(*[-1] * 5, 2, -1, -1))
    )
    path.write_text(print_module(module))
    exe = compile_model(path, "tiny:16", cache=False)
    rng = np.random.default_rng(4)
    for level in LEVELS:
        given = blocks(rng, 10, 4, "f32")
        check(lambda inputs, level=level: exe.run(inputs, at=level), given, 4, "f32")


def test_a_weight_is_trained_with_another_pattern_at_each_step(tmp_path):
    rng, side = np.random.default_rng(5), 2
    weight = rng.integers(-2, 3, (WIDE * side, COLUMNS)).astype(np.float32)
    kinds = f"tensor<9x{side}x{side}xf32>", "tensor<9xi32>"
    w, y = f"tensor<{WIDE * side}x{COLUMNS}xf32>", f"tensor<{HIGH * side}x{COLUMNS}xf32>"
    path = tmp_path / "weight.mlir"
    path.write_text(f"""builtin.module {{
      {state("w", weight)}
      func.func @main(%v: {kinds[0]}, %r: {kinds[1]}, %c: {kinds[1]}) -> {y}
          attributes {{arg_names = ["v", "r", "c"], result_names = ["y"]}} {{
        %w = nn.load @w : {w}
        %0 = nn.block_matmul %v, %w at %r, %c size {HIGH * side} capacity 12 buckets [4, 2]
          : ({kinds[0]}, {w}, {kinds[1]}, {kinds[1]}) -> {y}
        func.return %0 : {y}
      }}
    }}""")
    made = Training(loss="mean_square", optimizer="sgd", learning_rate=RATE)
    exe = compile_model(path, "tiny:16", train=made, cache=False)
    for count in (9, 4):
        given = blocks(rng, count, side, "f32")
        target = rng.integers(-3, 4, (HIGH * side, COLUMNS)).astype(np.float32)
        matrix = matrix_of(given)
        slope = 2 * (matrix @ weight - target) / target.size
        weight = weight - RATE * matrix.T @ slope
        exe.step({**given, "target": target})
        np.testing.assert_allclose(exe.weights["w"], weight, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("command", ["run --check", "plan", "bisect"])
def test_commands_draw_a_pattern_that_fits(command, tmp_path):
    path = tmp_path / "product.mlir"
    path.write_text(program(4, "f32", 12))
    words = [*command.split(), str(path), "--target", "tiny:16"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
