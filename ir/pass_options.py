"""The options of passes: their types, defaults and descriptions."""

import dataclasses
import re
from collections.abc import Collection
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from .upstream import ModulePass, isa


@dataclass(frozen=True)
class PassOption:
    """The documentation of an option of a pass.

    Attributes:
        default: as a pipeline spells it; None if the option is required.
        meaning: its description in the pass, or "".
    """

    name: str
    type: str
    default: str | None
    meaning: str

    def __str__(self) -> str:
        needed = "needed" if self.default is None else f"default {self.default}"
        return f"{self.name}: {self.type}, {needed}" + (f"; {self.meaning}" * bool(self.meaning))


def pass_options(cls: type[ModulePass]) -> tuple[PassOption, ...]:
    """The options of a pass.

    The meaning of an option is its field's metadata "doc", or else the text after "name: " in the
    docstring of the class, or of one that it inherits from.
    """
    types = option_types(cls)
    fields = [each for each in dataclasses.fields(cls) if each.name in types]
    # Options that cannot be given by position, as those of a base may be, come last.
    fields.sort(key=lambda each: each.kw_only is True)
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        meanings |= _described(base.__doc__ or "", types)
    return tuple(
        PassOption(
            dashed(each.name),
            type_words(types[each.name]),
            _default_text(each),
            str(each.metadata.get("doc") or meanings.get(each.name, "")),
        )
        for each in fields
    )


def dashed(option: str) -> str:
    """The name of an option as pipelines spell it."""
    return option.replace("_", "-")


def _default_text(option: dataclasses.Field[Any]) -> str | None:
    value = cast(object, option.default)
    if option.default_factory is not dataclasses.MISSING:
        value = cast(object, option.default_factory())
    if value is dataclasses.MISSING:
        return None
    if isinstance(value, str):
        return f'"{value}"'
    items = cast(tuple[object, ...], value) if isinstance(value, tuple) else (value,)
    texts = [str(item).lower() for item in items if item is not None]
    return ",".join(texts) or "none"


def _described(text: str, names: Collection[str]) -> dict[str, str]:
    """The texts that follow "name: " in a docstring, up to the next name or blank line."""
    if not names:
        return {}
    found: dict[str, str] = {}
    starts = re.compile(rf"(?:^|(?<=\s))({'|'.join(map(re.escape, names))}): ")
    for paragraph in re.split(r"\n\s*\n", text):
        matches = list(starts.finditer(paragraph))
        for match, end in zip(matches, [*(m.start() for m in matches[1:]), len(paragraph)]):
            found.setdefault(match[1], " ".join(paragraph[match.end() : end].split()).rstrip(".;"))
    return found


def option_types(cls: type[ModulePass]) -> dict[str, Any]:
    """The type of each option, by the name of its field."""
    types: dict[str, Any] = get_type_hints(cls)
    return {
        each.name: types[each.name]
        for each in dataclasses.fields(cls)
        if each.init and each.name != "name"
    }


def matches_type(value: tuple[object, ...], hint: Any) -> bool:
    """Whether the values that a pipeline gives for an option match the option's type."""
    if not value:
        return NoneType in member_types(hint)
    return (len(value) == 1 and isa(value[0], hint)) or isa(value, hint)


_WORDS: dict[Any, tuple[str, str]] = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("text", "texts"),
    bool: ("true or false", "true or false"),
    NoneType: ("none", "none"),
}


def is_option_type(hint: Any) -> bool:
    """Whether a pipeline can express values of a type."""
    if get_origin(hint) in (Union, UnionType):
        return any(map(is_option_type, get_args(hint)))
    if get_origin(hint) is tuple:
        return all(map(is_option_type, member_types(hint) - {...}))
    return get_origin(hint) is Literal or hint in _WORDS


def type_words(hint: Any) -> str:
    """A type in words: "an integer or none", "one of a, b", "a list a,b,... of integers"."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, UnionType):
        choices = get_args(hint)
        # An integer is a number too.
        named = [each for each in choices if each is not int or float not in choices]
        return " or ".join(map(type_words, named))
    if get_origin(hint) is tuple:
        kinds = sorted(
            _WORDS[leaf][1] if leaf in _WORDS else type_words(leaf)
            for leaf in member_types(hint) - {...}
        )
        return f"a list a,b,... of {' or '.join(kinds)}"
    return _WORDS.get(hint, (str(hint),))[0]


def member_types(hint: Any) -> set[Any]:
    """The types in a union or tuple type, including nested ones; else the type itself."""
    if get_origin(hint) in (Union, UnionType, tuple):
        return {leaf for each in get_args(hint) for leaf in member_types(each)}
    return {hint}
