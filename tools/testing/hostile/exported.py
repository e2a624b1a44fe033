"""Damaged archives of torch.export: damaged bytes, members, and values of their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from .case import Damaged
from .trees import damage_tree, json_text
from .zips import Member, archive_of, damage_zip, members_of

FLOAT, LONG = 7, 5
"""Element types, by the numbers of torch.export."""

STACK = 'File "/home/user/net.py", line 7, in forward\n    return self.fc(x)'
MODULES = "L__self__,,net.Net;L__self__fc,fc,torch.nn.modules.linear.Linear"

GRAPH = "net/models/model.json"
CONFIGS = (
    "net/data/weights/model_weights_config.json",
    "net/data/constants/model_constants_config.json",
)

Tree = Any


def meta_tree(shape: tuple[int | str, ...], dtype: int = FLOAT) -> Tree:
    """What the file says of a tensor. A text is a symbol."""
    sizes: list[Tree] = [
        {"as_expr": {"expr_str": f"Symbol('{n}', positive=True, integer=True)"}}
        if isinstance(n, str)
        else {"as_int": n}
        for n in shape
    ]
    strides: list[Tree] = []
    step = 1
    for n in reversed(shape):
        strides.insert(0, {"as_int": step})
        step *= n if isinstance(n, int) else 2
    return {
        "dtype": dtype,
        "sizes": sizes,
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": strides,
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def argument_tree(value: Tree) -> Tree:
    """An argument: a text is a tensor, a text that begins with $ a number with a name."""
    if isinstance(value, str):
        is_number = value.startswith("$")
        return (
            {"as_sym_int": {"as_name": value[1:]}} if is_number else {"as_tensor": {"name": value}}
        )
    if isinstance(value, list):
        return _arguments(cast("list[Tree]", value))
    kinds = {bool: "as_bool", int: "as_int", float: "as_float", type(None): "as_none"}
    return {kinds[type(value)]: True if value is None else value}


def _arguments(values: list[Tree]) -> Tree:
    """A list of tensors, of integers, or of integers some of which have names."""
    names = [each for each in values if isinstance(each, str)]
    if not names:
        return {"as_ints": values}
    if names[0].startswith("$"):
        return {"as_sym_ints": [_symbolic(each) for each in values]}
    return {"as_tensors": [{"name": each} for each in names]}


def _symbolic(value: Tree) -> Tree:
    return {"as_name": value[1:]} if isinstance(value, str) else {"as_int": value}


def node_tree(target: str, result: Tree, **arguments: Tree) -> Tree:
    """A node of the namespace aten, or of the module operator.

    Args:
        result: its name; a list of names for several results. A name that begins with $ is a
            number.
        arguments: values as `argument_tree` takes them.
    """
    results: list[Tree] = cast("list[Tree]", result) if isinstance(result, list) else [result]
    return {
        "target": target if target.startswith("_") else f"torch.ops.aten.{target}",
        "inputs": [
            {"name": name, "arg": argument_tree(each), "kind": 1}
            for name, each in arguments.items()
        ],
        "outputs": [argument_tree(each) for each in results],
        "metadata": {"stack_trace": STACK, "nn_module_stack": MODULES},
        "name": results[0].removeprefix("$"),
    }


def graph_tree(
    inputs: Sequence[str], nodes: Sequence[Tree], outputs: Sequence[str], types: Mapping[str, Tree]
) -> Tree:
    """A graph as an argument of a node.

    Args:
        types: from `meta_tree`, by the name of the tensor.
    """
    graph = {
        "inputs": [argument_tree(name) for name in inputs],
        "outputs": [argument_tree(name) for name in outputs],
        "nodes": list(nodes),
        "tensor_values": dict(types),
        "sym_int_values": {},
        "sym_bool_values": {},
    }
    return {"as_graph": {"name": "inner", "graph": graph}}


def higher_tree(name: str, arguments: Sequence[Tree], results: Sequence[str]) -> Tree:
    """A node of the namespace higher_order. Its arguments have no names.

    Args:
        arguments: graphs of `graph_tree`, names of tensors, and lists of them.
    """
    given: list[Tree] = [
        each if isinstance(each, dict) else argument_tree(each) for each in arguments
    ]
    return {
        "target": f"torch.ops.higher_order.{name}",
        "inputs": [{"name": "", "arg": each} for each in given],
        "outputs": [argument_tree(each) for each in results],
        "metadata": {"stack_trace": STACK, "nn_module_stack": MODULES},
        "name": results[0],
    }


ROW = {"row": meta_tree((4,)), "total": meta_tree((4,))}
DOUBLED = graph_tree(["row"], [node_tree("mul.Tensor", "y", self="row", other=2.0)], ["y"], ROW)
SHIFTED = graph_tree(["row"], [node_tree("sub.Tensor", "y", self="row", other=1.0)], ["y"], ROW)
SUMMED = graph_tree(
    ["total", "row"], [node_tree("add.Tensor", "y", self="total", other="row")], ["y", "y"], ROW
)
ABOVE = graph_tree(
    ["row"],
    [
        node_tree("sum.default", "all", self="row"),
        node_tree("gt.Scalar", "c", self="all", other=-9),
    ],
    ["c"],
    ROW,
)

NODES: tuple[Tree, ...] = (
    node_tree("sym_size.int", "$n", self="x", dim=0),
    node_tree("_operator.mul", "$m", a="$n", b=2),
    node_tree("linear.default", "y", input="x", weight="w", bias="b"),
    node_tree("relu.default", "r", self="y"),
    node_tree("view.default", "v", self="r", size=["$n", 4]),
    node_tree("select.int", "s", self="r", dim=1, index=-1),
    node_tree("slice.Tensor", "t", self="r", dim=1, start=0, end=2),
    node_tree("cat.default", "c", tensors=["t", "t"], dim=1),
    node_tree("add_.Tensor", "k", self="count", other=1),
    node_tree("mul.Tensor", "z", self="c", other="k"),
    node_tree("embedding.default", "e", weight="w", indices="i"),
    node_tree("sum.dim_IntList", "total", self="e", dim=[0], keepdim=False),
    node_tree("softmax.int", "p", self="z", dim=-1),
    node_tree("gt.Scalar", "far", self="s", other=0),
    node_tree("any.default", "some", self="far"),
    higher_tree("cond", ["some", DOUBLED, SHIFTED, ["total"]], ["chosen"]),
    higher_tree("while_loop", [ABOVE, SHIFTED, ["chosen"], []], ["grown"]),
    higher_tree("scan", [SUMMED, ["grown"], ["e"]], ["last", "rows"]),
    node_tree("nonzero.default", "places", self="rows"),
    node_tree("select.int", "first", self="places", dim=1, index=0),
    node_tree("index_select.default", "found", self="rows", dim=0, index="first"),
    node_tree("sum.dim_IntList", "merged", self="found", dim=[0], keepdim=False),
)
OUTPUTS = ("p", "v", "s", "last", "merged")
TYPES: dict[str, Tree] = {
    "x": meta_tree(("n0", 4)),
    "i": meta_tree((3,), LONG),
    "w": meta_tree((4, 4)),
    "b": meta_tree((4,)),
    "count": meta_tree(()),
    **{name: meta_tree(("n0", 4)) for name in ("y", "r", "c", "z", "p")},
    "v": meta_tree(("n0", 4)),
    "s": meta_tree(("n0",)),
    "t": meta_tree(("n0", 2)),
    "k": meta_tree(()),
    "e": meta_tree((3, 4)),
    "total": meta_tree((4,)),
}


def _spec(kind: str, name: str, target: str) -> Tree:
    more = {"persistent": True} if kind == "buffer" else {}
    return {kind: {"arg": {"name": name}, f"{kind}_name": target, **more}}


def _user(kind: str, name: str) -> Tree:
    return {kind: {"arg": {"as_tensor": {"name": name}}}}


@lru_cache(maxsize=1)
def whole_archive() -> bytes:
    """An archive of a small program, as torch.export writes one."""
    weights = {"fc.weight": ("w", (4, 4)), "fc.bias": ("b", (4,)), "count": ("count", ())}
    graph = graph_tree(("w", "b", "count", "x", "i"), NODES, OUTPUTS, TYPES)["as_graph"]["graph"]
    signature = {
        "input_specs": [
            _spec("parameter", "w", "fc.weight"),
            _spec("parameter", "b", "fc.bias"),
            _spec("buffer", "count", "count"),
            _user("user_input", "x"),
            _user("user_input", "i"),
        ],
        "output_specs": [_user("user_output", name) for name in OUTPUTS],
    }
    program: Tree = {
        "graph_module": {"graph": graph, "signature": signature, "module_call_graph": []},
        "opset_version": {"aten": 10},
        "range_constraints": {"n0": {"min_val": 0, "max_val": 64}},
        "schema_version": {"major": 8, "minor": 20},
        "torch_version": "2.13.0",
    }
    config: Tree = {
        name: {
            "path_name": f"weight_{i}",
            "is_param": True,
            "use_pickle": False,
            "tensor_meta": meta_tree(shape),
        }
        for i, (name, (_, shape)) in enumerate(weights.items())
    }
    random = np.random.default_rng(0)
    stored = [
        random.normal(size=shape).astype(np.float32).tobytes() for _, shape in weights.values()
    ]
    texts: dict[str, Tree] = {
        GRAPH: program,
        CONFIGS[0]: {"config": config},
        CONFIGS[1]: {"config": {}},
    }
    members = [
        Member("net/archive_format", b"pt2"),
        *(Member(name, json.dumps(tree).encode()) for name, tree in texts.items()),
        *(Member(f"net/data/weights/weight_{i}", data) for i, data in enumerate(stored)),
        Member("net/byteorder", b"little"),
    ]
    return archive_of(members)


def exported_program(random: np.random.Generator) -> Damaged:
    """A damaged archive. Its free size has a value, so that whole ones are read to their end."""
    if random.random() < 0.3:
        return damage_zip(_bound(), random)
    members = members_of(_bound())
    names = (GRAPH, GRAPH, GRAPH, GRAPH, CONFIGS[0], CONFIGS[1])
    name = names[int(random.integers(len(names)))]
    (old,) = (each.data for each in members if each.name == name)
    tree, done = damage_tree(json.loads(old), random)
    made = [Member(e.name, json_text(tree) if e.name == name else e.data) for e in members]
    return Damaged(archive_of(made), f"{name}: {done}")


@lru_cache(maxsize=1)
def _bound() -> bytes:
    """The archive with a number in the place of its free size: commands give none."""
    free = json.dumps(meta_tree(("n0",))["sizes"][0]).encode()
    number = json.dumps({"as_int": 2}).encode()
    return archive_of(
        [Member(e.name, e.data.replace(free, number)) for e in members_of(whole_archive())]
    )
