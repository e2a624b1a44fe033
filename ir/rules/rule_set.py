"""Sets of rules, as a pattern for the walker and as a pass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Container
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free

from ..open_types import agree
from ..pass_levels import PassLevels
from ..provenance import LocatingWalker, place
from ..rewriting import Source
from ..support.errors import InputError
from ..support.suggestions import suggestion
from ..upstream import Context, ModuleOp, ModulePass, PatternRewriter, RewritePattern
from .bind import bind_rules
from .bound_rule import BoundRule, Made, Match, ordered
from .evaluate import CallFailed
from .levels import bind_levels
from .library import one_application
from .match import match_rule, obstacles
from .parse import TEXT, parse_rules
from .vocabulary import Vocabulary


@dataclass(frozen=True)
class RuleSet:
    """Rules, and the vocabulary that they were bound with.

    Attributes:
        bound: the rules, with the operations that their names stand for.
        warnings: possible mistakes, each a message with its line and a caret.
        levels: what the file declares for the pass of the rules; None if it declares nothing.
    """

    bound: tuple[BoundRule, ...]
    vocabulary: Vocabulary = field(repr=False, compare=False)
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)
    levels: PassLevels | None = field(default=None, repr=False, compare=False)

    def __add__(self, other: RuleSet) -> RuleSet:
        warnings = (*self.warnings, *other.warnings)
        return RuleSet((*self.bound, *other.bound), self.vocabulary, warnings, self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(rule.name for rule in self.bound)

    @property
    def lowered(self) -> frozenset[type[Operation]]:
        """The operations that lower rules replace. None may be left after the pass."""
        return frozenset(cls for rule in self.bound if rule.kind == "lower" for cls in rule.roots)

    def chosen(self, only: Collection[str] = (), skip: Collection[str] = ()) -> RuleSet:
        """The rules named in only, without those in skip. Raises InputError for an unknown name."""
        for name in (*only, *skip):
            if name not in self.names:
                raise InputError(f"no rule {name}{suggestion(name, self.names)}")
        kept = [
            rule for rule in self.bound if (not only or rule.name in only) and rule.name not in skip
        ]
        return replace(self, bound=tuple(kept))

    def pattern(self) -> RulePattern:
        """The rules as one xDSL pattern."""
        return RulePattern(self)

    def apply(self, module: ModuleOp) -> bool:
        """Rewrite until no rule matches. Returns True if anything changed.

        Raises InputError for endless rules, for a result whose type differs from the root's, and
        for an operation that lower rules should have replaced.
        """
        with one_application():
            changed = LocatingWalker(self.pattern()).rewrite_module(module)
        left = self.lowered
        if left:
            for op in module.walk():
                if type(op) in left:
                    raise InputError(
                        f"{op.name} at {place(op)}: no rule lowers it: {self.why_not(op)}"
                    )
        return changed

    def why_not(self, op: Operation) -> str:
        """Why no rule replaces an operation: the rule that comes closest, and what it lacks."""
        found = [
            (obstacle.depth, f"{rule.name}: {obstacle.reason} ({obstacle.place})")
            for rule in self.bound
            if type(op) in rule.roots
            for obstacle in obstacles(rule, op, self.vocabulary)
        ]
        return max(found, default=(0, "none has it on its left side"))[1]


class RulePattern(RewritePattern):
    """The rules of a set, looked up by the class of the operation and tried by priority."""

    def __init__(self, rules: RuleSet) -> None:
        super().__init__()
        self.source = Source("rules")
        self._vocabulary = rules.vocabulary
        self._by_root: dict[type[Operation], list[BoundRule]] = {}
        for rule in ordered(rules.bound):
            for cls in rule.roots:
                self._by_root.setdefault(cls, []).append(rule)

    @property
    def roots(self) -> Container[type[Operation]]:
        """The classes of operations that a rule may match, as `ir.provenance` looks for them."""
        return self._by_root

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Apply the first rule that matches."""
        for rule in self._by_root.get(type(op), ()):
            try:
                match = match_rule(rule, op, self._vocabulary)
                made = None if match is None else rule.make(match)
            except CallFailed as failure:
                failure.error.add_note(f"in rule {rule.source}, called at {failure.place}")
                raise failure.error from None
            if match is None or made is None:
                continue
            check_made(rule, op, made)
            # An observer asks for it with the first change.
            self.source = rule.source
            _replace(op, match, made, rewriter, match_types=rule.kind != "lower")
            return


def check_made(rule: BoundRule, root: Operation, made: Made) -> None:
    """Raise InputError if what a rule built cannot replace the root's results."""
    old_values = root.results
    if len(made.values) != len(old_values):
        _refuse(rule, root, f"builds {len(made.values)} values for {len(old_values)} results")
    used = (*made.values, *(operand for op in made.ops for operand in op.operands))
    if any(value.owner is root for value in used):
        _refuse(rule, root, "uses a result of the operation that is replaced")
    if rule.kind == "lower":
        return
    for i, (new, old) in enumerate(zip(made.values, old_values, strict=True)):
        if not agree(new.type, old.type):
            which = f"result {i}" if len(old_values) > 1 else "the result"
            _refuse(
                rule,
                root,
                f"builds {new.type} for {which}, which is {old.type}; add a guard such as "
                "same_type",
            )


def _refuse(rule: BoundRule, root: Operation, problem: str) -> NoReturn:
    raise InputError(
        f"{rule.place}: rule {rule.name} {problem}; it was applied to {root.name} at {place(root)}"
    )


def _as_returned(new: SSAValue, old: SSAValue, rewriter: PatternRewriter) -> SSAValue:
    """The new value, with the type of the old one if that is returned and names other open sizes.

    A function declares what it returns, and two types that agree may name a size in two ways.
    """
    if new.type == old.type or not isinstance(new, OpResult):
        return new
    if not _is_returned(old) or _is_returned(new):
        return new
    return rewriter.replace_value_with_new_type(new, old.type)


def _is_returned(value: SSAValue) -> bool:
    return any(use.operation.has_trait(IsTerminator) for use in value.uses)


def _replace(
    op: Operation, match: Match, made: Made, rewriter: PatternRewriter, *, match_types: bool
) -> None:
    rewriter.insert(made.ops)
    values = made.values
    if match_types:
        values = [
            _as_returned(new, old, rewriter)
            for new, old in zip(made.values, op.results, strict=True)
        ]
    rewriter.replace(op, [], values)
    # Remove operations that only the root used. Other users still need theirs.
    for inner in match.matched[1:]:
        if (
            inner.parent is not None
            and inner.results
            and all(r.first_use is None for r in inner.results)
            and is_side_effect_free(inner)
        ):
            rewriter.erase(inner)


def parse_rule_set(text: str, vocabulary: Vocabulary, path: str = TEXT) -> RuleSet:
    """The rules of a text, checked. Raises InputError with the place and what to do."""
    file = parse_rules(text, path)
    bound = bind_rules(file, vocabulary)
    return RuleSet(bound, vocabulary, levels=bind_levels(file, vocabulary))


def read_rule_set(path: Path, vocabulary: Vocabulary) -> RuleSet:
    """The rules of a file. Raises InputError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}") from None
    return parse_rule_set(text, vocabulary, str(path))


@dataclass(frozen=True)
class RulesPass(ModulePass):
    """A pass that applies rules until none matches.

    Raises InputError for an option that names an unknown rule.
    """

    only: tuple[str, ...] = field(
        default=(), metadata={"doc": "rules to apply; all rules by default"}
    )
    skip: tuple[str, ...] = field(default=(), metadata={"doc": "rules to leave out"})

    @classmethod
    @abstractmethod
    def rule_set(cls) -> RuleSet:
        """The rules of the pass."""

    def __post_init__(self) -> None:
        if self.only or self.skip:
            self.rule_set().chosen(self.only, self.skip)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Apply the rules to a module."""
        self.rule_set().chosen(self.only, self.skip).apply(op)


def rules_pass(name: str, rules: RuleSet) -> type[RulesPass]:
    """A pass with the given name that applies these rules, and has their declarations."""
    chosen = name

    @dataclass(frozen=True)
    class ApplyRules(RulesPass):
        name = chosen

        @classmethod
        def rule_set(cls) -> RuleSet:
            return rules

    if rules.levels is not None:
        rules.levels.declare(ApplyRules)
    ApplyRules.__doc__ = f"Apply the rules {', '.join(rules.names)}."
    ApplyRules.__name__ = ApplyRules.__qualname__ = "".join(
        part.capitalize() for part in name.split("-")
    )
    return ApplyRules
