"""What is known of programs without their dialects: names of levels and attributes, a number."""

from __future__ import annotations

LEVEL_NAMES = ("nn", "partition", "tile", "exchange")
"""The names of all levels, from the highest down."""

UPDATED = "abele.updated"
"""The attribute of a module of a training program: the names of all states that a step changes, or
the host before a run."""

TRAINED = "abele.trained"
"""The attribute of a module of a training program: the names of the states that are its weights."""

MOST_SEED = 2**32 - 1
"""The largest seed."""
