"""The page of rules: abele's own, the functions that rules may call, and the grammar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files

from xdsl.ir import Operation

from ...ir.rules.bound_rule import BoundRule
from ...ir.rules.library import CLASSES, FUNCTIONS, Function
from ...passes.pipelines import PASSES
from ...passes.rules.own import FOLDER, own_rules, own_vocabulary
from ..proving.kept import own_verdicts
from .documents import document
from .markdown import code, fence, link, page, plain, table
from .passes import rule_files


def rules_by_file() -> dict[str, tuple[BoundRule, ...]]:
    """The rules of abele, by file without .rw."""
    folder = files("abele.passes").joinpath(FOLDER)
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".rw"))
    return {name.removesuffix(".rw"): own_rules(name.removesuffix(".rw")).bound for name in names}


def rules_page(rules: Mapping[str, Sequence[BoundRule]]) -> str:
    """The text of the page."""
    grammar = files("abele.ir.rules").joinpath("grammar.lark").read_text(encoding="utf-8")
    guards = [each for each in FUNCTIONS.values() if each.is_guard]
    functions = [each for each in FUNCTIONS.values() if not each.is_guard]
    return page(
        "Rules",
        "A rule consists of a pattern, guards, and a replacement. abele's own are in "
        "`passes/rules`, one file per topic; `--load FILE.rw` makes a pass of your own. "
        "[The rule language](../rules.md) explains each construct with an example.",
        "\n".join(f"- {link(code(f'{file}.rw'), '', f'{file}.rw')}" for file in rules)
        + "\n- [guards](#guards), [functions](#functions) and [classes](#classes) that rules may "
        "name\n- [the grammar](#grammar)",
        *(_file(file, bound) for file, bound in rules.items()),
        "## Guards",
        "These may appear in a `where`.",
        table(("guard", "meaning"), map(_function, guards)),
        "## Functions",
        "These compute attributes and sizes.",
        table(("function", "gives", "meaning"), map(_valued, functions)),
        "## Classes",
        "These may appear in a pattern in place of an operation's name.",
        table(("class", "meaning", "operations"), (_class(*item) for item in CLASSES.items())),
        "## Grammar",
        fence(grammar),
    )


def _file(file: str, bound: Sequence[BoundRule]) -> str:
    path = f"passes/{FOLDER}/{file}.rw"
    text = files("abele.passes").joinpath(FOLDER, f"{file}.rw").read_text(encoding="utf-8")
    users = [name for name in PASSES if file in rule_files(name)]
    applied = ", ".join(link(code(name), "passes.md", name) for name in users)
    return "\n\n".join(
        block
        for block in (
            f"## {file}.rw",
            plain(_heading(text)),
            f"Applied by {applied}." if applied else "",
            *(_section(file, path, rule) for rule in bound),
        )
        if block
    )


def _heading(text: str) -> str:
    """The comment at the top of a file, if an empty line follows it."""
    comment, _, rest = text.partition("\n\n")
    lines = comment.splitlines()
    alone = rest and all(line.startswith("//") for line in lines)
    return " ".join(line.removeprefix("//").strip() for line in lines) if alone else ""


def _section(file: str, path: str, rule: BoundRule) -> str:
    line = rule.place.line
    where = link(f"line {line}", f"../../{path}#L{line}")
    says = f"{plain(rule.document)} ({where})" if rule.document else f"At {where}."
    kept = own_verdicts(file).get(rule.name)
    verdict = "" if kept is None else f"{kept.text[0].upper()}{kept.text[1:]}"
    parts = (f"### {file}.{rule.name}", says, fence(rule.text), plain(verdict))
    return "\n\n".join(part for part in parts if part)


def _function(each: Function) -> tuple[str, ...]:
    given = ", ".join(
        f"{name}: {kind}{' or none' * optional}"
        for name, kind, optional in zip(_parameters(each.call), each.kinds, each.optional)
    )
    return code(f"{each.name}({given})"), plain(document(each.call).summary)


def _valued(each: Function) -> tuple[str, ...]:
    call, meaning = _function(each)
    return call, each.result, meaning


def _parameters(call: Callable[..., object]) -> tuple[str, ...]:
    names = call.__code__.co_varnames
    return names[: call.__code__.co_argcount]


def _class(name: str, belongs: Callable[[type[Operation]], bool]) -> tuple[str, ...]:
    members = own_vocabulary().members(belongs)
    listed = ", ".join(
        link(code(cls.name), f"dialects/{cls.name.partition('.')[0]}.md", cls.name)
        for cls in members
    )
    return code(name), plain(document(belongs).summary), listed
