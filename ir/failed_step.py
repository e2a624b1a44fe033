"""The step of a pipeline in which an error was raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pass_manager import Step


class FailedStepNote(str):
    """The note on an error that was raised in a pass. step: the step that failed."""

    step: Step

    def __new__(cls, step: Step) -> FailedStepNote:
        """The text of the note, with the step attached."""
        note = super().__new__(cls, f"in {step}")
        note.step = step
        return note


def failed_step(error: BaseException) -> Step | None:
    """The step in which an error was raised; None if no pass was running."""
    notes = getattr(error, "__notes__", ())
    return next((note.step for note in notes if isinstance(note, FailedStepNote)), None)
