"""One step of a pipeline, and the step in which an error was raised. Imports no xDSL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .upstream import Context, ModulePass


@dataclass(frozen=True)
class RunningPass:
    """One pass at its position in a pipeline that is running."""

    index: int
    pipeline: tuple[ModulePass, ...]
    context: Context

    @property
    def current(self) -> ModulePass:
        """The pass of this step."""
        return self.pipeline[self.index]

    @property
    def rest(self) -> tuple[ModulePass, ...]:
        """This pass and all later ones."""
        return self.pipeline[self.index :]

    def __str__(self) -> str:
        return f"pass '{self.current.name}' ({self.index + 1} of {len(self.pipeline)})"


class FailedStepNote(str):
    """The note on an error that was raised in a pass.

    Attributes:
        step: the step that failed.
    """

    step: RunningPass

    def __new__(cls, step: RunningPass) -> FailedStepNote:
        """The text of the note, with the step attached."""
        note = super().__new__(cls, f"in {step}")
        note.step = step
        return note


def failed_step(error: BaseException) -> RunningPass | None:
    """The step in which an error was raised; None if no pass was running."""
    notes = getattr(error, "__notes__", ())
    return next((note.step for note in notes if isinstance(note, FailedStepNote)), None)
