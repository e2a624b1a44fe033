"""The names of the nodes of an ONNX model, and where they come from.

A node that PyTorch exported is called after its module (`names_by_module`). Other nodes keep the
names that they have in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import onnx

from ....ir.provenance import named, source_line
from ....ir.upstream import LocationAttr
from ..building import Names
from ..modules_and_lines import (
    SourceLine,
    module_path,
    names_by_module,
    users_line,
    users_traced_line,
)

MOST_SCOPES = 1 << 13
"""The most characters of a text that lists modules. Paths of modules are shorter."""

MODULES = "pkg.torch.onnx.name_scopes"
"""The property that lists the modules around a node."""

NAMESPACE = "namespace"
"""The property that lists them with their classes."""

STACK = "pkg.torch.onnx.stack_trace"
"""The property with the stack of calls in which a node was made."""

RULE = "pkg.onnxscript.rewriter.rule_name"
"""The property that names the rule by which the newer exporter has rewritten a node."""

_SCOPE = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")

_SCOPES = re.compile(rf"\[(?:{_SCOPE.pattern}|, )*\]")
"""A list of Python's texts, without escapes in any of them."""

_EXPORTED = re.compile(r"(?:/[^/]+)+")
"""A name that the exporter of TorchScript gives: a path of modules and an operator."""


@dataclass(frozen=True)
class NodeOrigin:
    """The name of a node, and where it comes from.

    Attributes:
        name: unique in the graph.
        in_file: what the file calls the node.
        line: of the program that made the model, if known.
    """

    name: str
    in_file: str
    line: SourceLine | None = None

    @property
    def source(self) -> LocationAttr | None:
        """What the location of the node holds besides its name."""
        place = None if self.line is None else source_line(self.line.file, self.line.line)
        return place if self.name == self.in_file else named(self.in_file, place)


def node_origins(model: onnx.ModelProto) -> list[NodeOrigin]:
    """The origin of each node of a model's graph."""
    nodes = model.graph.node
    made_by = [_module(node, exported_by=model.producer_name) for node in nodes]
    inside = iter(names_by_module([each for each in made_by if each is not None]))
    taken, files = Names(), Names()
    found: list[NodeOrigin] = []
    for index, (node, made) in enumerate(zip(nodes, made_by, strict=True)):
        first = next((o for o in node.output if o), "")
        in_file = node.name or first or f"node {index}"
        name = taken.unique(in_file if made is None else next(inside))
        found.append(NodeOrigin(name, files.unique(in_file), _line(node)))
    return found


def source_texts(model: onnx.ModelProto) -> dict[str, str]:
    """The source lines of the model's nodes, by file and line, such as net.py:12."""
    lines = (_line(node) for node in model.graph.node)
    return {str(line): line.text for line in lines if line is not None and line.text}


def _line(node: onnx.NodeProto) -> SourceLine | None:
    """The line of Python that made a node. The older exporter writes it with verbose=True only."""
    stack = properties_of(node).get(STACK)
    return users_traced_line(node.doc_string) if stack is None else users_line(stack)


def properties_of(node: onnx.NodeProto) -> Mapping[str, str]:
    """The properties of a node that abele reads."""
    pairs = cast("Iterator[tuple[object, object]]", ((p.key, p.value) for p in node.metadata_props))
    # protobuf returns what is not UTF-8 as bytes.
    return {str(key): text for key, text in pairs if key in _READ and isinstance(text, str)}


def _module(node: onnx.NodeProto, exported_by: str) -> tuple[str, str] | None:
    """The path of a node's module, and what the node does in it; None if they are not known."""
    properties = properties_of(node)
    for key, scopes_of in _SCOPES_IN.items():
        scopes = list(scopes_of(properties.get(key, "")[: MOST_SCOPES + 1]))
        if scopes:
            # The last one is the node itself.
            return _checked(next((each for each in scopes[-2::-1] if each), ""), node.op_type)
    is_path = len(node.name) <= MOST_SCOPES and _EXPORTED.fullmatch(node.name)
    if exported_by == "pytorch" and is_path:
        *modules, operator = node.name.split("/")[1:]
        return _checked(_joined(modules), operator)
    return None


def _checked(module: str, operator: str) -> tuple[str, str] | None:
    path = module_path(module)
    return None if path is None else (path, operator)


def _joined(modules: list[str]) -> str:
    """The path of nested modules. That of a part of a Sequential is written with its Sequential
    ("layer1.0")."""
    path: list[str] = []
    for each in modules:
        if path and each.startswith(f"{path[-1]}."):
            path.pop()
        path.append(each)
    return ".".join(path)


def _listed_scopes(text: str) -> Iterator[str]:
    """The scopes in ['', 'blocks.0', 'blocks.0.attn', 'linear']."""
    if len(text) <= MOST_SCOPES and _SCOPES.fullmatch(text):
        yield from (one or other for one, other in _SCOPE.findall(text))


def typed_scopes(text: str) -> Iterator[tuple[str, str]]:
    """The scopes and their classes in ": net.Net/blocks.0: net.Block/linear: aten.linear.default".

    None of a text that is too long.
    """
    if ": " in text and len(text) <= MOST_SCOPES:
        for each in text.split("/"):
            scope, _, kind = each.partition(":")
            yield scope, kind.strip()


def _scopes(text: str) -> Iterator[str]:
    """The scopes in a text as for typed_scopes."""
    return (scope for scope, _ in typed_scopes(text))


_SCOPES_IN: Mapping[str, Callable[[str], Iterator[str]]] = {
    MODULES: _listed_scopes,
    NAMESPACE: _scopes,
}
"""What lists the modules around a node, the outermost first, by the property that it reads."""

_READ = frozenset((*_SCOPES_IN, STACK, RULE))
