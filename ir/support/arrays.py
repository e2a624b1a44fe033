"""The type of arrays whose dtype is known at run time only."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""An array of any shape and dtype."""
