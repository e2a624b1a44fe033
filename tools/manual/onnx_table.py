"""The page of all operators of ONNX: whether abele imports them, and which cases it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import onnx
from onnx import defs, helper

from ...ir.support.errors import InputError
from ..importers.onnx.functions import body_of, graphs_in, has_body
from ..importers.onnx.ops_texts import TAKE_TEXTS
from ..importers.onnx.reader import CONTRIBUTED_DOMAIN, DOMAINS, OPSETS
from ..importers.onnx.tensors import tensor_dtype
from .guards import guards_of
from .markdown import code, link, page, plain, table

TYPE_GROUPS = {
    "floats of 16 to 64 bits": ("float", "float16", "double", "bfloat16"),
    "floats of 4 and 8 bits": (
        *("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"),
        "float4e2m1",
    ),
    "integers of 8 to 64 bits": (
        *("int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    ),
    "integers of 2 and 4 bits": ("int2", "int4", "uint2", "uint4"),
}
"""Element types of ONNX that have one name together where an operator takes all of them."""

_VALUES = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])]

SOME_VALUES: dict[str, int | onnx.GraphProto] = {
    "INT": 1,
    "GRAPH": helper.make_graph([], "graph", _VALUES, _VALUES),
}
"""Values for attributes that operators with a function body need, by kind."""

MAIN = "ai.onnx"


def onnx_table_page() -> str:
    """The text of the page."""
    blocks: list[str] = []
    for domain, schemas in _by_domain().items():
        importers = DOMAINS.get(domain, {})
        extra = sorted(importers.keys() - schemas.keys())
        rows = [_row(domain, name, versions) for name, versions in sorted(schemas.items())]
        rows += [(code(name), "", "yes", "", _guarded(domain, name)) for name in extra]
        read = sum(row[2] != "no" for row in rows)
        blocks += [
            f"## {domain}",
            f"{read} of {len(rows)} operators are imported.",
            table(("operator", "opsets", "imported", "element types", "refused"), rows),
        ]
    return page(
        "ONNX operators, one by one",
        f"This page lists every operator of onnx {onnx.__version__}, and those that abele imports "
        f"of the domain `{CONTRIBUTED_DOMAIN}`. abele reads models of the opsets {OPSETS[0]} to "
        f"{OPSETS[-1]} of `{MAIN}`. {link('ONNX operators', 'reference/onnx.md')} is shorter, and "
        "`abele run MODEL --list-ops` says the same about one model.",
        "- *opsets*: the versions of the domain that changed the operator. A model's own opset "
        "decides which of them holds.\n"
        "- *imported*: `yes`; or `function`, if the body that ONNX gives is inlined.\n"
        "- *element types*: those that ONNX allows and abele holds.\n"
        "- *refused*: element types that ONNX allows and abele does not hold; after *known*, the "
        "operands that the importer reads when the model is compiled, so that some forms of the "
        "operator need constants there, or `--value`; and the messages of the importer, with "
        "`...` for what depends on the node. A node that breaks a rule of ONNX is refused as well.",
        *blocks,
        "## Where implementations differ",
        "ONNX's text leaves these cases open, and onnxruntime computes something else. abele "
        "chooses:",
        table(("case", "abele", "onnxruntime"), CHOICES),
    )


CHOICES = (
    (
        "`HannWindow`, `HammingWindow` and `BlackmanWindow` of one element, not periodic",
        "the first element of a longer window, so 0 for `HannWindow`",
        "NaN: the formula divides 0 by 0",
    ),
    (
        "`QLinearAveragePool` with `count_include_pad` and `ceil_mode`, where a window reaches "
        "behind the padding",
        "divides by the elements and the padding in the window, as `AveragePool` does",
        "divides by the size of the window",
    ),
    (
        "`Pad` with `mode=wrap` that removes elements on one side (a negative pad) and adds some "
        "on the other",
        "repeats all elements of the operand, also those that are removed",
        "removes elements first, and repeats the others",
    ),
)
"""Cases that the standard leaves open: the results of abele and of onnxruntime."""


def _by_domain() -> dict[str, dict[str, list[defs.OpSchema]]]:
    """The versions of each operator, from the oldest, by domain and name; no deprecated ones."""
    found: dict[str, dict[str, list[defs.OpSchema]]] = {MAIN: {}, CONTRIBUTED_DOMAIN: {}}
    for schema in defs.get_all_schemas_with_history():
        found.setdefault(schema.domain or MAIN, {}).setdefault(schema.name, []).append(schema)
    for domain, schemas in found.items():
        for versions in schemas.values():
            versions.sort(key=lambda each: each.since_version)
        found[domain] = {name: v for name, v in schemas.items() if not v[-1].deprecated}
    return dict(sorted(found.items()))


def _row(domain: str, name: str, versions: Sequence[defs.OpSchema]) -> tuple[str, ...]:
    schema = versions[-1]
    opsets = ", ".join(str(each.since_version) for each in versions)
    imported, why = _imported(domain, schema)
    held, other = _types(schema)
    if name in TAKE_TEXTS and "string" in other:
        held, other = [*held, "strings"], [each for each in other if each != "string"]
    if imported == "no":
        return code(name), opsets, imported, "", why
    refused = [*([f"{', '.join(other)} elements"] if other else []), *([why] if why else [])]
    return code(name), opsets, imported, ", ".join(held), "; ".join(refused)


def _imported(domain: str, schema: defs.OpSchema) -> tuple[str, str]:
    """Whether an operator is imported, and the refused cases or the reason why it is not
    imported."""
    if schema.name in DOMAINS.get(domain, {}):
        return "yes", _guarded(domain, schema.name)
    if not has_body(schema):
        return "no", "nobody imports it"
    missing = sorted(_missing(schema))
    if missing:
        return "no", f"its function body uses {', '.join(map(code, missing))}"
    return "function", ""


def _guarded(domain: str, name: str) -> str:
    """The cases that the importer of an operator refuses."""
    guards = guards_of(DOMAINS[domain][name])
    known = [f"known: {', '.join(guards.known)}"] if guards.known else []
    return plain("; ".join([*known, *guards.unsupported]))


def _missing(schema: defs.OpSchema) -> set[str]:
    """The operators in a function body without an importer, as far as the body is known."""
    function = body_of(schema, _some_node(schema), [_some_type(each) for each in schema.inputs])
    return {name for name in _operators(function.node) if not _is_read(name)}


def _operators(nodes: Sequence[onnx.NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield node.op_type
        for graph in graphs_in(node.attribute):
            yield from _operators(graph.node)


def _is_read(name: str) -> bool:
    if name in DOMAINS[MAIN]:
        return True
    schema = defs.get_schema(name)
    return has_body(schema) and not _missing(schema)


def _some_node(schema: defs.OpSchema) -> onnx.NodeProto:
    """A node of an operator with all operands and results, and the necessary attributes."""
    required = [each for each in schema.attributes.values() if each.required]
    node = helper.make_node(
        schema.name,
        [each.name for each in schema.inputs],
        [each.name for each in schema.outputs],
        domain=schema.domain,
    )
    for each in required:
        kind = str(each.type).rpartition(".")[2]
        if kind in SOME_VALUES:
            node.attribute.append(helper.make_attribute(each.name, SOME_VALUES[kind]))
    return node


def _some_type(parameter: defs.OpSchema.FormalParameter) -> onnx.TypeProto:
    """An allowed type of an operand: a tensor with three sizes, or a sequence of such tensors."""
    known = _codes()
    code_ = next((known[name] for name in sorted(_elements(parameter.types)) if name in known), 1)
    tensor = helper.make_tensor_type_proto(code_, [1, 2, 4])
    return tensor if _elements(parameter.types) else helper.make_sequence_type_proto(tensor)


# Types


def _types(schema: defs.OpSchema) -> tuple[list[str], list[str]]:
    """The types of an operator's operands and results: those that abele has, and the others."""
    parameters = (*schema.inputs, *schema.outputs)
    allowed = {each for one in parameters for each in one.types}
    elements = _elements(allowed)
    held = {each for each in elements if each in _codes()}
    others = sorted(elements - held)
    return _grouped(held), others


def _elements(types: object) -> set[str]:
    texts = (str(each) for each in types)  # pyright: ignore[reportGeneralTypeIssues,reportUnknownVariableType,reportUnknownArgumentType]
    return {text[7:-1] for text in texts if text.startswith("tensor(")}


def _grouped(names: set[str]) -> list[str]:
    """Names of element types, with one name for each complete group."""
    rest, found = set(names), list[str]()
    for group, members in TYPE_GROUPS.items():
        if rest.issuperset(members):
            found.append(group)
            rest -= set(members)
    return [*found, *sorted(rest)]


@lru_cache(maxsize=1)
def _codes() -> dict[str, int]:
    """The element types that abele has, by their names in ONNX's definitions."""
    found: dict[str, int] = {}
    for name, number in onnx.TensorProto.DataType.items():
        try:
            tensor_dtype(number, "")
        except InputError:
            continue
        found[name.lower()] = number
    return found
