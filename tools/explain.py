"""Why a rule does not fire in a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ..ir.context import AbeleContext
from ..ir.errors import InputError
from ..ir.pass_manager import PassManager, parse_pipeline
from ..ir.rules import RuleSet, load_rules
from ..ir.rules.explain import Explanation, explain
from ..ir.text import read_module
from ..ir.upstream import ModuleOp, VerifyException
from ..ir.verify import verify
from ..passes.pipelines import expand
from .extensions import load_extensions
from .program import DEFAULT_TARGET, Model, read_program

Rules: TypeAlias = "str | os.PathLike[str] | RuleSet"
"""The path of a .rw file, or rules that are bound already."""


def explain_rule(
    rules: Rules | Sequence[Rules],
    rule: str,
    model: Model,
    *,
    load: Sequence[str | os.PathLike[str]] = (),
    after: str = "",
    target: str = DEFAULT_TARGET,
) -> Explanation:
    """Why a rule fires, or does not, at each operation of a program that its root might be.

    rule: its name, or file:name where several files have it. load: files of the user's that bring
    dialects, guards and functions. after: a pipeline that the program goes through first, such as
    "decompose"; a level's name stands for the passes that lead there, for a target.
    Raises InputError for what is wrong with any of them.
    """
    extensions = load_extensions(load)
    context = extensions.context()
    given = [rules] if isinstance(rules, str | os.PathLike | RuleSet) else rules
    sets = [
        each if isinstance(each, RuleSet) else load_rules(Path(each), context) for each in given
    ]
    module = _module(model, context)
    passes = parse_pipeline(expand(after, target, extensions.passes), extensions.passes)
    PassManager(passes).run(context, module)
    return explain(rule, sets, module)


def _module(model: Model, context: AbeleContext) -> ModuleOp:
    """A program of any level; a piece of text needs no entry function."""
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".mlir"):
        module = read_module(model, context)
        try:
            verify(module)
        except VerifyException as error:
            path, message = os.fspath(model), str(error)
            raise InputError(message if path in message else f"{path}: {message}") from None
        return module
    return read_program(model, context).module
