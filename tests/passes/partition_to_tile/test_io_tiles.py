"""States of remote memory go through I/O tiles, and come while the others compute."""

from __future__ import annotations

from some_tensors import context, counting, module_of
from xdsl.dialects.builtin import StringAttr

from abele.dialects.steps import Copy, Load, Store
from abele.dialects.tile import ComputeSetOp
from abele.ir.pass_manager import parse_pipeline
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.pipelines import PASSES

T = "tensor<8xf32>"
TO, PAIR = f"({T}) -> {T}", f"({T}, {T}) -> {T}"
LOWER = parse_pipeline("plan-splits,convert-nn-to-partition,convert-partition-to-tile", PASSES)


def lowered(*body: str, target: str = "tiny:3,io_tiles=1") -> ModuleOp:
    """A program of nn with the remote states w and v, at tile."""
    states = "".join(f'nn.state @{name} : {T} = {{{name}}} {{home = "remote"}}\n' for name in "wv")
    text = f"{states}func.func @main(%x: {T}) -> {T} {{\n" + "\n".join(body) + "\n}"
    made = context()
    module = module_of(text, made, w=counting((8,)), v=counting((8,)))
    module.attributes["abele.target"] = StringAttr(target)
    for each in LOWER:
        each.apply(made, module)
    verify(module)
    return module


def events(module: ModuleOp) -> list[str]:
    """What happens in @main, in order: copies only from and to I/O tiles."""
    found: list[str] = []
    for op in module.walk():
        match op:
            case Load():
                found.append(f"load {op.destination}")
            case Store():
                found.append(f"store {op.source}")
            case ComputeSetOp():
                found.append("compute")
            case Copy():
                names = (*op.sources, op.destination)
                found += [f"copy {n}" for n in names if ".io" in n and n[0] in "wv"]
    return found


def load(name: str, state: str) -> str:
    return f"%{name} = nn.load @{state} : {T}"


def add(name: str, one: str, other: str) -> str:
    return f"%{name} = nn.add %{one}, %{other} : {PAIR}"


def tanh(name: str, of: str) -> str:
    return f"%{name} = nn.tanh %{of} : {TO}"


END = f"func.return %z : {T}"


def test_the_next_state_comes_while_the_others_compute_with_the_one_before():
    module = lowered(load("w", "w"), add("a", "x", "w"), tanh("b", "a"), load("v", "v"),
                     add("z", "b", "v"), END)  # fmt: skip
    assert events(module) == [
        *("load w.io", "copy w.io", "compute"),
        *("load v.io", "compute", "copy v.io", "compute"),
    ]


def test_states_for_one_reader_come_together():
    module = lowered(load("w", "w"), load("v", "v"), add("z", "w", "v"), END)
    assert events(module) == ["load w.io", "load v.io", "copy w.io", "copy v.io", "compute"]


def test_a_state_comes_before_the_store_of_another_one():
    body = (load("w", "w"), add("a", "x", "w"), f"nn.store %a, @w : {T}", load("v", "v"))
    module = lowered(*body, add("z", "a", "v"), END)
    assert events(module) == [
        *("load w.io", "copy w.io", "compute", "load v.io"),
        *("copy w.io.1", "store w.io.1", "copy v.io", "compute"),
    ]


def test_without_io_tiles_states_go_directly():
    body = (load("w", "w"), add("z", "x", "w"), f"nn.store %z, @w : {T}", END)
    found = events(lowered(*body, target="tiny:3"))
    assert [each.split(".")[0].split()[0] for each in found] == ["load", "compute", "store"]
    assert not any(".io" in each for each in found)
