"""What the lines of Python that made the nodes of a program say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .node_names import line_of
from .schema import nodes_in
from .signatures import place_of, program_of


def source_lines(model: Any) -> Mapping[str, str]:
    """What lines say, by file and line, such as net.py:12. Raises InputError."""
    lines = map(line_of, nodes_in(program_of(model, place_of(model)).graph))
    return {str(line): line.text for line in lines if line is not None and line.text}
