"""The nine light networks, from ONNX to the machine, with weights that test something.

Compiling a network takes most of the time of a test, so one test looks at all of the result.
`make test` takes two networks and the beginnings of two others, which have all operators and
structures of the nine; `make bench` takes all nine, with the marker large for the other seven.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from every_form import different
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from abele.backends.reference import run_reference
from abele.dialects.exchange import VariableOp
from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.debug.run_check import TOLERANCE, check_run, relative_error, rounding_error
from abele.tools.importers.light_networks import light_file, light_input, light_names, seeded
from abele.tools.workshop.trace import traceability

QUICK = ("squeezenet",)

BEGINNINGS = {"inception_v2": "r161", "alexnet": "r7"}
"""The value at which the beginning of a network ends: behind three blocks, the last of which halves
the image; and behind two convolutions, each with its response normalization and pooling."""

LARGE = {
    "alexnet": "its beginning has its normalization, squeezenet and shufflenet have the rest",
    "resnet50": "shufflenet adds and normalizes, the beginning of inception_v2 is of its kind",
    "inception_v2": "its beginning has its blocks, shufflenet is as deep",
    "vgg19": "squeezenet has its convolutions and poolings, shufflenet a dense layer",
    "zfnet512": "alexnet has all its operators, with windows of other sizes",
    "inception_v1": "squeezenet has its branches, the beginning of alexnet its normalization",
    "densenet121": "the beginning of inception_v2 concatenates and normalizes",
}
"""Networks of `make bench`, with the networks of `make test` that have the same operators."""

OPERATIONS_A_NODE = 40

TRACED = 0.99
"""The least share of the operations that trace to a node, and of the nodes that are found."""


CYCLES: dict[str, int] = {}
"""The cycles on mk2 of the networks that this process has compiled for it."""


def cycles_on_mk2(name: str) -> int:
    if name not in CYCLES:
        CYCLES[name] = compile_model(seeded(name), "mk2").profile["cycles"]
    return CYCLES[name]


def by_onnxruntime(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (result,) = session.run(None, inputs)
    return result


def marks(name: str) -> list[pytest.MarkDecorator]:
    slow = [] if name in QUICK else [pytest.mark.slow]
    return [*slow, pytest.mark.large] if name in LARGE else slow


NAMES = [pytest.param(name, marks=marks(name)) for name in light_names()]

LATER = [pytest.mark.slow, pytest.mark.large]

FEW = [pytest.param(name, marks=[] if name == "shufflenet" else LATER) for name in light_names()]
"""For what does not depend on the structure of a network: make test takes one, which normalizes."""


EACH_FORM = [
    pytest.param(name, marks=[] if name == "squeezenet" else LATER) for name in light_names()
]
"""NumPy alone takes seconds for a run of a large network."""


def beginning(proto: onnx.ModelProto, last: str) -> onnx.ModelProto:
    """The nodes of a network up to the one that computes a value, which is its output."""
    part = onnx.ModelProto()
    part.CopyFrom(proto)
    graph = part.graph
    ends = next(i for i, node in enumerate(graph.node) if last in node.output)
    del graph.node[ends + 1 :]
    read = {name for node in graph.node for name in node.input}
    for i in reversed(range(len(graph.initializer))):
        if graph.initializer[i].name not in read:
            del graph.initializer[i]
    graph.output[0].CopyFrom(helper.make_tensor_value_info(last, TensorProto.FLOAT, None))
    return part


def operators(proto: onnx.ModelProto) -> set[str]:
    """The operators of a network that compute: weights of a published file are made by others."""
    return {node.op_type for node in proto.graph.node} - {"ConstantOfShape"}


def test_the_networks_of_make_test_have_every_operator_of_the_others():
    published = {each: onnx.load(light_file(each)) for each in light_names()}
    begun = (beginning(published[name], last) for name, last in BEGINNINGS.items())
    whole = (published[name] for name in published if name not in LARGE)
    tested = {each for proto in (*begun, *whole) for each in operators(proto)}
    for name in LARGE:
        assert operators(published[name]) <= tested, name


@pytest.mark.parametrize("name", NAMES)
def test_a_light_network_on_mk2(name: str):
    CYCLES[name] = cycles_of_right_results(seeded(name), dict(light_input(name)))


@pytest.mark.parametrize("name", EACH_FORM)
def test_a_light_network_gives_the_same_bytes_in_each_form_of_kernels(name: str):
    exe = compile_model(seeded(name))
    assert different(exe.module_at("exchange"), exe.target, dict(light_input(name))) == []


@pytest.mark.parametrize("name", EACH_FORM)
def test_a_light_network_on_a_mesh(name: str):
    """Another fabric changes plans and prices, and no result by more than rounding."""
    proto, inputs = seeded(name), dict(light_input(name))
    exe = compile_model(proto, "mesh")
    (result,) = exe.run(inputs).values()
    assert relative_error(result, by_onnxruntime(proto, inputs)) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(("name", "last"), BEGINNINGS.items())
def test_the_beginning_of_a_network_on_mk2(name: str, last: str):
    cycles_of_right_results(beginning(seeded(name), last), dict(light_input(name)))


def cycles_of_right_results(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> int:
    """The cycles of a network on mk2, once all that it computes has been found right."""
    exe = compile_model(proto)
    results = exe.run(inputs)
    (result,) = results.values()
    assert relative_error(result, by_onnxruntime(proto, inputs)) < TOLERANCE
    verdict = check_run(exe, inputs, results, "exchange")
    assert verdict.passed, verdict.problem
    assert verdict.checked > len(proto.graph.node) / 2
    for level, operations in exe.profile["ops"].items():
        assert operations <= OPERATIONS_A_NODE * len(proto.graph.node), level
    assert exe.target.name == "mk2"
    for trace in traceability(exe, proto):
        assert trace.traced >= TRACED * trace.operations, trace.untraced
        assert trace.found >= TRACED * trace.nodes, trace.lost
    return exe.profile["cycles"]


@pytest.mark.parametrize("name", FEW)
def test_a_published_file_runs_as_fast_as_with_weights(name: str):
    """Its weights are made in the graph: each is one number, repeated."""
    path, inputs = light_file(name), dict(light_input(name))
    exe = compile_model(path)
    assert exe.profile["cycles"] <= 1.05 * cycles_on_mk2(name)
    (result,) = exe.run(inputs).values()
    assert relative_error(result, by_onnxruntime(onnx.load(path), inputs)) < TOLERANCE


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=LATER) for each in ("squeezenet", "resnet50")]
)
def test_a_light_network_with_narrow_floats(name: str):
    proto, inputs = seeded(name), dict(light_input(name))
    exe = compile_model(proto, passes="narrow-floats,nn,partition,tile,exchange")
    results = exe.run(inputs)
    assert all(result.dtype == np.float32 for result in results.values())
    verdict = check_run(exe, inputs, results, "exchange")
    # Weights that nobody trained: rounding alone moves their outputs further than is allowed.
    assert verdict.ratio <= 1, verdict.problem
    assert verdict.error is not None
    reference = run_reference(exe.module_at("nn"), inputs).outputs
    moved = rounding_error(exe.module_at("nn"), inputs, reference, np.dtype(np.float16))
    assert verdict.error <= 2 * moved
    assert f"rounding to float16 alone moves outputs by {moved:.3g}" in verdict.problem
    variables = exe.module_at("exchange").walk()
    assert {v.dtype for v in variables if isinstance(v, VariableOp) and v.is_resident} == {
        np.dtype(np.float16)
    }
    assert exe.profile["cycles"] < cycles_on_mk2(name)


def test_swapped_channels_are_seen():
    proto, inputs = seeded("squeezenet"), dict(light_input("squeezenet"))
    right = by_onnxruntime(proto, inputs)
    weight = next(each for each in proto.graph.initializer if len(each.dims) == 4)
    array = numpy_helper.to_array(weight).copy()
    array[[0, 1]] = array[[1, 0]]
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    assert relative_error(by_onnxruntime(proto, inputs), right) > TOLERANCE


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("alexnet", "mk1:600"),
        pytest.param("vgg19", "mk1", marks=[pytest.mark.slow, pytest.mark.large]),
    ],
)
def test_a_network_in_fp32_that_does_not_fit_says_why(name: str, target: str, tmp_path: Path):
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(seeded(name).SerializeToString())
    outputs = tmp_path / "y.npz"
    result = CliRunner().invoke(
        app, ["run", str(path), "--target", target, "--outputs", str(outputs)]
    )
    assert result.exit_code == 3, result.output
    message = result.stderr
    assert message.startswith("error: does not fit: tile ")
    for word in ("bytes", "fc6", "--advise", "bytes over"):
        assert word in message
    assert all(len(line) <= 100 for line in message.splitlines()[:-1])
    assert not outputs.exists()


def test_a_network_does_not_grow_with_the_tiles():
    proto = seeded("squeezenet")
    few = compile_model(proto, "mk2:16,memory.bytes_per_tile=60000000").profile["ops"]
    many = compile_model(proto, "mk2").profile["ops"]
    for level in few:
        assert many[level] <= 1.5 * few[level], level
