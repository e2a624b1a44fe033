import ml_dtypes
import numpy as np
import pytest
from lengths import lengths
from some_tensors import context, counting, module_of
from xdsl.dialects.builtin import f32

from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.levels import NN
from abele.ir.errors import InputError
from abele.ir.instruments.record_ir import UNREPORTED, RecordIR
from abele.ir.pass_manager import PassManager, parse_pipeline
from abele.ir.provenance import origin
from abele.ir.rewriting import limited
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.narrow_floats import NarrowFloats
from abele.passes.pipelines import DOWN, PASSES
from abele.tools.debug.run_check import relative_error
from abele.tools.testing import bounded_run, check_pass
from abele.tools.testing.generators.program import Program
from abele.tools.testing.oracle.oracles import difference, narrowed_run, run, with_both_errors

W = counting((4,))
TINY = resolve_target("tiny")


def narrowed(text: str, to: str = "f16", keep: str = "", **blobs: np.ndarray) -> ModuleOp:
    ctx = context()
    module = module_of(text, ctx, **blobs)
    kept = f' keep="{keep}"' if keep else ""
    (tested,) = parse_pipeline(f"narrow-floats{{to={to}{kept}}}", PASSES)
    tested.apply(ctx, module)
    verify(module)
    return module


def check(before: str, expected: str, to: str = "f16", **blobs: np.ndarray) -> None:
    got = print_module(narrowed(before, to, **blobs), locations=False)
    assert got == print_module(module_of(expected, context(), **blobs), locations=False)


def body(lines: str, takes: str = "%x: tensor<4xf32>", gives: str = "tensor<4xf32>") -> str:
    return f"func.func @main({takes}) -> {gives} {{ {lines} }}"


def test_a_rounding_reads_float32():
    """A rounding to the numbers of a narrower type has been asked for before."""
    format_ = "digits 4.0 least -7.0 largest 240.0 overflow 1.0"
    before = f"""
      %0 = nn.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.to_nearest %0 {format_} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32>"""
    expected = f"""
      %0 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>
      %1 = nn.tanh %0 : (tensor<4xf16>) -> tensor<4xf16>
      %2 = nn.cast %1 : (tensor<4xf16>) -> tensor<4xf32>
      %3 = nn.to_nearest %2 {format_} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %3 : tensor<4xf32>"""
    check(body(before), body(expected))


@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_codes_are_read_and_given_in_float32(to: str):
    """A narrow type does not hold the codes of a format that is as wide as it."""
    before = """
      %0 = nn.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.to_code %0 digits 11.0 least -14.0 : (tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.reshape %1 to [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
      %3 = nn.cast %2 : (tensor<2x2xf32>) -> tensor<2x2xi16>
      %4 = nn.from_code %y digits 5.0 least 1.0 : (tensor<4xf32>) -> tensor<4xf32>
      %5 = nn.relu %4 : (tensor<4xf32>) -> tensor<4xf32>
      func.return %3, %5 : tensor<2x2xi16>, tensor<4xf32>"""
    expected = """
      %90 = nn.cast %x : (tensor<4xf32>) -> tensor<4xTO>
      %0 = nn.tanh %90 : (tensor<4xTO>) -> tensor<4xTO>
      %91 = nn.cast %0 : (tensor<4xTO>) -> tensor<4xf32>
      %1 = nn.to_code %91 digits 11.0 least -14.0 : (tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.reshape %1 to [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
      %3 = nn.cast %2 : (tensor<2x2xf32>) -> tensor<2x2xi16>
      %4 = nn.from_code %y digits 5.0 least 1.0 : (tensor<4xf32>) -> tensor<4xf32>
      %92 = nn.cast %4 : (tensor<4xf32>) -> tensor<4xTO>
      %5 = nn.relu %92 : (tensor<4xTO>) -> tensor<4xTO>
      %93 = nn.cast %5 : (tensor<4xTO>) -> tensor<4xf32>
      func.return %3, %93 : tensor<2x2xi16>, tensor<4xf32>"""
    ends = "%x: tensor<4xf32>, %y: tensor<4xf32>", "(tensor<2x2xi16>, tensor<4xf32>)"
    check(body(before, *ends), body(expected.replace("TO", to), *ends), to)


def test_a_chain_of_codes_stays_wide():
    lines = f"""
      %0 = nn.compute(%x) space {SPACE} body <neg then from_code [5.0, 1.0]>
        : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>"""
    check(body(lines), body(lines))


KEPT = """
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.tanh %x : (tensor<4xf32>) -> tensor<4xf32> loc("tanh")
    %1 = nn.scale %0 by 1.0e6 : (tensor<4xf32>) -> tensor<4xf32> loc("block/grow")
    %2 = nn.scale %1 by 1.0e-6 : (tensor<4xf32>) -> tensor<4xf32> loc("block/shrink")
    %3 = nn.relu %2 : (tensor<4xf32>) -> tensor<4xf32> loc("relu")
    func.return %3 : tensor<4xf32>
  }"""


def test_operations_of_nodes_that_are_kept_compute_in_float32():
    """Of numbers up to a million, which float16 does not hold, none is ever rounded to it."""
    expected = """
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>
        %1 = nn.tanh %0 : (tensor<4xf16>) -> tensor<4xf16>
        %2 = nn.cast %1 : (tensor<4xf16>) -> tensor<4xf32>
        %3 = nn.scale %2 by 1.0e6 : (tensor<4xf32>) -> tensor<4xf32>
        %4 = nn.scale %3 by 1.0e-6 : (tensor<4xf32>) -> tensor<4xf32>
        %5 = nn.cast %4 : (tensor<4xf32>) -> tensor<4xf16>
        %6 = nn.relu %5 : (tensor<4xf16>) -> tensor<4xf16>
        %7 = nn.cast %6 : (tensor<4xf16>) -> tensor<4xf32>
        func.return %7 : tensor<4xf32>
      }"""
    got = narrowed(KEPT, keep="^block/")
    assert print_module(got, locations=False) == print_module(
        module_of(expected, context()), locations=False
    )
    inputs = {"arg0": np.full(4, 0.5, np.float32)}
    (plain,), (kept,) = (
        run_reference(module, inputs).outputs.values() for module in (narrowed(KEPT), got)
    )
    assert np.isinf(plain).all()
    assert kept == pytest.approx(np.tanh(0.5), rel=1e-3)


@pytest.mark.parametrize(
    ("keep", "said"), [("blok", "no operation has such a name"), ("(", "need a pattern")]
)
def test_a_pattern_that_keeps_nothing_is_refused(keep: str, said: str):
    with pytest.raises(InputError, match=f"narrow-floats: keep '.*': .*{said}"):
        narrowed(KEPT, keep=keep)


UPDATING = """
  nn.state @w : tensor<4xf32> = {w}
  nn.state @n : tensor<f32> = {n}
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.load @w : tensor<4xf32>
    %1 = nn.mul %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.sub %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("w/update")
    nn.store %2, @w : tensor<4xf32>
    %3 = nn.load @n : tensor<f32>
    nn.store %3, @n : tensor<f32>
    func.return %1 : tensor<4xf32>
  }"""
STEP_STATES = {"w": W, "n": np.zeros((), np.float32)}


def test_a_step_of_training_updates_float32_weights_in_float32():
    ctx = context()
    module = module_of(
        f"builtin.module attributes {{abele.forward = []}} {{ {UPDATING} }}", ctx, **STEP_STATES
    )
    NarrowFloats().apply(ctx, module)
    verify(module, NN)
    (update,) = [op for op in module.walk() if isinstance(op, nn.SubOp)]
    (forward,) = [op for op in module.walk() if isinstance(op, nn.MulOp)]
    assert nn.element_of(update.result) == f32
    assert nn.element_of(forward.result) != f32


def test_states_with_axes_become_narrow_on_request():
    ctx = context()
    module = module_of(
        f"builtin.module attributes {{abele.forward = []}} {{ {UPDATING} }}", ctx, **STEP_STATES
    )
    NarrowFloats(states="narrow").apply(ctx, module)
    verify(module, NN)
    states = {
        op.sym_name.data: op.value.array for op in module.walk() if isinstance(op, nn.StateOp)
    }
    assert states["w"].dtype == np.float16
    assert states["n"].dtype == np.float32
    (update,) = [op for op in module.walk() if isinstance(op, nn.SubOp)]
    assert nn.element_of(update.result) != f32


@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_the_interface_stays_and_all_between_becomes_narrow(to: str):
    before = """
      %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32>"""
    expected = """
      %0 = nn.cast %x : (tensor<4xf32>) -> tensor<4xTO>
      %1 = nn.relu %0 : (tensor<4xTO>) -> tensor<4xTO>
      %2 = nn.tanh %1 : (tensor<4xTO>) -> tensor<4xTO>
      %3 = nn.cast %2 : (tensor<4xTO>) -> tensor<4xf32>
      func.return %3 : tensor<4xf32>"""
    check(body(before), body(expected.replace("TO", to)), to)


@pytest.mark.parametrize(
    "text",
    [
        body("func.return %x : tensor<4xf32>"),
        body(
            """%0 = nn.exp %x : (tensor<4xf64>) -> tensor<4xf64>
            %1 = nn.cast %0 : (tensor<4xf64>) -> tensor<4xi32>
            func.return %1 : tensor<4xi32>""",
            "%x: tensor<4xf64>",
            "tensor<4xi32>",
        ),
        body(
            """%0 = nn.exp %x : (tensor<4xf16>) -> tensor<4xf16>
            func.return %0 : tensor<4xf16>""",
            "%x: tensor<4xf16>",
            "tensor<4xf16>",
        ),
    ],
)
def test_a_program_that_computes_nothing_in_float32_stays_as_it_is(text: str):
    check(text, text)


def test_a_group_becomes_narrow():
    before = """
      %0 = nn.add %x, %b {group = 0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.relu %0 {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32>"""
    expected = """
      %0 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>
      %1 = nn.cast %b : (tensor<4xf32>) -> tensor<4xf16>
      %2 = nn.add %0, %1 {group = 0} : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
      %4 = nn.relu %2 {group = 0} : (tensor<4xf16>) -> tensor<4xf16>
      %3 = nn.cast %4 : (tensor<4xf16>) -> tensor<4xf32>
      func.return %3 : tensor<4xf32>"""
    takes = "%x: tensor<4xf32>, %b: tensor<4xf32>"
    check(body(before, takes), body(expected, takes))


def test_casts_to_float32_become_casts_to_the_narrow_type():
    before = """
      %0 = nn.cast %x : (tensor<4xi8>) -> tensor<4xf32>
      %1 = nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.cast %1 : (tensor<4xf32>) -> tensor<4xi8>
      func.return %2 : tensor<4xi8>"""
    expected = """
      %0 = nn.cast %x : (tensor<4xi8>) -> tensor<4xf16>
      %1 = nn.relu %0 : (tensor<4xf16>) -> tensor<4xf16>
      %2 = nn.cast %1 : (tensor<4xf16>) -> tensor<4xi8>
      func.return %2 : tensor<4xi8>"""
    ends = "%x: tensor<4xi8>", "tensor<4xi8>"
    check(body(before, *ends), body(expected, *ends))


# Numbers and bits


@pytest.mark.parametrize(
    ("to", "source", "is_wide"),
    [
        ("f16", "i1", False),
        ("f16", "i8", False),
        ("f16", "ui8", False),
        ("f16", "i16", True),
        ("f16", "i32", True),
        ("f16", "ui64", True),
        ("bf16", "i8", False),
        ("bf16", "ui16", True),
        ("bf16", "i32", True),
        ("f16", "f64", False),
        ("bf16", "f16", False),
        ("f16", "f8E5M2", False),
        ("f16", "f8E8M0FNU", True),
        ("bf16", "f8E8M0FNU", False),
    ],
)
def test_numbers_that_the_narrow_type_does_not_hold_stay_wide_until_they_are_used(
    to: str, source: str, is_wide: bool
):
    """A scale makes them small again: rounding them before would make infinities."""
    lines = f"""
      %0 = nn.cast %x : (tensor<4x{source}>) -> tensor<4xf32>
      %1 = nn.mul %0, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>"""
    text = print_module(narrowed(body(lines, f"%x: tensor<4x{source}>, %s: tensor<4xf32>"), to))
    cast, product = (f"%0 = nn.cast %x : (tensor<4x{source}>) ->", "%1 = nn.mul %0, %s :")
    assert (f"{cast} tensor<4xf32>" in text) == (f"{product} (tensor<4xf32>" in text) == is_wide
    assert f": (tensor<4x{to}>) -> tensor<4x{to}>" in text


def test_positions_beyond_the_exact_integers_stay_wide():
    lines = """
      %0 = nn.iota start 0 steps [1] : tensor<3000xf32>
      %1 = nn.mul %0, %x : (tensor<3000xf32>, tensor<3000xf32>) -> tensor<3000xf32>
      func.return %1 : tensor<3000xf32>"""
    ends = "%x: tensor<3000xf32>", "tensor<3000xf32>"
    text = print_module(narrowed(body(lines, *ends)))
    assert "nn.iota start 0 steps [1] : tensor<3000xf32>" in text
    assert "nn.mul %0, %x : (tensor<3000xf32>" in text
    few = print_module(narrowed(body(lines, *ends).replace("3000", "2048")))
    assert "nn.iota start 0 steps [1] : tensor<2048xf16>" in few


SPACE = "<[i = 4] (i) of [4] -> (i) of [4]>"


@pytest.mark.parametrize("to", ["f16", "bf16"])
@pytest.mark.parametrize("general", [False, True])
def test_bits_stay_those_of_float32(to: str, general: bool):
    def bits(value: str, source: str, target: str) -> str:
        kinds = f"(tensor<4x{source}>) -> tensor<4x{target}>"
        if general:
            return f"nn.compute({value}) space {SPACE} body <bitcast> : {kinds}"
        return f"nn.bitcast {value} : {kinds}"

    lines = f"""
      %0 = control.if %c : tensor<i1> -> (tensor<4xf32>) {{
        %1 = {bits("%x", "i32", "f32")}
        control.yield %1 : tensor<4xf32>
      }} else {{
        %2 = nn.relu %y : (tensor<4xf32>) -> tensor<4xf32>
        control.yield %2 : tensor<4xf32>
      }}
      %3 = nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
      %4 = {bits("%3", "f32", "i32")}
      func.return %4 : tensor<4xi32>"""
    takes = "%x: tensor<4xi32>, %y: tensor<4xf32>, %c: tensor<i1>"
    module = narrowed(body(lines, takes, "tensor<4xi32>"), to)
    text = print_module(module)
    assert text.count("-> tensor<4xi32>") == 2
    assert f"control.if %c : tensor<i1> -> (tensor<4x{to}>)" in text
    x, y = np.float32([1.5, -2, 0.25, 3]), np.float32([4, 5, 6, 7])
    for c, expected in ((True, [1.5, 0, 0.25, 3]), (False, y)):
        values = {"arg0": x.view(np.int32), "arg1": y, "arg2": np.array(c)}
        (found,) = run_reference(module, values).outputs.values()
        assert found.astype(np.int32).view(np.float32).tolist() == list(expected)


@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_random_numbers_are_what_they_were_but_rounded(to: str):
    """Random bits are integers of 32 bits, which float16 would make infinite."""
    lines = """
      %0 = nn.cast %x : (tensor<4xi32>) -> tensor<4xf32>
      %1 = nn.scale %0 by 5.9604644775390625e-08 : (tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.add %1, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>"""
    takes = "%x: tensor<4xi32>, %y: tensor<4xf32>"
    bits, y = np.array([1, 1 << 20, 12345678, (1 << 24) - 1], np.int32), np.zeros(4, np.float32)
    module = narrowed(body(lines, takes), to)
    (found,) = run_reference(module, {"arg0": bits, "arg1": y}).outputs.values()
    np.testing.assert_allclose(found, bits / 2**24, rtol=2**-8, atol=1e-7)


# Control flow, calls, states


def test_loops_carry_and_branches_give_narrow_values():
    before = """
      %0 = control.repeat 3 (%x) : (tensor<4xf32>) -> (tensor<4xf32>) {
      ^bb0(%y: tensor<4xf32>):
        %1 = control.if %c : tensor<i1> -> (tensor<4xf32>) {
          %2 = nn.relu %y : (tensor<4xf32>) -> tensor<4xf32>
          control.yield %2 : tensor<4xf32>
        } else {
          control.yield %x : tensor<4xf32>
        }
        control.yield %1 : tensor<4xf32>
      }
      func.return %0 : tensor<4xf32>"""
    expected = """
      %90 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>
      %0 = control.repeat 3 (%90) : (tensor<4xf16>) -> (tensor<4xf16>) {
      ^bb0(%y: tensor<4xf16>):
        %1 = control.if %c : tensor<i1> -> (tensor<4xf16>) {
          %2 = nn.relu %y : (tensor<4xf16>) -> tensor<4xf16>
          control.yield %2 : tensor<4xf16>
        } else {
          control.yield %90 : tensor<4xf16>
        }
        control.yield %1 : tensor<4xf16>
      }
      %3 = nn.cast %0 : (tensor<4xf16>) -> tensor<4xf32>
      func.return %3 : tensor<4xf32>"""
    takes = "%x: tensor<4xf32>, %c: tensor<i1>"
    check(body(before, takes), body(expected, takes))


def test_what_a_loop_only_collects_stays_wide():
    before = """
      %0, %1 = control.repeat 3 (%s, %x)
          : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      ^bb0(%t: tensor<4xf32>, %y: tensor<4xf32>):
        %2 = nn.relu %y : (tensor<4xf32>) -> tensor<4xf32>
        %3 = nn.add %t, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        control.yield %3, %2 : tensor<4xf32>, tensor<4xf32>
      }
      func.return %0 : tensor<4xf32>"""
    expected = """
      %90 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>
      %0, %1 = control.repeat 3 (%s, %90)
          : (tensor<4xf32>, tensor<4xf16>) -> (tensor<4xf32>, tensor<4xf16>) {
      ^bb0(%t: tensor<4xf32>, %y: tensor<4xf16>):
        %2 = nn.relu %y : (tensor<4xf16>) -> tensor<4xf16>
        %91 = nn.cast %2 : (tensor<4xf16>) -> tensor<4xf32>
        %3 = nn.add %t, %91 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        control.yield %3, %2 : tensor<4xf32>, tensor<4xf16>
      }
      func.return %0 : tensor<4xf32>"""
    takes = "%s: tensor<4xf32>, %x: tensor<4xf32>"
    check(body(before, takes), body(expected, takes))


def test_a_sum_that_a_loop_also_reads_becomes_narrow():
    text = """
      %0 = control.repeat 3 (%s) : (tensor<4xf32>) -> (tensor<4xf32>) {
      ^bb0(%t: tensor<4xf32>):
        %2 = nn.relu %t : (tensor<4xf32>) -> tensor<4xf32>
        %3 = nn.add %t, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        control.yield %3 : tensor<4xf32>
      }
      func.return %0 : tensor<4xf32>"""
    module = narrowed(body(text, "%s: tensor<4xf32>"))
    (loop,) = (op for op in module.walk() if op.name == "control.repeat")
    assert str(loop.results[0].type) == "tensor<4xf16>"


def test_a_while_carries_narrow_values_through_test_and_body():
    before = """
      %0 = control.while (%x) : (tensor<1xf32>) -> (tensor<1xf32>) {
      ^bb0(%y: tensor<1xf32>):
        %c = nn.less %y, %l : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
        control.condition %c : tensor<1xi1>
      } do {
      ^bb0(%y: tensor<1xf32>):
        %2 = nn.scale %y by 2.0 : (tensor<1xf32>) -> tensor<1xf32>
        control.yield %2 : tensor<1xf32>
      }
      func.return %0 : tensor<1xf32>"""
    expected = """
      %90 = nn.cast %x : (tensor<1xf32>) -> tensor<1xf16>
      %91 = nn.cast %l : (tensor<1xf32>) -> tensor<1xf16>
      %0 = control.while (%90) : (tensor<1xf16>) -> (tensor<1xf16>) {
      ^bb0(%y: tensor<1xf16>):
        %c = nn.less %y, %91 : (tensor<1xf16>, tensor<1xf16>) -> tensor<1xi1>
        control.condition %c : tensor<1xi1>
      } do {
      ^bb0(%y: tensor<1xf16>):
        %2 = nn.scale %y by 2.0 : (tensor<1xf16>) -> tensor<1xf16>
        control.yield %2 : tensor<1xf16>
      }
      %3 = nn.cast %0 : (tensor<1xf16>) -> tensor<1xf32>
      func.return %3 : tensor<1xf32>"""
    ends = "%x: tensor<1xf32>, %l: tensor<1xf32>", "tensor<1xf32>"
    check(body(before, *ends), body(expected, *ends))


def test_functions_that_are_called_take_and_give_narrow_values():
    before = """
    func.func @twice(%a: tensor<4xf32>, %i: tensor<i32>) -> (tensor<i32>, tensor<4xf32>) {
      %0 = nn.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %i, %0 : tensor<i32>, tensor<4xf32>
    }
    func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
      %0, %1 = func.call @twice(%x, %i)
        : (tensor<4xf32>, tensor<i32>) -> (tensor<i32>, tensor<4xf32>)
      %2, %3 = func.call @twice(%1, %0)
        : (tensor<4xf32>, tensor<i32>) -> (tensor<i32>, tensor<4xf32>)
      func.return %3 : tensor<4xf32>
    }"""
    expected = """
    func.func @twice(%a: tensor<4xf16>, %i: tensor<i32>) -> (tensor<i32>, tensor<4xf16>) {
      %0 = nn.add %a, %a : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
      func.return %i, %0 : tensor<i32>, tensor<4xf16>
    }
    func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
      %90 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>
      %0, %1 = func.call @twice(%90, %i)
        : (tensor<4xf16>, tensor<i32>) -> (tensor<i32>, tensor<4xf16>)
      %2, %3 = func.call @twice(%1, %0)
        : (tensor<4xf16>, tensor<i32>) -> (tensor<i32>, tensor<4xf16>)
      %4 = nn.cast %3 : (tensor<4xf16>) -> tensor<4xf32>
      func.return %4 : tensor<4xf32>
    }"""
    check(before, expected)


STATES = """
nn.state @s : tensor<4xf32> = {s}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = nn.load @s : tensor<4xf32>
  BODY
  func.return %1 : tensor<4xf32>
}"""


def test_a_state_that_is_stored_to_stays_float32():
    before = """
      %0 = nn.mul %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
      nn.store %0, @s : tensor<4xf32>"""
    expected = """
      %90 = nn.cast %s : (tensor<4xf32>) -> tensor<4xf16>
      %0 = nn.mul %90, %93 : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
      %2 = nn.cast %0 : (tensor<4xf16>) -> tensor<4xf32>
      %3 = nn.relu %0 : (tensor<4xf16>) -> tensor<4xf16>
      %1 = nn.cast %3 : (tensor<4xf16>) -> tensor<4xf32>
      nn.store %2, @s : tensor<4xf32>"""
    cast = "%93 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>\n  %s = "
    after = STATES.replace("%s = ", cast).replace("BODY", expected)
    check(STATES.replace("BODY", before), after, s=W)


CACHE = """
builtin.module ATTRIBUTES {
  nn.state @s : tensor<3x4xf32> = {s}
  func.func @main(%x: tensor<1x4xf32>, %i: tensor<1x1xi32>) -> tensor<3x4xf32> {
    %s = nn.load @s : tensor<3x4xf32>
    %0 = nn.tanh %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %1 = nn.update "last" %0, %i into %s axis 0
        : (tensor<1x4xf32>, tensor<1x1xi32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %2 = nn.relu %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
    nn.store %1, @s : tensor<3x4xf32>
    func.return %2 : tensor<3x4xf32>
  }
}"""

NARROW_CACHE = """
builtin.module {
  nn.state @s : tensor<3x4xf16> = {s}
  func.func @main(%x: tensor<1x4xf32>, %i: tensor<1x1xi32>) -> tensor<3x4xf32> {
    %5 = nn.cast %x : (tensor<1x4xf32>) -> tensor<1x4xf16>
    %s = nn.load @s : tensor<3x4xf16>
    %0 = nn.tanh %5 : (tensor<1x4xf16>) -> tensor<1x4xf16>
    %1 = nn.update "last" %0, %i into %s axis 0
        : (tensor<1x4xf16>, tensor<1x1xi32>, tensor<3x4xf16>) -> tensor<3x4xf16>
    %2 = nn.relu %1 : (tensor<3x4xf16>) -> tensor<3x4xf16>
    %3 = nn.cast %2 : (tensor<3x4xf16>) -> tensor<3x4xf32>
    nn.store %1, @s : tensor<3x4xf16>
    func.return %3 : tensor<3x4xf32>
  }
}"""


def cache(
    text: str, states: str, attributes: str = "", dtype: str = "float32", divisor: float = 4
) -> ModuleOp:
    ctx = context()
    held = counting((3, 4)).astype(dtype) / np.dtype(dtype).type(divisor)
    module = module_of(text.replace("ATTRIBUTES", attributes), ctx, s=held)
    if states:
        NarrowFloats(states=states).apply(ctx, module)
        verify(module, NN)
    return module


def test_a_cache_that_only_the_program_sees_becomes_narrow():
    after = print_module(cache(CACHE, "unseen"), locations=False)
    assert after == print_module(cache(NARROW_CACHE, "", dtype="float16"), locations=False)


def test_a_narrow_cache_gives_what_a_wide_one_gives():
    rng = np.random.default_rng(0)
    held = [{}, {}]
    for row in (0, 2, 1, 2):
        given = {"arg0": rng.normal(size=(1, 4)).astype(np.float32)}
        given["arg1"] = np.array([[row]], np.int32)
        done = [
            run_reference(cache(CACHE, states), given, state)
            for states, state in zip(("wide", "unseen"), held, strict=True)
        ]
        np.testing.assert_array_equal(*(each.outputs["out0"] for each in done))
        held = [dict(each.state) for each in done]
        assert [each["s"].dtype.name for each in held] == ["float32", "float16"]
        np.testing.assert_array_equal(*(each["s"].astype(np.float32) for each in held))


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        # The host reads it and sets it.
        (CACHE, 'attributes {abele.updated = ["s"]}'),
        # An output has its float32 values.
        (CACHE.replace("func.return %2", "func.return %s"), ""),
        # What is stored has not been rounded.
        (
            CACHE.replace("nn.store %1", "nn.store %y").replace("%x:", "%y: tensor<3x4xf32>, %x:"),
            "",
        ),
    ],
)
def test_other_states_stay_wide(text: str, attributes: str):
    after = print_module(cache(text, "unseen", attributes), locations=False)
    assert after == print_module(cache(text, "wide", attributes), locations=False)
    assert "nn.state @s : tensor<3x4xf32>" in after


@pytest.mark.parametrize("divisor", [3, 1e-6])
def test_a_cache_that_begins_with_other_numbers_than_narrow_ones_stays_wide(divisor: float):
    """A target may round them by words, and may clip those that are too large."""
    after = print_module(cache(CACHE, "unseen", divisor=divisor), locations=False)
    assert after == print_module(cache(CACHE, "wide", divisor=divisor), locations=False)


TWO_LOADS = """
nn.state @w : tensor<4xf32> = {w}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.load @w : tensor<4xf32> loc("w")
  %1 = nn.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("a")
  %2 = nn.load @w : tensor<4xf32> loc("w")
  %3 = nn.mul %1, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("m")
  func.return %3 : tensor<4xf32>
}"""


def test_weights_become_narrow_constants_that_share_one_array():
    ctx = context()
    module = module_of(TWO_LOADS, ctx, w=W)
    for each in parse_pipeline("narrow-floats," + ",".join(DOWN[NN]), PASSES):
        each.apply(ctx, module)
    verify(module)
    assert not [op for op in module.walk() if isinstance(op, nn.StateOp | nn.LoadOp)]
    first, second = [op for op in module.walk() if isinstance(op, nn.ConstantOp)]
    assert first.value.array.dtype == np.float16
    assert first.value.array is second.value.array
    assert origin(first) == origin(second) == "w"


# What stays wide


def test_a_mean_keeps_its_sum_and_is_rounded_where_it_is_read():
    before = """
      %0 = nn.relu %x : (tensor<4x1x2xf32>) -> tensor<4x1x2xf32>
      %1 = nn.reduce "sum" %0 axes [0] : (tensor<4x1x2xf32>) -> tensor<1x2xf32>
      %2 = nn.scale %1 by 0.25 : (tensor<1x2xf32>) -> tensor<1x2xf32>
      %3 = nn.matmul %2, %w : (tensor<1x2xf32>, tensor<2x4xf32>) -> tensor<1x4xf32>
      func.return %3 : tensor<1x4xf32>"""
    expected = """
      %90 = nn.cast %x : (tensor<4x1x2xf32>) -> tensor<4x1x2xf16>
      %92 = nn.cast %w : (tensor<2x4xf32>) -> tensor<2x4xf16>
      %0 = nn.relu %90 : (tensor<4x1x2xf16>) -> tensor<4x1x2xf16>
      %5 = nn.cast %0 : (tensor<4x1x2xf16>) -> tensor<4x1x2xf32>
      %1 = nn.reduce "sum" %5 axes [0] : (tensor<4x1x2xf32>) -> tensor<1x2xf32>
      %2 = nn.scale %1 by 0.25 : (tensor<1x2xf32>) -> tensor<1x2xf32>
      %6 = nn.cast %2 : (tensor<1x2xf32>) -> tensor<1x2xf16>
      %3 = nn.matmul %6, %92 : (tensor<1x2xf16>, tensor<2x4xf16>) -> tensor<1x4xf16>
      %4 = nn.cast %3 : (tensor<1x4xf16>) -> tensor<1x4xf32>
      func.return %4 : tensor<1x4xf32>"""
    takes = "%x: tensor<4x1x2xf32>, %w: tensor<2x4xf32>"
    ends = takes, "tensor<1x4xf32>"
    check(body(before, *ends), body(expected, *ends))


LAYER_NORM = """
nn.state @g : tensor<512xf32> = {g}
func.func @main(%x: tensor<2x512xf32>) -> tensor<2x512xf32> {
  %g = nn.load @g : tensor<512xf32>
  %0 = nn.relu %x : (tensor<2x512xf32>) -> tensor<2x512xf32>
  %1 = nn.reduce "sum" %0 axes [1] keep_dims : (tensor<2x512xf32>) -> tensor<2x1xf32>
  %2 = nn.scale %1 by 0.001953125 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %3 = nn.sub %0, %2 : (tensor<2x512xf32>, tensor<2x1xf32>) -> tensor<2x512xf32>
  %4 = nn.square %3 : (tensor<2x512xf32>) -> tensor<2x512xf32>
  %5 = nn.reduce "sum" %4 axes [1] keep_dims : (tensor<2x512xf32>) -> tensor<2x1xf32>
  %6 = nn.scale %5 by 0.001953125 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %7 = nn.shift %6 by 1.0e-05 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %8 = nn.sqrt %7 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %9 = nn.div %3, %8 : (tensor<2x512xf32>, tensor<2x1xf32>) -> tensor<2x512xf32>
  %10 = nn.mul %9, %g : (tensor<2x512xf32>, tensor<512xf32>) -> tensor<2x512xf32>
  %11 = nn.tanh %10 : (tensor<2x512xf32>) -> tensor<2x512xf32>
  %12 = nn.add %11, %0 : (tensor<2x512xf32>, tensor<2x512xf32>) -> tensor<2x512xf32>
  %13 = nn.neg %12 : (tensor<2x512xf32>) -> tensor<2x512xf32>
  func.return %13 : tensor<2x512xf32>
}"""


def test_a_normalisation_is_wide_to_its_end_and_later_operations_are_narrow():
    module = narrowed(LAYER_NORM, g=np.ones(512, np.float32))
    computed = [op for op in module.walk() if isinstance(op, nn.ChainableOp)]
    wide = [op.name.removeprefix("nn.") for op in computed if nn.element_of(op.result) == f32]
    statistics = ["reduce", "scale", "sub", "square", "reduce", "scale", "shift", "sqrt"]
    assert wide == [*statistics, "div", "mul", "tanh", "add"]
    assert [op.name for op in computed if nn.element_of(op.result) != f32] == ["nn.relu", "nn.neg"]


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-4])
def test_a_normalisation_of_any_scale_is_as_good_as_its_input(scale: float):
    inputs = {"arg0": scale * np.random.default_rng(0).standard_normal((2, 512)).astype("f")}
    blobs = {"g": np.ones(512, np.float32)}
    expected = run_reference(module_of(LAYER_NORM, context(), **blobs), inputs).outputs["out0"]
    found = run_reference(narrowed(LAYER_NORM, **blobs), inputs).outputs["out0"]
    assert relative_error(found, expected) < 2e-3


BATCH_NORM = """
nn.state @s : tensor<4xf32> = {s}
nn.state @v : tensor<4xf32> = {v}
func.func @main(%x: tensor<1x4x3xf32>) -> tensor<1x4x3xf32> {
  %s = nn.load @s : tensor<4xf32>
  %v = nn.load @v : tensor<4xf32>
  %0 = nn.batch_norm %x, %s, %s, %s, %v epsilon 1.0e-05
    : (tensor<1x4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<1x4x3xf32>
  func.return %0 : tensor<1x4x3xf32>
}"""


@pytest.mark.parametrize("first", ["", "decompose,"], ids=["whole", "decomposed"])
def test_the_statistics_of_a_batch_normalisation_are_folded_in_float32(first: str):
    ctx = context()
    blobs = {"s": W - 1.3, "v": np.float32([1e-2, 1.0, 2e5, 1e9])}
    inputs = {"arg0": counting((1, 4, 3)) * np.float32(100)}
    expected = run_reference(module_of(BATCH_NORM, ctx, **blobs), inputs).outputs["out0"]
    module = module_of(BATCH_NORM, ctx, **blobs)
    for each in parse_pipeline(f"{first}narrow-floats,{','.join(DOWN[NN])}", PASSES):
        each.apply(ctx, module)
    verify(module)
    found = run_reference(module, inputs).outputs["out0"]
    np.testing.assert_allclose(found, expected, rtol=4e-3, atol=1e-3)
    assert all(
        op.value.array.dtype == np.float16 for op in module.walk() if isinstance(op, nn.ConstantOp)
    )


# What is beyond the narrow type


@pytest.mark.parametrize(
    ("to", "largest"), [("f16", 65504.0), ("bf16", float(ml_dtypes.finfo(ml_dtypes.bfloat16).max))]
)
@pytest.mark.parametrize(
    "mask", ["%m = nn.constant {m} : tensor<4xf32>", "%m = nn.load @m : tensor<4xf32>"]
)
def test_finite_constants_saturate_and_infinite_ones_stay(to: str, largest: float, mask: str):
    most = float(np.finfo(np.float32).max)
    array = np.float32([-most, most, -np.inf, 1.0])
    text = f"""
    nn.state @m : tensor<4xf32> = {{m}}
    func.func @main(%c: tensor<4xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {{
      {mask}
      %0 = nn.select %c, %x, %m
        : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }}"""
    inputs = {"arg0": np.zeros(4, bool), "arg1": W}
    (found,) = run_reference(narrowed(text, to, m=array), inputs).outputs.values()
    np.testing.assert_array_equal(found, np.float32([-largest, largest, -np.inf, 1.0]))


def test_constants_that_are_values_saturate_but_factors_do_not():
    before = """
      %0 = nn.clip %x to -3.0e+38, inf : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.shift %0 by -1.0e+06 : (tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.scale %1 by 1.0e+06 : (tensor<4xf32>) -> tensor<4xf32>
      %3 = nn.pad "constant" %2 low [0] high [1] value -1.0e+09
        : (tensor<4xf32>) -> tensor<5xf32>
      func.return %3 : tensor<5xf32>"""
    expected = """
      %90 = nn.cast %x : (tensor<4xf32>) -> tensor<4xf16>
      %0 = nn.clip %90 to -65504.0, inf : (tensor<4xf16>) -> tensor<4xf16>
      %1 = nn.shift %0 by -65504.0 : (tensor<4xf16>) -> tensor<4xf16>
      %2 = nn.scale %1 by 1.0e+06 : (tensor<4xf16>) -> tensor<4xf16>
      %3 = nn.pad "constant" %2 low [0] high [1] value -65504.0
        : (tensor<4xf16>) -> tensor<5xf16>
      %4 = nn.cast %3 : (tensor<5xf16>) -> tensor<5xf32>
      func.return %4 : tensor<5xf32>"""
    ends = "%x: tensor<4xf32>", "tensor<5xf32>"
    check(body(before, *ends), body(expected, *ends))


# Rewrites and meaning


def test_every_rewrite_is_reported_and_leaves_a_program():
    ctx = context()
    record = RecordIR()
    PassManager((NarrowFloats(),), (record,)).run(ctx, module_of(TWO_LOADS, ctx, w=W))
    names = [each.source.name for each in record.stages[-1].changes]
    assert names == ["narrow nn.add", "narrow nn.mul"]
    assert UNREPORTED.name not in names
    for rewrites in range(len(names) + 1):
        module = module_of(TWO_LOADS, ctx, w=W)
        with limited(rewrites):
            NarrowFloats().apply(ctx, module)
        verify(module)


@pytest.mark.parametrize("to", ["f16", "bf16"])
@pytest.mark.parametrize("examples", lengths(8, 40))
def test_results_move_by_no_more_than_the_casts_allow(to: str, examples: int):
    report = check_pass(f"narrow-floats{{to={to}}}", examples=examples, seed=7)
    assert report.changed > examples / 4


def test_a_result_that_changes_more_than_casts_allow_is_reported():
    ctx, text = (
        context(),
        body(
            """%0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
        func.return %0 : tensor<4xf32>"""
        ),
    )
    inputs = {"arg0": W}
    before = Program(module_of(text, ctx), ctx, inputs, TINY)
    after = Program(narrowed(text), ctx, inputs, TINY)
    wrong = Program(narrowed(text.replace("relu", "neg")), ctx, inputs, TINY)
    expected = bounded_run(before)
    assert difference(with_both_errors(expected, narrowed_run(after)), run(after)) is None
    assert difference(with_both_errors(expected, narrowed_run(wrong)), run(wrong)) is not None
