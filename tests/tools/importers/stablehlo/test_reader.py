from pathlib import Path

import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.importers.errors import UnsupportedError
from abele.tools.importers.front_end import Reading
from abele.tools.importers.stablehlo.reader import read_stablehlo, uses_of

NET = """
#loc1 = loc("p['w']")
#loc2 = loc("x")
"builtin.module"() <{sym_name = "jit_net"}> ({
  "func.func"() <{arg_attrs = [{}, {}], function_type =
      (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>,
      res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<3xf32> loc("p['w']"), %arg1: tensor<2x3xf32> loc("x")):
    %0 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 1>}>
        : (tensor<3xf32>) -> tensor<2x3xf32> loc(#loc5)
    %1 = "stablehlo.multiply"(%0, %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        loc(#loc5)
    %2 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<2x3xf32>}>
        : () -> tensor<2x3xf32> loc(#loc5)
    %3 = "stablehlo.maximum"(%1, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        loc("jit(net)/max")
    "func.return"(%3) : (tensor<2x3xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32} : () -> ()
#loc3 = loc("/home/me/net.py":8:6 to :20)
#loc4 = loc(callsite("net"(#loc3) at unknown))
#loc5 = loc("jit(net)/mul"(#loc4))
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.mlir"
    path.write_text(NET)
    return path


def reading() -> Reading:
    return Reading(new_context(), "net.mlir")


def test_arguments_and_results_have_the_users_names(net: Path):
    exe = compile_model(net, target="tiny:4", cache=False)
    assert [each.name for each in exe.inputs] == ["p['w']", "x"]
    assert [each.name for each in exe.outputs] == ["result"]


def test_a_program_runs(net: Path):
    exe = compile_model(net, target="tiny:4", cache=False)
    w, x = np.array([1, 2, 3], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    # A maximum with -inf, which other readers take for a large number, changes nothing.
    assert exe.run({"p['w']": w, "x": x})["result"].tolist() == (w * x).tolist()


def test_an_operation_has_the_name_and_the_line_of_the_users_file(net: Path):
    module = read_stablehlo(net, reading())
    places = {op.name: str(op.location) for op in module.walk()}
    assert places["stablehlo.multiply"] == 'loc("mul"("net.py":8:6))'
    assert places["stablehlo.broadcast_in_dim"] == 'loc("mul_1"("net.py":8:6))'
    assert places["stablehlo.maximum"] == 'loc("max")'


def test_unknown_operations_are_listed_all_at_once(net: Path):
    text = NET.replace('"stablehlo.maximum"', '"stablehlo.other"')
    net.write_text(text.replace('"stablehlo.multiply"', '"mine.own"'))
    with pytest.raises(UnsupportedError, match=r"2 operators are not supported: .*mine\.own"):
        read_stablehlo(net, reading())


def test_uses_say_which_operations_are_lowered(net: Path):
    net.write_text(NET.replace('"stablehlo.maximum"(%1, %2)', '"stablehlo.atan3"(%1, %2)'))
    uses, problem = uses_of(net, reading())
    assert {use.operator: use.supported for use in uses} == {
        "stablehlo.atan3": "no",
        "stablehlo.broadcast_in_dim": "yes",
        "stablehlo.constant": "yes",
        "stablehlo.multiply": "yes",
    }
    assert problem == "it has operations that abele does not know"


def test_a_broken_operation_is_refused_with_its_line(net: Path):
    net.write_text(
        NET.replace("broadcast_dimensions = array<i64: 1>", "broadcast_dimensions = array<i64: 0>")
    )
    with pytest.raises(InputError, match=r"net\.py:8:6.*axis 0 has 3 elements"):
        compile_model(net, target="tiny:4", cache=False)


def program(body: str, *, more: str = "") -> str:
    """A program of four floats."""
    type_ = "tensor<4xf32>"
    head = f'<{{function_type = ({type_}) -> {type_}, sym_name = "main"}}>'
    return f"""
        "builtin.module"() ({{
          "func.func"() {head} ({{
            ^bb0(%a: {type_}):
              %b = "stablehlo.abs"(%a) : ({type_}) -> {type_}
              {body}
          }}) : () -> ()
          {more}
        }}) : () -> ()
    """


RETURN = '"func.return"(%a) : (tensor<4xf32>) -> ()'
TWO_BLOCKS = f"""
    {RETURN}
    ^bb1(%d: tensor<4xf32>):
      "func.return"(%d) : (tensor<4xf32>) -> ()
"""
OUTSIDE = """
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "outside",
      sym_visibility = "private"}> ({}) : () -> ()
"""
COMPARATOR = """
    "func.func"() <{function_type = (tensor<f32>, tensor<f32>) -> tensor<i1>, sym_name = "greater"}>
      ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %0 = "stablehlo.compare"(%p, %q) <{comparison_direction =
            #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
          "stablehlo.return"(%0) : (tensor<i1>) -> ()
      }) : () -> ()
"""


def over_regions(arguments: str) -> str:
    """A sum of four floats, by a region of other arguments."""
    one = "tensor<f32>"
    return f"""
        %c = "stablehlo.constant"() <{{value = dense<0.0> : {one}}}> : () -> {one}
        %0 = "stablehlo.reduce"(%a, %c) <{{dimensions = array<i64: 0>}}> ({{
          ^bb0(%x: {arguments}, %y: {arguments}):
            "stablehlo.return"(%c) : ({one}) -> ()
        }}) : (tensor<4xf32>, {one}) -> {one}
        {RETURN}
    """


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (program(RETURN, more=OUTSIDE), "@outside: need one block"),
        (program(TWO_BLOCKS), "@main: need one block"),
        (program('"stablehlo.return"(%a) : (tensor<4xf32>) -> ()'), "@main: need one block"),
        (program(over_regions("tensor<i32>")), "argument 0 of body has elements i32; need f32"),
        (program(over_regions("f32")), "type f32; need a tensor"),
        (
            program(
                '%0 = "stablehlo.constant"() <{value = dense_resource<x> : tensor<4xf32>}> : () '
                f"-> tensor<4xf32> {RETURN}"
            ),
            "need dense<...> or a blob",
        ),
        (program(RETURN).replace("sym_name", "name"), "func.func without sym_name"),
        (
            program(f'%0 = "stablehlo.constant"() : () -> tensor<4xf32> {RETURN}'),
            "'value' expected",
        ),
        (program(RETURN, more="^bb2:"), "a module with 2 blocks; need 1"),
    ],
    ids=[
        "without a body",
        "two blocks",
        "without func.return",
        "other elements",
        "no tensor",
        "no numbers",
        "no name",
        "no value",
        "two blocks of the module",
    ],
)
def test_a_damaged_program_is_refused(net: Path, text: str, reason: str):
    net.write_text(text)
    with pytest.raises(InputError, match=reason):
        compile_model(net, target="tiny:4", cache=False)


def test_a_program_runs_and_is_dumped_as_it_was_read(net: Path, tmp_path: Path):
    dump = tmp_path / "stages"
    exe = compile_model(net, target="tiny:4", dump_ir=dump)
    w, x = np.array([1, 2, 3], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    inputs = {"p['w']": w, "x": x}
    assert exe.run(inputs, at="stablehlo")["result"].tolist() == (w * x).tolist()
    text = (dump / "stablehlo.mlir").read_text()
    assert "stablehlo.maximum" in text
    # The dump is a program like the file.
    again = compile_model(dump / "stablehlo.mlir", target="tiny:4", cache=False)
    assert again.run(inputs)["result"].tolist() == (w * x).tolist()


def test_a_function_that_compares_elements_ends_as_jax_ends_it(tmp_path: Path):
    path = tmp_path / "top.mlir"
    path.write_text(program(RETURN, more=COMPARATOR))
    x = np.arange(4, dtype=np.float32)
    exe = compile_model(path, target="tiny:4")
    (found,) = exe.run({exe.inputs[0].name: x}).values()
    np.testing.assert_array_equal(found, x)
