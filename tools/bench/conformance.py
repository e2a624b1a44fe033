"""`make conformance`: the ONNX node suite on abele, operator by operator.

python -m abele.tools.bench.conformance [--operator Gather] [--json FILE]

Every case of the installed `onnx` package is compiled for a few tiles, run on the machine, and
compared within the tolerance of the suite. A case that abele refuses by name counts as refused. A
case counts as bound if it passes, and its model was compiled for the values of some inputs.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from onnx.backend.test.loader import load_model_tests
from rich.table import Table

from ...ir.errors import DoesNotFit, InputError
from ...ir.whole_file import whole_file
from ..driver.onnx_backend import AbeleBackend, as_array
from ..views.terminal import console

VERDICTS = ("passed", "bound", "refused", "wrong", "crashed")
"""The results of a case. bound: passed, compiled for the values of some inputs. crashed: an
exception that is no message to the user."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Verdict:
    """The result of one case. operator: of its first node. why: the message, if it did not pass."""

    case: str
    operator: str
    verdict: str
    why: str = ""


def _operator(case: Any) -> str:
    """The operator of a case's first node."""
    nodes = case.model.graph.node
    return str(nodes[0].op_type) if nodes else "none"


def judge(case: Any) -> Verdict:
    """Run one case of the suite."""
    operator = _operator(case)
    try:
        prepared = AbeleBackend.prepare(case.model)
        for inputs, outputs in case.data_sets:
            found = prepared.run(list(inputs))
            problem = _difference(found, outputs, case.rtol, case.atol)
            if problem:
                return Verdict(case.name, operator, "wrong", problem)
    except (InputError, DoesNotFit, NotImplementedError) as error:
        return Verdict(case.name, operator, "refused", str(error))
    except Exception as error:
        return Verdict(case.name, operator, "crashed", f"{type(error).__name__}: {error}")
    return Verdict(case.name, operator, "bound" if prepared.fixed else "passed")


def _difference(found: Sequence[Any], wanted: Sequence[Any], rtol: float, atol: float) -> str:
    """How outputs differ from those of the suite; "" if they do not."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs; need {len(wanted)}"
    for i, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        mine, other = np.asarray(mine), as_array(other)
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


@app.command()
def conformance(
    operator: Annotated[
        str, typer.Option(help="A regular expression that the names of operators match.")
    ] = "",
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all verdicts to this file.")
    ] = None,
) -> None:
    """Run the ONNX node suite, and print what passes, operator by operator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    with np.errstate(all="ignore"):
        verdicts = [judge(case) for case in cases if re.search(operator, _operator(case))]
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
    for verdict in verdicts:
        if verdict.verdict in ("wrong", "crashed"):
            console().print(f"{verdict.verdict}: {verdict.case}: {verdict.why}", markup=False)


if __name__ == "__main__":
    app()
