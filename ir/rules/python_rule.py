"""Rules whose right side is a Python function that builds the replacement.

@rewrite("nn.relu(nn.add(x, y) as s)", where="one_use(s)")
def fuse_add_relu(x, y, s):
    return AddReluOp(x, y)
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, cast

from xdsl.ir import Operation, SSAValue

from ..provenance import fused, is_known, place
from ..rewriting import Source
from ..support.errors import InputError
from ..support.suggestions import suggestion
from ..upstream import VerifyException
from .bind import bind_pattern
from .bound_rule import BoundRule, Made, Match
from .parse import parse_guards, parse_pattern
from .rule_set import RuleSet
from .syntax import Expression, Pattern, Place
from .vocabulary import Vocabulary


@dataclass(frozen=True)
class PythonRule:
    """A rule written in Python, not yet bound to the operations of any dialect.

    Attributes:
        call: the function. Its parameters are names that the pattern binds.
    """

    call: Callable[..., Any]
    pattern: str
    where: str = ""
    priority: int = 0
    commutative: bool = False
    lower: bool = False
    parameters: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(_parameters(self)))

    @property
    def name(self) -> str:
        """The name of the rule, which is that of the function."""
        return self.call.__name__

    @property
    def file(self) -> str:
        """The function's file, relative to the current folder if that contains it."""
        return _file_of(self.call)

    @property
    def line(self) -> int:
        """The function's first line, that of its decorator."""
        return _line_of(self.call)


def rewrite(
    pattern: str,
    *,
    where: str = "",
    priority: int = 0,
    commutative: bool = False,
    lower: bool = False,
) -> Callable[[Callable[..., Any]], PythonRule]:
    """Decorator that makes a function the right side of a rule.

    The function takes by name what the pattern binds. It returns the replacement of the root: an
    operation, a value, a tuple of them for several results, or () to erase a root without results.
    It returns None if the rule does not apply after all. It needs no rewriter: new operations that
    the returned ones depend on are inserted, and get the location of the matched operations. The
    function itself must not change the program.

    Raises InputError for a parameter that is not a plain name.

    Args:
        where, priority, commutative: as in a rule file.
        lower: as `lower` in a rule file.
    """
    # Callers may not be type-checked: @rewrite without () passes the function itself.
    if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        _refuse(_site(pattern), 'need a pattern, as in @rewrite("nn.relu(x)")')

    def wrap(call: Callable[..., Any]) -> PythonRule:
        return PythonRule(call, pattern, where, priority, commutative, lower)

    return wrap


def bind_python_rules(rules: Iterable[PythonRule], vocabulary: Vocabulary) -> RuleSet:
    """The rules, bound to the operations that a vocabulary knows.

    Raises InputError with one message for each rule that is wrong: its pattern, its guards, or a
    parameter that the pattern does not bind.
    """
    bound: dict[str, BoundRule] = {}
    problems: list[str] = []
    for rule in rules:
        try:
            if rule.name in bound:
                _refuse(_site(rule.call), f"rule {rule.name} is already defined")
            bound[rule.name] = _bound(rule, vocabulary)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return RuleSet(tuple(bound.values()), vocabulary)


def _parameters(rule: PythonRule) -> Iterator[str]:
    for each in inspect.signature(rule.call).parameters.values():
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            _refuse(
                _site(rule.call),
                f"rule {rule.name}: parameter {each}; need plain names that the pattern binds",
            )
        yield each.name


def _bound(rule: PythonRule, vocabulary: Vocabulary) -> BoundRule:
    text = _written(rule)
    kind = "lower" if rule.lower else "rule"
    variants, names = bind_pattern(
        text.pattern,
        text.guards,
        text.text,
        text.line,
        vocabulary,
        commutative=rule.commutative,
        kind=kind,
    )
    for name in rule.parameters:
        if name not in names:
            _refuse(
                _site(rule.call),
                f"rule {rule.name}: nothing in its pattern is called {name}"
                f"{suggestion(name, names)}",
            )
    source = Source(rule.name, rule.file, rule.line)
    at = Place(rule.file, rule.line, 1, 2)

    def make(match: Match) -> Made | None:
        return _Making(rule, source, vocabulary, match).made()

    return BoundRule(
        source,
        kind,
        rule.priority,
        variants,
        text.guards,
        make,
        text=text.shown,
        document=inspect.getdoc(rule.call) or "",
        place=at,
    )


# The result of the function


@dataclass
class _Making:
    """One call of a rule's function."""

    rule: PythonRule
    source: Source
    vocabulary: Vocabulary
    match: Match

    @property
    def root(self) -> Operation:
        return self.match.matched[0]

    def made(self) -> Made | None:
        """The checked result; None if the function decided against the rewrite."""
        env = self.match.env
        where = f"{self.root.name} at {place(self.root)}"
        try:
            returned = self.rule.call(**{name: env[name] for name in self.rule.parameters})
        except Exception as error:
            error.add_note(f"in rule {self.source}, applied to {where}")
            raise
        if self.root.parent is None:
            self._refuse("removed the operation that it matched; return its replacement instead")
        values: list[SSAValue] = []
        ends: list[Operation] = []
        for each in self._returned(returned):
            values += each.results if isinstance(each, Operation) else [each]
            owner = each if isinstance(each, Operation) else each.owner
            if isinstance(owner, Operation):
                ends.append(owner)
        ops = _detached(ends)
        for op in ops:
            self._check(op)
        self._drop_the_rest(ops)
        if returned is None:
            return None
        location = fused(reversed(self.match.matched))
        for op in ops:
            for inner in op.walk():
                if not is_known(inner.location):
                    inner.location = location
        return Made(tuple(ops), tuple(values))

    def _returned(self, returned: object) -> Sequence[Operation | SSAValue]:
        items = _items(returned)
        if not all(isinstance(each, Operation | SSAValue) for each in items):
            self._refuse(
                f"returned {_described(returned)}; need an operation, a value, a tuple of them for "
                "several results, or None if the rule does not apply"
            )
        return cast("Sequence[Operation | SSAValue]", items)

    def _check(self, op: Operation) -> None:
        try:
            op.verify()
        except (VerifyException, ValueError) as error:
            self._refuse(f"built {op.name}, which is not well formed: {error}")
        if not self.rule.lower:
            return
        below = self.vocabulary.lowers_to(self.root.name)
        for each in op.walk():
            if below and not below.is_legal(each.name):
                self._refuse(f"built {each.name}, which is not legal at {below}")

    def _drop_the_rest(self, ops: Sequence[Operation]) -> None:
        """Drop the operands of new operations that the function did not return, because guards
        count uses.
        """
        kept, program = set(ops), self.root.get_toplevel_object()
        for value in _values(self.match):
            # New uses are first in the list.
            tops = ((use.operation, use.operation.get_toplevel_object()) for use in value.uses)
            new = tuple(takewhile(lambda each: each[1] is not program, tops))
            for op, top in new:
                if top not in kept:
                    op.drop_all_references()

    def _refuse(self, problem: str) -> NoReturn:
        raise InputError(
            f"{self.source.file}:{self.source.line}: rule {self.rule.name} {problem}; it was "
            f"applied to {self.root.name} at {place(self.root)}"
        ) from None


def _detached(ends: Iterable[Operation]) -> list[Operation]:
    """Operations without a block, and those that they depend on, each after its operands.

    Operations that are already in a block are left out.
    """
    found: dict[Operation, None] = {}
    pending = [(op, False) for op in reversed(tuple(ends))]
    while pending:
        op, ready = pending.pop()
        if op.parent is not None or op in found:
            continue
        if ready:
            found[op] = None
            continue
        pending.append((op, True))
        pending += [
            (value.owner, False)
            for inner in op.walk()
            for value in reversed(inner.operands)
            if isinstance(value.owner, Operation) and value.owner not in found
        ]
    return list(found)


def _values(match: Match) -> Iterator[SSAValue]:
    for op in match.matched:
        yield from op.operands
        yield from op.results


def _items(returned: object) -> Sequence[object]:
    if isinstance(returned, tuple | list):
        return cast("Sequence[object]", returned)
    return () if returned is None else (returned,)


def _described(value: object) -> str:
    """A short description of what a function returned."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_described, _items(cast(object, value))))})"
    if isinstance(value, Operation):
        return value.name
    return "a value" if isinstance(value, SSAValue) else type(value).__name__


# The place of the pattern in its file


@dataclass(frozen=True)
class _Written:
    """A pattern and its guards, with the text that their places refer to.

    Attributes:
        text: starts at line.
        shown: the whole rule as messages show it.
    """

    pattern: Pattern
    guards: tuple[Expression, ...]
    text: str
    line: int
    shown: str


def _written(rule: PythonRule) -> _Written:
    """The parsed texts of a rule. Places refer to its file, if the file contains the texts."""
    code = rule.call.__code__
    linecache.checkcache(code.co_filename)
    source = "".join(linecache.getlines(code.co_filename))
    found = _decorated(source, rule)
    if found is None:
        return _alone(rule)
    function, texts = found
    padded = [_padded(source, text) for text in texts]
    if not padded or padded[0] is None or (rule.where and (len(padded) < 2 or padded[1] is None)):
        return _alone(rule)
    (pattern, line), *more = cast("list[tuple[str, int]]", padded)
    lines = source.split("\n")[rule.line - 1 : function.end_lineno]
    return _Written(
        parse_pattern(pattern, rule.file, line),
        parse_guards(more[0][0], rule.file, more[0][1]) if rule.where else (),
        source,
        1,
        "\n".join(lines),
    )


def _alone(rule: PythonRule) -> _Written:
    """Texts that are computed when the program runs. Their place is the line of the function."""
    pattern = rule.pattern.strip()
    text = f"{pattern} where {rule.where}" if rule.where else pattern
    guards: tuple[Expression, ...] = ()
    if rule.where:
        last = pattern.rpartition("\n")[2]
        padding = " " * (len(last) + len(" where "))
        guards = parse_guards(padding + rule.where, rule.file, rule.line + pattern.count("\n"))
    return _Written(parse_pattern(pattern, rule.file, rule.line), guards, text, rule.line, text)


def _decorated(source: str, rule: PythonRule) -> tuple[ast.FunctionDef, list[ast.expr]] | None:
    """The function in its file, with the texts of its pattern and guards; None if not found."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name != rule.name:
            continue
        for each in node.decorator_list:
            if isinstance(each, ast.Call) and node.decorator_list[0].lineno == rule.line:
                named = {word.arg: word.value for word in each.keywords}
                texts = [*each.args[:1], *(named[key] for key in ("where",) if key in named)]
                values = [text.value for text in texts if isinstance(text, ast.Constant)]
                if values == [rule.pattern, *([rule.where] if "where" in named else [])]:
                    return node, texts
    return None


def _padded(source: str, text: ast.expr) -> tuple[str, int] | None:
    """A text, indented by its column in the file, and its line number.

    None if the file does not contain the text literally, for example if it has escapes.
    """
    segment = ast.get_source_segment(source, text)
    value = text.value if isinstance(text, ast.Constant) else None
    if segment is None or not isinstance(value, str):
        return None
    opening = next((q for q in ('"""', "'''", '"', "'") if segment.startswith(q)), "")
    if not opening or segment != opening + value + opening:
        return None
    line = source.split("\n")[text.lineno - 1]
    column = len(line.encode()[: text.col_offset].decode()) + len(opening)
    return " " * column + value, text.lineno


def _file_of(call: Callable[..., Any]) -> str:
    path = Path(inspect.unwrap(call).__code__.co_filename)
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _line_of(call: Callable[..., Any]) -> int:
    return inspect.unwrap(call).__code__.co_firstlineno


def _site(call: Any) -> str:
    """The place of a function in its file; "" for anything else."""
    return f"{_file_of(call)}:{_line_of(call)}" if inspect.isfunction(call) else "@rewrite"


def _refuse(site: str, problem: str) -> NoReturn:
    raise InputError(f"{site}: {problem}")
