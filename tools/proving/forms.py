"""The forms in which a rule matches: matches that differ in more than their sizes.

The forms that are found are the grid of a proof: operators of the rule's classes, element types,
ranks, attributes, and which axes have one element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import process_time
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ...ir.element_types import ELEMENTS
from ...ir.rules.bound_rule import BoundNested, BoundPattern, BoundRule
from ...ir.rules.samples import Sample, Sampler
from ...ir.rules.vocabulary import Vocabulary
from .bodies import Undecided
from .families import LEAST
from .indices import Poly
from .instances import Instance, instance_of
from .steps import Steps

SIZES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
"""Different primes, so that no two sizes agree by chance, and none is taken for an axis or step."""
FEW_SIZES = ((2,), (1, 2), (1, 2, 3), (3,))
"""Sizes for rules that match nothing where all sizes differ."""
SAMPLES = 48
"""The most samples of a rule as it is written, and of those that have one operator of a class."""
OF_A_CLASS = 4
ROUNDS = 4
"""How often samples are drawn anew, from other seeds."""
MOST_ELEMENTS = 40_000
"""Matches of constants with more elements are left out."""


def forms_of(
    rule: BoundRule, vocabulary: Vocabulary, seconds: float, seed: int = 0
) -> list[Instance]:
    """One match of each form, as many as are found in some seconds of processor time.

    Raises Undecided if an operator of the rule has no meaning.
    """
    end = process_time() + seconds
    found: dict[object, Instance] = {}
    for made in _instances(rule, vocabulary, seed, end):
        found.setdefault(_key(made), made)
        if process_time() > end:
            break
    if not found:
        for made in small_matches(rule, vocabulary, ROUNDS, end + seconds):
            found.setdefault(_key(made), made)
    listed = sorted(found.values(), key=lambda each: -_rank(each))
    # The other element types, for one match of each list of operators.
    for made in {_operators(each): each for each in listed}.values():
        for other in _retyped(made):
            if process_time() > end:
                return list(found.values())
            found.setdefault(_key(other), other)
    return list(found.values())


def unbuilt_of(rule: BoundRule, vocabulary: Vocabulary, seconds: float) -> list[Instance]:
    """Matches of small sizes whose right side cannot be built; none if one can be.

    They are looked for where a rule has no form.
    """
    end = process_time() + seconds
    found: list[Instance] = []
    for sample in _small_samples(rule, vocabulary, ROUNDS, end):
        made = instance_of(rule, sample.root, vocabulary, built=False)
        if made is not None:
            found.append(made)
    return found


def small_matches(
    rule: BoundRule, vocabulary: Vocabulary, rounds: int, end: float
) -> Iterator[Instance]:
    """Matches whose sizes are few and small, so that several agree, as those of a form never do.

    Args:
        rounds: how often they are drawn anew.
        end: when to stop, in seconds of processor time.
    """
    for sample in _small_samples(rule, vocabulary, rounds, end):
        made = instance_of(rule, sample.root, vocabulary)
        if made is not None:
            yield made


def _small_samples(
    rule: BoundRule, vocabulary: Vocabulary, rounds: int, end: float
) -> Iterator[Sample]:
    for seed in range(rounds):
        for sizes in FEW_SIZES:
            if process_time() > end:
                return
            yield from Sampler(vocabulary, seed, sizes).samples(rule, SAMPLES // ROUNDS)


def _instances(
    rule: BoundRule, vocabulary: Vocabulary, seed: int, end: float
) -> Iterator[Instance]:
    for round_ in range(ROUNDS):
        if process_time() > end:
            return
        sampler = Sampler(vocabulary, seed + round_, SIZES)
        for sample in sampler.samples(rule, SAMPLES // ROUNDS):
            made = instance_of(rule, sample.root, vocabulary)
            if made is not None and _is_small(sample.root):
                yield made
        if round_ == 0:
            # Each operator of a class at least once, however seldom the samples have it.
            for pattern in _of_one_operator(rule.variants[0]):
                left = OF_A_CLASS
                for root in sampler.programs(rule.name, (pattern,), rule.guards, tries=400):
                    made = instance_of(rule, root, vocabulary)
                    if made is not None and _is_small(root):
                        yield made
                        left -= 1
                    if not left:
                        break


def _is_small(root: Operation) -> bool:
    block = root.parent_block()
    values = [] if block is None else [each for op in block.ops for each in op.results]
    sizes = [
        _elements(each.type)
        for each in values
        if each.owner is not root and not each.owner.operands
    ]
    return max(sizes, default=0) <= MOST_ELEMENTS


def _elements(type_: Attribute) -> int:
    return type_.element_count() if isinstance(type_, TensorType) else 1


def _of_one_operator(pattern: BoundPattern) -> Iterator[BoundPattern]:
    """The pattern with each class of operations replaced by each of its operations."""
    if len(pattern.classes) > 1:
        for cls in sorted(pattern.classes, key=lambda each: each.name):
            yield replace(pattern, classes=frozenset((cls,)))
    for i, each in enumerate(pattern.operands):
        if isinstance(each, BoundNested):
            for inner in _of_one_operator(each.pattern):
                operands = list(pattern.operands)
                operands[i] = replace(each, pattern=inner)
                yield replace(pattern, operands=tuple(operands))


def _retyped(instance: Instance) -> Iterator[Instance]:
    values = [each for op in instance.match.matched for each in (*op.operands, *op.results)]
    used = {element for each in values if (element := _element(each.type)) is not None}
    for old in sorted(used, key=str):
        for new in ELEMENTS:
            if new not in used:
                made = instance.resized({}, {old: new})
                if made is not None:
                    yield made


def _element(type_: Attribute) -> Attribute | None:
    """The element type of a tensor; None for other types."""
    return (
        cast("TensorType[Attribute]", type_).element_type if isinstance(type_, TensorType) else None
    )


def _key(instance: Instance) -> object:
    """What two matches of one form have in common."""
    try:
        steps = instance.steps()
    except Undecided:
        return str([str(op) for op in instance.match.matched])
    return steps.mapped(_without_size)


def _without_size(number: Poly) -> Poly:
    constant = number.constant
    return number if constant is not None and constant < LEAST else Poly.of(LEAST)


def _operators(instance: Instance) -> tuple[str, ...]:
    return tuple(op.name for op in instance.match.matched)


def _rank(instance: Instance) -> int:
    types = [each.type for each in instance.names]
    return max((len(t.get_shape()) for t in types if isinstance(t, TensorType)), default=0)


def ranks_of(steps: Steps) -> frozenset[int]:
    """The ranks of the results of a form."""
    return frozenset(len(steps.steps[number].shape) for number in steps.left)
