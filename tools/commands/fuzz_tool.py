"""abele fuzz --tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import typer
from rich.table import Table

from ...ir.support.errors import InputError
from ...ir.support.whole_file import check_folder
from ..views.terminal import console
from ..views.user_errors import CHECK_FAILED


def fuzz_tool(
    spec: str,
    python: str | None,
    examples: int | None,
    seconds: float | None,
    seed: int | None,
    operators: Sequence[str],
    output: Path,
    reduce_seconds: float | None,
    tool_seconds: float | None,
    equivalents: bool = False,
    load: Sequence[str] = (),
) -> None:
    """Test a tool of ONNX models, print each new finding, and exit with 1 if there is one.

    Raises InputError.

    Args:
        spec: as for tool_of.
        tool_seconds: processor seconds that the tool has for one model.
        equivalents: whether the tool is compared with itself only, on equivalent models.
        load: files with rules that make equivalents too, and with what they need.
    """
    try:
        # The generator asks onnxruntime for its kernels. The import takes a second.
        from ..testing.onnx_tools.campaign import REDUCING, Campaign  # noqa: PLC0415
        from ..testing.onnx_tools.equivalents import own_rules  # noqa: PLC0415
        from ..testing.onnx_tools.finding import Finding  # noqa: PLC0415
        from ..testing.onnx_tools.judge import KINDS, NOT_JUDGED  # noqa: PLC0415
        from ..testing.onnx_tools.known import tool_of  # noqa: PLC0415
        from ..testing.onnx_tools.worker import Limits  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(
            f"--tool needs {error.name}, which is not installed: pip install 'abele[test]'"
        ) from None
    check_folder(output)
    limits = Limits() if tool_seconds is None else Limits(seconds=tool_seconds)
    reducing = REDUCING if reduce_seconds is None else reduce_seconds
    tool = tool_of(spec, python)
    rules = own_rules() if equivalents else None
    if rules is not None and load:
        from ..proving.equivalent_rules import rules_for_equivalents  # noqa: PLC0415

        rules = rules_for_equivalents(load) + rules
    campaign = Campaign(tool, limits, python, operators or None, reducing, rules)
    number = Random().randrange(1 << 32) if seed is None else seed
    terminal = console()
    version = f" {campaign.version}" if campaign.version else ""
    terminal.print(f"{spec}{version}, seed {number}", highlight=False)
    done: list[tuple[Finding, Path]] = []
    interrupted = False
    try:
        for each in campaign.findings(examples, seconds, number):
            place = each.save(output / f"{each.found.kind}-{each.example}")
            done.append((each, place))
            terminal.print(f"{each.headline}\n  {place}", highlight=False, markup=False)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        campaign.end()
    terminal.print(str(campaign.report), highlight=False)
    report = campaign.report
    for title, counts, meanings in (
        ("models that show nothing", report.not_judged, NOT_JUDGED),
        ("models on which the tool fails", report.kinds, KINDS),
        ("pairs of equivalent models", report.pairs, {}),
    ):
        if counts:
            terminal.print(_table(title, counts, meanings))
    if done:
        raise typer.Exit(CHECK_FAILED)
    if interrupted:
        raise KeyboardInterrupt


def replay_finding(folder: Path, python: str | None) -> None:
    """Run a saved finding again, and exit with 1 if it is still one. Raises InputError."""
    from ..testing.onnx_tools.check import replayed  # noqa: PLC0415

    shown = replayed(folder, python)
    console().print(shown or "nothing is wrong any more", highlight=False, markup=False)
    if shown:
        raise typer.Exit(CHECK_FAILED)


def _table(title: str, counts: Counter[str], meanings: Mapping[str, str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("count", justify="right")
    if meanings:
        table.add_column("meaning")
    for name, count in counts.most_common():
        told = [meanings.get(name, "")] if meanings else []
        table.add_row(name, f"{count:,}", *told)
    return table
