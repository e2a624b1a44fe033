"""Verification before the first pass and after every pass."""

from collections.abc import Callable, Collection
from contextlib import ExitStack

from xdsl.ir import Operation

from ..pass_manager import Instrument, Step
from ..rewriting import Source, Watcher, watched
from ..upstream import ModuleOp, VerifyException
from ..verify import IllFormed, verify


def anything_legal(_: Step) -> None:
    """Every operation is legal after every pass."""


class _Makers(Watcher):
    """The rule that has last made or changed each operation of a pass."""

    def __init__(self) -> None:
        self.by_op: dict[Operation, Source] = {}
        self._source = Source("")

    def begin(self, source: Source, root: Operation) -> None:
        """Remember whose changes follow."""
        self._source = source

    def inserted(self, op: Operation) -> None:
        """Note who made it."""
        self.by_op[op] = self._source

    modified = inserted

    def replaced(self, op: Operation, values: object) -> None:
        """Note who gave its users other operands."""
        for result in op.results:
            for use in result.uses:
                self.by_op[use.operation] = self._source


class VerifyEach(Instrument):
    """Raise VerifyException that blames the pass after which the module is not well formed.

    It names the rule too, if one has last made or changed the operation that is wrong.
    legal_after: what a step may leave, as in verify; None allows all.
    """

    def __init__(
        self, legal_after: Callable[[Step], Collection[str] | None] = anything_legal
    ) -> None:
        self.legal_after = legal_after
        self._makers = _Makers()
        self._watching = ExitStack()

    def before(self, step: Step, module: ModuleOp) -> None:
        """Verify the input, so that the first pass is not blamed for it."""
        if step.index == 0:
            try:
                verify(module)
            except VerifyException as error:
                raise VerifyException(f"input of the pipeline: {error}") from None
        self._makers = _Makers()
        self._watching.enter_context(watched(self._makers))

    def after(self, step: Step, module: ModuleOp) -> None:
        """Verify what the pass has left."""
        self._watching.close()
        try:
            verify(module, self.legal_after(step))
        except IllFormed as error:
            maker = self._makers.by_op.get(error.op)
            by = f"; last changed by {maker}" if maker else ""
            raise VerifyException(f"after {step}: {error}{by}") from None

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Watch no longer."""
        self._watching.close()
