"""How often programs that lie beside each other run between two changes."""

from __future__ import annotations

RUNS = 10
"""Runs between two changes of programs that a compile counts on, unless it is told."""
