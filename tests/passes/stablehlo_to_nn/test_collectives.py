"""Operations between processes, in a program that runs as one."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_stablehlo import lowered, operations, results_of, returned

from abele.backends.stablehlo import run_stablehlo
from abele.ir.support.errors import InputError
from abele.ir.text import parse_module
from abele.ir.upstream import VerifyException
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.importers.stablehlo.in_memory import StableHloModel

X = np.array([1, -2, 3, 4], np.float32)
V = "tensor<4xf32>"

MERGE = """({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> () })"""

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"

GROUPED = {
    "all_reduce": f"{CHANNEL}, use_global_device_ids",
    "all_gather": "all_gather_dim = 0 : i64",
    "all_to_all": "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64",
    "reduce_scatter": "scatter_dimension = 0 : i64",
    "collective_broadcast": CHANNEL,
}


def grouped(name: str, groups: str) -> str:
    region = MERGE if "reduce" in name else ""
    return (
        f'%0 = "stablehlo.{name}"(%x) <{{{GROUPED[name]}, replica_groups = dense<{groups}>}}>'
        f" {region} : ({V}) -> {V}\n" + returned(["0"], [V], "func.return")
    )


def permuted(pairs: str) -> str:
    return (
        f'%0 = "stablehlo.collective_permute"(%x) <{{source_target_pairs = dense<{pairs}>}}>'
        f" : ({V}) -> {V}\n" + returned(["0"], [V], "func.return")
    )


@pytest.mark.parametrize("name", GROUPED)
def test_a_process_alone_keeps_its_value(name: str):
    body = grouped(name, "0> : tensor<1x1xi64")
    assert operations(lowered(body, f"%x: {V}", V)) == []
    np.testing.assert_array_equal(results_of(body, f"%x: {V}", V, X)[0], X)


@pytest.mark.parametrize("name", GROUPED)
def test_a_group_of_processes_is_refused(name: str):
    message = f"stablehlo.{name} at .*: a group of 2 processes is not supported; a program runs as"
    with pytest.raises(InputError, match=message):
        lowered(grouped(name, "[[0, 1]]> : tensor<1x2xi64"), f"%x: {V}", V)


@pytest.mark.parametrize(
    ("pairs", "found"), [("0> : tensor<1x2xi64", X), ("> : tensor<0x2xi64", 0)]
)
def test_a_process_sends_to_itself_or_gets_zeros(pairs: str, found: object):
    body = permuted(pairs)
    np.testing.assert_array_equal(results_of(body, f"%x: {V}", V, X)[0], found)
    other = body.replace(pairs, "[[0, 1]]> : tensor<1x2xi64")
    with pytest.raises(InputError, match="a process 1 is not supported"):
        lowered(other, f"%x: {V}", V)
    with pytest.raises(InputError, match="other processes; a program runs as one"):
        interpreted(other)


def interpreted(body: str) -> np.ndarray:
    text = f"builtin.module {{ func.func @main(%x: {V}) -> {V} {{ {body} }} }}"
    (found,) = run_stablehlo(parse_module(text, new_context()), {"arg0": X}).outputs.values()
    return found


@pytest.mark.parametrize("name", GROUPED)
def test_the_interpreter_runs_one_process_too(name: str):
    np.testing.assert_array_equal(interpreted(grouped(name, "0> : tensor<1x1xi64")), X)
    with pytest.raises(InputError, match=f"stablehlo.{name} at .*: other processes"):
        interpreted(grouped(name, "[[0, 1]]> : tensor<1x2xi64"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (grouped("all_gather", "0> : tensor<1xi64"), r"is int64\[1\]; need rows of integers"),
        (grouped("all_gather", "0.0> : tensor<1x1xf32"), r"is float32\[1, 1\]; need rows of int"),
        (permuted("0> : tensor<1xi64"), r"source_target_pairs is int64\[1\]; need rows of 2 inte"),
        (permuted("0> : tensor<1x3xi64"), r"is int64\[1, 3\]; need rows of 2 integers"),
    ],
)
def test_numbers_of_processes_are_rows_of_integers(body: str, message: str):
    with pytest.raises(VerifyException, match=message):
        lowered(body, f"%x: {V}", V)


NUMBERED = """
"builtin.module"() ({
  "func.func"() <{function_type = () -> tensor<ui32>, sym_name = "main"}> ({
    %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
    "func.return"(%0) : (tensor<ui32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32} : () -> ()
"""


def test_the_only_process_has_number_0():
    exe = compile_model(StableHloModel(NUMBERED), target="tiny:2", cache=False)
    assert exe.run({})["result0"] == 0
    with pytest.raises(InputError, match="stablehlo.partition_id among 2 processes is not support"):
        compile_model(StableHloModel(NUMBERED.replace("= 1 :", "= 2 :")), "tiny:2", cache=False)
