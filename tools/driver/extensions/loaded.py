"""The extensions in use, together with abele's own passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ....ir.support.deferred import deferred
from ....ir.support.errors import InputError
from ....ir.well_known import LEVEL_NAMES
from .extension import Extension
from .part import Part

with deferred(__name__):
    from xdsl.ir import Dialect, Operation

    from ....backends.target import Target
    from ....dialects.levels import LEVELS
    from ....ir.context import AbeleContext
    from ....ir.level import Level
    from ....ir.pass_manager import PassEntry, UnknownPass, load_pass, parse_pipeline
    from ....ir.upstream import ModulePass
    from ....passes.names import pipeline_passes
    from ....passes.pipelines import PASSES, expand, shorthand_from
    from ..context import new_context
    from .added_level import AddedLevel
    from .user_code import user_operation, user_traceback


def _own_passes() -> Mapping[str, PassEntry]:
    return PASSES


@dataclass(frozen=True)
class Extensions:
    """All extensions that were loaded, and abele's own passes.

    Attributes:
        load: the paths that were given.
        folders: where users' code lies.
        warnings: from checking users' rules.
        added: the levels that pipelines go through besides abele's.
    """

    passes: Mapping[str, PassEntry] = field(default_factory=_own_passes)
    dialects: tuple[Dialect, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict[str, "Target"])
    load: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    added: tuple[AddedLevel, ...] = ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """Abele's levels, and those of the extensions, from the highest to the lowest."""
        added = {each.level.name for each in self.added}
        return tuple(each for each in LEVELS if each.like is None or each.name in added)

    def shorthand_from(self, start: Level) -> str:
        """The default pipeline from a level to exchange: "tile,exchange"."""
        return shorthand_from(start, self.levels)

    def context(self) -> AbeleContext:
        """A context with the dialects of every level and those of users."""
        return new_context(self.dialects)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command-line arguments that load the same files."""
        return tuple(word for path in self.load for word in ("--load", path))

    def pipeline(
        self, spec: str, target: str, start: Level | None = None
    ) -> tuple[ModulePass, ...]:
        """The passes of a pipeline: abele's, users' and xDSL's.

        A level stands for the passes that lead there. Raises InputError. If the spec names a rule
        instead of a pass, the message says which pass runs the rule.

        Args:
            target: a spelling of a target, for the passes that need one.
            start: the level of the module; None if it is not known.
        """
        known = pipeline_passes(self.passes)
        try:
            return parse_pipeline(expand(spec, target, known, self.levels, start), known)
        except InputError as error:
            if not isinstance(error, UnknownPass):
                raise
            owners = [f"'{each}{{only={error.name}}}'" for each in self._passes_with(error.name)]
            if not owners:
                raise
            message = f"no pass '{error.name}', but a rule; run it with {' or '.join(owners)}"
            raise UnknownPass(message, error.name) from None

    def _passes_with(self, rule: str) -> list[str]:
        """The names of the passes that apply a rule."""
        from ....ir.rules.rule_set import RulesPass  # noqa: PLC0415  0.1 s, for a message

        loaded = {name: load_pass(name, self.passes) for name in self.passes}
        return [
            name
            for name, each in loaded.items()
            if issubclass(each, RulesPass) and rule in each.rule_set().names
        ]

    def provides(self, each: ModulePass) -> bool:
        """Whether a pass comes from an extension."""
        return each.name not in PASSES

    def traceback(self, error: BaseException) -> str:
        """The part of an error's traceback that lies in users' code; "" if there is none."""
        return user_traceback(error, self.folders)

    def operation(self, error: BaseException) -> Operation | None:
        """The operation that users' code was working on when it failed; None if unknown."""
        return user_operation(error, self.folders)


def combined(parts: Sequence[Part], load: Sequence[str] = ()) -> Extensions:
    """All parts and abele's own passes. Raises InputError for two passes with one name."""
    if not parts:
        return Extensions(load=tuple(load))
    passes: dict[str, PassEntry] = dict(PASSES)
    owners = dict.fromkeys((*PASSES, *LEVEL_NAMES), "abele")
    for part in parts:
        for each in part.extension.passes:
            if each.name in owners and passes.get(each.name) is not each:
                raise InputError(
                    f"{part.owner}: pass '{each.name}' is already defined by {owners[each.name]}; "
                    "need another name"
                )
            passes[each.name], owners[each.name] = each, part.owner
    whole = sum((part.extension for part in parts), Extension())
    return Extensions(
        passes,
        tuple(whole.dialects),
        {target.name: target for target in whole.targets},
        tuple(load),
        tuple(dict.fromkeys(part.folder for part in parts)),
        tuple(warning for part in parts for warning in part.warnings),
        tuple(whole.levels),
    )
