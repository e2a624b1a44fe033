"""Exported programs in memory, as torch.export makes them."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import Any


def serialized(model: Any) -> bytes:
    """The archive of an exported program. Whoever has such an object has imported torch."""
    stream = BytesIO()
    sys.modules["torch"].export.save(model, stream)
    return stream.getvalue()
