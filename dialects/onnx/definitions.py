"""What ONNX says about each of its operators, over all versions, as `onnx.defs` lists them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import onnx
from onnx.defs import OpSchema
from xdsl.ir import Attribute

from .kinds import GRAPH, GRAPHS, read_attribute

OWN_DOMAINS: Mapping[str, str] = {"": "onnx", "ai.onnx": "onnx"}
"""The domain of ONNX itself has two spellings."""

PREFIX = "ai.onnx."
"""How the names of ONNX's other domains begin."""

ENDLESS = 2**31 - 1
"""The number with which a schema says that there is no limit."""

_GRAPHS = (GRAPH, GRAPHS)


def op_name(domain: str, op_type: str) -> str:
    """The name of an operator's operation in the dialect, for a domain of ONNX."""
    rest = f"{domain.removeprefix(PREFIX)}." if domain not in OWN_DOMAINS else ""
    return f"onnx.{rest}{op_type}"


def plain_domain(domain: str) -> str:
    """A domain in the spelling that `onnx.defs` uses."""
    return "" if domain in OWN_DOMAINS else domain


def kind_name(attribute: OpSchema.Attribute) -> str:
    """The name of an attribute's kind, such as "INT"."""
    return str(attribute.type).rpartition(".")[2]


@dataclass(frozen=True)
class AttributeInfo:
    """What all versions of an operator say about one of its attributes.

    Attributes:
        kinds: the names of its kinds, that of the latest version first.
        is_required: whether each version requires it.
        default: what it is if absent; None if it is then nothing, or differs among versions.
    """

    name: str
    kinds: tuple[str, ...]
    is_required: bool
    default: Attribute | None


@dataclass(frozen=True)
class Definition:
    """An operator of ONNX.

    Attributes:
        versions: its schemas, the earliest first.
    """

    domain: str
    op_type: str
    versions: tuple[OpSchema, ...]

    @property
    def name(self) -> str:
        """The name of its operation."""
        return op_name(self.domain, self.op_type)

    @property
    def latest(self) -> OpSchema:
        """Its latest version."""
        return self.versions[-1]

    def at(self, version: int) -> OpSchema | None:
        """The schema of an opset; None if the operator is newer."""
        found = [each for each in self.versions if each.since_version <= version]
        return found[-1] if found else None

    @cached_property
    def operands(self) -> tuple[int, int | None]:
        """The fewest and the most operands in any version; None for no limit."""
        return _range([(each.min_input, each.max_input) for each in self.versions])

    @cached_property
    def results(self) -> tuple[int, int | None]:
        """The fewest and the most results in any version; None for no limit."""
        return _range([(each.min_output, each.max_output) for each in self.versions])

    @cached_property
    def graphs(self) -> tuple[str, ...]:
        """The attributes that are graphs, in the order of the operation's regions."""
        names = {
            name
            for each in self.versions
            for name, known in each.attributes.items()
            if kind_name(known) in _GRAPHS
        }
        return tuple(sorted(names))

    @cached_property
    def attributes(self) -> dict[str, AttributeInfo]:
        """The attributes of all versions that are no graphs, by name."""
        names = sorted({name for each in self.versions for name in each.attributes})
        return {name: self._attribute(name) for name in names if name not in self.graphs}

    def _attribute(self, name: str) -> AttributeInfo:
        there = [
            each.attributes[name] for each in reversed(self.versions) if name in each.attributes
        ]
        required = len(there) == len(self.versions) and all(each.required for each in there)
        kinds = tuple(dict.fromkeys(map(kind_name, there)))
        defaults = {each.default_value.SerializeToString(deterministic=True) for each in there}
        default = there[0].default_value
        is_one = len(defaults) == 1 and default.type != onnx.AttributeProto.UNDEFINED
        # An older version without the attribute computes what its default says.
        value = read_attribute(default).value if is_one and not required else None
        return AttributeInfo(name, kinds, required, value)


def _range(ranges: Sequence[tuple[int, int]]) -> tuple[int, int | None]:
    most = max(each for _, each in ranges)
    return min(each for each, _ in ranges), None if most >= ENDLESS else most


@lru_cache(maxsize=1)
def definitions() -> Mapping[tuple[str, str], Definition]:
    """The operators that the installed onnx defines, by domain and name."""
    schemas: dict[tuple[str, str], list[OpSchema]] = defaultdict(list)
    for each in onnx.defs.get_all_schemas_with_history():
        if each.domain in OWN_DOMAINS or each.domain.startswith(PREFIX):
            schemas[each.domain, each.name].append(each)
    return {
        (domain, name): Definition(
            domain, name, tuple(sorted(found, key=lambda each: each.since_version))
        )
        for (domain, name), found in sorted(schemas.items())
    }


def latest_version(domain: str) -> int | None:
    """The latest version of a domain that the installed onnx defines; None for others."""
    versions = onnx.defs.C.schema_version_map()
    return versions[plain_domain(domain)][1] if plain_domain(domain) in versions else None
