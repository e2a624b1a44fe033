"""Builds programs that a rule matches, from real operations with legal types and attributes.

Nothing here knows an operator. Leaves get types, and attributes get values that their definitions
allow. The operations' own verifiers and type inference decide which of them make sense. The sizes
of a sample are different primes, so what holds for several samples almost certainly holds for all
sizes. This is polynomial identity testing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, cast

from xdsl.dialects.builtin import TensorType, f32, i1, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from ..tensor_type import tensor_type
from ..upstream import UNKNOWN_LOC, VerifyException
from .bound_rule import BoundNested, BoundPattern, BoundRule, Match
from .build import with_inferred_types
from .choices import Choices, Hints
from .climb import Climb, Failure, without_some
from .evaluate import CallFailed
from .match import match_rule
from .matcher import Matcher
from .orders import Orders
from .syntax import Expression, Name, Place, Rest, Shaped, Size, TypeName, TypePattern, Variable
from .values import attribute_of, element_type, plain, tensor_parts
from .vocabulary import OpInfo, Vocabulary

ANY = "_"
NUMBERED = re.compile(r"_+\d*")
"""Names of rules that are no names in the text of a program, where a number follows a name."""
TRIES = 3000
"""The most operations that are tried for one rule. Each takes about 40 us."""
TRIES_OF_ONE = 200
"""The most that are tried on the same operands, before other operands are made."""
STUCK = 16
"""The most of these in a row that fail in no new way. The given operands may suit no choice."""
ENOUGH = 8
"""The number of samples that is enough once half of the tries are used."""
EASY = 12
"""The number of failures after which earlier successes are imitated."""
RECIPES = 24
"""The number of ways to make an operation that are remembered per class."""
VARIED = 0.25
"""How often a recipe is varied, so that not every operation has the elements of the first one."""
SIDEWAYS = 0.5
"""How often to continue from an attempt that is no closer, since its operands may not suit."""


@dataclass(frozen=True)
class Sample:
    """A program that a rule matches.

    Attributes:
        block: its arguments are the leaves, and its last operation is the root.
        match: the match.
    """

    block: Block
    root: Operation
    match: Match

    def described(self) -> str:
        """The types of the rule's names, such as "x: tensor<7x11xf32>, ..."."""
        shown: list[str] = []
        for name, value in self.match.env.items():
            if isinstance(value, SSAValue):
                shown.append(f"{name}: {value.type}")
            elif isinstance(value, Operation) and value.results:
                shown.append(f"{name}: {value.results[0].type}")
            elif isinstance(value, bool | int | float | str):
                shown.append(f"{name} = {value}")
            elif isinstance(value, tuple):
                shown.append(f"{name} = {_listed(cast('tuple[object, ...]', value))}")
        return ", ".join(shown) or self.root.name


def _listed(values: tuple[object, ...]) -> str:
    shown = (
        str(cast("SSAValue[Attribute]", v).type) if isinstance(v, SSAValue) else str(v)
        for v in values
    )
    return f"[{', '.join(shown)}]"


def samples(
    rule: BoundRule, vocabulary: Vocabulary, count: int = 24, seed: int = 0
) -> Iterator[Sample]:
    """Up to count programs that a rule matches, guards included. Deterministic for a seed.

    Returns fewer if bounded work finds no more. There are none for operations with regions, for
    operations that read or write states, and for operations with attributes of classes that define
    no samples.
    """
    return Sampler(vocabulary, seed).samples(rule, count)


@dataclass
class _State:
    """The names of one program bound so far.

    Attributes:
        constant: its leaves are constants.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    constant: bool = False

    def copy(self) -> _State:
        return _State(dict(self.values), self.constant)


@dataclass
class _Plan:
    """How one program was made.

    Attributes:
        ops: for each part of the pattern, the class and the choices.
    """

    constant: bool = False
    ops: dict[Place, tuple[type[Operation], dict[str, str]]] = field(
        default_factory=dict[Place, "tuple[type[Operation], dict[str, str]]"]
    )


@dataclass
class Sampler:
    """Makes samples, and remembers for each class of operations how they were made.

    Attributes:
        seed: of all random choices.
        sizes: of axes; different primes if empty.
    """

    vocabulary: Vocabulary
    seed: int = 0
    sizes: Sequence[int] = ()
    _recipes: dict[type[Operation], list[dict[str, str]]] = field(
        default_factory=dict[type[Operation], list[dict[str, str]]]
    )
    _texts: dict[type[Operation], tuple[str, ...]] = field(
        default_factory=dict[type[Operation], "tuple[str, ...]"]
    )
    _nearest: dict[type[Operation], Climb] = field(default_factory=dict[type[Operation], "Climb"])
    _led_here: dict[str, list[_Plan]] = field(default_factory=dict[str, "list[_Plan]"])
    _plan: _Plan = field(default_factory=_Plan)
    _left: int = 0

    def samples(self, rule: BoundRule, count: int = 24) -> Iterator[Sample]:
        """Up to count programs that a rule matches, guards included. Fewer if they are hard."""
        found = 0
        for root in self.programs(rule.name, rule.variants, rule.guards):
            try:
                match = match_rule(rule, root, self.vocabulary)
            except CallFailed:
                # A guard that raises an error is reported when the rule runs, not here.
                continue
            if match is not None:
                block = root.parent_block()
                assert block is not None
                self.remember(rule.name)
                yield Sample(block, root, match)
                found += 1
                # If samples are hard to make, fewer are enough.
                if found == count or (found >= ENOUGH and self._left < TRIES // 2):
                    return

    def remember(self, name: str) -> None:
        """Make further programs of that name like the last one that `programs` made."""
        self._led_here.setdefault(name, []).append(self._plan)

    def programs(
        self,
        name: str,
        patterns: Sequence[BoundPattern],
        guards: Sequence[Expression] = (),
        tries: int = TRIES,
    ) -> Iterator[Operation]:
        """Roots of programs that one of the patterns matches. Guards may or may not hold.

        Each root is in a block of its own, whose arguments are the leaves.

        Args:
            name: seeds the random choices.
            guards: hints at numbers worth trying.
            tries: the most operations that are tried.
        """
        # Every order of operands matches the same programs and gives the same types, so try only
        # one.
        alike = patterns[:1] if isinstance(patterns, Orders) else patterns
        hints = Hints.of(alike, guards)
        random = Random(f"{self.seed} {name}")
        possible = [each for each in alike if self._possible(each)]
        variants = patterns if possible and alike is not patterns else possible
        self._left = tries
        misses = known = 0
        while self._left > 0 and variants:
            choices = Choices(random, hints, sizes=self.sizes)
            variant = random.choice(variants)
            led = self._led_here.get(name, [])
            misses = misses + 1 if len(led) == known else 0
            known = len(led)
            model = random.choice(led) if led and misses > EASY else _Plan()
            constant = model.constant if model.ops else random.random() < 0.25
            self._plan = _Plan(constant)
            # A pattern without anything to try must end too.
            self._left -= 1
            root = self._op(variant, choices, _State(constant=constant), model)
            if root is None:
                continue
            _into_block(root)
            if Matcher(self.vocabulary).op(variant, root):
                yield root

    def _possible(self, pattern: BoundPattern) -> bool:
        """True if operations of the pattern can be made at all."""
        return bool(self._classes(pattern)) and all(
            self._possible(each.pattern)
            for each in pattern.operands
            if isinstance(each, BoundNested)
        )

    def _classes(self, pattern: BoundPattern) -> list[type[Operation]]:
        infos = [self.vocabulary.info(cls) for cls in pattern.classes]
        return [
            info.cls
            for info in sorted(infos, key=lambda info: info.name)
            if not info.regions
            and not info.segmented
            and not info.cls.has_trait(MemoryReadEffect, value_if_unregistered=False)
            and not info.cls.has_trait(MemoryWriteEffect, value_if_unregistered=False)
            and info.takes(pattern.fixed, pattern.takes_more)
        ]

    # One operation

    def _op(
        self, pattern: BoundPattern, choices: Choices, state: _State, model: _Plan, read: int = 0
    ) -> Operation | None:
        """An operation that the pattern matches, with its operands; None if none was found.

        Args:
            model: the choices that made earlier programs for which all guards held.
            read: results that it has to have, if that many are possible.
        """
        if pattern.place in model.ops:
            cls, usual = model.ops[pattern.place]
        else:
            cls, usual = choices.random.choice(self._classes(pattern)), dict[str, str]()
        nested: dict[int, SSAValue] = {}
        for i, each in enumerate(pattern.operands):
            if isinstance(each, BoundNested):
                inner = self._op(each.pattern, choices, state, model, each.index + 1)
                if inner is None or each.index >= len(inner.results):
                    return None
                nested[i] = inner.results[each.index]
        recipes = self._recipes.setdefault(cls, [])
        # The search for a class that was never made continues where it stopped.
        climb = Climb(SIDEWAYS) if recipes else self._nearest.setdefault(cls, Climb(SIDEWAYS))
        stuck = 0
        for tried in range(TRIES_OF_ONE):
            if self._left <= 0 or (nested and stuck == STUCK):
                break
            self._left -= 1
            if usual and choices.random.random() < 0.7:
                replay = usual
            # If it is easy, make it anew each time: unusual programs reveal mistakes.
            elif recipes and tried >= EASY and choices.random.random() < 0.65:
                replay = choices.random.choice(recipes)
                if choices.random.random() < VARIED:
                    replay = without_some(replay, choices.random)
            else:
                replay = climb.step(choices.random)
            attempt = choices.again(replay)
            trial = state.copy()
            made = _Trial(self, cls, pattern, attempt, trial, nested, read).op()
            if isinstance(made, Operation):
                state.values = trial.values
                if len(recipes) < RECIPES and attempt.taken not in recipes:
                    recipes.append(attempt.taken)
                self._plan.ops[pattern.place] = cls, attempt.taken
                return made
            stuck = 0 if climb.failed(made, attempt) else stuck + 1
        return None

    def texts(self, cls: type[Operation]) -> tuple[str, ...]:
        """The strings that the verifier of a class has said it allows."""
        return self._texts.get(cls, ())

    def learn(self, cls: type[Operation], failure: Failure) -> None:
        """Remember the texts that a verifier allows."""
        self._texts[cls] = tuple(dict.fromkeys((*self.texts(cls), *failure.allowed)))

    @cached_property
    def sources(self) -> list[OpInfo]:
        """The operations that make a value without operands, such as a constant."""
        infos = [self.vocabulary.info(cls) for cls in self.vocabulary.ops.values()]
        return [
            info
            for info in sorted(infos, key=lambda info: info.name)
            if info.most == 0
            and info.one_result
            and not info.regions
            and info.cls.has_trait(Pure)
            and any(known.kind in ("attribute", "any") for known in info.attributes.values())
        ]

    def sources_for(self, cls: type[Operation]) -> list[OpInfo]:
        """The sources of the dialect of an operation; all of them if it has none."""
        dialect = cls.name.partition(".")[0]
        own = [info for info in self.sources if info.name.partition(".")[0] == dialect]
        return own or self.sources


@dataclass
class _Trial:
    """One attempt at one operation."""

    sampler: Sampler
    cls: type[Operation]
    pattern: BoundPattern
    choices: Choices
    state: _State
    nested: dict[int, SSAValue]
    read: int = 0

    @property
    def random(self) -> Random:
        return self.choices.random

    def op(self) -> Operation | Failure:
        """The operation, or how far its verifier got if it does not verify."""
        info = self.sampler.vocabulary.info(self.cls)
        operands = self._operands(info)
        if operands is None:
            return Failure()
        results = self._results(info, [each.type for each in operands])
        tensors = _tensors((*(each.type for each in operands), *results))
        attributes = self._attributes(info, tensors)
        if attributes is None:
            return Failure()
        op = self.cls.create(
            operands=operands,
            result_types=results,
            properties={n: a for n, a in attributes.items() if self._is_property(info, n)},
            attributes={n: a for n, a in attributes.items() if not self._is_property(info, n)},
            location=UNKNOWN_LOC,
        )
        try:
            op = with_inferred_types(op, self.read)
            op.verify(verify_nested_ops=False)
        except Exception as error:
            # A user's operation may raise any error on meaningless input.
            failure = Failure.of(error)
            self.sampler.learn(self.cls, failure)
            op.operands = []
            return failure
        for type_pattern, result in zip(self.pattern.types, op.results, strict=False):
            self._learn_type(type_pattern, result.type)
        return op

    def _is_property(self, info: OpInfo, name: str) -> bool:
        known = info.attributes.get(name)
        return known is not None and known.is_property

    # Operands

    def _operands(self, info: OpInfo) -> list[SSAValue] | None:
        given = [each.type for each in self.nested.values()]
        found: dict[int, Sequence[SSAValue]] = {i: (each,) for i, each in self.nested.items()}
        order = range(len(self.pattern.operands))
        # Each leaf suits those before it. Any of them may be the one that differs.
        for i in order if self.choices.way("order", _ORDERS) == "forward" else reversed(order):
            each = self.pattern.operands[i]
            known = [*given, *(v.type for j in found if j not in self.nested for v in found[j])]
            if isinstance(each, Variable):
                found[i] = (self._leaf(i, each.name, each.type, known, info),)
            elif isinstance(each, Rest):
                spare = self._spare(info)
                if spare is None:
                    return None
                found[i] = self._rest(i, each, spare, known, info)
        return [value for i in order for value in found[i]]

    def _spare(self, info: OpInfo) -> int | None:
        """The number of operands that `...` stands for; None if the class allows no such number."""
        fixed = self.pattern.fixed
        allowed = [n for n in range(5) if info.takes(fixed + n)]
        return self.random.choice(allowed) if allowed else None

    def _rest(
        self, at: int, rest: Rest, spare: int, known: list[Attribute], info: OpInfo
    ) -> tuple[SSAValue, ...]:
        values = self.state.values
        if rest.name in values:
            return cast("tuple[SSAValue, ...]", values[rest.name])
        found: list[SSAValue] = []
        for i in range(at, at + spare):
            found.append(self._leaf(i, ANY, None, [*known, *_types(found)], info))
        if rest.name != ANY:
            values[rest.name] = tuple(found)
        return tuple(found)

    def _leaf(
        self,
        at: int,
        name: str,
        type_: TypePattern | None,
        known: Sequence[Attribute],
        info: OpInfo,
    ) -> SSAValue:
        if name in self.state.values:
            return cast(SSAValue, self.state.values[name])
        chosen = self._type(type_, f"operand {at}", _tensors(known), info)
        value: SSAValue | None = None
        if self.state.constant:
            value = self._source(chosen)
        if value is None:
            value = Block(arg_types=(chosen,)).args[0]
        if name != ANY:
            value.name_hint = None if NUMBERED.fullmatch(name) else name
            self.state.values[name] = value
        return value

    def _source(self, type_: Attribute) -> SSAValue | None:
        """A value of a type, made by an operation without operands."""
        for info in self.sampler.sources_for(self.cls):
            made = _Trial(
                self.sampler, info.cls, self.pattern, self.choices, self.state.copy(), {}
            )._made_from_nothing(info, type_)
            if made is not None:
                return made
        return None

    def _made_from_nothing(self, info: OpInfo, type_: Attribute) -> SSAValue | None:
        properties: dict[str, Attribute] = {}
        for name, known in info.attributes.items():
            if known.is_optional or known.default is not None:
                continue
            value = self.choices.attribute(
                name, known.kind, known.definition.constr, _tensors([type_]), ()
            )
            if value is None:
                return None
            properties[name] = value
        op = info.cls.create(result_types=[type_], properties=properties, location=UNKNOWN_LOC)
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return None
        return op.results[0]

    # Types

    def _results(self, info: OpInfo, operands: Sequence[Attribute]) -> list[Attribute]:
        """The types of the results. For types that are inferred, a guess."""
        tensors = _tensors(operands)
        found: list[Attribute] = []
        for i in range(max(info.least_results, len(self.pattern.types))):
            pattern = self.pattern.types[i] if i < len(self.pattern.types) else None
            if pattern is None and tensors and self.choices.way(f"result {i}", _AS) == "same":
                found.append(tensors[0])
            else:
                found.append(self._type(pattern, f"result {i}", tensors, None))
        return found

    def _type(
        self,
        pattern: TypePattern | None,
        what: str,
        known: Sequence[TensorType[Attribute]],
        info: OpInfo | None,
    ) -> Attribute:
        values = self.state.values
        if isinstance(pattern, TypeName) and pattern.name != ANY:
            if pattern.name not in values:
                values[pattern.name] = self._free_type(what, known, info)
            return cast(Attribute, values[pattern.name])
        if not isinstance(pattern, Shaped):
            return self._free_type(what, known, info)
        element = element_type(pattern.element) if pattern.element else None
        if element is None:
            element = values.get(pattern.element) or self.choices.element(what, known)
            if pattern.element not in ("", ANY):
                values[pattern.element] = element
        sizes: list[int] = []
        for each in pattern.sizes:
            sizes += [self._size(each, known)] if isinstance(each, Size) else self._sizes(each)
        return tensor_type(element, sizes)

    def _size(self, size: Size, known: Sequence[TensorType[Attribute]]) -> int:
        if isinstance(size.value, int):
            return size.value
        values = self.state.values
        if size.value != ANY and size.value in values:
            return values[size.value]
        there = [n for each in known for n in each.get_shape()]
        # A size that another tensor has too, because the two may then be combined.
        if there and self.random.random() < 0.4:
            found = self.random.choice(there)
        else:
            found = self.choices.fresh()
        if size.value != ANY:
            values[size.value] = found
        return found

    def _sizes(self, rest: Rest) -> tuple[int, ...]:
        values = self.state.values
        if rest.name not in values:
            length = self.random.randrange(4)
            ones = self.random.random() < 0.4
            found = tuple(1 if ones else self.choices.fresh() for _ in range(length))
            if not rest.name:
                return found
            values[rest.name] = found
        return values[rest.name]

    def _free_type(
        self, what: str, known: Sequence[TensorType[Attribute]], info: OpInfo | None
    ) -> Attribute:
        shape = self.choices.shape(what, [tuple(each.get_shape()) for each in known])
        found = tensor_type(self.choices.element(f"element of {what}", known), shape)
        if info is None or not issubclass(info.cls, IRDLOperation):
            return found
        constraints = [each.constr for _, each in info.cls.get_irdl_definition().operands]
        if any(each.verifies((found,)) for each in constraints):
            return found
        # An operation on a value that is not a tensor.
        scalars = [t for t in _SCALARS if any(each.verifies((t,)) for each in constraints)]
        return self.random.choice(scalars) if scalars else found

    def _learn_type(self, pattern: TypePattern, type_: Attribute) -> None:
        """Bind the names in the type of a result, for later operands."""
        values = self.state.values
        parts = tensor_parts(type_)
        if isinstance(pattern, TypeName):
            values.setdefault(pattern.name, type_)
        elif parts is not None and len(parts[0]) == len(pattern.sizes):
            values.setdefault(pattern.element, parts[1])
            for each, size in zip(pattern.sizes, parts[0], strict=True):
                if isinstance(each, Size) and isinstance(each.value, str):
                    values.setdefault(each.value, size)

    # Attributes

    def _attributes(
        self, info: OpInfo, tensors: Sequence[TensorType[Attribute]]
    ) -> dict[str, Attribute] | None:
        """All attributes; None if no suitable value is known for one of them."""
        fields = {each.name: each for each in self.pattern.fields}
        values = self.state.values
        found: dict[str, Attribute] = {}
        for name, known in info.attributes.items():
            asked = fields.get(name)
            constraint = known.definition.constr
            if asked is not None and not isinstance(asked.value, Name):
                if asked.value is None or (asked.value is False and known.kind == "bool"):
                    continue
                value = attribute_of(asked.value, constraint)
            elif asked is not None and cast(Name, asked.value).name in values:
                bound = values[cast(Name, asked.value).name]
                if bound is None or (bound is False and known.kind == "bool"):
                    continue
                value = attribute_of(bound, constraint)
            else:
                if asked is None and known.default is None and known.is_optional:
                    continue
                if asked is None and known.is_outdated:
                    continue
                may_lack = known.is_optional or known.default is not None
                if may_lack and self.random.random() < 0.5:
                    value = known.default
                    if value is None:
                        self._bind(asked and cast(Name, asked.value).name, _absent(known.kind))
                        continue
                else:
                    texts = self.sampler.texts(self.cls)
                    value = self.choices.attribute(name, known.kind, constraint, tensors, texts)
                if asked is not None:
                    self._bind(cast(Name, asked.value).name, plain(value))
            if value is None:
                return None
            found[name] = value
        for each in self.pattern.fields:
            if each.is_note:
                value = 1 if isinstance(each.value, Name) else each.value
                note = None if value is None else attribute_of(value, None)
                if note is not None:
                    found[each.name] = note
        return found

    def _bind(self, name: str | None, value: object) -> None:
        if name is not None and name != ANY:
            self.state.values[name] = value


_ORDERS = ("forward", "backward")
_AS = ("same", "other")
_SCALARS: tuple[Attribute, ...] = (f32, i32, i64, i1)


def _absent(kind: str) -> object:
    """The value of an absent attribute in a rule."""
    return False if kind == "bool" else None


def _types(values: Sequence[SSAValue]) -> list[Attribute]:
    return [each.type for each in values]


def _tensors(types: Sequence[Attribute]) -> list[TensorType[Attribute]]:
    return [cast("TensorType[Attribute]", each) for each in types if isinstance(each, TensorType)]


def _into_block(root: Operation) -> None:
    """Put a tree of operations into a block of its own, with its leaves as arguments."""
    ops: list[Operation] = []
    leaves: list[SSAValue] = []

    def visit(op: Operation) -> None:
        for value in op.operands:
            if isinstance(value, BlockArgument):
                if value not in leaves:
                    leaves.append(value)
            elif (owner := cast(Operation, value.owner)) not in ops:
                visit(owner)
        ops.append(op)

    visit(root)
    block = Block(arg_types=[each.type for each in leaves])
    for old, new in zip(leaves, block.args, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    block.add_ops(ops)
