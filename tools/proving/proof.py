"""Proves a rule, or finds out what stands in the way.

Each form of the rule's matches (forms.py) is proved for all sizes if possible: from spaces as
formulas of the sizes (families.py), elements at any index (elements.py) and the laws of sums
(sums.py). A form for which that fails is proved at its own sizes, where all elements are written as
terms (unrolled.py). What may be wrong is run, and refutes the rule if the results differ
(refuting.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random
from time import process_time

from ...dialects.scalar_functions import FUNCTIONS as FUNCTIONS_OF_SCALARS
from ...dialects.slopes import ZERO
from ...dialects.slopes import Term as Expression
from ...ir.rules import RuleSet
from ...ir.rules.bound_rule import BoundRule
from ...ir.rules.library import FUNCTIONS
from .bodies import Undecided, applied, constant
from .comparing import Comparison
from .deciding import decided, differing
from .elements import Elements
from .facts import Facts
from .families import Family, family_of
from .forms import SIZES, forms_of, small_matches, unbuilt_of
from .instances import Instance, promises
from .lifting import carries_all_axes
from .outcomes import Outcome, worst
from .reach import beyond, has_programs
from .refuting import Refuted, refuted, tested
from .steps import Steps, shape_and_dtype
from .terms import Term, Var, replaced, variables
from .unrolled import Unrolled
from .verdicts import Grid, Kind, Proved, Verdict

SECONDS = 10.0
"""The processor time for one rule, if none is given."""
SEARCHING, COMPUTING, LISTED, TESTING = 0.25, 0.4, 0.8, 0.15
"""The share of the time after which no further form is looked for; after which none is computed at
points; after which none is proved; and the share for tests of a rule that is not proved."""
PAIRS_COMPUTED = 4
"""About the most pairs of elements of one form that are computed at points before the proof."""
NUMBERS = (-2.5, -1.0, -0.4, 0.0, 0.1, 0.3, 0.6, 0.7, 0.9, 1.0, 1.5, 2.0, 2.2, 3.0, 7.5, 200.0, 1e6)
"""Numbers of attributes that forms are computed with, beside those that were drawn."""
ROUNDS_COMPUTED = 2
"""How often matches of a few small sizes are drawn for this."""
VARIED = 16
"""How often the numbers of the attributes of one form are replaced."""
SMALL = (2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 4, 5)
"""The sizes for proofs at listed shapes, in the place of forms.SIZES."""
MOST_PAIRS = 400
"""The most pairs of elements that are compared in one form."""


def prove_rule(rule: BoundRule, rules: RuleSet, seconds: float = SECONDS) -> Verdict:
    """The verdict on a rule, within some seconds of processor time.

    Args:
        rules: the set that the rule belongs to.
    """
    begin = process_time()
    made = _Proof(rule, rules, begin, seconds).verdict()
    return replace(made, seconds=process_time() - begin)


@dataclass
class _Proof:
    rule: BoundRule
    rules: RuleSet
    begin: float
    seconds: float
    _families: dict[Steps, Family] = field(default_factory=dict[Steps, "Family"])
    _tries_of_specials: int = 3
    _answers: dict[tuple[Term, ...], Outcome] = field(
        default_factory=dict["tuple[Term, ...]", Outcome]
    )

    def __post_init__(self) -> None:
        self.end = self.begin + self.seconds
        self.promised = promises(self.rule)

    def verdict(self) -> Verdict:
        other = beyond(self.rule, self.rules.vocabulary)
        if other:
            reason = f"{other} is no operation of nn"
            if not has_programs(self.rule):
                return Verdict(self.rule.name, "not of nn", reason=reason)
            return self._not_decided(reason, "not of nn")
        forms = forms_of(self.rule, self.rules.vocabulary, self.seconds * SEARCHING)
        if not forms:
            return self._without_forms()
        unsaid = self._unsaid()
        ordered, needed = _ordered(forms)
        wrong = self._computed(ordered)
        if wrong is not None:
            return wrong
        found: list[tuple[Instance, Proved]] = []
        for form in ordered:
            if process_time() > self.begin + LISTED * self.seconds:
                if len(found) < needed:
                    return self._not_decided(f"{len(found)} of {len(forms)} forms are proved")
                break
            proved = self._form(form, unsaid)
            wrong = self._wrong(form, proved.outcome)
            if wrong is not None:
                return wrong
            if not proved.outcome.proved:
                return self._not_decided(proved.outcome.reason or _apart(proved.outcome))
            found.append((form, proved))
        return self._proved(found, len(forms))

    def _without_forms(self) -> Verdict:
        """The verdict on a rule of which no match can be computed."""
        unbuilt = unbuilt_of(self.rule, self.rules.vocabulary, self.seconds * SEARCHING)
        for match in unbuilt[:1]:
            wrong = self._run(match, Outcome())
            if wrong is not None:
                return wrong
        what = "nn can compute" if unbuilt else "the rule matches"
        return self._not_decided(f"no program was found that {what}")

    def _computed(self, forms: Sequence[Instance]) -> Verdict | None:
        """The verdict if a form differs at some points. This takes less time than a proof."""
        end = self.begin + COMPUTING * self.seconds
        few = small_matches(self.rule, self.rules.vocabulary, ROUNDS_COMPUTED, end)
        for small in chain(few, map(_small, forms), _varied(forms)):
            if process_time() > end:
                break
            try:
                pairs = _pairs(small, Unrolled(small.names))
            except Undecided:
                continue
            for one, other in pairs[:: max(1, len(pairs) // PAIRS_COMPUTED)]:
                found = differing(one, other, self._assumed(one, other))
                if found is not None and (found.verdict == "different" or self._tries_of_specials):
                    self._tries_of_specials -= found.verdict != "different"
                    wrong = self._run(small, found)
                    if wrong is not None:
                        return wrong
        return None

    def _proved(self, found: Sequence[tuple[Instance, Proved]], all_forms: int) -> Verdict:
        kind: Kind = "listed shapes"
        why = next((proved.why_not for _, proved in found if proved.why_not), "")
        grid = _grid(found, all_forms)
        if all(proved.sizes for _, proved in found):
            kind = "all sizes"
            if all(proved.carried for _, proved in found) and len(grid.ranks) > 1:
                kind = "all ranks"
        equality = worst(proved.outcome for _, proved in found).text
        return Verdict(self.rule.name, kind, equality, why, grid)

    def _not_decided(self, reason: str, kind: Kind = "not decided") -> Verdict:
        left = max(self.end - process_time(), TESTING * self.seconds)
        count, wrong = tested(self.rule, self.rules, left)
        if wrong is not None:
            return self._of(wrong)
        return Verdict(self.rule.name, kind, reason=reason, tested=count)

    def _wrong(self, form: Instance, outcome: Outcome) -> Verdict | None:
        """The verdict if values for which two elements differ refute the rule when they are run."""
        if outcome.verdict != "different" and not (
            outcome.special == "differ" and self._tries_of_specials > 0
        ):
            return None
        small = _small(form)
        if outcome.verdict != "different":
            # The elements of a proof for all sizes have no place in a program.
            self._tries_of_specials -= 1
            try:
                outcome = self._at_its_sizes(small)
            except Undecided:
                return None
        return self._run(small, outcome)

    def _run(self, small: Instance, outcome: Outcome) -> Verdict | None:
        """The verdict if a program with the values of an outcome shows that the rule is wrong."""
        models = [each for each in (outcome.model, outcome.special_model) if each]
        # Where the shapes of both sides differ, any values show it.
        for model in models or [{}]:
            found = refuted(self.rules, small, model)
            if found is not None:
                return self._of(found)
        return None

    def _of(self, wrong: Refuted) -> Verdict:
        return Verdict(self.rule.name, "refuted", reason=wrong.reason, example=wrong.text)

    def _unsaid(self) -> str:
        """Why the rule cannot be proved for all sizes, as far as its text shows; "" if it can."""
        if "=>" not in self.rule.text:
            return "its right side is written in Python"
        called = dict.fromkeys(re.findall(r"\b(\w+)\(", self.rule.text))
        for name in called:
            if name in FUNCTIONS and FUNCTIONS[name].meaning is None:
                kind = "guard" if FUNCTIONS[name].is_guard else "function"
                return f"nobody has said what the {kind} {name} means"
        return ""

    # One form

    def _form(self, form: Instance, unsaid: str) -> Proved:
        """What is found for a form."""
        why = unsaid
        if not why:
            try:
                made = self._for_all_sizes(form)
                if made.outcome.proved:
                    return made
                why = made.outcome.reason or "results may differ at other sizes"
            except Undecided as reason:
                why = str(reason)
        try:
            return Proved(self._at_its_sizes(_small(form)), why_not=why)
        except Undecided as reason:
            return Proved(Outcome("undecided", reason=str(reason)), why_not=why)

    def _for_all_sizes(self, form: Instance) -> Proved:
        """The outcome for all sizes. Raises Undecided."""
        family = self._family(form)
        steps = family.steps
        facts = Facts(dict(family.lows), {})
        elements = Elements(steps, facts)
        comparison = Comparison(facts, self._decided, self.end)
        outcomes: list[Outcome] = []
        for left, right in zip(steps.left, steps.right, strict=True):
            if steps.steps[left].shape != steps.steps[right].shape:
                raise Undecided("the shapes of both sides are different formulas")
            index = tuple(elements.fresh(size) for size in steps.steps[left].shape)
            outcomes.append(comparison.outcome(elements.of(left, index), elements.of(right, index)))
        found = worst(outcomes)
        found = found.rounded() if elements.rounds else found
        least = max(family.lows.values(), default=1)
        return Proved(found, True, carries_all_axes(steps), least, family.checked)

    def _family(self, form: Instance) -> Family:
        """The family of a form. Forms that differ in element types only share their formulas."""
        steps = form.steps()
        key = _without_types(steps)
        if key not in self._families:
            self._families[key] = family_of(form)
        known = self._families[key]
        return replace(known, steps=steps.with_numbers(known.steps.numbers()))

    def _at_its_sizes(self, form: Instance) -> Outcome:
        """The outcome at small sizes. Raises Undecided."""
        outcomes: list[Outcome] = []
        elements = Unrolled(form.names)
        if any(a.type != b.type for a, b in zip(form.left, form.right, strict=True)):
            return Outcome("different", reason="the types of both sides differ")
        for pair in _pairs(form, elements):
            found = self._decided(*pair)
            outcomes.append(found)
            if not found.proved:
                return found
        found = worst(outcomes)
        return found.rounded() if elements.rounds else found

    # Scalars

    def _decided(self, left: Term, right: Term) -> Outcome:
        """How equal two terms are, with what the guards promise. Equal questions are asked once."""
        if left == right:
            return Outcome()
        terms = (left, right, *self._assumed(left, right))
        names = dict.fromkeys(var for term in terms for var in variables(term))
        short = {var: Var(f"v{i}", var.dtype) for i, var in enumerate(names)}
        asked = tuple(replaced(term, short) for term in terms)
        if asked not in self._answers:
            one, other, *assumed = asked
            self._answers[asked] = decided(one, other, assumed, self.end - process_time())
        back = {var.name: old.name for old, var in short.items()}
        found = self._answers[asked]
        return replace(
            found,
            model={back.get(name, name): value for name, value in found.model.items()},
            special_model={back.get(name, name): v for name, v in found.special_model.items()},
        )

    def _assumed(self, *terms: Term) -> list[Term]:
        """What the guards promise of the variables of some terms."""
        names = dict.fromkeys(var for term in terms for var in variables(term))
        return [
            _promised(promise, var)
            for var in names
            for leaf, promise in self.promised
            if var.name.partition("[")[0] == leaf
        ]


def _apart(outcome: Outcome) -> str:
    """That results differ by no more than rounding may move them, and where."""
    values = ", ".join(f"{name} = {value:.17g}" for name, value in outcome.model.items())
    return f"results may differ{f', as where {values}' if values else ''}"


def _promised(expression: Expression, element: Term) -> Term:
    """A promise about an element, as a truth value."""
    if expression.name == ZERO.name:
        return constant(0, element.dtype)
    if expression.is_value:
        return element
    args = [_promised(each, element) for each in expression.operands]
    boolean = FUNCTIONS_OF_SCALARS[expression.name].boolean
    dtype = "i1" if boolean else element.dtype
    return applied(expression.name, args, dtype, expression.parameters)


def _varied(forms: Sequence[Instance]) -> Iterator[Instance]:
    """Forms at small sizes, with other numbers in their attributes."""
    smaller = [_small(form) for form in forms if form.has_numbers()]
    random = Random(0)
    for _ in range(VARIED):
        for form in smaller:
            made = form.resized({}, number=lambda: random.choice(NUMBERS))
            if made is not None:
                yield made


def _pairs(form: Instance, elements: Unrolled) -> list[tuple[Term, Term]]:
    """The elements of both sides that have to be equal, each pair once. Raises Undecided."""
    found: dict[tuple[Term, Term], None] = {}
    for left, right in zip(form.left, form.right, strict=True):
        one, other = elements.of(left), elements.of(right)
        if one.shape != other.shape:
            raise Undecided("the shapes of both sides differ")
        pairs = dict.fromkeys(zip(one.reshape(-1), other.reshape(-1), strict=True))
        if len(pairs) > MOST_PAIRS:
            raise Undecided(f"{len(pairs)} pairs of elements; at most {MOST_PAIRS} are compared")
        found |= pairs
    return list(found)


def _small(form: Instance) -> Instance:
    """A form at small sizes."""
    return form.resized(dict(zip(SIZES, SMALL, strict=True))) or form


def _without_types(steps: Steps) -> Steps:
    return replace(steps, steps=tuple(replace(each, dtype="", value=0.0) for each in steps.steps))


def _ordered(forms: Sequence[Instance]) -> tuple[list[Instance], int]:
    """Forms with each list of operators first, then with each element type, then all others.

    Also the number of those that come first.
    """
    first: dict[object, Instance] = {}
    for form in forms:
        first.setdefault(tuple(op.name for op in form.match.matched), form)
    for form in forms:
        first.setdefault(str([shape_and_dtype(each)[1] for each in form.left]), form)
    chosen = list({id(each): each for each in first.values()}.values())
    others = [each for each in forms if all(each is not other for other in chosen)]
    return [*chosen, *others], len(chosen)


def _grid(found: Sequence[tuple[Instance, Proved]], all_forms: int) -> Grid:
    forms = [form for form, _ in found]
    results = [shape_and_dtype(value) for form in forms for value in form.left]
    return Grid(
        len(forms),
        tuple(sorted({op.name for form in forms for op in form.match.matched})),
        tuple(sorted({dtype for _, dtype in results})),
        tuple(sorted({len(shape) for shape, _ in results})),
        max(proved.least for _, proved in found),
        sum(proved.checked for _, proved in found),
        all_forms - len(forms),
    )
