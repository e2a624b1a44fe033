"""Mutants with a mistake in one of a pass's rules, for the rules that fire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path

from xdsl.ir import Operation

from ....ir.rewriting import Source, Watcher, watched
from ....ir.rules import RuleSet, RulesPass, parse_rule_set
from ....ir.rules.lint import lint_rules
from ....ir.rules.parse import parse_rules
from ....ir.rules.syntax import Rule, RuleFile
from ....ir.upstream import ModulePass
from ....passes.rules.own import FOLDER
from ..search.contracts import with_methods
from .mutant import Mutant, Numbers
from .rule_classes import changed_rules
from .rule_text import file_text, rule_text

SUFFIX = ".rw"


@dataclass(frozen=True)
class RuleMutants:
    """The mutants of a pass's rules.

    Attributes:
        reached, not_reached: number of its rules that fire on a program, and that never fire.
    """

    mutants: tuple[Mutant, ...] = ()
    reached: int = 0
    not_reached: int = 0


def rule_mutants(tested: ModulePass, run: Callable[[], None]) -> RuleMutants:
    """All mutants of a pass's rules in .rw files, in the order of the files.

    Rules that do not fire on the programs of `run` have no mutants.

    Args:
        run: runs the pass on programs.
    """
    if not isinstance(tested, RulesPass):
        return RuleMutants()
    rules = tested.rule_set().chosen(tested.only, tested.skip)
    watcher = _Fired()
    with watched(watcher):
        run()
    names = dict.fromkeys(bound_rule.place.file for bound_rule in rules.bound)
    own = set(rules.names)
    numbers, found, counts = Numbers(), list[Mutant](), Counter[bool]()
    for name in names:
        if not name.endswith(SUFFIX):
            continue
        file = parse_rules(_read(name), name)
        for index, rule in enumerate(file.rules):
            if rule.name in own:
                counts[rule.name in watcher.names] += 1
            if rule.name in own and rule.name in watcher.names:
                found += _mutants_of_rule(tested, rules, file, index, numbers)
    return RuleMutants(tuple(found), counts[True], counts[False])


@dataclass
class _Fired(Watcher):
    """Records the names of the rules that fire."""

    names: set[str] = field(default_factory=set[str])

    def begin(self, source: Source, root: Operation) -> None:
        """Record that a rule fires."""
        self.names.add(source.name)


def _read(name: str) -> str:
    path = Path(name)
    if path.exists():
        return path.read_text(encoding="utf-8")
    return files("abele.passes").joinpath(FOLDER, name).read_text(encoding="utf-8")


def _mutants_of_rule(
    tested: RulesPass, rules: RuleSet, file: RuleFile, index: int, numbers: Numbers
) -> Iterator[Mutant]:
    rule = file.rules[index]
    before = _one_line(rule)
    for kind, new in changed_rules(rule, rules):
        yield Mutant(
            tested.name,
            kind,
            numbers.next(kind),
            f"{Path(file.path).name}:{rule.place.line}",
            before,
            _one_line(new),
            partial(_mutated_pass, tested, rules, file, index, new),
        )


def _one_line(rule: Rule) -> str:
    return " ".join(rule_text(rule).split())


def _mutated_pass(
    tested: RulesPass, rules: RuleSet, file: RuleFile, index: int, new: Rule
) -> ModulePass:
    """The pass with one rule replaced. Raises InputError if the rule language rejects the rule."""
    changed = replace(file, rules=(*file.rules[:index], new, *file.rules[index + 1 :]))
    mutated = parse_rule_set(file_text(changed), rules.vocabulary, file.path)
    lint_rules(mutated.chosen(only=[new.name]))
    others = tuple(bound_rule for bound_rule in rules.bound if bound_rule.place.file != file.path)
    return with_rules(tested, replace(mutated, bound=(*others, *mutated.bound)))


def with_rules(tested: RulesPass, rules: RuleSet) -> ModulePass:
    """A copy of a rules pass with other rules."""
    return with_methods(tested, {"rule_set": staticmethod(lambda: rules)})
