"""Cases that give a hostile model to a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .case import Case, Damaged

READERS: tuple[tuple[str, ...], ...] = (
    ("run", "MODEL", "--check"),
    ("run", "MODEL", "--outputs", "out.npz"),
    ("run", "MODEL", "--strict"),
    ("run", "MODEL", "--profile", "profile.json", "--trace", "trace.json"),
    ("compile", "MODEL", "-o", "out.abele"),
    ("plan", "MODEL"),
    ("memory", "MODEL"),
    ("graph", "MODEL", "-o", "graph"),
    ("bisect", "MODEL"),
    ("run", "MODEL", "--dump-ir", "dump"),
)
"""Commands that read a model of any kind."""

TEXT_READERS: tuple[tuple[str, ...], ...] = (
    ("opt", "MODEL"),
    ("opt", "MODEL", "-p", "nn"),
    ("opt", "MODEL", "-p", "exchange"),
    ("opt", "MODEL", "--mlir-print-op-generic"),
    ("opt", "MODEL", "--split-input-file"),
    ("explain", "MODEL", "fold-constants"),
)
"""Commands that read only text."""

RUNS = 0.55
"""How often a model is run and its results are compared at all levels."""

TARGET = "tiny:8"
"""The target of models without a target of their own."""


def model_case(
    name: str,
    made: Damaged,
    random: np.random.Generator,
    beside: Mapping[str, bytes] | None = None,
    target: str | None = TARGET,
    *,
    is_source: bool = False,
    readers: Sequence[tuple[str, ...]] = READERS,
) -> Case:
    """A case that gives a model to one of the commands that read models.

    Args:
        name: the file name of the model.
        beside: further files.
        target: the command's --target; None for the model's own.
        is_source: the field of the case.
        readers: the commands, for a model that is not run and compared at all levels.
    """
    runs = random.random() < RUNS
    texts = TEXT_READERS if name.endswith(".mlir") else ()
    among = READERS[:1] if runs else (*readers, *texts)
    chosen = among[int(random.integers(len(among)))]
    arguments = tuple(name if word == "MODEL" else word for word in chosen)
    takes_target = chosen[0] not in ("opt", "explain") and not name.endswith(".abele")
    if target is not None and takes_target:
        arguments += ("--target", target)
    return Case(
        made.description,
        arguments,
        {name: made.data, **(beside or {})},
        damaged=name,
        compare=name if runs else "",
        model=name,
        target=target if takes_target else None,
        is_source=is_source,
    )
