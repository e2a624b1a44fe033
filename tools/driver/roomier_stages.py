"""Chooses stages anew for a pipeline of which one does not fit its chip.

The planner cuts a network by estimates. What a stage really takes is known once it is planned and
its variables have addresses. If that is too much, the next cut leaves as many more bytes free as
were missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...ir.pass_manager import parse_pipeline, parse_specs
from ...ir.support.errors import DoesNotFit
from ...passes.assign_stages import AssignStages
from ...passes.pipelines import PASSES
from .executable import Executable

ROUNDS = 3
"""How often stages are chosen anew."""

NOTE = "stages were cut anew, because one of those that were chosen first did not fit its chip"
"""The note for the user."""


def with_spare(passes: str, spare: int) -> str | None:
    """The pipeline whose stages leave more bytes of each tile free; None if it chooses no stages.

    Args:
        spare: the further bytes.
    """
    specs = [*parse_specs(passes)] if passes else []
    for i, spec in enumerate(specs):
        if spec.name != AssignStages.name:
            continue
        (own,) = parse_pipeline(str(spec), PASSES)
        assert isinstance(own, AssignStages)
        if own.stages > 1 and not own.cuts:
            specs[i] = replace(own, spare=own.spare + spare).spec()
            return ",".join(map(str, specs))
    return None


def in_roomier_stages(
    compile_with: Callable[[str], Executable],
    passes: str,
    tell: Callable[[Iterable[str]], None],
) -> Executable:
    """The first program that fits: with stages as they are first chosen, or with roomier ones.

    Raises the first one's DoesNotFit if none fits.

    Args:
        compile_with: compiles with a pipeline.
        passes: the pipeline.
    """
    first: DoesNotFit | None = None
    found = passes
    for _ in range(1 + ROUNDS):
        try:
            made = compile_with(found)
        except DoesNotFit as error:
            if error.tile is None:
                # No such cuts are left.
                raise first or error from None
            first = first or error
            again = with_spare(found, error.needed - error.available)
            if again is None:
                raise
            found = again
        else:
            if first is not None:
                made.note(NOTE)
                tell((NOTE,))
            return made
    assert first is not None
    raise first
