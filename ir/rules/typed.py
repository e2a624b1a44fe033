"""Whether what a rule makes can take the place of what it finds, for all dimensions.

The right side is built for several programs that the rule fits, whose sizes are different primes.
Types of results are polynomials in the sizes, and two polynomials that agree at enough random
points are one: this is identity testing, no proof, but a rule that is wrong for some sizes only is
as good as always found.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from ..errors import InputError
from .law import Law, Made
from .samples import Sample


def counterexample(law: Law, samples: Sequence[Sample]) -> str | None:
    """What is wrong with a rule, by the first sample that shows it; None if all are as they should.

    A lower may change types; that it can be built is all that is asked of it.
    """
    for sample in samples:
        try:
            made = law.make(sample.match)
        except InputError as error:
            wrong = _problem(error, law)
        except Exception as error:
            # A rule's own Python may fail in any way.
            wrong = f"it raises {type(error).__name__}: {error}; a guard must keep it off"
        else:
            wrong = None if made is None or law.kind == "lower" else _mismatch(law, sample, made)
        if wrong is not None:
            return f"with {sample.described()} {wrong}"
    return None


def _problem(error: InputError, law: Law) -> str:
    """What a builder has to say, without where the rule was being applied."""
    message = str(error).partition("; it was applied to")[0]
    return message.rpartition(f"rule {law.name}: ")[2] + "; a guard must keep it off"


def _mismatch(law: Law, sample: Sample, made: Made) -> str | None:
    """How the new values differ from the root's results; None if they have the same types."""
    root = sample.root
    old: list[Attribute] = [each.type for each in root.results]
    new: list[Attribute] = [each.type for each in made.values]
    if len(new) != len(old):
        return f"the right side has {len(new)} values, {root.name} has {len(old)}"
    for i, (given, wanted) in enumerate(zip(new, old, strict=True)):
        if given != wanted:
            which = f"value {i} of the right side" if len(old) > 1 else "the right side"
            return f"{which} is {given}, {root.name} is {wanted}; {_remedy(law, sample, made)}"
    return None


def _remedy(law: Law, sample: Sample, made: Made) -> str:
    """The guard that keeps a value of another type off."""
    name = next((name for name, v in sample.match.env.items() if v in made.values), None)
    root = law.variants[0].name
    if name is None:
        return "a guard must keep it off"
    if root:
        return f"the guard same_type({name}, {root}) would keep it off"
    return f"write 'as r' behind the left side, and the guard same_type({name}, r) keeps it off"
