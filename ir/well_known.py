"""Names and limits that users of a program need without loading its dialects.

They are the names of the levels, the function that a run begins in, attributes of training
programs, the largest seed, and how many terms of a sum are added in one order.
"""

from __future__ import annotations

LEVEL_NAMES = ["nn", "partition", "tile", "exchange"]
"""The names of all levels, from the highest down. Levels that extensions add are inserted here."""

SOURCE_NAMES = ("stablehlo",)
"""The names of the levels above nn, on which a program of another compiler may be read."""

ENTRY = "main"
"""The symbol of the function that a run begins in."""

UPDATED = "abele.updated"
"""The attribute of a training program's module that lists the states which a step changes, or which
the host changes before a run.
"""

TRAINED = "abele.trained"
"""The attribute of a training program's module that lists the states which are weights."""

FIXED = "abele.fixed"
"""The attribute of a module that lists the states which the model's framework does not train, such
as buffers.
"""

ASKED = "abele.train"
"""The attribute of a module that asks for training: options of the pass train, as text."""

SCHEDULE = "abele.schedule"
"""The attribute of a module that asks for a schedule of the learning rate, as text."""

FACTORS = "abele.factors"
"""The attribute of a module that gives weights a learning rate and a weight decay of their own: by
the name of the state, the factor of each of the two.
"""

MOST_SEED = 2**32 - 1
"""The largest seed."""

MOST_TERMS = 128
"""The most terms between two roundings of a sum: so many are added in one order on every host."""
