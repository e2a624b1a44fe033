"""Verification before the first pass and after every pass."""

from collections.abc import Callable, Collection

from ..pass_manager import Instrument, Step
from ..upstream import ModuleOp, VerifyException
from ..verify import verify


def anything_legal(_: Step) -> None:
    """Every operation is legal after every pass."""


class VerifyEach(Instrument):
    """Raise VerifyException that blames the pass after which the module is not well formed.

    legal_after: what a step may leave, as in verify; None allows all.
    """

    def __init__(
        self, legal_after: Callable[[Step], Collection[str] | None] = anything_legal
    ) -> None:
        self.legal_after = legal_after

    def before(self, step: Step, module: ModuleOp) -> None:
        """Verify the input, so that the first pass is not blamed for it."""
        if step.index == 0:
            try:
                verify(module)
            except VerifyException as error:
                raise VerifyException(f"input of the pipeline: {error}") from None

    def after(self, step: Step, module: ModuleOp) -> None:
        """Verify what the pass has left."""
        try:
            verify(module, self.legal_after(step))
        except VerifyException as error:
            raise VerifyException(f"after {step}: {error}") from None
