"""Explain why a rule does not match in a program."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...ir.context import AbeleContext
from ...ir.pass_manager import PassManager, load_pass
from ...ir.rules import RuleSet, RulesPass
from ...ir.rules.explain import Explanation, explain
from ...ir.support.errors import InputError
from ...ir.text import read_module
from ...ir.upstream import ModuleOp, VerifyException
from ...ir.verify import verify
from ..driver.extensions.load import load_extensions
from ..driver.extensions.loaded import Extensions
from ..driver.program import Model, read_program


def explain_rule(
    rule: str,
    model: Model,
    *,
    load: Sequence[str | os.PathLike[str]] | Extensions = (),
    after: str = "",
    target: str = "",
    lenient: bool = False,
) -> Explanation:
    """Explain, for each operation that could be a rule's root, why the rule matches or does not.

    rule: the name of a rule in a loaded file or of abele's own; file:name if several files have it.
    load: files of extensions, or loaded extensions. after: a pipeline to run first, such as
    "decompose", in which a level stands for the passes that lead there. lenient: as
    for compile_model. Raises InputError.
    """
    extensions = load if isinstance(load, Extensions) else load_extensions(load)
    context = extensions.context()
    module = _module(model, context, lenient)
    passes = extensions.pipeline(after, target)
    PassManager(passes).run(context, module)
    sets = rule_sets(extensions)
    if rule in extensions.passes and not any(law.name == rule for own in sets for law in own.laws):
        raise InputError(f"{rule} is a pass, not a rule{_rules_of(rule, extensions)}")
    return explain(rule, sets, module)


def _rules_of(name: str, extensions: Extensions) -> str:
    cls = load_pass(name, extensions.passes)
    if not issubclass(cls, RulesPass):
        return f"; abele opt --help-pass {name} describes it"
    return f"; its rules: {', '.join(dict.fromkeys(cls.rule_set().names))}"


def rule_sets(extensions: Extensions) -> list[RuleSet]:
    """The rules of all passes that consist of rules, users' and abele's."""
    classes = [load_pass(name, extensions.passes) for name in extensions.passes]
    return [each.rule_set() for each in classes if issubclass(each, RulesPass)]


def _module(model: Model, context: AbeleContext, lenient: bool) -> ModuleOp:
    """A program of any level. A piece of text needs no entry function."""
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".mlir"):
        module = read_module(model, context)
        try:
            verify(module)
        except VerifyException as error:
            path, message = os.fspath(model), str(error)
            raise InputError(message if path in message else f"{path}: {message}") from None
        return module
    return read_program(model, context, lenient=lenient).module
