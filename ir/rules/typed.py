"""Checks that the two sides of a rule have the same types, for all sizes.

The right side is built for several programs that the rule matches, whose sizes are different
primes. The sizes of results are polynomials in these sizes, and two polynomials that agree at
enough random points are almost certainly equal. This is identity testing and not a proof, but it
nearly always finds a rule that is wrong for some sizes only.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from ..open_types import agree
from ..support.errors import InputError
from .bound_rule import BoundRule, Made
from .samples import Sample


def counterexample(rule: BoundRule, samples: Sequence[Sample]) -> str | None:
    """The mistake that the first failing sample shows; None if every sample passes."""
    for sample in samples:
        try:
            made = rule.make(sample.match)
        except InputError as error:
            wrong = _problem(error, rule)
        except Exception as error:
            # A rule's own Python may raise any error.
            wrong = f"it raises {type(error).__name__}: {error}; add a guard that excludes this"
        else:
            wrong = None if made is None or rule.kind == "lower" else _mismatch(rule, sample, made)
        if wrong is not None:
            return f"with {sample.described()} {wrong}"
    return None


def _problem(error: InputError, rule: BoundRule) -> str:
    """The message of a builder's error, without the place where the rule was applied."""
    message = str(error).partition("; it was applied to")[0]
    return message.rpartition(f"rule {rule.name}: ")[2] + "; add a guard that excludes this"


def _mismatch(rule: BoundRule, sample: Sample, made: Made) -> str | None:
    """How the types of the new values differ from the root's results; None if they agree."""
    root = sample.root
    old: list[Attribute] = [each.type for each in root.results]
    new: list[Attribute] = [each.type for each in made.values]
    if len(new) != len(old):
        return f"the right side has {len(new)} values, {root.name} has {len(old)}"
    for i, (given, wanted) in enumerate(zip(new, old, strict=True)):
        if not agree(given, wanted):
            which = f"value {i} of the right side" if len(old) > 1 else "the right side"
            return f"{which} is {given}, {root.name} is {wanted}; {_remedy(rule, sample, made)}"
    return None


def _remedy(rule: BoundRule, sample: Sample, made: Made) -> str:
    """The guard that would exclude a value of another type, in words."""
    name = next((name for name, v in sample.match.env.items() if v in made.values), None)
    root = rule.variants[0].name
    if name is None:
        return "add a guard that excludes this"
    if root:
        return f"the guard same_type({name}, {root}) would exclude this"
    return f"write 'as r' after the left side, and the guard same_type({name}, r) excludes this"
