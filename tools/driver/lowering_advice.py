"""Advice on an operation that nothing has lowered: the user's rule that could."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Operation

from ...backends.reference import Meaningless
from ...dialects.levels import NN
from ...ir.provenance import place
from ...ir.rules.match import match_rule
from ...ir.rules.rule_set import RuleSet, RulesPass
from ...ir.support.errors import InputError
from ...ir.upstream import ModulePass
from ...passes.pipelines import PASSES
from .extensions.loaded import Extensions


@contextmanager
def advising_on_lowering(passes: Sequence[ModulePass], extensions: Extensions) -> Generator[None]:
    """Say in a Meaningless error which rule of the user's could lower the operation, and why not.

    Raises InputError instead of Meaningless if a loaded pass has a rule for the operation.

    Args:
        passes: the pipeline that runs in the block.
    """
    try:
        yield
    except Meaningless as error:
        advice = _advice(error.op, {each.name for each in passes}, extensions)
        if advice is None:
            raise
        told = InputError(f"{error.op.name} at {place(error.op)}: cannot be lowered: {advice}")
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        raise told from error


def _advice(op: Operation, names: set[str], extensions: Extensions) -> str | None:
    """What to change so that a rule lowers an operation; None if no rule is for it.

    Args:
        names: the passes of the pipeline.
    """
    for name, rules in _rules_for(op, extensions):
        if name not in names:
            return (
                f"the pipeline lacks {name}, which has a rule for it; need "
                f"-p {name},{extensions.shorthand_from(NN)}"
            )
        bound = [rule for rule in rules.bound if type(op) in rule.roots]
        if any(match_rule(rule, op, rules.vocabulary) is not None for rule in bound):
            return f"{name} comes too late; put it before partition"
        return f"no rule of {name} matches: {rules.why_not(op)}"
    return None


def _rules_for(op: Operation, extensions: Extensions) -> Generator[tuple[str, RuleSet]]:
    """The users' passes that have a rule for an operation, by name, with their rules."""
    for name, entry in extensions.passes.items():
        if name not in PASSES and isinstance(entry, type) and issubclass(entry, RulesPass):
            rules = entry.rule_set()
            if any(type(op) in rule.roots for rule in rules.bound):
                yield name, rules
