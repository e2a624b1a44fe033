"""Prints the syntax trees of rules as text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ....ir.rules.evaluate import expression_text
from ....ir.rules.syntax import (
    Class,
    Declaration,
    Field,
    LiteralValue,
    Made,
    Name,
    Nested,
    NewShaped,
    NewType,
    Operand,
    Pattern,
    Reference,
    Rest,
    Rule,
    RuleFile,
    Shaped,
    Size,
    TypeName,
    TypeOf,
    TypePattern,
    Variable,
)


def file_text(file: RuleFile) -> str:
    """The text of a file of rules. It parses to the same syntax tree."""
    parts = [_class(each) for each in file.classes if each.members is not None]
    parts += [f"class {each.name}" for each in file.classes if each.members is None]
    parts += map(_declaration, file.declarations)
    parts += map(rule_text, file.rules)
    return "\n".join(parts) + "\n"


def rule_text(rule: Rule) -> str:
    """The text of a rule, with one part per line."""
    head = [f"@priority({rule.priority})"] if rule.priority else []
    head += ["@commutative"] if rule.commutative else []
    lets = "".join(f"let {each.name} = {made_text(each.build)}; " for each in rule.lets)
    results = [made_text(each) for each in rule.results]
    made = "erase" if not results else results[0] if len(results) == 1 else _tuple(results)
    lines = [*head, f"{rule.kind} {rule.name}:", f"  {pattern_text(rule.pattern)}"]
    lines.append(f"  => {lets}{made}")
    if rule.guards:
        lines.append(f"  where {', '.join(map(expression_text, rule.guards))}")
    return "\n".join(lines)


def pattern_text(pattern: Pattern) -> str:
    """The text of a pattern."""
    text = f"{'|'.join(pattern.heads)}({', '.join(map(_operand, pattern.operands))})"
    fields = [*map(_field, pattern.fields), *(["..."] if pattern.others else [])]
    if fields:
        text += f" {{{', '.join(fields)}}}"
    if pattern.name:
        text += f" as {pattern.name}"
    return text + _types([_type(each) for each in pattern.types])


def made_text(made: Made) -> str:
    """The text of a replacement."""
    if isinstance(made, Reference):
        return made.name + _index(made.index)
    operands = (_rest(e) if isinstance(e, Rest) else made_text(e) for e in made.operands)
    text = f"{made.head}({', '.join(operands)})"
    if made.settings:
        settings = (f"{each.name} = {expression_text(each.value)}" for each in made.settings)
        text += f" {{{', '.join(settings)}}}"
    if made.like:
        text += f" like {made.like}"
    return text + _types([_new_type(each) for each in made.types])


def _class(each: Class) -> str:
    return f"class {each.name} = {' | '.join(name for name, _ in each.members or ())}"


def _declaration(each: Declaration) -> str:
    kinds = ", ".join(each.kinds)
    if each.result:
        return f"function {each.name}({kinds}) -> {each.result}"
    return f"guard {each.name}({kinds})"


def _operand(operand: Operand) -> str:
    if isinstance(operand, Variable):
        return operand.name if operand.type is None else f"{operand.name}: {_type(operand.type)}"
    if isinstance(operand, Nested):
        return pattern_text(operand.pattern) + _index(operand.index)
    return _rest(operand)


def _field(field: Field) -> str:
    name = json.dumps(field.name) if field.is_note else field.name
    value = field.value.name if isinstance(field.value, Name) else literal_text(field.value)
    return f"{name} = {value}"


def literal_text(value: LiteralValue) -> str:
    """The text of a literal: a number, string, list, true, false or none."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal_text, value))}]"
    return "none" if value is None else json.dumps(value)


def _type(type_: TypePattern) -> str:
    if isinstance(type_, TypeName):
        return type_.name
    return _shaped(type_)


def _shaped(type_: Shaped) -> str:
    sizes = (_rest(each) if isinstance(each, Rest) else _size(each) for each in type_.sizes)
    return f"{type_.element or '?'}[{', '.join(sizes)}]"


def _size(size: Size) -> str:
    return str(size.value)


def _new_type(type_: NewType) -> str:
    if isinstance(type_, TypeName):
        return type_.name
    if isinstance(type_, TypeOf):
        return f"type({type_.name})"
    return _new_shaped(type_)


def _new_shaped(type_: NewShaped) -> str:
    sizes = (
        _rest(each) if isinstance(each, Rest) else expression_text(each) for each in type_.sizes
    )
    return f"{type_.element}[{', '.join(sizes)}]"


def _types(types: Sequence[str]) -> str:
    if not types:
        return ""
    return f": {types[0] if len(types) == 1 else _tuple(types)}"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)})"


def _rest(rest: Rest) -> str:
    return f"...{rest.name}"


def _index(index: int | None) -> str:
    return "" if index is None else f"#{index}"
