"""Operations between processes, in a program that runs as one."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_stablehlo import lowered, operations, results_of, returned

from abele.ir.support.errors import InputError
from abele.tools import compile_model
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
    body = f'%0 = "stablehlo.collective_permute"(%x) <{{source_target_pairs = dense<{pairs}>}}>'
    body += f" : ({V}) -> {V}\n" + returned(["0"], [V], "func.return")
    np.testing.assert_array_equal(results_of(body, f"%x: {V}", V, X)[0], found)
    with pytest.raises(InputError, match="a process 1 is not supported"):
        lowered(body.replace(pairs, "[[0, 1]]> : tensor<1x2xi64"), f"%x: {V}", V)


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
