"""Constants that a weight holds too are found, and their readers can read the weight."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from some_tensors import context, counting, module_of
from xdsl.dialects.builtin import ArrayAttr, StringAttr, UnitAttr

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.levels import NN
from abele.ir.provenance import locate
from abele.ir.text import print_module
from abele.ir.upstream import Context, InsertPoint, ModuleOp, ModulePass, Rewriter
from abele.ir.verify import verify
from abele.ir.well_known import UPDATED
from abele.passes.plans import copies_of_weights as tested
from abele.passes.plans.copies_of_weights import copies_of_weights, in_clone, read_weights
from abele.tools.testing import check_pass

W = counting((256, 64))
TABLE, TURNED, IDS = "tensor<256x64xf32>", "tensor<64x256xf32>", "tensor<3xi64>"
X, Y = "tensor<3x64xf32>", "tensor<3x256xf32>"

TIED = f"""
nn.state @w : {TABLE} = {{w}}
func.func @main(%ids: {IDS}) -> {Y} attributes {{arg_names = ["ids"], result_names = ["y"]}} {{
  %w = nn.load @w : {TABLE} loc("w")
  %0 = nn.gather %w, %ids axis 0 : ({TABLE}, {IDS}) -> {X} loc("embedded")
  %c = nn.constant {{turned}} : {TURNED} loc("turn")
  %1 = nn.matmul %0, %c : ({X}, {TURNED}) -> {Y} loc("logits")
  func.return %1 : {Y}
}}"""


def module(text: str = TIED, turned: np.ndarray = W.T, w: np.ndarray = W) -> ModuleOp:
    return module_of(text, context(), w=w, turned=np.ascontiguousarray(turned))


SHARING = TIED.replace(
    f'nn.constant {{turned}} : {TURNED} loc("turn")', f'nn.load @w : {TABLE} loc("w")'
).replace(f"%c : ({X}, {TURNED})", f"%c transpose_rhs : ({X}, {TABLE})")


def test_a_product_reads_the_table_in_its_own_order():
    found = module()
    read_weights(copies_of_weights(found))
    verify(found)
    assert print_module(found, locations=False) == print_module(module(SHARING), locations=False)


def test_the_same_copies_are_found_in_a_clone():
    found = module()
    clone = found.clone()
    read_weights(in_clone(copies_of_weights(found), found, clone))
    assert "nn.constant" not in print_module(clone)
    assert "nn.constant" in print_module(found)


def test_a_reshaped_weight_is_read_through_a_reshape():
    shape = "tensor<128x128xf32>"
    text = (
        TIED.replace(f"{{turned}} : {TURNED}", f"{{turned}} : {shape}")
        .replace(f"nn.matmul %0, %c : ({X}, {TURNED}) -> {Y}", f"nn.exp %c : ({shape}) -> {shape}")
        .replace(f"-> {Y} attr", f"-> {shape} attr")
        .replace(f"%1 : {Y}", f"%1 : {shape}")
    )
    found = module(text, W.reshape(128, 128))
    inputs = {"ids": np.array([0, 1, 2])}
    expected = run_reference(found, inputs).outputs["y"]
    read_weights(copies_of_weights(found))
    verify(found)
    assert "nn.reshape" in print_module(found)
    assert "nn.constant" not in print_module(found)
    assert np.array_equal(run_reference(found, inputs).outputs["y"], expected)


def test_a_constant_may_be_the_weight():
    text = TIED.replace(f"nn.state @w : {TABLE} = {{w}}", "").replace(
        "nn.load @w", "nn.constant {w}"
    )
    found = module(text)
    read_weights(copies_of_weights(found))
    verify(found)
    assert print_module(found).count("nn.constant") == 1


ALMOST = np.array(W.T)
ALMOST[-1, -1] += 1


@pytest.mark.parametrize(
    "turned", [ALMOST, -W.T, W.reshape(64, 256) + 1], ids=["one", "sign", "all"]
)
def test_another_array_is_no_copy(turned: np.ndarray):
    assert not copies_of_weights(module(turned=turned))


def test_zeros_of_another_sign_are_no_copy():
    assert not copies_of_weights(module(turned=-np.zeros_like(W).T, w=np.zeros_like(W)))


def test_a_state_that_may_change_is_no_weight():
    stored = TIED.replace("func.return", f"nn.store %w, @w : {TABLE}\n  func.return")
    assert not copies_of_weights(module(stored))
    found = module()
    found.attributes[UPDATED] = ArrayAttr([StringAttr("w")])
    assert not copies_of_weights(found)


def test_what_nobody_else_reads_is_no_weight():
    unread = (
        TIED.replace(f'nn.load @w : {TABLE} loc("w")', f"nn.exp %z : ({TABLE}) -> {TABLE}")
        .replace(f"%ids: {IDS}", f"%ids: {IDS}, %z: {TABLE}")
        .replace('["ids"]', '["ids", "z"]')
    )
    assert not copies_of_weights(module(unread))


def test_a_turned_copy_that_somebody_else_reads_too_stays():
    text = TIED.replace("func.return", f"%2 = nn.exp %c : ({TURNED}) -> {TURNED}\n  func.return")
    assert not copies_of_weights(module(text))


@pytest.mark.parametrize("planned", ["", " {plan = #abele.plan<split [1, 2, 1]>}"])
def test_what_is_planned_stays(planned: str):
    text = TIED.replace("nn.matmul %0, %c", f"nn.matmul %0, %c{planned}")
    assert bool(copies_of_weights(module(text))) == (not planned)


def test_a_decided_home_stays():
    home = "{home = #abele.layout<[256 by 2, 64] (d0, d1) of [256, 64]>}"
    assert not copies_of_weights(module(TIED.replace("= {w}", f"= {{w}} {home}")))


def test_small_constants_are_not_compared():
    text = TIED.replace("256", "255")
    small = counting((255, 64))
    assert not copies_of_weights(module(text, small.T, small))


@given(
    st.lists(st.integers(1, 3), max_size=2),
    *(st.integers(1, 4) for _ in range(3)),
    st.booleans(),
    st.booleans(),
)
def test_products_keep_every_bit(batch: list[int], m: int, n: int, k: int, left: bool, flag: bool):
    """left: whether the weight is the left operand. flag: whether the copy is read transposed."""
    rng = np.random.default_rng(m + 5 * n)
    shape = (*batch, m, k) if left else (*batch, k, n)
    other = (*batch, k, n) if left else (*batch, m, k)
    read = (*shape[:-2], shape[-1], shape[-2]) if flag else shape
    copied = rng.standard_normal(read).astype(np.float32)
    weight = np.ascontiguousarray(copied.swapaxes(-1, -2))

    def type_of(sizes: tuple[int, ...]) -> str:
        return f"tensor<{'x'.join(map(str, sizes))}xf32>"

    operands = ("%c", "%x") if left else ("%x", "%c")
    types = (read, other) if left else (other, read)
    side = ("transpose_lhs" if left else "transpose_rhs") if flag else ""
    result = type_of((*batch, m, n))
    text = f"""
    nn.state @w : {type_of(weight.shape)} = {{w}}
    func.func @main(%x: {type_of(other)}) -> ({result}, {type_of(weight.shape)})
        attributes {{arg_names = ["x"], result_names = ["y", "z"]}} {{
      %w = nn.load @w : {type_of(weight.shape)}
      %0 = nn.exp %w : ({type_of(weight.shape)}) -> {type_of(weight.shape)}
      %c = nn.constant {{turned}} : {type_of(read)}
      %1 = nn.matmul {", ".join(operands)} {side}
        : ({type_of(types[0])}, {type_of(types[1])}) -> {result}
      func.return %1, %0 : {result}, {type_of(weight.shape)}
    }}"""
    found = module(text, copied, weight)
    inputs = {"x": rng.standard_normal(other).astype(np.float32)}
    expected = run_reference(found, inputs).outputs["y"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tested, "SMALLEST", 0)
        read_weights(copies_of_weights(found))
    verify(found)
    assert "nn.constant" not in print_module(found)
    assert run_reference(found, inputs).outputs["y"].tobytes() == expected.tobytes()


@dataclass(frozen=True)
class CopyAndShare(ModulePass):
    """Give products turned copies of the weights that they read, and let them share again."""

    name = "copy-and-share"
    takes = NN

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        states = {s.sym_name.data: s for s in op.walk() if isinstance(s, nn.StateOp)}
        for product in [each for each in op.walk() if isinstance(each, nn.MatMulOp)]:
            for i, flag in enumerate(("transpose_lhs", "transpose_rhs")):
                owner = product.operands[i].owner
                if isinstance(owner, nn.LoadOp):
                    array = states[owner.state.string_value()].value.array
                elif isinstance(owner, nn.ConstantOp):
                    array = owner.value.array
                else:
                    continue
                copy = nn.ConstantOp(np.ascontiguousarray(array.swapaxes(-1, -2)))
                locate(copy, product)
                Rewriter.insert_op(copy, InsertPoint.before(product))
                product.operands[i] = copy.result
                if product.properties.pop(flag, None) is None:
                    product.properties[flag] = UnitAttr()
        read_weights(copies_of_weights(op))


def test_generated_programs_mean_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tested, "SMALLEST", 0)
    check_pass(CopyAndShare(), "nn", examples=12, seed=0)
