"""The page of passes: the effect of each, its options, and its place in the default pipeline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...dialects.levels import LEVELS
from ...ir.pass_levels import declared_levels
from ...ir.pass_manager import load_pass
from ...ir.pass_options import PassOption, pass_options
from ...ir.rules.bound_rule import BoundRule
from ...ir.upstream import ModulePass
from ...passes.pipelines import DOWN, FROM_SOURCES, PASSES
from .documents import Document, document
from .markdown import code, link, page, plain, prose, table

_LEVEL = "|".join(map(str, LEVELS))
_ARROW = re.compile(rf"\s*\b({_LEVEL}) -> ({_LEVEL})\b[^.]*\.")
_RULES = re.compile(r"\brules/(\w+)\.rw\b")
_RULES_SENTENCE = re.compile(r"\s*Rules: rules/\w+\.rw\.")
"""The sentence of a docstring that names rules; the page has links instead."""


def passes_page(rules: Mapping[str, Sequence[BoundRule]]) -> str:
    """The text of the page.

    Args:
        rules: rules by file.
    """
    ways = "\n".join(
        f"- {code(str(level))}: {', '.join(map(_entry, names))}" for level, names in DOWN.items()
    )
    return page(
        "Passes",
        "A pass takes a valid program and leaves a valid one. `abele opt -p 'a,b{option=1}'` runs "
        "passes in order; `abele.passes.pipelines` lists them.",
        "A name that neither abele nor a file of yours uses is xDSL's pass, such as `cse` or "
        "`apply-pdl`. `abele-NAME` is always abele's pass and `xdsl-NAME` always xDSL's; "
        "`xdsl-opt` knows all passes of this page as `abele-NAME`.",
        "## The default pipeline",
        "In a pipeline, a level stands for the passes that lead there:",
        ways,
        "From a level above nn, the passes that lead to nn come first: "
        f"{' or '.join(_entry(each) for names in FROM_SOURCES.values() for each in names)}.",
        "## All passes",
        table(("pass", "meaning", "from", "to"), map(_row, PASSES)),
        *(_section(name, rules) for name in PASSES),
    )


def rule_files(name: str) -> tuple[str, ...]:
    """The files of rules that a pass applies, from its docstring, without .rw."""
    return tuple(dict.fromkeys(_RULES.findall(load_pass(name, PASSES).__doc__ or "")))


def levels(cls: type[ModulePass]) -> tuple[str, str]:
    """The levels before and after a pass, as it declares them; empty if it declares none."""
    declared = declared_levels(cls)
    if declared is None or declared.takes is None:
        return "", ""
    return str(declared.takes), str(declared.leaves or declared.takes)


def _entry(step: str) -> str:
    """A step of the default pipeline, as a link."""
    name, brace, options = step.partition("{")
    return link(code(name), "", name) + (f" with {code(options.rstrip('}'))}" if brace else "")


def _row(name: str) -> tuple[str, ...]:
    cls = load_pass(name, PASSES)
    return (link(code(name), "", name), plain(_meaning(cls).summary), *levels(cls))


def _meaning(cls: type[ModulePass]) -> Document:
    """The docstring of a pass without its options and levels."""
    says = document(cls, [option.name.replace("-", "_") for option in pass_options(cls)])
    text = _RULES_SENTENCE.sub("", _ARROW.sub("", says.text, count=1))
    return Document(text, says.example, says.fields)


def _section(name: str, rules: Mapping[str, Sequence[BoundRule]]) -> str:
    cls = load_pass(name, PASSES)
    start, end = levels(cls)
    arrow = f"*{start} → {end}*, " if start else ""
    path = PASSES[name].partition(":")[0].removeprefix("abele.").replace(".", "/") + ".py"
    blocks = [
        f"## {name}",
        f"{arrow}{_place(name)}; {link(code(path), f'../../{path}')}",
        prose(_meaning(cls).text),
        table(("option", "type", "default", "meaning"), map(_option, pass_options(cls))),
    ]
    for file in rule_files(name):
        names = [link(rule.name, "rules.md", f"{file}.{rule.name}") for rule in rules.get(file, ())]
        page_ = link(f"{file}.rw", "rules.md", f"{file}.rw")
        blocks.append(f"Rules of {page_}: {', '.join(names)}." if names else "")
    return "\n\n".join(block for block in blocks if block)


def _place(name: str) -> str:
    """The place of a pass in the default pipeline."""
    for level, steps in DOWN.items():
        names = [step.partition("{")[0] for step in steps]
        if name in names:
            return f"pass {names.index(name) + 1} of {len(names)} on the way to {code(str(level))}"
    return "not in the default pipeline"


def _option(option: PassOption) -> tuple[str, ...]:
    default = "needed" if option.default is None else code(option.default)
    return code(option.name), option.type, default, plain(option.meaning)
