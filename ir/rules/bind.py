"""Binds the syntax of rules to operations, and checks that every rule makes sense."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from xdsl.ir import Operation

from ..rewriting import Source
from ..support.errors import InputError
from ..support.suggestions import suggestion
from .bound_rule import BoundNested, BoundOperand, BoundPattern, BoundRule, Made, Match
from .build import Builder, builds
from .divisible import Divisors
from .evaluate import expression_text, value_text
from .kinds import a_kind, fits, kind_of_value
from .library import CLASSES, FUNCTIONS, KINDS
from .orders import Orders, orders_of
from .parse import refusal
from .syntax import (
    Build,
    Call,
    Class,
    Constant,
    Declaration,
    Expression,
    Listed,
    Name,
    Nested,
    NewShaped,
    Operator,
    Pattern,
    Place,
    Property,
    Reference,
    Rest,
    Rule,
    RuleFile,
    TypeName,
    TypeOf,
    TypePattern,
    Variable,
)
from .values import Plain, attribute_of, element_type, is_no_type
from .vocabulary import Attributed, OpInfo, Vocabulary, common

ANY = "_"


def bind_rules(file: RuleFile, vocabulary: Vocabulary) -> tuple[BoundRule, ...]:
    """The rules of a file, each checked. Raises InputError with one message per wrong rule."""
    bound: list[BoundRule] = []
    problems: list[str] = []
    names: Counter[str] = Counter()
    scope = _Scope.of(file, vocabulary)
    for rule in file.rules:
        try:
            names[rule.name] += 1
            if names[rule.name] > 1:
                raise refusal(rule.place, f"rule {rule.name} is already defined", file.text)
            bound.append(_Binder(rule, file, scope).bound_rule())
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return tuple(bound)


def bind_pattern(
    pattern: Pattern,
    guards: Sequence[Expression],
    text: str,
    line: int,
    vocabulary: Vocabulary,
    *,
    commutative: bool = False,
    kind: Literal["rule", "lower"] = "rule",
) -> tuple[Sequence[BoundPattern], dict[str, str]]:
    """The variants of a pattern of Python code, and the kinds of the names that it binds.

    Raises InputError.

    Args:
        line: number of the text's first line in its file.
    """
    file = RuleFile(pattern.place.file, text, (), (), ())
    rule = Rule(
        pattern.place,
        kind,
        "",
        0,
        commutative=commutative,
        pattern=pattern,
        lets=(),
        results=(),
        guards=tuple(guards),
    )
    binder = _Binder(rule, file, _Scope.of(file, vocabulary), line)
    variants = binder.variants()
    for each in guards:
        binder.truth(each)
    binder.level(variants[0])
    return variants, {name: bound.kind for name, bound in binder.names.items()}


@dataclass(frozen=True)
class _Scope:
    """The classes, guards and functions that a file declares."""

    vocabulary: Vocabulary
    classes: dict[str, frozenset[type[Operation]]]

    @staticmethod
    def of(file: RuleFile, vocabulary: Vocabulary) -> _Scope:
        vocabulary.load_named(file.text)
        classes: dict[str, frozenset[type[Operation]]] = {}
        for each in file.classes:
            if each.name in classes:
                raise refusal(each.place, f"class {each.name} is already defined", file.text)
            classes[each.name] = _members(each, file, vocabulary)
        for name, belongs in CLASSES.items():
            classes.setdefault(name, frozenset(vocabulary.members(belongs)))
        for each in file.declarations:
            _check_declaration(each, file)
        return _Scope(vocabulary, classes)


def _members(each: Class, file: RuleFile, vocabulary: Vocabulary) -> frozenset[type[Operation]]:
    if each.members is None:
        if each.name not in CLASSES:
            raise refusal(
                each.place,
                f"no class {each.name} is written in Python{suggestion(each.name, CLASSES)}; "
                "decorate its predicate with @op_class and load its file first",
                file.text,
            )
        return frozenset(vocabulary.members(CLASSES[each.name]))
    for name, place in each.members:
        if name not in vocabulary.ops:
            raise refusal(
                place, f"no operation {name}{suggestion(name, vocabulary.ops)}", file.text
            )
    return frozenset(vocabulary.ops[name] for name, _ in each.members)


def _check_declaration(each: Declaration, file: RuleFile) -> None:
    what = "function" if each.result else "guard"
    for kind in (*each.kinds, *([each.result] if each.result else [])):
        if kind not in KINDS:
            raise refusal(each.place, f"no kind {kind}{suggestion(kind, KINDS)}", file.text)
    found = FUNCTIONS.get(each.name)
    if found is None:
        raise refusal(
            each.place,
            f"no {what} {each.name} is written in Python{suggestion(each.name, FUNCTIONS)}; "
            f"decorate it with @{what} and load its file first",
            file.text,
        )
    wanted = (each.kinds, each.result or "bool")
    if wanted != (found.kinds, found.result):
        raise refusal(
            each.place,
            f"{each.name} in Python takes ({', '.join(found.kinds)}) and gives {found.result}",
            file.text,
        )


@dataclass
class _Bound:
    """A name of a rule.

    Attributes:
        uses: how often the name occurs.
        infos: the definitions of the operation that it names.
    """

    kind: str
    place: Place
    uses: int = 1
    infos: tuple[OpInfo, ...] = ()

    @property
    def is_value(self) -> bool:
        return self.kind == "value" or (
            self.kind == "op" and all(info.one_result for info in self.infos)
        )


@dataclass
class _Binder:
    rule: Rule
    file: RuleFile
    scope: _Scope
    first_line: int = 1
    names: dict[str, _Bound] = field(default_factory=dict[str, _Bound])

    def bound_rule(self) -> BoundRule:
        rule = self.rule
        variants = self.variants()
        for each in rule.guards:
            self.truth(each)
        self._right()
        self._unused()
        self._carried()
        self.level(variants[0])
        source = Source(rule.name, self.file.path, rule.place.line)
        vocabulary = self.scope.vocabulary

        def make(match: Match) -> Made:
            return Builder(rule, vocabulary, match).made()

        return BoundRule(
            source,
            rule.kind,
            rule.priority,
            variants,
            rule.guards,
            make,
            text=self._text(),
            document=rule.document,
            place=rule.place,
        )

    def _carried(self) -> None:
        """Check that the right side keeps the attributes that `{...}` allows."""
        rule = self.rule
        made = [*(let.build for let in rule.lets), *rule.results]
        models: set[str] = set()
        while made:
            each = made.pop()
            if isinstance(each, Build):
                models |= {each.head, each.like}
                made += [operand for operand in each.operands if not isinstance(operand, Rest)]
            else:
                # What stays as it is keeps its attributes.
                models.add(each.name)
        for pattern in rule.pattern.walk():
            if pattern.others and pattern.name not in models - {""}:
                name = pattern.name or "p"
                self.refuse(
                    pattern.place,
                    f"{{...}} allows attributes that the right side would lose; build the "
                    f"operation with {name}(...), or like {name}",
                )

    def refuse(self, place: Place, message: str) -> NoReturn:
        raise refusal(place, message, self.file.text, self.first_line)

    def _text(self) -> str:
        """The text of the rule."""
        lines = self.file.text.split("\n")
        first = self.rule.place.line - self.first_line
        last = next(
            (i for i in range(first + 1, len(lines)) if not lines[i][:1].isspace()), len(lines)
        )
        return "\n".join(lines[first:last]).rstrip()

    # The left side

    def variants(self) -> Sequence[BoundPattern]:
        """The pattern with its operands in every order that commutative operations allow."""
        bound = self._pattern(self.rule.pattern)
        if not self.rule.commutative:
            return (bound,)
        found = orders_of(bound)
        if not isinstance(found, Orders) and len(found) == 1:
            self.refuse(
                self.rule.place,
                "@commutative, but no operation of the pattern takes its two operands in any order",
            )
        return found

    def _classes(self, pattern: Pattern) -> frozenset[type[Operation]]:
        found: set[type[Operation]] = set()
        for head in pattern.heads:
            if "." in head:
                if head not in self.scope.vocabulary.ops:
                    hint = suggestion(head, self.scope.vocabulary.ops)
                    self.refuse(pattern.place, f"no operation {head}{hint}")
                found.add(self.scope.vocabulary.ops[head])
            elif head in self.scope.classes:
                found |= self.scope.classes[head]
            else:
                self.refuse(
                    pattern.place,
                    f"no class of operations {head}{suggestion(head, self.scope.classes)}; an "
                    "operation is written with its dialect, as in nn.relu",
                )
        if not found:
            self.refuse(pattern.place, f"no operation belongs to {' or '.join(pattern.heads)}")
        return frozenset(found)

    def _pattern(self, pattern: Pattern) -> BoundPattern:
        classes = self._classes(pattern)
        infos = tuple(self.scope.vocabulary.info(cls) for cls in classes)
        heads = "|".join(pattern.heads)
        self._arity(pattern, infos, heads)
        for each in pattern.fields:
            self._field(each.place, each.name, each.value, each.is_note, infos, heads)
        if pattern.name and pattern.name != ANY:
            self._name(pattern.place, pattern.name, "op", infos)
        for each in pattern.types:
            self._type(each)
        if pattern.types and any(
            info.most_results is not None and len(pattern.types) > info.most_results
            for info in infos
        ):
            self.refuse(pattern.place, f"{len(pattern.types)} types for the results of {heads}")
        operands = tuple(self._operand(each) for each in pattern.operands)
        mentioned = {each.name for each in pattern.fields}
        absent = {
            name
            for info in infos
            for name, known in info.attributes.items()
            if known.is_property and known.is_optional and known.default is None
            if not pattern.others
        }
        return BoundPattern(
            pattern.place,
            heads,
            classes,
            operands,
            pattern.fields,
            "" if pattern.name == ANY else pattern.name,
            pattern.types,
            tuple(sorted(absent - mentioned)),
            pattern.others,
        )

    def _arity(self, pattern: Pattern, infos: tuple[OpInfo, ...], heads: str) -> None:
        rests = [each for each in pattern.operands if isinstance(each, Rest)]
        if len(rests) > 1:
            self.refuse(rests[1].place, "more than one ... among the operands; need at most one")
        given = len(pattern.operands) - len(rests)
        if not any(info.takes(given, bool(rests)) for info in infos):
            self.refuse(
                pattern.place,
                f"{heads} with {_counted(given)}; it has {_range(infos)}",
            )

    def _operand(self, operand: Variable | Rest | Nested) -> BoundOperand:
        if isinstance(operand, Nested):
            inner = self._pattern(operand.pattern)
            infos = tuple(self.scope.vocabulary.info(cls) for cls in inner.classes)
            if operand.index is None and not all(info.one_result for info in infos):
                self.refuse(
                    operand.place,
                    f"{inner.heads} does not always have one result; write which one, as in "
                    "(...)#0",
                )
            if any(
                info.most_results is not None and (operand.index or 0) >= info.most_results
                for info in infos
            ):
                self.refuse(operand.place, f"{inner.heads} has no result {operand.index or 0}")
            return BoundNested(operand.place, inner, operand.index or 0)
        if operand.name != ANY:
            self._name(
                operand.place, operand.name, "values" if isinstance(operand, Rest) else "value"
            )
        if isinstance(operand, Variable) and operand.type is not None:
            self._type(operand.type)
        return operand

    def _type(self, pattern: TypePattern) -> None:
        if isinstance(pattern, TypeName):
            if element_type(pattern.name) is not None:
                self.refuse(
                    pattern.place,
                    f"{pattern.name} is an element type; a tensor is written {pattern.name}[n, m]",
                )
            if pattern.name != ANY:
                self._name(pattern.place, pattern.name, "attribute")
            return
        if pattern.element not in ("", ANY) and element_type(pattern.element) is None:
            self._no_type(pattern.place, pattern.element)
            self._name(pattern.place, pattern.element, "attribute")
        rests = [each for each in pattern.sizes if isinstance(each, Rest)]
        if len(rests) > 1:
            self.refuse(rests[1].place, "more than one ... among the sizes; need at most one")
        for each in pattern.sizes:
            if isinstance(each, Rest):
                if each.name:
                    self._name(each.place, each.name, "ints")
            elif isinstance(each.value, str) and each.value != ANY:
                self._name(each.place, each.value, "int")

    def _no_type(self, place: Place, word: str) -> None:
        if is_no_type(word):
            self.refuse(place, f"{word} is not an element type; need one such as f32, bf16 or i32")

    def _field(
        self,
        place: Place,
        name: str,
        value: Name | Plain,
        is_note: bool,
        infos: tuple[OpInfo, ...],
        heads: str,
    ) -> None:
        known = None if is_note else self._attribute(place, name, infos, heads)
        kind = "any" if known is None else known.kind
        if isinstance(value, Name):
            if value.name != ANY:
                self._name(value.place, value.name, kind)
            return
        given = kind_of_value(value)
        if value is not None and not fits(given, kind):
            self.refuse(
                place,
                f"{name} of {heads} is {a_kind(kind)}; the rule compares it with {a_kind(given)}",
            )
        if known is not None:
            try:
                attribute_of(value, known.definition.constr)
            except ValueError as error:
                self.refuse(place, f"{name} of {heads} cannot be {value_text(value)}: {error}")

    def _attribute(
        self, place: Place, name: str, infos: tuple[OpInfo, ...], heads: str
    ) -> Attributed:
        found = common(infos, name)
        if found is None:
            known = set(infos[0].attributes).intersection(*(info.attributes for info in infos))
            self.refuse(place, f"{heads} has no attribute {name}{suggestion(name, known)}")
        return found

    def _name(self, place: Place, name: str, kind: str, infos: tuple[OpInfo, ...] = ()) -> None:
        known = self.names.get(name)
        if known is None:
            self.names[name] = _Bound(kind, place, infos=infos)
            return
        if known.kind != kind:
            self.refuse(place, f"{name} is {a_kind(known.kind)} before, and {a_kind(kind)} here")
        known.uses += 1

    # Expressions

    def truth(self, expression: Expression) -> None:
        """Check that an expression is true or false."""
        kind = self.kind(expression)
        if kind not in ("bool", "any"):
            self.refuse(
                expression.place,
                f"{expression_text(expression)} is {a_kind(kind)}; a guard must be true or false",
            )

    def kind(self, expression: Expression) -> str:
        """The kind of an expression. All names in it must be bound."""
        match expression:
            case Constant():
                return kind_of_value(expression.value)
            case Name():
                return self._use(expression.place, expression.name).kind
            case Property():
                return self._property(expression)
            case Listed():
                kinds = {self.kind(each) for each in expression.items}
                if kinds <= {"int"}:
                    return "ints"
                return "floats" if kinds <= {"int", "float"} else "any"
            case Call():
                return self._call(expression)
            case Operator():
                return self._operator(expression)

    def _use(self, place: Place, name: str) -> _Bound:
        known = self.names.get(name)
        if known is None:
            hint = (
                "; a guard or function is called with its arguments in ()"
                if name in FUNCTIONS
                else suggestion(name, self.names)
            )
            self.refuse(place, f"nothing binds {name}{hint}")
        known.uses += 1
        return known

    def _property(self, expression: Property) -> str:
        bound = self._use(expression.place, expression.op)
        if bound.kind != "op":
            self.refuse(
                expression.place,
                f"{expression.op} is {a_kind(bound.kind)} and has no attributes; name an operation "
                "with as",
            )
        heads = "|".join(sorted(info.name for info in bound.infos))
        return self._attribute(
            expression.place,
            expression.name,
            bound.infos,
            heads if len(bound.infos) < 4 else expression.op,
        ).kind

    def _call(self, call: Call) -> str:
        found = FUNCTIONS.get(call.name)
        if found is None:
            self.refuse(
                call.place,
                f"no guard or function {call.name} is written in Python, with @guard or @function "
                f"from abele.ir.rules{suggestion(call.name, FUNCTIONS)}",
            )
        if len(call.arguments) != len(found.kinds):
            self.refuse(
                call.place,
                f"{call.name} takes {_counted(len(found.kinds), 'argument')} "
                f"({', '.join(found.kinds)}); {len(call.arguments)} given",
            )
        for each, wanted, optional in zip(call.arguments, found.kinds, found.optional, strict=True):
            kind = self.kind(each)
            if kind == "none" and optional:
                continue
            if wanted == "value" and kind == "op" and isinstance(each, Name):
                kind = "value" if self.names[each.name].is_value else kind
            if not fits(kind, wanted):
                self.refuse(
                    each.place,
                    f"{call.name} takes {a_kind(wanted)} here; {expression_text(each)} is "
                    f"{a_kind(kind)}",
                )
        return found.result

    def _operator(self, expression: Operator) -> str:
        symbol, operands = expression.symbol, expression.operands
        kinds = [self.kind(each) for each in operands]
        if symbol in ("and", "or", "not"):
            for each, kind in zip(operands, kinds, strict=True):
                if kind not in ("bool", "any"):
                    self.refuse(
                        each.place,
                        f"{expression_text(each)} is {a_kind(kind)}; {symbol} needs true or false",
                    )
            return "bool"
        if symbol in ("==", "!="):
            if not (fits(kinds[0], kinds[1]) or fits(kinds[1], kinds[0]) or "none" in kinds):
                self.refuse(
                    expression.place,
                    f"{expression_text(expression)} compares {a_kind(kinds[0])} with "
                    f"{a_kind(kinds[1])}",
                )
            return "bool"
        if symbol == "+" and set(kinds) == {"ints"}:
            return "ints"
        for each, kind in zip(operands, kinds, strict=True):
            if kind not in ("int", "float", "any"):
                self.refuse(
                    each.place, f"{expression_text(each)} is {a_kind(kind)}; {symbol} needs numbers"
                )
        if symbol in ("<", "<=", ">", ">="):
            return "bool"
        # An operand of kind "any" may not be an integer. This is checked when the rule matches.
        if symbol == "/" and set(kinds) == {"int"}:
            self._divisible(expression)
        return next((each for each in ("float", "any") if each in kinds), "int")

    def _divisible(self, division: Operator) -> None:
        """Refuse a division unless a guard says that it leaves no remainder."""
        a, b = division.operands
        if not Divisors.of(self.rule.guards).divides(b, a):
            if isinstance(a, Constant) and isinstance(b, Constant):
                remedy = f"write {a.value}.0 / {b.value}" if b.value else "need another divisor"
                self.refuse(
                    division.place, f"{expression_text(division)} is not a whole number; {remedy}"
                )
            self.refuse(
                division.place,
                f"{expression_text(division)} may leave a remainder; add the guard {_operand(a)} % "
                f"{_operand(b)} == 0, or write // to round down",
            )

    # The right side

    def _right(self) -> None:
        rule = self.rule
        for let in rule.lets:
            infos = self._build(let.build)
            if let.name in self.names:
                self.refuse(let.place, f"{let.name} is already bound; need another name")
            self.names[let.name] = _Bound("op", let.place, infos=infos)
        infos = tuple(self.scope.vocabulary.info(c) for c in self._classes(rule.pattern))
        made = [self._made(each) for each in rule.results]
        least = sum(few for few, _ in made)
        most = None if any(many is None for _, many in made) else sum(many or 0 for _, many in made)
        if not any(
            (most is None or info.least_results <= most)
            and (info.most_results is None or least <= info.most_results)
            for info in infos
        ):
            heads = "|".join(rule.pattern.heads)
            results = _ranges((info.least_results, info.most_results) for info in infos)
            self.refuse(
                rule.pattern.place,
                f"{heads} has {results} result{'' if results == '1' else 's'}, and "
                f"{_ranges([(least, most)])} would replace them",
            )

    def _made(self, made: Build | Reference) -> tuple[int, int | None]:
        """Check a new operation or value. Returns the fewest and the most values it can be."""
        if isinstance(made, Build):
            infos = self._build(made)
            several = [info.most_results for info in infos]
            most = None if None in several else max(each or 0 for each in several)
            return min(info.least_results for info in infos), most
        bound = self._use(made.place, made.name)
        if made.index is None and not bound.is_value:
            self.refuse(
                made.place,
                f"{made.name} is {a_kind(bound.kind)}; a value is needed"
                + (", as in " + made.name + "#0" if bound.kind == "op" else ""),
            )
        if made.index is not None and bound.kind != "op":
            self.refuse(made.place, f"{made.name} is {a_kind(bound.kind)}, and has no results")
        return 1, 1

    def _build(self, build: Build) -> tuple[OpInfo, ...]:
        vocabulary = self.scope.vocabulary
        if "." in build.head:
            if build.head not in vocabulary.ops:
                hint = suggestion(build.head, vocabulary.ops)
                self.refuse(build.place, f"no operation {build.head}{hint}")
            infos: tuple[OpInfo, ...] = (vocabulary.info(vocabulary.ops[build.head]),)
        else:
            bound = self._use(build.place, build.head)
            if bound.kind != "op":
                self.refuse(
                    build.place,
                    f"{build.head} is {a_kind(bound.kind)}; only an operation can be built again",
                )
            infos = bound.infos
        if build.like:
            bound = self._use(build.place, build.like)
            if bound.kind != "op":
                self.refuse(
                    build.place, f"{build.like} is {a_kind(bound.kind)}; like needs an operation"
                )
        for each in build.operands:
            if isinstance(each, Rest):
                bound = self._use(each.place, each.name)
                if bound.kind != "values":
                    self.refuse(
                        each.place, f"{each.name} is {a_kind(bound.kind)}; ... needs several values"
                    )
            else:
                self._made(each)
        self._operand_count(build, infos)
        self._settings(build, infos)
        for each in build.types:
            self._new_type(each)
        return infos

    def _operand_count(self, build: Build, infos: tuple[OpInfo, ...]) -> None:
        given = sum(not isinstance(each, Rest) for each in build.operands)
        several = given < len(build.operands)
        if not any(info.takes(given, several) for info in infos):
            self.refuse(
                build.place,
                f"{build.head} with {_counted(given)}; it has {_range(infos)}",
            )
        if any(info.segmented for info in infos):
            self.refuse(
                build.place,
                f"{build.head} has several lists of operands; build it in Python, with @rewrite",
            )

    def _settings(self, build: Build, infos: tuple[OpInfo, ...]) -> None:
        heads = build.head
        for each in build.settings:
            known = self._attribute(each.place, each.name, infos, heads)
            kind = self.kind(each.value)
            if not (fits(kind, known.kind) or (kind == "none" and known.is_optional)):
                self.refuse(
                    each.place,
                    f"{each.name} of {heads} is {a_kind(known.kind)}; "
                    f"{expression_text(each.value)} is {a_kind(kind)}",
                )
        if "." in build.head and not build.like:
            given = {each.name for each in build.settings}
            missing = [
                name
                for name, known in infos[0].attributes.items()
                if known.is_property
                and not known.is_optional
                and known.default is None
                and name not in given
            ]
            if missing:
                self.refuse(
                    build.place,
                    f"{heads} needs {', '.join(missing)}; give them in {{}}, or take them from a "
                    "matched operation with like",
                )

    def _new_type(self, new: TypeName | TypeOf | NewShaped) -> None:
        if isinstance(new, TypeName):
            if element_type(new.name) is not None:
                self.refuse(
                    new.place,
                    f"{new.name} is an element type; a tensor is written {new.name}[n, m]",
                )
            self._use(new.place, new.name)
            return
        if isinstance(new, TypeOf):
            if not self._use(new.place, new.name).is_value:
                self.refuse(new.place, f"{new.name} is not a value and has no type")
            return
        if element_type(new.element) is None:
            self._no_type(new.place, new.element)
            self._use(new.place, new.element)
        for each in new.sizes:
            if isinstance(each, Rest):
                if self._use(each.place, each.name).kind != "ints":
                    self.refuse(each.place, f"{each.name} is not a list of sizes")
            elif (kind := self.kind(each)) not in ("int", "any"):
                self.refuse(
                    each.place,
                    f"{expression_text(each)} is {a_kind(kind)}; a size is a whole number",
                )

    # The rule as a whole

    def _unused(self) -> None:
        for name, bound in self.names.items():
            if bound.uses == 1:
                self.refuse(
                    bound.place,
                    f"{name} is bound and never used; use it, or "
                    + ("leave out its as" if bound.kind == "op" else "write _ for any value"),
                )

    def level(self, pattern: BoundPattern) -> None:
        """Check that a lower ends in operations of the next level."""
        if self.rule.kind != "lower":
            return
        vocabulary = self.scope.vocabulary
        levels = {vocabulary.level_of(cls.name) for cls in pattern.classes}
        targets = {vocabulary.lowers_to(cls.name) for cls in pattern.classes}
        target = next(iter(targets)) if len(levels) == len(targets) == 1 else None
        if target is None and levels <= set(vocabulary.levels[-1:]):
            self.refuse(pattern.place, f"{pattern.heads} is already on the lowest level")
        if target is None:
            self.refuse(
                pattern.place,
                f"{pattern.heads} is not on a level that can be lowered; write rule instead of "
                "lower to replace it on its own level",
            )
        for each in builds(self.rule):
            if "." not in each.head or not target.is_legal(each.head):
                self.refuse(
                    each.place,
                    f"{each.head} is not legal at {target}, where a lower of {pattern.heads} ends",
                )


def _operand(expression: Expression) -> str:
    """The text of an expression as an operand of another one."""
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, Operator) else text


def _range(infos: Sequence[OpInfo]) -> str:
    """The number of operands that operations can have, in words."""
    return _ranges((info.least, info.most) for info in infos)


def _ranges(ranges: Iterable[tuple[int, int | None]]) -> str:
    texts = sorted(
        f"{least} or more"
        if most is None
        else str(least)
        if least == most
        else f"{least} to {most}"
        for least, most in set(ranges)
    )
    return " or ".join(texts)


def _counted(count: int, what: str = "operand") -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
