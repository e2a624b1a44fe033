"""The page of targets: every fact of every preset, its reliability, and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import cast

from ...backends import facts as definitions
from ...backends.fabrics.table import OWN_FABRICS, fabric_named
from ...backends.links.table import OWN_TOPOLOGIES, topology_named
from ...backends.target import PRESETS, Target, resolve_target
from ...backends.target.dotted_keys import members
from ...backends.target.presets import CHIP_OF, PRESET_SOURCES
from .documents import document, without_errors
from .markdown import code, fence, link, page, plain, prose, table

BASE = "mk2"
"""The preset whose facts are listed. Other presets show only differences from it."""

EXAMPLE = """\
base = "mk2"
name = "half"
tiles = 736

[memory]
bytes_per_tile = 327_680
"""
"""A TOML file of a target."""


@dataclass(frozen=True)
class Fact:
    """A number of a machine.

    Attributes:
        key: dotted, as in --target.
        source: the text after its mark.
    """

    key: str
    value: str
    mark: str
    source: str


def targets_page() -> str:
    """The text of the page."""
    base = PRESETS[BASE]
    others = {name: target for name, target in PRESETS.items() if CHIP_OF[name] == name != BASE}
    several = {name: target for name, target in PRESETS.items() if CHIP_OF[name] != name}
    return page(
        "Targets",
        f"Defined in {link(code('backends/facts.py'), '../../backends/facts.py')}.",
        prose(definitions.__doc__ or ""),
        f"`--target` takes {_takes()}",
        "The file names the preset it starts from, and the facts that differ:",
        fence(EXAMPLE, "toml"),
        table(
            ("preset", "tiles", "workers per tile", "bytes per tile", "clock, GHz"),
            (
                (code(name), *(f"{n:,}" for n in _size(target)), f"{target.clock_hz / 1e9:g}")
                for name, target in PRESETS.items()
            ),
        ),
        f"## Facts of {BASE}",
        *(_section(title, kind, facts) for title, kind, facts in _sections(base)),
        "## Fabrics",
        "The fabric prices exchanges and syncs. `exchange.fabric` names it, and decides which "
        "other facts `exchange` has. "
        f"{link('A chapter of the tutorial', '../tutorial/9-change-the-machine.md')} adds one.",
        *(
            f"### {code(kind)}\n\n{prose(document(fabric_named(kind)).text)}"
            for kind in OWN_FABRICS
        ),
        "## What differs in the other presets",
        table(
            ("preset", "fact", "value", BASE, "mark", "source"),
            (row for name, target in others.items() for row in _differences(name, target, base)),
        ),
        "## Several chips",
        "`links.topology` names what joins the chips of a target, and decides which other facts "
        "`links` has. `tiles` counts the tiles of all chips.",
        *(
            f"### {code(kind)}\n\n{prose(document(topology_named(kind)).text)}"
            for kind in OWN_TOPOLOGIES
        ),
        "## What differs in the presets of several chips",
        table(
            ("preset", "fact", "value", "of one chip", "mark", "source"),
            (
                row
                for name, target in several.items()
                for row in _differences(name, target, PRESETS[CHIP_OF[name]])
            ),
        ),
    )


def _takes() -> str:
    says = document(resolve_target, ["text"])
    return f"{plain(without_errors(says.fields['text'])).rstrip('.')}."


def _size(target: Target) -> tuple[int, int, int]:
    return target.tiles, target.workers, target.bytes_per_tile


def _differences(name: str, target: Target, base: Target) -> Iterator[tuple[str, ...]]:
    own, others = facts(target, PRESET_SOURCES.get(name, {})), facts(base, {})
    for key, fact in own.items():
        was = others[key].value if key in others else ""
        # What is not given is not known of this machine, whatever is known of the other.
        if fact.value != was and fact.mark != definitions.GIVEN:
            yield code(name), code(key), fact.value, was, fact.mark, plain(fact.source)


def facts(target: Target, sources: Mapping[str, str]) -> dict[str, Fact]:
    """Every fact of a target by key.

    Args:
        sources: "mark: source", in place of the source of a field.
    """
    return {fact.key: fact for fact in _facts(target, "", sources)}


def _facts(part: object, prefix: str, sources: Mapping[str, str]) -> Iterator[Fact]:
    for each in members(part):
        key, value = prefix + each.name, each.value
        if is_dataclass(value):
            yield from _facts(value, f"{key}.", sources)
        elif isinstance(value, str):
            if key in sources:
                mark, _, source = sources[key].partition(": ")
                yield Fact(key, value, mark, source)
        elif "source" in each.metadata:
            mark, source = str(each.metadata["confidence"]), str(each.metadata["source"])
            if key in sources:
                mark, _, source = sources[key].partition(": ")
            yield Fact(key, _number(value), mark, source)


def _number(value: object) -> str:
    """A number as text."""
    number = cast("int | float", value)
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


Section = tuple[str, object, dict[str, Fact]]


def _sections(target: Target) -> Iterator[Section]:
    """Each part of a target: its key, the part, and its own facts."""
    every = facts(target, PRESET_SOURCES[BASE])
    own = {key: fact for key, fact in every.items() if "." not in key}
    yield "", target, own
    for name, part in ((each.name, each.value) for each in members(target)):
        if is_dataclass(part):
            yield name, part, {k: f for k, f in every.items() if k.startswith(f"{name}.")}


def _section(title: str, part: object, found: Mapping[str, Fact]) -> str:
    heading = f"### {title}\n\n{prose(document(type(part)).text)}\n\n" if title else ""
    rows = ((code(fact.key), fact.value, fact.mark, plain(fact.source)) for fact in found.values())
    return heading + table(("fact", "value", "mark", "source"), rows)
