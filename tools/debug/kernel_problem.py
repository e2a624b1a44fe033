"""Compare a plain run with a run that writes every byte, and find the kernel that makes them
differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...backends.evaluate.binder import Binder
from ...backends.host.binders import best_binder
from ...backends.host.mixed import CallKind
from ...backends.op_check import Finding
from ...backends.target import Target
from ...ir.support.errors import one_line
from ...ir.upstream import ModuleOp
from ..driver.arrays import Array
from ..driver.executable import MACHINE, Executable
from .machine_results import Difference, Results, difference
from .wrong_kernel import REPORT, KernelSearch, WrongKernel


@dataclass(frozen=True)
class KernelProblem:
    """The problem of a run's kernels.

    Attributes:
        is_found: whether the text names the operation.
    """

    text: str
    is_found: bool


def kernel_problem(
    exe: Executable,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    watched: Results,
    finding: Finding | None,
) -> KernelProblem | None:
    """The problem of a program's kernels; None if two runs do not show any.

    Args:
        outputs: of the run that the user has seen.
        watched: the results of a run that writes every byte, from the first states.
        finding: the first operation outside its bound in the latter run.
    """
    differs = _differs(exe, inputs, outputs, watched)
    if differs is None and finding is None:
        return None
    module, target = exe.module_at(MACHINE), exe.target
    if best_binder() is Binder:
        # All calls are NumPy's, so no kernel is to blame.
        return None if differs is None else _unexplained(differs, "")
    search = KernelSearch(module, target, inputs, exe.signature.trimmed)
    if differs is None:
        assert finding is not None
        wrong = search.at_finding(finding)
        return None if wrong is None else KernelProblem(f"{finding}. {wrong}", True)
    wrong = search.first_wrong(watched, CallKind.COMPILED) or search.first_unlike_numpy()
    if wrong is not None:
        return KernelProblem(str(wrong), True)
    if exe.runners.is_kept_ready:
        return _unexplained(differs, KEPT)
    return _unexplained(differs, AGAIN)


KEPT = (
    ". The cache keeps this program ready to run, and bound anew it gives the right bits. "
    "`--no-cache` binds it anew; `abele cache clear` removes what is kept"
)
"""The advice if the only wrong program is the one that the cache keeps ready to run."""

AGAIN = ". It cannot be found where they part: repeated runs agree"
"""The text about a difference that repeated runs do not show."""


def _unexplained(differs: Difference, what: str) -> KernelProblem:
    runs = differs.words("the plain run", "one that writes every byte")
    return KernelProblem(f"two runs of one program differ: {runs}{what}. {REPORT}", False)


def _differs(
    exe: Executable, inputs: Mapping[str, Array], outputs: Mapping[str, Array], watched: Results
) -> Difference | None:
    """The difference of the run that the user has seen, or of one more run of the warm program."""
    differs = difference(Results(outputs), Results(watched.outputs, fault=watched.fault))
    if differs is not None:
        return differs
    try:
        again = exe.runners.repeated(inputs)
    except MemoryError:
        raise
    except Exception as error:
        # The first run ended with results.
        return difference(Results({}, fault=one_line(error)), watched)
    if again is None:
        return None
    if again.before is not None:
        differs = difference(Results(outputs, again.before), watched)
    outputs = exe.signature.trimmed(again.results)
    return differs or difference(Results(outputs, again.after), watched)


def module_kernel_problem(
    module: ModuleOp, target: Target, inputs: Mapping[str, Array], right: Results
) -> WrongKernel | Difference | None:
    """The operation whose kernel makes a plain run differ from a run of NumPy's calls.

    Returns the difference if no single operation makes it.

    Args:
        right: the results of the latter run.
    """
    if best_binder() is Binder:
        return None
    search = KernelSearch(module, target, inputs)
    differs = search.plain_differs(right)
    return None if differs is None else search.first_wrong(right, CallKind.NUMPY) or differs
