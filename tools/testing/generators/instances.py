"""Random valid operations of any class, generated from its definition and its verifier alone.

Each class is explored once, by trial and error; what that finds is kept for other processes. Every
choice (an operand's type, an attribute, the number of operands) has several named ways to make it.
When the verifier rejects an operation, its error decides what to choose differently next. Choices
that worked are kept as recipes, by the rank and element type of the operand with which they began.
After that, generating an operation for a given operand takes a few tries, with new sizes and
attributes each time. A new class of operations needs no code here. A class whose attributes fit
each other only if they are drawn together has a class method `sample` (see Wanted).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import cast
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import AnyFloat, TensorType, f16, f32, i1, i32
from xdsl.ir import Attribute, Block, Operation

from ....dialects.nn.wanted import Wanted
from ....ir.rules.build import has_infer, has_infer_all, with_inferred_types
from ....ir.rules.choices import ELEMENTS, LISTS, Choices, Hints, Shape
from ....ir.rules.climb import Climb, Failure, without_some
from ....ir.rules.values import Plain, attribute_of, plain
from ....ir.rules.vocabulary import Attributed, OpInfo, Vocabulary
from ....ir.tensor_type import tensor_type
from ....ir.upstream import UNKNOWN_LOC, VerifyException
from .recipes import Kind, Recipes, Ways, keep_recipes, kept_recipes

FIRST_TRIES = 4000
"""Number of tries to find the first valid operation of a class."""
FLOAT_TRIES = 600
"""Number of tries to find an operation with a float first operand, if the first operation found
has none. For example, the updates of a scatter are floats but its indices are not."""
TRIES_PER_KIND = 10
"""Number of further tries for each rank and element type of the first operand."""
RECIPES_PER_KIND = 4
"""Recipes to keep for each rank and element type."""
TRIES = 24
"""Operations to try per call of Instances.make."""
MOST_ELEMENTS = 1024
"""The largest number of elements of a generated operand."""
THIN = 12
"""A tensor with one long axis may have this many times as many elements as that axis is long."""
RANKS = range(5)
_LIKELY_RANKS = "0122334444"
MOST_OPERANDS = 6
RARE = 0.4
"""How often a rare element type replaces the explored type whose recipes it uses."""

WHOLE_LISTS = 0.3
"""How often a list becomes a literal as a whole, instead of one of its entries."""

_FAVOUR: Mapping[Attribute, int] = {f32: 6, f16: 4, i32: 2}
"""Weights of element types; all others have weight 1. Floats reveal most mistakes."""

_EXPLORED_WITH = frozenset(ELEMENTS.values())

_EXPLORED: WeakKeyDictionary[type[Operation], Recipes] = WeakKeyDictionary()
"""The results of exploring each class in this process."""


def _stands_for(element: Attribute) -> Attribute:
    """The explored element type whose recipes also serve the given element type."""
    return f16 if isinstance(element, AnyFloat) else i32


def _stand_in(kind: Kind) -> Kind:
    return kind[0], _stands_for(kind[1])


def _last(choices: Choices, shape: Shape) -> Shape:
    return tuple(max(n - 1, 0) for n in shape)


def _minus(choices: Choices, shape: Shape) -> Shape:
    return (-1,) * len(shape)


def _signed(choices: Choices, shape: Shape) -> Shape:
    return tuple(choices.random.choice((-1, 0, 0, 1, 2)) for _ in shape)


def _backwards(choices: Choices) -> Sequence[bool]:
    """For each axis, whether lists of the operation, such as strides, run backwards along it."""
    assert isinstance(choices, _Draws)
    return choices.backwards


def _ends(choices: Choices, shape: Shape) -> Shape:
    return tuple(
        n - 1 if back and n else 0 for n, back in zip(shape, _backwards(choices), strict=False)
    )


def _directions(choices: Choices, shape: Shape) -> Shape:
    return tuple(-1 if back else 1 for _, back in zip(shape, _backwards(choices), strict=False))


def _equal(choices: Choices, shape: Shape) -> Shape:
    return (choices.random.choice((1, 2)),) * len(shape)


MORE_LISTS: dict[str, Callable[[Choices, Shape], Shape]] = {
    "last": _last,
    "minus": _minus,
    "signed": _signed,
    "ends": _ends,
    "directions": _directions,
    "equal": _equal,
}
"""Further ways to choose lists of integers, such as negative values, for testing only."""

_EVERY_LIST = {**LISTS, **MORE_LISTS}
_WAYS_OF_LISTS = tuple(name for name in _EVERY_LIST if name != "asked")


@dataclass
class _Draws(Choices):
    """The choices for one operation.

    Attributes:
        sizes: candidate sizes of axes; primes if empty.
        rare: element types without recipes of their own; each replaces the type whose recipes it
            uses.
    """

    sizes: Sequence[int] = ()
    rare: Sequence[Attribute] = ()
    _backwards: list[bool] = field(default_factory=list[bool])

    @property
    def backwards(self) -> Sequence[bool]:
        """For each axis, whether lists of the operation, such as strides, run backwards."""
        while len(self._backwards) < 8:
            self._backwards.append(self.random.random() < 0.5)
        return self._backwards

    def fresh(self) -> int:
        """A random size of an axis."""
        return self.random.choice(self.sizes) if self.sizes else super().fresh()

    def element(self, what: str, known: Sequence[TensorType[Attribute]]) -> Attribute:
        """An element type; sometimes a rare type instead of the type whose recipes it uses."""
        found = super().element(what, known)
        like = [each for each in self.rare if _stands_for(each) == found]
        return self.random.choice(like) if like and self.random.random() < RARE else found

    def _plain(self, what: str, kind: str, shape: Shape, texts: Sequence[str]) -> Plain:
        if kind != "ints":
            return super()._plain(what, kind, shape, texts)
        ways = (self.uniform,) if self.uniform else _WAYS_OF_LISTS
        return _EVERY_LIST[self.way(what, self._known(what) or ways)](self, shape)


@dataclass
class _Found(Recipes):
    """The recipes of a class, and the definition of the class."""

    info: OpInfo = field(kw_only=True)


@dataclass
class Instances:
    """Generates operations of the classes in a vocabulary.

    The result of `make` depends on its arguments and on the definition of the class, not on earlier
    calls: the same seed gives the same operation in every process.
    """

    vocabulary: Vocabulary
    _known: dict[type[Operation], _Found] = field(default_factory=dict[type[Operation], "_Found"])

    def takes(self, cls: type[Operation], type_: Attribute) -> bool:
        """Whether a class has recipes that begin with an operand of this rank and element type."""
        kind = _kind(type_)
        if _samples(cls) is not None:
            return kind is not None and kind[0] in RANKS and self.vocabulary.info(cls).most != 0
        known = self._found(cls).by_kind
        return kind is not None and (kind in known or _stand_in(kind) in known)

    def make(
        self,
        cls: type[Operation],
        random: Random,
        sizes: Sequence[int],
        first: TensorType[Attribute] | None = None,
        elements: Sequence[Attribute] = (),
        accepts: Callable[[Operation], bool] = lambda _: True,
    ) -> Operation | None:
        """A random operation that verifies and is in no block; None if TRIES tries find none.

        Its operands are arguments of a detached block; replace them by values of the same types.

        Args:
            sizes: candidate sizes of axes.
            first: the type of one of the operands.
            elements: the element types that operands may have, besides i1; any if empty.
            accepts: whether the caller can use an operation that verifies.
        """
        sample = _samples(cls)
        if sample is not None:
            return _sampled(sample, Wanted(random, sizes, first, elements), accepts)
        found = self._found(cls)
        rare = tuple(each for each in elements if each not in _EXPLORED_WITH)
        for tried in range(TRIES):
            if first is None:
                kinds = [k for k in found.by_kind if not elements or k[1] in elements or k[1] == i1]
                like = ((rank, each) for rank in RANKS for each in rare)
                kinds += [kind for kind in like if _stand_in(kind) in found.by_kind]
                if not kinds:
                    return None
                (kind,) = random.choices(kinds, [_FAVOUR.get(k[1], 1) for k in kinds])
                begin = tensor_type(kind[1], _free_shape(kind[0], sizes, random))
            else:
                kind, begin = (len(first.get_shape()), first.element_type), first
            recipes = found.by_kind.get(kind) or found.by_kind.get(_stand_in(kind))
            if not recipes:
                return None
            ways = random.choice(recipes)
            # Changing some choices of a recipe finds new operations. Half of the tries use the
            # recipe unchanged, in case no change works.
            if tried < TRIES // 2 and random.random() < 0.5:
                ways = without_some(ways, random)
            draws = _Draws(random, Hints(), dict(ways), sizes=sizes, rare=rare)
            op = _attempt(found.info, draws, begin, found.texts)
            if isinstance(op, Operation):
                if _is_small(op, elements) and accepts(op):
                    return op
                op.operands = []
        return None

    def with_literal(
        self,
        op: Operation,
        random: Random,
        literals: Hints,
        elements: Sequence[Attribute] = (),
        accepts: Callable[[Operation], bool] = lambda _: True,
    ) -> Operation:
        """An operation returned by `make`, with one attribute replaced by a literal.

        Returns the operation unchanged if no literal fits.

        Args:
            elements, accepts: as for `make`.
        """
        known = [
            each
            for each in self.vocabulary.info(type(op)).attributes.values()
            if each.kind in _NUMBERS
        ]
        for _ in range(TRIES if known else 0):
            new = op.clone()
            # The verifier of a user's operation may raise anything on invalid input.
            with suppress(Exception):
                if _has_literal(new, random.choice(known), known, literals, random):
                    new = with_inferred_types(new)
                    new.verify(verify_nested_ops=False)
                    if _is_small(new, elements) and accepts(new):
                        op.operands = []
                        return new
            new.operands = []
        return op

    # Exploring a class

    def _found(self, cls: type[Operation]) -> _Found:
        found = self._known.get(cls)
        if found is None:
            info = self.vocabulary.info(cls)
            known = _EXPLORED.get(cls) or kept_recipes(cls)
            if known is None:
                known = self._explored(info)
                keep_recipes(cls, known)
            _EXPLORED[cls] = known
            found = self._known[cls] = _Found(known.by_kind, known.texts, info=info)
        return found

    def _explored(self, info: OpInfo) -> Recipes:
        found, cls = _Found(info=info), info.cls
        gives = info.one_result or has_infer_all(cls)
        if info.regions or info.segmented or not gives or info.most == 0:
            return Recipes(found.by_kind, found.texts)
        random = Random(cls.name)
        if not self._first(found, random):
            return Recipes(found.by_kind, found.texts)
        for element in ELEMENTS.values():
            for rank in RANKS:
                self._of_kind(found, (rank, element), random)
        if not any(isinstance(element, AnyFloat) for _, element in found.by_kind):
            self._floats(found, random)
        return Recipes(found.by_kind, found.texts)

    def _first(self, found: _Found, random: Random) -> bool:
        climb = Climb()
        return any(
            self._explore(found, None, climb.step(random), random, climb)
            for _ in range(FIRST_TRIES)
        )

    def _floats(self, found: _Found, random: Random) -> None:
        """Look for recipes with a float first operand, for a class with none so far."""
        climb = Climb()
        for _ in range(FLOAT_TRIES):
            kind = int(random.choice(_LIKELY_RANKS)), f16
            if self._explore(found, kind, climb.step(random), random, climb):
                for rank in RANKS:
                    self._of_kind(found, (rank, f16), random)
                return

    def _of_kind(self, found: _Found, kind: Kind, random: Random) -> None:
        climb = Climb()
        known = found.all
        for tried in range(TRIES_PER_KIND):
            # A recipe for another rank or element type may work for this one.
            ways = random.choice(known)
            if tried % 2:
                ways = without_some(random.choice(found.by_kind.get(kind) or known), random)
            self._explore(found, kind, ways, random, climb)
            if len(found.by_kind.get(kind, ())) >= RECIPES_PER_KIND:
                return

    def _explore(
        self, found: _Found, kind: Kind | None, ways: Ways, random: Random, climb: Climb
    ) -> bool:
        """Try one operation and learn from the outcome. Returns whether it verified.

        Args:
            kind: the rank and element type of the first operand to be chosen; random if None.
        """
        uniform = random.choice(_WAYS_OF_LISTS) if random.random() < 0.5 else ""
        draws = _Draws(random, Hints(), dict(ways), uniform=uniform)
        if kind is None:
            kind = int(draws.way("rank", _LIKELY_RANKS)), draws.element("first", ())
        rank, element = kind
        begin = tensor_type(element, [draws.fresh() for _ in range(rank)])
        made = _attempt(found.info, draws, begin, found.texts)
        if isinstance(made, Operation):
            made.operands = []
            recipes = found.by_kind.setdefault(kind, [])
            if draws.taken not in recipes and len(recipes) < RECIPES_PER_KIND:
                recipes.append(draws.taken)
            return True
        climb.failed(made, draws)
        found.texts = tuple(dict.fromkeys((*found.texts, *made.allowed)))
        return False


_NUMBERS = ("int", "float", "ints")
"""The kinds of attributes that can be or contain a literal."""


def _has_literal(
    op: Operation,
    changed: Attributed,
    known: Sequence[Attributed],
    literals: Hints,
    random: Random,
) -> bool:
    """Set an attribute to a literal, or put a literal into its list. Returns False if none fits.

    Args:
        known: all attributes of the operation that hold numbers.
    """
    if changed.kind == "ints":
        old = _list_of(op, changed)
        if literals.lists and (not old or not literals.ints or random.random() < WHOLE_LISTS):
            return _set(op, changed, random.choice(literals.lists))
        if not old or not literals.ints:
            return False
        lists = {each.name: _list_of(op, each) for each in known}
        alike = [each for each in known if len(lists[each.name]) == len(old)]
        # A literal has the greatest effect along an axis with many elements.
        most = [max(1, *(lists[each.name][i] for each in alike)) ** 2 for i in range(len(old))]
        (at,) = random.choices(range(len(old)), most)
        number = random.choice(literals.ints)
        # Lists often have one entry for each of the same axes: fewer elements fit a longer step.
        for each in alike:
            values = lists[each.name]
            entry = max(values[at], 0)
            less = -(-entry // max(abs(number), 1)), random.randint(0, entry)
            if each is not changed:
                fewer = random.choice((values[at], *(n for n in less if n > 1)))
                _ = _set(op, each, _replaced(values, at, fewer))
        return _set(op, changed, _replaced(old, at, number))
    numbers = literals.ints if changed.kind == "int" else (*literals.ints, *literals.floats)
    return bool(numbers) and _set(op, changed, random.choice(numbers))


def _list_of(op: Operation, known: Attributed) -> tuple[int, ...]:
    """The elements of an attribute that is a list of integers; () for any other attribute."""
    table = op.properties if known.is_property else op.attributes
    value = plain(table.get(known.name))
    return cast("tuple[int, ...]", value) if isinstance(value, tuple) else ()


def _replaced(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _set(op: Operation, known: Attributed, value: Plain) -> bool:
    """Set an attribute if its definition allows the value. Returns whether it was set."""
    attribute = attribute_of(value, known.definition.constr)
    if attribute is None:
        return False
    (op.properties if known.is_property else op.attributes)[known.name] = attribute
    return True


_Sample = Callable[[Wanted], Operation]


def _samples(cls: type[Operation]) -> _Sample | None:
    """The class method `sample` of a class, which draws an operation; None if it has none."""
    return getattr(cls, "sample", None)


def _sampled(
    sample: _Sample, wanted: Wanted, accepts: Callable[[Operation], bool]
) -> Operation | None:
    """An operation drawn by its class's own `sample`, for attributes that must fit each other.

    Returns None if TRIES tries find none.
    """
    for _ in range(TRIES):
        try:
            op = sample(wanted)
            op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError):
            continue
        first = wanted.first
        given = first is None or any(value.type == first for value in op.operands)
        if given and _is_small(op, wanted.elements) and accepts(op):
            return op
        op.operands = []
    return None


def _kind(type_: Attribute) -> Kind | None:
    if not isinstance(type_, TensorType):
        return None
    tensor = cast("TensorType[Attribute]", type_)
    return len(tensor.get_shape()), tensor.element_type


def _free_shape(rank: int, sizes: Sequence[int], random: Random) -> list[int]:
    shape: list[int] = []
    for _ in range(rank):
        size = random.choice(sizes)
        shape.append(size if size * prod(shape) <= MOST_ELEMENTS else 1)
    random.shuffle(shape)
    return shape


def _is_small(op: Operation, elements: Sequence[Attribute]) -> bool:
    """Whether all tensors of an operation are small and its operands have these element types."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorType):
            shape = cast("TensorType[Attribute]", value.type).get_shape()
            if prod(shape) > max(4 * MOST_ELEMENTS, THIN * max(shape, default=1)):
                return False
    asked = (*elements, i1)
    return not elements or all(
        cast("TensorType[Attribute]", v.type).element_type in asked
        for v in op.operands
        if isinstance(v.type, TensorType)
    )


def _attempt(
    info: OpInfo, draws: _Draws, begin: TensorType[Attribute], texts: Sequence[str]
) -> Operation | Failure:
    """Build and verify one operation. Returns a Failure if it does not verify.

    Args:
        begin: the type of the first operand to be chosen.
        texts: candidates for string attributes.
    """
    counts = [str(n) for n in range(1, MOST_OPERANDS + 1) if info.takes(n)]
    if not counts:
        return Failure()
    count = int(draws.way("operands", counts))
    at = int(draws.way("first", [str(n) for n in range(count)]))
    types = {at: begin}
    for i in (i for i in range(count) if i != at):
        known = list(types.values())
        shape = draws.shape(f"operand {i}", [tuple(each.get_shape()) for each in known])
        types[i] = tensor_type(_element(draws, f"element of operand {i}", known), shape)
    operands = [types[i] for i in range(count)]
    shape = tuple(operands[0].get_shape())
    infers = has_infer(info.cls) or has_infer_all(info.cls)
    if not infers and draws.way("result", ("same", "other")) == "other":
        shape = draws.shape("shape of result", [shape])
    result = tensor_type(_element(draws, "element of result", [begin]), shape)
    properties: dict[str, Attribute] = {}
    attributes: dict[str, Attribute] = {}
    for name, known in info.attributes.items():
        if known.is_optional or known.default is not None:
            if draws.way(f"{name} is there", ("no", "yes")) == "no":
                if known.default is not None:
                    properties[name] = known.default
                continue
            if not known.is_property and not known.definition.constr.get_bases():
                continue
        value = draws.attribute(
            name, known.kind, known.definition.constr, (*operands, result), texts
        )
        if value is None:
            return Failure()
        (properties if known.is_property else attributes)[name] = value
    block = Block(arg_types=operands)
    op = info.cls.create(
        operands=block.args,
        result_types=[result],
        properties=properties,
        attributes=attributes,
        location=UNKNOWN_LOC,
    )
    try:
        op = with_inferred_types(op)
        op.verify(verify_nested_ops=False)
    except Exception as error:
        # The verifier of a user's operation may raise anything on invalid input.
        op.operands = []
        return Failure.of(error)
    return op


def _element(draws: _Draws, what: str, known: Sequence[TensorType[Attribute]]) -> Attribute:
    """A random element type.

    If it equals that of the first tensor, the recipe records "same" and so works for other types.
    """
    found = draws.element(what, known)
    if found == known[0].element_type:
        draws.taken[what] = "same"
    return found
