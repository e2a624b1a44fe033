"""Runs a pipeline of xDSL passes under instruments, and parses a pipeline from text."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from .pass_options import (
    dashed,
    is_option_type,
    matches_type,
    member_types,
    option_types,
    type_words,
)
from .step import FailedStepNote, RunningPass
from .support.errors import InputError
from .support.suggestions import suggestion, suggestion_or
from .upstream import ArgSpec, ArgSpecParseError, Context, ModuleOp, ModulePass, parse_arg_specs

PassEntry: TypeAlias = str | type[ModulePass] | Callable[[], type[ModulePass]]
"""A pass in a registry: its class, "module:Class", or a function that imports its class."""

ABELE, XDSL = "abele-", "xdsl-"
"""Prefixes of full names. They choose between a pass of abele and one of xDSL of the same name."""


class Instrument:
    """An observer of a pipeline run. Each hook does nothing unless overridden."""

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Called before the pass, with the module that it will transform."""

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Called after the pass, with its result. An error raised here fails the pass."""

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        """Called when the pass or a hook has raised. The error then propagates to the caller."""


@dataclass(frozen=True)
class PassManager:
    """A pipeline of passes, and the instruments around each pass.

    Instruments nest: the first is the outermost, called first before a pass and last after it. Put
    a timer last. Put an instrument that must see the failures of all others first.
    """

    passes: tuple[ModulePass, ...]
    instruments: tuple[Instrument, ...] = ()

    def run(self, context: Context, module: ModuleOp) -> None:
        """Apply the passes to a module in place. An error gets a note that names the pass."""
        for index in range(len(self.passes)):
            self._run_step(RunningPass(index, self.passes, context), module)

    def _run_step(self, step: RunningPass, module: ModuleOp) -> None:
        try:
            for instrument in self.instruments:
                instrument.before(step, module)
            step.current.apply(step.context, module)
            for instrument in reversed(self.instruments):
                instrument.after(step, module)
        except Exception as error:
            error.add_note(FailedStepNote(step))
            for instrument in reversed(self.instruments):
                instrument.failed(step, module, error)
            raise


# xDSL's lexer requires a point before an exponent, and quotes around text with : . / * or + in it.
# The first alternative matches quoted text and numbers, which stay unchanged.
_UNREADABLE = re.compile(
    r"""(?P<kept>"(?:\\.|[^"\\])*"|(?<=[=,])[-+]?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?(?=[\s,}]|$))"""
    r"|(?<=[=,])(?P<pointless>[-+]?\d+)(?=[eE][-+]?\d+(?:[\s,}]|$))"
    r"|(?<=[=,])(?P<bare>[\w.:/*+-]*[.:/*+][\w.:/*+-]*)(?=[\s,}])"
)


def _readable(match: re.Match[str]) -> str:
    if match["bare"] is not None:
        return f'"{match["bare"]}"'
    return match["kept"] or f"{match['pointless']}."


def pipeline_spec(passes: Sequence[ModulePass]) -> str:
    """The text of a pipeline, which parse_pipeline turns back into these passes."""
    return ",".join(str(each.spec()) for each in passes)


def parse_pipeline(spec: str, registry: Mapping[str, PassEntry]) -> tuple[ModulePass, ...]:
    """Parse a pipeline such as 'split-reductions,merge-copies{limit=4}'.

    Raises InputError for bad syntax, for an unknown pass (with similar names) and for bad options.

    Args:
        registry: passes by name; only the classes of passes in the text are imported.
    """
    return tuple(_instance(each, registry) for each in parse_specs(spec))


def parse_specs(spec: str) -> tuple[ArgSpec, ...]:
    """Parse the names and options of a pipeline without looking up the passes.

    Raises InputError for bad syntax.
    """
    try:
        return tuple(parse_arg_specs(_UNREADABLE.sub(_readable, spec.strip())))
    except ArgSpecParseError as error:
        message = str(error).split(":\n", 1)[-1].rstrip()
        raise InputError(f"pipeline '{spec}': {message}") from None
    except ValueError as error:
        # An integer has more digits than Python converts.
        raise InputError(f"pipeline '{spec[:80]}...': {error}") from None
    except RecursionError:
        raise InputError(f"pipeline '{spec[:80]}...': nested too deeply") from None


_UNQUOTED = re.compile(r"(?:[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|true|false)\Z")
"""Text that would be a number or a boolean without its quotes."""


def check_options(cls: type[ModulePass]) -> None:
    """Raise InputError if a pass has an option whose type a pipeline cannot express."""
    for option, hint in option_types(cls).items():
        if not is_option_type(hint):
            called = hint.__name__ if isinstance(hint, type) else str(hint)
            raise InputError(
                f"pass '{cls.name}': option '{dashed(option)}' has type {called}, which a pipeline "
                "cannot express; need int, float, bool, str, a Literal, a tuple of these, or one "
                "of them or None"
            )


def load_pass(name: str, registry: Mapping[str, PassEntry]) -> type[ModulePass]:
    """The class of a pass. Raises InputError if there is no pass of this name."""
    entry = registry.get(name)
    if entry is None:
        raise unknown_pass(name, registry)
    if isinstance(entry, type):
        return entry
    if not isinstance(entry, str):
        return entry()
    module, _, attribute = entry.partition(":")
    return getattr(import_module(module), attribute)


class UnknownPass(InputError):
    """A pipeline names a pass that does not exist.

    Attributes:
        name: what it names.
    """

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


def unknown_pass(name: str, known: Iterable[str]) -> UnknownPass:
    """The error for an unknown pass. For a full name, it suggests only names of the same prefix."""
    candidates = (each for each in known if _prefix(each) == _prefix(name))
    hint = suggestion_or(
        name,
        candidates,
        "abele opt --list-passes lists them",
        "for a pass of yours, load its file with --load",
    )
    return UnknownPass(f"no pass '{name}'{hint}", name)


def _prefix(name: str) -> str:
    return next((full for full in (ABELE, XDSL) if name.startswith(full)), "")


def _instance(spec: ArgSpec, registry: Mapping[str, PassEntry]) -> ModulePass:
    cls = load_pass(spec.name, registry)
    options = option_types(cls)
    values = {key.replace("-", "_"): value for key, value in spec.parameters.items()}
    for option in values:
        if option not in options:
            hint = suggestion(dashed(option), map(dashed, options))
            raise InputError(f"pass '{spec.name}': no option '{dashed(option)}'{hint}")
    numbers = {
        option: tuple(map(_as_float, value)) if _wants_float(options[option]) else value
        for option, value in values.items()
    }
    for option, value in numbers.items():
        if not matches_type(value, options[option]):
            given = ",".join(map(str, value)) or "nothing"
            need = f"need {type_words(options[option])}"
            quoted = [each for each in value if isinstance(each, str) and _UNQUOTED.match(each)]
            if quoted:
                given, need = f'"{quoted[0]}" is text', f"{need}: drop the quotes"
            raise InputError(f"pass '{spec.name}': option '{dashed(option)}': {given}; {need}")
    for option in cls.required_fields() - set(numbers) - {"name"}:
        raise InputError(
            f"pass '{spec.name}': option '{dashed(option)}' is required: "
            f"{type_words(options[option])}"
        )
    try:
        return cls.from_spec(ArgSpec(cls.name, numbers))
    except ValueError as error:
        raise InputError(f"pass '{spec.name}': {error}") from error


def _wants_float(hint: Any) -> bool:
    """Whether an option takes floats but neither text nor integers."""
    kinds = member_types(hint)
    return float in kinds and not kinds & {str, int}


def _as_float(value: str | int | bool | float) -> str | int | bool | float:
    """An integer as a float: xDSL reads 1 as an integer, which it does not accept for a float."""
    return float(value) if type(value) is int else value
