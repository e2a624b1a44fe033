from pathlib import Path

import pytest
from training import training_step

from abele.tools.advice.recomputable import recomputable
from abele.tools.driver.compile import compile_model

T = "tensor<32x64xf32>"
MIDDLE = f"""
  %p = nn.matmul %x, %large : ({T}, tensor<64x512xf32>) -> tensor<32x512xf32> loc("p")
  %q = nn.matmul %p, %tall : (tensor<32x512xf32>, tensor<512x64xf32>) -> {T} loc("q")
"""
"""What fills the tiles, while what is before and behind it waits."""


@pytest.fixture
def named(tmp_path: Path):
    """The nodes that can be computed again of a program of %x, which computes `before`, then the
    middle, which gives %q, then `after`, which gives %out."""

    def found(before: str, after: str) -> tuple[str, ...]:
        rows, columns = "%rows: tensor<32x1xf32>", "%columns: tensor<1x64xf32>"
        large = "%large: tensor<64x512xf32>, %tall: tensor<512x64xf32>"
        path = tmp_path / "net.mlir"
        path.write_text(f"""builtin.module {{
  func.func @main(%x: {T}, {rows}, {columns}, {large}) -> {T} {{
    {before}{MIDDLE}{after}
    func.return %out : {T}
  }}
}}""")
        exe = compile_model(path, "tiny:4", passes="partition,tile,exchange", unbounded=True)
        return recomputable(exe.memory, exe.module_at("nn"))

    return found


def unary(op: str, result: str, operand: str) -> str:
    return f'{result} = nn.{op} {operand} : ({T}) -> {T} loc("{result[1:]}")\n'


def add(result: str, a: str, b: str) -> str:
    return f'{result} = nn.add {a}, {b} : ({T}, {T}) -> {T} loc("{result[1:]}")\n'


MASK = f'%m = nn.mul %rows, %columns : (tensor<32x1xf32>, tensor<1x64xf32>) -> {T} loc("m")\n'


def test_an_operation_on_much_smaller_operands_is_recomputable(named):
    used = add("%y", "%x", "%m")
    assert named(MASK + used, add("%z", "%q", "%y") + add("%out", "%z", "%m")) == ("m",)


def test_an_operation_on_operands_that_live_anyway_is_recomputable(named):
    before = unary("tanh", "%a", "%x") + unary("exp", "%b", "%a")
    after = add("%c", "%q", "%b") + add("%d", "%c", "%a") + add("%out", "%d", "%x")
    assert named(before, after) == ("a",)


def test_an_operation_on_dead_operands_is_not_recomputable(named):
    before = unary("tanh", "%a", "%x") + unary("exp", "%b", "%a") + unary("exp", "%e", "%b")
    after = add("%c", "%q", "%e") + add("%out", "%c", "%b")
    assert named(before, after) == ()


def test_dead_operands_that_are_recomputable_are_named_too(named):
    before = MASK + unary("tanh", "%a", "%m") + unary("exp", "%b", "%a") + unary("exp", "%e", "%b")
    after = add("%c", "%q", "%e") + add("%out", "%c", "%b")
    assert named(before, after) == ("b", "a", "m")


def test_a_value_that_another_recomputation_reads_is_not_recomputed(named):
    # %b can be computed of %a, and %a of %m: but not both, since %b would then wait for %a.
    before = MASK + unary("tanh", "%a", "%m") + unary("exp", "%b", "%a") + unary("exp", "%e", "%b")
    after = add("%c", "%q", "%e") + add("%d", "%c", "%b") + add("%out", "%d", "%a")
    found = named(before, after)
    assert ("a" in found) != ("b" in found)


def test_an_operation_whose_result_does_not_wait_is_not_named(named):
    assert named(MASK, add("%out", "%q", "%m")) == ()
    assert named("", unary("exp", "%out", "%q")) == ()


def test_every_other_layer_of_a_training_step_is_recomputed(tmp_path: Path):
    path = tmp_path / "step.mlir"
    path.write_text(training_step(6, 4, 16))
    exe = compile_model(path, "tiny:16", passes="partition,tile,exchange")
    found = recomputable(exe.memory, exe.module_at("nn"))
    convolutions = {int(name[4:]) for name in found if name.startswith("conv")}
    kept = set(range(1, 7)) - convolutions
    assert convolutions
    assert kept
