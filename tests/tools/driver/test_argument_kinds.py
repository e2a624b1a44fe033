"""Wrong arguments from Python code are refused by one message that says what to give."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from some_models import relu

from abele.ir.errors import InputError
from abele.tools import Executable, Session, compile_model
from abele.tools.driver.argument_kinds import SWITCH
from abele.tools.driver.arrays import seeded
from abele.tools.driver.request import OPTIONS

WRONG: Mapping[str, list[object]] = {
    "model": [None, 3, b"net.onnx", ["net.onnx"]],
    "target": [3, ["mk2"]],
    "chips": [2.5, True, "2"],
    "dims": [2, [("N", 2)], {"N": 2.0}, {"N": "2"}, {"N": True}, {3: 2}],
    "values": [[1], {3: np.ones(2)}],
    "example": [3, b"x.npz", [np.ones(2)], {3: np.ones(2)}],
    "batch": ["2", 2.5, True],
    "keep": [["x"], {"x": 3}],
    "passes": [None, ["nn"]],
    "precision": ["f16", "float6", 16],
    "rounding": ["up", True],
    "sparsity": [3, None, ["zeros"]],
    "partials": [16, True],
    "recompute": [3, None, ["sqrt"]],
    "replicas": [2.5, True, ["2"]],
    "stash": [3, None, "f134:y", [3]],
    "load": [None, "rules.rw", [3]],
    "constraints": [3, {}],
    "pipeline": [3, None, ["fc1"]],
    "schedule": [3, ["grouped"]],
    "stage_chips": [0, None, [0, 1]],
    "micro_batches": ["2", 2.5, True],
    "io_tiles": ["2", 2.5, True, "some"],
    "remote": [3, None, "optimizer", [3]],
    "shard": [3, None, "fc1:n=4", [3]],
    "memory_proportion": ["0.5", True],
    "vertices_per_tile": ["6", 6.0],
    "weights": [3, [np.ones(2)]],
    "train": ["sgd", {}],
    "decoding": ["greedy", {}],
    "beside": [3, [3], "net.abele"],
    "runs": ["10", None],
    "dump_ir": [3, b"stages"],
    "reproducers": [3],
    "watch": [3],
    "on_read": [3],
    "on_inputs": ["x"],
    "on_note": [3],
}
"""Values of no kind that compile_model takes, by parameter."""


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile_model(relu(), "tiny:4", cache=False)


def test_every_parameter_has_a_kind():
    parameters = inspect.signature(compile_model).parameters
    assert parameters.keys() == OPTIONS.keys()
    assert {name for name, each in OPTIONS.items() if each.kind is not SWITCH} == WRONG.keys()


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_another_kind_is_refused_by_name(name: str):
    for value in WRONG[name]:
        given: dict[str, Any] = {"model": relu(), name: value}
        with pytest.raises(InputError, match=f"^compile_model: {name} is .*; need "):
            compile_model(**given)


def test_numbers_of_numpy_and_paths_are_taken(tmp_path: Path):
    path = tmp_path / "net.onnx"
    path.write_bytes(relu().SerializeToString())
    exe = compile_model(path, "tiny:4", dims={}, memory_proportion=np.float64(0.5))
    assert exe.run(seeded(exe.inputs))


@pytest.mark.parametrize("inputs", [None, [np.ones(3)], "x", {3: np.ones(3)}])
def test_inputs_that_are_no_mapping_are_refused(exe: Executable, inputs: object):
    with pytest.raises(InputError, match="^run: inputs is .*; need arrays by name"):
        exe.run(cast(Any, inputs))


def test_a_level_that_does_not_exist_is_refused(exe: Executable):
    for at in ("machine", 3, None):
        with pytest.raises(InputError, match="need"):
            exe.run(seeded(exe.inputs), at=cast(Any, at))


def test_the_message_says_that_bytes_are_in_the_other_order(exe: Executable):
    given = {name: a.astype(a.dtype.newbyteorder()) for name, a in seeded(exe.inputs).items()}
    with pytest.raises(InputError, match=r"bytes are in the other order \([<>]f4\); need array.as"):
        exe.run(given)


def test_masked_elements_are_not_dropped_silently(exe: Executable):
    (name, array), *_ = seeded(exe.inputs).items()
    masked = np.ma.masked_array(array, array == array.flat[0])
    with pytest.raises(InputError, match="a masked array"):
        exe.run({name: masked})
    assert exe.run({name: np.ma.masked_array(array)})


@pytest.mark.parametrize("programs", [None, [1], {"a": 3}])
def test_a_session_of_other_things_is_refused(programs: object):
    with pytest.raises(InputError, match="^Session: programs is .*; need executables by name"):
        Session(cast(Any, programs))
