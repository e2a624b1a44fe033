"""Verifies the module before the first pass and after every pass."""

from collections.abc import Callable
from contextlib import ExitStack

from xdsl.ir import Operation

from ..level import Level
from ..pass_manager import Instrument
from ..rewriting import Source, Watcher, watched
from ..step import RunningPass
from ..upstream import ModuleOp, VerifyException
from ..verify import IllFormed, verify


def no_level(step: RunningPass, module: ModuleOp) -> None:
    """No restriction: the level after a pass is not known."""


class _LastRules(Watcher):
    """Records the rule that last inserted or changed each operation in a pass."""

    def __init__(self) -> None:
        self.by_op: dict[Operation, Source] = {}
        self._source = Source("")

    def begin(self, source: Source, root: Operation) -> None:
        """Remember the rule that makes the following changes."""
        self._source = source

    def inserted(self, op: Operation) -> None:
        """Record the rule for an operation that it inserted or modified."""
        self.by_op[op] = self._source

    modified = inserted

    def replaced(self, op: Operation, values: object) -> None:
        """Record the rule for the users, whose operands it replaces."""
        for result in op.results:
            for use in result.uses:
                self.by_op[use.operation] = self._source


class VerifyEach(Instrument):
    """Raise VerifyException, naming the pass, if the module is not well formed after a pass.

    The message also names the rule that last inserted or changed the wrong operation, if any.

    Attributes:
        level_after: returns the level of the module after a step; None if it is not known.
    """

    def __init__(
        self, level_after: Callable[[RunningPass, ModuleOp], Level | None] = no_level
    ) -> None:
        self.level_after = level_after
        self._last_rules = _LastRules()
        self._watching = ExitStack()

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Verify the input, so that the first pass is not blamed for it."""
        if step.index == 0:
            try:
                verify(module)
            except VerifyException as error:
                raise VerifyException(f"input of the pipeline: {error}") from None
        self._last_rules = _LastRules()
        self._watching.enter_context(watched(self._last_rules))

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Verify the module after the pass."""
        self._watching.close()
        try:
            verify(module, self.level_after(step, module))
        except IllFormed as error:
            rule = self._last_rules.by_op.get(error.op)
            by = f"; last changed by {rule}" if rule else ""
            raise VerifyException(f"after {step}: {error}{by}") from None

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        """Stop watching."""
        self._watching.close()
