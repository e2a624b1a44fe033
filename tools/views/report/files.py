"""The files of a report beside its tables: the page, and the graphs for other tools."""

from __future__ import annotations

from ...driver.executable import Executable
from .collect import Report
from .level_onnx import level_files
from .model_explorer import explorer_files
from .page import PAGE


def files_of(exe: Executable, report: Report, page: str) -> dict[str, str | bytes]:
    """The contents of these files by path.

    Args:
        report: of this program.
        page: the text of its page.
    """
    return {PAGE: page, **explorer_files(report), **level_files(exe, report)}
