"""The edge: argv, files, printing. docs/public.md lists the public names.

Names are imported on first use: pytest imports the plug-in in tools/testing in every project of an
environment, and must not import the rest of abele with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .driver.report_view import FRAMES, VIEWS, ReportView

if TYPE_CHECKING:
    from ..ir.support.arrays import Array
    from .driver.compile import compile_model
    from .driver.decoding.decoder import Decoder, Sampling
    from .driver.executable import Executable
    from .driver.from_jax import from_jax
    from .driver.from_torch import from_torch
    from .driver.session import Session
    from .driver.training import Training
    from .quantising.quantise import quantise
    from .sweeps.sweep import sweep
    from .views.report.load import load_report

_HOME = {
    "Decoder": "driver.decoding.decoder",
    "Executable": "driver.executable",
    "Sampling": "driver.decoding.decoder",
    "Session": "driver.session",
    "Training": "driver.training",
    "compile_model": "driver.compile",
    "from_jax": "driver.from_jax",
    "from_torch": "driver.from_torch",
    "load_report": "views.report.load",
    "quantise": "quantising.quantise",
    "sweep": "sweeps.sweep",
}
"""The module that defines each name."""


def _report(exe: Executable) -> ReportView:
    """The report of a program, made in a room above the one that compiles it."""
    return import_module(".views.report.notebook", __name__).notebook_report(exe)


def _health(exe: Executable, inputs: Mapping[str, Array]) -> Any:
    """The table of a run's health, made in the same room."""
    return import_module(".views.report.health", __name__).health_frame(exe, inputs)


VIEWS["report"] = _report
FRAMES["health"] = _health

__all__ = [
    "Decoder",
    "Executable",
    "Sampling",
    "Session",
    "Training",
    "compile_model",
    "from_jax",
    "from_torch",
    "load_report",
    "quantise",
    "sweep",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
