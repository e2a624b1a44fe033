"""`make conformance`: the ONNX node suite on abele, operator by operator.

python -m abele.tools.workshop.conformance [--operator Gather] [--json FILE]

Every case of the installed `onnx` package is compiled for a few tiles, run on the machine, and
compared within the tolerance of the suite. Elements of 16-bit floats may also be a few steps of
their type apart, and the report names the cases that need this: the suite's reference rounds after
each of its operations (in a softmax of bfloat16, after each addition of the sum), which alone moves
results by more than the suite's 1e-3. Likewise elements of float32 may be as far apart as the
largest element of their output is rounded: where terms cancel in a Fourier transform, the suite
expects the reference's rounding errors, of up to 2e-7, in place of 0. A case that abele refuses by
name counts as refused. A case counts as bound if it passes, and its model was compiled for the
values of some inputs.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import onnx
import typer
from numpy.typing import NDArray
from onnx.backend.test.loader import load_model_tests
from rich.table import Table

from ...ir.support.errors import DoesNotFit, InputError
from ...ir.support.whole_file import whole_file
from ..driver.files import check_files
from ..driver.onnx_backend import AbeleBackend, as_array
from ..views.script import run_script
from ..views.terminal import console

VERDICTS = ("passed", "bound", "refused", "wrong", "crashed")
"""The results of a case. bound: passed, compiled for the values of some inputs. crashed: an
exception that is no message to the user."""

STEPS = 2
"""The steps of a 16-bit float that two results may be apart. Each may be one step from the exact
value: in the cases of Attention, the reference is up to 1.7 steps away, and abele up to 1.4."""

NARROW_BYTES = 2
"""The size of 16-bit floats in bytes."""


@dataclass(frozen=True)
class Verdict:
    """The result of one case.

    Attributes:
        operator: of its first node.
        why: the message, if it did not pass.
        steps: it passed, but only because 16-bit floats may be STEPS apart, or float32 as far as
            the largest one is rounded.
        drawn: only shapes and dtypes were compared, because the case draws random numbers.
    """

    case: str
    operator: str
    verdict: str
    why: str = ""
    steps: bool = False
    drawn: bool = False


def _operator(case: Any) -> str:
    """The operator of a case's first node."""
    nodes = case.model.graph.node
    return str(nodes[0].op_type) if nodes else "none"


def judge(case: Any) -> Verdict:
    """Run one case of the suite."""
    operator = _operator(case)
    steps = drawn = False
    try:
        prepared = AbeleBackend.prepare(case.model)
        for inputs, outputs in case.data_sets:
            found = prepared.run(list(inputs))
            problem = _difference(found, outputs, case.rtol, case.atol)
            if problem and _draws(case) and _same_types(found, outputs):
                drawn, problem = True, ""
            allowed = problem and (
                _within_steps(found, outputs, case.rtol, case.atol)
                or _within_rounding(found, outputs)
            )
            steps = steps or bool(allowed)
            if problem and not allowed:
                return Verdict(case.name, operator, "wrong", problem)
    except (InputError, DoesNotFit, NotImplementedError) as error:
        return Verdict(case.name, operator, "refused", str(error))
    except Exception as error:
        return Verdict(case.name, operator, "crashed", f"{type(error).__name__}: {error}")
    return Verdict(
        case.name, operator, "bound" if prepared.fixed else "passed", steps=steps, drawn=drawn
    )


RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform")
"""The operators, or beginnings of their names, that draw numbers."""


def _draws(case: Any) -> bool:
    """Whether a case draws random numbers, so that its values cannot be those of the suite."""
    return any(node.op_type.startswith(RANDOM) for node in case.model.graph.node)


def _same_types(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether two lists of outputs have the same shapes and dtypes."""
    pairs = [(np.asarray(a), as_array(b)) for a, b in zip(found, wanted, strict=False)]
    same = all((a.shape, a.dtype) == (b.shape, b.dtype) for a, b in pairs)
    return len(found) == len(wanted) and same


def _difference(found: Sequence[Any], wanted: Sequence[Any], rtol: float, atol: float) -> str:
    """The differences between outputs and the suite's outputs, in words; "" if there are none."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs; need {len(wanted)}"
    for i, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(mine, list) and isinstance(other, list):
            parts = cast("list[Any]", mine), cast("list[Any]", other)
            problem = _difference(*parts, rtol, atol)
            if problem:
                return f"output {i}, a sequence: {problem}"
            continue
        mine, other = as_array(cast(object, mine)), as_array(cast(object, other))
        if (mine.shape, mine.dtype) != (other.shape, other.dtype):
            return (
                f"output {i}: {mine.dtype}{list(mine.shape)}; need {other.dtype}{list(other.shape)}"
            )
        try:
            np.testing.assert_allclose(
                mine.astype(np.float64), other.astype(np.float64), rtol=rtol, atol=atol
            )
        except AssertionError as error:
            return f"output {i}: {' '.join(str(error).split())[:160]}"
        except (TypeError, ValueError):
            if not np.array_equal(mine, other):
                return f"output {i} differs"
    return ""


def _within_steps(found: Sequence[Any], wanted: Sequence[Any], rtol: float, atol: float) -> bool:
    """Whether 16-bit floats are at most STEPS apart, and all other outputs within the tolerance."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(found, wanted, strict=False)]
    narrow = [(a, b) for a, b in pairs if _is_narrow(a) and a.dtype == b.dtype]
    rest = [(a, b) for a, b in pairs if not (_is_narrow(a) and a.dtype == b.dtype)]
    if len(found) != len(wanted) or not narrow:
        return False
    if _difference([a for a, _ in rest], [b for _, b in rest], rtol, atol):
        return False
    return all(a.shape == b.shape and _steps_apart(a, b).max(initial=0) <= STEPS for a, b in narrow)


def _within_rounding(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether outputs of float32 are apart by at most a step of their largest element."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(found, wanted, strict=False)]
    return len(found) == len(wanted) and all(
        a.dtype == b.dtype == np.float32
        and a.shape == b.shape
        and bool((np.abs(a - b) <= np.spacing(np.abs(b).max(initial=0))).all())
        for a, b in pairs
    )


def _is_narrow(array: NDArray[Any]) -> bool:
    return array.dtype.kind not in "biu" and array.dtype.itemsize == NARROW_BYTES


def _steps_apart(found: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """For each element, the number of steps of its 16-bit type between the two arrays.

    NaN is far from every number, and 0 steps from NaN.
    """
    first, second = (_position(each) for each in (found, wanted))
    nans = [np.isnan(each.astype(np.float32)) for each in (found, wanted)]
    apart = np.abs(first - second)
    return np.where(nans[0] & nans[1], 0, np.where(nans[0] ^ nans[1], 1 << 16, apart))


def _position(array: NDArray[Any]) -> NDArray[np.int64]:
    """The position of each 16-bit float in the order of all, from 0 for both zeros."""
    bits = np.ascontiguousarray(array).view(np.int16).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def conformance(
    operator: Annotated[
        str, typer.Option(help="A regular expression that the names of operators match.")
    ] = "",
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all verdicts to this file.")
    ] = None,
) -> None:
    """Run the ONNX node suite, and print what passes, operator by operator."""
    try:
        wanted = re.compile(operator)
    except re.error as error:
        raise InputError(f"--operator {operator}: no regular expression: {error}") from None
    check_files({}, {"--json": report})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    with np.errstate(all="ignore"):
        verdicts = [judge(case) for case in cases if wanted.search(_operator(case))]
    if not verdicts:
        raise InputError(f"--operator {operator}: matches no operator of the suite")
    _print(verdicts)
    if report is not None:
        with whole_file(report) as file:
            file.write(json.dumps([vars(v) for v in verdicts], indent=1).encode())
    raise typer.Exit(int(any(v.verdict in ("wrong", "crashed") for v in verdicts)))


def _print(verdicts: Sequence[Verdict]) -> None:
    by_operator: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        by_operator[verdict.operator][verdict.verdict] += 1
    table = Table(title=f"ONNX node suite, onnx {onnx.__version__}")
    table.add_column("operator")
    for name in VERDICTS:
        table.add_column(name, justify="right")
    for name, counts in sorted(by_operator.items()):
        table.add_row(name, *(str(counts[v] or "") for v in VERDICTS))
    table.add_section()
    total = Counter(v.verdict for v in verdicts)
    table.add_row(f"all {len(verdicts)}", *(str(total[v]) for v in VERDICTS))
    console().print(table)
    near = [verdict.case for verdict in verdicts if verdict.steps]
    if near:
        text = f"{len(near)} passed because floats may be {STEPS} roundings apart: "
        console().print(text + ", ".join(near), markup=False)
    drawn = [verdict.case for verdict in verdicts if verdict.drawn]
    if drawn:
        text = f"{len(drawn)} draw random numbers, of which only shapes and types were compared: "
        console().print(text + ", ".join(drawn), markup=False)
    for verdict in verdicts:
        if verdict.verdict in ("wrong", "crashed"):
            console().print(f"{verdict.verdict}: {verdict.case}: {verdict.why}", markup=False)


if __name__ == "__main__":
    run_script(conformance)
