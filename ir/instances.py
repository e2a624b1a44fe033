"""Valid operations of any class, generated from its definition and its verifier alone.

Each class is explored once, by trial: types, attributes and numbers of operands are chosen in named
ways, and where the verifier rejects an operation leads to the next choice. Choices that worked are
kept as recipes, by the rank and element type of the operand that they began with. After that,
making an operation for a given operand takes a few tries, with new sizes and attributes each time.
A new class of operations needs no line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import cast

from xdsl.dialects.builtin import TensorType, f16, f32, i1, i32
from xdsl.ir import Attribute, Block, Operation

from .rules.build import Infers, has_infer
from .rules.choices import ELEMENTS, LISTS, Choices, Hints, Shape
from .rules.climb import Climb, Failure, without_some
from .rules.values import Plain
from .rules.vocabulary import OpInfo, Vocabulary
from .tensor_type import tensor_type
from .upstream import UNKNOWN_LOC

FIRST_TRIES = 4000
"""Operations of a class to try until one verifies."""
TRIES_OF_A_KIND = 10
"""Operations to try for each rank and element type of the first operand after that."""
RECIPES_OF_A_KIND = 4
"""Recipes to keep for each rank and element type."""
TRIES = 24
"""Operations to try when a caller wants one."""
MOST_ELEMENTS = 1024
"""Elements of a generated operand."""
RANKS = range(5)
_LIKELY_RANKS = "0122334444"
MOST_OPERANDS = 6

_FAVOUR: Mapping[Attribute, int] = {f32: 6, f16: 4, i32: 2}
"""Weights of element types; others have weight 1. Most mistakes show with floats."""

_Ways = Mapping[str, str]
_Kind = tuple[int, Attribute]
"""The rank and element type of an operand."""


def _last(choices: Choices, shape: Shape) -> Shape:
    return tuple(max(n - 1, 0) for n in shape)


def _minus(choices: Choices, shape: Shape) -> Shape:
    return (-1,) * len(shape)


def _signed(choices: Choices, shape: Shape) -> Shape:
    return tuple(choices.random.choice((-1, 0, 0, 1, 2)) for _ in shape)


def _backwards(choices: Choices) -> Sequence[bool]:
    """For each axis, whether the lists of this operation run from its end."""
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
"""Lists that only testing needs: negative values, and the last element of an axis."""

_EVERY_LIST = {**LISTS, **MORE_LISTS}
_WAYS_OF_LISTS = tuple(name for name in _EVERY_LIST if name != "asked")


@dataclass
class _Draws(Choices):
    """Choices for one operation.

    sizes: the sizes that axes may have; primes if empty.
    """

    sizes: Sequence[int] = ()
    _backwards: list[bool] = field(default_factory=list[bool])

    @property
    def backwards(self) -> Sequence[bool]:
        """For each axis, whether the lists of this operation run from its end."""
        while len(self._backwards) < 8:
            self._backwards.append(self.random.random() < 0.5)
        return self._backwards

    def fresh(self) -> int:
        """A size."""
        return self.random.choice(self.sizes) if self.sizes else super().fresh()

    def _plain(self, what: str, kind: str, shape: Shape, texts: Sequence[str]) -> Plain:
        if kind != "ints":
            return super()._plain(what, kind, shape, texts)
        ways = (self.uniform,) if self.uniform else _WAYS_OF_LISTS
        return _EVERY_LIST[self.way(what, self._known(what) or ways)](self, shape)


@dataclass
class _Found:
    """What is known about a class.

    by_kind: its recipes, by the kind of the operand that each begins with. texts: the texts that
    its verifier allows.
    """

    info: OpInfo
    by_kind: dict[_Kind, list[_Ways]] = field(default_factory=dict[_Kind, "list[_Ways]"])
    texts: tuple[str, ...] = ()

    @property
    def recipes(self) -> list[_Ways]:
        return [each for some in self.by_kind.values() for each in some]


@dataclass
class Instances:
    """Makes operations of the classes of a vocabulary.

    An operation depends on the arguments and the definition of its class alone, not on earlier
    ones: the same seed gives the same operation in every process.
    """

    vocabulary: Vocabulary
    _known: dict[type[Operation], _Found] = field(default_factory=dict[type[Operation], "_Found"])

    def takes(self, cls: type[Operation], type_: Attribute) -> bool:
        """Whether recipes of a class begin with an operand of this rank and element type."""
        kind = _kind(type_)
        return kind is not None and kind in self._found(cls).by_kind

    def make(
        self,
        cls: type[Operation],
        random: Random,
        sizes: Sequence[int],
        first: TensorType[Attribute] | None = None,
        elements: Sequence[Attribute] = (),
        accepts: Callable[[Operation], bool] = lambda _: True,
    ) -> Operation | None:
        """An operation that verifies, in no block; None if a few tries find none.

        Its operands are the arguments of a detached block, to be replaced by values of the same
        types. sizes: sizes for the axes. first: the type that one of the operands must have.
        elements: the element types that operands may have, besides i1; any if empty. accepts:
        whether to take an operation that verifies.
        """
        found = self._found(cls)
        for tried in range(TRIES):
            if first is None:
                kinds = [k for k in found.by_kind if not elements or k[1] in elements or k[1] == i1]
                if not kinds:
                    return None
                (kind,) = random.choices(kinds, [_FAVOUR.get(k[1], 1) for k in kinds])
                begin = tensor_type(kind[1], _free_shape(kind[0], sizes, random))
            else:
                kind, begin = (len(first.get_shape()), first.element_type), first
            recipes = found.by_kind.get(kind)
            if not recipes:
                return None
            ways = random.choice(recipes)
            # Choosing a part of a recipe anew finds new operations; if it fails, the recipe as it
            # is will work.
            if tried < TRIES // 2 and random.random() < 0.5:
                ways = without_some(ways, random)
            draws = _Draws(random, Hints(), dict(ways), sizes=sizes)
            op = _attempt(found.info, draws, begin, found.texts)
            if isinstance(op, Operation):
                if _is_small(op, elements) and accepts(op):
                    return op
                op.operands = []
        return None

    # Exploring a class

    def _found(self, cls: type[Operation]) -> _Found:
        found = self._known.get(cls)
        if found is None:
            found = self._known[cls] = self._explored(cls)
        return found

    def _explored(self, cls: type[Operation]) -> _Found:
        info = self.vocabulary.info(cls)
        found = _Found(info)
        if info.regions or info.segmented or not info.one_result or info.most == 0:
            return found
        random = Random(cls.name)
        if not self._first(found, random):
            return found
        for element in ELEMENTS.values():
            for rank in RANKS:
                self._of_kind(found, (rank, element), random)
        return found

    def _first(self, found: _Found, random: Random) -> bool:
        climb = Climb()
        return any(
            self._explore(found, None, climb.step(random), random, climb)
            for _ in range(FIRST_TRIES)
        )

    def _of_kind(self, found: _Found, kind: _Kind, random: Random) -> None:
        climb = Climb()
        known = found.recipes
        for tried in range(TRIES_OF_A_KIND):
            # A recipe for another rank or element type may work for this one.
            ways = random.choice(known)
            if tried % 2:
                ways = without_some(random.choice(found.by_kind.get(kind) or known), random)
            self._explore(found, kind, ways, random, climb)
            if len(found.by_kind.get(kind, ())) >= RECIPES_OF_A_KIND:
                return

    def _explore(
        self, found: _Found, kind: _Kind | None, ways: _Ways, random: Random, climb: Climb
    ) -> bool:
        """Try one operation, and learn from it. kind: of the first operand; any if None."""
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
            if draws.taken not in recipes and len(recipes) < RECIPES_OF_A_KIND:
                recipes.append(draws.taken)
            return True
        climb.failed(made, draws)
        found.texts = tuple(dict.fromkeys((*found.texts, *made.allowed)))
        return False


def _kind(type_: Attribute) -> _Kind | None:
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
    """Whether all tensors of an operation are small, and its operands have the wanted elements."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorType):
            shape = cast("TensorType[Attribute]", value.type).get_shape()
            if prod(shape) > 4 * MOST_ELEMENTS:
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
    """One try at an operation; if it does not verify, how the verifier failed.

    texts: candidates for attributes that are texts.
    """
    counts = [str(n) for n in range(1, MOST_OPERANDS + 1) if info.takes(n, False, ())]
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
    if not has_infer(info.cls) and draws.way("result", ("same", "other")) == "other":
        shape = draws.shape("shape of result", [shape])
    result = tensor_type(_element(draws, "element of result", [begin]), shape)
    properties: dict[str, Attribute] = {}
    attributes: dict[str, Attribute] = {}
    for name, known in info.attributes.items():
        if known.is_optional and name in info.companions:
            continue
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
        if has_infer(info.cls):
            op.results[0]._type = cast(Infers, op).infer()  # pyright: ignore[reportPrivateUsage]
        op.verify(verify_nested_ops=False)
    except Exception as error:
        # The verifier of a user's operation may raise anything on invalid input.
        op.operands = []
        return Failure.of(error)
    return op


def _element(draws: _Draws, what: str, known: Sequence[TensorType[Attribute]]) -> Attribute:
    """An element type. If it is that of the first tensor, the recipe says so rather than which."""
    found = draws.element(what, known)
    if found == known[0].element_type:
        draws.taken[what] = "same"
    return found
