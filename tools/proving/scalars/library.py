"""The solver's library. Importing this file raises InputError where z3 is not installed."""

from __future__ import annotations

from typing import Any

from ..solver import z3 as load

z3: Any = load()
"""The module z3, which has no annotations."""
