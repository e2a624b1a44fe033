"""Measures the time of planning whole networks, and what choosing plans together gains.

python -m abele.tools.workshop.planning [--networks resnet50,...] [--target mk2]

Each network is planned operator by operator, and with all operators together. The machine prices
the program of the latter. ResNets of 50, 101 and 152 layers then show how the time of planning
grows, and that of the whole compile, from the model's file to a program with addresses. Seconds are
CPU time with garbage collection off, as in every compile. The time of a plain Python loop shows how
fast the processor is.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from onnx import helper, numpy_helper

from ...backends.target import Target, resolve_target
from ...dialects.levels import NN
from ...ir.pass_manager import PassManager, parse_pipeline
from ...ir.upstream import ModuleOp
from ...passes.pipelines import DOWN, with_target
from ...passes.planner.graph import read_graph
from ...passes.planner.limits import Limits
from ...passes.planner.network import Network, plan_network
from ...passes.planner.serial import plans
from ...passes.plans.fused import FusedGroups
from ..bench.measure import host, write_network
from ..bench.named import names_in
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..driver.compile_anew import read_model
from ..driver.extensions.load import load_extensions
from ..driver.program import plan_target
from ..driver.request import Request
from ..importers.light_networks import light_names
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

LAYERS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""Numbers of blocks in the stages of a ResNet, by its number of layers."""


def resnet(
    blocks: tuple[int, ...],
    side: int = 224,
    width: int = 64,
    classes: int = 1000,
    dtype: type[np.floating[Any]] = np.float32,
) -> onnx.ModelProto:
    """A ResNet of bottleneck blocks for one image, with zero weights and folded normalisations.

    Args:
        blocks: number of blocks of each stage.
        side: height and width of the image.
        width: channels of the first stage.
        dtype: element type of all tensors.
    """
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def add(kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{kind.lower()}{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def weight(name: str, *shape: int) -> str:
        weights.append(numpy_helper.from_array(np.zeros(shape, dtype), name))
        return name

    def conv(value: str, inside: int, outside: int, kernel: int, stride: int = 1) -> str:
        name = f"conv{len(nodes)}"
        operands = [value, weight(f"{name}.w", outside, inside, kernel, kernel)]
        operands.append(weight(f"{name}.b", outside))
        pads = [kernel // 2] * 4
        return add("Conv", operands, kernel_shape=[kernel] * 2, pads=pads, strides=[stride] * 2)

    value = add("Relu", [conv("image", 3, width, 7, 2)])
    value = add("MaxPool", [value], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    channels = width
    for stage, count in enumerate(blocks):
        inner, outer = width << stage, 4 * width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            kept = value if block else conv(value, channels, outer, 1, stride)
            value = add("Relu", [conv(value, channels, inner, 1, stride)])
            value = add("Relu", [conv(value, inner, inner, 3)])
            value = add("Relu", [add("Add", [conv(value, inner, outer, 1), kept])])
            channels = outer
    value = add("Flatten", [add("GlobalAveragePool", [value])])
    operands = [value, weight("fc.w", classes, channels), weight("fc.b", classes)]
    value = add("Gemm", operands, transB=1)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    image = helper.make_tensor_value_info("image", kind, [1, 3, side, side])
    result = helper.make_tensor_value_info(value, kind, [1, classes])
    graph = helper.make_graph(nodes, "resnet", [image], [result], weights)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def to_be_planned(path: Path, target: str) -> tuple[ModuleOp, Target]:
    """The program of a model's file as the planner gets it, and its target."""
    extensions = load_extensions(())
    context = extensions.context()
    program = read_model(Request(path), context)
    machine = plan_target(program.module, target, program.path)
    passes = parse_pipeline(",".join(with_target(DOWN[NN], target)), extensions.passes)
    PassManager(passes, ()).run(context, program.module)
    # A group has one plan, which is applied to it as to one operation.
    FusedGroups(program.module).fuse()
    return program.module, machine


def planned(path: Path, target: str) -> dict[str, Any]:
    """Figures of planning a model. Call it in a new process, whose caches are empty."""
    module, machine = to_be_planned(path, target)
    gc.disable()
    start = process_time()
    found = plan_network(module, machine)
    seconds = process_time() - start
    searches = plans.cache_info()
    network = Network(read_graph(module, machine, Limits()), machine)
    usable = machine.usable_bytes_per_tile
    alone = network.plan(network.chooser(usable, 0.0).one_by_one(), usable)
    gc.enable()
    return {
        "operators": len(found.plans),
        "alone_cycles": alone.cycles,
        "alone_bytes": alone.bytes_per_tile,
        "cycles": found.cycles,
        "bytes": found.bytes_per_tile,
        "usable_bytes": usable,
        "searched": searches.misses,
        "asked": searches.misses + searches.hits,
        "seconds": seconds,
    }


def compiled(path: Path, target: str) -> dict[str, Any]:
    """The profile of a model's program, and the seconds of the whole compile."""
    start = process_time()
    exe = compile_model(path, target, cache=False)
    seconds = process_time() - start
    return {**exe.profile, "compile_seconds": seconds}


def loop_seconds() -> float:
    """Seconds of a plain loop of ten million iterations: 0.65 on the core of the time goals."""
    start = process_time()
    total = 0
    for i in range(10_000_000):
        total += i * i
    return process_time() - start


def write_resnet(layers: int, path: Path) -> None:
    """Write a ResNet with this many layers as an .onnx file."""
    path.write_bytes(resnet(LAYERS[layers]).SerializeToString())


def planning(
    networks: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(
        light_names()
    ),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
    layers: Annotated[str, typer.Option(help="Sizes of ResNets, separated by commas.")] = ",".join(
        map(str, LAYERS)
    ),
) -> None:
    """Print the time of planning each network, and the cycles of its plans."""
    resolve_target(target)
    names = names_in("--networks", networks, light_names()) if networks else []
    sizes = names_in("--layers", layers, [*map(str, LAYERS)]) if layers else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        columns = ("one by one", "together", "ratio", "machine", "exchanged MB", "fullest tile")
        table = figure_table(
            f"planning, {target}, batch 1, {host()['processor']}",
            ("network", *columns, "searched", "planning s", "compile s"),
            ("network",),
        )
        for name in names:
            in_own_process(write_network, name, path)
            found, machine = (
                in_own_process(planned, path, target),
                in_own_process(compiled, path, target),
            )
            table.add_row(
                name,
                f"{found['alone_cycles']:,.0f}{_over(found)}",
                f"{found['cycles']:,.0f}",
                f"{found['cycles'] / found['alone_cycles']:.4f}",
                f"{machine['cycles']:,}",
                f"{machine['exchange_bytes'] / 1e6:,.1f}",
                f"{machine['max_tile_bytes']:,}",
                f"{found['searched']} of {found['asked']}",
                f"{found['seconds']:.2f}",
                f"{machine['compile_seconds']:.2f}",
            )
        console().print(table)
        console().print("*: these plans do not fit in memory; the ratio counts them all the same")
        columns = ("operators", "cycles", "searched", "planning s", "compile s", "ms per operator")
        table = figure_table(
            "ResNets",
            ("layers", *columns),
            ("layers",),
        )
        for count in map(int, sizes):
            in_own_process(write_resnet, count, path)
            found, machine = (
                in_own_process(planned, path, target),
                in_own_process(compiled, path, target),
            )
            table.add_row(
                f"{count}",
                f"{found['operators']}",
                f"{found['cycles']:,.0f}",
                f"{found['searched']} of {found['asked']}",
                f"{found['seconds']:.2f}",
                f"{machine['compile_seconds']:.2f}",
                f"{1e3 * machine['compile_seconds'] / found['operators']:.1f}",
            )
        console().print(table)
        console().print(
            f"a loop of ten million iterations takes {in_own_process(loop_seconds):.2f} s on this "
            "processor"
        )


def _over(found: dict[str, Any]) -> str:
    return "*" if found["alone_bytes"] > found["usable_bytes"] else ""


if __name__ == "__main__":
    run_script(planning)
