"""Explain why a rule does not match in a program."""

from __future__ import annotations

from ...backends.target import Target
from ...dialects.onnx_level import ONNX_LEVEL
from ...ir.context import AbeleContext
from ...ir.pass_manager import PassManager, load_pass
from ...ir.rules import RuleSet, RulesPass
from ...ir.rules.explain import Explanation, explain
from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp, VerifyException
from ...ir.verify import verify
from ..driver.compile_anew import reading_of, with_chosen
from ..driver.extensions.loaded import Extensions
from ..driver.request import Request, found_front_end
from ..importers.front_ends import refuse_options
from .opt import MODEL_FILE

with deferred(__name__):
    from ..importers.onnx_models.reader import read_model


def explain_rule(rule: str, request: Request) -> Explanation:
    """Explain, for each operation that could be a rule's root, why the rule matches or does not.

    Raises InputError.

    Args:
        rule: the name of a rule in a loaded file or of abele's own; file:name if several files have
            it.
        request: its passes run first.
    """
    request = with_chosen(request.settled())
    extensions, context = request.extensions, request.extensions.context()
    sets = rule_sets(extensions)
    module = _model(rule, sets, request, context) or _module(request, context)
    target = request.target.spelling() if isinstance(request.target, Target) else request.target
    passes = extensions.pipeline(request.passes, target or "")
    PassManager(passes).run(context, module)
    if rule in extensions.passes and not any(
        bound_rule.name == rule for own in sets for bound_rule in own.bound
    ):
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


def _model(
    rule: str, sets: list[RuleSet], request: Request, context: AbeleContext
) -> ModuleOp | None:
    """The module of ONNX of a file of ONNX, for a rule about operations of ONNX; else None."""
    name = rule.rpartition(":")[2]
    roots = {
        cls.name for own in sets for bound in own.bound if bound.name == name for cls in bound.roots
    }
    is_about = any(each.partition(".")[0] == ONNX_LEVEL.name for each in roots)
    path = request.path
    if not is_about or not path.endswith(MODEL_FILE):
        return None
    module = read_model(path, context)
    verify(module, ONNX_LEVEL)
    return module


def _module(request: Request, context: AbeleContext) -> ModuleOp:
    """A program of any level. A piece of text needs no entry function."""
    reading, front_end = reading_of(request, context), found_front_end(request.model)
    refuse_options(front_end, reading)
    module, path = front_end.read(request.model, reading), request.path
    try:
        verify(module)
    except VerifyException as error:
        message = str(error)
        raise InputError(message if path in message else f"{path}: {message}") from None
    return module
